//! Handles that end in any order, in flight or not, and what is left of them: nothing.

mod common;

use std::{any::Any, time::Duration};

use common::*;
use rpma::{
    ConnCfg, ConnRequest, Connection, Endpoint, Error, LocalRegion, LocalSlice, Memory, Peer,
    Signal, Srq, SrqCfg, Usage, WcStatus,
};

/// `round` must leave what the process and the kernel hold as it was. The first round is not
/// counted: the libraries keep a few things once they are used.
fn leaves_nothing(rounds: usize, mut round: impl FnMut(usize)) {
    round(0);
    let before = held();
    for n in 1..=rounds {
        round(n);
    }
    given_back(&before);
}

/// A connection of the peer's does all that it should.
fn still_works(peer: &Peer) {
    let Pair { client, server } = pair(peer, &ConnCfg::new());
    let (local, log) = buffers(peer, 4096);
    post(&client, &local, &log, 4096);
    success(client.cq(), 1);
    success(client.cq(), 2);
    assert!(contents(&log) == contents(&local));
    drop(server);
}

fn buffers(peer: &Peer, len: usize) -> (LocalRegion, LocalRegion) {
    (
        region(peer, len, local_usage(), byte),
        region(peer, len, remote_usage(), |_| 0),
    )
}

/// A write (1) and a read (2) of `len` bytes.
fn post(client: &Connection, local: &LocalRegion, log: &LocalRegion, len: u64) {
    let (here, there) = (
        local.slice(0..len).unwrap(),
        remote(log).slice(0..len).unwrap(),
    );
    client.write(&here, &there, Signal::Always(1)).unwrap();
    client.read(&here, &there, Signal::Always(2)).unwrap();
}

/// On real soft-iWARP the many connections that are left in the midst take many minutes; the
/// stand-in is like it and quick.
fn too_slow_here() -> bool {
    !on_standin() && std::env::var("RPMA_TEST_DEV").as_deref() == Ok("siw")
}

/// The turn, and the device, which must be given back before the turn is: what is held is counted
/// of the whole process.
macro_rules! alone_on_device {
    () => {{
        let turn = alone();
        let peer = device!();
        if too_slow_here() {
            skip!(
                "soft-iWARP takes ten seconds for each handshake that nobody answers: too many here"
            );
        }
        (turn, peer)
    }};
}

#[test]
fn a_hundred_rejected_requests() {
    let (_turn, peer) = alone_on_device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    leaves_nothing(100, |n| {
        let client = ask(&peer, &port, &cfg).connect(None).unwrap();
        let request = next(&endpoint, &cfg);
        if n % 2 == 0 {
            drop(request);
        } else {
            request.reject(Some(b"no")).unwrap();
        }
        refusal(&client);
    });
    drop(endpoint);
    still_works(&peer);
}

#[test]
fn requests_that_fail_on_either_side() {
    let (_turn, peer) = alone_on_device!();
    let (endpoint, port) = listen(&peer);
    let plain = ConnCfg::new();
    let mut bad = vec![
        ConnCfg::new().comp_vector(100_000),
        ConnCfg::new().rcq_size(1 << 30),
        ConnCfg::new().max_inline(1 << 24),
        ConnCfg::new().max_sge(0),
    ];
    if peer.capabilities().max_responder_resources < 200 {
        bad.push(ConnCfg::new().responder_resources(200));
    }
    leaves_nothing(10, |_| {
        for cfg in &bad {
            let client = ask(&peer, &port, &plain).connect(None).unwrap();
            // It fails when it is taken, or when it is accepted.
            let request = endpoint.next_request_timeout(cfg, LONG);
            let accepted = request.and_then(|request| request.unwrap().connect(None));
            accepted.unwrap_err();
            refusal(&client);
            let asked = ConnRequest::new(&peer, &addr(), &port, &cfg.clone().timeout(LONG));
            asked.and_then(|request| request.connect(None)).unwrap_err();
        }
        let client = ask(&peer, &port, &plain).connect(None).unwrap();
        let accepted = next(&endpoint, &plain).connect(Some(&[1; 256]));
        accepted.unwrap_err();
        refusal(&client);
        ask(&peer, &port, &plain)
            .connect(Some(&[1; 256]))
            .unwrap_err();
        ConnRequest::new(&peer, "no such host", &port, &plain).unwrap_err();
        Endpoint::listen(&peer, &addr(), &port).unwrap_err();
        Peer::local("203.0.113.7").unwrap_err();
    });
    drop(endpoint);
    still_works(&peer);
}

