//! What a peer declares of itself.

use std::{
    ffi::c_void,
    sync::atomic::{AtomicBool, Ordering},
};

use rpma::PeerCfg;

use crate::{INVAL, Out, OutHandle, Slot, c_api, given};

/// `struct rpma_peer_cfg`. It may be read and set by several threads at once.
pub(crate) struct Cfg {
    direct_write_to_pmem: AtomicBool,
}

impl Cfg {
    pub(crate) fn get(&self) -> PeerCfg {
        PeerCfg::new().with_direct_write_to_pmem(self.direct_write_to_pmem.load(Ordering::Relaxed))
    }
}

impl From<PeerCfg> for Cfg {
    fn from(cfg: PeerCfg) -> Self {
        Cfg {
            direct_write_to_pmem: AtomicBool::new(cfg.direct_write_to_pmem()),
        }
    }
}

c_api! {
    /// Makes a configuration.
    fn rpma_peer_cfg_new(pcfg_ptr: OutHandle<'_, Cfg>) {
        given(pcfg_ptr)?.write(Some(Box::new(PeerCfg::new().into())));
        Ok(())
    }

    /// Deletes a configuration.
    fn rpma_peer_cfg_delete(pcfg_ptr: Slot<'_, Cfg>) {
        given(pcfg_ptr)?.take();
        Ok(())
    }

    /// Declares direct write to persistent memory.
    fn rpma_peer_cfg_set_direct_write_to_pmem(pcfg: Option<&Cfg>, supported: bool) {
        given(pcfg)?.direct_write_to_pmem.store(supported, Ordering::Relaxed);
        Ok(())
    }

    /// Says what was declared.
    fn rpma_peer_cfg_get_direct_write_to_pmem(pcfg: Option<&Cfg>, supported: Out<'_, bool>) {
        let (cfg, place) = (given(pcfg)?, given(supported)?);
        place.write(cfg.get().direct_write_to_pmem());
        Ok(())
    }

    /// Writes the descriptor.
    fn rpma_peer_cfg_get_descriptor(
        pcfg: Option<&Cfg>,
        desc: Out<'_, [u8; PeerCfg::DESCRIPTOR_LEN]>,
    ) {
        let (cfg, place) = (given(pcfg)?, given(desc)?);
        place.write(cfg.get().descriptor());
        Ok(())
    }

    /// The size of the descriptor.
    fn rpma_peer_cfg_get_descriptor_size(pcfg: Option<&Cfg>, desc_size: Out<'_, usize>) {
        let (_, place) = (given(pcfg)?, given(desc_size)?);
        place.write(PeerCfg::DESCRIPTOR_LEN);
        Ok(())
    }

    /// Makes a configuration of a descriptor.
    fn rpma_peer_cfg_from_descriptor(
        desc: *const c_void,
        desc_size: usize,
        pcfg_ptr: OutHandle<'_, Cfg>,
    ) {
        let place = given(pcfg_ptr)?;
        if desc.is_null() {
            return Err(INVAL);
        }
        // SAFETY: the contract of C; the memory is only read during the call.
        let bytes = unsafe { std::slice::from_raw_parts(desc.cast::<u8>(), desc_size) };
        place.write(Some(Box::new(PeerCfg::from_descriptor(bytes)?.into())));
        Ok(())
    }
}
