//! Waits that another thread ends, and what several threads that wait learn of each other.

mod common;
#[path = "common/epoll.rs"]
#[allow(dead_code)]
mod epoll;

use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use common::*;
use epoll::Epoll;
use rpma::{
    AsyncEventKind, Completion, ConnCfg, ConnEventKind, Error, LocalSlice, Result, Signal, Wait,
    Waker,
};
use standin_control::Standin;

const SOON: Duration = Duration::from_millis(30);

/// Runs `wait` in a thread, and ends it by `waker` before it blocks, and while it does.
fn is_woken<T>(waker: Result<Waker>, wait: impl Fn() -> Result<T> + Sync) {
    let waker = waker.unwrap();
    for pause in [Duration::ZERO, Duration::from_millis(2), SOON] {
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| wait().map(drop));
            std::thread::sleep(pause);
            waker.wake();
            let outcome = waiter.join().unwrap();
            assert!(matches!(outcome, Err(Error::Woken)), "{outcome:?}");
        });
    }
}

#[test]
fn every_wait_for_completions_can_be_woken() {
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    let cq = server.cq();
    is_woken(cq.waker(), || cq.wait());
    is_woken(cq.waker(), || cq.wait_timeout(LONG));
    is_woken(cq.waker(), || cq.wait_event());
    is_woken(cq.waker(), || cq.wait_event_timeout(LONG));
    for wait in [Wait::new(), Wait::block(), Wait::spin()] {
        is_woken(cq.waker(), || {
            cq.take(&mut [Completion::default()], wait).map(<[_]>::len)
        });
    }
    // Nothing is lost by it.
    server.recv(&LocalSlice::EMPTY, 1).unwrap();
    client.send(&LocalSlice::EMPTY, Signal::OnError(2)).unwrap();
    success(cq, 1);
    // A waker needs nothing but itself.
    let waker = cq.waker().unwrap();
    drop((client, server));
    waker.wake();
}

#[test]
fn every_wait_on_a_shared_channel_can_be_woken() {
    let peer = device!();
    let cfg = ConnCfg::new().rcq_size(4).shared_channel(true);
    let pair = pair(&peer, &cfg);
    let conn = &pair.server;
    for cq in [conn.cq(), conn.rcq().unwrap()] {
        is_woken(cq.waker(), || conn.wait().map(drop));
        is_woken(cq.waker(), || conn.wait_timeout(LONG).map(drop));
        is_woken(cq.waker(), || conn.wait_event().map(drop));
    }
}

#[test]
fn every_wait_for_events_can_be_woken() {
    let _alone = alone();
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    is_woken(endpoint.waker(), || endpoint.next_request(&cfg).map(drop));
    is_woken(endpoint.waker(), || endpoint.accept(&cfg, None).map(drop));
    is_woken(endpoint.waker(), || {
        endpoint.next_request_timeout(&cfg, LONG).map(drop)
    });
    let client = ask(&peer, &port, &cfg).connect(None).unwrap();
    is_woken(client.event_waker(), || client.wait_established(LONG));
    is_woken(client.event_waker(), || client.next_event());
    is_woken(client.event_waker(), || client.next_event_timeout(LONG));
    let events = peer.async_events();
    while events.try_next_event().unwrap().is_some() {}
    // The device may have something to tell meanwhile.
    is_woken(events.waker(), || -> Result<()> {
        loop {
            events.next_event()?;
        }
    });
    is_woken(events.waker(), || {
        while events.next_event_timeout(LONG)?.is_some() {}
        Ok(())
    });
    // Nothing is lost by it.
    let server = next(&endpoint, &cfg).connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    server.wait_established(LONG).unwrap();
}

#[test]
fn a_disconnection_ends_a_wait_of_another_thread() {
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| client.next_event().unwrap());
        std::thread::sleep(SOON);
        client.disconnect().unwrap();
        assert_eq!(server.next_event().unwrap().kind(), ConnEventKind::Closed);
        drop(server);
        assert_eq!(waiter.join().unwrap().kind(), ConnEventKind::Closed);
    });
}

