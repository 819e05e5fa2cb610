//! Several operations, one doorbell.

use std::{
    mem::{ManuallyDrop, MaybeUninit},
    ptr::{addr_of, addr_of_mut},
};

use rdma_sys as ffi;

use super::{
    qp::{Qp, no_extended, post_failed},
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
    buffer: ManuallyDrop<Box<SendBuffer>>,
}

/// The memory of a [`Batch`].
#[derive(Default)]
pub(crate) struct SendBuffer {
    entries: Vec<Entry>,
    /// The elements of the operations that have more than one.
    sges: Vec<ffi::ibv_sge>,
    /// Inline data; the elements that use it hold offsets into it until the batch is submitted.
    inline: Vec<u8>,
    /// An operation of the batch exists only on the extended queue pair.
    extended: bool,
    /// An operation of the batch gathers slices of different lengths.
    uneven: bool,
}

/// One operation, as the C request that it becomes in a linked list; its links are set when it is submitted.
struct Entry {
    wr: MaybeUninit<ffi::ibv_send_wr>,
    /// The element of an operation that has one.
    sge: ffi::ibv_sge,
}

// SAFETY: the links inside of an entry are used only within `submit`, which sets them.
unsafe impl Send for SendBuffer {}
// SAFETY: as above.
unsafe impl Sync for SendBuffer {}

const NO_SGE: ffi::ibv_sge = ffi::ibv_sge {
    addr: 0,
    length: 0,
    lkey: 0,
};

/// In the place of the one element: the operation has several, and they differ in length.
const UNEVEN: ffi::ibv_sge = ffi::ibv_sge {
    addr: 0,
    length: 1,
    lkey: 0,
};

impl Entry {
    /// Does the operation gather slices of different lengths?
    fn is_uneven(&self) -> bool {
        self.num_sge() > 1 && self.sge.length == UNEVEN.length
    }

    /// How many elements the operation has in the buffer's list.
    fn listed(&self) -> usize {
        Some(self.num_sge()).filter(|num| *num > 1).unwrap_or(0)
    }

    /// How many elements the operation has.
    #[inline(always)]
    fn num_sge(&self) -> usize {
        // SAFETY: every entry was made by `SendBuffer::add`, which sets the field.
        unsafe { (*self.wr.as_ptr()).num_sge as usize }
    }

    fn is_inline(&self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.wr.as_ptr()).send_flags & ffi::IBV_SEND_INLINE != 0 }
    }
}

impl SendBuffer {
    pub(super) fn with_capacity(entries: usize) -> Self {
        let entries = entries.clamp(4, 64);
        SendBuffer {
            entries: Vec::with_capacity(entries),
            sges: Vec::new(),
            inline: Vec::with_capacity(entries * 8),
            extended: false,
            uneven: false,
        }
    }

    #[inline]
    fn clear(&mut self) {
        self.entries.clear();
        self.sges.clear();
        self.inline.clear();
        self.extended = false;
        self.uneven = false;
    }

