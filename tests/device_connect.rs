//! Making connections, and failing to: what each side is told, and by when.

mod common;

use std::time::Duration;

use common::*;
use rpma::{
    CmEventKind, ConnCfg, ConnEventKind, ConnRequest, Connection, Error, LocalSlice, PeerCfg,
    Signal, Srq, SrqCfg, WcStatus,
};

/// Waits until the connection is rejected; gives the status and the private data.
fn rejected(conn: &Connection) -> (i32, Vec<u8>) {
    let (event, status, private_data) = refusal(conn);
    assert_eq!(event, CmEventKind::REJECTED);
    (status, private_data)
}

#[test]
fn private_data_go_both_ways() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    let mut cases = vec![
        (&b"question"[..], &b"and the answer"[..]),
        (&[0xff; 56], &[0x7f; 196]),
        (&[], &[1]),
        (&[1], &[]),
    ];
    if iwarp(&peer) {
        cases.push((&[0xff; 251], &[0x7f; 251]));
    }
    for (question, answer) in cases {
        let client = ask(&peer, &port, &cfg).connect(Some(question)).unwrap();
        let request = next(&endpoint, &cfg);
        assert!(request.is_incoming());
        assert_private_data(&peer, request.private_data(), question);
        assert!(client.private_data().is_empty());
        let server = request.connect(Some(answer)).unwrap();
        client.wait_established(LONG).unwrap();
        server.wait_established(LONG).unwrap();
        assert_private_data(&peer, client.private_data(), answer);
        assert_private_data(&peer, server.private_data(), question);
    }
}

#[test]
fn private_data_that_do_not_fit_are_refused() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    let too_long = |result: Result<Connection, Error>| {
        let err = result.unwrap_err();
        assert!(
            matches!(
                err,
                Error::TooLong {
                    argument: "private_data",
                    ..
                }
            ),
            "{err:?}"
        );
    };
    let (ask_most, answer_most) = if iwarp(&peer) { (251, 251) } else { (56, 196) };
    too_long(ask(&peer, &port, &cfg).connect(Some(&vec![1; ask_most + 1])));
    assert!(endpoint.try_next_request(&cfg).unwrap().is_none());

    // An answer that cannot be given is a rejection.
    let client = ask(&peer, &port, &cfg).connect(None).unwrap();
    too_long(next(&endpoint, &cfg).connect(Some(&vec![1; answer_most + 1])));
    rejected(&client);

    let reject_most = if iwarp(&peer) { 251 } else { 148 };
    let client = ask(&peer, &port, &cfg).connect(None).unwrap();
    let err = next(&endpoint, &cfg)
        .reject(Some(&vec![1; reject_most + 1]))
        .unwrap_err();
    assert!(matches!(
        err,
        Error::TooLong {
            argument: "private_data",
            ..
        }
    ));
    rejected(&client);
    takes_the_next(&peer, &endpoint, &port);
}

#[test]
fn the_longest_private_data_of_a_rejection_arrive() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    let why = vec![0x5a; if iwarp(&peer) { 251 } else { 148 }];
    let client = ask(&peer, &port, &cfg).connect(None).unwrap();
    next(&endpoint, &cfg).reject(Some(&why)).unwrap();
    let (_, private_data) = rejected(&client);
    assert_private_data(&peer, &private_data, &why);
}

#[test]
fn a_peer_configuration_travels_in_private_data() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    let mine = PeerCfg::new().with_direct_write_to_pmem(true);
    let client = ask(&peer, &port, &cfg)
        .connect(Some(&mine.descriptor()))
        .unwrap();
    let request = next(&endpoint, &cfg);
    assert_eq!(
        PeerCfg::from_descriptor(request.private_data()).unwrap(),
        mine
    );
    let server = request.connect(Some(&PeerCfg::new().descriptor())).unwrap();
    client.wait_established(LONG).unwrap();
    assert_eq!(
        PeerCfg::from_descriptor(client.private_data()).unwrap(),
        PeerCfg::new()
    );
    assert_eq!(
        PeerCfg::from_descriptor(server.private_data()).unwrap(),
        mine
    );
}

#[test]
fn a_rejection_tells_why() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    let client = ask(&peer, &port, &cfg).connect(None).unwrap();
    next(&endpoint, &cfg).reject(Some(b"not today")).unwrap();
    let event = client.next_event_timeout(LONG).unwrap().unwrap();
    assert_eq!(event.kind(), ConnEventKind::Rejected);
    assert_eq!(event.cm_kind(), CmEventKind::REJECTED);
    assert_private_data(&peer, event.private_data(), b"not today");
    if iwarp(&peer) {
        assert!(
            [libc::ECONNRESET, libc::ECONNREFUSED].contains(&event.status()),
            "{event:?}"
        );
    } else {
        // The peer's program rejected it (IBTA, consumer reject).
        assert_eq!(event.status(), 28);
    }

    let client = ask(&peer, &port, &cfg).connect(None).unwrap();
    next(&endpoint, &cfg).reject(None).unwrap();
    let err = client.wait_established(LONG).unwrap_err();
    assert!(err.to_string().contains("rejected"), "{err}");
    takes_the_next(&peer, &endpoint, &port);
}

