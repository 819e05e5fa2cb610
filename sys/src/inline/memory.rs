//! Registration and advice.

use super::context::ctx_op;
use super::null_unsupported;
use crate::*;
use core::ffi::{c_int, c_uint, c_void};

mod exported {
    use super::*;

    unsafe extern "C" {
        pub fn ibv_reg_mr(
            pd: *mut ibv_pd,
            addr: *mut c_void,
            length: usize,
            access: c_int,
        ) -> *mut ibv_mr;
        pub fn ibv_reg_mr_iova(
            pd: *mut ibv_pd,
            addr: *mut c_void,
            length: usize,
            iova: u64,
            access: c_int,
        ) -> *mut ibv_mr;
    }
}

/// Registers memory. Null with `errno` on failure. `man 3 ibv_reg_mr`.
///
/// Optional access rights ([`IBV_ACCESS_OPTIONAL_RANGE`], such as relaxed ordering) go through
/// [`ibv_reg_mr_iova2`], which leaves them out on a kernel that does not know them, as the macro of
/// this name does in C.
///
/// # Safety
/// `pd` is valid. The device, and with remote rights any peer, reads and writes the `length` bytes
/// at `addr` until the region is deregistered: they stay mapped, and no Rust reference may cover
/// what the device can change.
#[inline]
pub unsafe fn ibv_reg_mr(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut ibv_mr {
    let bits = access as c_uint;
    // SAFETY: the caller's contract.
    unsafe {
        if bits & IBV_ACCESS_OPTIONAL_RANGE == 0 {
            exported::ibv_reg_mr(pd, addr, length, access)
        } else {
            ibv_reg_mr_iova2(pd, addr, length, addr.addr() as u64, bits)
        }
    }
}

/// As [`ibv_reg_mr`], with the remote address that stands for the first byte.
///
/// # Safety
/// As for [`ibv_reg_mr`].
#[inline]
pub unsafe fn ibv_reg_mr_iova(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_int,
) -> *mut ibv_mr {
    let bits = access as c_uint;
    // SAFETY: the caller's contract.
    unsafe {
        if bits & IBV_ACCESS_OPTIONAL_RANGE == 0 {
            exported::ibv_reg_mr_iova(pd, addr, length, iova, access)
        } else {
            ibv_reg_mr_iova2(pd, addr, length, iova, bits)
        }
    }
}

/// Advises the device about ranges of registered memory, such as prefetching on-demand pages. 0, or
/// an errno (`EOPNOTSUPP` without the call). `man 3 ibv_advise_mr`.
///
/// # Safety
/// `pd` is valid, `sg_list` valid for `num_sge` entries.
#[inline]
pub unsafe fn ibv_advise_mr(
    pd: *mut ibv_pd,
    advice: ib_uverbs_advise_mr_advice,
    flags: u32,
    sg_list: *mut ibv_sge,
    num_sge: u32,
) -> c_int {
    // SAFETY: the caller's contract.
    match ctx_op!((*pd).context, advise_mr) {
        // SAFETY: the caller's contract.
        Some(advise) => unsafe { advise(pd, advice, flags, sg_list, num_sge) },
        None => libc::EOPNOTSUPP,
    }
}

/// A region whose reads give nothing and whose writes go nowhere. Null with `errno` on failure
/// (`EOPNOTSUPP` without the call). `man 3 ibv_alloc_null_mr`.
///
/// # Safety
/// `pd` is valid.
#[inline]
pub unsafe fn ibv_alloc_null_mr(pd: *mut ibv_pd) -> *mut ibv_mr {
    // SAFETY: the caller's contract.
    match ctx_op!((*pd).context, alloc_null_mr) {
        // SAFETY: the caller's contract.
        Some(alloc) => unsafe { alloc(pd) },
        None => null_unsupported(),
    }
}
