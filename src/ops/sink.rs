//! The way of an operation: the quick check, else the full one, then to the device at once or into
//! a batch.

use std::{mem::MaybeUninit, ptr::addr_of_mut, sync::atomic::Ordering};

use rdma_sys as ffi;

use super::{
    Qp,
    around::around,
    check::{Args, Near, check_word},
    outcome::{Attempt, attempted},
    quick::{quick_flush, quick_send, quick_transfer, quick_word},
    sges::Sges,
};
use crate::{
    Call, Error, FlushKind, LocalSlice, Post, RemoteSlice, Result,
    mr::FlushPlan,
    verbs::{Op, Request, Workarounds, start},
};

/// Where checked operations go.
pub(crate) trait Sink<'q> {
    /// Does [`put`](Self::put) read inline data before it returns?
    const AT_ONCE: bool;

    /// Calls `work` with a copy, and keeps what becomes of it: what is out of line so never has the
    /// address of `self`, whose fields stay in registers.
    fn apart<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R;

    fn qp(&self) -> &'q Qp;

    /// The queue pair's key for the quick check, or one that fits nothing where there is no room.
    fn key(&self) -> u32;

    /// The same for reads.
    fn read_key(&self) -> u32;

    /// The flushes that are possible now; none where there is no room.
    fn flushes(&self) -> FlushPlan;

    /// Takes an operation with one element.
    ///
    /// # Safety
    /// The operation must be checked, and [`key`](Self::key) or [`flushes`](Self::flushes) must
    /// have said that there is room.
    unsafe fn put(&mut self, request: Request, sge: &ffi::ibv_sge) -> Attempt;

    /// Takes an operation of `ibv_wr_post(3)` alone, which has no elements. The request is made
    /// when it is needed, behind the provider's first call, so that nothing must be kept across
    /// that.
    ///
    /// # Safety
    /// As for [`put`](Self::put), `request` must be an `op` with this `post`; and the queue pair
    /// must have been created with the operation.
    unsafe fn put_extended(
        &mut self,
        op: Op,
        post: Post,
        request: impl FnOnce() -> Request,
    ) -> Attempt;

    /// Takes a checked operation, and makes room where there is none.
    fn put_checked(&mut self, request: Request, data: Data<'_>) -> Result<()>;
}

/// What a checked operation carries.
#[derive(Clone, Copy)]
pub(crate) enum Data<'a> {
    Elements(&'a [ffi::ibv_sge]),
    /// Bytes that are copied.
    Copied(&'a [u8]),
    /// What comes before it, the first part of the same read with its elements; and its own
    /// element.
    Behind(&'a Request, &'a [ffi::ibv_sge], ffi::ibv_sge),
}

/// Each operation is posted as it comes.
pub(crate) struct Now<'q>(pub(crate) &'q Qp);

impl<'q> Sink<'q> for Now<'q> {
    const AT_ONCE: bool = true;

    #[inline(always)]
    fn apart<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        work(&mut Now(self.0))
    }

    #[inline(always)]
    fn qp(&self) -> &'q Qp {
        self.0
    }

    #[inline(always)]
    fn key(&self) -> u32 {
        self.0.key
    }

    #[inline(always)]
    fn read_key(&self) -> u32 {
        self.0.read_key.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn flushes(&self) -> FlushPlan {
        self.0.quick_plan()
    }

    #[inline(always)]
    unsafe fn put(&mut self, request: Request, sge: &ffi::ibv_sge) -> Attempt {
        self.0.post(&request, std::slice::from_ref(sge))
    }

    #[inline(always)]
    unsafe fn put_extended(
        &mut self,
        op: Op,
        post: Post,
        request: impl FnOnce() -> Request,
    ) -> Attempt {
        let call = match op {
            Op::Flush => Call::IbvWrFlush,
            _ => Call::IbvWrAtomicWrite,
        };
        // SAFETY: the caller says that the queue pair was created with this operation, so it is
        // extended.
        let qp = unsafe { self.0.raw.extended().unwrap_unchecked() }.as_ptr();
        // SAFETY: the queue pair is alive; start and complete are paired, and nothing in between
        // can return early or panic, `request` only copies.
        let ret = unsafe {
            ffi::ibv_wr_start(qp);
            (*qp).wr_id = post.wr_id;
            (*qp).wr_flags = post.flags as u32;
            start(qp, op, &request());
            ffi::ibv_wr_complete(qp)
        };
        match ret {
            0 => Attempt::Posted,
            ret => Attempt::Refused {
                call,
                ret: ret.into(),
            },
        }
    }

    fn put_checked(&mut self, mut request: Request, data: Data<'_>) -> Result<()> {
        match data {
            // SAFETY: the check lets an operation of this kind through only where the queue pair
            // has it.
            Data::Elements(_) if request.op.is_extended() => unsafe {
                self.put_extended(request.op, request.post(), || request)
            },
            Data::Elements(list) => self.0.post(&request, list),
            Data::Copied(data) => {
                request.flags |= u64::from(ffi::IBV_SEND_INLINE);
                let list = &[inline_element(data)][..usize::from(!data.is_empty())];
                self.0.post(&request, list)
            }
            Data::Behind(first, head, rest) => {
                self.0.post_two([(first, head), (&request, &[rest])])
            }
        }
        .check()
    }
}

