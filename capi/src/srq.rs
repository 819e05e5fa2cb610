//! The shared receive queue.

use std::{
    ffi::c_void,
    os::fd::AsFd,
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use rpma::{
    Cq, Peer, Srq, SrqCfg,
    capi_support::{self, Attempt},
};

use crate::{
    Out, OutHandle, Slot, c_api, done, given,
    mr::{self, Local},
};

/// `struct rpma_srq_cfg`. It may be read and set by several threads at once.
pub(crate) struct Cfg {
    rq_size: AtomicU32,
    rcq_size: AtomicU32,
}

impl Cfg {
    fn new() -> Self {
        let cfg = SrqCfg::new();
        Cfg {
            rq_size: AtomicU32::new(cfg.size_value()),
            rcq_size: AtomicU32::new(cfg.rcq_size_value()),
        }
    }

    fn get(&self) -> SrqCfg {
        SrqCfg::new()
            .size(self.rq_size.load(Relaxed))
            .rcq_size(self.rcq_size.load(Relaxed))
    }
}

c_api! {
    /// Makes a configuration.
    fn rpma_srq_cfg_new(cfg_ptr: OutHandle<'_, Cfg>) {
        given(cfg_ptr)?.write(Some(Box::new(Cfg::new())));
        Ok(())
    }

    /// Deletes a configuration.
    fn rpma_srq_cfg_delete(cfg_ptr: Slot<'_, Cfg>) {
        given(cfg_ptr)?.take();
        Ok(())
    }

    /// Sets the size of the queue.
    fn rpma_srq_cfg_set_rq_size(cfg: Option<&Cfg>, rq_size: u32) {
        given(cfg)?.rq_size.store(rq_size, Relaxed);
        Ok(())
    }

    /// Says what was set.
    fn rpma_srq_cfg_get_rq_size(cfg: Option<&Cfg>, rq_size: Out<'_, u32>) {
        let (cfg, place) = (given(cfg)?, given(rq_size)?);
        place.write(cfg.rq_size.load(Relaxed));
        Ok(())
    }

    /// Sets the size of the queue's CQ; 0 for none.
    fn rpma_srq_cfg_set_rcq_size(cfg: Option<&Cfg>, rcq_size: u32) {
        given(cfg)?.rcq_size.store(rcq_size, Relaxed);
        Ok(())
    }

    /// Says what was set.
    fn rpma_srq_cfg_get_rcq_size(cfg: Option<&Cfg>, rcq_size: Out<'_, u32>) {
        let (cfg, place) = (given(cfg)?, given(rcq_size)?);
        place.write(cfg.rcq_size.load(Relaxed));
        Ok(())
    }

    /// Makes a shared receive queue.
    fn rpma_srq_new(peer: Option<&Peer>, cfg: Option<&Cfg>, srq_ptr: OutHandle<'_, Srq>) {
        let (peer, place) = (given(peer)?, given(srq_ptr)?);
        let cfg = cfg.map_or_else(SrqCfg::new, Cfg::get);
        let srq = Srq::new(peer, &cfg)?;
        if let Some(rcq) = srq.rcq() {
            // From here on the mode of the fd is the program's.
            capi_support::make_fd_blocking(rcq.as_fd())?;
        }
        place.write(Some(Box::new(srq)));
        Ok(())
    }

    /// Deletes a shared receive queue; connections that have it keep it.
    fn rpma_srq_delete(srq_ptr: Slot<'_, Srq>) {
        given(srq_ptr)?.take();
        Ok(())
    }

    /// Posts a receive.
    fn rpma_srq_recv(
        srq: Option<&Srq>,
        dst: Option<&Local>,
        offset: usize,
        len: usize,
        op_context: *const c_void,
    ) quick {
        match (srq, dst) {
            (Some(srq), Some(dst)) => {
                done(capi_support::srq_recv(srq, dst.piece(offset, len), op_context as u64))
            }
            _ => Err(Attempt::Undecided),
        }
    } else {
        let srq = given(srq)?;
        Ok(srq.recv(&mr::buffer(dst, offset, len)?, op_context as u64)?)
    }

    /// The queue's CQ, or null.
    fn rpma_srq_get_rcq(srq: Option<&Srq>, rcq_ptr: Out<'_, Option<NonNull<Cq>>>) {
        let (srq, place) = (given(srq)?, given(rcq_ptr)?);
        place.write(srq.rcq().map(NonNull::from));
        Ok(())
    }
}
