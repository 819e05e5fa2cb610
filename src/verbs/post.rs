//! The operations of a queue pair, one doorbell each.

use std::{mem::MaybeUninit, ptr::addr_of_mut};

use rdma_sys as ffi;

use super::{
    outcome::{Tried, tried},
    qp::{Qp, start_flush},
    request::{Body, READ, Request, Split, Transfer, WORD_FLAGS, WRITE, flush_kinds},
    sges::{RecvLimits, Sges},
};
use crate::{
    Call, FlushKind, Post, Result, Usage,
    mr::{LocalRegion, LocalSlice, RemoteRegion, RemoteSlice, Target, quick, range},
};

/// How an atomic write is done.
enum Way {
    Native,
    Inline,
    /// Natively behind a fence, or not at all: the full check decides.
    Unclear,
}

impl Qp {
    #[inline]
    pub(crate) fn write(&self, src: &LocalSlice<'_>, dst: &RemoteSlice, post: Post) -> Result<()> {
        self.transfer(&WRITE, src, dst, post)
    }

    #[inline]
    pub(crate) fn read(&self, dst: &LocalSlice<'_>, src: &RemoteSlice, post: Post) -> Result<()> {
        self.transfer(&READ, dst, src, post)
    }

    #[inline(always)]
    fn transfer(
        &self,
        transfer: &Transfer,
        local: &LocalSlice<'_>,
        remote: &RemoteSlice,
        post: Post,
    ) -> Result<()> {
        if !self.quick(transfer, local, remote) {
            return self.transfer_slow(transfer, local, remote, post);
        }
        self.post(transfer.request(remote.target, post), &local.sge, 1)
            .check()
    }

    #[cold]
    #[inline(never)]
    fn transfer_slow(
        &self,
        transfer: &Transfer,
        local: &LocalSlice<'_>,
        remote: &RemoteSlice,
        post: Post,
    ) -> Result<()> {
        self.check_transfer(transfer, local, remote)?;
        let request = transfer.request(remote.target, post);
        let num_sge = usize::from(!local.is_empty());
        self.post_checked(request, &[local.sge][..num_sge])
    }

    /// Posts a request of checked elements, or what takes its place on a faulty device.
    fn post_checked(&self, mut request: Request, list: &[ffi::ibv_sge]) -> Result<()> {
        match self.way_around(&mut request, list) {
            None => self.post(request, list.as_ptr(), list.len()).check(),
            Some(split) => self.post_split(&split),
        }
    }

    /// Posts both parts of a read. Where the queue has room for the first one only, that one is done all the same, and again when the read
    /// is posted again.
    #[cold]
    fn post_split(&self, [(first, head), (second, rest)]: &Split) -> Result<()> {
        let mut wrs = [const { MaybeUninit::<ffi::ibv_send_wr>::uninit() }; 2];
        let [before, behind] = wrs.each_mut().map(|wr| wr.as_mut_ptr());
        let mut bad = std::ptr::null_mut();
        // SAFETY: both requests are ours, get every field that the provider reads, and live with their elements until the call returns.
        let ret = unsafe {
            first.write_to(before, 1);
            addr_of_mut!((*before).next).write(behind);
            addr_of_mut!((*before).sg_list).write((&raw const *head).cast_mut());
            second.write_to(behind, 1);
            addr_of_mut!((*behind).next).write(std::ptr::null_mut());
            addr_of_mut!((*behind).sg_list).write((&raw const *rest).cast_mut());
            self.post_list(before, &mut bad)
        };
        tried(Call::IbvPostSend, ret, bad).check()
    }

