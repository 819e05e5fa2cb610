//! Waiting: nothing there, something there, in time and not, by method and by fd, from one thread
//! and several.

mod common;
#[path = "common/epoll.rs"]
#[allow(dead_code)]
mod epoll;

use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use common::*;
use rpma::{Completion, ConnCfg, Connection, Error, LocalSlice, Signal, Wait};

const SOON: Duration = Duration::from_millis(30);

/// Is the fd readable, now or within `millis`?
fn readable(fd: BorrowedFd<'_>, millis: u16) -> bool {
    epoll::readable(&fd, Duration::from_millis(millis.into()))
}

/// Is O_NONBLOCK set?
fn nonblocking(fd: BorrowedFd<'_>) -> bool {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL).unwrap());
    flags.contains(OFlag::O_NONBLOCK)
}

/// What `call` gives, which must take `SOON`, and not for ever.
fn takes_its_time<T>(call: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = call();
    let took = start.elapsed();
    assert!(took >= SOON && took < SOON + LONG, "{took:?}");
    result
}

/// A pair whose server has `n` receives of no bytes posted, numbered from 0.
fn waiting_for(peer: &rpma::Peer, cfg: &ConnCfg, n: u64) -> Pair {
    let pair = pair(peer, cfg);
    for id in 0..n {
        pair.server.recv(&LocalSlice::EMPTY, id).unwrap();
    }
    pair
}

/// Sends one message of no bytes.
fn nudge(client: &Connection) {
    client.send(&LocalSlice::EMPTY, Signal::Always(99)).unwrap();
    success(client.cq(), 99);
}

#[test]
fn nothing_there_is_no_error_and_takes_its_time() {
    let peer = device!();
    let (endpoint, _) = listen(&peer);
    let Pair { client, server } = waiting_for(&peer, &ConnCfg::new(), 1);
    let cq = server.cq();
    let mut buf = [Completion::default(); 4];
    assert!(nonblocking(cq.as_fd()));
    assert!(nonblocking(client.event_fd()));
    assert!(nonblocking(endpoint.as_fd()));
    assert!(!cq.try_wait().unwrap());
    assert!(!cq.wait_timeout(Duration::ZERO).unwrap().is_ready());
    assert!(!cq.try_wait_event().unwrap());
    assert!(cq.poll(&mut buf).unwrap().is_empty());
    assert!(cq.poll(&mut []).unwrap().is_empty());
    assert!(cq.poll_one().unwrap().is_none());
    assert!(client.try_next_event().unwrap().is_none());
    let cfg = ConnCfg::new();
    assert!(endpoint.try_next_request(&cfg).unwrap().is_none());

    assert!(!takes_its_time(|| cq
        .wait_timeout(SOON)
        .unwrap()
        .is_ready()));
    assert!(!takes_its_time(|| cq.wait_event_timeout(SOON).unwrap()));
    for wait in [
        Wait::new(),
        Wait::block(),
        Wait::spin(),
        Wait::new().polls(3),
    ] {
        let wait = wait.timeout(SOON);
        assert!(takes_its_time(|| cq
            .take(&mut buf, wait)
            .unwrap()
            .is_empty()));
    }
    assert!(takes_its_time(|| client
        .next_event_timeout(SOON)
        .unwrap()
        .is_none()));
    let request = takes_its_time(|| endpoint.next_request_timeout(&cfg, SOON).unwrap());
    assert!(request.is_none());
    let err = cq.take(&mut [], Wait::new()).unwrap_err();
    assert!(matches!(
        err,
        Error::InvalidArgument {
            argument: "buf",
            ..
        }
    ));
    nudge(&client);
    success(cq, 0);
}

