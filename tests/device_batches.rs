//! Batches: what is added goes out at once, in order, or not at all.

mod common;

use common::*;
use rpma::{
    ConnCfg, Connection, Error, FlushKind, LocalRegion, Peer, RemoteRegion, Signal, Usage, WcStatus,
};

const LEN: usize = 64 * 1024;

struct Rig {
    client: Connection,
    _server: Connection,
    local: LocalRegion,
    log: LocalRegion,
    remote: RemoteRegion,
}

fn rig(peer: &Peer, cfg: &ConnCfg) -> Rig {
    let Pair { client, server } = pair(peer, cfg);
    let local = region(peer, LEN, local_usage(), byte);
    let log = region(peer, LEN, remote_usage(), |_| 0xEE);
    let remote = remote(&log);
    Rig {
        client,
        _server: server,
        local,
        log,
        remote,
    }
}

/// Adds one of everything; the last, number 5, is signalled. With `flush`, and so as one chain of
/// the extended queue pair.
fn mixed(rig: &Rig, batch: &mut rpma::Batch<'_>, flush: bool) {
    let here = |from: u64, len: u64| rig.local.slice(from..from + len).unwrap();
    let there = |from: u64, len: u64| rig.remote.slice(from..from + len).unwrap();
    batch
        .write(&here(0, 1000), &there(0, 1000), Signal::OnError(1))
        .unwrap();
    batch
        .write_inline(b"inline", &there(2000, 6), Signal::OnError(2))
        .unwrap();
    batch
        .write_gather(
            &[here(5000, 10), here(6000, 20)],
            &there(3000, 30),
            Signal::OnError(3),
        )
        .unwrap();
    if flush {
        batch
            .flush(&there(0, 1000), FlushKind::Visibility, Signal::OnError(4))
            .unwrap();
        batch
            .atomic_write(&there(4000, 8), *b"8 bytes!", Signal::OnError(5))
            .unwrap();
    }
    // What was written before in the same batch can be read.
    batch
        .write_inline(b"second", &there(2000, 6), Signal::OnError(6))
        .unwrap();
    batch
        .read(&here(60_000, 6), &there(2000, 6), Signal::Always(7))
        .unwrap();
}

fn check_mixed(rig: &Rig, flush: bool) {
    success(rig.client.cq(), 7);
    assert!(nothing(rig.client.cq()));
    let (here, there) = (contents(&rig.local), contents(&rig.log));
    assert!(there[..1000] == here[..1000]);
    assert_eq!(&there[2000..2006], b"second");
    assert_eq!(&here[60_000..60_006], b"second");
    assert_eq!(
        there[3000..3030],
        [&here[5000..5010], &here[6000..6020]].concat()
    );
    assert_eq!((there[1000], there[2006], there[3030]), (0xEE, 0xEE, 0xEE));
    if flush {
        assert_eq!(&there[4000..4008], b"8 bytes!");
    }
    rig.log.write_at(0, &vec![0xEE; LEN]).unwrap();
    rig.local.write_at(60_000, &[0; 6]).unwrap();
}

#[test]
fn a_batch_of_everything_goes_out_in_order() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().max_sge(2).max_inline(16));
    for round in 0..6 {
        let flush = round % 2 == 1;
        let mut batch = rig.client.batch();
        mixed(&rig, &mut batch, flush);
        assert_eq!(batch.len(), if flush { 7 } else { 5 });
        batch.submit().unwrap();
        assert!(batch.is_empty());
        check_mixed(&rig, flush);
        // The same batch can be filled again, and an empty one does nothing.
        batch.submit().unwrap();
        mixed(&rig, &mut batch, flush);
        batch.submit().unwrap();
        check_mixed(&rig, flush);
    }
}

#[test]
fn what_is_not_submitted_is_not_done() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().max_sge(2).max_inline(16));
    let mut batch = rig.client.batch();
    mixed(&rig, &mut batch, true);
    batch.clear();
    assert!(batch.is_empty());
    batch.submit().unwrap();
    mixed(&rig, &mut batch, false);
    drop(batch);
    assert!(nothing(rig.client.cq()));
    assert!(contents(&rig.log).iter().all(|&byte| byte == 0xEE));
    // Nothing of the dropped one is left in the next.
    let mut batch = rig.client.batch();
    assert!(batch.is_empty());
    mixed(&rig, &mut batch, true);
    batch.submit().unwrap();
    check_mixed(&rig, true);
}

