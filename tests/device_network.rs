//! What happens when the network under a device changes, and names with several addresses. These
//! tests change this machine's network, so they run only where RPMA_TEST_NETDEV names an interface
//! that may be set down: in the guest.

mod common;

use std::{
    process::Command,
    time::{Duration, Instant},
};

use common::*;
use rpma::{
    AsyncEventKind, AsyncEvents, AsyncSubject, ConnCfg, ConnRequest, Connection, Error, Signal,
    Usage,
};

/// The interface that may be set down; skips the test where there is none.
macro_rules! netdev {
    () => {
        match std::env::var("RPMA_TEST_NETDEV") {
            Ok(name) => name,
            Err(_) => skip!("RPMA_TEST_NETDEV names no interface that may be set down"),
        }
    };
}

fn ip(args: &[&str]) {
    let status = Command::new("ip").args(args).status().unwrap();
    assert!(status.success(), "ip {args:?}");
}

/// Sets the link up again, with its addresses, whatever happens.
struct Down(String);

impl Down {
    fn now(name: &str) -> Self {
        ip(&["link", "set", name, "down"]);
        Down(name.to_owned())
    }
}

impl Drop for Down {
    fn drop(&mut self) {
        ip(&["link", "set", &self.0, "up"]);
        // The kernel takes IPv6 addresses away with the link.
        if let Ok(six) = std::env::var("RPMA_TEST_ADDR6") {
            let _ = Command::new("ip")
                .args([
                    "address",
                    "add",
                    &format!("{six}/64"),
                    "dev",
                    &self.0,
                    "nodad",
                ])
                .stderr(std::process::Stdio::null())
                .status();
        }
    }
}

fn event(events: &AsyncEvents, kind: AsyncEventKind) -> rpma::AsyncEvent {
    loop {
        let event = events.next_event_timeout(LONG).unwrap();
        let event = event.unwrap_or_else(|| panic!("no {kind:?} in time"));
        if event.kind() == kind {
            return event;
        }
    }
}

#[test]
fn a_link_that_goes_and_comes_back_is_told_and_nothing_hangs() {
    let _alone = alone();
    let peer = device!();
    let netdev = netdev!();
    let events = peer.async_events();
    let run = || {
        let cfg = ConnCfg::new().retry_count(1).rnr_retry_count(1);
        let Pair { client, server } = pair(&peer, &cfg);
        let source = region(&peer, 4096, Usage::WRITE_SRC, |_| 7);
        let log = region(&peer, 4096, remote_usage(), |_| 0);
        let post = || {
            client.write(
                &source.slice(..).unwrap(),
                &remote(&log).whole(),
                Signal::Always(1),
            )
        };
        post().unwrap();
        success(client.cq(), 1);
        let down = Down::now(&netdev);
        let start = Instant::now();
        let told = event(&events, AsyncEventKind::PORT_ERR);
        assert_eq!(told.subject(), AsyncSubject::Port(1));
        // Whether it gets through (both ends are on this machine) or not: an outcome comes in time.
        post().unwrap();
        let wc = completion(client.cq());
        println!("{:?} after {:?}", wc.status(), start.elapsed());
        // New connections fail in time, or work.
        let (_endpoint, port) = listen_if_possible(&peer);
        let cfg = cfg.timeout(Duration::from_millis(500));
        let start = Instant::now();
        let refused = Connection::open(&peer, &addr(), &port, &cfg, None);
        assert!(refused.is_err());
        assert!(start.elapsed() < LONG);
        drop(down);
        event(&events, AsyncEventKind::PORT_ACTIVE);
        let start = Instant::now();
        drop((client, server));
        assert!(start.elapsed() < LONG);
        // And everything works as before.
        let Pair { client, server } = pair(&peer, &ConnCfg::new());
        client
            .write(
                &source.slice(..).unwrap(),
                &remote(&log).whole(),
                Signal::Always(2),
            )
            .unwrap();
        success(client.cq(), 2);
        drop(server);
    };
    run();
    let before = held();
    run();
    while events.try_next_event().unwrap().is_some() {}
    given_back(&before);
}

/// An endpoint, where one can be had while the link is down; and a port in any case.
fn listen_if_possible(peer: &rpma::Peer) -> (Option<rpma::Endpoint>, String) {
    match rpma::Endpoint::listen(peer, &addr(), "0") {
        Ok(endpoint) => {
            let port = endpoint.local_addr().unwrap().port().to_string();
            (Some(endpoint), port)
        }
        Err(err) => {
            println!("no endpoint while the link is down: {err}");
            (None, "7204".to_owned())
        }
    }
}

/// Lines of /etc/hosts for the time of a test.
struct Hosts(String);

impl Hosts {
    fn with(lines: &str) -> Self {
        let before = std::fs::read_to_string("/etc/hosts").unwrap();
        std::fs::write("/etc/hosts", format!("{before}{lines}")).unwrap();
        Hosts(before)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        std::fs::write("/etc/hosts", &self.0).unwrap();
    }
}

#[test]
fn all_addresses_of_a_name_are_tried_in_order() {
    let _alone = alone();
    let peer = device!();
    let _netdev = netdev!();
    let Ok(six) = std::env::var("RPMA_TEST_ADDR6") else {
        skip!("RPMA_TEST_ADDR6 names no second address of the device");
    };
    // The resolver puts IPv6 first; nobody has this one.
    let dead = format!("{six}0");
    let _hosts = Hosts::with(&format!("{dead} twofold\n{} twofold\n", addr()));
    let (endpoint, port) = listen(&peer);
    let start = Instant::now();
    let cfg = ConnCfg::new().timeout(Duration::from_secs(10));
    let request = ConnRequest::new(&peer, "twofold", &port, &cfg).unwrap();
    println!("past the dead address after {:?}", start.elapsed());
    let client = request.connect(None).unwrap();
    let server = next(&endpoint, &ConnCfg::new()).connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    server.wait_established(LONG).unwrap();
    assert_eq!(client.peer_addr().unwrap().ip().to_string(), addr());

    // All of them together have one deadline.
    let start = Instant::now();
    let cfg = ConnCfg::new().timeout(Duration::from_millis(300));
    let refused = ConnRequest::new(&peer, "twofold", &port, &cfg);
    if let Err(err) = &refused {
        assert!(
            matches!(err, Error::TimedOut { .. } | Error::Connection { .. }),
            "{err}"
        );
    }
    assert!(start.elapsed() < LONG);
}
