//! The queue pair and the way of one operation to the doorbell.

use std::{
    mem::MaybeUninit,
    ptr::{NonNull, addr_of_mut},
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering},
};

use rdma_sys as ffi;

use super::{
    outcome::{Tried, tried},
    post::{piece, post_one_recv, recv_one},
    recv_batch::RecvBuffer,
    request::Request,
    send_buffer::SendBuffer,
    sges::{MAX_SGE, RecvLimits},
    spare::{free_spare, give_spare, take_spare},
    workarounds::Workarounds,
};
use crate::{
    Call, Error, FlushKind, FlushMethod, Post, Result, Usage,
    mr::{FlushPlan, LocalRegion, LocalSlice, RemoteSlice, quick},
};

/// What a queue pair can do beyond reads, writes and sends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Features {
    /// Native flush to visibility.
    pub(crate) flush_visibility: bool,
    /// Native flush to persistence.
    pub(crate) flush_persistent: bool,
    /// Native atomic write.
    pub(crate) atomic_write: bool,
    /// Compare-and-swap, fetch-and-add.
    pub(crate) atomics: bool,
    /// Immediate data.
    pub(crate) immediate: bool,
}

/// What a [`Qp`] is made of.
pub(crate) struct QpParts {
    pub(crate) qp: NonNull<ffi::ibv_qp>,
    pub(crate) cap: ffi::ibv_qp_cap,
    /// The queue pair was created with the extended send operations of `features`.
    pub(crate) extended: bool,
    pub(crate) features: Features,
    pub(crate) flush_method: FlushMethod,
    pub(crate) pd_tag: u32,
    pub(crate) max_message: u64,
    /// Where flushes by reading put the byte that they read.
    pub(crate) scratch: ffi::ibv_sge,
    pub(crate) workarounds: Workarounds,
    pub(crate) has_srq: bool,
    pub(crate) iwarp: bool,
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

/// A reliable-connection queue pair, with all that the data path needs at hand.
///
/// It does not own the C object: the cm id that created it destroys it, after every use (see `src/cm/id.rs`).
pub(crate) struct Qp {
    raw: NonNull<ffi::ibv_qp>,
    extended: Option<NonNull<ffi::ibv_qp_ex>>,
    post_send: PostSend,
    post_recv: PostRecv,
    pub(super) tag: u64,
    pub(super) quick: u32,
    quick_recv: u32,
    pub(super) max_message: u64,
    pub(super) max_inline: u32,
    pub(super) max_send_sge: u32,
    pub(super) max_recv_sge: u32,
    pub(super) features: Features,
    /// The flushes that are possible now; a declared peer makes it `declared_plan`.
    flush_plan: AtomicU8,
    declared_plan: FlushPlan,
    declared: AtomicBool,
    /// Where flushes by reading put the byte that they read.
    pub(super) scratch: ffi::ibv_sge,
    pub(super) workarounds: Workarounds,
    has_srq: bool,
    iwarp: bool,
    sq_depth: u32,
    rq_depth: u32,
    spare_send: AtomicPtr<SendBuffer>,
    spare_recv: AtomicPtr<RecvBuffer>,
}

// SAFETY: posting is thread safe in libibverbs; the rest is read only or atomic.
unsafe impl Send for Qp {}
// SAFETY: as above.
unsafe impl Sync for Qp {}

impl std::fmt::Debug for Qp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Qp")
            .field("num", &self.num())
            .field("features", &self.features)
            .finish_non_exhaustive()
    }
}

