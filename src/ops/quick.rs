//! The quick check: one comparison of what the slices, the region and the queue pair carry for it.

use std::{borrow::Borrow, sync::atomic::Ordering};

use rdma_sys as ffi;

use super::{
    outcome::Attempt,
    sink::{Sink, inline_element},
};
use crate::{
    FlushKind, LocalSlice, Post, RemoteSlice, Usage,
    mr::quick,
    verbs::{Op, Request, Target},
};

/// The local side of a quick operation: a slice, or a piece of a region.
pub(crate) trait QuickNear {
    /// Is an operation between it and the remote side with the key `far` surely right, for a queue
    /// with the key `queue`? The queue's key is looked at last.
    fn fits(&self, queue: impl FnOnce() -> u32, far: u32, usages: Usage) -> bool;
    /// 0 where it [`fits`](Self::fits). Two slices' answers make one branch: of two, the way of
    /// what is right is laid out worse.
    #[inline(always)]
    fn misfit(&self, queue: impl FnOnce() -> u32, far: u32, usages: Usage) -> u32 {
        (!self.fits(queue, far, usages)).into()
    }
    fn len(&self) -> u64;
    fn element(&self) -> impl Borrow<ffi::ibv_sge>;
}

/// The remote side of a quick operation.
pub(crate) trait QuickFar {
    /// Its region's key.
    fn key(&self) -> u32;
    /// Does it have `len` bytes, inside of its region?
    fn has(&self, len: u64) -> bool;
    /// Is `misfit` 0, and [`has`](Self::has) it `len` bytes?
    #[inline(always)]
    fn completes(&self, misfit: u32, len: u64) -> bool {
        misfit == 0 && self.has(len)
    }
    fn target(&self) -> Target;
    /// As what is flushed.
    fn range(&self) -> Option<impl Borrow<RemoteSlice>>;
}

impl QuickNear for &LocalSlice<'_> {
    #[inline(always)]
    fn fits(&self, queue: impl FnOnce() -> u32, far: u32, usages: Usage) -> bool {
        quick::fit(queue(), self.quick, far, usages)
    }

    #[inline(always)]
    fn misfit(&self, queue: impl FnOnce() -> u32, far: u32, usages: Usage) -> u32 {
        quick::misfit(queue(), self.quick, far, usages)
    }

    #[inline(always)]
    fn len(&self) -> u64 {
        self.len
    }

    #[inline(always)]
    fn element(&self) -> impl Borrow<ffi::ibv_sge> {
        &self.sge
    }
}

impl QuickFar for &RemoteSlice {
    #[inline(always)]
    fn key(&self) -> u32 {
        self.quick
    }

    #[inline(always)]
    fn has(&self, len: u64) -> bool {
        self.len == len
    }

    #[inline(always)]
    fn completes(&self, misfit: u32, len: u64) -> bool {
        u64::from(misfit) | (self.len ^ len) == 0
    }

    #[inline(always)]
    fn target(&self) -> Target {
        self.target
    }

    #[inline(always)]
    fn range(&self) -> Option<impl Borrow<RemoteSlice>> {
        Some(*self)
    }
}

#[inline(always)]
pub(crate) fn quick_transfer<'q>(
    sink: &mut impl Sink<'q>,
    op: Op,
    near: impl QuickNear,
    far: impl QuickFar,
    post: Post,
) -> Attempt {
    let key = || match op {
        Op::Read => sink.read_key(),
        _ => sink.key(),
    };
    let misfit = near.misfit(key, far.key(), op.usages());
    if !far.completes(misfit, near.len()) {
        return Attempt::Undecided;
    }
    // SAFETY: the quick check finds nothing right where there is no room.
    unsafe {
        sink.put(
            Request::plain(op, far.target(), post),
            near.element().borrow(),
        )
    }
}

#[inline(always)]
pub(crate) fn quick_send<'q>(
    sink: &mut impl Sink<'q>,
    near: impl QuickNear,
    post: Post,
) -> Attempt {
    if !near.fits(|| sink.key(), 0, Op::Send.usages()) {
        return Attempt::Undecided;
    }
    let request = Request::plain(Op::Send, Target::NOWHERE, post);
    // SAFETY: as above.
    unsafe { sink.put(request, near.element().borrow()) }
}

#[inline(always)]
pub(crate) fn quick_flush<'q>(
    sink: &mut impl Sink<'q>,
    far: impl QuickFar,
    kind: FlushKind,
    post: Post,
) -> Attempt {
    let Some(range) = far.range() else {
        return Attempt::Undecided;
    };
    let range = range.borrow();
    let possible = sink.flushes() & range.flushes();
    if possible.natively(kind) {
        // SAFETY: there is room where there are flushes, and native ones where the queue pair was
        // created with them.
        return unsafe { sink.put_extended(Op::Flush, post, || Request::flush(range, kind, post)) };
    }
    if !possible.by_reading(kind) {
        return Attempt::Undecided;
    }
    let scratch = &sink.qp().scratch;
    // SAFETY: as above.
    unsafe { sink.put(Request::plain(Op::Read, range.target, post), scratch) }
}

/// Writes 8 bytes at once, where that takes no fence. A value by reference is read behind the
/// provider's first call.
#[inline(always)]
pub(crate) fn quick_word<'q, S: Sink<'q>>(
    sink: &mut S,
    far: impl QuickFar,
    value: impl Borrow<[u8; 8]>,
    post: Post,
) -> Attempt {
    let qp = sink.qp();
    let target = far.target();
    if !S::AT_ONCE || !far.has(8) || target.addr() % 8 != 0 {
        return Attempt::Undecided;
    }
    if qp.quick_atomic_write {
        if far.key() & qp.atomic_write_mask.load(Ordering::Relaxed) != 0 {
            return Attempt::Undecided;
        }
        // SAFETY: the queue pair was created with it; a queue pair always has room to try.
        return unsafe {
            sink.put_extended(Op::AtomicWrite, post, || {
                Request::atomic_write(far.target(), *value.borrow(), post)
            })
        };
    }
    if !qp.quick_inline_word || !quick::fit(0, 0, far.key(), Usage::WRITE_DST) {
        return Attempt::Undecided;
    }
    let mut request = Request::plain(Op::Write, target, post);
    request.flags |= u64::from(ffi::IBV_SEND_INLINE | ffi::IBV_SEND_FENCE);
    // A copy of a value that the native way keeps in a register.
    let bytes = value;
    // SAFETY: as above; the bytes are read at once.
    unsafe { sink.put(request, &inline_element(bytes.borrow())) }
}
