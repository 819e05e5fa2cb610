//! The memory of a batch, and its way to the device.

use std::{
    mem::MaybeUninit,
    ptr::{NonNull, addr_of, addr_of_mut},
};

use rdma_sys as ffi;

use super::{
    qp::{Qp, list_result, no_extended, post_failed},
    request::Request,
};
use crate::{Error, Result};

/// The operations of a [`Batch`](super::Batch) that were not submitted yet.
#[derive(Default)]
pub(crate) struct SendBuffer {
    entries: Vec<Entry>,
    /// The elements of the operations that have more than one.
    sges: Vec<ffi::ibv_sge>,
    /// Inline data; the elements that use it hold offsets into it until the batch is submitted.
    inline: Vec<u8>,
    /// The batch is more than a list of operations with one element or none: what follows matters.
    special: bool,
    /// An operation of the batch exists only on the extended queue pair.
    extended: bool,
    /// An operation of the batch gathers slices of different lengths.
    uneven: bool,
}

/// One operation, as the C request that it becomes in a linked list. It is linked to its element and to the place behind it as it is
/// added; whatever moves entries links them again, and submitting ends the list.
#[repr(C)]
struct Entry {
    wr: MaybeUninit<ffi::ibv_send_wr>,
    /// The element of an operation that has one.
    sge: ffi::ibv_sge,
}

