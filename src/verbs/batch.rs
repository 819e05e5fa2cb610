//! Several operations, one doorbell.

use std::mem::ManuallyDrop;

use rdma_sys as ffi;

use super::{
    qp::Qp,
    request::{Body, Request},
    send_buffer::SendBuffer,
    sges::Sges,
};
use crate::{
    FlushKind, Post, Result, Usage,
    mr::{LocalSlice, RemoteSlice},
};

/// Operations that go to the device in one call, in this order.
///
/// Adding an operation checks it as posting it would, and does nothing else; [`submit`](Self::submit) rings the doorbell. An
/// operation that is refused leaves the batch as it was. Dropping a batch drops what was not submitted. In
/// steady state a batch allocates nothing: its memory is the connection's and goes back to it.
///
/// Where a batch holds both native flushes or atomic writes and operations that gather slices of different lengths, it goes out in several
/// calls, one after the other.
///
/// Several threads may each have a batch of the same connection; the operations of one batch are never mixed with
/// others when they go out in one call.
///
/// ```compile_fail,E0505
/// # fn f(conn: rpma::Connection) -> rpma::Result<()> {
/// let mut batch = conn.batch();
/// drop(conn);
/// batch.submit()
/// # }
/// ```
#[must_use = "nothing is posted before `submit`"]
pub struct Batch<'c> {
    qp: &'c Qp,
    // Taken out only by drop.
    buffer: ManuallyDrop<Box<SendBuffer>>,
}

impl<'c> Batch<'c> {
    #[inline]
    pub(crate) fn new(qp: &'c Qp) -> Self {
        Batch {
            qp,
            buffer: ManuallyDrop::new(qp.take_send_buffer()),
        }
    }

    /// The number of operations that wait for [`submit`](Self::submit).
    #[inline]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Is there nothing to submit?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets the operations that were added.
    pub fn clear(&mut self) {
        self.buffer.clear();
    }

    /// Adds a write; see [`Connection::write`](crate::Connection::write).
    #[inline(always)]
    pub fn write(
        &mut self,
        src: &LocalSlice<'_>,
        dst: &RemoteSlice,
        post: impl Into<Post>,
    ) -> Result<()> {
        let post = post.into();
        if !self.qp.quick(src, dst, Usage::WRITE_SRC | Usage::WRITE_DST) {
            let checked = self.qp.check_write(src, dst, post)?;
            self.buffer.add(checked.request, checked.num_sge, src.sge);
            return Ok(());
        }
        let request = Request::transfer(ffi::IBV_WR_RDMA_WRITE, dst, post);
        self.buffer.add(request, 1, src.sge);
        Ok(())
    }

