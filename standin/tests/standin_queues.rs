//! Completion channels, completion queues, asynchronous events, extended queue pairs.

mod common;

use std::ptr::null_mut;

use common::*;
use rdma_sys as ffi;
use standin_control::{Exclusive, Knob, Personality};

const SIGNALLED: u32 = ffi::IBV_SEND_SIGNALED;
const ALL_OPS: u32 = ffi::IBV_QP_EX_WITH_RDMA_WRITE
    | ffi::IBV_QP_EX_WITH_RDMA_READ
    | ffi::IBV_QP_EX_WITH_SEND
    | ffi::IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
    | ffi::IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
    | ffi::IBV_QP_EX_WITH_FLUSH
    | ffi::IBV_QP_EX_WITH_ATOMIC_WRITE;

fn with_pair(port: u16, o: Options, test: impl FnOnce(&Exclusive, &mut Pair)) {
    let s = standin(Personality::Rxe);
    let before = s.objects();
    unsafe {
        let mut pair = Pair::new(port, o);
        test(&s, &mut pair);
        pair.close();
    }
    assert_eq!(s.objects(), before);
    assert_eq!(s.violations(), Vec::<String>::new());
}

fn readable(fd: i32) -> bool {
    let mut p = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    unsafe { libc::poll(&raw mut p, 1, 0) == 1 }
}

unsafe fn cq_event(end: &End) -> Result<(), i32> {
    unsafe {
        let (mut cq, mut context) = (null_mut(), null_mut());
        if ffi::ibv_get_cq_event(end.comp, &raw mut cq, &raw mut context) != 0 {
            return Err(errno());
        }
        assert_eq!(cq, end.cq);
        Ok(())
    }
}

#[test]
fn an_armed_queue_reports_once() {
    with_pair(7201, Options::default(), |_, pair| unsafe {
        let (a, b) = (&pair.active, &pair.passive);
        let fd = (*a.comp).fd;
        let write = || {
            a.post(
                ffi::IBV_WR_RDMA_WRITE,
                SIGNALLED,
                a.sge(0, 1),
                b.at(0),
                b.rkey(),
            )
        };
        write();
        assert!(!readable(fd), "not armed");
        assert_eq!(ffi::ibv_req_notify_cq(a.cq, 0), 0);
        assert!(!readable(fd), "what was there before does not count");
        write();
        write();
        assert!(readable(fd));
        assert_eq!(cq_event(a), Ok(()));
        assert!(!readable(fd), "only once");
        libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK);
        assert_eq!(cq_event(a), Err(libc::EAGAIN));
        ffi::ibv_ack_cq_events(a.cq, 1);
        assert_eq!(a.statuses().len(), 3);
    });
}

#[test]
fn solicited_only() {
    with_pair(7202, Options::default(), |_, pair| unsafe {
        let (a, b) = (&pair.active, &pair.passive);
        for i in 0..3 {
            b.post_recv(i, b.sge(0, 8));
        }
        assert_eq!(ffi::ibv_req_notify_cq(b.cq, 1), 0);
        a.post(ffi::IBV_WR_SEND, 0, a.sge(0, 1), 0, 0);
        assert!(!readable((*b.comp).fd));
        a.post(ffi::IBV_WR_SEND, ffi::IBV_SEND_SOLICITED, a.sge(0, 1), 0, 0);
        assert!(readable((*b.comp).fd));
        assert_eq!(cq_event(b), Ok(()));
        ffi::ibv_ack_cq_events(b.cq, 1);
    });
}

