//! The operations of a connection.

use super::connection::Connection;
use crate::{Batch, FlushKind, LocalSlice, Post, RecvBatch, RemoteSlice, Result};

/// # Operations
///
/// Each posts one work request and does not block. All arguments are checked first: what is refused by
/// [`Error::LengthMismatch`](crate::Error::LengthMismatch), [`TooLong`](crate::Error::TooLong), [`Misaligned`](crate::Error::Misaligned),
/// [`MissingUsage`](crate::Error::MissingUsage), [`ForeignRegion`](crate::Error::ForeignRegion), [`InvalidArgument`](crate::Error::InvalidArgument)
/// or [`NotSupported`](crate::Error::NotSupported) was not posted, and the connection goes on.
/// [`QueueFull`](crate::Error::QueueFull) means: take completions, then try again.
///
/// The last argument is a [`Signal`](crate::Signal), or a [`Post`] made of one.
impl Connection {
    /// Writes `src` to the peer's memory `dst`, of the same length.
    ///
    /// A completion says that the peer's device has the data (on iWARP: only that they are on their way, so that the peer's refusal shows as
    /// the end of the connection); that they are visible or persistent there takes a [`flush`](Self::flush). `src` must be registered for [`Usage::WRITE_SRC`](crate::Usage::WRITE_SRC) and `dst` for
    /// [`Usage::WRITE_DST`](crate::Usage::WRITE_DST). The contents of `src` must not change until the completion: what the peer gets is then any mix.
    ///
    /// Source: `ibv_post_send(3)`, `IBV_WR_RDMA_WRITE`.
    #[inline]
    #[doc(alias = "rpma_write")]
    #[doc(alias = "IBV_WR_RDMA_WRITE")]
    pub fn write(
        &self,
        src: &LocalSlice<'_>,
        dst: &RemoteSlice,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.qp().write(src, dst, post.into())
    }

