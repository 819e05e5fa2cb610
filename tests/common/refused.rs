//! What the tests of refusals share.

use super::*;
use rpma::{Error, LocalSlice, RemoteSlice, Signal};

pub const LEN: usize = 64 * 1024;
pub const SIGNAL: Signal = Signal::Always(666);

impl Rig {
    pub fn new(peer: &Peer, cfg: &ConnCfg) -> Self {
        Rig::of(peer, cfg, LEN, remote_usage() | Usage::ATOMIC)
    }

    pub fn here(&self, len: u64) -> LocalSlice<'_> {
        self.local.slice(0..len).unwrap()
    }

    pub fn there(&self, len: u64) -> RemoteSlice {
        self.remote.slice(0..len).unwrap()
    }

    /// Nothing of what was refused was posted, and the connection still works.
    pub fn goes_on(self) {
        assert!(contents(&self.log).iter().all(|&byte| byte == 0xEE));
        self.client
            .write(&self.here(100), &self.there(100), Signal::Always(1))
            .unwrap();
        success(self.client.cq(), 1);
        assert!(nothing(self.client.cq()) && nothing(self.server.cq()));
        assert!(contents(&self.log)[..100] == contents(&self.local)[..100]);
    }
}

/// Each must be refused by an error whose text starts so.
pub fn refused<T, const N: usize>(results: [Result<T, Error>; N], expected: &str) {
    for (n, result) in results.into_iter().enumerate() {
        let Err(err) = result else {
            panic!("number {n} was not refused, {expected:?}");
        };
        let said = err.to_string();
        assert!(said.starts_with(expected), "number {n}: {said}");
        let code = match err {
            Error::NotSupported { .. } => rpma::code::NOSUPP,
            _ => rpma::code::INVAL,
        };
        assert_eq!(err.code(), code, "number {n}: {err:?}");
    }
}
