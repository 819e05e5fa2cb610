//! Operations beyond the foundation: fences, flushes of parts and of all, receives of every kind.

mod common;

use common::*;
use rdma_sys as ffi;
use rpma::{Completion, ConnCfg, FlushKind, LocalSlice, Peer, Signal, Usage, WcOpcode};

fn rig(peer: &Peer, cfg: &ConnCfg) -> Rig {
    let mut usage = remote_usage() | Usage::RECV;
    if peer.capabilities().atomics {
        usage |= Usage::ATOMIC;
    }
    Rig::of(peer, cfg, 4096, usage)
}

#[test]
fn a_fence_waits_for_the_reads_before_it() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().sq_size(32));
    let word = rig.remote.slice(0..8).unwrap();
    for n in 0..50u64 {
        // What is read is what is written back, behind the fence: without it the write could take
        // the buffer's old bytes.
        rig.log.write_at(0, &n.to_le_bytes()).unwrap();
        let buffer = rig.local.slice(0..8).unwrap();
        rig.client.read(&buffer, &word, Signal::OnError(1)).unwrap();
        rig.client
            .write(
                &buffer,
                &rig.remote.slice(8..16).unwrap(),
                Signal::Always(2).fenced(),
            )
            .unwrap();
        success(rig.client.cq(), 2);
        rig.client
            .flush(
                &rig.remote.whole(),
                FlushKind::Visibility,
                Signal::Always(3),
            )
            .unwrap();
        success(rig.client.cq(), 3);
        assert_eq!(contents(&rig.log)[8..16], n.to_le_bytes());
    }
}

#[test]
fn one_flush_covers_all_writes_before_it() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().sq_size(32));
    for kind in FLUSHES {
        for range in [0..4096, 0..1, 4095..4096, 100..356] {
            rig.log.write_at(0, &[0xEE; 4096]).unwrap();
            for n in 0..16 {
                let at = n * 256;
                rig.client
                    .write(
                        &rig.local.slice(at..at + 256).unwrap(),
                        &rig.remote.slice(at..at + 256).unwrap(),
                        Signal::OnError(n),
                    )
                    .unwrap();
            }
            rig.client
                .flush(&rig.remote.slice(range).unwrap(), kind, Signal::Always(99))
                .unwrap();
            let wc = success(rig.client.cq(), 99);
            assert!([WcOpcode::FLUSH, WcOpcode::RDMA_READ].contains(&wc.opcode()));
            assert!(contents(&rig.log) == contents(&rig.local));
        }
    }
}

#[test]
fn immediate_data_come_with_bytes_and_without() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().rcq_size(8));
    let here = rig.local.slice(0..16).unwrap();
    let there = rig.remote.slice(0..16).unwrap();
    if iwarp(&peer) {
        for refused in [
            rig.client.send_with_imm(&here, 1, Signal::Always(1)),
            rig.client
                .write_with_imm(&here, &there, 1, Signal::Always(1)),
        ] {
            assert!(
                matches!(refused, Err(rpma::Error::NotSupported { capability }) if capability.contains("immediate")),
            );
        }
        assert!(nothing(rig.client.cq()));
        return;
    }
    let rcq = rig.server.rcq().unwrap();
    let nowhere = rig.remote.slice(0..0).unwrap();
    for imm in [0, 1, 0x8000_0001, u32::MAX] {
        rig.server.recv(&rig.log.slice(64..80).unwrap(), 1).unwrap();
        rig.client
            .send_with_imm(&here, imm, Signal::OnError(1))
            .unwrap();
        let wc = success(rcq, 1);
        assert_eq!((wc.opcode(), wc.byte_len()), (WcOpcode::RECV, 16));
        assert_eq!(wc.imm_data(), Some(imm));

        rig.server.recv(&LocalSlice::EMPTY, 2).unwrap();
        rig.client
            .send_with_imm(&LocalSlice::EMPTY, imm, Signal::OnError(2))
            .unwrap();
        let wc = success(rcq, 2);
        assert_eq!((wc.byte_len(), wc.imm_data()), (0, Some(imm)));

        for (src, dst) in [(here, &there), (LocalSlice::EMPTY, &nowhere)] {
            rig.server.recv(&LocalSlice::EMPTY, 3).unwrap();
            rig.client
                .write_with_imm(&src, dst, imm, Signal::Always(3))
                .unwrap();
            let wc = success(rcq, 3);
            assert_eq!(wc.opcode(), WcOpcode::RECV_RDMA_WITH_IMM);
            assert_eq!(wc.imm_data(), Some(imm));
            success(rig.client.cq(), 3);
        }
    }
    assert_eq!(contents(&rig.log)[..16], contents(&rig.local)[..16]);
}

