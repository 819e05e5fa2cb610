//! Immediate data and invalidated keys: what comes with a message or a write, from a connection and
//! from a batch.

mod common;

use common::*;
use rpma::{
    Batch, ConnCfg, Error, LocalSlice, Operations, Peer, RemoteSlice, Result, Signal, WcOpcode,
};

fn rig(peer: &Peer) -> Rig {
    let cfg = ConnCfg::new().max_sge(2).max_inline(16);
    Rig::of(peer, &cfg, 4096, remote_usage() | local_usage())
}

/// Two pieces that do not touch each other, and their bytes.
fn pieces(rig: &Rig) -> ([LocalSlice<'_>; 2], Vec<u8>) {
    let pieces = [
        rig.local.slice(8..16).unwrap(),
        rig.local.slice(100..120).unwrap(),
    ];
    let bytes = contents(&rig.local);
    (pieces, [&bytes[8..16], &bytes[100..120]].concat())
}

/// Gathered and inline bytes with immediate data, by whatever posts them.
fn both(ops: &mut impl Operations, from: &[LocalSlice<'_>], to: &[RemoteSlice; 2]) -> Result<()> {
    ops.write_gather_with_imm(from, &to[0], 0xA0B0_C0D0, Signal::OnError(1))?;
    ops.write_inline_with_imm(b"plain bytes", &to[1], 7, Signal::Always(2))
}

#[test]
fn gathered_and_inline_writes_carry_immediate_data() {
    let peer = device!();
    let rig = rig(&peer);
    let (from, bytes) = pieces(&rig);
    let to = [
        rig.remote.slice(0..28).unwrap(),
        rig.remote.slice(500..511).unwrap(),
    ];
    let submit = |mut batch: Batch<'_>| {
        both(&mut batch, &from, &to)?;
        batch.submit()
    };
    for round in 0..2 {
        if !iwarp(&peer) {
            rig.server.recv(&LocalSlice::EMPTY, 3).unwrap();
            rig.server.recv(&LocalSlice::EMPTY, 4).unwrap();
        }
        let posted = match round {
            0 => both(&mut &rig.client, &from, &to),
            _ => submit(rig.client.batch()),
        };
        if iwarp(&peer) {
            assert!(
                matches!(posted, Err(Error::NotSupported { .. })),
                "{posted:?}"
            );
            continue;
        }
        posted.unwrap();
        success(rig.client.cq(), 2);
        for (wr_id, imm, len) in [(3, 0xA0B0_C0D0, 28), (4, 7, 11)] {
            let wc = success(rig.server.cq(), wr_id);
            assert_eq!(wc.opcode(), WcOpcode::RECV_RDMA_WITH_IMM);
            assert_eq!((wc.imm_data(), wc.byte_len()), (Some(imm), len));
        }
        let got = contents(&rig.log);
        assert!(got[..28] == bytes && got[500..511] == *b"plain bytes");
        rig.log.write_at(0, &[0xEE; 4096]).unwrap();
    }
}

#[test]
fn a_message_takes_the_peers_region_away_from_its_sender() {
    let peer = device!();
    let rig = rig(&peer);
    let here = rig.local.slice(0..24).unwrap();
    let posted =
        |conn: &rpma::Connection| conn.send_with_invalidate(&here, &rig.remote, Signal::Always(1));
    if !peer.capabilities().region_invalidation {
        let err = posted(&rig.client).unwrap_err();
        assert!(matches!(err, Error::NotSupported { .. }), "{err:?}");
        let err = rig
            .client
            .batch()
            .send_with_invalidate(&here, &rig.remote, Signal::Always(1));
        assert!(matches!(err, Err(Error::NotSupported { .. })), "{err:?}");
        return;
    }
    let inbox = region(&peer, 64, local_usage(), |_| 0);
    rig.server.recv(&inbox.slice(..).unwrap(), 2).unwrap();
    rig.client
        .write(&here, &rig.remote.slice(0..24).unwrap(), Signal::Always(3))
        .unwrap();
    success(rig.client.cq(), 3);
    posted(&rig.client).unwrap();
    success(rig.client.cq(), 1);
    let wc = success(rig.server.cq(), 2);
    // The library of the kernel's soft-iWARP (rdma-core 56) does not tell the key.
    let key = wc.invalidated_key();
    assert!(
        key == Some(rig.remote.rkey()) || key.is_none() && !on_standin(),
        "{key:?}"
    );
    assert_eq!((wc.imm_data(), wc.byte_len()), (None, 24));
    assert!(contents(&inbox)[..24] == contents(&rig.local)[..24]);
    rig.client
        .read(&here, &rig.remote.slice(0..24).unwrap(), Signal::Always(4))
        .unwrap();
    let wc = completion(rig.client.cq());
    assert_ne!(
        wc.status(),
        rpma::WcStatus::SUCCESS,
        "the region can still be read"
    );
}
