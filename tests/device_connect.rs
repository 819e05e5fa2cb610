//! Making connections, and failing to: what each side is told, and by when.

mod common;

use std::time::{Duration, Instant};

use common::*;
use rpma::{
    CmEventKind, ConnCfg, ConnEventKind, ConnRequest, Connection, Endpoint, EndpointCfg, Error,
    LocalSlice, Peer, PeerCfg, Signal, WcStatus,
};

/// A transport may pad private data with zeros (RoCE and InfiniBand do); it never changes or cuts them.
fn assert_private_data(peer: &Peer, got: &[u8], sent: &[u8]) {
    assert!(got.starts_with(sent), "{got:x?} is not {sent:x?}");
    assert!(got[sent.len()..].iter().all(|&byte| byte == 0), "{got:x?}");
    if iwarp(peer) {
        assert_eq!(got.len(), sent.len());
    }
}

/// Waits until the connection is rejected; gives the status and the private data.
fn rejected(conn: &Connection) -> (i32, Vec<u8>) {
    let (event, status, private_data) = refusal(conn);
    assert_eq!(event, CmEventKind::REJECTED);
    (status, private_data)
}

/// Requests, takes and accepts again: the endpoint has lost nothing.
fn takes_the_next(peer: &Peer, endpoint: &Endpoint, port: &str) {
    let cfg = ConnCfg::new();
    let client = ask(peer, port, &cfg).connect(None).unwrap();
    let server = next(endpoint, &cfg).connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    server.wait_established(LONG).unwrap();
}

#[test]
fn private_data_go_both_ways() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    for (question, answer) in [
        (&b"question"[..], &b"and the answer"[..]),
        (&[0xff; 56], &[0x7f; 196]),
        (&[], &[1]),
        (&[1], &[]),
    ] {
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
    let (ask_most, answer_most) = if iwarp(&peer) { (255, 255) } else { (56, 196) };
    too_long(ask(&peer, &port, &cfg).connect(Some(&vec![1; ask_most + 1])));
    assert!(endpoint.try_next_request(&cfg).unwrap().is_none());

    // An answer that cannot be given is a rejection.
    let client = ask(&peer, &port, &cfg).connect(None).unwrap();
    too_long(next(&endpoint, &cfg).connect(Some(&vec![1; answer_most + 1])));
    rejected(&client);

    let client = ask(&peer, &port, &cfg).connect(None).unwrap();
    let err = next(&endpoint, &cfg).reject(Some(&[1; 256])).unwrap_err();
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
    // What fails is the acceptance: more than the device can answer at once.
    if peer.capabilities().max_responder_resources < 200 {
        let cfg = ConnCfg::new().responder_resources(200);
        let client = ask(&peer, &port, &plain).connect(None).unwrap();
        let err = next(&endpoint, &cfg).connect(None).unwrap_err();
        assert!(
            matches!(
                err,
                Error::Provider {
                    call: "rdma_accept",
                    ..
                }
            ),
            "{err:?}"
        );
        rejected(&client);
    }
    takes_the_next(&peer, &endpoint, &port);
}

#[test]
fn nobody_listens_there() {
    let peer = device!();
    // A port that was free a moment ago.
    let (endpoint, port) = listen(&peer);
    endpoint.close().unwrap();
    let outcome = ask(&peer, &port, &ConnCfg::new())
        .connect(None)
        .and_then(|conn| conn.wait_established(LONG));
    let err = outcome.unwrap_err();
    let refused = match &err {
        Error::Connection { event, .. } => *event == CmEventKind::REJECTED,
        // iWARP may know at once: it is TCP's answer.
        Error::Provider { source, .. } => {
            iwarp(&peer) && source.raw_os_error() == Some(libc::ECONNREFUSED)
        }
        _ => false,
    };
    assert!(refused, "{err:?}");
    assert_eq!(err.code(), rpma::code::PROVIDER);
    let err = Connection::open(&peer, &addr(), &port, &ConnCfg::new().timeout(LONG), None);
    assert!(
        matches!(err, Err(Error::Connection { .. } | Error::Provider { .. })),
        "{err:?}"
    );
}