#[test]
fn a_dropped_request_is_a_rejection() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    for _ in 0..3 {
        let client = ask(&peer, &port, &cfg).connect(Some(b"please")).unwrap();
        drop(next(&endpoint, &cfg));
        let (_, private_data) = rejected(&client);
        assert_private_data(&peer, &private_data, &[]);
        // What it was asked for later, it says as well.
        assert!(matches!(
            client.disconnect(),
            Ok(()) | Err(Error::Provider { .. })
        ));
    }
    takes_the_next(&peer, &endpoint, &port);
}

#[test]
fn a_dropped_outgoing_request_was_never_made() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let request = ask(&peer, &port, &ConnCfg::new());
    assert!(!request.is_incoming() && request.private_data().is_empty());
    drop(request);
    ask(&peer, &port, &ConnCfg::new()).reject(None).unwrap();
    let none = endpoint.next_request_timeout(&ConnCfg::new(), Duration::from_millis(100));
    assert!(none.unwrap().is_none());
}

#[test]
fn requests_that_cannot_be_served_are_rejected() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let plain = ConnCfg::new();
    // What fails: the completion queue, the queue pair, the configuration itself.
    for cfg in [
        ConnCfg::new().comp_vector(100_000),
        ConnCfg::new().cq_size(u32::MAX),
        ConnCfg::new().rcq_size(1 << 30),
        ConnCfg::new().max_inline(1 << 24),
        ConnCfg::new().sq_size(1 << 30),
        ConnCfg::new().max_sge(0),
    ] {
        let client = ask(&peer, &port, &plain).connect(None).unwrap();
        let err = endpoint.next_request_timeout(&cfg, LONG).unwrap_err();
        rejected(&client);
        assert!(!err.to_string().is_empty());
        // The same as an outgoing request fails as well.
        ConnRequest::new(&peer, &addr(), &port, &cfg.clone().timeout(LONG)).unwrap_err();
    }
    takes_the_next(&peer, &endpoint, &port);
}

#[test]
fn a_peer_that_gives_up_before_it_is_accepted() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    let client = ask(&peer, &port, &cfg).connect(None).unwrap();
    let request = next(&endpoint, &cfg);
    drop(client);
    if let Ok(conn) = request.connect(None) {
        match conn.wait_established(LONG) {
            Err(err) => assert!(matches!(err, Error::Connection { .. }), "{err:?}"),
            // On iWARP the acceptance may be done before the peer's end is seen.
            Ok(()) => {
                let event = conn.next_event_timeout(LONG).unwrap().expect("the end");
                assert_eq!(event.kind(), ConnEventKind::Closed);
            }
        }
    }
    takes_the_next(&peer, &endpoint, &port);
}

#[test]
fn requests_that_nobody_took_are_rejected_with_their_endpoint() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    let taken = ask(&peer, &port, &cfg).connect(None).unwrap();
    let request = next(&endpoint, &cfg);
    let waiting = ask(&peer, &port, &cfg).connect(None).unwrap();
    until("the second request", || {
        nix::poll::poll(
            &mut [nix::poll::PollFd::new(
                std::os::fd::AsFd::as_fd(&endpoint),
                nix::poll::PollFlags::POLLIN,
            )],
            nix::poll::PollTimeout::ZERO,
        )
        .unwrap()
            == 1
    });
    drop(endpoint);
    let err = waiting.wait_established(LONG).unwrap_err();
    assert!(matches!(err, Error::Connection { .. }), "{err:?}");
    // The one that was taken lives on without its endpoint.
    let server = request.connect(Some(b"still here")).unwrap();
    taken.wait_established(LONG).unwrap();
    server.wait_established(LONG).unwrap();
    assert_private_data(&peer, taken.private_data(), b"still here");
}