#[test]
fn what_comes_wakes_whoever_waits() {
    let peer = device!();
    let Pair { client, server } = waiting_for(&peer, &ConnCfg::new(), 8);
    let cq = server.cq();
    let mut buf = [Completion::default(); 4];
    let mut waits: [Box<dyn FnMut() -> Option<Completion> + Send>; 4] = [
        Box::new(|| cq.wait().unwrap().poll_one().unwrap()),
        Box::new(|| {
            let ready = cq.wait_timeout(LONG).unwrap();
            assert!(ready.is_ready());
            ready.cq().poll_one().unwrap()
        }),
        Box::new(|| {
            assert!(cq.wait_event_timeout(LONG).unwrap());
            // Whoever takes the event arms; it is this one's turn.
            cq.arm(false).unwrap();
            cq.poll_one().unwrap()
        }),
        Box::new(|| cq.take(&mut buf, Wait::block()).unwrap().first().copied()),
    ];
    for wait in &mut waits {
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                // A wait may end without news: the queue was armed when a completion was there
                // already.
                loop {
                    if let Some(wc) = wait() {
                        return wc;
                    }
                }
            });
            std::thread::sleep(SOON);
            nudge(&client);
            assert!(waiter.join().unwrap().is_success());
        });
    }
    assert!(nothing(cq));
}

#[test]
fn the_fd_says_when_there_is_something() {
    let peer = device!();
    let Pair { client, server } = waiting_for(&peer, &ConnCfg::new(), 8);
    let cq = server.cq();
    for id in 0..8 {
        assert!(!readable(cq.as_fd(), 0));
        nudge(&client);
        assert!(readable(cq.as_fd(), 60_000));
        assert!(cq.try_wait().unwrap());
        assert!(!readable(cq.as_fd(), 0));
        assert!(!cq.try_wait().unwrap());
        assert_eq!(cq.poll_one().unwrap().unwrap().wr_id(), id);
    }
    // Several completions may be one event.
    assert!(!readable(client.event_fd(), 0));
    client.disconnect().unwrap();
    assert!(readable(server.event_fd(), 60_000));
    assert!(server.try_next_event().unwrap().is_some());
}

#[test]
fn an_endpoint_is_readable_when_a_request_waits() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    for _ in 0..3 {
        assert!(!readable(endpoint.as_fd(), 0));
        let client = ask(&peer, &port, &cfg).connect(None).unwrap();
        assert!(!readable(client.event_fd(), 0));
        assert!(readable(endpoint.as_fd(), 60_000));
        let request = endpoint.try_next_request(&cfg).unwrap().unwrap();
        assert!(!readable(endpoint.as_fd(), 0));
        let server = request.connect(None).unwrap();
        assert!(readable(client.event_fd(), 60_000));
        // Taking the answer is what tells the server that the connection stands.
        client.wait_established(LONG).unwrap();
        assert!(readable(server.event_fd(), 60_000));
        // The established connection's events are on its own fd, not on the endpoint's.
        assert!(!readable(endpoint.as_fd(), 0));
        server.wait_established(LONG).unwrap();
    }
}

#[test]
fn an_event_that_came_first_is_not_missed() {
    let peer = device!();
    let Pair { client, server } = waiting_for(&peer, &ConnCfg::new().rq_size(64), 64);
    let cq = server.cq();
    for round in 0..64u64 {
        nudge(&client);
        // Each way to take, in turn; mixed with plain polls, which leave events behind.
        let got = match round % 4 {
            0 => Some(completion(cq)),
            1 => {
                assert!(cq.wait_timeout(LONG).unwrap().is_ready());
                cq.poll_one().unwrap()
            }
            2 => loop {
                if let Some(wc) = cq.poll_one().unwrap() {
                    break Some(wc);
                }
            },
            _ => cq
                .take(&mut [Completion::default()], Wait::block().timeout(LONG))
                .unwrap()
                .first()
                .copied(),
        };
        // What a wait found nothing for is there at the latest now.
        let got = got.unwrap_or_else(|| completion(cq));
        assert_eq!(got.wr_id(), round);
    }
    assert!(nothing(cq));
}

#[test]
fn a_thousand_events_are_all_acknowledged() {
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    let log = region(&peer, 64, remote_usage(), |_| 0);
    let there = remote(&log).slice(0..1).unwrap();
    let events: u64 = if cfg!(debug_assertions) { 300 } else { 1000 };
    for n in 0..events {
        client
            .write_inline(&[n as u8], &there, Signal::Always(n))
            .unwrap();
        while !client.cq().wait_timeout(LONG).unwrap().is_ready() {}
        success(client.cq(), n);
    }
    // An event that was not acknowledged would hold this up for ever.
    client.close().unwrap();
    server.close().unwrap();
}

