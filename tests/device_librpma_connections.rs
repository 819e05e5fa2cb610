//! What librpma gets wrong in connections and waits, done right here (docs/librpma.md).
//!
//! `device_librpma_operations` has operations and memory, `device_faults` what needs a failing
//! call, `device_async` the events of a device, `device_network` names with several addresses, and
//! the tests of the C interface what only C can do.

mod common;

use std::{
    os::fd::{AsFd, AsRawFd},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use common::*;
use rpma::{
    CmEventKind, ConnCfg, ConnEventKind, Connection, Endpoint, Error, LocalSlice, Peer, Signal,
    Srq, SrqCfg, Usage, WcStatus, capi_support,
};

const SHORT: Duration = Duration::from_millis(30);

#[test]
fn a_dropped_request_is_rejected_and_its_id_given_back() {
    let _alone = alone();
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let reject = || {
        let client = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
        drop(next(&endpoint, &ConnCfg::new()));
        assert_eq!(refusal(&client).0, CmEventKind::REJECTED);
    };
    reject();
    let before = held();
    for _ in 0..100 {
        reject();
    }
    given_back(&before);
}

#[test]
fn a_failed_accept_rejects_and_gives_back() {
    let _alone = alone();
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let refuse = || {
        let client = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
        let refused = next(&endpoint, &ConnCfg::new()).connect(Some(&[0; 256]));
        assert!(matches!(refused, Err(Error::TooLong { .. })), "{refused:?}");
        assert_eq!(refusal(&client).0, CmEventKind::REJECTED);
    };
    refuse();
    let before = held();
    for _ in 0..10 {
        refuse();
    }
    given_back(&before);
}

#[test]
fn queues_that_cannot_be_made_reject_the_request() {
    let _alone = alone();
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let caps = peer.capabilities();
    let refuse = |cfg: &ConnCfg| {
        let client = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
        let refused = endpoint.next_request_timeout(cfg, LONG);
        assert!(refused.is_err(), "{refused:?}");
        assert_eq!(refusal(&client).0, CmEventKind::REJECTED);
    };
    let queue_pair = ConnCfg::new().sq_size(caps.max_queue_depth + 1);
    let completion_queue = ConnCfg::new().cq_size(caps.max_cq_entries.saturating_add(1));
    let configuration = ConnCfg::new().max_sge(0);
    refuse(&queue_pair);
    let before = held();
    for _ in 0..5 {
        for cfg in [&queue_pair, &completion_queue, &configuration] {
            refuse(cfg);
        }
    }
    given_back(&before);
    // The endpoint goes on.
    let client = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
    let server = next(&endpoint, &ConnCfg::new()).connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    server.wait_established(LONG).unwrap();
}

static INTERRUPTED: AtomicUsize = AtomicUsize::new(0);

/// Interrupts the system calls of `wait`, which another thread is in, several times; then does
/// `end`.
fn interrupted<T: Send>(wait: impl FnOnce() -> T + Send, end: impl FnOnce()) -> T {
    extern "C" fn note(_: libc::c_int) {
        INTERRUPTED.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the handler only counts; all-zero bytes are a valid action, without SA_RESTART.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = note as extern "C" fn(libc::c_int) as usize;
        assert_eq!(
            libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()),
            0
        );
    }
    let (send, thread) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            // SAFETY: the function needs nothing.
            send.send(unsafe { libc::pthread_self() }).unwrap();
            wait()
        });
        let thread = thread.recv().unwrap();
        let before = INTERRUPTED.load(Ordering::Relaxed);
        until("interruptions", || {
            std::thread::sleep(Duration::from_millis(5));
            // SAFETY: the thread is alive: what it waits for has not come.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            INTERRUPTED.load(Ordering::Relaxed) >= before + 5
        });
        end();
        waiter.join().unwrap()
    })
}