    /// Adds a write that gathers several slices; see [`Connection::write_gather`](crate::Connection::write_gather).
    pub fn write_gather(
        &mut self,
        src: &[LocalSlice<'_>],
        dst: &RemoteSlice,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.gather_write(src, dst, None, post.into())
    }

    /// Adds a write with immediate data; see [`Connection::write_with_imm`](crate::Connection::write_with_imm).
    pub fn write_with_imm(
        &mut self,
        src: &LocalSlice<'_>,
        dst: &RemoteSlice,
        imm: u32,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.gather_write(std::slice::from_ref(src), dst, Some(imm), post.into())
    }

    fn gather_write(
        &mut self,
        src: &[LocalSlice<'_>],
        dst: &RemoteSlice,
        imm: Option<u32>,
        post: Post,
    ) -> Result<()> {
        let mut sges = Sges::new();
        let len = self.qp.gather(&mut sges, Usage::WRITE_SRC, "src", src)?;
        let request = self.qp.check_write_of(len, dst, imm, post)?;
        self.buffer.push(request, sges.as_slice());
        Ok(())
    }

    /// Adds a write of plain bytes, which are copied; see [`Connection::write_inline`](crate::Connection::write_inline).
    pub fn write_inline(
        &mut self,
        src: &[u8],
        dst: &RemoteSlice,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.qp.check_inline("src", src.len())?;
        let request = self
            .qp
            .check_write_of(src.len() as u64, dst, None, post.into())?;
        self.buffer.push_inline(request, src);
        Ok(())
    }

    /// Adds a read; see [`Connection::read`](crate::Connection::read).
    #[inline(always)]
    pub fn read(
        &mut self,
        dst: &LocalSlice<'_>,
        src: &RemoteSlice,
        post: impl Into<Post>,
    ) -> Result<()> {
        let post = post.into();
        if !self.qp.quick(dst, src, Usage::READ_DST | Usage::READ_SRC) {
            let checked = self.qp.check_read(dst, src, post)?;
            self.buffer.add(checked.request, checked.num_sge, dst.sge);
            return Ok(());
        }
        let request = Request::transfer(ffi::IBV_WR_RDMA_READ, src, post);
        self.buffer.add(request, 1, dst.sge);
        Ok(())
    }

    /// Adds a send; see [`Connection::send`](crate::Connection::send).
    pub fn send(&mut self, src: &LocalSlice<'_>, post: impl Into<Post>) -> Result<()> {
        self.gather_send(std::slice::from_ref(src), None, post.into())
    }

    /// Adds a send with immediate data; see [`Connection::send_with_imm`](crate::Connection::send_with_imm).
    pub fn send_with_imm(
        &mut self,
        src: &LocalSlice<'_>,
        imm: u32,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.gather_send(std::slice::from_ref(src), Some(imm), post.into())
    }

    fn gather_send(&mut self, src: &[LocalSlice<'_>], imm: Option<u32>, post: Post) -> Result<()> {
        let mut sges = Sges::new();
        self.qp.gather(&mut sges, Usage::SEND, "src", src)?;
        let request = self.qp.check_send(imm, post)?;
        self.buffer.push(request, sges.as_slice());
        Ok(())
    }

    /// Adds a send of plain bytes, which are copied; see [`Connection::send_inline`](crate::Connection::send_inline).
    pub fn send_inline(&mut self, src: &[u8], post: impl Into<Post>) -> Result<()> {
        self.qp.check_inline("src", src.len())?;
        let request = self.qp.check_send(None, post.into())?;
        self.buffer.push_inline(request, src);
        Ok(())
    }

    /// Adds a flush; see [`Connection::flush`](crate::Connection::flush).
    #[inline(always)]
    pub fn flush(
        &mut self,
        range: &RemoteSlice,
        kind: FlushKind,
        post: impl Into<Post>,
    ) -> Result<()> {
        // Borrowed by whichever of the two runs.
        let buffer = std::cell::Cell::new(Some(&mut **self.buffer));
        self.qp.flush_by(
            range,
            kind,
            post.into(),
            |request| {
                if let Some(buffer) = buffer.take() {
                    buffer.add_extended(request);
                }
                Ok(())
            },
            |request, sge| {
                if let Some(buffer) = buffer.take() {
                    buffer.add(request, 1, *sge);
                }
                Ok(())
            },
        )
    }

    /// Adds an atomic write; see [`Connection::atomic_write`](crate::Connection::atomic_write).
    #[inline]
    pub fn atomic_write(
        &mut self,
        dst: &RemoteSlice,
        value: [u8; 8],
        post: impl Into<Post>,
    ) -> Result<()> {
        let request = self.qp.check_atomic_write(dst, value, post.into())?;
        match request.body {
            Body::AtomicWrite { .. } => self.buffer.add_extended(request),
            _ => self.buffer.push_inline(request, &value),
        }
        Ok(())
    }

    /// Adds a compare-and-swap; see [`Connection::compare_and_swap`](crate::Connection::compare_and_swap).
    pub fn compare_and_swap(
        &mut self,
        dst: &LocalSlice<'_>,
        word: &RemoteSlice,
        expected: u64,
        new: u64,
        post: impl Into<Post>,
    ) -> Result<()> {
        let request = self
            .qp
            .check_atomic(dst, word, expected, Some(new), post.into())?;
        self.buffer.add(request, 1, dst.sge);
        Ok(())
    }

    /// Adds a fetch-and-add; see [`Connection::fetch_and_add`](crate::Connection::fetch_and_add).
    pub fn fetch_and_add(
        &mut self,
        dst: &LocalSlice<'_>,
        word: &RemoteSlice,
        add: u64,
        post: impl Into<Post>,
    ) -> Result<()> {
        let request = self.qp.check_atomic(dst, word, add, None, post.into())?;
        self.buffer.add(request, 1, dst.sge);
        Ok(())
    }

    /// Posts all operations with one doorbell, and leaves the batch empty. An empty batch does nothing.
    ///
    /// # Errors
    /// [`Error::QueueFull`](crate::Error::QueueFull) or [`Error::PartlyPosted`](crate::Error::PartlyPosted) with the number that the device accepted: those will complete. The others
    /// stay in the batch, in order, and may be submitted again.
    #[inline]
    pub fn submit(&mut self) -> Result<()> {
        self.buffer.submit(self.qp)
    }
}

impl Drop for Batch<'_> {
    #[inline]
    fn drop(&mut self) {
        self.buffer.clear();
        // SAFETY: the batch is being dropped, so nobody uses the buffer after it was taken out.
        let buffer = unsafe { ManuallyDrop::take(&mut self.buffer) };
        self.qp.give_send_buffer(buffer);
    }
}

impl std::fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