    pub(crate) fn write_gather(
        &self,
        src: &[LocalSlice<'_>],
        dst: &RemoteSlice,
        imm: Option<u32>,
        post: Post,
    ) -> Result<()> {
        let mut sges = Sges::new();
        let len = self.gather_for(&WRITE, &mut sges, src)?;
        let request = self.check_write_of(len, dst, imm, post)?;
        self.post_checked(request, sges.as_slice())
    }

    pub(crate) fn read_scatter(
        &self,
        dst: &[LocalSlice<'_>],
        src: &RemoteSlice,
        post: Post,
    ) -> Result<()> {
        let mut sges = Sges::new();
        let len = self.gather_for(&READ, &mut sges, dst)?;
        self.check_remote_of(&READ, len, src)?;
        let request = READ.request(src.target, post);
        self.post_checked(request, sges.as_slice())
    }

    #[inline]
    pub(crate) fn write_inline(
        &self,
        src: &[u8],
        dst: &RemoteSlice,
        imm: Option<u32>,
        post: Post,
    ) -> Result<()> {
        self.check_inline("src", src.len())?;
        let mut request = self.check_write_of(src.len() as u64, dst, imm, post)?;
        request.flags |= ffi::IBV_SEND_INLINE;
        let num_sge = usize::from(!src.is_empty());
        self.post(request, &inline_sge(src), num_sge).check()
    }

    #[inline(never)]
    pub(crate) fn send(&self, src: &[LocalSlice<'_>], imm: Option<u32>, post: Post) -> Result<()> {
        let mut sges = Sges::new();
        self.gather(&mut sges, Usage::SEND, "src", src)?;
        let request = self.check_send(imm, post)?;
        self.post_checked(request, sges.as_slice())
    }

    #[inline]
    pub(crate) fn send_one(&self, src: &LocalSlice<'_>, post: Post) -> Result<()> {
        if !quick::fit(self.quick, src.quick, 0, Usage::SEND) {
            return self.send(std::slice::from_ref(src), None, post);
        }
        let request = Request::new(ffi::IBV_WR_SEND, post, Body::Send);
        self.post(request, &src.sge, 1).check()
    }

    #[inline]
    pub(crate) fn send_inline(&self, src: &[u8], imm: Option<u32>, post: Post) -> Result<()> {
        self.check_inline("src", src.len())?;
        let mut request = self.check_send(imm, post)?;
        request.flags |= ffi::IBV_SEND_INLINE;
        let num_sge = usize::from(!src.is_empty());
        self.post(request, &inline_sge(src), num_sge).check()
    }

    #[inline(always)]
    pub(crate) fn flush(&self, range: &RemoteSlice, kind: FlushKind, post: Post) -> Result<()> {
        match self.try_flush(range, kind, post) {
            Tried::Unfit => Err(self.flush_refused(range, kind)),
            tried => tried.check(),
        }
    }

    #[inline(always)]
    fn try_flush(&self, range: &RemoteSlice, kind: FlushKind, post: Post) -> Tried {
        let possible = self.flushes(range);
        if possible.natively(kind) {
            return self.post_extended(Call::IbvWrFlush, post, |qp| {
                // SAFETY: between start and complete; the plan says that the queue pair has native flushes of this kind.
                unsafe { start_flush(qp, range, flush_kinds(kind)) }
            });
        }
        if !possible.by_reading(kind) {
            return Tried::Unfit;
        }
        self.post(READ.request(range.target, post), &self.scratch, 1)
    }

    #[inline(always)]
    pub(crate) fn atomic_write(&self, dst: &RemoteSlice, value: [u8; 8], post: Post) -> Result<()> {
        if quick::fit(0, 0, dst.quick, Usage::WRITE_DST) && dst.len == 8 {
            match self.word_way(dst.address(), dst) {
                Way::Native => return self.write_word(|| dst.target, value, post).check(),
                Way::Inline => return self.write_word_inline(dst.target, value, post).check(),
                Way::Unclear => {}
            }
        }
        self.atomic_write_slow(dst, value, post)
    }

    /// How to write 8 bytes at `address`, which lie in `range`, where that takes no fence.
    #[inline(always)]
    fn word_way(&self, address: u64, range: &RemoteSlice) -> Way {
        if address % 8 != 0 {
            return Way::Unclear;
        }
        if self.features.atomic_write {
            match self.flushes(range).reads() {
                false => Way::Native,
                true => Way::Unclear,
            }
        } else {
            match self.max_inline >= 8 {
                true => Way::Inline,
                false => Way::Unclear,
            }
        }
    }

    #[inline(always)]
    fn write_word(&self, target: impl FnOnce() -> Target, value: [u8; 8], post: Post) -> Tried {
        self.post_extended(Call::IbvWrAtomicWrite, post, |qp| {
            let target = target();
            let (rkey, address, value) = (target.rkey(), target.addr(), value.as_ptr());
            // SAFETY: between start and complete; the checks let it through to queue pairs that were created with it only.
            unsafe { ffi::ibv_wr_atomic_write(qp, rkey, address, value.cast()) }
        })
    }

    #[inline(always)]
    fn write_word_inline(&self, target: Target, value: [u8; 8], mut post: Post) -> Tried {
        post.flags |= WORD_FLAGS;
        self.post(WRITE.request(target, post), &inline_sge(&value), 1)
    }

    #[cold]
    #[inline(never)]
    fn atomic_write_slow(&self, dst: &RemoteSlice, value: [u8; 8], post: Post) -> Result<()> {
        let (native, post) = self.check_atomic_write(dst, post)?;
        let tried = match native {
            true => self.write_word(|| dst.target, value, post),
            false => self.write_word_inline(dst.target, value, post),
        };
        tried.check()
    }

    pub(crate) fn write_atomic(
        &self,
        src: &LocalSlice<'_>,
        dst: &RemoteSlice,
        post: Post,
    ) -> Result<()> {
        super::request::check_word(dst, "dst")?;
        self.write(src, dst, post.fenced())
    }

    pub(crate) fn atomic(
        &self,
        dst: &LocalSlice<'_>,
        word: &RemoteSlice,
        compare_add: u64,
        swap: Option<u64>,
        post: Post,
    ) -> Result<()> {
        let request = self.check_atomic(dst, word, compare_add, swap, post)?;
        self.post(request, &dst.sge, 1).check()
    }
}

/// Quick operations on a piece of a region, as the C interface names it: `len` bytes from an offset on. They do what slicing the region
/// and posting the slice does, and cost less, since no slice is made. What they find unfit is to be done in that way.
impl Qp {
    #[inline(always)]
    pub(crate) fn try_write(
        &self,
        src: (&LocalRegion, u64),
        dst: (&RemoteRegion, u64),
        len: u64,
        post: Post,
    ) -> Tried {
        self.try_transfer(&WRITE, src, dst, len, post)
    }

    #[inline(always)]
    pub(crate) fn try_read(
        &self,
        dst: (&LocalRegion, u64),
        src: (&RemoteRegion, u64),
        len: u64,
        post: Post,
    ) -> Tried {
        self.try_transfer(&READ, dst, src, len, post)
    }

    #[inline(always)]
    fn try_transfer(
        &self,
        transfer: &Transfer,
        local: (&LocalRegion, u64),
        remote: (&RemoteRegion, u64),
        len: u64,
        post: Post,
    ) -> Tried {
        let (near, far) = (local.0.all(), remote.0.all());
        if !quick::fit_regions(self.quick, near.quick, far.quick, transfer.usages())
            || !quick::short(len)
            || !range::inside(local.1, len, near.len)
            || !range::inside(remote.1, len, far.len)
        {
            return Tried::Unfit;
        }
        let request = transfer.request(far.target.at(remote.1), post);
        self.post(request, &near.sge_at(local.1, len), 1)
    }

    #[inline(always)]
    pub(crate) fn try_flush_at(
        &self,
        range: (&RemoteRegion, u64),
        len: u64,
        kind: FlushKind,
        post: Post,
    ) -> Tried {
        match range.0.all().quick_part(range.1, len) {
            Some(range) => self.try_flush(&range, kind, post),
            None => Tried::Unfit,
        }
    }

    #[inline(always)]
    pub(crate) fn try_atomic_write(
        &self,
        dst: (&RemoteRegion, u64),
        value: [u8; 8],
        post: Post,
    ) -> Tried {
        let far = dst.0.all();
        if !quick::fit(0, 0, far.quick, Usage::WRITE_DST) || !range::inside(dst.1, 8, far.len) {
            return Tried::Unfit;
        }
        let target = far.target.at(dst.1);
        match self.word_way(target.addr(), far) {
            Way::Native => self.write_word(|| target, value, post),
            Way::Inline => self.write_word_inline(target, value, post),
            Way::Unclear => Tried::Unfit,
        }
    }

    #[inline(always)]
    pub(crate) fn try_send(&self, src: (&LocalRegion, u64), len: u64, post: Post) -> Tried {
        let Some(sge) = piece(self.quick, Usage::SEND, src, len) else {
            return Tried::Unfit;
        };
        self.post(Request::new(ffi::IBV_WR_SEND, post, Body::Send), &sge, 1)
    }
}

/// The element for inline data: a plain address, of which the provider takes a copy before the post returns.
#[inline]
fn inline_sge(src: &[u8]) -> ffi::ibv_sge {
    ffi::ibv_sge {
        addr: src.as_ptr() as u64,
        length: src.len() as u32,
        lkey: 0,
    }
}

/// The element for `len` bytes of a region from an offset on, where one that needs `usage` is right beyond doubt for a queue with the
/// key `key`.
#[inline(always)]
pub(super) fn piece(
    key: u32,
    usage: Usage,
    region: (&LocalRegion, u64),
    len: u64,
) -> Option<ffi::ibv_sge> {
    let (near, at) = (region.0.all(), region.1);
    let fits = quick::fit_regions(key, near.quick, 0, usage)
        && quick::short(len)
        && range::inside(at, len, near.len);
    fits.then(|| near.sge_at(at, len))
}

/// Posts one receive of one element through `post`, as [`recv_one`] does.
#[inline(always)]
pub(super) fn post_one_recv(
    call: Call,
    sge: &ffi::ibv_sge,
    wr_id: u64,
    post: impl FnOnce(*mut ffi::ibv_recv_wr, *mut *mut ffi::ibv_recv_wr) -> i32,
) -> Tried {
    let mut wr = ffi::ibv_recv_wr {
        wr_id,
        next: std::ptr::null_mut(),
        sg_list: (&raw const *sge).cast_mut(),
        num_sge: 1,
    };
    let mut bad = std::ptr::null_mut();
    let ret = post(&mut wr, &mut bad);
    tried(call, ret, bad)
}

/// Posts one receive through `post`, which is `ibv_post_recv` or `ibv_post_srq_recv` on a queue.
#[inline]
pub(super) fn recv_one(
    call: Call,
    limits: RecvLimits,
    list: &[LocalSlice<'_>],
    wr_id: u64,
    post: impl FnOnce(*mut ffi::ibv_recv_wr, *mut *mut ffi::ibv_recv_wr) -> i32,
) -> Result<()> {
    let sges = limits.gather(list)?;
    let mut wr = ffi::ibv_recv_wr {
        wr_id,
        next: std::ptr::null_mut(),
        sg_list: sges.as_ptr().cast_mut(),
        num_sge: sges.len() as i32,
    };
    let mut bad = std::ptr::null_mut();
    let ret = post(&mut wr, &mut bad);
    tried(call, ret, bad).check()
}