#[test]
fn nothing_yet_is_no_error_and_interruptions_are_retried() {
    let _alone = alone();
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    assert!(endpoint.try_next_request(&cfg).unwrap().is_none());
    assert!(
        endpoint
            .next_request_timeout(&cfg, SHORT)
            .unwrap()
            .is_none()
    );
    assert!(
        capi_support::next_request(&endpoint, &cfg)
            .unwrap()
            .is_none()
    );
    let mut client = None;
    let request = interrupted(
        || endpoint.next_request(&cfg).unwrap(),
        || client = Some(ask(&peer, &port, &cfg).connect(None).unwrap()),
    );
    let (client, server) = (client.unwrap(), request.connect(None).unwrap());
    client.wait_established(LONG).unwrap();
    server.wait_established(LONG).unwrap();

    let inbox = region(&peer, 64, Usage::RECV, |_| 0);
    for _ in 0..2 {
        assert_eq!(server.try_next_event().unwrap(), None);
        assert_eq!(server.next_event_timeout(SHORT).unwrap(), None);
        assert!(!server.cq().try_wait().unwrap());
        assert!(!server.cq().wait_timeout(SHORT).unwrap().is_ready());
        assert!(!server.cq().wait_event_timeout(SHORT).unwrap());
        assert!(server.cq().poll_one().unwrap().is_none());
        assert_eq!(capi_support::next_event(&server).unwrap(), None);
        assert!(!capi_support::wait_cq(server.cq()).unwrap());
        server.recv(&inbox.slice(..).unwrap(), 1).unwrap();
        interrupted(
            || server.cq().wait().map(|_| ()).unwrap(),
            || client.send_inline(b"wake up", Signal::OnError(2)).unwrap(),
        );
        success(server.cq(), 1);
    }
    let event = interrupted(
        || server.next_event().unwrap(),
        || client.disconnect().unwrap(),
    );
    assert_eq!(event.kind(), ConnEventKind::Closed);
}

#[test]
fn every_device_gets_a_connection() {
    let _alone = alone();
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new().device_workarounds(false));
    let caps = peer.capabilities();
    for conn in [&client, &server] {
        assert_eq!(conn.has_native_atomic_write(), caps.native_atomic_write);
        assert_eq!(
            conn.has_native_flush(rpma::FlushKind::Visibility),
            caps.native_flush_visibility
        );
    }
    let log = region(&peer, 8, remote_usage(), |_| 0);
    client
        .write_inline(b"anywhere", &remote(&log).whole(), Signal::Always(1))
        .unwrap();
    success(client.cq(), 1);
}

#[test]
fn no_event_of_a_connection_lands_on_its_endpoint() {
    let _alone = alone();
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    for _ in 0..20 {
        let client = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
        let server = next(&endpoint, &ConnCfg::new()).connect(None).unwrap();
        client.wait_established(LONG).unwrap();
        // It is on its way, and not to be taken by those who look for requests.
        let taken = endpoint.next_request_timeout(&ConnCfg::new(), SHORT);
        assert!(taken.unwrap().is_none());
        server.wait_established(LONG).unwrap();
        drop(client);
        let taken = endpoint.try_next_request(&ConnCfg::new());
        assert!(taken.unwrap().is_none());
        let event = server.next_event_timeout(LONG).unwrap().unwrap();
        assert_eq!(event.cm_kind(), CmEventKind::DISCONNECTED);
    }
}

#[test]
fn a_request_outlives_its_endpoint() {
    let _alone = alone();
    let peer = device!();
    let run = || {
        let (endpoint, port) = listen(&peer);
        let taken = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
        let request = next(&endpoint, &ConnCfg::new());
        let waiting = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
        until("the second request", || {
            rpma_poll(&endpoint, Duration::from_millis(10))
        });
        drop(endpoint);
        // What nobody took is refused; what was taken can be accepted, and used.
        assert_eq!(refusal(&waiting).0, CmEventKind::REJECTED);
        let server = request.connect(None).unwrap();
        taken.wait_established(LONG).unwrap();
        server.wait_established(LONG).unwrap();
        drop(server);
        let event = taken.next_event_timeout(LONG).unwrap().unwrap();
        assert_eq!(event.kind(), ConnEventKind::Closed);
    };
    run();
    let before = held();
    for _ in 0..3 {
        run();
    }
    given_back(&before);
}

/// Is the fd readable within the time?
fn rpma_poll(fd: &impl AsFd, timeout: Duration) -> bool {
    let mut fds = [libc::pollfd {
        fd: fd.as_fd().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    }];
    // SAFETY: a list of one.
    unsafe { libc::poll(fds.as_mut_ptr(), 1, timeout.as_millis() as i32) == 1 }
}