    /// Adds an operation with at most one element.
    #[inline(always)]
    fn add(&mut self, request: Request, num_sge: usize, sge: ffi::ibv_sge) {
        if self.entries.len() == self.entries.capacity() {
            self.grow();
        }
        let len = self.entries.len();
        // SAFETY: there is room for one more; all of the entry is set that is read before it is submitted.
        unsafe {
            let entry = self.entries.as_mut_ptr().add(len);
            request.write_body((*entry).wr.as_mut_ptr(), num_sge);
            addr_of_mut!((*entry).sge).write(sge);
            self.entries.set_len(len + 1);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.entries.reserve(self.entries.len().max(4));
    }

    /// Adds an operation with any number of elements.
    fn push(&mut self, request: Request, sges: &[ffi::ibv_sge]) {
        match sges {
            [] => self.add(request, 0, NO_SGE),
            [sge] => self.add(request, 1, *sge),
            sges => {
                self.sges.extend_from_slice(sges);
                let uneven = sges.iter().any(|sge| sge.length != sges[0].length);
                self.uneven |= uneven;
                self.add(request, sges.len(), if uneven { UNEVEN } else { NO_SGE });
            }
        }
    }

    /// Adds an operation that exists only on the extended queue pair.
    #[inline(always)]
    fn add_extended(&mut self, request: Request) {
        self.extended = true;
        self.add(request, 0, NO_SGE);
    }

    /// Adds an operation whose data are copied.
    #[inline]
    fn push_inline(&mut self, mut request: Request, data: &[u8]) {
        request.flags |= ffi::IBV_SEND_INLINE;
        let sge = ffi::ibv_sge {
            addr: self.inline.len() as u64,
            length: data.len() as u32,
            lkey: 0,
        };
        self.inline.extend_from_slice(data);
        self.add(request, usize::from(!data.is_empty()), sge);
    }

    /// After a failed submit: what the device accepted is forgotten, the rest stays.
    #[cold]
    #[inline(never)]
    fn keep_refused(&mut self, result: Result<()>) -> Result<()> {
        if let Err(Error::QueueFull { accepted, .. } | Error::PartlyPosted { accepted, .. }) =
            &result
        {
            self.remove_first(*accepted);
        }
        result
    }

    /// Removes the first `n` operations.
    fn remove_first(&mut self, n: usize) {
        let n = n.min(self.entries.len());
        let sges: usize = self.entries[..n].iter().map(Entry::listed).sum();
        self.entries.drain(..n);
        self.sges.drain(..sges);
        if self.entries.is_empty() {
            self.clear();
        }
    }
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
        self.buffer.entries.len()
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
    #[inline]
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
    #[inline]
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
    #[inline]
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
    /// [`Error::QueueFull`] or [`Error::PartlyPosted`] with the number that the device accepted: those will complete. The others
    /// stay in the batch, in order, and may be submitted again.
    #[inline]
    pub fn submit(&mut self) -> Result<()> {
        let buffer = &mut **self.buffer;
        if buffer.entries.is_empty() {
            return Ok(());
        }
        let result = if buffer.extended {
            submit_extended(self.qp, buffer)
        } else {
            submit_list(
                self.qp,
                &mut buffer.entries,
                &mut buffer.sges,
                &buffer.inline,
                0,
            )
        };
        if result.is_ok() {
            buffer.clear();
            return result;
        }
        buffer.keep_refused(result)
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

/// Operations, the first of which come after `before` others that were accepted, as one linked list for `ibv_post_send`.
#[inline]
fn submit_list(
    qp: &Qp,
    entries: &mut [Entry],
    sges: &mut [ffi::ibv_sge],
    inline: &[u8],
    before: usize,
) -> Result<()> {
    if !inline.is_empty() {
        move_inline(entries, inline.as_ptr() as u64);
    }
    let len = entries.len();
    let first = entries.as_mut_ptr();
    // SAFETY: the elements of the operations that have more than one lie one after the other in `sges`: the sum of their numbers is
    // its length. All places are in the buffer.
    unsafe {
        let mut sges = sges.as_mut_ptr().add(sges.len());
        let mut next: *mut ffi::ibv_send_wr = std::ptr::null_mut();
        let mut entry = first.add(len);
        // Backwards, so that each request can point at the one behind it.
        while entry != first {
            entry = entry.sub(1);
            let wr = (*entry).wr.as_mut_ptr();
            let num_sge = (*entry).num_sge();
            let mut list = addr_of_mut!((*entry).sge);
            if num_sge > 1 {
                sges = sges.sub(num_sge);
                list = sges;
            }
            addr_of_mut!((*wr).sg_list).write(list);
            addr_of_mut!((*wr).next).write(next);
            next = wr;
        }
    }
    // SAFETY: the list was just linked, and lies in the buffer with all that it points at.
    let result = unsafe { qp.post_list(first.cast(), size_of::<Entry>(), len, before) };
    if result.is_err() && !inline.is_empty() {
        move_inline(entries, (inline.as_ptr() as u64).wrapping_neg());
    }
    result
}

/// Moves the addresses of inline elements by `by`: from offsets to addresses before a submit, and back after a failed one.
fn move_inline(entries: &mut [Entry], by: u64) {
    for entry in entries.iter_mut().filter(|entry| entry.is_inline()) {
        entry.sge.addr = entry.sge.addr.wrapping_add(by);
    }
}

/// All operations between one `ibv_wr_start` and one `ibv_wr_complete`, of which the device takes all or none.
///
/// Except those that gather slices of different lengths, which go by lists in between: rdma-core's provider for rxe (seen in 44 to 56)
/// takes the first slice's length for that of each, and would cut or overrun the data without a word.
fn submit_extended(qp: &Qp, buffer: &mut SendBuffer) -> Result<()> {
    if !buffer.uneven {
        return submit_chain(qp, &buffer.entries, &buffer.sges, &buffer.inline, 0);
    }
    let mut sges = buffer.sges.as_mut_slice();
    let mut before = 0;
    for run in buffer
        .entries
        .chunk_by_mut(|a, b| a.is_uneven() == b.is_uneven())
    {
        let (list, rest) = sges.split_at_mut(run.iter().map(Entry::listed).sum());
        sges = rest;
        if run.iter().any(Entry::is_uneven) {
            submit_list(qp, run, list, &buffer.inline, before)?;
        } else {
            submit_chain(qp, run, list, &buffer.inline, before)?;
        }
        before += run.len();
    }
    Ok(())
}

fn submit_chain(
    qp: &Qp,
    entries: &[Entry],
    mut sges: &[ffi::ibv_sge],
    inline: &[u8],
    before: usize,
) -> Result<()> {
    let Some(ex) = qp.extended() else {
        return Err(no_extended());
    };
    let ex = ex.as_ptr();
    // SAFETY: the queue pair is alive and extended; start and complete are paired and nothing in between can return early or
    // panic; it was created with every operation that the checks let through; the offsets of inline data lie in `inline`; the
    // elements of the operations that have more than one lie one after the other in `sges`.
    let ret = unsafe {
        ffi::ibv_wr_start(ex);
        for entry in entries {
            let list = match entry.num_sge() {
                0 => &[],
                1 => std::slice::from_ref(&entry.sge),
                num => {
                    let (list, rest) = sges.split_at_unchecked(num);
                    sges = rest;
                    list
                }
            };
            start_one(ex, &*entry.wr.as_ptr(), list, inline.as_ptr());
        }
        ffi::ibv_wr_complete(ex)
    };
    if ret == 0 {
        return Ok(());
    }
    Err(post_failed("ibv_wr_complete", ret, before))
}

/// # Safety
/// Between start and complete on a live extended queue pair that was created with the operation; `wr` was written by
/// [`Request::write_body`]; offsets of inline elements lie inside of what `inline` points at.
#[inline(always)]
unsafe fn start_one(
    ex: *mut ffi::ibv_qp_ex,
    wr: *const ffi::ibv_send_wr,
    list: &[ffi::ibv_sge],
    inline: *const u8,
) {
    // SAFETY: the caller's word; each opcode has the fields that are read for it.
    unsafe {
        (*ex).wr_id = (*wr).wr_id;
        (*ex).wr_flags = (*wr).send_flags;
        let address = addr_of!((*wr).wr.rdma.remote_addr);
        match (*wr).opcode {
            ffi::IBV_WR_RDMA_WRITE => ffi::ibv_wr_rdma_write(ex, (*wr).wr.rdma.rkey, *address),
            ffi::IBV_WR_RDMA_READ => ffi::ibv_wr_rdma_read(ex, (*wr).wr.rdma.rkey, *address),
            ffi::IBV_WR_FLUSH => {
                let how = (*wr).__bindgen_anon_1.imm_data;
                let (kinds, level) = (how as u8, (how >> 8) as u8);
                let len = (*wr).wr.atomic.compare_add as usize;
                return ffi::ibv_wr_flush(ex, (*wr).wr.atomic.rkey, *address, len, kinds, level);
            }
            ffi::IBV_WR_ATOMIC_WRITE => {
                let value = addr_of!((*wr).wr.atomic.compare_add);
                let rkey = (*wr).wr.atomic.rkey;
                return ffi::ibv_wr_atomic_write(ex, rkey, *address, value.cast());
            }
            ffi::IBV_WR_RDMA_WRITE_WITH_IMM => {
                let imm = (*wr).__bindgen_anon_1.imm_data;
                ffi::ibv_wr_rdma_write_imm(ex, (*wr).wr.rdma.rkey, *address, imm);
            }
            ffi::IBV_WR_SEND_WITH_IMM => {
                ffi::ibv_wr_send_imm(ex, (*wr).__bindgen_anon_1.imm_data);
            }
            ffi::IBV_WR_ATOMIC_CMP_AND_SWP => {
                let atomic = (*wr).wr.atomic;
                ffi::ibv_wr_atomic_cmp_swp(
                    ex,
                    atomic.rkey,
                    *address,
                    atomic.compare_add,
                    atomic.swap,
                );
            }
            ffi::IBV_WR_ATOMIC_FETCH_AND_ADD => {
                let atomic = (*wr).wr.atomic;
                ffi::ibv_wr_atomic_fetch_add(ex, atomic.rkey, *address, atomic.compare_add);
            }
            _ => ffi::ibv_wr_send(ex),
        }
        match list {
            [] => {}
            [sge] if (*wr).send_flags & ffi::IBV_SEND_INLINE != 0 => {
                let data = inline.wrapping_add(sge.addr as usize).cast_mut();
                ffi::ibv_wr_set_inline_data(ex, data.cast(), sge.length as usize);
            }
            [sge] => ffi::ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length),
            list => ffi::ibv_wr_set_sge_list(ex, list.len(), list.as_ptr()),
        }
    }
}