#[test]
fn a_refused_operation_leaves_the_batch_as_it_was() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().max_sge(2).max_inline(16));
    let mut batch = rig.client.batch();
    mixed(&rig, &mut batch, true);
    let (here, there) = (
        rig.local.slice(0..8).unwrap(),
        rig.remote.slice(1..9).unwrap(),
    );
    let long = rig.remote.slice(0..9).unwrap();
    let wrong = rig.log.slice(0..8).unwrap();
    for refused in [
        batch.write(&here, &long, Signal::Always(100)),
        batch.write(&wrong, &there, Signal::Always(100)),
        batch.write_gather(&[here, here], &long, Signal::Always(100)),
        batch.write_inline(&[0; 8], &long, Signal::Always(100)),
        batch.read(&wrong, &there, Signal::Always(100)),
        batch.send(&wrong, Signal::Always(100)),
        batch.atomic_write(&there, [0; 8], Signal::Always(100)),
        batch.flush(
            &rig.remote.slice(0..0).unwrap(),
            FlushKind::Visibility,
            Signal::Always(100),
        ),
    ] {
        assert_eq!(refused.unwrap_err().code(), rpma::code::INVAL);
        assert_eq!(batch.len(), 7);
    }
    batch.submit().unwrap();
    check_mixed(&rig, true);
}

#[test]
fn a_full_queue_takes_what_fits_and_the_rest_can_follow() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().sq_size(4));
    let depth = rig.client.sq_size() as usize;
    let many = 3 * depth;
    assert!(many * 1000 < LEN);
    let mut batch = rig.client.batch();
    for n in 0..many as u64 {
        let (from, to) = (n * 1000, n * 1000 + 1000);
        batch
            .write(
                &rig.local.slice(from..to).unwrap(),
                &rig.remote.slice(from..to).unwrap(),
                Signal::Always(n),
            )
            .unwrap();
    }
    let mut next = 0;
    let mut full = 0;
    loop {
        let before = batch.len();
        let result = batch.submit();
        match &result {
            Ok(()) => assert!(batch.is_empty()),
            Err(Error::QueueFull { accepted, .. }) => {
                full += 1;
                assert_eq!(batch.len(), before - accepted);
            }
            Err(other) => panic!("{other}"),
        }
        // What was accepted, and no more, completes.
        for _ in 0..before - batch.len() {
            success(rig.client.cq(), next);
            next += 1;
        }
        if result.is_ok() {
            break;
        }
        assert!(full < 100);
    }
    assert!(full > 0, "{many} operations fit a queue of {depth}");
    assert!(nothing(rig.client.cq()));
    assert!(contents(&rig.log)[..many * 1000] == contents(&rig.local)[..many * 1000]);
}

#[test]
fn a_full_receive_queue_takes_what_fits_and_the_rest_can_follow() {
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new().rq_size(4));
    let inbox = region(&peer, 4096, Usage::RECV, |_| 0);
    let depth = server.rq_size() as usize;
    let many = 3 * depth;
    let mut batch = server.recv_batch().unwrap();
    for n in 0..many as u64 {
        batch.recv(&inbox.slice(n..n + 1).unwrap(), n).unwrap();
    }
    let mut next = 0;
    let mut full = 0;
    loop {
        let before = batch.len();
        let result = batch.submit();
        match &result {
            Ok(()) => assert!(batch.is_empty()),
            Err(Error::QueueFull { accepted, .. }) => {
                full += 1;
                assert_eq!(batch.len(), before - accepted);
                assert!(*accepted > 0 && full < 10);
            }
            Err(other) => panic!("{other}"),
        }
        for _ in 0..before - batch.len() {
            client
                .send_inline(&[next as u8], Signal::Always(next))
                .unwrap();
            success(client.cq(), next);
            success(server.cq(), next);
            next += 1;
        }
        if result.is_ok() {
            break;
        }
    }
    assert_eq!((full > 0, next), (true, many as u64));
    let got = contents(&inbox);
    assert!((0..many).all(|n| got[n] == n as u8));
}

#[test]
fn an_extended_batch_that_does_not_fit_is_not_posted_at_all() {
    let peer = device!();
    if !peer.capabilities().native_flush_visibility {
        skip!("this device has no native flush");
    }
    let cfg = ConnCfg::new().device_workarounds(false);
    let rig = rig(&peer, &cfg.sq_size(4));
    let depth = u64::from(rig.client.sq_size());
    let mut batch = rig.client.batch();
    for n in 0..3 * depth {
        batch
            .write_inline(
                &[1],
                &rig.remote.slice(n..n + 1).unwrap(),
                Signal::Always(n),
            )
            .unwrap();
    }
    batch
        .flush(
            &rig.remote.whole(),
            FlushKind::Visibility,
            Signal::Always(1000),
        )
        .unwrap();
    let refused = batch.submit().unwrap_err();
    assert!(
        matches!(refused, Error::AboveLimit { limit, .. } if limit == depth),
        "{refused:?}"
    );
    assert_eq!(batch.len() as u64, 3 * depth + 1);
    assert!(nothing(rig.client.cq()));
    assert!(contents(&rig.log).iter().all(|&byte| byte == 0xEE));
    // The connection goes on.
    batch.clear();
    batch
        .flush(
            &rig.remote.whole(),
            FlushKind::Visibility,
            Signal::Always(1),
        )
        .unwrap();
    batch.submit().unwrap();
    success(rig.client.cq(), 1);
}