#[test]
fn all_threads_learn_that_the_connection_is_established() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    for beside in [0, 1, 2] {
        let client = ask(&peer, &port, &cfg).connect(Some(b"ask")).unwrap();
        let request = next(&endpoint, &cfg);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Who takes the event is back in its wait at once, or another who waits for events
            // came before those who wait for the news.
            for _ in 0..beside {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        if let Err(err) = client.next_event() {
                            assert!(matches!(err, Error::Woken), "{err:?}");
                        }
                    }
                });
            }
            std::thread::sleep(SOON);
            let waiters = [(); 3].map(|()| scope.spawn(|| client.wait_established(LONG)));
            std::thread::sleep(SOON);
            let server = request.connect(Some(b"answer")).unwrap();
            let outcomes = waiters.map(|waiter| waiter.join().unwrap());
            over.store(true, Ordering::Relaxed);
            for _ in 0..beside {
                client.event_waker().unwrap().wake();
            }
            for outcome in outcomes {
                outcome.unwrap();
            }
            assert!(client.private_data().starts_with(b"answer"));
            drop(server);
        });
    }
}

#[test]
fn all_threads_learn_that_the_connection_was_refused() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    let client = ask(&peer, &port, &cfg).connect(None).unwrap();
    let request = next(&endpoint, &cfg);
    std::thread::scope(|scope| {
        let waiters = [(); 3].map(|()| scope.spawn(|| client.wait_established(LONG)));
        std::thread::sleep(SOON);
        request.reject(None).unwrap();
        for waiter in waiters {
            let err = waiter.join().unwrap().unwrap_err();
            assert!(matches!(err, Error::Connection { .. }), "{err:?}");
        }
    });
    // Nor does a later wait wait for what cannot come any more.
    let err = client.wait_established(LONG).unwrap_err();
    assert!(matches!(err, Error::Connection { .. }), "{err:?}");
}

#[test]
fn a_wait_does_not_sleep_beside_a_completion() {
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    let cq = server.cq();
    let message = |id| {
        server.recv(&LocalSlice::EMPTY, id).unwrap();
        client
            .send(&LocalSlice::EMPTY, Signal::Always(100 + id))
            .unwrap();
        success(client.cq(), 100 + id);
    };
    message(1);
    cq.wait_event().unwrap();
    assert_eq!(cq.poll_one().unwrap().unwrap().wr_id(), 1);
    assert!(cq.poll_one().unwrap().is_none());
    // The queue is not armed, and nobody arms it: this gives no event.
    message(2);
    let ready = cq.wait_timeout(LONG).unwrap();
    assert!(ready.is_ready());
    assert_eq!(cq.poll_one().unwrap().unwrap().wr_id(), 2);
    // From here on it is armed.
    assert!(!cq.try_wait().unwrap());
    message(3);
    cq.wait().unwrap();
    assert_eq!(cq.poll_one().unwrap().unwrap().wr_id(), 3);
}

#[test]
fn events_of_a_shared_channel_are_taken_without_arming() {
    let peer = device!();
    let cfg = ConnCfg::new().rcq_size(4).shared_channel(true);
    let Pair { client, server } = pair(&peer, &cfg);
    let rcq = server.rcq().unwrap();
    let message = |id| {
        server.recv(&LocalSlice::EMPTY, id).unwrap();
        client.send(&LocalSlice::EMPTY, Signal::OnError(0)).unwrap();
        until("the message", || {
            let wc = rcq.poll_one().unwrap();
            wc.inspect(|wc| assert_eq!(wc.wr_id(), id)).is_some()
        });
    };
    assert!(server.try_wait_event().unwrap().is_none());
    message(1);
    let fired = server.wait_event_timeout(LONG).unwrap().unwrap();
    assert!(fired.is_rcq && std::ptr::eq(fired.cq, rcq));
    // A burst gives no event, until the queue is armed again.
    for id in 2..5 {
        message(id);
    }
    assert!(server.wait_event_timeout(SOON).unwrap().is_none());
    rcq.arm(false).unwrap();
    message(5);
    assert!(server.wait_event().unwrap().is_rcq);
    // The waits that arm by themselves go on from here: an unarmed queue is news.
    server.recv(&LocalSlice::EMPTY, 6).unwrap();
    client.send(&LocalSlice::EMPTY, Signal::OnError(0)).unwrap();
    until("the message", || {
        let fired = server.wait_timeout(LONG).unwrap().unwrap();
        fired.is_rcq && fired.cq.poll_one().unwrap().is_some()
    });
    // One more may be there, or under way, where the message came right after the arming.
    let more = std::iter::from_fn(|| server.wait_timeout(SOON).unwrap()).count();
    assert!(more <= 1, "{more}");
}

