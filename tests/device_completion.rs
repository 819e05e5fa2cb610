//! The completion side: which queue a completion comes on, and every way to wait for it.

mod common;
#[path = "common/epoll.rs"]
#[allow(dead_code)]
mod epoll;

use std::{
    os::fd::{AsFd, AsRawFd},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use common::*;
use epoll::{Epoll, readable};
use rpma::{
    Completion, ConnCfg, Connection, Cq, Error, LocalRegion, LocalSlice, Peer, Signal, Srq, SrqCfg,
    Usage, Wait, WcOpcode,
};

const SHORT: Duration = Duration::from_millis(30);

/// A pair whose server has receives posted for single messages of 8 bytes.
struct Rig {
    client: Connection,
    server: Connection,
    inbox: LocalRegion,
}

impl Rig {
    fn new(peer: &Peer, cfg: &ConnCfg) -> Self {
        let Pair { client, server } = pair(peer, cfg);
        let inbox = region(peer, 4096, Usage::RECV, |_| 0);
        Rig {
            client,
            server,
            inbox,
        }
    }

    fn slot(&self, n: u64) -> LocalSlice<'_> {
        let at = n % 500 * 8;
        self.inbox.slice(at..at + 8).unwrap()
    }

    /// Posts receive `n`, and sends it a message.
    fn message(&self, n: u64) {
        self.server.recv(&self.slot(n), n).unwrap();
        self.client
            .send_inline(&n.to_le_bytes(), Signal::Always(n))
            .unwrap();
        success(self.client.cq(), n);
    }
}

#[test]
fn receives_complete_on_their_own_queue_where_it_was_asked_for() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new().rcq_size(5));
    let (cq, rcq) = (rig.server.cq(), rig.server.rcq().unwrap());
    assert!(rcq.entries() >= rig.server.rq_size());
    assert!(cq.entries() >= rig.server.sq_size());
    assert_ne!(cq.as_fd().as_raw_fd(), rcq.as_fd().as_raw_fd());
    rig.message(1);
    assert!(rcq.wait_timeout(LONG).unwrap().is_ready());
    assert!(!cq.try_wait().unwrap());
    assert_eq!(success(rcq, 1).opcode(), WcOpcode::RECV);
    rig.client.recv(&rig.slot(2), 2).unwrap();
    rig.server.send_inline(&[2; 8], Signal::Always(3)).unwrap();
    assert!(cq.wait_timeout(LONG).unwrap().is_ready());
    assert_eq!(success(cq, 3).opcode(), WcOpcode::SEND);
    assert!(nothing(rcq));
    success(rig.client.rcq().unwrap(), 2);

    let plain = Rig::new(&peer, &ConnCfg::new());
    assert!(plain.server.rcq().is_none());
    assert!(plain.server.cq().entries() >= plain.server.sq_size() + plain.server.rq_size());
}