#[test]
fn a_batch_that_would_fill_the_queue_for_ever_is_refused() {
    let peer = device!();
    for size in [1, 4, 100] {
        let cfg = ConnCfg::new()
            .sq_size(size)
            .device_workarounds(iwarp(&peer));
        let rig = rig(&peer, &cfg);
        // On iWARP each operation may take two places.
        let depth = u64::from(rig.client.sq_size()) * if iwarp(&peer) { 2 } else { 1 };
        let far = |n: u64| rig.remote.slice(n..n + 1).unwrap();
        let mut batch = rig.client.batch();
        // Twice: the second time the memory has its size already.
        for _ in 0..2 {
            for n in 0..depth {
                batch
                    .write_inline(&[1], &far(n), Signal::OnError(n))
                    .unwrap();
            }
            batch
                .write_inline(&[1], &far(depth), Signal::Always(depth))
                .unwrap();
            let refused = batch.submit().unwrap_err();
            let Error::AboveLimit { value, .. } = refused else {
                panic!("{refused:?}");
            };
            assert_eq!((value, batch.len() as u64), (depth + 1, depth + 1));
            assert!(nothing(rig.client.cq()));
            batch.clear();
        }
        assert!(contents(&rig.log).iter().all(|&byte| byte == 0xEE));
        // As many as there are places, of which the last tells that all are done.
        for n in 0..depth - 1 {
            batch
                .write_inline(&[1], &far(n), Signal::OnError(n))
                .unwrap();
        }
        batch
            .write_inline(&[1], &far(depth - 1), Signal::Always(9))
            .unwrap();
        batch.submit().unwrap();
        success(rig.client.cq(), 9);
        let bytes = contents(&rig.log);
        assert!(bytes[..depth as usize].iter().all(|&byte| byte == 1));
    }
}

#[test]
fn a_batch_ends_at_its_first_failure() {
    let peer = device!();
    if iwarp(&peer) {
        skip!("iWARP: a write is complete when it is on its way, whatever the peer says of it");
    }
    let rig = rig(&peer, &ConnCfg::new());
    let gone = remote(&region(&peer, 4096, remote_usage(), |_| 0));
    let here = rig.local.slice(0..8).unwrap();
    let mut batch = rig.client.batch();
    let there = |n: u64| rig.remote.slice(n * 8..n * 8 + 8).unwrap();
    batch.write(&here, &there(0), Signal::OnError(0)).unwrap();
    batch
        .write(&here, &gone.slice(0..8).unwrap(), Signal::OnError(1))
        .unwrap();
    batch.write(&here, &there(2), Signal::OnError(2)).unwrap();
    batch.write(&here, &there(3), Signal::Always(3)).unwrap();
    batch.submit().unwrap();
    let mut failed = Vec::new();
    until("the failures", || {
        while let Some(wc) = rig.client.cq().poll_one().unwrap() {
            assert_ne!(wc.status(), WcStatus::SUCCESS);
            failed.push(wc.wr_id());
        }
        failed.last() == Some(&3)
    });
    assert_eq!(failed, [1, 2, 3]);
    let bytes = contents(&rig.log);
    assert!(bytes[..8] == contents(&rig.local)[..8]);
    assert!(bytes[8..].iter().all(|&byte| byte == 0xEE));
}

#[test]
fn threads_may_each_have_a_batch() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().sq_size(64));
    std::thread::scope(|scope| {
        for t in 0..4u64 {
            let rig = &rig;
            scope.spawn(move || {
                for round in 0..4u64 {
                    let mut batch = rig.client.batch();
                    for n in 0..4u64 {
                        let at = ((t * 4 + round) * 4 + n) * 100;
                        batch
                            .write(
                                &rig.local.slice(at..at + 100).unwrap(),
                                &rig.remote.slice(at..at + 100).unwrap(),
                                Signal::Always(at),
                            )
                            .unwrap();
                    }
                    batch.submit().unwrap();
                }
            });
        }
    });
    let mut seen: Vec<u64> = (0..64)
        .map(|_| completion(rig.client.cq()))
        .inspect(|wc| assert!(wc.is_success()))
        .map(|wc| wc.wr_id())
        .collect();
    // The four of one batch stay together, though batches may mix.
    for four in seen.chunks(4) {
        assert!(
            four.windows(2).all(|two| two[1] == two[0] + 100),
            "{seen:?}"
        );
    }
    seen.sort_unstable();
    assert!(seen.into_iter().eq((0..64).map(|n| n * 100)));
    assert!(contents(&rig.log)[..6400] == contents(&rig.local)[..6400]);
}