#[test]
fn each_completion_goes_to_one_thread() {
    let peer = device!();
    const MESSAGES: u64 = 120;
    let cfg = ConnCfg::new().rq_size(MESSAGES as u32);
    let Pair { client, server } = waiting_for(&peer, &cfg, MESSAGES);
    let seen: Vec<AtomicUsize> = (0..MESSAGES).map(|_| AtomicUsize::new(0)).collect();
    let count = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (cq, seen, count) = (server.cq(), &seen, &count);
            scope.spawn(move || {
                let mut buf = [Completion::default(); 3];
                let wait = [Wait::new(), Wait::block()][thread % 2].timeout(SOON);
                while count.load(Ordering::Relaxed) < MESSAGES as usize {
                    let taken = if thread == 3 {
                        cq.wait_timeout(SOON).unwrap().poll(&mut buf).unwrap()
                    } else {
                        cq.take(&mut buf, wait).unwrap()
                    };
                    for wc in taken {
                        assert!(wc.is_success());
                        seen[wc.wr_id() as usize].fetch_add(1, Ordering::Relaxed);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for _ in 0..MESSAGES {
            nudge(&client);
        }
    });
    assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 1));
}

#[test]
fn a_signal_does_not_end_a_wait() {
    extern "C" fn nothing_at_all(_: libc::c_int) {}
    let peer = device!();
    // SAFETY: the handler does nothing, and no SA_RESTART is set, so that calls are interrupted.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing_at_all as *const () as usize;
        assert_eq!(
            libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()),
            0
        );
    }
    let (endpoint, port) = listen(&peer);
    let Pair { client, server } = waiting_for(&peer, &ConnCfg::new(), 2);
    // Waits in a thread of its own, hit by signals, until `end` gives it what it waits for.
    fn survives<T: Send>(wait: impl FnOnce() -> T + Send, end: impl FnOnce()) -> T {
        std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let waiter = scope.spawn(move || {
                // SAFETY: the function needs nothing.
                sender.send(unsafe { libc::pthread_self() }).unwrap();
                wait()
            });
            let thread = receiver.recv().unwrap();
            for _ in 0..5 {
                std::thread::sleep(Duration::from_millis(10));
                // SAFETY: the thread is joined only later.
                unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            }
            end();
            waiter.join().unwrap()
        })
    }
    survives(|| server.cq().wait().map(drop), || nudge(&client)).unwrap();
    success(server.cq(), 0);
    let block = Wait::block().timeout(LONG);
    let take = || {
        server
            .cq()
            .take(&mut [Completion::default()], block)
            .map(<[_]>::len)
    };
    assert_eq!(survives(take, || nudge(&client)).unwrap(), 1);
    // `take` had the last event and armed for none.
    while server.cq().try_wait().unwrap() {}
    let start = Instant::now();
    let pause = Duration::from_millis(200);
    let ready = survives(
        || server.cq().wait_timeout(pause).map(|r| r.is_ready()),
        || (),
    );
    assert!(!ready.unwrap() && start.elapsed() >= pause);
    let cfg = ConnCfg::new();
    let asking = || ask(&peer, &port, &cfg).connect(None).unwrap();
    let mut asked = None;
    let request = survives(|| endpoint.next_request(&cfg), || asked = Some(asking()));
    drop(request.unwrap());
    let event = survives(|| server.next_event(), || client.disconnect().unwrap());
    assert_eq!(event.unwrap().kind(), rpma::ConnEventKind::Closed);
}