#[test]
fn a_shared_channel_is_waited_on_by_the_connection() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new().rcq_size(5).shared_channel(true));
    let server = &rig.server;
    let (cq, rcq) = (server.cq(), server.rcq().unwrap());
    let fd = server.completion_fd().unwrap().as_raw_fd();
    assert_eq!((cq.as_fd().as_raw_fd(), rcq.as_fd().as_raw_fd()), (fd, fd));
    for one in [cq, rcq] {
        let mut buf = [Completion::default()];
        assert!(matches!(one.wait(), Err(Error::SharedChannel)));
        assert!(matches!(one.wait_timeout(SHORT), Err(Error::SharedChannel)));
        assert!(matches!(one.try_wait(), Err(Error::SharedChannel)));
        assert!(matches!(
            one.wait_event_timeout(SHORT),
            Err(Error::SharedChannel)
        ));
        let taken = one.take(&mut buf, Wait::block());
        assert!(matches!(taken, Err(Error::SharedChannel)), "{taken:?}");
        let code = one.wait().unwrap_err().code();
        assert_eq!(code, rpma::code::SHARED_CHANNEL);
    }
    assert!(server.try_wait().unwrap().is_none());
    assert!(server.wait_timeout(SHORT).unwrap().is_none());
    for n in 0..3 {
        server.recv(&rig.slot(n), n).unwrap();
        rig.client.send_inline(&[1; 8], Signal::OnError(n)).unwrap();
        let fired = server.wait().unwrap();
        assert!(fired.is_rcq);
        assert_eq!(fired.cq.poll_one().unwrap().unwrap().wr_id(), n);
        rig.client.recv(&rig.slot(100), n).unwrap();
        server.send_inline(&[1; 8], Signal::Always(10 + n)).unwrap();
        let fired = server.wait_timeout(LONG).unwrap().unwrap();
        assert!(!fired.is_rcq);
        assert_eq!(fired.cq.poll_one().unwrap().unwrap().wr_id(), 10 + n);
    }
    assert!(server.try_wait().unwrap().is_none());

    // And the other way round; also where a channel is shared by one queue alone.
    let plain = Rig::new(&peer, &ConnCfg::new().rcq_size(5));
    assert!(matches!(plain.server.wait(), Err(Error::NotSharedChannel)));
    assert!(matches!(
        plain.server.wait_timeout(SHORT),
        Err(Error::NotSharedChannel)
    ));
    assert!(matches!(
        plain.server.completion_fd(),
        Err(Error::NotSharedChannel)
    ));
    let lone = Rig::new(&peer, &ConnCfg::new().shared_channel(true));
    lone.server.recv(&lone.slot(7), 7).unwrap();
    lone.client
        .send_inline(&[7; 8], Signal::OnError(1))
        .unwrap();
    assert!(!lone.server.wait().unwrap().is_rcq);
    assert_eq!(lone.server.cq().poll_one().unwrap().unwrap().wr_id(), 7);
}

#[test]
fn poll_and_level_triggered_epoll_say_when_there_is_an_event() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new().rcq_size(5));
    let cq = rig.server.rcq().unwrap();
    let epoll = Epoll::new();
    epoll.add(cq, 17);
    assert!(epoll.wait(SHORT).is_empty() && !readable(cq, SHORT));
    for n in 0..4 {
        rig.message(n);
        assert_eq!(epoll.wait(LONG), [17]);
        // Until it is taken.
        assert_eq!(epoll.wait(LONG), [17]);
        assert!(readable(cq, LONG));
        assert!(cq.try_wait().unwrap());
        success(cq, n);
        assert!(epoll.wait(Duration::ZERO).is_empty());
        assert!(!readable(cq, Duration::ZERO));
    }
}

#[test]
fn edge_triggered_epoll_needs_everything_to_be_taken() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new().rcq_size(5));
    let cq = rig.server.rcq().unwrap();
    let epoll = Epoll::new();
    epoll.add_edge(cq, 3);
    let mut taken = 0;
    for round in 0..10u64 {
        for n in 0..1 + round % 3 {
            rig.message(100 * round + n);
        }
        let sent = 1 + round % 3;
        taken = 0;
        // As a reactor does it: on an edge, events until there are none, and completions until
        // there are none.
        while taken < sent {
            assert_eq!(epoll.wait(LONG), [3], "{taken} of {sent} in round {round}");
            while cq.try_wait().unwrap() {
                while let Some(wc) = cq.poll_one().unwrap() {
                    assert_eq!(wc.wr_id(), 100 * round + taken);
                    taken += 1;
                }
            }
        }
        // What was polled before its event came leaves an event behind, and nothing to take.
        while cq.try_wait().unwrap() {}
        epoll.wait(Duration::ZERO);
    }
    assert!(taken > 0);
}

#[test]
fn many_events_are_acknowledged_and_the_queue_can_go() {
    let peer = device!();
    let run = |messages: u64| {
        let rig = Rig::new(&peer, &ConnCfg::new().rcq_size(5));
        let cq = rig.server.rcq().unwrap();
        for n in 0..messages {
            rig.message(n);
            assert!(cq.wait_timeout(LONG).unwrap().is_ready());
            success(cq, n);
        }
        // Nothing of what was taken keeps the destruction waiting.
        let start = Instant::now();
        rig.server.close().unwrap();
        rig.client.close().unwrap();
        assert!(start.elapsed() < Duration::from_secs(20));
    };
    for messages in [0, 1, 63, 64, 65, 200] {
        run(messages);
    }
}

