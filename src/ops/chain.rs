//! What a batch does with its places as a whole: looking at them, and posting a chain of them.

use std::ptr::{NonNull, addr_of_mut};

use rdma_sys as ffi;

use super::entry::{Entry, is_extended, is_op, wr};
use crate::{
    Error, Result,
    verbs::{Op, op, start, start_with_elements},
};

/// Refuses `len` operations, more than the `depth` of the queue, that can never all be posted: of a
/// full queue without a signalled operation nobody would hear that it has room, and native
/// operations take all of their doorbell or nothing.
///
/// # Safety
/// There must be so many from `first` on.
pub(super) unsafe fn check_room(first: *mut Entry, len: usize, depth: usize) -> Result<()> {
    // SAFETY: the caller's places.
    let (native, signaled) = unsafe {
        (
            (0..len).any(|n| is_extended(first.add(n))),
            (0..depth).any(|n| (*wr(first.add(n))).send_flags & ffi::IBV_SEND_SIGNALED != 0),
        )
    };
    let limited_by = match (native, signaled) {
        (true, _) => "one doorbell with native operations (ConnCfg::sq_size)",
        (_, false) => "a send queue without a signalled operation in it (ConnCfg::sq_size)",
        (false, true) => return Ok(()),
    };
    Err(Error::AboveLimit {
        argument: "operations of the batch",
        value: len as u64,
        limit: depth as u64,
        limited_by,
    })
}

pub(super) const NO_ELEMENT: ffi::ibv_sge = ffi::ibv_sge {
    addr: 0,
    length: 0,
    lkey: 0,
};

/// How many of `len` places are first parts.
///
/// # Safety
/// There must be so many from `first` on.
pub(super) unsafe fn parts(first: *mut Entry, len: usize) -> usize {
    // SAFETY: the caller's places.
    (0..len)
        .filter(|n| unsafe { (*first.add(*n)).part })
        .count()
}

/// [`chain`] for plain operations, out of line and with its arguments in registers.
///
/// # Safety
/// As for [`chain`].
#[inline(never)]
pub(super) unsafe fn plain_chain(
    ex: NonNull<ffi::ibv_qp_ex>,
    first: *mut Entry,
    end: *mut Entry,
) -> i32 {
    // SAFETY: the caller's contract.
    unsafe { chain::<true>(ex, first, end) }
}

/// Operations between one `ibv_wr_start` and one `ibv_wr_complete`, of which the device takes all
/// or none; gives the provider's return code.
///
/// # Safety
/// From `first` to `end` there must be linked operations, at least one, that the queue pair was
/// created with; `PLAIN` says that none has inline data or several elements.
#[inline(always)]
pub(super) unsafe fn chain<const PLAIN: bool>(
    ex: NonNull<ffi::ibv_qp_ex>,
    first: *mut Entry,
    end: *mut Entry,
) -> i32 {
    let ex = ex.as_ptr();
    let mut entry = first;
    // SAFETY: the caller's operations; the queue pair is alive and extended; start and complete are
    // paired, and nothing in between can return early or panic.
    unsafe {
        ffi::ibv_wr_start(ex);
        loop {
            let request = wr(entry).cast_const();
            (*ex).wr_id = (*request).wr_id;
            (*ex).wr_flags = (*request).send_flags;
            if PLAIN && is_op(entry, Op::Write, 1) {
                start(ex, Op::Write, request);
                let sge = addr_of_mut!((*entry).sge);
                ffi::ibv_wr_set_sge(ex, (*sge).lkey, (*sge).addr, (*sge).length);
            } else if op(request) == Op::Flush {
                start(ex, Op::Flush, request);
            } else {
                start_with_elements(ex, request);
            }
            entry = entry.add(1);
            if entry == end {
                break;
            }
        }
        ffi::ibv_wr_complete(ex)
    }
}
