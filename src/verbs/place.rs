//! The places of a batch's buffer.

use std::{mem::MaybeUninit, ptr::addr_of_mut};

use rdma_sys as ffi;

use super::request::{Request, Transfer, quick_pair};
use crate::mr::{FlushPlan, LocalSlice, RemoteSlice};

/// A place for one operation, or the mark behind the last one.
#[derive(Clone, Copy)]
pub(super) struct Place(pub(super) *mut Entry);

// SAFETY: the pointer points into a buffer, which its owner guards.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// Is a transfer between the two right beyond doubt, and is there room for it?
    ///
    /// # Safety
    /// The buffer must be alive, here and below.
    #[inline(always)]
    pub(super) unsafe fn quick(
        self,
        transfer: &Transfer,
        local: &LocalSlice<'_>,
        remote: &RemoteSlice,
    ) -> bool {
        // SAFETY: a place or the mark, and both have a key.
        let key = unsafe { (*self.0).key };
        quick_pair(key, transfer, local, remote)
    }

    /// All flushes where there is room for one more operation, else none.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    pub(super) unsafe fn flushes(self) -> FlushPlan {
        // SAFETY: as above.
        unsafe { (*self.0).flushes }
    }

    /// Puts an operation with `num_sge` elements here, `sge` if it is one; gives the next place.
    ///
    /// # Safety
    /// As above; and there must be room.
    #[inline(always)]
    pub(super) unsafe fn put(self, request: Request, num_sge: usize, sge: &ffi::ibv_sge) -> Place {
        let entry = self.0;
        // SAFETY: the caller's word: this is a place.
        unsafe {
            request.write_to((*entry).wr.as_mut_ptr(), num_sge);
            addr_of_mut!((*entry).sge).write(*sge);
            Place(entry.add(1))
        }
    }

    /// Puts an operation without an element here.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    pub(super) unsafe fn put_alone(self, request: Request) -> Place {
        let entry = self.0;
        // SAFETY: as above.
        unsafe {
            request.write_to((*entry).wr.as_mut_ptr(), 0);
            Place(entry.add(1))
        }
    }
}

/// The memory of a place, as the C request that it becomes in a linked list.
#[repr(C)]
pub(super) struct Entry {
    pub(super) wr: MaybeUninit<ffi::ibv_send_wr>,
    /// The element of an operation that has one.
    pub(super) sge: ffi::ibv_sge,
    /// The queue pair's key for the quick check; in the mark one that fits nothing, so that the check finds the buffer full, too.
    pub(super) key: u32,
    /// All flushes; in the mark none.
    pub(super) flushes: FlushPlan,
}

pub(super) const NO_SGE: ffi::ibv_sge = ffi::ibv_sge {
    addr: 0,
    length: 0,
    lkey: 0,
};

/// In the place of the one element: the operation has several, and they differ in length.
pub(super) const UNEVEN: ffi::ibv_sge = ffi::ibv_sge {
    addr: 0,
    length: 1,
    lkey: 0,
};

impl Entry {
    /// Does the operation gather slices of different lengths?
    pub(super) fn is_uneven(&self) -> bool {
        self.num_sge() > 1 && self.sge.length == UNEVEN.length
    }

    /// How many elements the operation has in the buffer's list.
    pub(super) fn listed(&self) -> usize {
        Some(self.num_sge()).filter(|num| *num > 1).unwrap_or(0)
    }

    /// How many elements the operation has.
    #[inline(always)]
    pub(super) fn num_sge(&self) -> usize {
        // SAFETY: every operation was written by `SendBuffer::put`, which sets the field.
        unsafe { (*self.wr.as_ptr()).num_sge as usize }
    }

    pub(super) fn is_inline(&self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.wr.as_ptr()).send_flags & ffi::IBV_SEND_INLINE != 0 }
    }

    /// Does the operation exist only on the extended queue pair?
    pub(super) fn is_extended(&self) -> bool {
        // SAFETY: as above.
        let opcode = unsafe { (*self.wr.as_ptr()).opcode };
        matches!(opcode, ffi::IBV_WR_FLUSH | ffi::IBV_WR_ATOMIC_WRITE)
    }
}
