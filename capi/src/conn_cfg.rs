//! The configuration of a connection.

use std::{
    ffi::c_int,
    ptr::NonNull,
    sync::atomic::{
        AtomicBool, AtomicI32, AtomicPtr, AtomicU32,
        Ordering::{Acquire, Relaxed, Release},
    },
    time::Duration,
};

use rpma::{ConnCfg, FlushMethod, Srq};

use crate::{INVAL, Out, OutHandle, Slot, c_api, given};

/// `struct rpma_conn_cfg`. It may be read and set by several threads at once.
pub(crate) struct Cfg {
    timeout_ms: AtomicI32,
    cq_size: AtomicU32,
    rcq_size: AtomicU32,
    sq_size: AtomicU32,
    rq_size: AtomicU32,
    shared_channel: AtomicBool,
    /// The handle as the program gave it, which is followed where a connection is made.
    srq: AtomicPtr<Srq>,
}

impl Cfg {
    fn new() -> Self {
        let cfg = ConnCfg::new();
        Cfg {
            timeout_ms: AtomicI32::new(cfg.timeout_value().as_millis() as i32),
            cq_size: AtomicU32::new(cfg.cq_size_value()),
            rcq_size: AtomicU32::new(cfg.rcq_size_value()),
            sq_size: AtomicU32::new(cfg.sq_size_value()),
            rq_size: AtomicU32::new(cfg.rq_size_value()),
            shared_channel: AtomicBool::new(cfg.shared_channel_value()),
            srq: AtomicPtr::default(),
        }
    }

    fn get(&self) -> ConnCfg {
        let timeout = self.timeout_ms.load(Relaxed).max(0) as u64;
        let cfg = ConnCfg::new()
            .timeout(Duration::from_millis(timeout))
            .cq_size(self.cq_size.load(Relaxed))
            .rcq_size(self.rcq_size.load(Relaxed))
            .sq_size(self.sq_size.load(Relaxed))
            .rq_size(self.rq_size.load(Relaxed))
            .shared_channel(self.shared_channel.load(Relaxed));
        // SAFETY: the contract of C: the handle that the configuration holds is null or alive
        // whenever a connection is made with it.
        match unsafe { self.srq.load(Acquire).as_ref() } {
            Some(srq) => cfg.srq(srq),
            None => cfg,
        }
    }
}

/// The configuration of a connection that is made with `cfg`, or with the defaults.
pub(crate) fn chosen(cfg: Option<&Cfg>) -> ConnCfg {
    let chosen = cfg.map_or_else(ConnCfg::new, Cfg::get);
    let chosen = chosen
        .device_workarounds(std::env::var_os("RPMA_WORKAROUNDS").is_none_or(|value| value != "0"));
    // The C interface has no argument for it, and 21 bytes of a descriptor have no room for an
    // agreement.
    match std::env::var_os("RPMA_FLUSH_METHOD") {
        Some(method) if method == "native" => chosen.flush_method(FlushMethod::Native),
        Some(method) if method == "read" => chosen.flush_method(FlushMethod::ReadAfterWrite),
        _ => chosen,
    }
}