#[test]
fn who_arms_by_hand_gets_one_event_for_each_arming() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new().rcq_size(5));
    let cq = rig.server.rcq().unwrap();
    rig.message(1);
    assert!(cq.wait_event_timeout(LONG).unwrap());
    success(cq, 1);
    // It is not armed now.
    rig.message(2);
    rig.message(3);
    assert!(!cq.wait_event_timeout(SHORT).unwrap());
    // Once it is, what came before gives no event: so one looks again.
    success(cq, 2);
    success(cq, 3);
    cq.arm(false).unwrap();
    assert!(cq.poll_one().unwrap().is_none());
    assert!(!cq.wait_event_timeout(SHORT).unwrap());
    rig.message(4);
    cq.wait_event().unwrap();
    success(cq, 4);
    // And the waits that arm by themselves go on from here.
    rig.message(5);
    success(cq, 5);
    cq.arm(false).unwrap();
    rig.message(6);
    cq.wait().unwrap();
    success(cq, 6);
}

#[test]
fn solicited_events_come_for_solicited_messages_only() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new().rcq_size(8));
    let cq = rig.server.rcq().unwrap();
    rig.message(0);
    assert!(cq.wait_event_timeout(LONG).unwrap());
    success(cq, 0);
    cq.arm(true).unwrap();
    for n in 1..4 {
        rig.message(n);
    }
    until("the messages", || {
        contents(&rig.inbox)[24..32] == 3u64.to_le_bytes()
    });
    assert!(!cq.wait_event_timeout(SHORT).unwrap());
    if iwarp(&peer) {
        skip!("soft-iWARP gives no event for solicited messages");
    }
    rig.server.recv(&rig.slot(4), 4).unwrap();
    rig.client
        .send_inline(&[4; 8], Signal::OnError(4).solicited())
        .unwrap();
    assert!(cq.wait_event_timeout(LONG).unwrap());
    for n in 1..5 {
        success(cq, n);
    }
    cq.arm(true).unwrap();
    rig.server.recv(&LocalSlice::EMPTY, 5).unwrap();
    let log = region(&peer, 8, remote_usage(), |_| 0);
    let outbox = region(&peer, 8, Usage::WRITE_SRC, |_| 5);
    rig.client
        .write_with_imm(
            &outbox.slice(..).unwrap(),
            &remote(&log).whole(),
            55,
            Signal::OnError(5).solicited(),
        )
        .unwrap();
    assert!(cq.wait_event_timeout(LONG).unwrap());
    assert_eq!(success(cq, 5).imm_data(), Some(55));
}

#[test]
fn take_waits_and_takes_in_one_call() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new().rcq_size(16));
    let cq = rig.server.rcq().unwrap();
    let mut buf = [Completion::default(); 4];
    assert!(matches!(
        cq.take(&mut [], Wait::new()),
        Err(Error::InvalidArgument {
            argument: "buf",
            ..
        })
    ));
    for wait in [
        Wait::new(),
        Wait::block(),
        Wait::spin(),
        Wait::new().polls(3),
    ] {
        let start = Instant::now();
        let taken = cq.take(&mut buf, wait.timeout(SHORT)).unwrap();
        assert!(taken.is_empty());
        assert!(
            start.elapsed() >= SHORT && start.elapsed() < LONG,
            "{wait:?}"
        );
        // What is there already, as much as there is room for.
        for n in 0..6 {
            rig.message(n);
        }
        let mut next = 0;
        while next < 6 {
            let taken = cq.take(&mut buf, wait).unwrap();
            assert!(!taken.is_empty() && taken.len() <= 4);
            for wc in taken {
                assert_eq!(wc.wr_id(), next);
                next += 1;
            }
        }
        // What comes while it waits.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(SHORT);
                rig.message(7);
            });
            let taken = cq.take(&mut buf, wait.timeout(LONG)).unwrap();
            assert_eq!((taken.len(), taken[0].wr_id()), (1, 7));
        });
        // Left-over events do not matter to it.
        assert!(cq.take(&mut buf, wait.timeout(SHORT)).unwrap().is_empty());
    }
}

