#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

pub mod cm;
pub mod cq;
mod error;
pub mod log_limit;
pub mod mr;
mod numbers;
mod peer;
pub mod peer_cfg;
mod peer_events;
mod post;
pub mod srq;
mod sync;
mod verbs;
mod wait;

pub use cm::{
    ConnCfg, ConnEvent, ConnEventKind, ConnRequest, Connection, Endpoint, EndpointCfg, Fired,
    FlushMethod, Host,
};
pub use cq::{Completion, Cq, Ready, Wait};
pub use error::{Call, Error, Result, code};
pub use mr::{
    Advice, Descriptor, FlushKind, FlushMethods, HugePage, LocalRegion, LocalSlice, Memory,
    OwnedSlice, RemoteRegion, RemoteSlice, StableBytes, Usage,
};
pub use numbers::{
    AsyncEventKind, CmEventKind, GidType, LinkLayer, PortState, Transport, WcOpcode, WcStatus,
};
pub use peer::{Capabilities, DeviceInfo, Gid, OdpCapabilities, Peer, PortInfo, devices};
pub use peer_cfg::PeerCfg;
pub use peer_events::AsyncEvents;
pub use post::{Post, Signal};
/// The bindings of libibverbs and librdmacm that this crate is built on.
pub use rdma_sys as sys;
pub use srq::{Srq, SrqCfg};
#[doc(hidden)]
pub use verbs::Tried;
#[cfg(feature = "efa")]
pub use verbs::efa;
pub use verbs::{AsyncEvent, AsyncSubject, Batch, DataInOrder, RecvBatch};
pub use wait::Waker;
