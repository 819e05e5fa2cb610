//! Whom an address leads to, and what is told by when where it leads to nobody.

mod common;

use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use common::*;
use rpma::{
    CmEventKind, ConnCfg, ConnRequest, Connection, Endpoint, EndpointCfg, Error, GidType,
    LinkLayer, Peer, PortState,
};

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

/// `call` must fail within its time, or a little later on a slow machine, by a timeout or by what
/// the kernel found.
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
fn names_that_lead_nowhere() {
    let peer = device!();
    let cfg = ConnCfg::new();
    let tried = |node: &str, service: &str| {
        [
            ConnRequest::new(&peer, node, service, &cfg).unwrap_err(),
            Connection::open(&peer, node, service, &cfg, None).unwrap_err(),
            Endpoint::listen(&peer, node, service).unwrap_err(),
        ]
    };
    for service in [
        "no-such-service",
        "72 04",
        "70000",
        "-1",
        "+7204",
        " 7204",
        "",
    ] {
        for err in tried(&addr(), service) {
            let argument = match &err {
                Error::InvalidArgument { argument, .. } => argument,
                _ => "",
            };
            assert_eq!(argument, "service", "{service:?}: {err:?}");
        }
    }
    for node in ["256.1.1.1", "no such host", "192.168.77.1\0"] {
        for err in tried(node, "7204") {
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
                call: rpma::Call::RdmaBindAddr,
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
fn a_device_tells_of_itself_and_its_ports() {
    let peer = device!();
    let info = peer.device_info().unwrap();
    let listed = rpma::devices().unwrap();
    assert!(listed.contains(&info), "{info:?} is not in {listed:?}");
    let caps = peer.capabilities();
    assert_eq!(info.transport, caps.transport);
    assert_eq!(
        (info.vendor_id, info.vendor_part_id),
        (caps.vendor_id, caps.vendor_part_id)
    );
    let port = info
        .ports
        .iter()
        .find(|port| port.number == peer.port())
        .unwrap();
    assert_eq!(port.state, PortState::ACTIVE);
    assert_eq!(port.active_mtu, caps.active_mtu);
    assert!((256..=port.max_mtu).contains(&port.active_mtu), "{port:?}");
    assert!(!port.gids.is_empty());
    // Of RoCE each address is a GID.
    if !iwarp(&peer) && port.link_layer == LinkLayer::ETHERNET {
        let ip: IpAddr = addr().parse().unwrap();
        assert!(port.addresses.contains(&ip), "{port:?}");
        assert!(port.gids.iter().any(|gid| gid.kind == GidType::ROCE_V2));
    }
    if on_standin() {
        assert_eq!(info.firmware, "1.0.0");
        assert_eq!((info.numa_node, port.gbps()), (None, Some(2.5)));
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
fn a_socket_address_does_for_a_name_and_a_service() {
    let peer = device!();
    let ip: IpAddr = addr().parse().unwrap();
    let endpoint = Endpoint::listen_addr(&peer, (ip, 0).into(), &EndpointCfg::new()).unwrap();
    let at = endpoint.local_addr().unwrap();
    let cfg = ConnCfg::new().timeout(LONG);
    for peer in [
        Peer::local(ip).unwrap(),
        Peer::local(at).unwrap(),
        Peer::remote(ip).unwrap(),
        Peer::remote_timeout(at, LONG).unwrap(),
    ] {
        let client = ConnRequest::new_addr(&peer, at, &cfg).unwrap();
        let client = client.connect(None).unwrap();
        let server = next(&endpoint, &cfg).connect(None).unwrap();
        client.wait_established(LONG).unwrap();
        assert_eq!(client.peer_addr(), Some(at));
        drop(server);
    }
    std::thread::scope(|scope| {
        let server = scope.spawn(|| endpoint.accept(&cfg, None).unwrap());
        Connection::open_addr(&peer, at, &cfg, None).unwrap();
        server.join().unwrap();
    });
}

#[test]
fn a_loopback_address_of_no_device_is_refused_at_once() {
    let peer = device!();
    let cfg = ConnCfg::new().timeout(LONG);
    // On a device of the loopback interface this one resolves.
    if !on_standin() && Peer::local("127.0.0.2").is_ok() {
        skip!("a device has the loopback interface");
    }
    for err in [
        ConnRequest::new(&peer, "127.0.0.2", "7204", &cfg).unwrap_err(),
        Peer::remote("127.0.0.2").unwrap_err(),
    ] {
        assert!(
            matches!(&err, Error::NoDevice { address, .. } if address == "127.0.0.2"),
            "{err:?}"
        );
    }
}

#[test]
fn a_link_local_address_needs_its_zone() {
    let peer = device!();
    let at: SocketAddr = "[fe80::1]:7204".parse().unwrap();
    for err in [
        Peer::local("fe80::1").unwrap_err(),
        Peer::remote(at).unwrap_err(),
        ConnRequest::new_addr(&peer, at, &ConnCfg::new()).unwrap_err(),
        Endpoint::listen(&peer, "fe80::1", "7204").unwrap_err(),
    ] {
        assert!(err.to_string().contains("the zone is missing"), "{err}");
    }
}

#[test]
fn the_time_that_is_over_for_an_address_is_said_so() {
    device!();
    let Some(nobody) = nobody() else {
        skip!("{} is no IPv4 address", addr());
    };
    let time = Duration::from_millis(100);
    match Peer::remote_timeout(&nobody, time).unwrap_err() {
        Error::TimedOut { after, .. } => assert_eq!(after, time),
        // The kernel may find out sooner.
        err => assert!(matches!(err, Error::NoDevice { .. }), "{err:?}"),
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