/// Fills both queues of `server`, ends the connection, and counts what comes.
fn overrun(peer: &Peer, cfg: &ConnCfg) {
    let (endpoint, port) = listen(peer);
    let client = ask(peer, &port, &ConnCfg::new()).connect(None).unwrap();
    let server = next(&endpoint, cfg).connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    server.wait_established(LONG).unwrap();
    let inbox = region(peer, 64, Usage::RECV, |_| 0);
    let log = region(peer, 64, remote_usage(), |_| 0);
    let word = remote(&log).slice(0..8).unwrap();
    // Not until a queue refuses: a device may free a place before the completion is taken.
    let (sends, receives) = (u64::from(server.sq_size()), u64::from(server.rq_size()));
    for n in 0..receives {
        server.recv(&inbox.slice(..).unwrap(), 1000 + n).unwrap();
    }
    for n in 0..sends {
        server
            .write_inline(&[1; 8], &word, Signal::Always(n))
            .unwrap();
    }
    assert!(receives >= 7 && sends >= 5, "{receives} {sends}");
    client.disconnect().unwrap();
    let event = server.next_event_timeout(LONG).unwrap().unwrap();
    assert_eq!(event.kind(), ConnEventKind::Closed);
    // The queue pair ends with its own side's disconnection; on iWARP it has ended already.
    let _ = server.disconnect();
    // Without a look at them in between.
    let mut seen = Vec::new();
    let rcq = server.rcq().unwrap_or(server.cq());
    let start = Instant::now();
    while (seen.len() as u64) < sends + receives {
        for cq in [server.cq(), rcq] {
            while let Some(wc) = cq.poll_one().unwrap() {
                seen.push((wc.wr_id(), wc.status()));
            }
        }
        assert!(start.elapsed() < LONG, "{sends}, {receives}: {seen:?}");
    }
    seen.sort_by_key(|(wr_id, _)| *wr_id);
    let ids: Vec<u64> = seen.iter().map(|(wr_id, _)| *wr_id).collect();
    assert!(
        ids.iter()
            .copied()
            .eq((0..sends).chain(1000..1000 + receives))
    );
    for (wr_id, status) in seen {
        if wr_id >= 1000 {
            assert_eq!(status, WcStatus::WR_FLUSH_ERR, "{wr_id}");
        }
    }
}

#[test]
fn completion_queues_hold_all_that_can_be_outstanding() {
    let _alone = alone();
    let peer = device!();
    for size in [1, 10] {
        let cfg = ConnCfg::new().sq_size(5).rq_size(7).cq_size(size);
        overrun(&peer, &cfg);
        overrun(&peer, &cfg.clone().rcq_size(1));
        overrun(&peer, &cfg.rcq_size(1).shared_channel(true));
    }
    overrun(&peer, &ConnCfg::new().sq_size(100).rq_size(100).cq_size(1));
}

#[test]
fn events_come_with_their_details() {
    let _alone = alone();
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    // A rejection has a reason, and may say more.
    let client = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
    next(&endpoint, &ConnCfg::new())
        .reject(Some(b"not you"))
        .unwrap();
    let event = client.next_event_timeout(LONG).unwrap().unwrap();
    assert_eq!(event.kind(), ConnEventKind::Rejected);
    assert_eq!(event.cm_kind(), CmEventKind::REJECTED);
    if iwarp(&peer) {
        // The stream may be reset before the answer is read.
        assert!([libc::ECONNREFUSED, libc::ECONNRESET].contains(&event.status()));
    } else {
        assert_eq!(event.status(), 28);
        assert!(event.private_data().starts_with(b"not you"), "{event:?}");
        assert!(event.private_data()[7..].iter().all(|&byte| byte == 0));
    }

    // Closed comes for two events, which can be told apart.
    let client = ask(&peer, &port, &ConnCfg::new())
        .connect(Some(b"hello"))
        .unwrap();
    let request = next(&endpoint, &ConnCfg::new());
    assert!(request.private_data().starts_with(b"hello"));
    let server = request.connect(Some(b"welcome")).unwrap();
    let event = client.next_event_timeout(LONG).unwrap().unwrap();
    assert_eq!(event.kind(), ConnEventKind::Established);
    assert_eq!(event.status(), 0);
    assert!(event.private_data().starts_with(b"welcome"), "{event:?}");
    assert!(client.private_data().starts_with(b"welcome"));
    server.wait_established(LONG).unwrap();
    assert!(server.private_data().starts_with(b"hello"));
    client.disconnect().unwrap();
    let event = server.next_event_timeout(LONG).unwrap().unwrap();
    assert_eq!(
        (event.kind(), event.cm_kind()),
        (ConnEventKind::Closed, CmEventKind::DISCONNECTED)
    );
    // The answer; on iWARP there is nothing to answer any more.
    let _ = server.disconnect();
    let event = client.next_event_timeout(LONG).unwrap().unwrap();
    assert_eq!(event.cm_kind(), CmEventKind::DISCONNECTED);
    if !iwarp(&peer) {
        let event = client.next_event_timeout(LONG).unwrap().unwrap();
        assert_eq!(
            (event.kind(), event.cm_kind()),
            (ConnEventKind::Closed, CmEventKind::TIMEWAIT_EXIT)
        );
    }
}

