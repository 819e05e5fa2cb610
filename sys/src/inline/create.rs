//! Objects made through the extended table.

use super::context::ctx_op;
use super::null_unsupported;
use crate::*;
use core::ffi::c_int;

/// Creates an extended CQ. Null with `errno` on failure: `EOPNOTSUPP` when the provider has no such
/// call or `wc_flags` has a bit outside `IBV_CREATE_CQ_SUP_WC_FLAGS`. `man 3 ibv_create_cq_ex`.
///
/// # Safety
/// `context` is an open context; `cq_attr` is valid, and so are the objects it names.
#[inline]
pub unsafe fn ibv_create_cq_ex(
    context: *mut ibv_context,
    cq_attr: *mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    // SAFETY: the caller's contract.
    if unsafe { (*cq_attr).wc_flags } & !u64::from(IBV_CREATE_CQ_SUP_WC_FLAGS) != 0 {
        return null_unsupported();
    }
    match ctx_op!(context, create_cq_ex) {
        // SAFETY: the caller's contract.
        Some(create) => unsafe { create(context, cq_attr) },
        None => null_unsupported(),
    }
}

/// Creates a QP with extended attributes. Null with `errno` on failure (`EOPNOTSUPP` when the
/// provider has no such call).
///
/// With a `comp_mask` of `IBV_QP_INIT_ATTR_PD` alone this is [`ibv_create_qp`], which every
/// provider has. `man 3 ibv_create_qp_ex`.
///
/// # Safety
/// `context` is an open context; `attr` is valid, and so are the objects it names.
#[inline]
pub unsafe fn ibv_create_qp_ex(
    context: *mut ibv_context,
    attr: *mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    // SAFETY: the caller's contract; the extended attributes begin with the plain ones.
    unsafe {
        if (*attr).comp_mask == IBV_QP_INIT_ATTR_PD {
            return ibv_create_qp((*attr).pd, attr.cast());
        }
    }
    match ctx_op!(context, create_qp_ex) {
        // SAFETY: the caller's contract.
        Some(create) => unsafe { create(context, attr) },
        None => null_unsupported(),
    }
}

/// Creates an SRQ with extended attributes. Null with `errno` on failure (`EOPNOTSUPP` when the
/// provider has no such call).
///
/// A basic SRQ (a PD, and no type or `IBV_SRQT_BASIC`) is made by [`ibv_create_srq`], which every
/// provider has. `man 3 ibv_create_srq_ex`.
///
/// # Safety
/// `context` is an open context; `attr` is valid, and so are the objects it names.
#[inline]
pub unsafe fn ibv_create_srq_ex(
    context: *mut ibv_context,
    attr: *mut ibv_srq_init_attr_ex,
) -> *mut ibv_srq {
    // SAFETY: the caller's contract; the extended attributes begin with the plain ones.
    unsafe {
        let mask = (*attr).comp_mask;
        let plain = mask == IBV_SRQ_INIT_ATTR_PD
            || mask == IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE
                && (*attr).srq_type == IBV_SRQT_BASIC;
        if plain {
            return ibv_create_srq((*attr).pd, attr.cast());
        }
    }
    match ctx_op!(context, create_srq_ex) {
        // SAFETY: the caller's contract.
        Some(create) => unsafe { create(context, attr) },
        None => null_unsupported(),
    }
}

/// Changes the moderation of a CQ. 0, or an errno (`EOPNOTSUPP` without the call).
/// `man 3 ibv_modify_cq`.
///
/// # Safety
/// `cq` and `attr` are valid.
#[inline]
pub unsafe fn ibv_modify_cq(cq: *mut ibv_cq, attr: *mut ibv_modify_cq_attr) -> c_int {
    // SAFETY: the caller's contract.
    match ctx_op!((*cq).context, modify_cq) {
        // SAFETY: the caller's contract.
        Some(modify) => unsafe { modify(cq, attr) },
        None => libc::EOPNOTSUPP,
    }
}

/// Allocates a thread domain. Null with `errno` on failure (`EOPNOTSUPP` without the call).
/// `man 3 ibv_alloc_td`.
///
/// # Safety
/// `context` is an open context, `init_attr` valid.
#[inline]
pub unsafe fn ibv_alloc_td(
    context: *mut ibv_context,
    init_attr: *mut ibv_td_init_attr,
) -> *mut ibv_td {
    match ctx_op!(context, alloc_td) {
        // SAFETY: the caller's contract.
        Some(alloc) => unsafe { alloc(context, init_attr) },
        None => null_unsupported(),
    }
}

/// Frees a thread domain. 0, or an errno (`EOPNOTSUPP` without the call). `man 3 ibv_dealloc_td`.
///
/// # Safety
/// `td` came from [`ibv_alloc_td`] and is used no more.
#[inline]
pub unsafe fn ibv_dealloc_td(td: *mut ibv_td) -> c_int {
    // SAFETY: the caller's contract.
    match ctx_op!((*td).context, dealloc_td) {
        // SAFETY: the caller's contract.
        Some(dealloc) => unsafe { dealloc(td) },
        None => libc::EOPNOTSUPP,
    }
}

/// Allocates a parent domain, freed by [`ibv_dealloc_pd`]. Null with `errno` on failure
/// (`EOPNOTSUPP` without the call). `man 3 ibv_alloc_parent_domain`.
///
/// # Safety
/// `context` is an open context; `attr` is valid, and so are the objects and functions it names.
#[inline]
pub unsafe fn ibv_alloc_parent_domain(
    context: *mut ibv_context,
    attr: *mut ibv_parent_domain_init_attr,
) -> *mut ibv_pd {
    match ctx_op!(context, alloc_parent_domain) {
        // SAFETY: the caller's contract.
        Some(alloc) => unsafe { alloc(context, attr) },
        None => null_unsupported(),
    }
}
