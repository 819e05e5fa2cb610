//! Transfers: data, completions, queues, errors.

mod common;

use common::{End, Options, Pair, standin};
use rdma_sys as ffi;
use standin_control::Personality;

const SIGNALLED: u32 = ffi::IBV_SEND_SIGNALED;

fn with_pair(
    personality: Personality,
    port: u16,
    o: Options,
    test: impl FnOnce(&standin_control::Standin, &mut Pair),
) {
    let s = standin(personality);
    let before = s.objects();
    unsafe {
        let mut pair = Pair::new(port, o);
        test(&s, &mut pair);
        pair.close();
    }
    assert_eq!(s.objects(), before);
    assert_eq!(s.violations(), Vec::<String>::new());
}

#[test]
fn write_and_read_move_bytes() {
    for p in [Personality::Rxe, Personality::Siw, Personality::Mlx5] {
        with_pair(p, 7001, Options::default(), |_, pair| unsafe {
            let (a, b) = (&mut pair.active, &mut pair.passive);
            a.memory[..5].copy_from_slice(b"bytes");
            assert_eq!(
                a.post(
                    ffi::IBV_WR_RDMA_WRITE,
                    SIGNALLED,
                    a.sge(0, 5),
                    b.at(100),
                    b.rkey()
                ),
                0
            );
            assert_eq!(&b.memory[100..105], b"bytes");
            let wc = a.poll().unwrap();
            assert_eq!(
                (wc.status, wc.opcode),
                (ffi::IBV_WC_SUCCESS, ffi::IBV_WC_RDMA_WRITE)
            );
            assert_eq!(
                a.post(
                    ffi::IBV_WR_RDMA_READ,
                    SIGNALLED,
                    a.sge(50, 5),
                    b.at(100),
                    b.rkey()
                ),
                0
            );
            assert_eq!(&a.memory[50..55], b"bytes");
            let wc = a.poll().unwrap();
            assert_eq!((wc.opcode, wc.byte_len), (ffi::IBV_WC_RDMA_READ, 5));
        });
    }
}

#[test]
fn send_goes_to_the_posted_receive() {
    for srq in [false, true] {
        let o = Options {
            srq,
            ..Options::default()
        };
        with_pair(Personality::Rxe, 7002, o, |_, pair| unsafe {
            let (a, b) = (&mut pair.active, &mut pair.passive);
            a.memory[..3].copy_from_slice(b"abc");
            // Nothing posted: it waits, for rnr_retry is 7.
            assert_eq!(
                a.post(ffi::IBV_WR_SEND_WITH_IMM, SIGNALLED, a.sge(0, 3), 0, 0),
                0
            );
            assert!(a.poll().is_none());
            assert_eq!(b.post_recv(9, b.sge(10, 20)), 0);
            assert_eq!(a.poll().unwrap().status, ffi::IBV_WC_SUCCESS);
            let wc = b.poll().unwrap();
            assert_eq!((wc.wr_id, wc.byte_len, wc.opcode), (9, 3, ffi::IBV_WC_RECV));
            assert_eq!(wc.wc_flags, ffi::IBV_WC_WITH_IMM);
            assert_eq!(wc.__bindgen_anon_1.imm_data, 0x1234_5678);
            assert_eq!(&b.memory[10..13], b"abc");
        });
    }
}

#[test]
fn write_with_immediate_takes_a_receive() {
    with_pair(
        Personality::Rxe,
        7003,
        Options::default(),
        |_, pair| unsafe {
            let (a, b) = (&mut pair.active, &mut pair.passive);
            b.post_recv(5, b.sge(0, 0));
            a.memory[0] = 7;
            a.post(
                ffi::IBV_WR_RDMA_WRITE_WITH_IMM,
                0,
                a.sge(0, 1),
                b.at(64),
                b.rkey(),
            );
            let wc = b.poll().unwrap();
            assert_eq!(
                (wc.opcode, wc.byte_len),
                (ffi::IBV_WC_RECV_RDMA_WITH_IMM, 1)
            );
            assert_eq!(b.memory[64], 7);
            assert!(a.poll().is_none(), "unsignalled");
        },
    );
}

#[test]
fn no_receive_and_no_retry_is_an_error() {
    let o = Options {
        rnr_retry: 0,
        ..Options::default()
    };
    with_pair(Personality::Rxe, 7004, o, |_, pair| unsafe {
        let a = &pair.active;
        a.post(ffi::IBV_WR_SEND, SIGNALLED, a.sge(0, 1), 0, 0);
        assert_eq!(a.poll().unwrap().status, ffi::IBV_WC_RNR_RETRY_EXC_ERR);
    });
}