#[test]
fn requests_that_nobody_answers() {
    let (_turn, peer) = alone_on_device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    leaves_nothing(5, |_| {
        // Never connected; connected and forgotten by the client; and by both.
        drop(ask(&peer, &port, &cfg));
        drop(ask(&peer, &port, &cfg).connect(None).unwrap());
        let client = ask(&peer, &port, &cfg).connect(None).unwrap();
        while let Ok(Some(request)) = endpoint.next_request_timeout(&cfg, Duration::from_millis(50))
        {
            drop(request);
        }
        drop(client);
        // Waiting at an endpoint that goes.
        let (endpoint, port) = listen(&peer);
        let client = ask(&peer, &port, &cfg).connect(None).unwrap();
        std::thread::sleep(Duration::from_millis(10));
        drop(endpoint);
        refusal(&client);
    });
    drop(endpoint);
    still_works(&peer);
}

#[test]
fn connections_that_end_in_any_way() {
    let (_turn, peer) = alone_on_device!();
    let cfg = ConnCfg::new().rcq_size(4);
    leaves_nothing(12, |n| {
        let Pair { client, server } = pair(&peer, &cfg);
        let (local, log) = buffers(&peer, 65_536);
        server.recv(&LocalSlice::EMPTY, 1).unwrap();
        post(&client, &local, &log, 65_536);
        match n % 6 {
            0 => drop(client),
            1 => drop(server),
            2 => client.close().unwrap(),
            3 => {
                client.disconnect().unwrap();
                server.close().unwrap();
            }
            4 => {
                success(client.cq(), 1);
                client.disconnect().unwrap();
                server.disconnect().unwrap_or(());
                assert!(client.next_event_timeout(LONG).unwrap().is_some());
            }
            _ => std::thread::scope(|scope| {
                scope.spawn(|| drop(client));
                scope.spawn(|| drop(server));
            }),
        }
    });
    still_works(&peer);
}

/// Calls `order` with every order of `0..n` (Heap's way).
fn every_order(n: usize, order: &mut dyn FnMut(&[usize])) {
    fn permute(k: usize, items: &mut [usize], order: &mut dyn FnMut(&[usize])) {
        if k <= 1 {
            return order(items);
        }
        for i in 0..k {
            permute(k - 1, items, order);
            items.swap(if k % 2 == 0 { i } else { 0 }, k - 1);
        }
    }
    permute(n, &mut (0..n).collect::<Vec<_>>(), order);
}

/// Drops the handles that `make` gives in every order.
fn in_every_order(make: impl Fn() -> Vec<Box<dyn Any>>) {
    let mut orders = Vec::new();
    every_order(make().len(), &mut |order| orders.push(order.to_vec()));
    leaves_nothing(orders.len() - 1, |n| {
        let mut handles: Vec<_> = make().into_iter().map(Some).collect();
        for &i in &orders[n] {
            drop(handles[i].take());
        }
    });
}

fn any<T: Any>(handle: T) -> Box<dyn Any> {
    Box::new(handle)
}

