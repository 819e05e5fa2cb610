//! Remote memory over RDMA.

#![deny(unsafe_code)]
// Until connections use all of it.
#![allow(dead_code, unused_imports)]

mod error;
mod mr;
mod peer_cfg;

pub use error::{Error, Result, code};
pub use mr::{
    Descriptor, FlushKind, FlushMethods, HugePage, LocalRegion, LocalSlice, Memory, RemoteRegion,
    RemoteSlice, StableBytes, Usage,
};
pub use peer_cfg::PeerCfg;

/// A stand-in until the connection manager is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmEventKind(u32);

impl CmEventKind {
    /// The peer rejected the connection.
    pub const REJECTED: CmEventKind = CmEventKind(8);
}

impl std::fmt::Display for CmEventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "event {}", self.0)
    }
}

/// A stand-in until peers are here.
#[derive(Debug)]
pub struct Peer(());

mod verbs {
    use crate::Error;

    /// A stand-in until the device is here.
    pub(crate) struct Mr {
        lkey: u32,
        rkey: u32,
    }

    impl Mr {
        pub(crate) fn lkey(&self) -> u32 {
            self.lkey
        }

        pub(crate) fn rkey(&self) -> u32 {
            self.rkey
        }

        pub(crate) fn deregister(self) -> Result<(), (Self, Error)> {
            Ok(())
        }
    }
}
