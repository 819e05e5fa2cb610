//! The ways of a batch's operations to the device.

use std::ptr::{NonNull, addr_of, addr_of_mut};

use rdma_sys as ffi;

use super::{
    outcome::list_result,
    place::Entry,
    qp::{Qp, start_flush},
    request::shape,
};
use crate::{
    Call, Result,
    mr::{RemoteSlice, Target},
};

/// Operations, the first of which come after `before` others that were accepted, as one linked list for `ibv_post_send`.
///
/// # Safety
/// `first` must point at `len` operations, at least one, and `sges` at the elements of those that have more than one, one after the other.
pub(super) unsafe fn submit_list(
    qp: &Qp,
    first: *mut Entry,
    len: usize,
    mut sges: *mut ffi::ibv_sge,
    inline: &[u8],
    before: usize,
) -> Result<()> {
    let inline = inline.as_ptr() as u64;
    let mut bad = std::ptr::null_mut();
    // SAFETY: the caller's word.
    let ret = unsafe {
        move_inline(first, len, inline);
        for n in 0..len {
            let entry = first.add(n);
            let wr = (*entry).wr.as_mut_ptr();
            let num_sge = (*entry).num_sge();
            let mut list = addr_of_mut!((*entry).sge);
            if num_sge > 1 {
                list = sges;
                sges = sges.add(num_sge);
            }
            let next = if n + 1 < len {
                entry.add(1)
            } else {
                std::ptr::null_mut()
            };
            addr_of_mut!((*wr).sg_list).write(list);
            addr_of_mut!((*wr).next).write(next.cast());
        }
        qp.post_list(first.cast(), &mut bad)
    };
    let result = list_result(
        Call::IbvPostSend,
        ret,
        first.addr(),
        bad.addr(),
        size_of::<Entry>(),
        len,
        before,
    );
    if result.is_err() {
        // SAFETY: as above.
        unsafe { move_inline(first, len, inline.wrapping_neg()) };
    }
    result
}

/// Moves the addresses of inline elements by `by`: from offsets to addresses before a submit, and back after a failed one.
///
/// # Safety
/// `first` must point at `len` operations.
unsafe fn move_inline(first: *mut Entry, len: usize, by: u64) {
    for n in 0..len {
        // SAFETY: the caller's word.
        unsafe {
            let entry = first.add(n);
            if (*entry).is_inline() {
                (*entry).sge.addr = (*entry).sge.addr.wrapping_add(by);
            }
        }
    }
}

/// Operations between one `ibv_wr_start` and one `ibv_wr_complete`, of which the device takes all or none; gives the provider's return code.
///
/// # Safety
/// From `first` to `end` there must be operations, at least one, that the queue pair was created with. With `GATHERED` the elements of those that have
/// more than one must lie one after the other in `sges`, and the offsets of inline data in `inline`; without, there must be none of either.
#[inline(always)]
pub(super) unsafe fn chain<const GATHERED: bool>(
    ex: NonNull<ffi::ibv_qp_ex>,
    first: *const Entry,
    end: *const Entry,
    mut sges: *const ffi::ibv_sge,
    inline: *const u8,
) -> i32 {
    const WRITE: u64 = shape(1, ffi::IBV_WR_RDMA_WRITE);
    const FLUSH: u64 = shape(0, ffi::IBV_WR_FLUSH);
    let ex = ex.as_ptr();
    let mut entry = first;
    // SAFETY: the caller's word; the queue pair is alive and extended; start and complete are paired and nothing in between can return
    // early or panic.
    unsafe {
        ffi::ibv_wr_start(ex);
        loop {
            let wr = (*entry).wr.as_ptr();
            (*ex).wr_id = (*wr).wr_id;
            (*ex).wr_flags = (*wr).send_flags;
            let sge = addr_of!((*entry).sge);
            match addr_of!((*wr).num_sge).cast::<u64>().read() {
                WRITE if !(GATHERED && (*entry).is_inline()) => {
                    let target = addr_of!((*wr).wr).cast::<Target>();
                    ffi::ibv_wr_rdma_write(ex, (*target).rkey(), (*target).addr());
                    ffi::ibv_wr_set_sge(ex, (*sge).lkey, (*sge).addr, (*sge).length);
                }
                FLUSH => {
                    let kinds = (*wr).__bindgen_anon_1.imm_data;
                    start_flush(ex, &*addr_of!((*wr).wr).cast::<RemoteSlice>(), kinds);
                }
                _ => {
                    let num_sge = (*entry).num_sge();
                    let mut list = sge;
                    if GATHERED && num_sge > 1 {
                        list = sges;
                        sges = sges.add(num_sge);
                    }
                    start_one(ex, wr, std::slice::from_raw_parts(list, num_sge), inline);
                }
            }
            entry = entry.add(1);
            if entry == end {
                break;
            }
        }
        ffi::ibv_wr_complete(ex)
    }
}

/// An operation whose number and flags are set already.
///
/// # Safety
/// Between start and complete on a live extended queue pair that was created with the operation; `wr` was written by
/// [`Request::write_to`]; offsets of inline elements lie inside of what `inline` points at.
#[inline(never)]
unsafe fn start_one(
    ex: *mut ffi::ibv_qp_ex,
    wr: *const ffi::ibv_send_wr,
    list: &[ffi::ibv_sge],
    inline: *const u8,
) {
    // SAFETY: the caller's word; each opcode has the fields that are read for it.
    unsafe {
        let address = addr_of!((*wr).wr.rdma.remote_addr);
        match (*wr).opcode {
            ffi::IBV_WR_RDMA_WRITE => ffi::ibv_wr_rdma_write(ex, (*wr).wr.rdma.rkey, *address),
            ffi::IBV_WR_RDMA_READ => ffi::ibv_wr_rdma_read(ex, (*wr).wr.rdma.rkey, *address),
            ffi::IBV_WR_ATOMIC_WRITE => {
                let value = addr_of!((*wr).wr.atomic.swap);
                return ffi::ibv_wr_atomic_write(ex, (*wr).wr.rdma.rkey, *address, value.cast());
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