/// An address on the device's network that belongs to nobody.
fn nobody() -> Option<String> {
    if on_standin() {
        return Some("198.51.100.7".to_owned());
    }
    let address: std::net::Ipv4Addr = addr().parse().ok()?;
    let [a, b, c, d] = address.octets();
    Some(format!("{a}.{b}.{c}.{}", if d == 99 { 98 } else { 99 }))
}

/// `call` must fail within its time, or a little later on a slow machine, by a timeout or by what the kernel found.
fn fails_in_time<T: std::fmt::Debug>(time: Duration, call: impl FnOnce() -> Result<T, Error>) {
    let start = Instant::now();
    let err = call().unwrap_err();
    let took = start.elapsed();
    assert!(
        took < time + Duration::from_secs(5),
        "{took:?} for {time:?}: {err}"
    );
    match err {
        Error::TimedOut { after, .. } => {
            assert_eq!(after, time);
            assert!(took >= time, "{took:?} for {time:?}");
        }
        Error::Connection { .. } => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_address_that_does_not_answer() {
    let peer = device!();
    let Some(nobody) = nobody() else {
        skip!("{} is no IPv4 address", addr());
    };
    for millis in [1, 150, 1200] {
        let time = Duration::from_millis(millis);
        let cfg = ConnCfg::new().timeout(time);
        fails_in_time(time, || ConnRequest::new(&peer, &nobody, "7204", &cfg));
        fails_in_time(time, || {
            Connection::open(&peer, &nobody, "7204", &cfg, None)
        });
    }
}

#[test]
fn a_peer_that_does_not_answer() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    let time = Duration::from_millis(300);
    // The kernel has the request, and nobody takes it.
    let client = ask(&peer, &port, &cfg).connect(None).unwrap();
    fails_in_time(time, || client.wait_established(time));
    // The time that was over took nothing away.
    let server = next(&endpoint, &cfg).connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    client.wait_established(Duration::ZERO).unwrap();
    server.wait_established(LONG).unwrap();
    let open = || Connection::open(&peer, &addr(), &port, &cfg.clone().timeout(time), None);
    if iwarp(&peer) {
        // soft-iWARP gives an id back only when its own ten seconds for an answer are over.
        let err = open().unwrap_err();
        assert!(matches!(err, Error::TimedOut { after, .. } if after == time));
    } else {
        fails_in_time(time, open);
    }
    // The one that gave up: either its request is gone as well, or accepting it comes to nothing.
    if let Some(request) = endpoint
        .next_request_timeout(&cfg, Duration::from_millis(200))
        .unwrap()
    {
        if let Ok(conn) = request.connect(None) {
            conn.wait_established(LONG).unwrap_err();
        }
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
        let err = conn.wait_established(LONG).unwrap_err();
        assert!(matches!(err, Error::Connection { .. }), "{err:?}");
    }
    takes_the_next(&peer, &endpoint, &port);
}

#[test]
fn names_that_lead_nowhere() {
    let peer = device!();
    let cfg = ConnCfg::new();
    for (node, service) in [
        ("256.1.1.1", "7204"),
        ("no such host", "7204"),
        ("192.168.77.1\0", "7204"),
        (&*addr(), "no-such-service"),
        (&*addr(), "72 04"),
    ] {
        for err in [
            ConnRequest::new(&peer, node, service, &cfg).unwrap_err(),
            Connection::open(&peer, node, service, &cfg, None).unwrap_err(),
            Endpoint::listen(&peer, node, service).unwrap_err(),
        ] {
            assert!(
                matches!(&err, Error::Resolve { node: n, .. } if n == node),
                "{err:?}"
            );
            assert!(err.to_string().contains(&format!("{node:?}")), "{err}");
        }
    }
    for err in [
        Peer::local("256.1.1.1").unwrap_err(),
        Peer::remote("256.1.1.1").unwrap_err(),
    ] {
        assert!(matches!(err, Error::Resolve { .. }), "{err:?}");
    }
}

#[test]
fn addresses_that_belong_to_no_device() {
    let peer = device!();
    let foreign = "203.0.113.7";
    let err = Peer::local(foreign).unwrap_err();
    assert!(
        matches!(&err, Error::NoDevice { address, .. } if address == foreign),
        "{err:?}"
    );
    assert!(err.to_string().contains("rdma link"), "{err}");
    let err = Endpoint::listen(&peer, foreign, "7204").unwrap_err();
    assert!(
        matches!(
            err,
            Error::Provider {
                call: "rdma_bind_addr",
                ..
            }
        ),
        "{err:?}"
    );
    let err = ConnRequest::new(&peer, foreign, "7204", &ConnCfg::new()).unwrap_err();
    assert_eq!(err.code(), rpma::code::PROVIDER, "{err:?}");
    for unspecified in ["0.0.0.0", "::"] {
        let err = Peer::local(unspecified).unwrap_err();
        assert!(
            matches!(
                err,
                Error::InvalidArgument {
                    argument: "address",
                    ..
                }
            ),
            "{err:?}"
        );
    }
    if !on_standin() {
        let err = Peer::local("127.0.0.1").unwrap_err();
        assert!(matches!(err, Error::NoDevice { .. }), "{err:?}");
        assert!(err.to_string().contains("127.0.0.1"), "{err}");
    }
    let err = Peer::device("no_such_device0").unwrap_err();
    assert!(matches!(err, Error::NoDevice { .. }), "{err:?}");
}

#[test]
fn a_device_can_be_found_in_three_ways() {
    let peer = device!();
    let name = peer.device_name();
    let listed = rpma::devices().unwrap();
    assert!(
        listed.iter().any(|device| device.name == name),
        "{listed:?}"
    );
    for other in [Peer::remote(&addr()).unwrap(), Peer::device(&name).unwrap()] {
        assert_eq!(other.device_name(), name);
        assert_eq!(other.capabilities(), peer.capabilities());
        let cfg = ConnCfg::new();
        pair_of(&peer, &cfg, &other, &cfg);
        pair_of(&other, &cfg, &peer, &cfg);
    }
}

#[test]
fn a_port_is_listened_on_once() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let err = Endpoint::listen(&peer, &addr(), &port).unwrap_err();
    assert_eq!(err.raw_os_error(), Some(libc::EADDRINUSE), "{err:?}");
    assert_eq!(endpoint.peer().device_name(), peer.device_name());
    drop(endpoint);
    let cfg = EndpointCfg::new().backlog(4);
    let endpoint = Endpoint::listen_with(&peer, &addr(), &port, &cfg).unwrap();
    takes_the_next(&peer, &endpoint, &port);
}