impl Qp {
    /// Posts one operation of `ibv_post_send(3)`.
    #[inline(always)]
    fn post(&self, request: &Request, list: &[ffi::ibv_sge]) -> Attempt {
        let mut wr = MaybeUninit::<ffi::ibv_send_wr>::uninit();
        let mut bad = std::ptr::null_mut();
        // SAFETY: `wr` is ours; it gets every field that the provider reads for this operation, and
        // lives with its list until the call returns.
        let ret = unsafe {
            let wr = wr.as_mut_ptr();
            request.write_to(wr, list.len());
            addr_of_mut!((*wr).next).write(std::ptr::null_mut());
            addr_of_mut!((*wr).sg_list).write(list.as_ptr().cast_mut());
            self.raw.post_send(wr, &mut bad)
        };
        attempted(Call::IbvPostSend, ret, bad)
    }

    /// Posts both parts of a read. Where there is room for the first one only, that one is done all
    /// the same, and again when the read is posted again.
    #[cold]
    fn post_two(&self, parts: [(&Request, &[ffi::ibv_sge]); 2]) -> Attempt {
        let mut wrs = [const { MaybeUninit::<ffi::ibv_send_wr>::uninit() }; 2];
        let first = wrs.as_mut_ptr().cast::<ffi::ibv_send_wr>();
        let mut bad = std::ptr::null_mut();
        // SAFETY: as above, for both.
        let ret = unsafe {
            for (n, (request, list)) in parts.into_iter().enumerate() {
                let wr = first.add(n);
                request.write_to(wr, list.len());
                addr_of_mut!((*wr).next).write(std::ptr::null_mut());
                addr_of_mut!((*wr).sg_list).write(list.as_ptr().cast_mut());
            }
            addr_of_mut!((*first).next).write(first.add(1));
            self.raw.post_send(first, &mut bad)
        };
        attempted(Call::IbvPostSend, ret, bad)
    }
}

/// The element for inline data: a plain address, of which the provider takes a copy before the post
/// returns.
#[inline]
pub(super) fn inline_element(data: &[u8]) -> ffi::ibv_sge {
    ffi::ibv_sge {
        addr: data.as_ptr() as u64,
        length: data.len() as u32,
        lkey: 0,
    }
}

/// A read or a write.
#[inline(always)]
pub(crate) fn transfer<'q>(
    sink: &mut impl Sink<'q>,
    op: Op,
    near: &LocalSlice<'_>,
    far: &RemoteSlice,
    post: Post,
) -> Result<()> {
    match quick_transfer(sink, op, near, far, post) {
        Attempt::Undecided => sink.apart(|sink| transfer_checked(sink, op, near, far, post)),
        attempt => attempt.check(),
    }
}

#[cold]
#[inline(never)]
fn transfer_checked<'q>(
    sink: &mut impl Sink<'q>,
    op: Op,
    near: &LocalSlice<'_>,
    far: &RemoteSlice,
    post: Post,
) -> Result<()> {
    let near = Near::Slices(std::slice::from_ref(near));
    operation(sink, op, near, Some(far), Args::default(), post)
}

