//! Long reads, flushes and words on Soft-RoCE, whose driver loses its way where packets are lost:
//! what is done in another way there looks like one operation all the same. Other devices run it
//! too.

mod common;

use common::*;
use rpma::{
    ConnCfg, FlushKind, FlushMethod, LocalSlice, Peer, RemoteSlice, Signal, Usage, WcOpcode,
    WcStatus,
};

const LEN: usize = 64 * 1024;

fn rig(peer: &Peer, cfg: &ConnCfg) -> Rig {
    let rig = Rig::of(peer, cfg, LEN, remote_usage() | local_usage());
    let bytes: Vec<u8> = (0..LEN).map(|n| (n % 251) as u8).collect();
    rig.log.write_at(0, &bytes).unwrap();
    rig
}

fn near(rig: &Rig, at: u64, len: u64) -> LocalSlice<'_> {
    rig.local.slice(at..at + len).unwrap()
}

fn far(rig: &Rig, at: u64, len: u64) -> RemoteSlice {
    rig.remote.slice(at..at + len).unwrap()
}

/// Lengths around the smallest path MTU and the usual ones.
const LENGTHS: [u64; 10] = [1, 8, 255, 256, 257, 264, 1024, 1025, 4097, 20000];

#[test]
fn reads_of_any_length_bring_their_bytes_and_one_completion() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new());
    for (n, len) in (0..).zip(LENGTHS) {
        let at = n * 13;
        rig.local.write_at(0, &[0xAA; LEN]).unwrap();
        (rig.client)
            .read(&near(&rig, 7, len), &far(&rig, at, len), Signal::Always(n))
            .unwrap();
        let wc = success(rig.client.cq(), n);
        assert_eq!(wc.opcode(), WcOpcode::RDMA_READ);
        assert!(nothing(rig.client.cq()));
        let (here, there) = (contents(&rig.local), contents(&rig.log));
        let (len, at) = (len as usize, at as usize);
        assert_eq!(here[7..7 + len], there[at..at + len], "{len} bytes");
        assert!(here[..7].iter().chain(&here[7 + len..]).all(|&b| b == 0xAA));
    }
}

#[test]
fn reads_in_batches_and_without_signals_are_right() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().sq_size(32));
    let mut batch = rig.client.batch();
    for (n, len) in (0..).zip(LENGTHS) {
        let (near, far) = (
            near(&rig, n * 4096, len.min(4096)),
            far(&rig, n, len.min(4096)),
        );
        batch.read(&near, &far, Signal::OnError(n)).unwrap();
    }
    let (near, far) = (near(&rig, 60_000, 3000), far(&rig, 0, 3000));
    batch.read(&near, &far, Signal::Always(99)).unwrap();
    assert_eq!(batch.len(), LENGTHS.len() + 1);
    batch.submit().unwrap();
    success(rig.client.cq(), 99);
    assert!(nothing(rig.client.cq()));
    let (here, there) = (contents(&rig.local), contents(&rig.log));
    for (n, len) in LENGTHS.into_iter().enumerate() {
        let (at, len) = (n * 4096, len.min(4096) as usize);
        assert_eq!(here[at..at + len], there[n..n + len], "{len} bytes");
    }
    assert_eq!(here[60_000..63_000], there[..3000]);
}

#[test]
fn a_long_read_is_spread_over_slices() {
    let peer = device!();
    if peer.capabilities().transport.is_iwarp() {
        skip!("iWARP reads into one slice");
    }
    let rig = rig(&peer, &ConnCfg::new().max_sge(4));
    for (n, last) in (0..).zip([1u64, 8, 9, 700]) {
        let lens = [100, 300, 5, last];
        let total = lens.iter().sum();
        let mut at = 0;
        let slices = lens.map(|len| {
            at += len + 3;
            near(&rig, at - len, len)
        });
        rig.local.write_at(0, &[0xAA; 4096]).unwrap();
        (rig.client)
            .read_scatter(&slices, &far(&rig, 50, total), Signal::Always(n))
            .unwrap();
        success(rig.client.cq(), n);
        assert!(nothing(rig.client.cq()));
        let (here, there) = (contents(&rig.local), contents(&rig.log));
        let (mut at, mut from) = (0, 50);
        for len in lens.map(|len| len as usize) {
            assert!(here[at..at + 3].iter().all(|&byte| byte == 0xAA));
            assert_eq!(here[at + 3..at + 3 + len], there[from..from + len]);
            (at, from) = (at + 3 + len, from + len);
        }
    }
}

#[test]
fn as_many_long_reads_as_the_send_queue_was_asked_for_fit() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().sq_size(8).cq_size(8));
    for round in 0..3 {
        for n in 0..8 {
            (rig.client)
                .read(
                    &near(&rig, n * 2000, 2000),
                    &far(&rig, n, 2000),
                    Signal::Always(round * 8 + n),
                )
                .unwrap();
        }
        for n in 0..8 {
            success(rig.client.cq(), round * 8 + n);
        }
        assert!(nothing(rig.client.cq()));
    }
}

#[test]
fn a_long_read_that_the_peer_refuses_has_one_completion() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new());
    let gone = region(&peer, 4096, Usage::READ_SRC, |_| 0);
    let there = remote(&gone).whole();
    drop(gone);
    (rig.client)
        .read(&near(&rig, 0, 4096), &there, Signal::Always(5))
        .unwrap();
    let wc = completion(rig.client.cq());
    assert_eq!(wc.wr_id(), 5);
    // Soft-iWARP ends the connection and tells no more.
    let refused = [
        WcStatus::REM_ACCESS_ERR,
        WcStatus::WR_FLUSH_ERR,
        WcStatus::REM_OP_ERR,
    ];
    assert!(refused.contains(&wc.status()), "{wc:?}");
    assert!(nothing(rig.client.cq()));
}

#[test]
fn soft_roce_flushes_by_reading_unless_it_is_told_otherwise() {
    let peer = device!();
    if !is_soft_roce(&peer) {
        skip!("the device is not Soft-RoCE");
    }
    for (cfg, flush, word) in [
        (ConnCfg::new(), WcOpcode::RDMA_READ, WcOpcode::RDMA_WRITE),
        (
            ConnCfg::new().flush_method(FlushMethod::Native),
            WcOpcode::FLUSH,
            WcOpcode::RDMA_WRITE,
        ),
        (
            ConnCfg::new().device_workarounds(false),
            WcOpcode::FLUSH,
            WcOpcode::ATOMIC_WRITE,
        ),
    ] {
        let rig = rig(&peer, &cfg);
        (rig.client)
            .flush(&far(&rig, 0, 100), FlushKind::Visibility, Signal::Always(1))
            .unwrap();
        assert_eq!(success(rig.client.cq(), 1).opcode(), flush, "{cfg:?}");
        (rig.client)
            .atomic_write(&far(&rig, 8, 8), *b"8 bytes!", Signal::Always(2))
            .unwrap();
        assert_eq!(success(rig.client.cq(), 2).opcode(), word, "{cfg:?}");
        assert_eq!(contents(&rig.log)[8..16], *b"8 bytes!");
        assert_eq!(
            rig.client.has_native_atomic_write(),
            word == WcOpcode::ATOMIC_WRITE
        );
        let native = rig.client.has_native_flush(FlushKind::Visibility);
        assert_eq!(native, flush == WcOpcode::FLUSH);
    }
}