#[test]
fn slots_are_free_when_a_later_signalled_one_is_polled() {
    let o = Options {
        send_wr: 2,
        ..Options::default()
    };
    with_pair(Personality::Rxe, 7005, o, |_, pair| unsafe {
        let (a, b) = (&pair.active, &pair.passive);
        let post = |flags| {
            a.post(
                ffi::IBV_WR_RDMA_WRITE,
                flags,
                a.sge(0, 1),
                b.at(0),
                b.rkey(),
            )
        };
        assert_eq!((post(0), post(SIGNALLED), post(0)), (0, 0, libc::ENOMEM));
        a.poll().unwrap();
        assert_eq!((post(0), post(0), post(0)), (0, 0, libc::ENOMEM));
    });
}

#[test]
fn siw_gives_negative_errnos() {
    let o = Options {
        send_wr: 1,
        ..Options::default()
    };
    with_pair(Personality::Siw, 7006, o, |_, pair| unsafe {
        let (a, b) = (&pair.active, &pair.passive);
        let post = |op| a.post(op, 0, a.sge(0, 1), b.at(0), b.rkey());
        assert_eq!(post(ffi::IBV_WR_RDMA_WRITE_WITH_IMM), -libc::EINVAL);
        assert_eq!(
            (post(ffi::IBV_WR_RDMA_WRITE), post(ffi::IBV_WR_RDMA_WRITE)),
            (0, -libc::ENOMEM)
        );
    });
}

fn refused(
    port: u16,
    op: u32,
    sge: impl Fn(&End) -> ffi::ibv_sge,
    to: impl Fn(&End) -> (u64, u32),
    status: u32,
) {
    with_pair(
        Personality::Mlx5,
        port,
        Options::default(),
        |_, pair| unsafe {
            let (a, b) = (&pair.active, &pair.passive);
            b.post_recv(77, b.sge(0, 1));
            assert_eq!(a.post_id(1, op, 0, sge(a), to(b)), 0);
            assert_eq!(a.post_id(2, op, 0, a.sge(0, 1), (b.at(0), b.rkey())), 0);
            assert_eq!(a.statuses(), [(1, status), (2, ffi::IBV_WC_WR_FLUSH_ERR)]);
            if status != ffi::IBV_WC_LOC_PROT_ERR {
                assert_eq!(
                    b.statuses(),
                    [(77, ffi::IBV_WC_WR_FLUSH_ERR)],
                    "the peer fails too"
                );
            }
        },
    );
}

#[test]
fn access_is_checked() {
    let write = ffi::IBV_WR_RDMA_WRITE;
    let ours = |a: &End| a.sge(0, 8);
    refused(
        7010,
        write,
        ours,
        |b| (b.at(4089), b.rkey()),
        ffi::IBV_WC_REM_ACCESS_ERR,
    );
    refused(
        7011,
        write,
        ours,
        |b| (b.at(0) - 1, b.rkey()),
        ffi::IBV_WC_REM_ACCESS_ERR,
    );
    refused(
        7012,
        write,
        ours,
        |b| (b.at(0), b.rkey() + 256),
        ffi::IBV_WC_REM_ACCESS_ERR,
    );
    refused(
        7013,
        write,
        ours,
        |b| (b.at(0), unsafe { (*b.mr).lkey }),
        ffi::IBV_WC_REM_ACCESS_ERR,
    );
    refused(
        7014,
        write,
        |a| a.sge(4090, 8),
        |b| (b.at(0), b.rkey()),
        ffi::IBV_WC_LOC_PROT_ERR,
    );
    let other = |a: &End| ffi::ibv_sge {
        lkey: a.rkey(),
        ..a.sge(0, 8)
    };
    refused(
        7015,
        write,
        other,
        |b| (b.at(0), b.rkey()),
        ffi::IBV_WC_LOC_PROT_ERR,
    );
    // The memory is not registered for atomics.
    refused(
        7016,
        ffi::IBV_WR_ATOMIC_FETCH_AND_ADD,
        ours,
        |b| (b.at(0), b.rkey()),
        ffi::IBV_WC_REM_ACCESS_ERR,
    );
}

