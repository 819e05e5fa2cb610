//! What a peer declares of itself.

use crate::error::{Error, Result};

/// A peer's declaration of what its machine is able to do.
///
/// A peer sends the [`descriptor`](Self::descriptor) of its own configuration to the other side by
/// any means, mostly in the private data of the connection's establishment. The other side applies
/// it to its connection.
///
/// ```
/// use rpma::PeerCfg;
///
/// let mine = PeerCfg::new().with_direct_write_to_pmem(true);
/// let sent = mine.descriptor();
/// assert_eq!(PeerCfg::from_descriptor(&sent)?, mine);
/// # Ok::<(), rpma::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[doc(alias = "rpma_peer_cfg")]
#[doc(alias = "rpma_peer_cfg_delete")]
pub struct PeerCfg {
    direct_write_to_pmem: bool,
}

impl PeerCfg {
    /// The length of a descriptor in bytes.
    #[doc(alias = "rpma_peer_cfg_get_descriptor_size")]
    pub const DESCRIPTOR_LEN: usize = 1;

    /// The configuration of a peer that declares nothing.
    #[doc(alias = "rpma_peer_cfg_new")]
    pub const fn new() -> PeerCfg {
        PeerCfg {
            direct_write_to_pmem: false,
        }
    }

    /// Declares whether data that arrives from the network reaches persistent memory without
    /// stopping in a volatile cache, so that a flush from outside can make it persistent.
    ///
    /// On Intel's servers this asks for Data Direct I/O to be switched off for the device's PCIe
    /// root port, or for a platform that saves its CPU caches on power failure (eADR). The
    /// declaration is the administrator's word: nothing checks it. Without it,
    /// [`FlushKind::Persistent`](crate::FlushKind::Persistent) is refused by the other side as [not
    /// supported](crate::Error::NotSupported).
    #[must_use]
    #[doc(alias = "rpma_peer_cfg_set_direct_write_to_pmem")]
    pub const fn with_direct_write_to_pmem(mut self, supported: bool) -> PeerCfg {
        self.direct_write_to_pmem = supported;
        self
    }

    /// Whether data that arrives from the network reaches persistent memory directly, as
    /// [declared](Self::with_direct_write_to_pmem).
    #[inline]
    #[doc(alias = "rpma_peer_cfg_get_direct_write_to_pmem")]
    pub const fn direct_write_to_pmem(&self) -> bool {
        self.direct_write_to_pmem
    }

    /// The bytes to send to the other side, the same as librpma's.
    #[doc(alias = "rpma_peer_cfg_get_descriptor")]
    pub const fn descriptor(&self) -> [u8; PeerCfg::DESCRIPTOR_LEN] {
        [self.direct_write_to_pmem as u8]
    }

    /// Reads the descriptor of a peer's configuration. A first byte other than 0 declares direct
    /// write to persistent memory; what follows is ignored.
    ///
    /// # Errors
    ///
    /// [`Error::BadDescriptor`] when there are no bytes.
    #[doc(alias = "rpma_peer_cfg_from_descriptor")]
    pub fn from_descriptor(bytes: &[u8]) -> Result<PeerCfg> {
        match bytes.first() {
            Some(&byte) => Ok(PeerCfg::new().with_direct_write_to_pmem(byte != 0)),
            None => Err(Error::BadDescriptor {
                what: "peer configuration",
                problem: "no bytes, and it has at least one",
            }),
        }
    }
}

#[cfg(test)]
mod tests;
