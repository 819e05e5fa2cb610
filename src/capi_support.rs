//! What exists for the C interface alone: operations as it names them, by a region and an offset, tried without a slice and without a way to
//! panic. What they find [`Undecided`](Attempt::Undecided) may be right: slicing the regions and the operation proper decide.

use std::borrow::Borrow;

use rdma_sys as ffi;

pub use crate::ops::Attempt;
use crate::{
    Connection, FlushKind, LocalRegion, Post, RemoteRegion, RemoteSlice, Srq, Usage,
    mr::{quick, range},
    ops::{Now, QuickFar, QuickNear, quick_flush, quick_send, quick_transfer, quick_word},
    verbs::{Op, Target},
};

/// No bytes of no region: the remote side of an operation without content.
pub const NOWHERE: RemoteSlice = RemoteSlice::NOWHERE;

/// `len` bytes of a region from `offset` on, not checked yet.
#[derive(Clone, Copy)]
pub struct Piece<'a, R> {
    /// The region.
    pub region: &'a R,
    /// Where it starts, in bytes.
    pub offset: u64,
    /// Its length, in bytes.
    pub len: u64,
}

impl QuickNear for Piece<'_, LocalRegion> {
    #[inline(always)]
    fn fits(&self, queue: u32, far: u32, usages: Usage) -> bool {
        let all = self.region.all();
        quick::fit_regions(queue, all.quick, far, usages)
            && quick::short(self.len)
            && range::inside(self.offset, self.len, all.len)
    }

    #[inline(always)]
    fn len(&self) -> u64 {
        self.len
    }

    #[inline(always)]
    fn element(&self) -> impl Borrow<ffi::ibv_sge> {
        self.region.all().sge_at(self.offset, self.len)
    }
}

impl QuickFar for Piece<'_, RemoteRegion> {
    #[inline(always)]
    fn key(&self) -> u32 {
        self.region.all().quick
    }

    #[inline(always)]
    fn has(&self, len: u64) -> bool {
        self.len == len && range::inside(self.offset, len, self.region.all().len)
    }

    #[inline(always)]
    fn region(&self) -> &RemoteSlice {
        self.region.all()
    }

    #[inline(always)]
    fn target(&self) -> Target {
        self.region.all().target.at(self.offset)
    }

    #[inline(always)]
    fn range(&self) -> Option<impl Borrow<RemoteSlice>> {
        self.region.all().quick_part(self.offset, self.len)
    }
}

/// [`Signal::Always`](crate::Signal::Always) or [`Signal::OnError`](crate::Signal::OnError), by `yes`.
#[inline(always)]
pub fn signaled_if(yes: bool, wr_id: u64) -> Post {
    const SHIFT: u32 = ffi::IBV_SEND_SIGNALED.trailing_zeros();
    Post {
        wr_id,
        flags: u32::from(yes) << SHIFT,
    }
}

/// A write.
#[inline(always)]
pub fn write(
    conn: &Connection,
    src: Piece<'_, LocalRegion>,
    dst: Piece<'_, RemoteRegion>,
    post: Post,
) -> Attempt {
    quick_transfer(&mut Now(conn.qp()), Op::Write, src, dst, post)
}

/// A read.
#[inline(always)]
pub fn read(
    conn: &Connection,
    dst: Piece<'_, LocalRegion>,
    src: Piece<'_, RemoteRegion>,
    post: Post,
) -> Attempt {
    quick_transfer(&mut Now(conn.qp()), Op::Read, dst, src, post)
}

/// A flush.
#[inline(always)]
pub fn flush(
    conn: &Connection,
    range: Piece<'_, RemoteRegion>,
    kind: FlushKind,
    post: Post,
) -> Attempt {
    quick_flush(&mut Now(conn.qp()), range, kind, post)
}

/// An atomic write; the piece has 8 bytes.
#[inline(always)]
pub fn atomic_write(
    conn: &Connection,
    dst: Piece<'_, RemoteRegion>,
    value: [u8; 8],
    post: Post,
) -> Attempt {
    quick_word(&mut Now(conn.qp()), dst, value, post)
}

/// A send.
#[inline(always)]
pub fn send(conn: &Connection, src: Piece<'_, LocalRegion>, post: Post) -> Attempt {
    quick_send(&mut Now(conn.qp()), src, post)
}

/// A receive of a connection.
#[inline(always)]
pub fn recv(conn: &Connection, dst: Piece<'_, LocalRegion>, wr_id: u64) -> Attempt {
    conn.qp().quick_recv(dst, wr_id)
}

/// A receive of a shared receive queue.
#[inline(always)]
pub fn srq_recv(srq: &Srq, dst: Piece<'_, LocalRegion>, wr_id: u64) -> Attempt {
    let (raw, queue) = srq.queue();
    queue.quick_recv(raw, dst, wr_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Signal;

    #[test]
    fn a_flag_is_a_signal() {
        assert_eq!(signaled_if(true, 7), Signal::Always(7).into());
        assert_eq!(signaled_if(false, 8), Signal::OnError(8).into());
    }
}