#[test]
fn open_is_all_of_it_in_one_call() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new().timeout(LONG);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let request = next(&endpoint, &cfg);
            assert_private_data(&peer, request.private_data(), b"open");
            request.connect(Some(b"sesame")).unwrap()
        });
        let client = Connection::open(&peer, &addr(), &port, &cfg, Some(b"open")).unwrap();
        assert_private_data(&peer, client.private_data(), b"sesame");
        let server = server.join().unwrap();
        let none = client
            .next_event_timeout(Duration::from_millis(50))
            .unwrap();
        assert_eq!(none, None, "ESTABLISHED was taken");
        drop(server);
        // And a rejection.
        let server = scope.spawn(|| drop(next(&endpoint, &cfg)));
        let err = Connection::open(&peer, &addr(), &port, &cfg, None).unwrap_err();
        assert!(
            matches!(
                err,
                Error::Connection {
                    event: CmEventKind::REJECTED,
                    ..
                }
            ),
            "{err:?}"
        );
        server.join().unwrap();
    });
}

#[test]
fn accept_is_all_of_it_in_one_call() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new().timeout(LONG);
    std::thread::scope(|scope| {
        let client =
            scope.spawn(|| Connection::open(&peer, &addr(), &port, &cfg, Some(b"open")).unwrap());
        let server = endpoint.accept(&cfg, Some(b"sesame")).unwrap();
        let client = client.join().unwrap();
        assert_private_data(&peer, server.private_data(), b"open");
        assert_private_data(&peer, client.private_data(), b"sesame");
        assert_eq!(
            server.try_next_event().unwrap(),
            None,
            "ESTABLISHED was taken"
        );
    });
    // What cannot be accepted is rejected, and the next one is taken.
    let client = ask(&peer, &port, &cfg).connect(None).unwrap();
    endpoint.accept(&cfg, Some(&[0; 256])).unwrap_err();
    rejected(&client);
    takes_the_next(&peer, &endpoint, &port);
}

#[test]
fn a_shared_receive_queue_of_another_peer_is_refused() {
    let (peer, other) = (device!(), device!());
    let srq = Srq::new(&other, &SrqCfg::new()).unwrap();
    let foreign = ConnCfg::new().srq(&srq);
    let refused = |err: Error| {
        assert!(
            matches!(
                err,
                Error::InvalidArgument {
                    argument: "srq",
                    ..
                }
            ),
            "{err:?}"
        );
    };
    refused(ConnRequest::new(&peer, &addr(), "7204", &foreign).unwrap_err());
    let (endpoint, port) = listen(&peer);
    let client = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
    refused(endpoint.next_request_timeout(&foreign, LONG).unwrap_err());
    rejected(&client);
    takes_the_next(&peer, &endpoint, &port);
}

#[test]
fn many_at_once() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new().timeout(LONG);
    const CLIENTS: u8 = 8;
    std::thread::scope(|scope| {
        let (peer, port, cfg) = (&peer, &port, &cfg);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| {
                scope.spawn(move || Connection::open(peer, &addr(), port, cfg, Some(&[n + 1])))
            })
            .collect();
        let servers: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let request = next(&endpoint, cfg);
                let answer = [request.private_data()[0] * 2];
                request.connect(Some(&answer)).unwrap()
            })
            .collect();
        for (n, client) in clients.into_iter().enumerate() {
            let client = client.join().unwrap().unwrap();
            assert_eq!(client.private_data()[0], (n as u8 + 1) * 2);
        }
        drop(servers);
    });
}

/// The next event, which must say that the connection was closed.
fn closed(conn: &Connection) {
    let event = conn.next_event_timeout(LONG).unwrap().expect("an event");
    assert_eq!(event.kind(), ConnEventKind::Closed, "{event:?}");
    assert_eq!(event.cm_kind(), CmEventKind::DISCONNECTED);
}

#[test]
fn a_disconnection_is_seen_on_both_sides() {
    let peer = device!();
    for active in [true, false] {
        let Pair { client, server } = pair(&peer, &ConnCfg::new());
        let (ending, other) = if active {
            (&client, &server)
        } else {
            (&server, &client)
        };
        other.recv(&LocalSlice::EMPTY, 77).unwrap();
        ending.disconnect().unwrap();
        closed(other);
        // What is outstanding comes back once this side agrees; and then the one that asked knows.
        other.disconnect().unwrap();
        let wc = completion(other.cq());
        assert_eq!((wc.wr_id(), wc.status()), (77, WcStatus::WR_FLUSH_ERR));
        closed(ending);
        for conn in [client, server] {
            conn.close().unwrap();
        }
    }
}

#[test]
fn a_connection_that_was_dropped_is_closed_at_the_peer() {
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    let log = region(&peer, 64, remote_usage(), |_| 0);
    client
        .write_inline(&[1], &remote(&log).slice(0..1).unwrap(), Signal::Always(1))
        .unwrap();
    success(client.cq(), 1);
    client.recv(&LocalSlice::EMPTY, 2).unwrap();
    drop(server);
    closed(&client);
    let _ = client.disconnect();
    let wc = completion(client.cq());
    assert_eq!((wc.wr_id(), wc.status()), (2, WcStatus::WR_FLUSH_ERR));
}