/// What Linux 6.12's software devices gave when they were asked (`examples/probe.rs`).
#[test]
fn each_device_has_its_own_words() {
    let short = |p: Personality, port: u16| {
        let mut got = Vec::new();
        with_pair(p, port, Options::default(), |_, pair| unsafe {
            let (a, b) = (&pair.active, &pair.passive);
            b.post_recv(77, b.sge(0, 4));
            b.post_recv(78, b.sge(0, 4));
            a.post_id(1, ffi::IBV_WR_SEND, SIGNALLED, a.sge(0, 8), (0, 0));
            got = a.statuses();
            got.extend(b.statuses());
        });
        got
    };
    let flushed = (78, ffi::IBV_WC_WR_FLUSH_ERR);
    let rem_op = (1, ffi::IBV_WC_REM_OP_ERR);
    assert_eq!(
        short(Personality::Rxe, 7021),
        [rem_op, (77, ffi::IBV_WC_LOC_QP_OP_ERR), flushed]
    );
    let rem_inv = (1, ffi::IBV_WC_REM_INV_REQ_ERR);
    assert_eq!(
        short(Personality::Mlx5, 7022),
        [rem_inv, (77, ffi::IBV_WC_LOC_LEN_ERR), flushed]
    );
    let sent = (1, ffi::IBV_WC_SUCCESS);
    assert_eq!(
        short(Personality::Siw, 7023),
        [sent, (77, ffi::IBV_WC_LOC_LEN_ERR), flushed]
    );

    let bad_source = |p: Personality, port: u16| {
        let mut got = Vec::new();
        with_pair(p, port, Options::default(), |_, pair| unsafe {
            let (a, b) = (&pair.active, &pair.passive);
            a.post_id(
                1,
                ffi::IBV_WR_RDMA_WRITE,
                SIGNALLED,
                a.sge(4090, 8),
                (b.at(0), b.rkey()),
            );
            got = a.statuses();
        });
        got
    };
    assert_eq!(
        bad_source(Personality::Rxe, 7024),
        [(1, ffi::IBV_WC_WR_FLUSH_ERR)]
    );
    assert_eq!(
        bad_source(Personality::Siw, 7025),
        [(1, ffi::IBV_WC_LOC_QP_OP_ERR)]
    );
    assert_eq!(
        bad_source(Personality::Mlx5, 7026),
        [(1, ffi::IBV_WC_LOC_PROT_ERR)]
    );
}

#[test]
fn siw_finds_out_late() {
    let s = standin(Personality::Siw);
    unsafe {
        let pair = Pair::new(7020, Options::default());
        let (a, b) = (&pair.active, &pair.passive);
        a.post_id(
            1,
            ffi::IBV_WR_RDMA_WRITE,
            SIGNALLED,
            a.sge(0, 8),
            (b.at(4090), b.rkey()),
        );
        assert_eq!(a.statuses(), [(1, ffi::IBV_WC_SUCCESS)], "handed to TCP");
        common::expect(a.channel, ffi::RDMA_CM_EVENT_DISCONNECTED);
        common::expect(b.channel, ffi::RDMA_CM_EVENT_DISCONNECTED);
        a.post_id(
            2,
            ffi::IBV_WR_RDMA_WRITE,
            0,
            a.sge(0, 8),
            (b.at(0), b.rkey()),
        );
        assert_eq!(a.statuses(), [], "taken, and never completed");
        pair.active.close();
        pair.passive.close();
    }
    assert_eq!(s.violations(), Vec::<String>::new());
}

#[test]
fn held_transfers_are_executed_when_told() {
    with_pair(
        Personality::Rxe,
        7030,
        Options::default(),
        |s, pair| unsafe {
            let (a, b) = (&mut pair.active, &mut pair.passive);
            s.hold();
            for i in 0..3 {
                a.memory[i] = 1;
                a.post_id(
                    i as u64,
                    ffi::IBV_WR_RDMA_WRITE,
                    SIGNALLED,
                    a.sge(i, 1),
                    (b.at(i), b.rkey()),
                );
            }
            assert_eq!((a.statuses(), b.memory[0]), (vec![], 0));
            s.release(1);
            assert_eq!((a.statuses().len(), b.memory[0], b.memory[1]), (1, 1, 0));
            s.release_all();
            assert_eq!((a.statuses().len(), b.memory[2]), (2, 1));
            assert_eq!(s.executed(), 3);
        },
    );
}

#[test]
fn a_region_deregistered_in_flight_is_an_error() {
    let s = standin(Personality::Rxe);
    unsafe {
        let pair = Pair::new(7031, Options::default());
        let (a, b) = (&pair.active, &pair.passive);
        s.hold();
        a.post_id(
            1,
            ffi::IBV_WR_RDMA_WRITE,
            SIGNALLED,
            a.sge(0, 8),
            (b.at(0), b.rkey()),
        );
        assert_eq!(ffi::ibv_dereg_mr(a.mr), 0);
        s.release_all();
        assert_eq!(a.statuses(), [(1, ffi::IBV_WC_WR_FLUSH_ERR)]);
        // A second time is refused, and noticed.
        assert_eq!(ffi::ibv_dereg_mr(a.mr), libc::EINVAL);
        assert_eq!(s.violations().len(), 1);
        assert!(
            s.violations()[0].contains("was destroyed before"),
            "{:?}",
            s.violations()
        );
    }
}

#[test]
fn an_injected_status_fails_the_queue_pair() {
    with_pair(
        Personality::Rxe,
        7032,
        Options::default(),
        |s, pair| unsafe {
            let (a, b) = (&pair.active, &pair.passive);
            s.inject_status(2, ffi::IBV_WC_RETRY_EXC_ERR);
            for i in 1..=3 {
                a.post_id(
                    i,
                    ffi::IBV_WR_RDMA_WRITE,
                    0,
                    a.sge(0, 1),
                    (b.at(0), b.rkey()),
                );
            }
            assert_eq!(
                a.statuses(),
                [
                    (2, ffi::IBV_WC_RETRY_EXC_ERR),
                    (3, ffi::IBV_WC_WR_FLUSH_ERR)
                ]
            );
        },
    );
}