// SAFETY: the links inside of the entries point into the buffer itself, and are followed only by the provider within `submit`.
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
            special: false,
            extended: false,
            uneven: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        if self.special {
            self.clear_special();
        }
    }

    #[inline(never)]
    fn clear_special(&mut self) {
        self.sges.clear();
        self.inline.clear();
        self.special = false;
        self.extended = false;
        self.uneven = false;
    }

    /// Adds an operation with at most one element.
    #[inline(always)]
    pub(super) fn add(&mut self, request: Request, num_sge: usize, sge: ffi::ibv_sge) {
        if self.entries.len() == self.entries.capacity() {
            self.grow();
        }
        let len = self.entries.len();
        // SAFETY: there is room for one more; all of the entry is set that is ever read.
        unsafe {
            let entry = self.entries.as_mut_ptr().add(len);
            let wr = (*entry).wr.as_mut_ptr();
            request.write_to(wr, addr_of!((*entry).sge), num_sge);
            addr_of_mut!((*wr).next).write(entry.add(1).cast());
            addr_of_mut!((*entry).sge).write(sge);
            self.entries.set_len(len + 1);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.entries.reserve(self.entries.len().max(4));
        self.link();
    }

    /// Links the entries where they are now: each to its element and to the place behind it.
    #[cold]
    fn link(&mut self) {
        for entry in &mut self.entries {
            // SAFETY: the places are the entry's own; the one behind the last is only pointed at.
            unsafe {
                let entry: *mut Entry = entry;
                let wr = (*entry).wr.as_mut_ptr();
                addr_of_mut!((*wr).sg_list).write(addr_of_mut!((*entry).sge));
                addr_of_mut!((*wr).next).write(entry.wrapping_add(1).cast());
            }
        }
    }

    /// Adds an operation with any number of elements.
    pub(super) fn push(&mut self, request: Request, sges: &[ffi::ibv_sge]) {
        match sges {
            [] => self.add(request, 0, NO_SGE),
            [sge] => self.add(request, 1, *sge),
            sges => {
                self.special = true;
                self.sges.extend_from_slice(sges);
                let uneven = sges.iter().any(|sge| sge.length != sges[0].length);
                self.uneven |= uneven;
                self.add(request, sges.len(), if uneven { UNEVEN } else { NO_SGE });
            }
        }
    }

    /// Adds an operation that exists only on the extended queue pair.
    #[inline(always)]
    pub(super) fn add_extended(&mut self, request: Request) {
        self.special = true;
        self.extended = true;
        self.add(request, 0, NO_SGE);
    }

    /// Adds an operation whose data are copied.
    #[inline]
    pub(super) fn push_inline(&mut self, mut request: Request, data: &[u8]) {
        self.special = true;
        request.flags |= ffi::IBV_SEND_INLINE;
        let sge = ffi::ibv_sge {
            addr: self.inline.len() as u64,
            length: data.len() as u32,
            lkey: 0,
        };
        self.inline.extend_from_slice(data);
        self.add(request, usize::from(!data.is_empty()), sge);
    }

    /// Posts all operations with one doorbell, and leaves the buffer empty, or with what was refused.
    #[inline]
    pub(super) fn submit(&mut self, qp: &Qp) -> Result<()> {
        let len = self.entries.len();
        if len == 0 {
            return Ok(());
        }
        if self.special {
            return self.submit_special(qp);
        }
        let first: *mut Entry = self.entries.as_mut_ptr();
        // SAFETY: the last entry ends the list, the others are linked as they were added; the list lies in the buffer with all that it
        // points at.
        let (ret, bad) = unsafe {
            let last = (*first.add(len - 1)).wr.as_mut_ptr();
            addr_of_mut!((*last).next).write(std::ptr::null_mut());
            qp.post_raw(first.cast())
        };
        if ret == 0 && bad.is_null() {
            self.entries.clear();
            return Ok(());
        }
        self.refused(ret, bad as usize)
    }

    /// After a post that may have failed in its midst.
    #[cold]
    #[inline(never)]
    fn refused(&mut self, ret: i32, bad: usize) -> Result<()> {
        let (first, len) = (self.entries.as_ptr() as usize, self.entries.len());
        let result = list_result("ibv_post_send", ret, first, bad, size_of::<Entry>(), len, 0);
        self.settle(result)
    }

    /// Forgets what the device accepted; the rest stays, linked.
    #[inline(never)]
    fn settle(&mut self, result: Result<()>) -> Result<()> {
        match &result {
            Ok(()) => {
                self.clear();
                return result;
            }
            Err(Error::QueueFull { accepted, .. } | Error::PartlyPosted { accepted, .. }) => {
                self.remove_first(*accepted);
            }
            Err(_) => {}
        }
        self.link();
        result
    }

    #[inline(never)]
    fn submit_special(&mut self, qp: &Qp) -> Result<()> {
        let result = match (self.extended, qp.extended()) {
            (false, _) => submit_list(qp, &mut self.entries, &mut self.sges, &self.inline, 0),
            (true, None) => Err(no_extended()),
            (true, Some(ex)) if !self.uneven => {
                let ret = chain(ex, &self.entries, &self.sges, &self.inline);
                if ret == 0 {
                    self.clear();
                    return Ok(());
                }
                Err(post_failed("ibv_wr_complete", ret, 0))
            }
            (true, Some(ex)) => submit_uneven(qp, ex, self),
        };
        self.settle(result)
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

/// Operations, the first of which come after `before` others that were accepted, as one linked list for `ibv_post_send`.
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

/// Runs of operations, one after the other: those that gather slices of different lengths go by lists. rdma-core's provider for rxe (seen
/// in 44 to 56) takes the first slice's length for that of each when it is told of them by `ibv_wr_set_sge_list`, and would cut or
/// overrun the data without a word.
#[cold]
fn submit_uneven(qp: &Qp, ex: NonNull<ffi::ibv_qp_ex>, buffer: &mut SendBuffer) -> Result<()> {
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
            match chain(ex, run, list, &buffer.inline) {
                0 => {}
                ret => return Err(post_failed("ibv_wr_complete", ret, before)),
            }
        }
        before += run.len();
    }
    Ok(())
}

/// Operations between one `ibv_wr_start` and one `ibv_wr_complete`, of which the device takes all or none; gives the provider's return code.
fn chain(
    ex: NonNull<ffi::ibv_qp_ex>,
    entries: &[Entry],
    mut sges: &[ffi::ibv_sge],
    inline: &[u8],
) -> i32 {
    let ex = ex.as_ptr();
    // SAFETY: the queue pair is alive and extended; start and complete are paired and nothing in between can return early or
    // panic; it was created with every operation that the checks let through; the offsets of inline data lie in `inline`; the
    // elements of the operations that have more than one lie one after the other in `sges`.
    unsafe {
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
    }
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
