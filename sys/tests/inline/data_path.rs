//! Verbs that go through `ibv_context.ops`.

use crate::fake::{Table, at, call, calls, recorders};
use libc::c_int;
use rpma_sys::*;

recorders! {
    fn post_send(qp: *mut ibv_qp, wr: *mut ibv_send_wr, bad: *mut *mut ibv_send_wr) -> c_int = -12;
    fn post_recv(qp: *mut ibv_qp, wr: *mut ibv_recv_wr, bad: *mut *mut ibv_recv_wr) -> c_int = 12;
    fn post_srq_recv(srq: *mut ibv_srq, wr: *mut ibv_recv_wr, bad: *mut *mut ibv_recv_wr) -> c_int = 13;
    fn poll_cq(cq: *mut ibv_cq, num: c_int, wc: *mut ibv_wc) -> c_int = 3;
    fn req_notify_cq(cq: *mut ibv_cq, solicited: c_int) -> c_int = 5;
}

#[test]
fn posts_polls_and_arms_reach_their_entries() {
    let mut table = Table::new(|table| {
        let ops = &mut table.context.ops;
        ops.post_send = Some(post_send);
        ops.post_recv = Some(post_recv);
        ops.post_srq_recv = Some(post_srq_recv);
        ops.poll_cq = Some(poll_cq);
        ops.req_notify_cq = Some(req_notify_cq);
    });
    let context = table.context();
    let mut qp = ibv_qp {
        context,
        ..Default::default()
    };
    let mut srq = ibv_srq {
        context,
        ..Default::default()
    };
    let mut cq = ibv_cq {
        context,
        ..Default::default()
    };
    let (qp, srq, cq) = (&raw mut qp, &raw mut srq, &raw mut cq);
    let (send, bad_send) = (at::<ibv_send_wr>(0x10), at::<*mut ibv_send_wr>(0x20));
    let (recv, bad_recv) = (at::<ibv_recv_wr>(0x30), at::<*mut ibv_recv_wr>(0x40));
    let wc = at::<ibv_wc>(0x50);
    // SAFETY: made-up objects; the entries only record.
    unsafe {
        // What the provider returns comes back as it is: soft-iWARP's errnos are negative.
        assert_eq!(ibv_post_send(qp, send, bad_send), -12);
        assert_eq!(ibv_post_recv(qp, recv, bad_recv), 12);
        assert_eq!(ibv_post_srq_recv(srq, recv, bad_recv), 13);
        assert_eq!(ibv_poll_cq(cq, 7, wc), 3);
        assert_eq!(ibv_req_notify_cq(cq, 1), 5);
    }
    assert_eq!(
        calls(),
        [
            call!(post_send(qp, send, bad_send)),
            call!(post_recv(qp, recv, bad_recv)),
            call!(post_srq_recv(srq, recv, bad_recv)),
            call!(poll_cq(cq, 7, wc)),
            call!(req_notify_cq(cq, 1)),
        ]
    );
}

#[test]
fn addresses_of_an_id_are_inside_it() {
    let mut id = rdma_cm_id::default();
    let id = &raw mut id;
    // SAFETY: the id is valid, and an address may hold any family.
    unsafe {
        (*rdma_get_local_addr(id)).sa_family = 2;
        (*rdma_get_peer_addr(id)).sa_family = 10;
        assert_eq!((*id).route.addr.__bindgen_anon_1.src_addr.sa_family, 2);
        assert_eq!((*id).route.addr.__bindgen_anon_2.dst_addr.sa_family, 10);
    }
}
