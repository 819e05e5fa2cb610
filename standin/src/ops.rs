//! The operations tables, which the headers' inline functions call through.

use rdma_sys as ffi;

use crate::config::Personality;
use crate::{cq, cq_ex, null, post, qp, query, srq};

/// `abi_compat` of a context that has a `verbs_context` around it.
const EXTENDED: usize = usize::MAX;

/// Fills the tables of a context.
pub fn fill(ctx: &mut ffi::verbs_context, personality: Personality, null_mode: bool) {
    ctx.sz = size_of::<ffi::verbs_context>();
    ctx.query_device_ex = Some(query::query_device_ex);
    ctx.query_port = Some(query::query_port);
    ctx.advise_mr = Some(query::advise_mr);
    ctx.create_qp_ex = personality.has_qp_ex().then_some(qp::create_qp_ex as _);
    ctx.create_cq_ex = personality.has_qp_ex().then_some(cq_ex::create_cq_ex as _);
    ctx.context.abi_compat = EXTENDED as *mut libc::c_void;
    let ops = &mut ctx.context.ops;
    ops.post_srq_recv = Some(srq::post_srq_recv);
    if null_mode {
        ops.post_send = Some(null::post_send);
        ops.post_recv = Some(null::post_recv);
        ops.poll_cq = Some(null::poll_cq);
        ops.req_notify_cq = Some(null::req_notify_cq);
    } else {
        ops.post_send = Some(post::post_send);
        ops.post_recv = Some(post::post_recv);
        ops.poll_cq = Some(cq::poll_cq);
        ops.req_notify_cq = Some(cq::req_notify_cq);
    }
}
