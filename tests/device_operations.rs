//! Every operation, with what it did looked at on the other side.

mod common;

use common::*;
use rpma::{
    ConnCfg, ConnEventKind, Error, FlushKind, LocalSlice, Memory, Peer, Signal, Usage, WcOpcode,
    WcStatus,
};

const LEN: usize = 128 * 1024;

fn rig(peer: &Peer, cfg: &ConnCfg) -> Rig {
    Rig::of(peer, cfg, LEN, remote_usage() | local_usage())
}

/// Ranges with all kinds of ends: aligned and not, inside of a page and across several.
const RANGES: [(u64, u64); 7] = [
    (0, 1),
    (3, 7),
    (4096 - 5, 10),
    (8, 8),
    (1000, 4096),
    (65_535, 1),
    (12_345, 65_537),
];

#[test]
fn write_puts_its_bytes_there_and_no_others() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new());
    for (n, (at, len)) in RANGES.into_iter().enumerate() {
        rig.log.write_at(0, &vec![0xEE; LEN]).unwrap();
        let from = 17 + n as u64;
        rig.client
            .write(
                &rig.local.slice(from..from + len).unwrap(),
                &rig.remote.slice(at..at + len).unwrap(),
                Signal::Always(n as u64),
            )
            .unwrap();
        let wc = success(rig.client.cq(), n as u64);
        assert_eq!(wc.opcode(), WcOpcode::RDMA_WRITE);
        assert_eq!(wc.qp_num(), rig.client.qp_num());
        let mut expected = vec![0xEE; LEN];
        expected[at as usize..(at + len) as usize]
            .copy_from_slice(&contents(&rig.local)[from as usize..(from + len) as usize]);
        assert!(contents(&rig.log) == expected, "{at} {len}");
    }
    assert!(nothing(rig.client.cq()) && nothing(rig.server.cq()));
}

#[test]
fn read_brings_the_bytes_and_no_others() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new());
    let source: Vec<u8> = (0..LEN).map(|i| byte(i + 99)).collect();
    rig.log.write_at(0, &source).unwrap();
    for (n, (at, len)) in RANGES.into_iter().enumerate() {
        rig.local.write_at(0, &vec![0x55; LEN]).unwrap();
        let to = 29 + n as u64;
        rig.client
            .read(
                &rig.local.slice(to..to + len).unwrap(),
                &rig.remote.slice(at..at + len).unwrap(),
                Signal::Always(n as u64),
            )
            .unwrap();
        let wc = success(rig.client.cq(), n as u64);
        assert_eq!(wc.opcode(), WcOpcode::RDMA_READ);
        let mut expected = vec![0x55; LEN];
        expected[to as usize..(to + len) as usize]
            .copy_from_slice(&source[at as usize..(at + len) as usize]);
        assert!(contents(&rig.local) == expected, "{at} {len}");
    }
    assert!(contents(&rig.log) == source);
}

#[test]
fn empty_reads_and_writes_complete_and_move_nothing() {
    let peer = device!();
    if iwarp(&peer) {
        skip!("iWARP: soft-iWARP has no reads of 0 bytes");
    }
    let rig = rig(&peer, &ConnCfg::new());
    let nothing_here = rig.local.slice(5..5).unwrap();
    let nothing_there = rig.remote.slice(7..7).unwrap();
    rig.client
        .write(&nothing_here, &nothing_there, Signal::Always(1))
        .unwrap();
    success(rig.client.cq(), 1);
    rig.client
        .read(&LocalSlice::EMPTY, &nothing_there, Signal::Always(2))
        .unwrap();
    success(rig.client.cq(), 2);
    rig.client
        .write_inline(&[], &nothing_there, Signal::Always(3))
        .unwrap();
    success(rig.client.cq(), 3);
    assert!(contents(&rig.log).iter().all(|&byte| byte == 0xEE));
}

#[test]
fn write_gather_joins_slices_in_order() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().max_sge(3));
    let cut = |from: u64, len: u64| rig.local.slice(from..from + len).unwrap();
    let parts = [cut(100, 3), cut(9000, 4097), LocalSlice::EMPTY, cut(50, 1)];
    rig.client
        .write_gather(
            &parts,
            &rig.remote.slice(11..11 + 4101).unwrap(),
            Signal::Always(1),
        )
        .unwrap();
    success(rig.client.cq(), 1);
    let source = contents(&rig.local);
    let joined = [&source[100..103], &source[9000..13097], &source[50..51]].concat();
    let bytes = contents(&rig.log);
    assert!(bytes[11..11 + 4101] == joined);
    assert_eq!((bytes[10], bytes[11 + 4101]), (0xEE, 0xEE));

    let four = [cut(0, 1), cut(1, 1), cut(2, 1), cut(3, 1)];
    if rig.client.max_sge() == 3 {
        assert!(matches!(
            rig.client.write_gather(&four, &rig.remote.slice(0..4).unwrap(), Signal::Always(2)),
            Err(Error::TooLong { argument: "src", length: 4, limit: 3, limited_by }) if limited_by.contains("max_sge")
        ));
    }
}