#[test]
fn the_device_outlives_all_that_was_made_on_it() {
    let _alone = alone();
    let local = device!();
    for peer in [
        Peer::remote(&addr()).unwrap(),
        Peer::device(&local.device_name()).unwrap(),
        Peer::local(&addr()).unwrap(),
    ] {
        let again = peer.clone();
        drop(pair(&peer, &ConnCfg::new()));
        drop(peer);
        let Pair { client, server } = pair(&again, &ConnCfg::new());
        let log = region(&again, 8, remote_usage(), |_| 0);
        drop(again);
        client
            .write_inline(&[1; 8], &remote(&log).whole(), Signal::Always(1))
            .unwrap();
        success(client.cq(), 1);
        drop(server);
    }
}

#[test]
fn a_peer_without_receives_does_not_hold_the_sender_up() {
    let _alone = alone();
    let peer = device!();
    if iwarp(&peer) {
        skip!("iWARP does not ask again: it has no receiver-not-ready");
    }
    // The connection manager has each side say how often the other may ask it.
    let cfg = ConnCfg::new().rnr_retry_count(1);
    let Pair { client, server } = pair_of(&peer, &ConnCfg::new(), &peer, &cfg);
    let start = Instant::now();
    client.send_inline(b"anyone?", Signal::OnError(1)).unwrap();
    let wc = completion(client.cq());
    assert_eq!(
        (wc.status(), wc.wr_id()),
        (WcStatus::RNR_RETRY_EXC_ERR, 1),
        "{wc:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(30));
    drop(server);
}

#[test]
fn one_deadline_for_the_whole_establishment() {
    let _alone = alone();
    let peer = device!();
    // Nobody takes the request.
    let (_endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new().timeout(Duration::from_millis(300));
    let start = Instant::now();
    let refused = Connection::open(&peer, &addr(), &port, &cfg, None);
    let took = start.elapsed();
    assert!(
        matches!(refused, Err(Error::TimedOut { .. })),
        "{refused:?}"
    );
    // iWARP's connection manager lets a connection attempt end before its id can go; ten seconds on
    // soft-iWARP.
    let bound = Duration::from_secs(if iwarp(&peer) { 30 } else { 10 });
    assert!(
        took >= Duration::from_millis(290) && took < bound,
        "{took:?}"
    );
    // Nobody has the address.
    let start = Instant::now();
    let nobody = if standin_control::Standin::get().is_some() {
        "198.51.100.1"
    } else if addr() == "192.168.77.1" {
        "192.168.77.99"
    } else {
        return;
    };
    let refused = Connection::open(&peer, nobody, &port, &cfg, None);
    let took = start.elapsed();
    assert!(
        matches!(
            refused,
            Err(Error::TimedOut { .. } | Error::Connection { .. })
        ),
        "{refused:?}"
    );
    assert!(took < bound, "{took:?}");
}

#[test]
fn receives_are_refused_alike_before_and_after_the_connection() {
    let _alone = alone();
    let peer = device!();
    let srq = Srq::new(&peer, &SrqCfg::new()).unwrap();
    let cfg = ConnCfg::new().srq(&srq);
    let (endpoint, port) = listen(&peer);
    let inbox = region(&peer, 8, Usage::RECV, |_| 0);
    let outbox = region(&peer, 8, Usage::SEND, |_| 0);
    let code = |refused: Result<(), Error>| refused.unwrap_err().code();

    let client = ask(&peer, &port, &ConnCfg::new());
    // No bytes are no mistake, neither here nor there; the wrong region is one, here and there.
    client.recv(&LocalSlice::EMPTY, 1).unwrap();
    let before = code(client.recv(&outbox.slice(..).unwrap(), 1));
    let client = client.connect(None).unwrap();
    let request = next(&endpoint, &cfg);
    let shared = code(request.recv(&inbox.slice(..).unwrap(), 1));
    assert!(request.recv_batch().is_err());
    let server = request.connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    client.recv(&LocalSlice::EMPTY, 2).unwrap();
    assert_eq!(code(client.recv(&outbox.slice(..).unwrap(), 1)), before);
    assert_eq!(code(server.recv(&inbox.slice(..).unwrap(), 1)), shared);
    assert!(server.recv_batch().is_err());
    srq.recv(&LocalSlice::EMPTY, 3).unwrap();
}

#[test]
fn endpoints_of_no_address_and_of_a_taken_port_are_refused() {
    let _alone = alone();
    let peer = device!();
    let (_endpoint, port) = listen(&peer);
    assert!(Endpoint::listen(&peer, &addr(), &port).is_err());
}
