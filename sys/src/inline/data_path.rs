//! Posting and polling through `ibv_context.ops`.
//!
//! Return values differ between providers: the man pages say a positive errno, soft-iWARP gives a
//! negative one.

use crate::*;
use core::ffi::c_int;

/// Posts a list of work requests to the send queue. 0, or an errno with `*bad_wr` at the first
/// request not posted. `man 3 ibv_post_send`.
///
/// # Safety
/// `qp`, the list and what its entries point to are valid; `bad_wr` is valid for writes. The list
/// may be reused after the call, the buffers (unless posted inline) after the completion.
#[inline]
pub unsafe fn ibv_post_send(
    qp: *mut ibv_qp,
    wr: *mut ibv_send_wr,
    bad_wr: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { ((*(*qp).context).ops.post_send.unwrap_unchecked())(qp, wr, bad_wr) }
}

/// Posts a list of work requests to the receive queue. 0, or an errno with `*bad_wr` at the first
/// request not posted. `man 3 ibv_post_recv`.
///
/// # Safety
/// As for [`ibv_post_send`]; the QP has no SRQ.
#[inline]
pub unsafe fn ibv_post_recv(
    qp: *mut ibv_qp,
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { ((*(*qp).context).ops.post_recv.unwrap_unchecked())(qp, wr, bad_wr) }
}

/// Posts a list of work requests to a shared receive queue. 0, or an errno with `*bad_recv_wr` at
/// the first request not posted. `man 3 ibv_post_srq_recv`.
///
/// # Safety
/// As for [`ibv_post_send`].
#[inline]
pub unsafe fn ibv_post_srq_recv(
    srq: *mut ibv_srq,
    recv_wr: *mut ibv_recv_wr,
    bad_recv_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { ((*(*srq).context).ops.post_srq_recv.unwrap_unchecked())(srq, recv_wr, bad_recv_wr) }
}

/// Takes up to `num_entries` completions: how many were written to `wc`, or a negative number. Does
/// not block. `man 3 ibv_poll_cq`.
///
/// Of a failed completion only `wr_id`, `status`, `qp_num` and `vendor_err` are defined.
///
/// # Safety
/// `cq` is valid, `wc` valid for writes of `num_entries` structs.
#[inline]
pub unsafe fn ibv_poll_cq(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { ((*(*cq).context).ops.poll_cq.unwrap_unchecked())(cq, num_entries, wc) }
}

/// Asks for one event on the CQ's completion channel at the next completion, or with
/// `solicited_only` the next solicited or failed one. 0, or an errno. `man 3 ibv_req_notify_cq`.
///
/// # Safety
/// `cq` is valid.
#[inline]
pub unsafe fn ibv_req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { ((*(*cq).context).ops.req_notify_cq.unwrap_unchecked())(cq, solicited_only) }
}
