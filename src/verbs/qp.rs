use std::ptr::NonNull;

use rdma_sys as ffi;

use crate::{Call, Error, Result};

/// A queue pair (`ibv_create_qp(3)`), with the provider's functions at hand.
///
/// It does not own the C object: the cm id that created it destroys it, after every use (see
/// `src/cm/raw/id.rs`).
pub(crate) struct RawQp {
    raw: NonNull<ffi::ibv_qp>,
    extended: Option<NonNull<ffi::ibv_qp_ex>>,
    post_send: PostSend,
    post_recv: PostRecv,
}

type PostSend = unsafe extern "C" fn(
    *mut ffi::ibv_qp,
    *mut ffi::ibv_send_wr,
    *mut *mut ffi::ibv_send_wr,
) -> i32;
type PostRecv = unsafe extern "C" fn(
    *mut ffi::ibv_qp,
    *mut ffi::ibv_recv_wr,
    *mut *mut ffi::ibv_recv_wr,
) -> i32;

// SAFETY: posting is thread safe in libibverbs (`ibv_post_send(3)`); the rest is read only.
unsafe impl Send for RawQp {}
// SAFETY: as above.
unsafe impl Sync for RawQp {}

impl RawQp {
    /// # Safety
    /// `qp` must be a live queue pair that outlives every use of the result, created with extended
    /// send operations if `extended` says so.
    pub(crate) unsafe fn new(qp: NonNull<ffi::ibv_qp>, extended: bool) -> Result<Self> {
        // SAFETY: the queue pair is alive, and so is its context with the table of operations.
        let ops = unsafe { &(*(*qp.as_ptr()).context).ops };
        let (Some(post_send), Some(post_recv)) = (ops.post_send, ops.post_recv) else {
            return Err(Error::not_supported(
                "posting to queue pairs of this device",
            ));
        };
        Ok(RawQp {
            raw: qp,
            extended: match extended {
                // SAFETY: the queue pair is alive; one without the extension gives null.
                true => NonNull::new(unsafe { ffi::ibv_qp_to_qp_ex(qp.as_ptr()) }),
                false => None,
            },
            post_send,
            post_recv,
        })
    }

    pub(crate) fn num(&self) -> u32 {
        // SAFETY: the queue pair is alive.
        unsafe { (*self.raw.as_ptr()).qp_num }
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::ibv_qp {
        self.raw.as_ptr()
    }

    /// For what only `ibv_wr_post(3)` has.
    #[inline(always)]
    pub(crate) fn extended(&self) -> Option<NonNull<ffi::ibv_qp_ex>> {
        self.extended
    }

    /// Posts a linked list (`ibv_post_send(3)`); gives the provider's return code, and in `bad` the
    /// request that it named as refused.
    ///
    /// # Safety
    /// The list and all it points at must live until the call returns, with every field that a
    /// provider reads set.
    #[inline(always)]
    pub(crate) unsafe fn post_send(
        &self,
        first: *mut ffi::ibv_send_wr,
        bad: &mut *mut ffi::ibv_send_wr,
    ) -> i32 {
        // SAFETY: the caller's list; the queue pair is alive.
        unsafe { (self.post_send)(self.raw.as_ptr(), first, bad) }
    }
}

/// A queue that receives are posted to: a queue pair's or a shared one.
pub(crate) trait PostReceives: Send + Sync {
    /// The C function's name.
    fn call(&self) -> Call;

    /// Posts a linked list; gives the provider's return code, and in `bad` the request that it
    /// named as refused.
    ///
    /// # Safety
    /// The list and all it points at must live until the call returns.
    unsafe fn post_receives(
        &self,
        first: *mut ffi::ibv_recv_wr,
        bad: &mut *mut ffi::ibv_recv_wr,
    ) -> i32;
}

impl PostReceives for RawQp {
    fn call(&self) -> Call {
        Call::IbvPostRecv
    }

    #[inline(always)]
    unsafe fn post_receives(
        &self,
        first: *mut ffi::ibv_recv_wr,
        bad: &mut *mut ffi::ibv_recv_wr,
    ) -> i32 {
        // SAFETY: the caller's list; the queue pair is alive.
        unsafe { (self.post_recv)(self.raw.as_ptr(), first, bad) }
    }
}