#[test]
fn read_scatter_spreads_over_slices_in_order() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().max_sge(2));
    let source: Vec<u8> = (0..LEN).map(|i| byte(i + 7)).collect();
    rig.log.write_at(0, &source).unwrap();
    let one = [rig.local.slice(10..110).unwrap()];
    rig.client
        .read_scatter(&one, &rig.remote.slice(1..101).unwrap(), Signal::Always(1))
        .unwrap();
    success(rig.client.cq(), 1);
    assert!(contents(&rig.local)[10..110] == source[1..101]);
    let two = [
        rig.local.slice(5000..5003).unwrap(),
        rig.local.slice(200..5000).unwrap(),
    ];
    if iwarp(&peer) {
        let far = rig.remote.slice(33..33 + 4803).unwrap();
        let err = rig.client.read_scatter(&two, &far, Signal::Always(2));
        assert!(
            matches!(err, Err(Error::TooLong { limit: 1, .. })),
            "{err:?}"
        );
        return;
    }
    rig.client
        .read_scatter(
            &two,
            &rig.remote.slice(33..33 + 4803).unwrap(),
            Signal::Always(2),
        )
        .unwrap();
    success(rig.client.cq(), 2);
    let bytes = contents(&rig.local);
    assert!(bytes[5000..5003] == source[33..36]);
    assert!(bytes[200..5000] == source[36..36 + 4800]);
}

#[test]
fn inline_bytes_may_change_as_soon_as_they_are_posted() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().max_inline(64));
    assert!(rig.client.max_inline() >= 64);
    let mut bytes = [0u8; 64];
    for n in 0..8u8 {
        bytes.fill(n + 1);
        let at = u64::from(n) * 100;
        rig.client
            .write_inline(
                &bytes,
                &rig.remote.slice(at..at + 64).unwrap(),
                Signal::Always(n.into()),
            )
            .unwrap();
        bytes.fill(0xBA);
    }
    for n in 0..8 {
        success(rig.client.cq(), n);
    }
    let log = contents(&rig.log);
    for n in 0..8u8 {
        let at = usize::from(n) * 100;
        assert_eq!(log[at..at + 64], [n + 1; 64]);
        assert_eq!(log[at + 64], 0xEE);
    }
    let most = rig.client.max_inline() as usize;
    let all: Vec<u8> = (0..most).map(byte).collect();
    let there = rig.remote.slice(2000..2000 + most as u64).unwrap();
    rig.client
        .write_inline(&all, &there, Signal::Always(20))
        .unwrap();
    success(rig.client.cq(), 20);
    assert!(contents(&rig.log)[2000..2000 + most] == all);
}

#[test]
fn messages_arrive_in_order_with_their_lengths() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().max_inline(32).max_sge(2));
    for n in 0..5u64 {
        let at = n * 1000;
        rig.server
            .recv(&rig.log.slice(at..at + 1000).unwrap(), 100 + n)
            .unwrap();
    }
    let here = |from: u64, len: u64| rig.local.slice(from..from + len).unwrap();
    let client = &rig.client;
    client.send(&here(0, 1000), Signal::Always(1)).unwrap();
    client
        .send_inline(b"hello, message", Signal::Always(2))
        .unwrap();
    client
        .send_gather(&[here(7, 3), here(2000, 300)], Signal::Always(3))
        .unwrap();
    client.send(&LocalSlice::EMPTY, Signal::Always(4)).unwrap();
    client.send(&here(500, 1), Signal::Always(5)).unwrap();
    for n in 1..=5 {
        assert_eq!(success(client.cq(), n).opcode(), WcOpcode::SEND);
    }
    for (n, len) in [1000, 14, 303, 0, 1].into_iter().enumerate() {
        let wc = success(rig.server.cq(), 100 + n as u64);
        assert_eq!((wc.opcode(), wc.byte_len()), (WcOpcode::RECV, len));
        assert_eq!(wc.qp_num(), rig.server.qp_num());
        assert_eq!(wc.imm_data(), None);
    }
    let (sent, got) = (contents(&rig.local), contents(&rig.log));
    assert!(got[..1000] == sent[..1000]);
    assert_eq!(&got[1000..1014], b"hello, message");
    assert!(got[2000..2303] == [&sent[7..10], &sent[2000..2300]].concat());
    assert!(got[3000..4000].iter().all(|&byte| byte == 0xEE));
    assert_eq!(got[4000], sent[500]);
    assert_eq!(got[1014], 0xEE);
}

