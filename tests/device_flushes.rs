//! Flushes of both kinds by both methods, and the words that are written behind them.

mod common;

use common::*;
use rpma::{
    ConnCfg, Connection, Error, FlushKind, FlushMethod, LocalRegion, Peer, RemoteRegion, Signal,
    WcOpcode,
};

const LEN: usize = 128 * 1024;

fn rig(peer: &Peer, cfg: &ConnCfg) -> Rig {
    Rig::of(peer, cfg, LEN, remote_usage() | local_usage())
}

/// The configurations of both flush methods and of the choice by itself; without native where the
/// device has none.
fn flush_cfgs(peer: &Peer) -> Vec<(FlushMethod, ConnCfg)> {
    let mut methods = vec![FlushMethod::Auto, FlushMethod::ReadAfterWrite];
    if peer.capabilities().native_flush_visibility {
        methods.push(FlushMethod::Native);
    }
    methods
        .into_iter()
        .map(|method| (method, ConnCfg::new().flush_method(method)))
        .collect()
}

/// Flushes, and checks that it was done by the right method: natively where that is asked for or
/// can be had.
fn flush_and_check(
    client: &Connection,
    method: FlushMethod,
    log: &LocalRegion,
    range: &rpma::RemoteSlice,
    kind: FlushKind,
) {
    let possible = client.has_native_flush(kind) && log.methods().contains(kind.native());
    let result = client.flush(range, kind, Signal::Always(77));
    let native = match method {
        FlushMethod::ReadAfterWrite => false,
        FlushMethod::Auto => possible,
        _ if !possible => {
            assert!(
                matches!(result, Err(Error::NotSupported { capability }) if capability.contains("native flush")),
                "{result:?}"
            );
            return;
        }
        _ => true,
    };
    result.unwrap();
    let wc = success(client.cq(), 77);
    let opcode = if native {
        WcOpcode::FLUSH
    } else {
        WcOpcode::RDMA_READ
    };
    assert_eq!(wc.opcode(), opcode, "{method:?} {kind:?}");
}

#[test]
fn flushes_of_both_kinds_by_both_methods() {
    let peer = device!();
    for (method, cfg) in flush_cfgs(&peer) {
        let rig = rig(&peer, &cfg);
        for (n, kind) in FLUSHES.into_iter().enumerate() {
            let at = n as u64 * 5000;
            let there = rig.remote.slice(at..at + 4567).unwrap();
            rig.client
                .write(
                    &rig.local.slice(at..at + 4567).unwrap(),
                    &there,
                    Signal::OnError(1),
                )
                .unwrap();
            flush_and_check(&rig.client, method, &rig.log, &there, kind);
            if method != FlushMethod::Native {
                let at = at as usize;
                assert!(contents(&rig.log)[at..at + 4567] == contents(&rig.local)[at..at + 4567]);
            }
            flush_and_check(&rig.client, method, &rig.log, &rig.remote.whole(), kind);
            let one = rig.remote.slice(at + 1..at + 2).unwrap();
            flush_and_check(&rig.client, method, &rig.log, &one, kind);
        }
    }
}

#[test]
fn a_flush_never_reaches_beyond_its_region() {
    let peer = device!();
    for (method, cfg) in flush_cfgs(&peer) {
        let Pair {
            client,
            server: _server,
        } = pair(&peer, &cfg);
        for len in [1, 3, 4, 7, 8, 9, 4096] {
            let small = region(&peer, len, remote_usage(), |_| 0);
            let there = remote(&small);
            for kind in FLUSHES {
                flush_and_check(&client, method, &small, &there.whole(), kind);
                let last = (len as u64).saturating_sub(3)..;
                flush_and_check(&client, method, &small, &there.slice(last).unwrap(), kind);
                let last = len as u64 - 1..;
                flush_and_check(&client, method, &small, &there.slice(last).unwrap(), kind);
            }
        }
    }
}

#[test]
fn a_flush_of_a_c_peers_region_goes_by_what_the_device_has() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new());
    let bytes = rig.log.descriptor().to_librpma();
    let theirs = RemoteRegion::from_descriptor(&bytes).unwrap();
    assert_eq!(theirs.methods(), None);
    rig.client
        .flush(
            &theirs.slice(0..8).unwrap(),
            FlushKind::Visibility,
            Signal::Always(1),
        )
        .unwrap();
    let wc = success(rig.client.cq(), 1);
    let native = rig.client.has_native_flush(FlushKind::Visibility);
    assert_eq!(wc.opcode() == WcOpcode::FLUSH, native);
}

#[test]
fn memory_that_is_not_persistent_is_flushed_by_reading() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new());
    if !peer.capabilities().native_flush_persistent {
        skip!("this device has no native flush");
    }
    // What the device grants for plain memory: rxe, visibility only.
    let granted = rig.log.methods();
    assert_eq!(rig.remote.methods(), Some(granted));
    let there = rig.remote.slice(0..100).unwrap();
    flush_and_check(
        &rig.client,
        FlushMethod::Auto,
        &rig.log,
        &there,
        FlushKind::Persistent,
    );
}

#[test]
fn atomic_write_changes_its_eight_bytes() {
    let peer = device!();
    let native = peer.capabilities().native_atomic_write;
    // Soft-RoCE's own gets lost where packets are.
    atomic_writes(&peer, &ConnCfg::new(), native && !is_soft_roce(&peer));
    atomic_writes(&peer, &ConnCfg::new().device_workarounds(false), native);
}

fn atomic_writes(peer: &Peer, cfg: &ConnCfg, native: bool) {
    let rig = rig(peer, cfg);
    for (n, at) in [0u64, 8, 4088, LEN as u64 - 8].into_iter().enumerate() {
        let value = (0x0102_0304_0506_0708u64 + n as u64).to_le_bytes();
        rig.client
            .atomic_write(
                &rig.remote.slice(at..at + 8).unwrap(),
                value,
                Signal::Always(n as u64),
            )
            .unwrap();
        let wc = success(rig.client.cq(), n as u64);
        let opcode = if rig.client.has_native_atomic_write() {
            WcOpcode::ATOMIC_WRITE
        } else {
            WcOpcode::RDMA_WRITE
        };
        assert_eq!(wc.opcode(), opcode);
        let got = contents(&rig.log);
        let at = at as usize;
        assert_eq!(got[at..at + 8], value);
        assert!(got.get(at + 8).is_none_or(|&byte| byte == 0xEE));
    }
    assert_eq!(rig.client.has_native_atomic_write(), native);
}

#[test]
#[allow(deprecated)]
fn eight_bytes_behind_a_fence_are_written_in_order() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new());
    // The read must have its bytes before the fenced writes behind it change them.
    rig.log.write_at(0, &[0xEE; 24]).unwrap();
    for round in 0..20u8 {
        let before = contents(&rig.log);
        rig.client
            .read(
                &rig.local.slice(0..24).unwrap(),
                &rig.remote.slice(0..24).unwrap(),
                Signal::OnError(1),
            )
            .unwrap();
        let word = rig.remote.slice(8..16).unwrap();
        rig.client
            .write_inline(&[round; 8], &word, Signal::OnError(2).fenced())
            .unwrap();
        rig.client
            .write(
                &rig.local.slice(64..72).unwrap(),
                &rig.remote.slice(16..24).unwrap(),
                Signal::Always(3).fenced(),
            )
            .unwrap();
        success(rig.client.cq(), 3);
        let (here, there) = (contents(&rig.local), contents(&rig.log));
        assert_eq!(here[..24], before[..24]);
        assert_eq!(there[8..16], [round; 8]);
        assert_eq!(there[16..24], here[64..72]);
    }
}
