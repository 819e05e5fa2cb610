#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

pub mod cm;
pub mod cq;
mod error;
pub mod mr;
mod peer;
pub mod peer_cfg;
mod post;
mod refused;
pub mod srq;
mod sync;
mod verbs;
mod wait;

pub use cm::{
    CmEventKind, ConnCfg, ConnEvent, ConnEventKind, ConnRequest, Connection, Endpoint, EndpointCfg,
    Fired, FlushMethod, Host,
};
pub use cq::{Completion, Cq, Ready, Wait, WcOpcode, WcStatus};
pub use error::{Error, Result, code};
pub use mr::{
    Advice, Descriptor, FlushKind, FlushMethods, HugePage, LocalRegion, LocalSlice, Memory,
    RemoteRegion, RemoteSlice, StableBytes, Usage,
};
pub use peer::{
    Capabilities, DeviceInfo, Gid, GidType, LinkLayer, OdpCapabilities, Peer, PortInfo, PortState,
    Transport, devices,
};
pub use peer_cfg::PeerCfg;
pub use post::{Post, Signal};
pub use srq::{Srq, SrqCfg};
#[doc(hidden)]
pub use verbs::Tried;
#[cfg(feature = "efa")]
pub use verbs::efa;
pub use verbs::{
    AsyncEvent, AsyncEventKind, AsyncEvents, AsyncSubject, Batch, DataInOrder, RecvBatch,
};
