#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

#[doc(hidden)]
pub mod capi_support;
pub mod cm;
pub mod cq;
mod error;
pub mod log_limit;
pub mod mr;
mod numbers;
mod ops;
mod peer;
pub mod peer_cfg;
mod peer_events;
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
pub use peer::{Capabilities, DeviceInfo, Gid, OdpCapabilities, Peer, PortInfo, devices};
pub use peer_cfg::PeerCfg;
pub use peer_events::AsyncEvents;
/// The bindings of libibverbs and librdmacm that this crate is built on.
pub use rdma_sys as sys;
pub use srq::{Srq, SrqCfg};
#[cfg(feature = "efa")]
pub use verbs::efa;
pub use verbs::{AsyncEvent, AsyncSubject, DataInOrder};
pub use wait::Waker;
