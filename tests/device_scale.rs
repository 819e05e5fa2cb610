//! Many connections, many messages, many rounds; and what is held at the end is what was held
//! before.
//!
//! RPMA_TEST_SCALE divides the numbers where somebody is in a hurry.

mod common;
#[path = "common/epoll.rs"]
#[allow(dead_code)]
mod epoll;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use common::*;
use epoll::Epoll;
use rpma::{
    Completion, ConnCfg, ConnEventKind, Connection, Error, FlushKind, LocalSlice, Signal, Srq,
    SrqCfg, Usage, Wait,
};

fn scaled(n: u64) -> u64 {
    let by = std::env::var("RPMA_TEST_SCALE").map_or(1, |by| by.parse().unwrap());
    (n / by).max(1)
}

/// What a server keeps of one connection.
struct Served {
    conn: Connection,
    greeted: bool,
    closed: bool,
}

#[test]
fn many_connections_through_one_endpoint_and_one_loop() {
    let _alone = alone();
    let peer = device!();
    let before = {
        drop(pair(&peer, &ConnCfg::new()));
        held()
    };
    let start = Instant::now();
    // The user-space part of soft-iWARP takes the offset of its 145th page of queues for a failure,
    // and an end of a connection has three.
    let many = if iwarp(&peer) { 20 } else { scaled(200) } as usize;
    let inbox = region(&peer, many * 8, Usage::RECV, |_| 0);
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new().sq_size(2).rq_size(2).cq_size(1);
    std::thread::scope(|scope| {
        let (peer, cfg, port) = (&peer, &cfg, &port);
        scope.spawn(move || {
            let clients: Vec<Connection> = (0..many)
                .map(|_| ask(peer, port, cfg).connect(None).unwrap())
                .collect();
            for (n, client) in clients.iter().enumerate() {
                client.wait_established(LONG).unwrap();
                let hello = (n as u64 + 1).to_le_bytes();
                client
                    .send_inline(&hello, Signal::Always(n as u64))
                    .unwrap();
            }
            for (n, client) in clients.iter().enumerate() {
                success(client.cq(), n as u64);
            }
            // All at once are gone.
        });

        // The server: one thread, one epoll. Number 0 is the endpoint; connection n has 2n + 2 for
        // events, 2n + 3 for completions.
        let epoll = Epoll::new();
        epoll.add(&endpoint, 0);
        let mut served: Vec<Served> = Vec::new();
        while served.len() < many || served.iter().any(|one| !(one.greeted && one.closed)) {
            let ready = epoll.wait(LONG);
            assert!(!ready.is_empty(), "{} connections", served.len());
            for key in ready {
                if key == 0 {
                    let Some(request) = endpoint.try_next_request(cfg).unwrap() else {
                        continue;
                    };
                    let n = served.len() as u64;
                    let slot = inbox.slice(n * 8..n * 8 + 8).unwrap();
                    request.recv(&slot, n).unwrap();
                    let conn = request.connect(None).unwrap();
                    epoll.add(&conn.event_fd(), 2 * n + 2);
                    epoll.add(conn.cq(), 2 * n + 3);
                    served.push(Served {
                        conn,
                        greeted: false,
                        closed: false,
                    });
                    continue;
                }
                let n = (key as usize - 2) / 2;
                let one = &mut served[n];
                if key % 2 == 0 {
                    match one.conn.try_next_event().unwrap().map(|event| event.kind()) {
                        Some(ConnEventKind::Closed) => one.closed = true,
                        Some(ConnEventKind::Established) | None => {}
                        other => panic!("{other:?}"),
                    }
                } else if one.conn.cq().try_wait().unwrap() {
                    while let Some(wc) = one.conn.cq().poll_one().unwrap() {
                        if wc.is_success() {
                            assert_eq!(wc.wr_id(), n as u64);
                            one.greeted = true;
                        }
                    }
                }
            }
        }
        println!("{many} connections: {:?}", start.elapsed());
    });
    let mut greetings: Vec<u64> = contents(&inbox)
        .chunks(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    greetings.sort_unstable();
    assert!(greetings.into_iter().eq(1..=many as u64));
    drop((inbox, endpoint));
    given_back(&before);
}

#[test]
fn many_messages_on_one_shared_receive_queue() {
    const CLIENTS: u64 = 4;
    let _alone = alone();
    let peer = device!();
    let before = {
        drop(pair(&peer, &ConnCfg::new()));
        held()
    };
    let start = Instant::now();
    let each = scaled(50_000) / CLIENTS;
    {
        let srq = Srq::new(&peer, &SrqCfg::new().size(256)).unwrap();
        let slots = u64::from(srq.depth().min(256));
        let inbox = region(&peer, slots as usize * 16, Usage::RECV, |_| 0);
        let slot = |n: u64| inbox.slice(n * 16..n * 16 + 16).unwrap();
        let mut batch = srq.recv_batch();
        for n in 0..slots {
            batch.recv(&slot(n), n).unwrap();
        }
        batch.submit().unwrap();
        let client_cfg = ConnCfg::new().sq_size(64).rq_size(1).max_inline(16);
        let server_cfg = ConnCfg::new().sq_size(1).srq(&srq);
        let pairs: Vec<Pair> = (0..CLIENTS)
            .map(|_| pair_of(&peer, &client_cfg, &peer, &server_cfg))
            .collect();
        let taken: [AtomicU64; CLIENTS as usize] = Default::default();
        std::thread::scope(|scope| {
            // How many of each client's messages were taken, and their receives posted again: no
            // client runs ahead of that by more than its share, as iWARP ends a connection whose
            // message finds no receive.
            let taken = &taken;
            for (c, pair) in pairs.iter().enumerate() {
                scope.spawn(move || {
                    // Sixteen with one doorbell, the last signalled.
                    let mut batch = pair.client.batch();
                    for n in 0..each {
                        let mut message = [0; 16];
                        message[..8].copy_from_slice(&(c as u64).to_le_bytes());
                        message[8..].copy_from_slice(&n.to_le_bytes());
                        let last = n % 16 == 15 || n + 1 == each;
                        let signal = match last {
                            true => Signal::Always(n),
                            false => Signal::OnError(n),
                        };
                        batch.send_inline(&message, signal).unwrap();
                        if last {
                            until("receives", || {
                                n < taken[c].load(Ordering::Acquire) + slots / CLIENTS
                            });
                            batch.submit().unwrap();
                            success(pair.client.cq(), n);
                        }
                    }
                });
            }
            let rcq = srq.rcq().unwrap();
            let mut next = [0u64; CLIENTS as usize];
            let mut buf = [Completion::default(); 64];
            let mut batch = srq.recv_batch();
            while next.iter().sum::<u64>() < each * CLIENTS {
                let wcs = rcq.take(&mut buf, Wait::new().timeout(LONG)).unwrap();
                assert!(!wcs.is_empty(), "{next:?} of {each}");
                for wc in wcs {
                    assert!(wc.is_success() && wc.byte_len() == 16, "{wc:?}");
                    let mut message = [0; 16];
                    inbox.read_at(wc.wr_id() * 16, &mut message).unwrap();
                    let client = u64::from_le_bytes(message[..8].try_into().unwrap()) as usize;
                    let n = u64::from_le_bytes(message[8..].try_into().unwrap());
                    // In the order in which each was sent, and on the connection it was sent on.
                    assert_eq!(n, next[client]);
                    assert_eq!(wc.qp_num(), pairs[client].server.qp_num());
                    next[client] += 1;
                    batch.recv(&slot(wc.wr_id()), wc.wr_id()).unwrap();
                }
                batch.submit().unwrap();
                for (taken, next) in taken.iter().zip(next) {
                    taken.store(next, Ordering::Release);
                }
            }
            assert!(nothing(rcq));
        });
    }
    println!("{} messages: {:?}", each * CLIENTS, start.elapsed());
    given_back(&before);
}

#[test]
fn many_rounds_of_connecting_and_disconnecting() {
    let _alone = alone();
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let log = region(&peer, 8, remote_usage(), |_| 0);
    let word = remote(&log).whole();
    let cfg = ConnCfg::new().sq_size(2).rq_size(1).cq_size(1);
    let round = |n: u64| {
        let client = ask(&peer, &port, &cfg).connect(None).unwrap();
        let server = next(&endpoint, &cfg).connect(None).unwrap();
        client.wait_established(LONG).unwrap();
        server.wait_established(LONG).unwrap();
        client
            .write_inline(&n.to_le_bytes(), &word, Signal::OnError(0))
            .unwrap();
        client
            .flush(&word, FlushKind::Visibility, Signal::Always(1))
            .unwrap();
        success(client.cq(), 1);
        assert_eq!(contents(&log), n.to_le_bytes());
        // Each way of ending it in turn.
        match n % 3 {
            0 => client.disconnect().unwrap(),
            1 => drop(client),
            _ => client.close().unwrap(),
        }
        let event = server.next_event_timeout(LONG).unwrap().unwrap();
        assert_eq!(event.kind(), ConnEventKind::Closed);
        if n % 2 == 0 {
            let _ = server.disconnect();
        }
    };
    for n in 0..3 {
        round(n);
    }
    let before = held();
    let start = Instant::now();
    let rounds = scaled(1000);
    for n in 0..rounds {
        round(n);
    }
    println!("{rounds} rounds: {:?}", start.elapsed());
    given_back(&before);
}

#[test]
fn a_client_that_asks_and_goes_silent_keeps_nobody_waiting() {
    let _alone = alone();
    let peer = device!();
    let run = || {
        let (endpoint, port) = listen(&peer);
        // It never looks at the answer, so its end of the handshake does not come.
        let cfg = ConnCfg::new().rnr_retry_count(1);
        let silent = ask(&peer, &port, &cfg).connect(None).unwrap();
        let server = next(&endpoint, &ConnCfg::new()).connect(None).unwrap();
        let start = Instant::now();
        match server.wait_established(Duration::from_millis(500)) {
            Ok(()) | Err(Error::TimedOut { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        assert!(start.elapsed() < LONG);
        // Established but silent: it posts no receive, and what is sent to it fails in time.
        silent.wait_established(LONG).unwrap();
        server.wait_established(LONG).unwrap();
        assert!(
            !server
                .cq()
                .wait_timeout(Duration::from_millis(100))
                .unwrap()
                .is_ready()
        );
        server.send_inline(b"there?", Signal::Always(1)).unwrap();
        if !iwarp(&peer) {
            let wc = completion(server.cq());
            assert_eq!(wc.status(), rpma::WcStatus::RNR_RETRY_EXC_ERR, "{wc:?}");
        }
        let start = Instant::now();
        drop(server);
        drop(endpoint);
        assert!(start.elapsed() < LONG);
        let event = silent.next_event_timeout(LONG).unwrap().unwrap();
        assert_eq!(event.kind(), ConnEventKind::Closed);
    };
    run();
    let before = held();
    run();
    given_back(&before);
}

/// What this executable does when it is started by the test below: the peer that will be killed.
#[test]
fn the_peer_that_will_be_killed() {
    let (Ok(port), Ok(role)) = (
        std::env::var("RPMA_KILL_PORT"),
        std::env::var("RPMA_KILL_ROLE"),
    ) else {
        return;
    };
    let peer = device!();
    let client = ask(&peer, &port, &ConnCfg::new().sq_size(32))
        .connect(None)
        .unwrap();
    client.wait_established(LONG).unwrap();
    let there = rpma::RemoteRegion::from_descriptor(client.private_data()).unwrap();
    let source = region(&peer, there.len() as usize, Usage::WRITE_SRC, |_| 7);
    loop {
        if role == "reads its messages" {
            client.recv(&LocalSlice::EMPTY, 1).unwrap();
        } else {
            client
                .write(
                    &source.slice(..).unwrap(),
                    &there.whole(),
                    Signal::Always(1),
                )
                .unwrap();
        }
        success(client.cq(), 1);
    }
}

#[test]
fn a_peer_that_is_killed_under_load_is_noticed() {
    let _alone = alone();
    let peer = device!();
    if standin_control::Standin::get().is_some() {
        skip!("the stand-in is one process");
    }
    let log = region(&peer, 64 * 1024, remote_usage(), |_| 0);
    let (endpoint, port) = listen(&peer);
    let mut before = None;
    for round in 0..4 {
        // On iWARP the side that asked must send first, and a message that finds no receive ends
        // the connection.
        let role = match round % 2 == 0 || iwarp(&peer) {
            true => "writes",
            false => "reads its messages",
        };
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_peer_that_will_be_killed", "--nocapture"])
            .env("RPMA_KILL_PORT", &port)
            .env("RPMA_KILL_ROLE", role)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let server = next(&endpoint, &ConnCfg::new().retry_count(3).rnr_retry_count(6))
            .connect(Some(log.descriptor().as_bytes()))
            .unwrap();
        server.wait_established(LONG).unwrap();
        let mut seen = 0;
        if role == "writes" {
            until("what it writes", || contents(&log).ends_with(&[7]));
        } else {
            for n in 0..20 {
                server.send_inline(&[], Signal::Always(n)).unwrap();
                success(server.cq(), n);
            }
        }
        let start = Instant::now();
        child.kill().unwrap();
        // A server that sends all the time, or waits for what comes.
        let mut failed = None;
        let mut closed = false;
        while !closed {
            if role == "reads its messages" && failed.is_none() {
                match server.send_inline(&[], Signal::Always(99)) {
                    Ok(()) => {}
                    Err(Error::QueueFull { .. }) => {}
                    Err(other) => println!("{other}"),
                }
                while let Some(wc) = server.cq().poll_one().unwrap() {
                    match wc.ok() {
                        Ok(_) => seen += 1,
                        Err(_) => failed = Some(wc.status()),
                    }
                }
            }
            if let Some(event) = server.next_event_timeout(Duration::from_millis(5)).unwrap() {
                closed = event.kind() == ConnEventKind::Closed;
            }
            assert!(start.elapsed() < LONG, "{role}: {seen} sent, {failed:?}");
        }
        println!("{role}: noticed after {:?}, {failed:?}", start.elapsed());
        child.wait().unwrap();
        drop(server);
        log.write_at(0, &vec![0; 64 * 1024]).unwrap();
        match &before {
            None => before = Some(held()),
            Some(before) => given_back(before),
        }
    }
}
