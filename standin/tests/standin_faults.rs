//! Failures on demand, counts, illegal use, null mode, threads.

mod common;

use std::ptr::null_mut;

use common::*;
use rdma_sys as ffi;
use standin_control::{Knob, Objects, Personality};

const SIGNALLED: u32 = ffi::IBV_SEND_SIGNALED;

#[test]
fn each_kind_of_call_fails_its_own_way() {
    let s = standin(Personality::Rxe);
    unsafe {
        s.fail_nth("rdma_create_event_channel", 1, libc::EMFILE);
        assert!(ffi::rdma_create_event_channel().is_null());
        assert_eq!(errno(), libc::EMFILE);
        assert_eq!(s.faults_fired(), 1);

        let pair = Pair::new(7301, Options::default());
        let (a, b) = (&pair.active, &pair.passive);
        s.fail_nth("ibv_create_cq", 2, 0);
        let cq = ffi::ibv_create_cq((*a.id).verbs, 1, null_mut(), null_mut(), 0);
        assert!(!cq.is_null(), "the first is not meant");
        assert!(ffi::ibv_create_cq((*a.id).verbs, 1, null_mut(), null_mut(), 0).is_null());
        assert_eq!(errno(), libc::ENOMEM);
        s.fail_nth("ibv_destroy_cq", 1, libc::EBUSY);
        assert_eq!(ffi::ibv_destroy_cq(cq), libc::EBUSY);
        assert_eq!(ffi::ibv_destroy_cq(cq), 0);

        s.fail_nth("rdma_disconnect", 1, libc::EIO);
        assert_eq!((ffi::rdma_disconnect(a.id), errno()), (-1, libc::EIO));
        s.fail_nth("ibv_poll_cq", 1, libc::EIO);
        let mut wc = ffi::ibv_wc::default();
        assert!(ffi::ibv_poll_cq(a.cq, 1, &raw mut wc) < 0);

        for e in [libc::EAGAIN, libc::EINTR] {
            s.fail_nth("ibv_get_cq_event", 1, e);
            let (mut cq, mut context) = (null_mut(), null_mut());
            let r = ffi::ibv_get_cq_event(a.comp, &raw mut cq, &raw mut context);
            assert_eq!((r, errno()), (-1, e));
            s.fail_nth("rdma_get_cm_event", 1, e);
            let mut event = null_mut();
            let r = ffi::rdma_get_cm_event(a.channel, &raw mut event);
            assert_eq!((r, errno()), (-1, e));
        }

        // A failed post says where it stopped, and takes nothing.
        s.fail_nth("ibv_post_send", 1, libc::ENOMEM);
        assert_eq!(
            a.post(
                ffi::IBV_WR_RDMA_WRITE,
                SIGNALLED,
                a.sge(0, 1),
                b.at(0),
                b.rkey()
            ),
            libc::ENOMEM
        );
        assert!(a.poll().is_none());
        assert_eq!(s.faults_fired(), 10);
        pair.close();
    }
    assert_eq!(s.violations(), Vec::<String>::new());
}

#[test]
fn calls_are_counted_and_traced() {
    let s = standin(Personality::Rxe);
    unsafe {
        s.start_trace();
        let channel = ffi::rdma_create_event_channel();
        let mut id = null_mut();
        ffi::rdma_create_id(channel, &raw mut id, null_mut(), ffi::RDMA_PS_TCP);
        ffi::rdma_destroy_id(id);
        ffi::rdma_destroy_event_channel(channel);
    }
    let names: Vec<String> = s.trace().into_iter().map(|c| c.name).collect();
    let expected = [
        "rdma_create_event_channel",
        "rdma_create_id",
        "rdma_destroy_id",
        "rdma_destroy_event_channel",
    ];
    assert_eq!(names, expected);
    assert_eq!(s.count("rdma_create_id"), 1);
    assert_eq!(s.calls().len(), 4);
    assert_eq!(s.calls_made(), 4);
    assert!(!s.trace()[3].can_fail && s.trace()[0].can_fail);
}

