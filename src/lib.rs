#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

#[doc(hidden)]
pub mod capi_support;
pub mod cm;
pub mod cq;
#[cfg(feature = "efa")]
pub mod efa;
mod error;
mod log_limit;
pub mod mr;
mod numbers;
mod ops;
mod peer;
pub mod peer_cfg;
pub mod srq;
mod sync;
mod verbs;
mod wait;

pub use cm::{
    ConnCfg, ConnEvent, ConnEventKind, ConnRequest, Connection, Endpoint, EndpointCfg, Fired, Host,
    Operations,
};
pub use cq::{Completion, Cq, Ready, Wait};
pub use error::{Call, Error, Result, code};
pub use mr::{
    Advice, AsLocalSlice, Descriptor, FlushKind, FlushMethod, FlushMethods, HugePage, LocalRegion,
    LocalSlice, Memory, OwnedSlice, RemoteRegion, RemoteSlice, StableBytes, Usage,
};
pub use numbers::{
    AsyncEventKind, CmEventKind, GidType, LinkLayer, PortState, Transport, WcOpcode, WcStatus,
};
pub use ops::{Batch, Post, RecvBatch, Signal};
pub use peer::{
    AsyncEvents, Capabilities, DeviceInfo, Gid, OdpCapabilities, Peer, PortInfo, devices,
};
pub use peer_cfg::PeerCfg;
/// The bindings of libibverbs and librdmacm that this crate is built on.
pub use rdma_sys as sys;
pub use srq::{Srq, SrqCfg};
pub use verbs::{AsyncEvent, AsyncSubject, DataInOrder};
pub use wait::Waker;
