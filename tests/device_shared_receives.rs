//! Shared receive queues: where their receives complete, and what a full one takes.

mod common;

use std::os::fd::{AsFd, AsRawFd};

use common::*;
use rpma::{ConnCfg, Error, LocalRegion, LocalSlice, Peer, Signal, Srq, SrqCfg, Usage, WcStatus};

/// Several connections to one SRQ; each sends its number; where they arrive is for the caller to
/// see.
fn on_srq(peer: &Peer, cfg: &ConnCfg, srq: &Srq) -> (Vec<Pair>, LocalRegion) {
    let inbox = region(peer, 4096, Usage::RECV, |_| 0);
    for n in 0..4u64 {
        srq.recv(&inbox.slice(n * 8..n * 8 + 8).unwrap(), n)
            .unwrap();
    }
    let server_cfg = cfg.clone().srq(srq);
    let pairs: Vec<Pair> = (0..4)
        .map(|_| pair_of(peer, &ConnCfg::new(), peer, &server_cfg))
        .collect();
    for (n, pair) in pairs.iter().enumerate() {
        pair.client
            .send_inline(&[n as u8; 8], Signal::Always(1))
            .unwrap();
        success(pair.client.cq(), 1);
    }
    (pairs, inbox)
}

#[test]
fn an_srq_with_its_own_queue_takes_the_receives_of_all_its_connections() {
    let peer = device!();
    let srq = Srq::new(&peer, &SrqCfg::new()).unwrap();
    let rcq = srq.rcq().unwrap();
    assert!(srq.depth() >= 20 && rcq.entries() >= srq.depth());
    // Even where the connection asked for one of its own.
    let (pairs, inbox) = on_srq(&peer, &ConnCfg::new().rcq_size(3), &srq);
    let mut seen = Vec::new();
    for n in 0..4 {
        let wc = success(rcq, n);
        let from = pairs
            .iter()
            .position(|pair| pair.server.qp_num() == wc.qp_num())
            .expect("one of the connections");
        assert_eq!(contents(&inbox)[n as usize * 8..][..8], [from as u8; 8]);
        seen.push(from);
    }
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3]);
    for pair in &pairs {
        let theirs = pair.server.rcq().unwrap();
        assert_eq!(theirs.as_fd().as_raw_fd(), rcq.as_fd().as_raw_fd());
        assert!(pair.server.srq().is_some());
        assert_eq!(pair.server.rq_size(), 0);
        assert!(nothing(pair.server.cq()));
    }
    // The connections hold the queue; it holds none of them.
    drop(srq);
    pairs[2]
        .server
        .srq()
        .unwrap()
        .recv(&LocalSlice::EMPTY, 9)
        .unwrap();
    pairs[1]
        .client
        .send_inline(&[], Signal::OnError(1))
        .unwrap();
    assert_eq!(success(pairs[3].server.rcq().unwrap(), 9).byte_len(), 0);
}

#[test]
fn an_srq_without_a_queue_leaves_the_receives_to_the_connections() {
    let peer = device!();
    for rcq_size in [0, 3] {
        let srq = Srq::new(&peer, &SrqCfg::new().rcq_size(0)).unwrap();
        assert!(srq.rcq().is_none());
        let (pairs, inbox) = on_srq(&peer, &ConnCfg::new().rcq_size(rcq_size), &srq);
        for (n, pair) in pairs.iter().enumerate() {
            let cq = pair.server.rcq().unwrap_or(pair.server.cq());
            assert_eq!(pair.server.rcq().is_some(), rcq_size > 0);
            // Each may find the whole SRQ's receives completing here.
            assert!(cq.entries() >= srq.depth());
            let wc = completion(cq);
            assert_eq!(
                (wc.status(), wc.qp_num()),
                (WcStatus::SUCCESS, pair.server.qp_num())
            );
            let at = wc.wr_id() as usize * 8;
            assert_eq!(contents(&inbox)[at..at + 8], [n as u8; 8]);
        }
    }
}

#[test]
fn an_srq_with_its_own_queue_and_a_shared_channel_exclude_each_other() {
    let peer = device!();
    let own = Srq::new(&peer, &SrqCfg::new()).unwrap();
    let without = Srq::new(&peer, &SrqCfg::new().rcq_size(0)).unwrap();
    let (endpoint, port) = listen(&peer);
    let refused = rpma::ConnRequest::new(
        &peer,
        &addr(),
        &port,
        &ConnCfg::new().srq(&own).shared_channel(true),
    );
    assert!(
        matches!(&refused, Err(Error::InvalidArgument { argument, .. }) if *argument == "shared_channel"),
        "{refused:?}"
    );
    let cfg = ConnCfg::new()
        .srq(&without)
        .rcq_size(4)
        .shared_channel(true);
    let client = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
    let server = next(&endpoint, &cfg).connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    server.wait_established(LONG).unwrap();
    without.recv(&LocalSlice::EMPTY, 5).unwrap();
    client.send_inline(&[], Signal::OnError(1)).unwrap();
    let fired = server.wait().unwrap();
    assert!(fired.is_rcq);
    success(fired.cq, 5);
}

#[test]
fn a_full_srq_takes_what_fits_and_the_rest_can_follow() {
    let peer = device!();
    let srq = Srq::new(&peer, &SrqCfg::new().size(4)).unwrap();
    let depth = srq.depth() as usize;
    let mut batch = srq.recv_batch();
    for n in 0..depth as u64 + 3 {
        batch.recv(&LocalSlice::EMPTY, n).unwrap();
    }
    let refused = batch.submit().unwrap_err();
    let Error::QueueFull { accepted, .. } = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((accepted, batch.len()), (depth, 3));
    let Pair { client, server } = pair_of(&peer, &ConnCfg::new(), &peer, &ConnCfg::new().srq(&srq));
    for n in 0..depth as u64 + 3 {
        client.send_inline(&[], Signal::Always(n)).unwrap();
        success(client.cq(), n);
        success(server.rcq().unwrap(), n);
        if n == 3 {
            batch.submit().unwrap();
        }
    }
    assert!(nothing(server.rcq().unwrap()));
}