#[test]
fn one_channel_for_two_queues() {
    let peer = device!();
    let cfg = ConnCfg::new().rcq_size(4).shared_channel(true);
    let Pair { client, server } = waiting_for(&peer, &cfg, 4);
    let rcq = server.rcq().unwrap();
    for shared in [server.cq(), rcq] {
        for result in [
            shared.wait().map(drop),
            shared.wait_timeout(SOON).map(drop),
            shared.try_wait().map(drop),
            shared
                .take(&mut [Completion::default()], Wait::block())
                .map(drop),
        ] {
            assert!(matches!(result, Err(Error::SharedChannel)), "{result:?}");
        }
    }
    assert!(server.try_wait().unwrap().is_none());
    assert!(takes_its_time(|| server
        .wait_timeout(SOON)
        .unwrap()
        .is_none()));
    assert!(!readable(server.completion_fd().unwrap(), 0));

    client.send(&LocalSlice::EMPTY, Signal::OnError(1)).unwrap();
    assert!(readable(server.completion_fd().unwrap(), 60_000));
    let fired = server.wait().unwrap();
    assert!(fired.is_rcq && std::ptr::eq(fired.cq, rcq));
    assert_eq!(fired.cq.poll_one().unwrap().unwrap().wr_id(), 0);
    assert!(server.cq().poll_one().unwrap().is_none());

    let inbox = LocalSlice::EMPTY;
    client.recv(&inbox, 5).unwrap();
    server.send(&LocalSlice::EMPTY, Signal::Always(2)).unwrap();
    let fired = server.wait_timeout(LONG).unwrap().unwrap();
    assert!(!fired.is_rcq && std::ptr::eq(fired.cq, server.cq()));
    assert_eq!(fired.cq.poll_one().unwrap().unwrap().wr_id(), 2);

    let Pair {
        client,
        server: _server,
    } = pair(&peer, &ConnCfg::new());
    for result in [
        client.wait().map(drop),
        client.wait_timeout(SOON).map(drop),
        client.try_wait().map(drop),
        client.completion_fd().map(drop),
    ] {
        assert!(matches!(result, Err(Error::NotSharedChannel)), "{result:?}");
    }
}

#[test]
fn a_receive_queue_of_its_own() {
    let peer = device!();
    let Pair { client, server } = waiting_for(&peer, &ConnCfg::new().rcq_size(4), 3);
    let rcq = server.rcq().unwrap();
    nudge(&client);
    assert!(rcq.wait_timeout(LONG).unwrap().is_ready());
    success(rcq, 0);
    assert!(nothing(server.cq()));
    // Its fd is its own as well.
    assert!(!readable(server.cq().as_fd(), 0));
    let log = region(&peer, 8, remote_usage(), |_| 0);
    let there = remote(&log).slice(0..1).unwrap();
    server
        .write_inline(&[1], &there, Signal::Always(7))
        .unwrap();
    assert!(server.cq().wait_timeout(LONG).unwrap().is_ready());
    success(server.cq(), 7);
    assert!(nothing(rcq) && !readable(rcq.as_fd(), 0));
}

#[test]
fn only_the_solicited_may_wake() {
    let peer = device!();
    if iwarp(&peer) {
        skip!("iWARP: soft-iWARP wakes for every message");
    }
    let Pair { client, server } = waiting_for(&peer, &ConnCfg::new().rcq_size(8), 4);
    let rcq = server.rcq().unwrap();
    // The first event is armed for at creation; the next is for solicited messages only.
    nudge(&client);
    assert!(rcq.wait_event_timeout(LONG).unwrap());
    rcq.arm(true).unwrap();
    success(rcq, 0);
    nudge(&client);
    success_polled(rcq, 1);
    assert!(!readable(rcq.as_fd(), 30));
    let post = Signal::Always(9).solicited();
    client.send(&LocalSlice::EMPTY, post).unwrap();
    success(client.cq(), 9);
    assert!(readable(rcq.as_fd(), 60_000));
    assert!(rcq.wait_event_timeout(LONG).unwrap());
    success_polled(rcq, 2);
}

/// As `success`, without arming the queue.
fn success_polled(cq: &rpma::Cq, wr_id: u64) {
    until("a completion", || match cq.poll_one().unwrap() {
        Some(wc) => {
            assert!(wc.is_success() && wc.wr_id() == wr_id, "{wc:?}");
            true
        }
        None => false,
    });
}
