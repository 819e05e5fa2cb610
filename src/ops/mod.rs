//! The operations of a connection: their table, their check, and their ways to the device.
//!
//! # Safety
//! Everything that is posted was checked against the queue pair here ([`check`] or the quick check
//! of [`quick`]), and [`Qp`] is made of a queue pair that was created with the operations that its
//! features name. The memory of a batch ([`memory`], [`entry`]) is followed only while the batch
//! that owns it is borrowed.
#![allow(unsafe_code)]

mod around;
mod batch;
mod chain;
mod check;
mod entry;
mod facade;
mod memory;
mod outcome;
mod post;
mod quick;
mod receive;
mod sges;
mod sink;
mod spare;
mod table;

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use rdma_sys as ffi;

pub use batch::Batch;
pub(crate) use check::{Args, Near};
pub(crate) use facade::{for_each_operation, operation_methods, operation_trait};
use memory::BatchMemory;
pub use outcome::Attempt;
pub use post::{Post, Signal};
pub(crate) use quick::{QuickFar, QuickNear, quick_flush, quick_send, quick_transfer, quick_word};
pub(crate) use receive::ReceiveQueue;
pub use receive::RecvBatch;
pub(crate) use sges::MAX_SGE;
pub(crate) use sink::{Now, atomic_write, flush, operation, send, transfer};
use spare::{free_spare, give_spare, take_spare};

use crate::{
    FlushKind, FlushMethod,
    mr::{FlushPlan, RemoteSlice, quick as keys},
    verbs::{RawQp, Workarounds},
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
    /// Messages that invalidate the key of a region.
    pub(crate) invalidation: bool,
}

/// What a [`Qp`] is made of.
pub(crate) struct QpParts {
    pub(crate) qp: RawQp,
    pub(crate) cap: ffi::ibv_qp_cap,
    /// What the queue pair was created with.
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

/// A reliable-connection queue pair, with all that the data path needs at hand.
pub(crate) struct Qp {
    raw: RawQp,
    /// The protection domain's number in the upper half.
    tag: u64,
    /// For the quick check.
    key: u32,
    /// The same for reads.
    read_key: AtomicU32,
    /// The peer answers no reads, or this side may have none in flight: they would never complete.
    unanswered: AtomicBool,
    max_inline: u32,
    max_message: u64,
    max_send_sge: u32,
    features: Features,
    /// It has native atomic write, and native flush of each kind that it can flush.
    quick_atomic_write: bool,
    /// Any of these bits in a remote key: an atomic write there goes the long way.
    atomic_write_mask: AtomicU32,
    /// An atomic write is an inline write behind a fence.
    quick_inline_word: bool,
    /// The flushes that are possible now; a declared peer makes it `declared_plan`.
    flush_plan: AtomicU32,
    /// The same for the quick way, where the queue pair takes it.
    quick_plan: AtomicU32,
    quick_flushes: bool,
    declared_plan: FlushPlan,
    declared: AtomicBool,
    workarounds: Workarounds,
    iwarp: bool,
    /// Where flushes by reading put the byte that they read.
    scratch: ffi::ibv_sge,
    sq_depth: u32,
    receives: ReceiveQueue,
    has_srq: bool,
    spare: AtomicPtr<BatchMemory>,
}

impl std::fmt::Debug for Qp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Qp {{ num: {}, {:?} }}", self.num(), self.features)
    }
}

