//! The operations of a connection as the C interface tries them first.

use super::connection::Connection;
use crate::{FlushKind, LocalRegion, Post, RemoteRegion, verbs::Tried};

/// A region and an offset into it.
type At<'a, R> = (&'a R, u64);

/// The operations on `len` bytes of a region from an offset on, where all is plain: they cannot panic and do not allocate. What they find
/// [`Unfit`](Tried::Unfit) may be right: slicing the region and the operation proper decide.
#[doc(hidden)]
impl Connection {
    #[inline(always)]
    pub fn try_write(
        &self,
        src: At<'_, LocalRegion>,
        dst: At<'_, RemoteRegion>,
        len: u64,
        post: Post,
    ) -> Tried {
        self.qp().try_write(src, dst, len, post)
    }

    #[inline(always)]
    pub fn try_read(
        &self,
        dst: At<'_, LocalRegion>,
        src: At<'_, RemoteRegion>,
        len: u64,
        post: Post,
    ) -> Tried {
        self.qp().try_read(dst, src, len, post)
    }

    #[inline(always)]
    pub fn try_flush(
        &self,
        range: At<'_, RemoteRegion>,
        len: u64,
        kind: FlushKind,
        post: Post,
    ) -> Tried {
        self.qp().try_flush_at(range, len, kind, post)
    }

    #[inline(always)]
    pub fn try_atomic_write(&self, dst: At<'_, RemoteRegion>, value: [u8; 8], post: Post) -> Tried {
        self.qp().try_atomic_write(dst, value, post)
    }

    #[inline(always)]
    pub fn try_send(&self, src: At<'_, LocalRegion>, len: u64, post: Post) -> Tried {
        self.qp().try_send(src, len, post)
    }

    #[inline(always)]
    pub fn try_recv(&self, dst: At<'_, LocalRegion>, len: u64, wr_id: u64) -> Tried {
        self.qp().try_recv(dst, len, wr_id)
    }
}