/// Four threads take from `cq` by `wait` what `send` makes come, `total` completions; each comes
/// once. `send` is told how many were taken, so as not to send more than the queue holds.
fn four_take(cq: &Cq, wait: Wait, total: usize, send: impl FnOnce(&AtomicUsize)) {
    let taken = AtomicUsize::new(0);
    let start = Instant::now();
    let mut seen: Vec<u64> = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut mine = Vec::new();
                    let mut buf = [Completion::default(); 3];
                    while taken.load(Ordering::SeqCst) < total {
                        assert!(start.elapsed() < 2 * LONG, "lost: {taken:?} of {total}");
                        let wcs = cq.take(&mut buf, wait).unwrap();
                        taken.fetch_add(wcs.len(), Ordering::SeqCst);
                        mine.extend(wcs.iter().map(|wc| {
                            assert!(wc.is_success(), "{wc:?}");
                            wc.wr_id()
                        }));
                    }
                    mine
                })
            })
            .collect();
        send(&taken);
        takers
            .into_iter()
            .flat_map(|taker| taker.join().unwrap())
            .collect()
    });
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..total as u64));
}

#[test]
fn several_threads_may_take_from_one_queue_and_none_sleeps_through() {
    let peer = device!();
    let srq = Srq::new(&peer, &SrqCfg::new().size(64)).unwrap();
    let Pair { client, server } = pair_of(&peer, &ConnCfg::new(), &peer, &ConnCfg::new().srq(&srq));
    for wait in [Wait::block(), Wait::new().polls(20), Wait::new()] {
        // The end is the one thing that nobody is woken for: those who wait then look up after a
        // second.
        let wait = wait.timeout(Duration::from_millis(1000));
        four_take(server.rcq().unwrap(), wait, 300, |taken| {
            for n in 0..300 {
                let start = Instant::now();
                while n as usize >= taken.load(Ordering::SeqCst) + 32 {
                    assert!(start.elapsed() < LONG, "nobody takes {n}");
                    std::thread::yield_now();
                }
                srq.recv(&LocalSlice::EMPTY, n).unwrap();
                client.send_inline(&[], Signal::Always(n)).unwrap();
                success(client.cq(), n);
                if n % 50 == 0 {
                    // All of them are asleep when the next one comes.
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        });
    }
}

#[test]
fn a_message_wakes_a_waiter_at_once_though_others_wait_too() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new().rcq_size(8));
    let cq = rig.server.rcq().unwrap();
    for round in 0..10 {
        let start = Instant::now();
        std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut buf = [Completion::default()];
                        cq.take(&mut buf, Wait::block().timeout(LONG))
                            .unwrap()
                            .len()
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(5));
            for n in 0..4 {
                rig.message(10 * round + n);
            }
            let woken: usize = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
            assert_eq!(woken, 4);
        });
        assert!(start.elapsed() < LONG / 2, "{:?}", start.elapsed());
    }
}

#[test]
fn the_completion_vector_can_be_chosen() {
    let peer = device!();
    let vectors = peer.capabilities().completion_vectors;
    assert!(vectors >= 1);
    let rig = Rig::new(&peer, &ConnCfg::new().rcq_size(4).comp_vector(vectors - 1));
    rig.message(1);
    assert!(
        rig.server
            .rcq()
            .unwrap()
            .wait_timeout(LONG)
            .unwrap()
            .is_ready()
    );
    success(rig.server.rcq().unwrap(), 1);
    let srq = Srq::new(&peer, &SrqCfg::new().comp_vector(vectors - 1)).unwrap();
    drop(srq);
    let (_endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new().comp_vector(vectors);
    assert!(rpma::ConnRequest::new(&peer, &addr(), &port, &cfg).is_err());
}