impl Qp {
    pub(crate) fn new(parts: QpParts) -> Self {
        let raw = parts.qp;
        let mut features = parts.features;
        if raw.extended().is_none() {
            features.flush_visibility = false;
            features.flush_persistent = false;
            features.atomic_write = false;
        }
        if parts.workarounds.contains(Workarounds::INLINE_WORDS) {
            features.atomic_write = false;
        }
        let mut workarounds = parts.workarounds;
        if parts.flush_method != FlushMethod::Auto {
            workarounds -= Workarounds::FLUSH_BY_READING;
        }
        let plan = plan(parts.flush_method, features);
        // Where there are two ways of a flush, the full check chooses.
        let quick_flushes = !parts.iwarp && !workarounds.contains(Workarounds::FLUSH_BY_READING);
        let tag = u64::from(parts.pd_tag) << 32;
        let max_message = parts.max_message.min(u64::from(u32::MAX));
        let visibly = plan & FlushPlan::of_kind(FlushKind::Visibility);
        // On iWARP every operation takes the full check.
        let longest = if parts.iwarp { 0 } else { max_message };
        let key = keys::queue_pair(parts.pd_tag, longest);
        Qp {
            raw,
            tag,
            key,
            read_key: AtomicU32::new(
                match parts.workarounds.intersects(Workarounds::SPLIT_READS) {
                    true => key | keys::NOTHING,
                    false => key,
                },
            ),
            unanswered: AtomicBool::new(false),
            max_inline: parts.cap.max_inline_data,
            max_message,
            max_send_sge: parts.cap.max_send_sge.min(MAX_SGE as u32),
            features,
            quick_atomic_write: features.atomic_write && !plan.reads(),
            atomic_write_mask: AtomicU32::new(keys::atomic_write_mask(visibly)),
            quick_inline_word: !features.atomic_write
                && !parts.workarounds.contains(Workarounds::INLINE_WORDS)
                && parts.cap.max_inline_data >= 8,
            flush_plan: AtomicU32::new(visibly.bits().into()),
            quick_plan: AtomicU32::new(match quick_flushes {
                true => visibly.bits().into(),
                false => 0,
            }),
            iwarp: parts.iwarp,
            declared_plan: plan,
            declared: AtomicBool::new(false),
            workarounds,
            quick_flushes,
            scratch: parts.scratch,
            sq_depth: parts.cap.max_send_wr,
            receives: ReceiveQueue::new(
                parts.pd_tag,
                parts.cap.max_recv_sge,
                // The quick check finds no receive right where they are posted to another queue.
                if parts.has_srq { 0 } else { max_message },
                parts.iwarp,
                parts.cap.max_recv_wr,
            ),
            has_srq: parts.has_srq,
            spare: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    pub(crate) fn num(&self) -> u32 {
        self.raw.num()
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::ibv_qp {
        self.raw.as_ptr()
    }

    /// The queue pair itself.
    pub(crate) fn raw(&self) -> &RawQp {
        &self.raw
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

    /// The number of operations that can be outstanding.
    pub(crate) fn sq_depth(&self) -> u32 {
        match self.workarounds.intersects(Workarounds::SPLIT_READS) {
            // Each may be two.
            true => self.sq_depth / 2,
            false => self.sq_depth,
        }
    }

    pub(crate) fn rq_depth(&self) -> u32 {
        self.receives.depth()
    }

    /// Takes note of whether the peer's device writes straight to persistent memory.
    pub(crate) fn set_direct_write_to_pmem(&self, yes: bool) {
        let mut plan = self.declared_plan;
        if !yes {
            plan &= FlushPlan::of_kind(FlushKind::Visibility);
        }
        self.declared.store(yes, Ordering::Relaxed);
        self.flush_plan.store(plan.bits().into(), Ordering::Relaxed);
        self.atomic_write_mask
            .store(keys::atomic_write_mask(plan), Ordering::Relaxed);
        if self.quick_flushes && !self.unanswered.load(Ordering::Relaxed) {
            self.quick_plan.store(plan.bits().into(), Ordering::Relaxed);
        }
    }

    /// From now on refuses reads, atomics and flushes, of which none would be answered.
    pub(crate) fn refuse_reads(&self) {
        self.unanswered.store(true, Ordering::Relaxed);
        (self.read_key).store(self.key | keys::NOTHING, Ordering::Relaxed);
        self.quick_plan.store(0, Ordering::Relaxed);
    }

    /// The flushes that are possible now, as far as this side is concerned.
    #[inline(always)]
    fn flush_plan(&self) -> FlushPlan {
        FlushPlan::from_bits_retain(self.flush_plan.load(Ordering::Relaxed) as u8)
    }

    /// The flushes that are possible now without a look at the transport.
    #[inline(always)]
    fn quick_plan(&self) -> FlushPlan {
        FlushPlan::from_bits_retain(self.quick_plan.load(Ordering::Relaxed) as u8)
    }

    /// The ways in which `range` can be flushed, whatever the kind.
    #[inline(always)]
    fn flushes(&self, range: &RemoteSlice) -> FlushPlan {
        self.flush_plan() & range.flushes()
    }

    /// Is such a flush done natively, if the region and the peer's configuration allow it?
    pub(crate) fn flushes_natively(&self, kind: FlushKind) -> bool {
        let reads = self.workarounds.contains(Workarounds::FLUSH_BY_READING);
        self.declared_plan.natively(kind) && !(reads && kind == FlushKind::Visibility)
    }

    /// Are flushes to be done natively or not at all?
    fn native_only(&self) -> bool {
        !self
            .declared_plan
            .intersects(FlushPlan::all() - FlushPlan::NATIVE)
    }

    /// Did the peer declare direct write to persistent memory?
    fn declared(&self) -> bool {
        self.declared.load(Ordering::Relaxed)
    }

    #[inline]
    fn take_memory(&self) -> Box<BatchMemory> {
        take_spare(&self.spare, || {
            BatchMemory::new(self.sq_depth as usize, self.key)
        })
    }

    #[inline(never)]
    fn give_memory(&self, mut memory: Box<BatchMemory>) {
        memory.clear();
        give_spare(&self.spare, memory);
    }
}

impl Drop for Qp {
    fn drop(&mut self) {
        free_spare(*self.spare.get_mut());
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