#[inline(always)]
pub(crate) fn send<'q>(sink: &mut impl Sink<'q>, near: &LocalSlice<'_>, post: Post) -> Result<()> {
    match quick_send(sink, near, post) {
        Attempt::Undecided => {
            let near = Near::Slices(std::slice::from_ref(near));
            operation(sink, Op::Send, near, None, Args::default(), post)
        }
        attempt => attempt.check(),
    }
}

/// Any operation, with the full check.
#[inline]
pub(crate) fn operation<'q>(
    sink: &mut impl Sink<'q>,
    op: Op,
    near: Near<'_>,
    far: Option<&RemoteSlice>,
    args: Args,
    post: Post,
) -> Result<()> {
    sink.apart(|sink| checked(sink, op, near, far, args, post))
}

#[inline(never)]
fn checked<'q>(
    sink: &mut impl Sink<'q>,
    op: Op,
    near: Near<'_>,
    far: Option<&RemoteSlice>,
    args: Args,
    post: Post,
) -> Result<()> {
    let qp = sink.qp();
    let mut sges = Sges::new();
    let request = qp.check(op, near, far, args, post, &mut sges)?;
    match near {
        Near::Bytes(data) => sink.put_checked(request, Data::Copied(data)),
        _ if qp.workarounds.is_empty() => {
            sink.put_checked(request, Data::Elements(sges.as_slice()))
        }
        _ => around(sink, request, sges.as_slice()),
    }
}

#[inline(always)]
pub(crate) fn flush<'q>(
    sink: &mut impl Sink<'q>,
    range: &RemoteSlice,
    kind: FlushKind,
    post: Post,
) -> Result<()> {
    match quick_flush(sink, range, kind, post) {
        Attempt::Undecided => sink.apart(|sink| flush_checked(sink, range, kind, post)),
        attempt => attempt.check(),
    }
}

#[cold]
#[inline(never)]
fn flush_checked<'q>(
    sink: &mut impl Sink<'q>,
    range: &RemoteSlice,
    kind: FlushKind,
    post: Post,
) -> Result<()> {
    let qp = sink.qp();
    qp.check_answered(Op::Flush)?;
    let possible = qp.flushes(range);
    let reads = qp.workarounds.contains(Workarounds::FLUSH_BY_READING)
        && kind == FlushKind::Visibility
        && range.flushes().contains(FlushPlan::READABLE);
    if possible.natively(kind) && !(reads && possible.by_reading(kind)) {
        sink.put_checked(Request::flush(range, kind, post), Data::Elements(&[]))
    } else if possible.by_reading(kind) {
        let mut read = Request::plain(Op::Read, range.target, post);
        read.flags &= !qp.needless_flags(Op::Read);
        sink.put_checked(read, Data::Elements(std::slice::from_ref(&qp.scratch)))
    } else {
        Err(qp.flush_refused(range, kind))
    }
}

#[inline(always)]
pub(crate) fn atomic_write<'q>(
    sink: &mut impl Sink<'q>,
    dst: &RemoteSlice,
    value: [u8; 8],
    post: Post,
) -> Result<()> {
    match quick_word(sink, dst, value, post) {
        Attempt::Undecided => sink.apart(|sink| atomic_write_checked(sink, dst, value, post)),
        attempt => attempt.check(),
    }
}

#[inline(never)]
fn atomic_write_checked<'q>(
    sink: &mut impl Sink<'q>,
    dst: &RemoteSlice,
    value: [u8; 8],
    mut post: Post,
) -> Result<()> {
    let qp = sink.qp();
    if qp.features.atomic_write {
        // Behind a native flush the order is the device's own; behind a read it takes a fence.
        if qp.flushes(dst).reads() {
            post = post.fenced();
        }
        let args = Args::words([u64::from_ne_bytes(value), 0]);
        return operation(sink, Op::AtomicWrite, Near::Nothing, Some(dst), args, post);
    }
    if qp.max_inline < 8 {
        return Err(Error::not_supported(
            "atomic write: the queue pair has neither a native one nor 8 bytes of inline data",
        ));
    }
    check_word(dst, "dst")?;
    if !qp.workarounds.contains(Workarounds::INLINE_WORDS) {
        post = post.fenced();
    }
    let near = Near::Bytes(&value);
    operation(sink, Op::Write, near, Some(dst), Args::default(), post)
}