/// As a reactor does it: on an edge, go on until there is nothing. `two` makes two events before
/// the first edge is looked at, and `one` makes another after all were taken.
fn under_edges(fd: &impl AsFd, two: impl FnOnce(), one: impl FnOnce(), take: impl Fn() -> usize) {
    let epoll = Epoll::new();
    epoll.add_edge(fd, 7);
    two();
    let mut taken = 0;
    while taken < 2 {
        assert_eq!(epoll.wait(LONG), [7], "{taken} were taken");
        taken += take();
    }
    one();
    assert_eq!(epoll.wait(LONG), [7]);
    assert_eq!(take(), 1);
}

#[test]
fn edge_triggered_reactors_go_on_until_there_is_no_request() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    let clients = std::cell::RefCell::new(Vec::new());
    let come = || {
        let client = ask(&peer, &port, &cfg).connect(None).unwrap();
        clients.borrow_mut().push(client);
    };
    let two = || {
        come();
        come();
    };
    under_edges(&endpoint, two, come, || {
        let requests = std::iter::from_fn(|| endpoint.try_next_request(&cfg).unwrap());
        requests.map(drop).count()
    });
}

#[test]
fn edge_triggered_reactors_go_on_until_there_is_no_device_event() {
    let _alone = alone();
    let Some(standin) = Standin::exclusive() else {
        skip!("events at will need the stand-in");
    };
    let peer = device!();
    let events = peer.async_events();
    let port_event = || standin.async_event(AsyncEventKind::PORT_ACTIVE.as_raw(), 1);
    let two = || {
        port_event();
        port_event();
    };
    under_edges(&events, two, port_event, || {
        std::iter::from_fn(|| events.try_next_event().unwrap()).count()
    });
}

/// The kernel takes back the unread events of a queue pair that is destroyed. Whoever had seen that
/// the fd is readable then finds nothing to read.
#[test]
fn a_device_event_that_is_taken_back_keeps_nobody_waiting() {
    let _alone = alone();
    let Some(standin) = Standin::exclusive() else {
        skip!("events at will need the stand-in");
    };
    let peer = device!();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for timeout in [Duration::ZERO, Duration::from_millis(1)] {
            let (events, over) = (peer.async_events(), &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    events.next_event_timeout(timeout).unwrap();
                }
            });
        }
        for _ in 0..30 {
            let Pair { client, server } = pair(&peer, &ConnCfg::new());
            for conn in [&client, &server] {
                let qp = conn.as_raw_qp() as usize;
                standin.async_event(AsyncEventKind::QP_FATAL.as_raw(), qp);
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    let events = peer.async_events();
    while events.try_next_event().unwrap().is_some() {}
}

fn is_nonblocking(fd: BorrowedFd<'_>) -> bool {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL).unwrap());
    flags.contains(OFlag::O_NONBLOCK)
}

#[test]
fn all_fds_that_are_read_never_block() {
    let _alone = alone();
    let peer = device!();
    let (endpoint, _) = listen(&peer);
    let srq = rpma::Srq::new(&peer, &rpma::SrqCfg::new()).unwrap();
    let cfg = ConnCfg::new().rcq_size(4);
    let Pair { client, server } = pair_of(&peer, &cfg, &peer, &ConnCfg::new().srq(&srq));
    let events = peer.async_events();
    events.next_event_timeout(Duration::ZERO).unwrap();
    for fd in [
        endpoint.as_fd(),
        client.event_fd(),
        client.cq().as_fd(),
        client.rcq().unwrap().as_fd(),
        server.event_fd(),
        server.rcq().unwrap().as_fd(),
        events.as_fd(),
    ] {
        assert!(is_nonblocking(fd));
    }
}