impl Qp {
    /// # Safety
    /// `parts.qp` must be a live queue pair, created as `parts` says, and outlive every use of the result.
    pub(crate) unsafe fn new(parts: QpParts) -> Result<Self> {
        // SAFETY: the queue pair is alive, and so is its context with the table of operations.
        let ops = unsafe { &(*(*parts.qp.as_ptr()).context).ops };
        let (Some(post_send), Some(post_recv)) = (ops.post_send, ops.post_recv) else {
            return Err(Error::not_supported(
                "posting to queue pairs of this device",
            ));
        };
        let extended = if parts.extended {
            // SAFETY: the queue pair is alive; a queue pair without the extension gives null.
            NonNull::new(unsafe { ffi::ibv_qp_to_qp_ex(parts.qp.as_ptr()) })
        } else {
            None
        };
        let mut features = parts.features;
        if extended.is_none() {
            features.flush_visibility = false;
            features.flush_persistent = false;
            features.atomic_write = false;
        }
        let plan = plan(parts.flush_method, features);
        Ok(Qp {
            raw: parts.qp,
            extended,
            post_send,
            post_recv,
            tag: u64::from(parts.pd_tag) << 32,
            // Where there are faults to go around, every operation takes the long way.
            quick: quick::queue_pair(
                parts.pd_tag,
                match parts.workarounds.is_empty() {
                    true => parts.max_message,
                    false => 0,
                },
            ),
            quick_recv: quick::queue_pair(
                parts.pd_tag,
                if parts.has_srq { 0 } else { parts.max_message },
            ),
            max_message: parts.max_message.min(u64::from(u32::MAX)),
            max_inline: parts.cap.max_inline_data,
            max_send_sge: parts.cap.max_send_sge.min(MAX_SGE as u32),
            max_recv_sge: parts.cap.max_recv_sge.min(MAX_SGE as u32),
            features,
            flush_plan: AtomicU8::new((plan & FlushPlan::of_kind(FlushKind::Visibility)).bits()),
            declared_plan: plan,
            declared: AtomicBool::new(false),
            scratch: parts.scratch,
            workarounds: parts.workarounds,
            has_srq: parts.has_srq,
            iwarp: parts.iwarp,
            sq_depth: parts.cap.max_send_wr,
            rq_depth: parts.cap.max_recv_wr,
            spare_send: AtomicPtr::new(std::ptr::null_mut()),
            spare_recv: AtomicPtr::new(std::ptr::null_mut()),
        })
    }