    /// Writes several slices, one after the other, to `dst`, whose length is the sum of theirs; at most
    /// [`max_sge`](Self::max_sge) that are not empty.
    pub fn write_gather(
        &self,
        src: &[LocalSlice<'_>],
        dst: &RemoteSlice,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.qp().write_gather(src, dst, None, post.into())
    }

    /// Writes `src` to `dst` and completes a receive at the peer, which gets `imm`
    /// ([`Completion::imm_data`](crate::Completion::imm_data)). The peer must have a receive posted.
    ///
    /// # Errors
    /// [`NotSupported`](crate::Error::NotSupported) on iWARP.
    #[doc(alias = "rpma_write_with_imm")]
    #[doc(alias = "IBV_WR_RDMA_WRITE_WITH_IMM")]
    pub fn write_with_imm(
        &self,
        src: &LocalSlice<'_>,
        dst: &RemoteSlice,
        imm: u32,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.qp()
            .write_gather(std::slice::from_ref(src), dst, Some(imm), post.into())
    }

    /// Writes plain bytes to `dst`: they need no registration, and may change as soon as this returns. At most
    /// [`max_inline`](Self::max_inline) bytes.
    #[doc(alias = "IBV_SEND_INLINE")]
    pub fn write_inline(&self, src: &[u8], dst: &RemoteSlice, post: impl Into<Post>) -> Result<()> {
        self.qp().write_inline(src, dst, None, post.into())
    }

    /// Reads the peer's memory `src` into `dst`, of the same length.
    ///
    /// `dst` must be registered for [`Usage::READ_DST`](crate::Usage::READ_DST) and `src` for [`Usage::READ_SRC`](crate::Usage::READ_SRC). The data are there once the
    /// completion is.
    ///
    /// Source: `ibv_post_send(3)`, `IBV_WR_RDMA_READ`.
    #[inline]
    #[doc(alias = "rpma_read")]
    #[doc(alias = "IBV_WR_RDMA_READ")]
    pub fn read(
        &self,
        dst: &LocalSlice<'_>,
        src: &RemoteSlice,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.qp().read(dst, src, post.into())
    }

    /// Reads `src` into several slices, one after the other; at most [`max_sge`](Self::max_sge) that are not empty. iWARP takes one.
    pub fn read_scatter(
        &self,
        dst: &[LocalSlice<'_>],
        src: &RemoteSlice,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.qp().read_scatter(dst, src, post.into())
    }

    /// Sends `src` as a message, which takes a receive that the peer has posted. An empty slice sends a message of no bytes.
    ///
    /// `src` must be registered for [`Usage::SEND`](crate::Usage::SEND).
    ///
    /// Source: `ibv_post_send(3)`, `IBV_WR_SEND`.
    #[inline]
    #[doc(alias = "rpma_send")]
    #[doc(alias = "IBV_WR_SEND")]
    pub fn send(&self, src: &LocalSlice<'_>, post: impl Into<Post>) -> Result<()> {
        self.qp().send_one(src, post.into())
    }

    /// Sends several slices as one message; at most [`max_sge`](Self::max_sge) that are not empty.
    pub fn send_gather(&self, src: &[LocalSlice<'_>], post: impl Into<Post>) -> Result<()> {
        self.qp().send(src, None, post.into())
    }

    /// Sends `src` with immediate data.
    ///
    /// # Errors
    /// [`NotSupported`](crate::Error::NotSupported) on iWARP.
    #[doc(alias = "rpma_send_with_imm")]
    #[doc(alias = "IBV_WR_SEND_WITH_IMM")]
    pub fn send_with_imm(
        &self,
        src: &LocalSlice<'_>,
        imm: u32,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.qp()
            .send(std::slice::from_ref(src), Some(imm), post.into())
    }

    /// Sends plain bytes as a message: they need no registration, and may change as soon as this returns. At most
    /// [`max_inline`](Self::max_inline) bytes.
    pub fn send_inline(&self, src: &[u8], post: impl Into<Post>) -> Result<()> {
        self.qp().send_inline(src, None, post.into())
    }

    /// Posts a receive into `dst`: the next message that no earlier receive takes goes there. An empty slice takes messages of no bytes, and
    /// immediate data. The completion carries `wr_id`, and comes on [`rcq`](Self::rcq) where there is one.
    ///
    /// `dst` must be registered for [`Usage::RECV`](crate::Usage::RECV).
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::Error::InvalidArgument) where the connection has a shared receive queue: post to that.
    ///
    /// Source: `ibv_post_recv(3)`.
    #[inline]
    #[doc(alias = "rpma_recv")]
    #[doc(alias = "ibv_post_recv")]
    pub fn recv(&self, dst: &LocalSlice<'_>, wr_id: u64) -> Result<()> {
        self.qp().recv_one(dst, wr_id)
    }

    /// Posts a receive that is spread over several slices.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_scatter(&self, dst: &[LocalSlice<'_>], wr_id: u64) -> Result<()> {
        self.qp().recv(dst, wr_id)
    }

    /// Flushes what was written to `range` by this connection before: its completion says that those data are visible to, or persistent
    /// at, the peer. All earlier writes to the range are covered, so one flush behind many writes will do.
    ///
    /// Done natively where device, queue pair and region have it, else by reading the first bytes of the range, 8 at most; see
    /// [`ConnCfg::flush_method`](crate::ConnCfg::flush_method). Flushing [`RemoteRegion::whole`](crate::RemoteRegion::whole) natively flushes the region as a whole.
    ///
    /// # Errors
    /// [`NotSupported`](crate::Error::NotSupported) where the region was not registered for this kind, where persistence is asked for and the peer did
    /// not declare direct write to persistent memory ([`apply_peer_cfg`](Self::apply_peer_cfg)), or where the flush method cannot be had.
    ///
    /// Source: IBTA annex A19 (memory placement extensions); `ibv_wr_post(3)`.
    #[inline]
    #[doc(alias = "rpma_flush")]
    #[doc(alias = "ibv_wr_flush")]
    pub fn flush(&self, range: &RemoteSlice, kind: FlushKind, post: impl Into<Post>) -> Result<()> {
        self.qp().flush(range, kind, post.into())
    }

    /// Writes 8 bytes to the peer's memory `dst` at once: a reader there sees all of them or none. It takes effect after all earlier
    /// operations of the connection.
    ///
    /// Done by the device's atomic write where it has one, else by an inline write behind a fence, which devices do in one piece.
    ///
    /// # Errors
    /// [`Misaligned`](crate::Error::Misaligned) where the remote address is no multiple of 8.
    ///
    /// Source: IBTA annex A19; `ibv_wr_post(3)`.
    #[inline]
    #[doc(alias = "rpma_atomic_write")]
    #[doc(alias = "ibv_wr_atomic_write")]
    pub fn atomic_write(
        &self,
        dst: &RemoteSlice,
        value: [u8; 8],
        post: impl Into<Post>,
    ) -> Result<()> {
        self.qp().atomic_write(dst, value, post.into())
    }

    /// Replaces the peer's 8-byte `word` by `new` if it is `expected`, in one step; what it was goes to `dst`, in the host's byte order.
    ///
    /// `dst` must be 8 bytes registered for [`Usage::READ_DST`](crate::Usage::READ_DST), `word` 8 aligned bytes registered for
    /// [`Usage::ATOMIC`](crate::Usage::ATOMIC).
    ///
    /// # Errors
    /// [`NotSupported`](crate::Error::NotSupported) where the device or its transport has no atomics.
    ///
    /// Source: `ibv_post_send(3)`, `IBV_WR_ATOMIC_CMP_AND_SWP`.
    #[doc(alias = "IBV_WR_ATOMIC_CMP_AND_SWP")]
    pub fn compare_and_swap(
        &self,
        dst: &LocalSlice<'_>,
        word: &RemoteSlice,
        expected: u64,
        new: u64,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.qp()
            .atomic(dst, word, expected, Some(new), post.into())
    }

    /// Adds `add` to the peer's 8-byte `word`, in one step; what it was goes to `dst`. See
    /// [`compare_and_swap`](Self::compare_and_swap).
    ///
    /// Source: `ibv_post_send(3)`, `IBV_WR_ATOMIC_FETCH_AND_ADD`.
    #[doc(alias = "IBV_WR_ATOMIC_FETCH_AND_ADD")]
    pub fn fetch_and_add(
        &self,
        dst: &LocalSlice<'_>,
        word: &RemoteSlice,
        add: u64,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.qp().atomic(dst, word, add, None, post.into())
    }

    /// Operations to be posted with one doorbell.
    #[inline]
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self.qp())
    }

    /// Receives to be posted in one call.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_batch(&self) -> Result<RecvBatch<'_>> {
        RecvBatch::on_qp(self.qp())
    }

    /// The older interface's atomic write of 8 bytes of a region.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`](crate::Error::LengthMismatch) unless `src` has 8 bytes; and those of [`atomic_write`](Self::atomic_write).
    #[deprecated(note = "use `atomic_write`, which takes the bytes")]
    #[doc(alias = "rpma_write_atomic")]
    pub fn write_atomic(
        &self,
        src: &LocalSlice<'_>,
        dst: &RemoteSlice,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.qp().write_atomic(src, dst, post.into())
    }
}
