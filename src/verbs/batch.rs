//! Several operations, one doorbell.

use std::mem::ManuallyDrop;

use rdma_sys as ffi;

use super::{
    place::Place,
    qp::Qp,
    request::{READ, Request, Transfer, WRITE},
    send_buffer::SendBuffer,
    sges::Sges,
    workarounds::SHORT,
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
    // Where the next operation goes: the buffer's own is brought up to date by `slow`.
    next: Place,
}

impl<'c> Batch<'c> {
    #[inline]
    pub(crate) fn new(qp: &'c Qp) -> Self {
        let buffer = ManuallyDrop::new(qp.take_send_buffer());
        let next = buffer.next;
        Batch { qp, buffer, next }
    }

    /// What goes by the buffer's own methods.
    #[inline]
    fn slow<R>(&mut self, body: impl FnOnce(&Qp, &mut SendBuffer) -> R) -> R {
        let qp = self.qp;
        let (next, result) = self.buffer.settled(self.next, |buffer| body(qp, buffer));
        self.next = next;
        result
    }

    /// The number of operations that wait for [`submit`](Self::submit).
    #[inline]
    pub fn len(&self) -> usize {
        self.buffer.len_at(self.next)
    }

    /// Is there nothing to submit?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets the operations that were added.
    pub fn clear(&mut self) {
        self.slow(|_, buffer| buffer.clear());
    }

    /// Adds a write; see [`Connection::write`](crate::Connection::write).
    #[inline(always)]
    pub fn write(
        &mut self,
        src: &LocalSlice<'_>,
        dst: &RemoteSlice,
        post: impl Into<Post>,
    ) -> Result<()> {
        self.transfer(&WRITE, src, dst, post.into())
    }

    #[inline(always)]
    fn transfer(
        &mut self,
        transfer: &Transfer,
        local: &LocalSlice<'_>,
        remote: &RemoteSlice,
        post: Post,
    ) -> Result<()> {
        // SAFETY: the place is the buffer's.
        if !unsafe { self.next.quick(transfer, local, remote) } {
            return self
                .slow(|qp, buffer| transfer_slow(qp, buffer, transfer, local, remote, post));
        }
        let request = transfer.request(remote.target, post);
        // SAFETY: the quick check finds no full buffer right.
        self.next = unsafe { self.next.put(request, 1, &local.sge) };
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
        let len = self.qp.gather_for(&WRITE, &mut sges, src)?;
        let request = self.qp.check_write_of(len, dst, imm, post)?;
        self.slow(|qp, buffer| push(qp, buffer, request, sges.as_slice()));
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
        self.slow(|_, buffer| buffer.push_inline(request, src));
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
        self.transfer(&READ, dst, src, post.into())
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
        self.slow(|qp, buffer| push(qp, buffer, request, sges.as_slice()));
        Ok(())
    }

    /// Adds a send of plain bytes, which are copied; see [`Connection::send_inline`](crate::Connection::send_inline).
    pub fn send_inline(&mut self, src: &[u8], post: impl Into<Post>) -> Result<()> {
        self.qp.check_inline("src", src.len())?;
        let request = self.qp.check_send(None, post.into())?;
        self.slow(|_, buffer| buffer.push_inline(request, src));
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
        let post = post.into();
        // SAFETY: the place is the buffer's.
        let possible = self.qp.flushes(range) & unsafe { self.next.flushes() };
        if possible.natively(kind) {
            let request = Request::flush(range, kind, post);
            // SAFETY: where there are flushes there is room.
            self.next = unsafe { self.buffer.put_extended(self.next, request) };
        } else if possible.by_reading(kind) {
            let request = READ.request(range.target, post);
            // SAFETY: as above.
            self.next = unsafe { self.next.put(request, 1, &self.qp.scratch) };
        } else {
            return self.slow(|qp, buffer| flush_slow(qp, buffer, range, kind, post));
        }
        Ok(())
    }

    /// Adds an atomic write; see [`Connection::atomic_write`](crate::Connection::atomic_write).
    #[inline]
    pub fn atomic_write(
        &mut self,
        dst: &RemoteSlice,
        value: [u8; 8],
        post: impl Into<Post>,
    ) -> Result<()> {
        let (native, post) = self.qp.check_atomic_write(dst, post.into())?;
        self.slow(|_, buffer| match native {
            true => buffer.add_extended(Request::atomic_write(dst.target, value, post)),
            false => buffer.push_inline(WRITE.request(dst.target, post), &value),
        });
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
        self.slow(|_, buffer| buffer.add(request, 1, &dst.sge));
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
        self.slow(|_, buffer| buffer.add(request, 1, &dst.sge));
        Ok(())
    }

    /// Posts all operations with one doorbell, and leaves the batch empty. An empty batch does nothing.
    ///
    /// # Errors
    /// [`Error::QueueFull`](crate::Error::QueueFull) or [`Error::PartlyPosted`](crate::Error::PartlyPosted) with the number that the device accepted: those will complete. The others
    /// stay in the batch, in order, and may be submitted again.
    #[inline]
    pub fn submit(&mut self) -> Result<()> {
        match self.buffer.submit_quick(self.qp, self.next) {
            Some(next) => {
                self.next = next;
                Ok(())
            }
            None => self.slow(|qp, buffer| buffer.submit(qp)),
        }
    }
}

// These get the buffer, not the batch, whose fields can stay in registers so.

#[cold]
#[inline(never)]
fn transfer_slow(
    qp: &Qp,
    buffer: &mut SendBuffer,
    transfer: &Transfer,
    local: &LocalSlice<'_>,
    remote: &RemoteSlice,
    post: Post,
) -> Result<()> {
    if !qp.quick(transfer, local, remote) {
        qp.check_transfer(transfer, local, remote)?;
    }
    let request = transfer.request(remote.target, post);
    push(
        qp,
        buffer,
        request,
        &[local.sge][..usize::from(!local.is_empty())],
    );
    Ok(())
}

/// Adds an operation of checked elements, or what takes its place on a faulty device.
fn push(qp: &Qp, buffer: &mut SendBuffer, mut request: Request, list: &[ffi::ibv_sge]) {
    let plain = request.flags;
    match qp.way_around(&mut request, list) {
        Some(split) => {
            for (request, sge) in split {
                buffer.add(request, 1, &sge);
            }
        }
        // Copied now, while the caller has the region.
        None if request.flags != plain => {
            let mut data = [0; SHORT as usize];
            let len = list[0].length as usize;
            for (n, byte) in data[..len].iter_mut().enumerate() {
                // SAFETY: the element lies in a region that the caller has borrowed; its bytes may change at any time.
                *byte = unsafe { std::ptr::read_volatile((list[0].addr as *const u8).add(n)) };
            }
            buffer.push_inline(request, &data[..len]);
        }
        None => buffer.push(request, list),
    }
}

#[cold]
#[inline(never)]
fn flush_slow(
    qp: &Qp,
    buffer: &mut SendBuffer,
    range: &RemoteSlice,
    kind: FlushKind,
    post: Post,
) -> Result<()> {
    let possible = qp.flushes(range);
    if possible.natively(kind) {
        buffer.add_extended(Request::flush(range, kind, post));
    } else if possible.by_reading(kind) {
        buffer.add(READ.request(range.target, post), 1, &qp.scratch);
    } else {
        return Err(qp.flush_refused(range, kind));
    }
    Ok(())
}

impl Drop for Batch<'_> {
    // Inlined, so that a batch has no address and stays in registers.
    #[inline(always)]
    fn drop(&mut self) {
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
