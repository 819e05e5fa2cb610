use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicPtr, Ordering},
    },
};

use rdma_sys as ffi;

use super::{
    Pd, Tried, check, check_ptr,
    post::{piece, post_one_recv, recv_one},
    recv_batch::RecvBuffer,
    sges::{MAX_SGE, RecvLimits},
};
use crate::{
    Call, Error, LocalRegion, Result, Usage,
    mr::{LocalSlice, quick},
};

/// A shared receive queue (`ibv_create_srq(3)`).
#[derive(Debug)]
pub(crate) struct RawSrq {
    raw: NonNull<ffi::ibv_srq>,
    post: PostSrqRecv,
    /// The key for the quick check.
    quick: u32,
    limits: RecvLimits,
    depth: u32,
    spare: AtomicPtr<RecvBuffer>,
    _pd: Arc<Pd>,
}

type PostSrqRecv = unsafe extern "C" fn(
    *mut ffi::ibv_srq,
    *mut ffi::ibv_recv_wr,
    *mut *mut ffi::ibv_recv_wr,
) -> i32;

// SAFETY: libibverbs is thread safe; the rest is read only or atomic.
unsafe impl Send for RawSrq {}
// SAFETY: as above.
unsafe impl Sync for RawSrq {}

impl RawSrq {
    pub(crate) fn create(
        pd: &Arc<Pd>,
        pd_tag: u32,
        depth: u32,
        max_sge: u32,
        max_message: u64,
    ) -> Result<Self> {
        // SAFETY: the domain, its context and the table of operations are alive.
        let post = unsafe { (*pd.context().as_ptr()).ops.post_srq_recv };
        let Some(post) = post else {
            return Err(Error::not_supported("shared receive queues on this device"));
        };
        let mut attr = ffi::ibv_srq_init_attr {
            srq_context: std::ptr::null_mut(),
            attr: ffi::ibv_srq_attr {
                max_wr: depth,
                max_sge,
                srq_limit: 0,
            },
        };
        // SAFETY: the domain is alive and `attr` whole.
        let raw = unsafe { ffi::ibv_create_srq(pd.as_ptr(), &mut attr) };
        let raw = check_ptr(Call::IbvCreateSrq, raw)?;
        Ok(RawSrq {
            raw,
            post,
            quick: quick::queue_pair(pd_tag, max_message),
            limits: RecvLimits {
                tag: u64::from(pd_tag) << 32,
                max_sge: attr.attr.max_sge.min(MAX_SGE as u32),
                max_message: max_message.min(u64::from(u32::MAX)),
                needs_sge: pd.context().is_iwarp(),
            },
            depth: attr.attr.max_wr.max(depth),
            spare: AtomicPtr::new(std::ptr::null_mut()),
            _pd: pd.clone(),
        })
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::ibv_srq {
        self.raw.as_ptr()
    }

    /// The number of receives that it can hold.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Asks for [`SRQ_LIMIT_REACHED`](super::AsyncEventKind::SRQ_LIMIT_REACHED) when fewer than `limit` receives are left.
    pub(crate) fn arm_limit(&self, limit: u32) -> Result<()> {
        let mut attr = ffi::ibv_srq_attr {
            max_wr: 0,
            max_sge: 0,
            srq_limit: limit,
        };
        // SAFETY: the queue is alive and `attr` whole.
        let ret =
            unsafe { ffi::ibv_modify_srq(self.raw.as_ptr(), &mut attr, ffi::IBV_SRQ_LIMIT as i32) };
        check(Call::IbvModifySrq, ret)
    }

    /// Posts one receive into `dst`.
    #[inline]
    pub(crate) fn recv_one(&self, dst: &LocalSlice<'_>, wr_id: u64) -> Result<()> {
        if !quick::fit(self.quick, dst.quick, 0, Usage::RECV) {
            return self.recv(std::slice::from_ref(dst), wr_id);
        }
        self.post_recv(&dst.sge, wr_id).check()
    }

    /// The same for `len` bytes of a region from an offset on; see [`Tried`].
    #[inline(always)]
    pub(crate) fn try_recv(&self, dst: (&LocalRegion, u64), len: u64, wr_id: u64) -> Tried {
        match piece(self.quick, Usage::RECV, dst, len) {
            Some(sge) => self.post_recv(&sge, wr_id),
            None => Tried::Unfit,
        }
    }

    #[inline(always)]
    fn post_recv(&self, sge: &ffi::ibv_sge, wr_id: u64) -> Tried {
        post_one_recv(Call::IbvPostSrqRecv, sge, wr_id, |wr, bad| {
            // SAFETY: the queue is alive; the request lives until the call returns.
            unsafe { (self.post)(self.raw.as_ptr(), wr, bad) }
        })
    }

    /// Posts one receive into slices.
    #[inline(never)]
    pub(crate) fn recv(&self, list: &[LocalSlice<'_>], wr_id: u64) -> Result<()> {
        recv_one(
            Call::IbvPostSrqRecv,
            self.limits(),
            list,
            wr_id,
            |wr, bad| {
                // SAFETY: the queue is alive; the request lives until the call returns.
                unsafe { (self.post)(self.raw.as_ptr(), wr, bad) }
            },
        )
    }

    pub(super) fn limits(&self) -> RecvLimits {
        self.limits
    }

    /// # Safety
    /// The list and all it points at must live until the call returns.
    pub(super) unsafe fn post_recv_list(
        &self,
        first: *mut ffi::ibv_recv_wr,
        bad: *mut *mut ffi::ibv_recv_wr,
    ) -> i32 {
        // SAFETY: the caller's word; the queue is alive.
        unsafe { (self.post)(self.raw.as_ptr(), first, bad) }
    }

    pub(super) fn take_recv_buffer(&self) -> Box<RecvBuffer> {
        super::spare::take_spare(&self.spare, || {
            RecvBuffer::with_capacity(self.depth as usize)
        })
    }

    pub(super) fn give_recv_buffer(&self, buffer: Box<RecvBuffer>) {
        super::spare::give_spare(&self.spare, buffer);
    }
}

impl Drop for RawSrq {
    fn drop(&mut self) {
        super::spare::free_spare(self.spare.swap(std::ptr::null_mut(), Ordering::Acquire));
        // SAFETY: this is the owner; every queue pair on it holds an Arc of it and is gone.
        let ret = unsafe { ffi::ibv_destroy_srq(self.raw.as_ptr()) };
        crate::log_limit::log_failure(check(Call::IbvDestroySrq, ret));
    }
}
