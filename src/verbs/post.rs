//! The operations of a queue pair, one doorbell each.

use rdma_sys as ffi;

use super::{
    qp::Qp,
    request::{Body, Request},
    sges::Sges,
};
use crate::{
    FlushKind, Post, Result, Usage,
    mr::{LocalSlice, RemoteSlice, quick},
};

impl Qp {
    #[inline]
    pub(crate) fn write(&self, src: &LocalSlice<'_>, dst: &RemoteSlice, post: Post) -> Result<()> {
        if !self.quick(src, dst, Usage::WRITE_SRC | Usage::WRITE_DST) {
            return self.write_slow(src, dst, post);
        }
        self.post(
            Request::transfer(ffi::IBV_WR_RDMA_WRITE, dst, post),
            &src.sge,
            1,
        )
    }

    #[cold]
    #[inline(never)]
    fn write_slow(&self, src: &LocalSlice<'_>, dst: &RemoteSlice, post: Post) -> Result<()> {
        let checked = self.check_write(src, dst, post)?;
        self.post(checked.request, &src.sge, checked.num_sge)
    }

    #[inline]
    pub(crate) fn read(&self, dst: &LocalSlice<'_>, src: &RemoteSlice, post: Post) -> Result<()> {
        if !self.quick(dst, src, Usage::READ_DST | Usage::READ_SRC) {
            return self.read_slow(dst, src, post);
        }
        self.post(
            Request::transfer(ffi::IBV_WR_RDMA_READ, src, post),
            &dst.sge,
            1,
        )
    }

    #[cold]
    #[inline(never)]
    fn read_slow(&self, dst: &LocalSlice<'_>, src: &RemoteSlice, post: Post) -> Result<()> {
        let checked = self.check_read(dst, src, post)?;
        self.post(checked.request, &dst.sge, checked.num_sge)
    }

    pub(crate) fn write_gather(
        &self,
        src: &[LocalSlice<'_>],
        dst: &RemoteSlice,
        imm: Option<u32>,
        post: Post,
    ) -> Result<()> {
        let mut sges = Sges::new();
        let len = self.gather(&mut sges, Usage::WRITE_SRC, "src", src)?;
        let request = self.check_write_of(len, dst, imm, post)?;
        self.post(request, sges.as_ptr(), sges.len())
    }

    pub(crate) fn read_scatter(
        &self,
        dst: &[LocalSlice<'_>],
        src: &RemoteSlice,
        post: Post,
    ) -> Result<()> {
        let mut sges = Sges::new();
        let len = self.gather(&mut sges, Usage::READ_DST, "dst", dst)?;
        let request = self.check_read_into(len, src, post)?;
        self.post(request, sges.as_ptr(), sges.len())
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
        self.post(request, &inline_sge(src), usize::from(!src.is_empty()))
    }

    #[inline(never)]
    pub(crate) fn send(&self, src: &[LocalSlice<'_>], imm: Option<u32>, post: Post) -> Result<()> {
        let mut sges = Sges::new();
        self.gather(&mut sges, Usage::SEND, "src", src)?;
        let request = self.check_send(imm, post)?;
        self.post(request, sges.as_ptr(), sges.len())
    }

    #[inline]
    pub(crate) fn send_one(&self, src: &LocalSlice<'_>, post: Post) -> Result<()> {
        if !quick::fit(self.quick, src.quick, 0, Usage::SEND) {
            return self.send(std::slice::from_ref(src), None, post);
        }
        let request = Request {
            wr_id: post.wr_id,
            flags: post.flags,
            opcode: ffi::IBV_WR_SEND,
            body: Body::Send,
        };
        self.post(request, &src.sge, 1)
    }

    #[inline]
    pub(crate) fn send_inline(&self, src: &[u8], imm: Option<u32>, post: Post) -> Result<()> {
        self.check_inline("src", src.len())?;
        let mut request = self.check_send(imm, post)?;
        request.flags |= ffi::IBV_SEND_INLINE;
        self.post(request, &inline_sge(src), usize::from(!src.is_empty()))
    }

    #[inline]
    pub(crate) fn flush(&self, range: &RemoteSlice, kind: FlushKind, post: Post) -> Result<()> {
        self.flush_by(
            range,
            kind,
            post,
            |request| self.post_extended("ibv_wr_flush", request),
            |request, sge| self.post(request, sge, 1),
        )
    }

    #[inline]
    pub(crate) fn atomic_write(&self, dst: &RemoteSlice, value: [u8; 8], post: Post) -> Result<()> {
        let fits = quick::fit(0, 0, dst.quick, Usage::WRITE_DST) && dst.len == 8;
        // Behind flushes by reading it takes a fence, which the full check adds.
        let fenced = (self.flush_plan() & dst.flushes).reads();
        if !(fits && dst.addr % 8 == 0 && self.features.atomic_write) || fenced {
            return self.atomic_write_slow(dst, value, post);
        }
        let body = Body::AtomicWrite {
            address: dst.addr,
            rkey: dst.rkey,
            value,
        };
        let request = Request {
            wr_id: post.wr_id,
            flags: post.flags,
            opcode: ffi::IBV_WR_ATOMIC_WRITE,
            body,
        };
        self.post_extended("ibv_wr_atomic_write", request)
    }

    /// Not native, or not right.
    #[inline(never)]
    fn atomic_write_slow(&self, dst: &RemoteSlice, value: [u8; 8], post: Post) -> Result<()> {
        let request = self.check_atomic_write(dst, value, post)?;
        match request.body {
            Body::AtomicWrite { .. } => self.post_extended("ibv_wr_atomic_write", request),
            _ => self.post(request, &inline_sge(&value), 1),
        }
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
        self.post(request, &dst.sge, 1)
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
