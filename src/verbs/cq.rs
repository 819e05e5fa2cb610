use std::{
    os::fd::{AsFd, BorrowedFd},
    ptr::NonNull,
    sync::Arc,
};

use rdma_sys as ffi;

use super::workarounds::{Failed, poll_without_first_parts};
use super::{Completion, Context, acks::Acks, check, check_ptr, nothing_yet};
use crate::{Call, Error, Result, wait::set_nonblocking};

/// A completion channel (`ibv_create_comp_channel(3)`): the fd that says which CQ has news. It is
/// in non-blocking mode.
#[derive(Debug)]
pub(crate) struct RawChannel {
    raw: NonNull<ffi::ibv_comp_channel>,
    _context: Arc<Context>,
}

// SAFETY: libibverbs is thread safe and nothing of the struct is written by us.
unsafe impl Send for RawChannel {}
// SAFETY: as above.
unsafe impl Sync for RawChannel {}

/// The address of a CQ, to be compared with [`RawCq::id`] only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CqId(NonNull<ffi::ibv_cq>);

impl RawChannel {
    #[cfg(feature = "efa")]
    pub(crate) fn as_ptr(&self) -> *mut ffi::ibv_comp_channel {
        self.raw.as_ptr()
    }

    pub(crate) fn create(context: &Arc<Context>) -> Result<Self> {
        // SAFETY: the context is open.
        let raw = unsafe { ffi::ibv_create_comp_channel(context.as_ptr()) };
        let channel = RawChannel {
            raw: check_ptr(Call::IbvCreateCompChannel, raw)?,
            _context: context.clone(),
        };
        set_nonblocking(channel.as_fd(), true)?;
        Ok(channel)
    }

    /// Takes one event, blocking or not as the fd is set. `None` where the fd has none now.
    ///
    /// The event must be counted on its CQ, or acknowledged with [`Self::ack_stranger`].
    pub(crate) fn take_event(&self) -> Result<Option<CqId>> {
        let mut cq = std::ptr::null_mut();
        let mut cq_context = std::ptr::null_mut();
        // SAFETY: the channel is open, both pointers are to live locals.
        let ret = unsafe { ffi::ibv_get_cq_event(self.raw.as_ptr(), &mut cq, &mut cq_context) };
        match (ret, NonNull::new(cq)) {
            (0, Some(cq)) => Ok(Some(CqId(cq))),
            (0, None) => Err(Error::provider(Call::IbvGetCqEvent, libc::EIO)),
            _ => nothing_yet(Call::IbvGetCqEvent),
        }
    }

    /// Acknowledges one event of a CQ that is none of ours, so that its owner can destroy it.
    pub(crate) fn ack_stranger(&self, cq: CqId) {
        // SAFETY: an event that was not acknowledged keeps its CQ alive.
        unsafe { ffi::ibv_ack_cq_events(cq.0.as_ptr(), 1) }
    }
}

impl AsFd for RawChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the fd is open as long as the channel, which outlives the borrow.
        unsafe { BorrowedFd::borrow_raw((*self.raw.as_ptr()).fd) }
    }
}

impl Drop for RawChannel {
    fn drop(&mut self) {
        // SAFETY: this is the owner; every CQ on the channel holds an Arc of it and is gone.
        let ret = unsafe { ffi::ibv_destroy_comp_channel(self.raw.as_ptr()) };
        crate::log_limit::log_failure(check(Call::IbvDestroyCompChannel, ret));
    }
}

/// A completion queue (`ibv_create_cq(3)`).
#[derive(Debug)]
pub(crate) struct RawCq {
    raw: NonNull<ffi::ibv_cq>,
    poll_cq: PollCq,
    acks: Acks<64>,
    /// What the queue's context points at.
    _failed: Arc<Failed>,
    _channel: Arc<RawChannel>,
    _context: Arc<Context>,
}

type PollCq = unsafe extern "C" fn(*mut ffi::ibv_cq, i32, *mut ffi::ibv_wc) -> i32;

// SAFETY: libibverbs is thread safe and nothing of the struct is written by us.
unsafe impl Send for RawCq {}
// SAFETY: as above.
unsafe impl Sync for RawCq {}