#[test]
fn receives_of_a_request_may_come_in_a_batch_too() {
    let peer = device!();
    let inbox = region(&peer, 64, Usage::RECV, |_| 0);
    let (endpoint, port) = listen(&peer);
    let request = ask(&peer, &port, &ConnCfg::new());
    let mut batch = request.recv_batch().unwrap();
    for n in 0..4 {
        batch
            .recv(&inbox.slice(n * 8..n * 8 + 8).unwrap(), n)
            .unwrap();
    }
    batch.submit().unwrap();
    drop(batch);
    let client = request.connect(None).unwrap();
    let request = next(&endpoint, &ConnCfg::new());
    request.recv(&inbox.slice(32..40).unwrap(), 77).unwrap();
    let server = request.connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    client.send_inline(b"to you", Signal::OnError(1)).unwrap();
    success(server.cq(), 77);
    server.wait_established(LONG).unwrap();
    for n in 0..4 {
        server
            .send_inline(&[n as u8; 8], Signal::OnError(n))
            .unwrap();
        assert_eq!(success(client.cq(), n).byte_len(), 8);
    }
    assert_eq!(
        contents(&inbox)[24..38],
        *b"\x03\x03\x03\x03\x03\x03\x03\x03to you"
    );
}

#[test]
fn few_responder_resources_slow_reads_down_and_lose_none() {
    let peer = device!();
    let cfg = ConnCfg::new()
        .responder_resources(1)
        .initiator_depth(1)
        .sq_size(64)
        .retry_count(5);
    let rig = rig(&peer, &cfg);
    for n in 0..30 {
        let at = n * 64;
        rig.client
            .read(
                &rig.local.slice(at..at + 64).unwrap(),
                &rig.remote.slice(at..at + 64).unwrap(),
                Signal::Always(n),
            )
            .unwrap();
    }
    let mut buf = [Completion::default(); 8];
    let mut seen = 0;
    while seen < 30 {
        let wait = rpma::Wait::new().timeout(LONG);
        for wc in rig.client.cq().take(&mut buf, wait).unwrap() {
            assert!(wc.is_success() && wc.wr_id() == seen, "{wc:?}");
            seen += 1;
        }
    }
    assert!(
        contents(&rig.local)[..30 * 64]
            .iter()
            .all(|&byte| byte == 0xEE)
    );
}

/// Soft-RoCE takes 7, which is the default, for retries without end: an operation whose peer was
/// gone never completed.
#[test]
fn soft_roce_is_not_asked_for_retries_without_end() {
    let peer = device!();
    if iwarp(&peer) {
        skip!("iWARP leaves it to TCP");
    }
    let soft_roce = is_soft_roce(&peer);
    for (asked, granted) in [(7, if soft_roce { 6 } else { 7 }), (6, 6), (2, 2)] {
        let Pair { client, server } = pair(&peer, &ConnCfg::new().retry_count(asked));
        for conn in [&client, &server] {
            let mut attr = ffi::ibv_qp_attr::default();
            let mut init = ffi::ibv_qp_init_attr::default();
            let mask = ffi::IBV_QP_RETRY_CNT as i32;
            // SAFETY: the queue pair lives as long as its connection, the structs are whole.
            let code = unsafe { ffi::ibv_query_qp(conn.as_raw_qp(), &mut attr, mask, &mut init) };
            assert_eq!((code, attr.retry_cnt), (0, granted), "asked for {asked}");
        }
    }
}