#[test]
fn a_blocked_reader_wakes() {
    with_pair(7203, Options::default(), |_, pair| unsafe {
        let (a, b) = (&pair.active, &pair.passive);
        ffi::ibv_req_notify_cq(a.cq, 0);
        let comp = a.comp as usize;
        let reader = std::thread::spawn(move || {
            let (mut cq, mut context) = (null_mut(), null_mut());
            let r = ffi::ibv_get_cq_event(comp as *mut _, &raw mut cq, &raw mut context);
            ffi::ibv_ack_cq_events(cq, 1);
            r
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        a.post(
            ffi::IBV_WR_RDMA_WRITE,
            SIGNALLED,
            a.sge(0, 1),
            b.at(0),
            b.rkey(),
        );
        assert_eq!(reader.join().unwrap(), 0);
    });
}

#[test]
fn a_queue_with_unacknowledged_events_cannot_go() {
    let s = standin(Personality::Rxe);
    s.set(Knob::BlockLimitMs, 10);
    unsafe {
        let pair = Pair::new(7204, Options::default());
        let (a, b) = (&pair.active, &pair.passive);
        ffi::ibv_req_notify_cq(a.cq, 0);
        a.post(
            ffi::IBV_WR_RDMA_WRITE,
            SIGNALLED,
            a.sge(0, 1),
            b.at(0),
            b.rkey(),
        );
        cq_event(a).unwrap();
        assert_eq!(s.objects().cq_events, 1);
        assert_eq!(
            ffi::ibv_destroy_cq(a.cq),
            libc::EBUSY,
            "a queue pair uses it"
        );
        ffi::rdma_destroy_qp(a.id);
        assert_eq!(ffi::ibv_destroy_cq(a.cq), libc::EBUSY, "unacknowledged");
        assert_eq!(
            ffi::ibv_destroy_comp_channel(a.comp),
            libc::EBUSY,
            "a queue uses it"
        );
        assert_eq!(s.violations().len(), 3, "{:?}", s.violations());
        ffi::ibv_ack_cq_events(a.cq, 2);
        assert_eq!(s.violations().len(), 4, "one too many");
        assert_eq!(ffi::ibv_destroy_cq(a.cq), 0);
        assert_eq!(ffi::ibv_destroy_cq(a.cq), libc::EINVAL);
        assert_eq!(ffi::ibv_dealloc_pd(a.pd), libc::EBUSY, "a region is in it");
        assert_eq!(s.violations().len(), 6);
    }
}

#[test]
fn an_overrun_queue_fails_its_queue_pairs() {
    let o = Options {
        cqe: 2,
        ..Options::default()
    };
    with_pair(7205, o, |_, pair| unsafe {
        let (a, b) = (&pair.active, &pair.passive);
        let ctx = (*a.id).verbs;
        for i in 0..3 {
            a.post_id(
                i,
                ffi::IBV_WR_RDMA_WRITE,
                SIGNALLED,
                a.sge(0, 1),
                (b.at(0), b.rkey()),
            );
        }
        assert!(readable((*ctx).async_fd));
        let mut e = ffi::ibv_async_event::default();
        assert_eq!(ffi::ibv_get_async_event(ctx, &raw mut e), 0);
        assert_eq!(e.event_type, ffi::IBV_EVENT_CQ_ERR);
        assert_eq!(e.element.cq, a.cq);
        ffi::ibv_ack_async_event(&raw mut e);
        assert_eq!(ffi::ibv_get_async_event(ctx, &raw mut e), 0);
        assert_eq!(
            (e.event_type, e.element.qp),
            (ffi::IBV_EVENT_QP_FATAL, (*a.id).qp)
        );
        ffi::ibv_ack_async_event(&raw mut e);
        assert!(!readable((*ctx).async_fd));
        assert_eq!(a.statuses().len(), 2);
        let mut attr = ffi::ibv_qp_attr::default();
        let mut init = ffi::ibv_qp_init_attr::default();
        assert_eq!(
            ffi::ibv_query_qp((*a.id).qp, &raw mut attr, 1, &raw mut init),
            0
        );
        assert_eq!(attr.qp_state, ffi::IBV_QPS_ERR);
    });
}

#[test]
fn an_srq_tells_when_it_runs_low() {
    let o = Options {
        srq: true,
        ..Options::default()
    };
    with_pair(7206, o, |_, pair| unsafe {
        let (a, b) = (&pair.active, &pair.passive);
        b.post_recv(1, b.sge(0, 8));
        b.post_recv(2, b.sge(0, 8));
        let mut attr = ffi::ibv_srq_attr {
            srq_limit: 2,
            ..Default::default()
        };
        assert_eq!(
            ffi::ibv_modify_srq(b.srq, &raw mut attr, ffi::IBV_SRQ_LIMIT as i32),
            0
        );
        a.post(ffi::IBV_WR_SEND, 0, a.sge(0, 1), 0, 0);
        let mut e = ffi::ibv_async_event::default();
        assert_eq!(ffi::ibv_get_async_event((*b.id).verbs, &raw mut e), 0);
        assert_eq!(
            (e.event_type, e.element.srq),
            (ffi::IBV_EVENT_SRQ_LIMIT_REACHED, b.srq)
        );
        ffi::ibv_ack_async_event(&raw mut e);
    });
}

#[test]
fn a_test_can_send_asynchronous_events() {
    with_pair(7207, Options::default(), |s, pair| unsafe {
        let ctx = (*pair.active.id).verbs;
        s.async_event(ffi::IBV_EVENT_PORT_ERR, 1);
        let mut e = ffi::ibv_async_event::default();
        assert_eq!(ffi::ibv_get_async_event(ctx, &raw mut e), 0);
        assert_eq!(
            (e.event_type, e.element.port_num),
            (ffi::IBV_EVENT_PORT_ERR, 1)
        );
        ffi::ibv_ack_async_event(&raw mut e);
        s.async_event(ffi::IBV_EVENT_QP_FATAL, (*pair.active.id).qp as usize);
        assert!(readable((*ctx).async_fd));
    });
    // The event went with its queue pair.
}

/// Takes one end's completions on one line.
unsafe fn wcs(end: &End) -> Vec<(u64, u32, u32)> {
    let mut all = Vec::new();
    while let Some(wc) = unsafe { end.poll() } {
        all.push((wc.wr_id, wc.status, wc.opcode));
    }
    all
}

fn extended(port: u16, test: impl FnOnce(&Exclusive, &mut Pair)) {
    let o = Options {
        send_ops: u64::from(ALL_OPS),
        ..Options::default()
    };
    with_pair(port, o, test);
}

/// Memory registered with native flush rights.
unsafe fn flushable(end: &mut End, access: u32) -> *mut ffi::ibv_mr {
    unsafe {
        let all = access | ffi::IBV_ACCESS_LOCAL_WRITE | ffi::IBV_ACCESS_REMOTE_WRITE;
        ffi::ibv_reg_mr(end.pd, end.memory.as_mut_ptr().cast(), 4096, all as i32)
    }
}

#[test]
fn one_list_writes_flushes_and_commits() {
    extended(7210, |s, pair| unsafe {
        let (a, b) = (&mut pair.active, &mut pair.passive);
        assert!(flushable(b, ffi::IBV_ACCESS_FLUSH_PERSISTENT).is_null());
        assert_eq!(errno(), libc::EINVAL, "plain memory");
        s.declare_persistent(b.memory.as_ptr(), 4096);
        let mr = flushable(
            b,
            ffi::IBV_ACCESS_FLUSH_PERSISTENT | ffi::IBV_ACCESS_FLUSH_GLOBAL,
        );
        assert!(!mr.is_null());
        let qp = ffi::ibv_qp_to_qp_ex((*a.id).qp);
        a.memory[..4].copy_from_slice(b"data");
        let rkey = (*mr).rkey;
        ffi::ibv_wr_start(qp);
        (*qp).wr_id = 1;
        (*qp).wr_flags = 0;
        ffi::ibv_wr_rdma_write(qp, rkey, b.at(64));
        ffi::ibv_wr_set_sge(qp, (*a.mr).lkey, a.at(0), 4);
        (*qp).wr_id = 2;
        ffi::ibv_wr_flush(
            qp,
            rkey,
            b.at(64),
            4,
            ffi::IBV_FLUSH_PERSISTENT as u8,
            ffi::IBV_FLUSH_RANGE as u8,
        );
        (*qp).wr_id = 3;
        let value = 7u64;
        ffi::ibv_wr_atomic_write(qp, rkey, b.at(0), (&raw const value).cast());
        (*qp).wr_id = 4;
        (*qp).wr_flags = SIGNALLED;
        ffi::ibv_wr_flush(
            qp,
            rkey,
            0,
            0,
            ffi::IBV_FLUSH_GLOBAL as u8,
            ffi::IBV_FLUSH_MR as u8,
        );
        assert_eq!(b.memory[64], 0, "nothing before wr_complete");
        assert_eq!(ffi::ibv_wr_complete(qp), 0);
        assert_eq!(&b.memory[64..68], b"data");
        assert_eq!(&b.memory[..8], &7u64.to_ne_bytes());
        assert_eq!(wcs(a), [(4, ffi::IBV_WC_SUCCESS, ffi::IBV_WC_FLUSH)]);
        assert_eq!(ffi::ibv_dereg_mr(mr), 0);
    });
}

fn flush_gives(port: u16, range: (usize, usize), kind: u32, access: u32, status: u32) {
    extended(port, |_, pair| unsafe {
        let (a, b) = (&mut pair.active, &mut pair.passive);
        let mr = flushable(b, access);
        assert!(!mr.is_null());
        let qp = ffi::ibv_qp_to_qp_ex((*a.id).qp);
        ffi::ibv_wr_start(qp);
        (*qp).wr_flags = SIGNALLED;
        (*qp).wr_id = 1;
        ffi::ibv_wr_flush(qp, (*mr).rkey, b.at(range.0), range.1, kind as u8, 0);
        assert_eq!(ffi::ibv_wr_complete(qp), 0);
        assert_eq!(wcs(a), [(1, status, ffi::IBV_WC_FLUSH)]);
        assert_eq!(ffi::ibv_dereg_mr(mr), 0);
    });
}

#[test]
fn flush_is_checked() {
    let (global, persistent) = (ffi::IBV_FLUSH_GLOBAL, ffi::IBV_FLUSH_PERSISTENT);
    let right = ffi::IBV_ACCESS_FLUSH_GLOBAL;
    flush_gives(7220, (0, 4096), global, right, ffi::IBV_WC_SUCCESS);
    flush_gives(7221, (0, 4097), global, right, ffi::IBV_WC_REM_ACCESS_ERR);
    flush_gives(7222, (0, 8), persistent, right, ffi::IBV_WC_REM_ACCESS_ERR);
    flush_gives(7223, (0, 8), global, 0, ffi::IBV_WC_REM_ACCESS_ERR);
}

#[test]
fn a_queue_pair_without_flush_access_refuses_it() {
    extended(7224, |_, pair| unsafe {
        let (a, b) = (&mut pair.active, &mut pair.passive);
        let mr = flushable(b, ffi::IBV_ACCESS_FLUSH_GLOBAL);
        let mut attr = ffi::ibv_qp_attr {
            qp_access_flags: ffi::IBV_ACCESS_REMOTE_WRITE,
            ..Default::default()
        };
        let mask = ffi::IBV_QP_ACCESS_FLAGS as i32;
        assert_eq!(ffi::ibv_modify_qp((*b.id).qp, &raw mut attr, mask), 0);
        let qp = ffi::ibv_qp_to_qp_ex((*a.id).qp);
        ffi::ibv_wr_start(qp);
        (*qp).wr_flags = SIGNALLED;
        ffi::ibv_wr_flush(qp, (*mr).rkey, b.at(0), 8, ffi::IBV_FLUSH_GLOBAL as u8, 0);
        assert_eq!(ffi::ibv_wr_complete(qp), 0);
        assert_eq!(wcs(a)[0].1, ffi::IBV_WC_REM_INV_REQ_ERR);
        assert_eq!(ffi::ibv_dereg_mr(mr), 0);
    });
}

#[test]
fn a_list_is_taken_whole_or_not_at_all() {
    extended(7225, |_, pair| unsafe {
        let (a, b) = (&mut pair.active, &mut pair.passive);
        let qp = ffi::ibv_qp_to_qp_ex((*a.id).qp);
        let list = |n: usize| {
            ffi::ibv_wr_start(qp);
            (*qp).wr_flags = SIGNALLED;
            for _ in 0..n {
                ffi::ibv_wr_rdma_write(qp, b.rkey(), b.at(0));
                ffi::ibv_wr_set_sge(qp, (*a.mr).lkey, a.at(0), 4);
            }
        };
        list(17);
        assert_eq!(ffi::ibv_wr_complete(qp), libc::ENOMEM);
        assert!(wcs(a).is_empty());
        list(3);
        ffi::ibv_wr_abort(qp);
        list(16);
        assert_eq!(ffi::ibv_wr_complete(qp), 0);
        assert_eq!(wcs(a).len(), 16);
        // rxe goes by the flag, not by the setter alone.
        ffi::ibv_wr_start(qp);
        ffi::ibv_wr_rdma_write(qp, b.rkey(), b.at(0));
        ffi::ibv_wr_set_inline_data(qp, a.memory.as_mut_ptr().cast(), 4);
        assert_eq!(ffi::ibv_wr_complete(qp), libc::EINVAL);
        ffi::ibv_wr_start(qp);
        (*qp).wr_flags = ffi::IBV_SEND_INLINE | SIGNALLED;
        a.memory[0] = 42;
        ffi::ibv_wr_rdma_write(qp, b.rkey(), b.at(0));
        ffi::ibv_wr_set_inline_data(qp, a.memory.as_mut_ptr().cast(), 4);
        assert_eq!(ffi::ibv_wr_complete(qp), 0);
        assert_eq!(b.memory[0], 42);
    });
}

#[test]
fn atomics_are_atomic() {
    extended(7226, |_, pair| unsafe {
        let (a, b) = (&mut pair.active, &mut pair.passive);
        let access = ffi::IBV_ACCESS_REMOTE_ATOMIC | ffi::IBV_ACCESS_LOCAL_WRITE;
        let mr = ffi::ibv_reg_mr(b.pd, b.memory.as_mut_ptr().cast(), 4096, access as i32);
        let at = b.memory.as_ptr().align_offset(8);
        let qp = ffi::ibv_qp_to_qp_ex((*a.id).qp);
        ffi::ibv_wr_start(qp);
        (*qp).wr_flags = SIGNALLED;
        ffi::ibv_wr_atomic_fetch_add(qp, (*mr).rkey, b.at(at), 5);
        ffi::ibv_wr_set_sge(qp, (*a.mr).lkey, a.at(0), 8);
        ffi::ibv_wr_atomic_cmp_swp(qp, (*mr).rkey, b.at(at), 5, 9);
        ffi::ibv_wr_set_sge(qp, (*a.mr).lkey, a.at(8), 8);
        assert_eq!(ffi::ibv_wr_complete(qp), 0);
        assert_eq!(wcs(a).len(), 2);
        assert_eq!(a.memory[..8], 0u64.to_ne_bytes());
        assert_eq!(a.memory[8..16], 5u64.to_ne_bytes());
        assert_eq!(b.memory[at..at + 8], 9u64.to_ne_bytes());
        ffi::ibv_wr_start(qp);
        ffi::ibv_wr_atomic_fetch_add(qp, (*mr).rkey, b.at(at + 1), 5);
        ffi::ibv_wr_set_sge(qp, (*a.mr).lkey, a.at(0), 8);
        assert_eq!(ffi::ibv_wr_complete(qp), 0);
        assert_eq!(wcs(a)[0].1, ffi::IBV_WC_REM_INV_REQ_ERR, "not aligned");
        assert_eq!(ffi::ibv_dereg_mr(mr), 0);
    });
}