c_api! {
    /// Makes a configuration.
    fn rpma_conn_cfg_new(cfg_ptr: OutHandle<'_, Cfg>) {
        given(cfg_ptr)?.write(Some(Box::new(Cfg::new())));
        Ok(())
    }

    /// Deletes a configuration.
    fn rpma_conn_cfg_delete(cfg_ptr: Slot<'_, Cfg>) {
        given(cfg_ptr)?.take();
        Ok(())
    }

    /// Sets the time for making a request, in ms.
    fn rpma_conn_cfg_set_timeout(cfg: Option<&Cfg>, timeout_ms: c_int) {
        let cfg = given(cfg)?;
        if timeout_ms < 0 {
            return Err(INVAL);
        }
        cfg.timeout_ms.store(timeout_ms, Relaxed);
        Ok(())
    }

    /// Says what was set.
    fn rpma_conn_cfg_get_timeout(cfg: Option<&Cfg>, timeout_ms: Out<'_, c_int>) {
        let (cfg, place) = (given(cfg)?, given(timeout_ms)?);
        place.write(cfg.timeout_ms.load(Relaxed));
        Ok(())
    }

    /// Sets the size of the main CQ.
    fn rpma_conn_cfg_set_cq_size(cfg: Option<&Cfg>, cq_size: u32) {
        given(cfg)?.cq_size.store(cq_size, Relaxed);
        Ok(())
    }

    /// Says what was set.
    fn rpma_conn_cfg_get_cq_size(cfg: Option<&Cfg>, cq_size: Out<'_, u32>) {
        let (cfg, place) = (given(cfg)?, given(cq_size)?);
        place.write(cfg.cq_size.load(Relaxed));
        Ok(())
    }

    /// Sets the size of the receive CQ.
    fn rpma_conn_cfg_set_rcq_size(cfg: Option<&Cfg>, rcq_size: u32) {
        given(cfg)?.rcq_size.store(rcq_size, Relaxed);
        Ok(())
    }

    /// Says what was set.
    fn rpma_conn_cfg_get_rcq_size(cfg: Option<&Cfg>, rcq_size: Out<'_, u32>) {
        let (cfg, place) = (given(cfg)?, given(rcq_size)?);
        place.write(cfg.rcq_size.load(Relaxed));
        Ok(())
    }

    /// Sets the size of the send queue.
    fn rpma_conn_cfg_set_sq_size(cfg: Option<&Cfg>, sq_size: u32) {
        given(cfg)?.sq_size.store(sq_size, Relaxed);
        Ok(())
    }

    /// Says what was set.
    fn rpma_conn_cfg_get_sq_size(cfg: Option<&Cfg>, sq_size: Out<'_, u32>) {
        let (cfg, place) = (given(cfg)?, given(sq_size)?);
        place.write(cfg.sq_size.load(Relaxed));
        Ok(())
    }

    /// Sets the size of the receive queue.
    fn rpma_conn_cfg_set_rq_size(cfg: Option<&Cfg>, rq_size: u32) {
        given(cfg)?.rq_size.store(rq_size, Relaxed);
        Ok(())
    }

    /// Says what was set.
    fn rpma_conn_cfg_get_rq_size(cfg: Option<&Cfg>, rq_size: Out<'_, u32>) {
        let (cfg, place) = (given(cfg)?, given(rq_size)?);
        place.write(cfg.rq_size.load(Relaxed));
        Ok(())
    }

    /// Lets both CQs share a completion channel.
    fn rpma_conn_cfg_set_compl_channel(cfg: Option<&Cfg>, shared: bool) {
        given(cfg)?.shared_channel.store(shared, Relaxed);
        Ok(())
    }

    /// Says what was set.
    fn rpma_conn_cfg_get_compl_channel(cfg: Option<&Cfg>, shared: Out<'_, bool>) {
        let (cfg, place) = (given(cfg)?, given(shared)?);
        place.write(cfg.shared_channel.load(Relaxed));
        Ok(())
    }

    /// Sets the shared receive queue.
    fn rpma_conn_cfg_set_srq(cfg: Option<&Cfg>, srq: Option<NonNull<Srq>>) {
        let (cfg, srq) = (given(cfg)?, given(srq)?);
        cfg.srq.store(srq.as_ptr(), Release);
        Ok(())
    }

    /// Says what was set.
    fn rpma_conn_cfg_get_srq(cfg: Option<&Cfg>, srq_ptr: Out<'_, Option<NonNull<Srq>>>) {
        let (cfg, place) = (given(cfg)?, given(srq_ptr)?);
        place.write(NonNull::new(cfg.srq.load(Acquire)));
        Ok(())
    }
}
