//! One operation in the memory of a batch.

use std::{
    mem::MaybeUninit,
    ptr::{addr_of, addr_of_mut},
};

use rdma_sys as ffi;

use crate::{
    mr::FlushPlan,
    verbs::{Op, Request, op},
};

/// A place for one operation, or the mark behind the last one. All access is by raw pointers: the C
/// requests point at each other and at their elements.
#[repr(C)]
pub(super) struct Entry {
    pub(super) wr: MaybeUninit<ffi::ibv_send_wr>,
    /// The element of an operation that has one.
    pub(super) sge: ffi::ibv_sge,
    /// The queue pair's key for the quick check; in the mark one that fits nothing, so that the
    /// check finds the memory full, too.
    pub(super) key: u32,
    /// All flushes; in the mark none.
    pub(super) flushes: FlushPlan,
    pub(super) data: Where,
    /// It is the first part of a read that is split.
    pub(super) part: bool,
    /// Where its elements or inline data start in the memory's lists.
    pub(super) start: usize,
}

/// Where an operation's elements or data are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// One element or none, in the entry.
    Here,
    /// Several elements of one length, in the memory's list.
    Listed,
    /// Several elements of different lengths, there.
    Uneven,
    /// Inline data, in the memory's bytes.
    Inline,
}

/// An entry's C request.
#[inline(always)]
pub(super) fn wr(entry: *mut Entry) -> *mut ffi::ibv_send_wr {
    // The request is the entry's first field.
    const _: () = assert!(std::mem::offset_of!(Entry, wr) == 0);
    entry.cast()
}

/// Puts an operation with `num_sge` elements, of which `sge` is the first, to `entry`; gives the
/// next one.
///
/// # Safety
/// `entry` must be a place, not the mark.
#[inline(always)]
pub(super) unsafe fn put(
    entry: *mut Entry,
    request: Request,
    num_sge: usize,
    sge: &ffi::ibv_sge,
) -> *mut Entry {
    // SAFETY: the caller's place, so that there is another or the mark behind it.
    unsafe {
        request.write_to(wr(entry), num_sge);
        addr_of_mut!((*entry).sge).write(*sge);
        entry.add(1)
    }
}

/// Puts an operation without an element to `entry`; gives the next one.
///
/// # Safety
/// As for [`put`].
#[inline(always)]
pub(super) unsafe fn put_alone(entry: *mut Entry, request: Request) -> *mut Entry {
    // SAFETY: as above.
    unsafe {
        request.write_to(wr(entry), 0);
        entry.add(1)
    }
}

/// Does only `ibv_wr_post(3)` have the operation?
///
/// # Safety
/// An operation must have been put to `entry`.
pub(super) unsafe fn is_extended(entry: *mut Entry) -> bool {
    // SAFETY: so it was written by `Request::write_to`.
    unsafe { op(wr(entry)).is_extended() }
}

/// # Safety
/// As for [`is_extended`].
pub(super) unsafe fn is_op(entry: *mut Entry, wanted: Op, num_sge: u32) -> bool {
    // SAFETY: as above.
    unsafe { crate::verbs::is_one(wr(entry), wanted, num_sge) }
}

/// # Safety
/// `entry` must be a place.
pub(super) unsafe fn data(entry: *mut Entry) -> Where {
    // SAFETY: every place has it, from when it was linked on.
    unsafe { addr_of!((*entry).data).read() }
}