#[test]
fn a_receive_may_be_spread_and_batched() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().max_sge(2));
    let there = |from: u64, len: u64| rig.log.slice(from..from + len).unwrap();
    let mut batch = rig.server.recv_batch().unwrap();
    batch
        .recv_scatter(&[there(0, 3), there(100, 200)], 1)
        .unwrap();
    batch.recv(&there(1000, 64), 2).unwrap();
    assert_eq!(batch.len(), 2);
    batch.submit().unwrap();
    assert!(batch.is_empty());
    rig.client
        .send(&rig.local.slice(0..150).unwrap(), Signal::OnError(1))
        .unwrap();
    rig.client
        .send(&rig.local.slice(200..264).unwrap(), Signal::Always(2))
        .unwrap();
    success(rig.client.cq(), 2);
    assert_eq!(success(rig.server.cq(), 1).byte_len(), 150);
    assert_eq!(success(rig.server.cq(), 2).byte_len(), 64);
    let (sent, got) = (contents(&rig.local), contents(&rig.log));
    assert!(got[..3] == sent[..3]);
    assert!(got[100..247] == sent[3..150]);
    assert!(got[1000..1064] == sent[200..264]);
}

#[test]
fn a_message_finds_the_receive_that_was_posted_before_the_connection() {
    let peer = device!();
    let inbox = region(&peer, 64, Usage::RECV, |_| 0);
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new();
    let client = ask(&peer, &port, &cfg).connect(None).unwrap();
    let request = next(&endpoint, &cfg);
    request.recv(&inbox.slice(..32).unwrap(), 7).unwrap();
    let mut batch = request.recv_batch().unwrap();
    batch.recv(&inbox.slice(32..).unwrap(), 8).unwrap();
    batch.submit().unwrap();
    drop(batch);
    let server = request.connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    client.send_inline(b"early", Signal::Always(1)).unwrap();
    client.send_inline(b"later", Signal::Always(2)).unwrap();
    success(client.cq(), 1);
    success(client.cq(), 2);
    assert_eq!(success(server.cq(), 7).byte_len(), 5);
    assert_eq!(success(server.cq(), 8).byte_len(), 5);
    let got = contents(&inbox);
    assert_eq!((&got[..5], &got[32..37]), (&b"early"[..], &b"later"[..]));
}

#[test]
fn the_passive_side_can_do_all_that_the_active_one_can() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new());
    // iWARP lets the active side speak first.
    rig.client
        .write_inline(&[1], &rig.remote.slice(0..1).unwrap(), Signal::Always(1))
        .unwrap();
    success(rig.client.cq(), 1);
    let back = region(&peer, 4096, remote_usage(), |_| 0x11);
    let back_remote = remote(&back);
    rig.log.write_at(0, &[0x77; 300]).unwrap();
    rig.server
        .write(
            &rig.log.slice(0..300).unwrap(),
            &back_remote.slice(5..305).unwrap(),
            Signal::OnError(1),
        )
        .unwrap();
    rig.server
        .flush(
            &back_remote.slice(5..305).unwrap(),
            FlushKind::Visibility,
            Signal::Always(2),
        )
        .unwrap();
    success(rig.server.cq(), 2);
    let got = contents(&back);
    assert_eq!(got[5..305], [0x77; 300]);
    assert_eq!((got[4], got[305]), (0x11, 0x11));
    back.write_at(1000, b"to be read").unwrap();
    rig.server
        .read(
            &rig.log.slice(1000..1010).unwrap(),
            &back_remote.slice(1000..1010).unwrap(),
            Signal::Always(3),
        )
        .unwrap();
    success(rig.server.cq(), 3);
    assert_eq!(&contents(&rig.log)[1000..1010], b"to be read");
}

#[test]
fn remote_atomics_do_what_they_say() {
    let peer = device!();
    let Pair {
        client,
        server: _server,
    } = pair(&peer, &ConnCfg::new());
    let words = region(&peer, 64, Usage::ATOMIC | Usage::READ_SRC, |_| 0);
    let result = region(&peer, 8, Usage::READ_DST, |_| 0);
    let word = remote(&words).slice(16..24).unwrap();
    let old = result.slice(..).unwrap();
    if !peer.capabilities().atomics {
        for refused in [
            client.compare_and_swap(&old, &word, 1, 2, Signal::Always(1)),
            client.fetch_and_add(&old, &word, 1, Signal::Always(1)),
        ] {
            assert!(matches!(
                refused,
                Err(Error::NotSupported { capability }) if capability.contains("atomics")
            ));
        }
        return;
    }
    let order = std::sync::atomic::Ordering::SeqCst;
    words.store_u64(16, 40, order).unwrap();
    client
        .fetch_and_add(&old, &word, 2, Signal::Always(1))
        .unwrap();
    assert_eq!(success(client.cq(), 1).opcode(), WcOpcode::FETCH_ADD);
    assert_eq!(result.load_u64(0, order).unwrap(), 40);
    assert_eq!(words.load_u64(16, order).unwrap(), 42);
    client
        .compare_and_swap(&old, &word, 42, 7, Signal::Always(2))
        .unwrap();
    assert_eq!(success(client.cq(), 2).opcode(), WcOpcode::COMP_SWAP);
    assert_eq!(result.load_u64(0, order).unwrap(), 42);
    assert_eq!(words.load_u64(16, order).unwrap(), 7);
    client
        .compare_and_swap(&old, &word, 42, 9, Signal::Always(3))
        .unwrap();
    success(client.cq(), 3);
    assert_eq!(result.load_u64(0, order).unwrap(), 7);
    assert_eq!(words.load_u64(16, order).unwrap(), 7);
}