#[test]
fn every_handle_of_a_connection_in_every_order() {
    let (_turn, kept) = alone_on_device!();
    in_every_order(|| {
        let peer = Peer::local(&addr()).unwrap();
        let (endpoint, port) = listen(&peer);
        let cfg = ConnCfg::new().sq_size(2).rq_size(1);
        let client = ask(&peer, &port, &cfg).connect(None).unwrap();
        let server = next(&endpoint, &cfg).connect(None).unwrap();
        client.wait_established(LONG).unwrap();
        let (local, log) = buffers(&peer, 16_384);
        // In flight, whatever is dropped first.
        post(&client, &local, &log, 16_384);
        vec![any(peer), any(client), any(server), any(local), any(log)]
    });
    still_works(&kept);
}

#[test]
fn every_handle_of_a_region_in_every_order() {
    let (_turn, kept) = alone_on_device!();
    in_every_order(|| {
        let peer = Peer::local(&addr()).unwrap();
        let region = region(&peer, 64, Usage::RECV, |_| 0);
        let (clone, part) = (region.clone(), region.slice_owned(8..16).unwrap());
        vec![any(peer), any(region), any(clone), any(part)]
    });
    still_works(&kept);
}

#[test]
fn of_two_that_close_a_region_one_gets_the_memory_at_most() {
    let (_turn, peer) = alone_on_device!();
    leaves_nothing(50, |_| {
        let first = region(&peer, 64, Usage::RECV, |_| 0);
        let second = first.clone();
        let close = |region: LocalRegion| region.close().map_err(|(_, error)| error);
        let results = std::thread::scope(|scope| {
            [first, second]
                .map(|region| scope.spawn(move || close(region)))
                .map(|thread| thread.join().unwrap())
        });
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            assert!(matches!(error, Error::InUse { handles: 1, .. }), "{error}");
        }
        assert!(results.iter().filter(|result| result.is_ok()).count() <= 1);
    });
}

#[test]
fn every_handle_of_a_request_in_every_order() {
    let (_turn, kept) = alone_on_device!();
    in_every_order(|| {
        let peer = Peer::local(&addr()).unwrap();
        let (endpoint, port) = listen(&peer);
        let cfg = ConnCfg::new();
        let client = ask(&peer, &port, &cfg).connect(None).unwrap();
        let request = next(&endpoint, &cfg);
        let inbox = region(&peer, 64, Usage::RECV, |_| 0);
        request.recv(&inbox.slice(..).unwrap(), 1).unwrap();
        vec![any(peer), any(endpoint), any(client), any(request)]
    });
    in_every_order(|| {
        let peer = Peer::local(&addr()).unwrap();
        let (endpoint, port) = listen(&peer);
        let request = ask(&peer, &port, &ConnCfg::new());
        vec![any(peer), any(endpoint), any(request)]
    });
    still_works(&kept);
}

#[test]
fn every_handle_with_a_shared_receive_queue_in_every_order() {
    let (_turn, kept) = alone_on_device!();
    in_every_order(|| {
        let peer = Peer::local(&addr()).unwrap();
        let srq = Srq::new(&peer, &SrqCfg::new()).unwrap();
        let inbox = region(&peer, 64, Usage::RECV, |_| 0);
        srq.recv(&inbox.slice(..).unwrap(), 1).unwrap();
        let cfg = ConnCfg::new().srq(&srq);
        let Pair { client, server } = pair_of(&peer, &ConnCfg::new(), &peer, &cfg);
        drop(cfg);
        client.send(&LocalSlice::EMPTY, Signal::Always(1)).unwrap();
        vec![any(peer), any(srq), any(client), any(server)]
    });
    still_works(&kept);
}