    pub(crate) fn num(&self) -> u32 {
        // SAFETY: the queue pair is alive.
        unsafe { (*self.raw.as_ptr()).qp_num }
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::ibv_qp {
        self.raw.as_ptr()
    }

    pub(crate) fn features(&self) -> Features {
        self.features
    }

    pub(crate) fn max_inline(&self) -> u32 {
        self.max_inline
    }

    pub(crate) fn max_message(&self) -> u64 {
        self.max_message
    }

    pub(crate) fn max_send_sge(&self) -> u32 {
        self.max_send_sge
    }

    pub(crate) fn sq_depth(&self) -> u32 {
        self.sq_depth
    }

    pub(crate) fn rq_depth(&self) -> u32 {
        self.rq_depth
    }

    /// Takes note of whether the peer's device writes straight to persistent memory.
    pub(crate) fn set_direct_write_to_pmem(&self, yes: bool) {
        let mut plan = self.declared_plan;
        if !yes {
            plan &= FlushPlan::of_kind(FlushKind::Visibility);
        }
        self.declared.store(yes, Ordering::Relaxed);
        self.flush_plan.store(plan.bits(), Ordering::Relaxed);
    }

    /// The flushes that are possible now, as far as this side is concerned.
    #[inline(always)]
    pub(super) fn flush_plan(&self) -> FlushPlan {
        FlushPlan::from_bits_retain(self.flush_plan.load(Ordering::Relaxed))
    }

    /// Are flushes to be done natively or not at all?
    pub(super) fn native_only(&self) -> bool {
        !self
            .declared_plan
            .intersects(FlushPlan::all() - FlushPlan::NATIVE)
    }

    /// Did the peer declare direct write to persistent memory?
    pub(super) fn declared(&self) -> bool {
        self.declared.load(Ordering::Relaxed)
    }

    /// Posts one request with a list of elements; not a native flush or atomic write.
    #[inline(always)]
    pub(super) fn post(
        &self,
        request: Request,
        sg_list: *const ffi::ibv_sge,
        num_sge: usize,
    ) -> Tried {
        let mut wr = MaybeUninit::<ffi::ibv_send_wr>::uninit();
        let mut bad = std::ptr::null_mut();
        // SAFETY: `wr` is ours; it gets every field that the provider reads for this opcode, and lives with its list until the
        // call returns.
        let ret = unsafe {
            let wr = wr.as_mut_ptr();
            request.write_to(wr, num_sge);
            addr_of_mut!((*wr).next).write(std::ptr::null_mut());
            addr_of_mut!((*wr).sg_list).write(sg_list.cast_mut());
            self.post_list(wr, &mut bad)
        };
        tried(Call::IbvPostSend, ret, bad)
    }

    /// Posts the one native flush or atomic write that `start` starts, with the number and the flags of `post`; `start` must do no more.
    #[inline(always)]
    pub(super) fn post_extended(
        &self,
        call: Call,
        post: Post,
        start: impl FnOnce(*mut ffi::ibv_qp_ex),
    ) -> Tried {
        debug_assert!(self.extended.is_some());
        // SAFETY: `new` leaves these features to extended queue pairs only, and the checks let nothing through that is no feature.
        let qp = unsafe { self.extended.unwrap_unchecked() }.as_ptr();
        // SAFETY: the queue pair is alive and extended; start and complete are paired, and nothing in between can return early or
        // panic.
        let ret = unsafe {
            ffi::ibv_wr_start(qp);
            (*qp).wr_id = post.wr_id;
            (*qp).wr_flags = post.flags;
            start(qp);
            ffi::ibv_wr_complete(qp)
        };
        match ret {
            0 => Tried::Done,
            ret => Tried::Refused { call, ret },
        }
    }

    /// Posts a linked list; gives the provider's return code, and in `bad` the request that it named as refused.
    ///
    /// # Safety
    /// The list and all it points at must live until the call returns, with every field that a provider reads set.
    #[inline(always)]
    pub(super) unsafe fn post_list(
        &self,
        first: *mut ffi::ibv_send_wr,
        bad: &mut *mut ffi::ibv_send_wr,
    ) -> i32 {
        // SAFETY: the caller's word; the queue pair is alive.
        unsafe { (self.post_send)(self.raw.as_ptr(), first, bad) }
    }

    /// The extended queue pair, for lists that hold native flushes or atomic writes.
    pub(super) fn extended(&self) -> Option<NonNull<ffi::ibv_qp_ex>> {
        self.extended
    }

    /// Posts one receive into `dst`.
    #[inline]
    pub(crate) fn recv_one(&self, dst: &LocalSlice<'_>, wr_id: u64) -> Result<()> {
        // `quick` never fits where there is a shared receive queue to post to.
        if !quick::fit(self.quick_recv, dst.quick, 0, Usage::RECV) {
            return self.recv(std::slice::from_ref(dst), wr_id);
        }
        self.post_recv(&dst.sge, wr_id).check()
    }

    /// The same for `len` bytes of a region from an offset on; see [`Tried`].
    #[inline(always)]
    pub(crate) fn try_recv(&self, dst: (&LocalRegion, u64), len: u64, wr_id: u64) -> Tried {
        match piece(self.quick_recv, Usage::RECV, dst, len) {
            Some(sge) => self.post_recv(&sge, wr_id),
            None => Tried::Unfit,
        }
    }

    #[inline(always)]
    fn post_recv(&self, sge: &ffi::ibv_sge, wr_id: u64) -> Tried {
        post_one_recv(Call::IbvPostRecv, sge, wr_id, |wr, bad| {
            // SAFETY: the queue pair is alive; the request lives until the call returns.
            unsafe { (self.post_recv)(self.raw.as_ptr(), wr, bad) }
        })
    }

    /// Posts one receive into slices.
    #[inline(never)]
    pub(crate) fn recv(&self, list: &[LocalSlice<'_>], wr_id: u64) -> Result<()> {
        self.check_recv()?;
        recv_one(
            Call::IbvPostRecv,
            self.recv_limits(),
            list,
            wr_id,
            |wr, bad| {
                // SAFETY: the queue pair is alive; the request lives until the call returns.
                unsafe { (self.post_recv)(self.raw.as_ptr(), wr, bad) }
            },
        )
    }

    #[inline]
    pub(super) fn recv_limits(&self) -> RecvLimits {
        RecvLimits {
            tag: self.tag,
            max_sge: self.max_recv_sge,
            max_message: self.max_message,
            needs_sge: self.iwarp,
        }
    }

    pub(super) fn check_recv(&self) -> Result<()> {
        if self.has_srq {
            return Err(Error::invalid(
                "connection",
                "receives of a connection with a shared receive queue are posted to that queue",
            ));
        }
        Ok(())
    }

    /// # Safety
    /// As for [`Self::post_list`].
    pub(super) unsafe fn post_recv_list(
        &self,
        first: *mut ffi::ibv_recv_wr,
        bad: *mut *mut ffi::ibv_recv_wr,
    ) -> i32 {
        // SAFETY: the caller's word; the queue pair is alive.
        unsafe { (self.post_recv)(self.raw.as_ptr(), first, bad) }
    }

    #[inline]
    pub(super) fn take_send_buffer(&self) -> Box<SendBuffer> {
        take_spare(&self.spare_send, || {
            SendBuffer::new(self.sq_depth as usize, self.quick)
        })
    }

    #[inline(never)]
    pub(super) fn give_send_buffer(&self, mut buffer: Box<SendBuffer>) {
        buffer.clear();
        give_spare(&self.spare_send, buffer);
    }

    pub(super) fn take_recv_buffer(&self) -> Box<RecvBuffer> {
        take_spare(&self.spare_recv, || {
            RecvBuffer::with_capacity(self.rq_depth as usize)
        })
    }

    pub(super) fn give_recv_buffer(&self, buffer: Box<RecvBuffer>) {
        give_spare(&self.spare_recv, buffer);
    }
}

impl Drop for Qp {
    fn drop(&mut self) {
        free_spare(*self.spare_send.get_mut());
        free_spare(*self.spare_recv.get_mut());
    }
}

/// The flushes that a queue pair can do for a peer that declared direct write to persistent memory.
fn plan(method: FlushMethod, features: Features) -> FlushPlan {
    let mut plan = FlushPlan::all();
    if method == FlushMethod::Native {
        plan &= FlushPlan::NATIVE;
    }
    plan.set(
        FlushPlan::NATIVE_VISIBILITY,
        features.flush_visibility && method != FlushMethod::ReadAfterWrite,
    );
    plan.set(
        FlushPlan::NATIVE_PERSISTENT,
        features.flush_persistent && method != FlushMethod::ReadAfterWrite,
    );
    plan
}

/// Starts a native flush.
///
/// # Safety
/// Between `ibv_wr_start` and `ibv_wr_complete`, on a live queue pair that was created with native flushes of these kinds.
#[inline(always)]
pub(super) unsafe fn start_flush(qp: *mut ffi::ibv_qp_ex, range: &RemoteSlice, kinds: u32) {
    let target = range.target;
    let level = u8::from(range.whole);
    // SAFETY: the caller's word.
    unsafe {
        ffi::ibv_wr_flush(
            qp,
            target.rkey(),
            target.addr(),
            range.len as usize,
            kinds as u8,
            level,
        );
    }
}

const _: () = assert!(ffi::IBV_FLUSH_RANGE == 0 && ffi::IBV_FLUSH_MR == 1);