impl RawCq {
    /// `splits` says that reads of its queue pairs may be split.
    pub(crate) fn create(
        context: &Arc<Context>,
        entries: u32,
        channel: Arc<RawChannel>,
        comp_vector: u32,
        splits: bool,
    ) -> Result<Self> {
        let (Ok(entries), Ok(comp_vector)) = (i32::try_from(entries), i32::try_from(comp_vector))
        else {
            return Err(Error::invalid("cq_size or comp_vector", "above 2^31 - 1"));
        };
        let failed = Arc::new(Failed::default());
        // SAFETY: context and channel are open, and the channel belongs to the context.
        let raw = unsafe {
            ffi::ibv_create_cq(
                context.as_ptr(),
                entries,
                Arc::as_ptr(&failed).cast_mut().cast(),
                channel.raw.as_ptr(),
                comp_vector,
            )
        };
        let raw = check_ptr(Call::IbvCreateCq, raw)?;
        let mut cq = RawCq {
            raw,
            poll_cq: no_poll_cq,
            acks: Acks::new(),
            _failed: failed,
            _channel: channel,
            _context: context.clone(),
        };
        // SAFETY: the CQ is alive, and so is its context with the table of operations.
        match unsafe { (*(*raw.as_ptr()).context).ops.poll_cq } {
            Some(_) if splits => cq.poll_cq = poll_without_first_parts,
            Some(poll_cq) => cq.poll_cq = poll_cq,
            None => {
                return Err(Error::not_supported(
                    "polling completion queues on this device",
                ));
            }
        }
        Ok(cq)
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::ibv_cq {
        self.raw.as_ptr()
    }

    pub(crate) fn id(&self) -> CqId {
        CqId(self.raw)
    }

    /// The number of entries that the device gave.
    pub(crate) fn entries(&self) -> u32 {
        // SAFETY: the CQ is alive.
        unsafe { (*self.raw.as_ptr()).cqe.max(0) as u32 }
    }

    /// Takes completions into `buf`, and gives the part that was filled (`ibv_poll_cq(3)`).
    #[inline]
    pub(crate) fn poll<'b>(&self, buf: &'b mut [Completion]) -> Result<&'b [Completion]> {
        let len = buf.len().min(i32::MAX as usize) as u32;
        // SAFETY: the CQ is alive and `buf` has room for `len` completions.
        let ret =
            unsafe { (self.poll_cq)(self.raw.as_ptr(), len as i32, Completion::as_mut_ptr(buf)) };
        // As unsigned numbers the negative ones are above all lengths.
        match ret as u32 {
            // SAFETY: that is not more than there are.
            n if n <= len => Ok(unsafe { buf.get_unchecked(..n as usize) }),
            _ => Err(poll_failed(ret)),
        }
    }

    /// `ibv_poll_cq(3)` itself.
    ///
    /// # Safety
    /// There must be room for `room` completions.
    #[inline(always)]
    pub(crate) unsafe fn poll_raw(&self, room: i32, completions: *mut ffi::ibv_wc) -> i32 {
        // SAFETY: the CQ is alive; the caller's word.
        unsafe { (self.poll_cq)(self.raw.as_ptr(), room, completions) }
    }

    /// Asks for an event at the next completion (`ibv_req_notify_cq(3)`).
    pub(crate) fn arm(&self, solicited_only: bool) -> Result<()> {
        // SAFETY: the CQ is alive.
        let ret = unsafe { ffi::ibv_req_notify_cq(self.raw.as_ptr(), i32::from(solicited_only)) };
        check(Call::IbvReqNotifyCq, ret)
    }

    /// Counts one event that was taken from the channel; they are acknowledged in groups.
    pub(crate) fn count_event(&self) {
        self.acks.count(|n| self.acknowledge(n));
    }

    fn acknowledge(&self, n: u32) {
        // SAFETY: the CQ is alive, and `n` of its events were taken and not acknowledged: each was
        // counted once.
        unsafe { ffi::ibv_ack_cq_events(self.raw.as_ptr(), n) }
    }
}

impl Drop for RawCq {
    fn drop(&mut self) {
        // Destroying waits for the events that were taken; all must be acknowledged first.
        self.acks.give_back(|n| self.acknowledge(n));
        // SAFETY: this is the owner; every queue that completes here holds an Arc of it and is
        // gone.
        let ret = unsafe { ffi::ibv_destroy_cq(self.raw.as_ptr()) };
        crate::log_limit::log_failure(check(Call::IbvDestroyCq, ret));
    }
}

unsafe extern "C" fn no_poll_cq(_: *mut ffi::ibv_cq, _: i32, _: *mut ffi::ibv_wc) -> i32 {
    -libc::EOPNOTSUPP
}

/// Of a poll that failed, or that gave more than there was room for.
#[cold]
#[inline(never)]
pub(crate) fn poll_failed(ret: i32) -> Error {
    let errno = if ret < 0 {
        super::errno(ret)
    } else {
        libc::EIO
    };
    Error::provider(Call::IbvPollCq, errno)
}