/// The smallest sweep: each call of a set-up fails once, and nothing is left.
#[test]
fn every_call_of_a_set_up_can_fail() {
    let s = standin(Personality::Rxe);
    unsafe fn set_up() -> bool {
        unsafe {
            let channel = ffi::rdma_create_event_channel();
            if channel.is_null() {
                return false;
            }
            let mut id = null_mut();
            let mut done = false;
            if ffi::rdma_create_id(channel, &raw mut id, null_mut(), ffi::RDMA_PS_TCP) == 0 {
                let mut a = sockaddr(0);
                if ffi::rdma_bind_addr(id, (&raw mut a).cast()) == 0 {
                    let pd = ffi::ibv_alloc_pd((*id).verbs);
                    done = !pd.is_null();
                    if done && ffi::ibv_dealloc_pd(pd) != 0 {
                        done = false;
                        ffi::ibv_dealloc_pd(pd);
                    }
                }
                if ffi::rdma_destroy_id(id) != 0 {
                    done = false;
                    ffi::rdma_destroy_id(id);
                }
            }
            ffi::rdma_destroy_event_channel(channel);
            done
        }
    }
    let before = s.objects();
    s.start_trace();
    assert!(unsafe { set_up() });
    let trace = s.trace();
    assert_eq!(trace.len(), 7);
    for (i, call) in trace.iter().enumerate() {
        s.reset();
        s.fail_call_index(i as u64 + 1);
        assert_eq!(unsafe { set_up() }, !call.can_fail, "{}", call.name);
        assert_eq!(s.faults_fired(), u64::from(call.can_fail), "{}", call.name);
        assert_eq!(s.objects(), before, "{}", call.name);
    }
    assert_eq!(s.violations(), Vec::<String>::new());
}

#[test]
fn an_object_whose_destruction_failed_stays_or_goes() {
    let s = standin(Personality::Rxe);
    unsafe {
        let pair = Pair::new(7305, Options::default());
        let a = &pair.active;
        s.fail_nth("ibv_dereg_mr", 1, libc::EBUSY);
        assert_eq!(ffi::ibv_dereg_mr(a.mr), libc::EBUSY);
        ffi::rdma_destroy_qp(a.id);
        // The region is there still, by the test's own doing: no violation.
        assert_eq!(ffi::ibv_dealloc_pd(a.pd), libc::EBUSY);
        assert_eq!(s.violations(), Vec::<String>::new());
        assert_eq!(ffi::ibv_dereg_mr(a.mr), 0);
        let before = s.objects().pds;
        s.set(Knob::FailedDestroysFree, 1);
        s.fail_nth("ibv_dealloc_pd", 1, libc::EIO);
        assert_eq!(ffi::ibv_dealloc_pd(a.pd), libc::EIO);
        assert_eq!(s.objects().pds, before - 1);
        assert_eq!(s.violations(), Vec::<String>::new());
        // An event is acknowledged even where that was made to fail.
        assert_eq!(ffi::rdma_disconnect(pair.passive.id), 0);
        s.fail_nth("rdma_ack_cm_event", 1, 0);
        let e = event(a.channel);
        assert_eq!(ffi::rdma_ack_cm_event(e), -1);
        assert_eq!(s.objects().cm_events, 0);
    }
}

#[test]
fn use_after_destruction_is_refused() {
    let s = standin(Personality::Rxe);
    unsafe {
        let pair = Pair::new(7302, Options::default());
        let (a, b) = (&pair.active, &pair.passive);
        let qp = (*a.id).qp;
        ffi::rdma_destroy_qp(a.id);
        let (mut sge, mut bad) = (a.sge(0, 1), null_mut());
        let mut wr = ffi::ibv_send_wr {
            sg_list: &raw mut sge,
            num_sge: 1,
            ..Default::default()
        };
        assert_eq!(
            ffi::ibv_post_send(qp, &raw mut wr, &raw mut bad),
            libc::EINVAL
        );
        assert_eq!(bad, &raw mut wr);
        assert!(
            s.violations()[0].starts_with("ibv_post_send: queue pair"),
            "{:?}",
            s.violations()
        );
        assert_eq!(ffi::ibv_destroy_qp(qp), libc::EINVAL);
        // The peer finds nobody there.
        b.post_id(
            1,
            ffi::IBV_WR_RDMA_WRITE,
            0,
            b.sge(0, 1),
            (a.at(0), a.rkey()),
        );
        assert_eq!(b.statuses(), [(1, ffi::IBV_WC_RETRY_EXC_ERR)]);
        assert_eq!(
            (ffi::rdma_destroy_id(b.id), errno()),
            (-1, libc::EBUSY),
            "its queue pair is there"
        );
        assert_eq!(ffi::ibv_dealloc_pd(null_mut()), libc::EINVAL);
        assert_eq!(s.violations().len(), 4);
    }
}