#[test]
fn an_endpoint_on_any_address() {
    let peer = device!();
    let endpoint = Endpoint::listen(&peer, "0.0.0.0", "0").unwrap();
    let port = endpoint.local_addr().unwrap().port().to_string();
    takes_the_next(&peer, &endpoint, &port);
}

#[test]
fn the_other_address_family() {
    let peer = device!();
    let Some(address) = std::env::var("RPMA_TEST_ADDR6")
        .ok()
        .filter(|addr| !addr.is_empty())
    else {
        skip!("RPMA_TEST_ADDR6 names no IPv6 address of the device");
    };
    let six = Peer::local(&address).unwrap();
    let endpoint = Endpoint::listen(&peer, &address, "0").unwrap();
    let port = endpoint.local_addr().unwrap().port().to_string();
    let cfg = ConnCfg::new().timeout(LONG);
    // From a peer on the IPv4 address of the same device, too.
    for peer in [&six, &peer] {
        let client = ConnRequest::new(peer, &address, &port, &cfg).unwrap();
        let client = client.connect(Some(b"six")).unwrap();
        let request = next(&endpoint, &cfg);
        assert_private_data(peer, request.private_data(), b"six");
        let server = request.connect(None).unwrap();
        client.wait_established(LONG).unwrap();
        assert_eq!(client.peer_addr().unwrap().ip().to_string(), address);
        assert_eq!(server.local_addr().unwrap().ip().to_string(), address);
    }
}

#[test]
fn addresses_of_both_ends_are_known() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    let request = ask(&peer, &port, &cfg);
    assert_eq!(
        request.peer_addr().unwrap().to_string(),
        format!("{}:{port}", addr())
    );
    let client = request.connect(None).unwrap();
    let request = next(&endpoint, &cfg);
    assert_eq!(
        request.local_addr().unwrap().to_string(),
        format!("{}:{port}", addr())
    );
    let server = request.connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    assert_eq!(server.peer_addr().unwrap().ip().to_string(), addr());
    assert_eq!(client.peer_addr(), server.local_addr());
    assert_eq!(client.peer().device_name(), peer.device_name());
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