#[test]
fn what_is_made_on_a_peer_outlives_its_handle() {
    let (_turn, peer) = alone_on_device!();
    let (endpoint, port) = listen(&peer);
    let (local, log) = buffers(&peer, 4096);
    drop(peer);
    let again = endpoint.peer().clone();
    let client = ask(&again, &port, &ConnCfg::new()).connect(None).unwrap();
    let server = next(&endpoint, &ConnCfg::new()).connect(None).unwrap();
    drop((again, endpoint));
    client.wait_established(LONG).unwrap();
    post(&client, &local, &log, 4096);
    success(client.cq(), 1);
    success(client.cq(), 2);
    assert!(contents(&log) == contents(&local));
    // Closing gives the memory back, with its bytes.
    let memory: Memory = log.close().unwrap();
    let mut bytes = vec![0; 4096];
    memory.read_at(0, &mut bytes).unwrap();
    assert!(bytes == contents(&local));
    client.close().unwrap();
    server.close().unwrap();
}

const BIG: usize = 4 << 20;
const POSTED: u64 = 6;

/// Posts transfers of `BIG` bytes, drops a region at once, and gives how they ended.
fn dropped_in_flight(peer: &Peer, read: bool, drop_local: bool) -> Vec<WcStatus> {
    let Pair { client, server } = pair(peer, &ConnCfg::new());
    let mut local = Some(region(peer, BIG, local_usage(), |_| 0xAB));
    let mut log = Some(region(peer, BIG, remote_usage(), |_| 0xCD));
    {
        let here = local.as_ref().unwrap().slice(..).unwrap();
        let there = remote(log.as_ref().unwrap()).whole();
        for n in 0..POSTED {
            if read {
                client.read(&here, &there, Signal::Always(n)).unwrap();
            } else {
                client.write(&here, &there, Signal::Always(n)).unwrap();
            }
        }
    }
    drop(if drop_local { local.take() } else { log.take() });
    // Most likely at the very address: what is in flight must not get here any more.
    let other = Memory::anonymous(BIG).unwrap();
    other.write_at(0, &vec![0x5A; BIG]).unwrap();
    let mut ended = Vec::new();
    let mut asked = false;
    until("the ends of all transfers", || {
        while let Some(wc) = client.cq().poll_one().unwrap() {
            ended.push(wc.status());
        }
        // iWARP tells by the end of the connection, and this side has to agree to it.
        if let Some(event) = client.try_next_event().unwrap() {
            assert_eq!(event.kind(), rpma::ConnEventKind::Closed);
            asked = client.disconnect().is_ok() || asked;
        }
        ended.len() == POSTED as usize
    });
    let mut bytes = vec![0; BIG];
    other.read_at(0, &mut bytes).unwrap();
    assert!(bytes.iter().all(|&byte| byte == 0x5A));
    drop((client, server));
    ended
}

#[test]
fn a_region_dropped_while_it_is_used() {
    let (_turn, peer) = alone_on_device!();
    for (read, drop_local) in [(false, true), (true, true), (false, false), (true, false)] {
        leaves_nothing(1, |_| {
            let ended = dropped_in_flight(&peer, read, drop_local);
            let failed = ended.iter().filter(|status| **status != WcStatus::SUCCESS);
            let what = format!("read: {read}, local: {drop_local}: {ended:?}");
            println!("{what}");
            // Successes first, then what failed, then what was behind it.
            let first = ended.iter().position(|status| *status != WcStatus::SUCCESS);
            let behind = &ended[first.map_or(ended.len(), |first| first + 1)..];
            assert!(
                behind
                    .iter()
                    .all(|status| *status == WcStatus::WR_FLUSH_ERR),
                "{what}"
            );
            if !on_standin() && !iwarp(&peer) {
                assert!(failed.count() > 0, "{what}");
                let expected: &[WcStatus] = if drop_local {
                    &[
                        WcStatus::LOC_PROT_ERR,
                        WcStatus::WR_FLUSH_ERR,
                        WcStatus::LOC_QP_OP_ERR,
                    ]
                } else {
                    &[WcStatus::REM_ACCESS_ERR]
                };
                assert!(expected.contains(&ended[first.unwrap()]), "{what}");
            }
        });
        still_works(&peer);
    }
}
