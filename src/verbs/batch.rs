//! Several operations, one doorbell.

use std::{mem::MaybeUninit, ptr::addr_of_mut};

use rdma_sys as ffi;

use super::{
    qp::{Qp, post_failed},
    request::{Body, Request},
    sges::Sges,
};
use crate::{
    Error, FlushKind, Post, Result, Usage,
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
#[must_use = "nothing is posted before `submit`"]
pub struct Batch<'c> {
    qp: &'c Qp,
    // Taken out only by drop.
    buffer: Option<Box<SendBuffer>>,
}

/// The memory of a [`Batch`].
#[derive(Default)]
pub(crate) struct SendBuffer {
    entries: Vec<Entry>,
    sges: Vec<ffi::ibv_sge>,
    /// Inline data; the elements that use it hold offsets into it until the batch is submitted.
    inline: Vec<u8>,
    /// An operation of the batch exists only on the extended queue pair.
    extended: bool,
    /// An operation of the batch gathers slices of different lengths.
    uneven: bool,
}

/// One operation, with the C request that it becomes in a linked list.
struct Entry {
    wr: MaybeUninit<ffi::ibv_send_wr>,
    request: Request,
    num_sge: u32,
    /// Its slices differ in length.
    uneven: bool,
}

impl SendBuffer {
    pub(super) fn with_capacity(entries: usize) -> Self {
        let entries = entries.min(64);
        SendBuffer {
            entries: Vec::with_capacity(entries),
            sges: Vec::with_capacity(entries),
            inline: Vec::with_capacity(entries * 8),
            extended: false,
            uneven: false,
        }
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.sges.clear();
        self.inline.clear();
        self.extended = false;
        self.uneven = false;
    }

    #[inline]
    fn push(&mut self, request: Request, sges: &[ffi::ibv_sge]) {
        self.sges.extend_from_slice(sges);
        self.extended |= matches!(request.body, Body::Flush { .. } | Body::AtomicWrite { .. });
        let uneven = sges
            .windows(2)
            .any(|two| matches!(two, [a, b] if a.length != b.length));
        self.uneven |= uneven;
        self.entries.push(Entry {
            wr: MaybeUninit::uninit(),
            request,
            num_sge: sges.len() as u32,
            uneven,
        });
    }

    /// Adds an operation whose data are copied.
    #[inline]
    fn push_inline(&mut self, mut request: Request, data: &[u8]) {
        request.flags |= ffi::IBV_SEND_INLINE;
        let offset = self.inline.len() as u64;
        self.inline.extend_from_slice(data);
        let sge = ffi::ibv_sge {
            addr: offset,
            length: data.len() as u32,
            lkey: 0,
        };
        self.push(
            request,
            if data.is_empty() {
                &[]
            } else {
                std::slice::from_ref(&sge)
            },
        );
    }

    /// Removes the first `n` operations: the device has them.
    fn remove_first(&mut self, n: usize) {
        let sges: usize = self
            .entries
            .iter()
            .take(n)
            .map(|e| e.num_sge as usize)
            .sum();
        self.entries.drain(..n.min(self.entries.len()));
        self.sges.drain(..sges);
        if self.entries.is_empty() {
            self.clear();
        }
    }
}

impl<'c> Batch<'c> {
    pub(crate) fn new(qp: &'c Qp) -> Self {
        Batch {
            qp,
            buffer: Some(qp.take_send_buffer()),
        }
    }

    #[inline]
    fn buffer(&mut self) -> &mut SendBuffer {
        self.buffer.get_or_insert_with(Box::default)
    }

    /// The number of operations that wait for [`submit`](Self::submit).
    pub fn len(&self) -> usize {
        self.buffer
            .as_ref()
            .map_or(0, |buffer| buffer.entries.len())
    }

    /// Is there nothing to submit?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets the operations that were added.
    pub fn clear(&mut self) {
        self.buffer().clear();
    }

    /// Adds a write; see [`Connection::write`](crate::Connection::write).
    #[inline]
    pub fn write(
        &mut self,
        src: &LocalSlice<'_>,
        dst: &RemoteSlice,
        post: impl Into<Post>,
    ) -> Result<()> {
        let checked = self.qp.check_write(src, dst, post.into())?;
        let sge = src.sge;
        self.buffer()
            .push(checked.request, &[sge][..checked.num_sge]);
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
        self.buffer().push(request, sges.as_slice());
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
        self.buffer().push_inline(request, src);
        Ok(())
    }

