use std::{ptr::NonNull, sync::Arc};

use rdma_sys as ffi;

use super::{Pd, PostReceives, check, check_ptr};
use crate::{Call, Error, Result};

/// A shared receive queue (`ibv_create_srq(3)`).
#[derive(Debug)]
pub(crate) struct RawSrq {
    raw: NonNull<ffi::ibv_srq>,
    post: PostSrqRecv,
    attr: ffi::ibv_srq_attr,
    _pd: Arc<Pd>,
}

type PostSrqRecv = unsafe extern "C" fn(
    *mut ffi::ibv_srq,
    *mut ffi::ibv_recv_wr,
    *mut *mut ffi::ibv_recv_wr,
) -> i32;

// SAFETY: posting is thread safe in libibverbs (`ibv_post_srq_recv(3)`); the rest is read only.
unsafe impl Send for RawSrq {}
// SAFETY: as above.
unsafe impl Sync for RawSrq {}

impl RawSrq {
    pub(crate) fn create(pd: &Arc<Pd>, depth: u32, max_sge: u32) -> Result<Self> {
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
            attr: ffi::ibv_srq_attr {
                max_wr: attr.attr.max_wr.max(depth),
                ..attr.attr
            },
            _pd: pd.clone(),
        })
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::ibv_srq {
        self.raw.as_ptr()
    }

    /// The number of receives that it can hold, and of elements that one can have.
    pub(crate) fn granted(&self) -> (u32, u32) {
        (self.attr.max_wr, self.attr.max_sge)
    }

    /// Asks for [`SRQ_LIMIT_REACHED`](crate::AsyncEventKind::SRQ_LIMIT_REACHED) when fewer than
    /// `limit` receives are left.
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
}

impl PostReceives for RawSrq {
    fn call(&self) -> Call {
        Call::IbvPostSrqRecv
    }

    #[inline(always)]
    unsafe fn post_receives(
        &self,
        first: *mut ffi::ibv_recv_wr,
        bad: &mut *mut ffi::ibv_recv_wr,
    ) -> i32 {
        // SAFETY: the caller's list; the queue is alive.
        unsafe { (self.post)(self.raw.as_ptr(), first, bad) }
    }
}

impl Drop for RawSrq {
    fn drop(&mut self) {
        // SAFETY: this is the owner; every queue pair on it holds an Arc of it and is gone.
        let ret = unsafe { ffi::ibv_destroy_srq(self.raw.as_ptr()) };
        crate::log_limit::log_failure(check(Call::IbvDestroySrq, ret));
    }
}