#[test]
fn null_mode_hands_back_what_was_posted() {
    let s = standin(Personality::Rxe);
    unsafe {
        let o = Options {
            send_ops: u64::from(ffi::IBV_QP_EX_WITH_RDMA_WRITE | ffi::IBV_QP_EX_WITH_FLUSH),
            ..Options::default()
        };
        let pair = Pair::new(7303, o);
        s.null(true);
        let (a, b) = (&pair.active, &pair.passive);
        let made = s.calls_made();
        for i in 0..1000u64 {
            a.post_id(
                i,
                ffi::IBV_WR_RDMA_READ,
                SIGNALLED,
                a.sge(0, 1),
                (b.at(0), b.rkey()),
            );
            a.post_id(
                i,
                ffi::IBV_WR_RDMA_WRITE,
                0,
                a.sge(0, 1),
                (b.at(0), b.rkey()),
            );
            let wc = a.poll().unwrap();
            assert_eq!((wc.wr_id, wc.opcode), (i, ffi::IBV_WC_RDMA_READ));
            assert!(a.poll().is_none());
        }
        let qp = ffi::ibv_qp_to_qp_ex((*a.id).qp);
        ffi::ibv_wr_start(qp);
        (*qp).wr_id = 5;
        (*qp).wr_flags = SIGNALLED;
        ffi::ibv_wr_flush(qp, 0, 0, 0, 1, 0);
        assert_eq!(ffi::ibv_wr_complete(qp), 0);
        assert_eq!(a.poll().unwrap().opcode, ffi::IBV_WC_FLUSH);
        assert_eq!(s.calls_made(), made + 1, "only ibv_qp_to_qp_ex");
        s.null(false);
        a.post_id(
            6,
            ffi::IBV_WR_RDMA_WRITE,
            SIGNALLED,
            a.sge(0, 1),
            (b.at(0), b.rkey()),
        );
        assert_eq!(a.statuses(), [(6, 0)]);
        pair.close();
    }
    assert_eq!(s.violations(), Vec::<String>::new());
}

#[test]
fn many_threads_on_one_pair() {
    let s = standin(Personality::Rxe);
    let before = s.objects();
    unsafe {
        let o = Options {
            send_wr: 64,
            cqe: 256,
            ..Options::default()
        };
        let pair = Pair::new(7304, o);
        let (a, b) = (&pair.active, &pair.passive);
        struct Shared<'a>(&'a End, &'a End);
        unsafe impl Sync for Shared<'_> {}
        let ends = Shared(a, b);
        let ends = &ends;
        let done = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for t in 0..4u64 {
                let done = &done;
                scope.spawn(move || {
                    let Shared(a, b) = ends;
                    for i in 0..500 {
                        let to = (b.at(t as usize), b.rkey());
                        while a.post_id(i, ffi::IBV_WR_RDMA_WRITE, SIGNALLED, a.sge(0, 1), to) != 0
                        {
                        }
                        if let Some(wc) = a.poll() {
                            assert_eq!(wc.status, 0);
                            done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let rest = a.statuses().len() as u64;
        assert_eq!(done.into_inner() + rest, 2000);
        pair.close();
    }
    assert_eq!(s.objects(), before);
    let zero = Objects::default();
    assert_eq!(zero.qps, 0);
}