    /// Adds a read; see [`Connection::read`](crate::Connection::read).
    #[inline]
    pub fn read(
        &mut self,
        dst: &LocalSlice<'_>,
        src: &RemoteSlice,
        post: impl Into<Post>,
    ) -> Result<()> {
        let checked = self.qp.check_read(dst, src, post.into())?;
        let sge = dst.sge;
        self.buffer()
            .push(checked.request, &[sge][..checked.num_sge]);
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
        self.buffer().push(request, sges.as_slice());
        Ok(())
    }

    /// Adds a send of plain bytes, which are copied; see [`Connection::send_inline`](crate::Connection::send_inline).
    pub fn send_inline(&mut self, src: &[u8], post: impl Into<Post>) -> Result<()> {
        self.qp.check_inline("src", src.len())?;
        let request = self.qp.check_send(None, post.into())?;
        self.buffer().push_inline(request, src);
        Ok(())
    }

    /// Adds a flush; see [`Connection::flush`](crate::Connection::flush).
    #[inline]
    pub fn flush(
        &mut self,
        range: &RemoteSlice,
        kind: FlushKind,
        post: impl Into<Post>,
    ) -> Result<()> {
        let (request, sge) = self.qp.check_flush(range, kind, post.into())?;
        self.buffer().push(request, sge.as_slice());
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
        let request = self.qp.check_atomic_write(dst, value, post.into())?;
        match request.body {
            Body::AtomicWrite { .. } => self.buffer().push(request, &[]),
            _ => self.buffer().push_inline(request, &value),
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
        self.buffer().push(request, &[dst.sge]);
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
        self.buffer().push(request, &[dst.sge]);
        Ok(())
    }

    /// Posts all operations with one doorbell, and leaves the batch empty. An empty batch does nothing.
    ///
    /// # Errors
    /// [`Error::QueueFull`] or [`Error::PartlyPosted`] with the number that the device accepted: those will complete. The others
    /// stay in the batch, in order, and may be submitted again.
    pub fn submit(&mut self) -> Result<()> {
        let qp = self.qp;
        let buffer = self.buffer();
        if buffer.entries.is_empty() {
            return Ok(());
        }
        let result = if buffer.extended {
            submit_extended(qp, buffer)
        } else {
            let inline = buffer.inline.as_ptr();
            submit_list(qp, &mut buffer.entries, &mut buffer.sges, inline, 0)
        };
        match &result {
            Ok(()) => buffer.clear(),
            Err(Error::QueueFull { accepted, .. } | Error::PartlyPosted { accepted, .. }) => {
                buffer.remove_first(*accepted);
            }
            Err(_) => {}
        }
        result
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if let Some(mut buffer) = self.buffer.take() {
            buffer.clear();
            self.qp.give_send_buffer(buffer);
        }
    }
}

impl std::fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// Operations, the first of which come after `before` others that were accepted, as one linked list for `ibv_post_send`.
fn submit_list(
    qp: &Qp,
    entries: &mut [Entry],
    sges: &mut [ffi::ibv_sge],
    inline: *const u8,
    before: usize,
) -> Result<()> {
    let inline = inline as u64;
    // SAFETY: the elements of the requests lie one after the other in `sges`: the sum of `num_sge` is its length.
    let mut sge = unsafe { sges.as_mut_ptr().add(sges.len()) };
    let mut next: *mut ffi::ibv_send_wr = std::ptr::null_mut();
    let len = entries.len();
    // Backwards, so that each request can point at the one behind it.
    for entry in entries.iter_mut().rev() {
        let num_sge = entry.num_sge as usize;
        // SAFETY: as above; `wr` is a place of ours.
        unsafe {
            sge = sge.sub(num_sge);
            if is_inline(&entry.request) && num_sge > 0 {
                (*sge).addr += inline;
            }
            let wr = entry.wr.as_mut_ptr();
            entry.request.write_to(wr, sge, num_sge);
            addr_of_mut!((*wr).next).write(next);
            next = wr;
        }
    }
    let stride = std::mem::size_of::<Entry>();
    // SAFETY: the list was just linked, and lies in the buffer with all that it points at.
    let result = unsafe { qp.post_list(next, stride, len, before) };
    if result.is_err() {
        back_to_offsets(entries, sges, inline);
    }
    result
}

/// All operations between one `ibv_wr_start` and one `ibv_wr_complete`, of which the device takes all or none.
///
/// Except those that gather slices of different lengths, which go by lists in between: rdma-core's provider for rxe (seen in 44 to 56)
/// takes the first slice's length for that of each, and would cut or overrun the data without a word.
fn submit_extended(qp: &Qp, buffer: &mut SendBuffer) -> Result<()> {
    let inline = buffer.inline.as_ptr();
    if !buffer.uneven {
        return submit_chain(qp, &buffer.entries, &buffer.sges, inline, 0);
    }
    let mut sges = buffer.sges.as_mut_slice();
    let mut before = 0;
    for run in buffer.entries.chunk_by_mut(|a, b| a.uneven == b.uneven) {
        let (list, rest) = sges.split_at_mut(run.iter().map(|e| e.num_sge as usize).sum());
        sges = rest;
        if run.iter().any(|entry| entry.uneven) {
            submit_list(qp, run, list, inline, before)?;
        } else {
            submit_chain(qp, run, list, inline, before)?;
        }
        before += run.len();
    }
    Ok(())
}

fn submit_chain(
    qp: &Qp,
    entries: &[Entry],
    mut sges: &[ffi::ibv_sge],
    inline: *const u8,
    before: usize,
) -> Result<()> {
    let Some(ex) = qp.extended() else {
        return Err(Error::not_supported(
            "native flush and atomic write on this queue pair",
        ));
    };
    let ex = ex.as_ptr();
    // SAFETY: the queue pair is alive and extended; start and complete are paired and nothing in between can return early or
    // panic; it was created with every operation that `check_*` lets through; the offsets of inline data lie in `inline`.
    let ret = unsafe {
        ffi::ibv_wr_start(ex);
        for entry in entries {
            let (list, rest) = sges.split_at(entry.num_sge as usize);
            sges = rest;
            start_one(ex, &entry.request, list, inline);
        }
        ffi::ibv_wr_complete(ex)
    };
    if ret == 0 {
        Ok(())
    } else {
        Err(post_failed("ibv_wr_complete", ret, before))
    }
}

/// # Safety
/// Between start and complete on a live extended queue pair that was created with the operation; offsets of inline elements lie
/// inside of what `inline` points at.
#[inline]
unsafe fn start_one(
    ex: *mut ffi::ibv_qp_ex,
    request: &Request,
    list: &[ffi::ibv_sge],
    inline: *const u8,
) {
    // SAFETY: the caller's word.
    unsafe {
        (*ex).wr_id = request.wr_id;
        (*ex).wr_flags = request.flags;
        match (request.body, request.opcode) {
            (Body::Send, _) => ffi::ibv_wr_send(ex),
            (Body::SendImm { imm }, _) => ffi::ibv_wr_send_imm(ex, imm.to_be()),
            (Body::Rdma { address, rkey }, ffi::IBV_WR_RDMA_READ) => {
                ffi::ibv_wr_rdma_read(ex, rkey, address);
            }
            (Body::Rdma { address, rkey }, _) => ffi::ibv_wr_rdma_write(ex, rkey, address),
            (Body::RdmaImm { address, rkey, imm }, _) => {
                ffi::ibv_wr_rdma_write_imm(ex, rkey, address, imm.to_be());
            }
            (
                Body::Atomic {
                    address,
                    rkey,
                    compare_add,
                    swap,
                },
                ffi::IBV_WR_ATOMIC_CMP_AND_SWP,
            ) => ffi::ibv_wr_atomic_cmp_swp(ex, rkey, address, compare_add, swap),
            (
                Body::Atomic {
                    address,
                    rkey,
                    compare_add,
                    ..
                },
                _,
            ) => {
                ffi::ibv_wr_atomic_fetch_add(ex, rkey, address, compare_add);
            }
            (Body::Flush { .. } | Body::AtomicWrite { .. }, _) => {
                request.start_extended(ex);
                return;
            }
        }
        match list {
            [] => {}
            [sge] if is_inline(request) => {
                let data = inline.wrapping_add(sge.addr as usize).cast_mut();
                ffi::ibv_wr_set_inline_data(ex, data.cast(), sge.length as usize);
            }
            [sge] => ffi::ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length),
            list => ffi::ibv_wr_set_sge_list(ex, list.len(), list.as_ptr()),
        }
    }
}

#[inline]
fn is_inline(request: &Request) -> bool {
    request.flags & ffi::IBV_SEND_INLINE != 0
}

/// After a failed submit: the elements of inline data go back to offsets, for the next one.
#[cold]
fn back_to_offsets(entries: &[Entry], mut sges: &mut [ffi::ibv_sge], inline: u64) {
    for entry in entries {
        let (list, rest) = sges.split_at_mut(entry.num_sge as usize);
        sges = rest;
        if is_inline(&entry.request) {
            for sge in list {
                sge.addr = sge.addr.wrapping_sub(inline);
            }
        }
    }
}