#[test]
fn immediate_data_arrive_as_they_were_sent() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new());
    let here = rig.local.slice(0..100).unwrap();
    let there = rig.remote.slice(50..150).unwrap();
    if iwarp(&peer) {
        for refused in [
            rig.client
                .write_with_imm(&here, &there, 1, Signal::Always(1)),
            rig.client.send_with_imm(&here, 1, Signal::Always(1)),
        ] {
            assert!(matches!(
                refused,
                Err(Error::NotSupported { capability }) if capability.contains("iWARP")
            ));
        }
        return;
    }
    rig.server.recv(&LocalSlice::EMPTY, 1).unwrap();
    rig.server
        .recv(&rig.log.slice(1000..1100).unwrap(), 2)
        .unwrap();
    rig.client
        .write_with_imm(&here, &there, 0xDEAD_0001, Signal::Always(1))
        .unwrap();
    rig.client
        .send_with_imm(&here, 0xBEEF_0002, Signal::Always(2))
        .unwrap();
    success(rig.client.cq(), 1);
    success(rig.client.cq(), 2);
    let wc = success(rig.server.cq(), 1);
    assert_eq!(wc.opcode(), WcOpcode::RECV_RDMA_WITH_IMM);
    assert_eq!((wc.imm_data(), wc.byte_len()), (Some(0xDEAD_0001), 100));
    let wc = success(rig.server.cq(), 2);
    assert_eq!(wc.opcode(), WcOpcode::RECV);
    assert_eq!((wc.imm_data(), wc.byte_len()), (Some(0xBEEF_0002), 100));
    let (sent, got) = (contents(&rig.local), contents(&rig.log));
    assert!(got[50..150] == sent[..100] && got[1000..1100] == sent[..100]);
}

#[test]
fn a_read_only_file_can_be_written_from() {
    let peer = device!();
    let Pair {
        client,
        server: _server,
    } = pair(&peer, &ConnCfg::new());
    let path = std::env::temp_dir().join(format!("rpma-read-only-{}", std::process::id()));
    let bytes: Vec<u8> = (0..5000).map(byte).collect();
    std::fs::write(&path, &bytes).unwrap();
    let memory = Memory::map_file_read_only(&path).unwrap();
    let source = peer
        .register(memory, Usage::WRITE_SRC | Usage::SEND)
        .unwrap();
    let log = region(&peer, 8192, remote_usage(), |_| 0);
    client
        .write(
            &source.slice(..).unwrap(),
            &remote(&log).slice(100..5100).unwrap(),
            Signal::Always(1),
        )
        .unwrap();
    success(client.cq(), 1);
    assert!(contents(&log)[100..5100] == bytes);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn unsignalled_operations_complete_only_when_they_fail() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new());
    for n in 0..9 {
        rig.client
            .write(
                &rig.local.slice(n..n + 1).unwrap(),
                &rig.remote.slice(n..n + 1).unwrap(),
                Signal::OnError(n),
            )
            .unwrap();
    }
    rig.client
        .write_inline(&[9], &rig.remote.slice(9..10).unwrap(), Signal::Always(9))
        .unwrap();
    success(rig.client.cq(), 9);
    assert!(nothing(rig.client.cq()));
    assert!(contents(&rig.log)[..9] == contents(&rig.local)[..9]);

    // A region that is gone.
    let gone = remote(&region(&peer, 64, remote_usage(), |_| 0));
    rig.client
        .write_inline(&[1], &gone.slice(0..1).unwrap(), Signal::OnError(55))
        .unwrap();
    if iwarp(&peer) {
        // A write is complete when it is on its way. What the peer says of it ends the connection.
        let event = rig.client.next_event_timeout(LONG).unwrap().unwrap();
        assert_eq!(event.kind(), ConnEventKind::Closed);
        return;
    }
    let wc = completion(rig.client.cq());
    assert_eq!((wc.status(), wc.wr_id()), (WcStatus::REM_ACCESS_ERR, 55));
}
