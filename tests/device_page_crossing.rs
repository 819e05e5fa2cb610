//! Short operations whose bytes cross a page: right on every device, and the fault of soft-iWARP's
//! driver that they go around.

mod common;

use common::*;
use rpma::{ConnCfg, FlushKind, LocalSlice, Peer, RemoteSlice, Signal, Usage, WcStatus};

const PAGE: u64 = 4096;

/// Every way of up to 32 bytes to cross the first page's end: how many bytes, and how many of them
/// before it.
fn crossings() -> impl Iterator<Item = (u64, u64)> {
    (2..=32).flat_map(|len| (1..len).map(move |before| (len, before)))
}

fn rig(peer: &Peer, cfg: &ConnCfg) -> Rig {
    Rig::of(peer, cfg, 4 * PAGE as usize, remote_usage() | Usage::RECV)
}

/// The bytes of `len` that start `before` bytes before the end of the page.
fn local<'a>(rig: &'a Rig, len: u64, before: u64) -> LocalSlice<'a> {
    rig.local.slice(PAGE - before..PAGE - before + len).unwrap()
}

fn remote_at(rig: &Rig, at: u64, len: u64) -> RemoteSlice {
    rig.remote.slice(at..at + len).unwrap()
}

/// The bytes of `region` from `at` on.
fn bytes(region: &rpma::LocalRegion, at: u64, len: u64) -> Vec<u8> {
    contents(region)[at as usize..][..len as usize].to_vec()
}

#[test]
fn reads_of_what_crosses_a_page_are_right() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new());
    rig.log.write_at(0, &contents(&rig.local)).unwrap();
    for (n, (len, before)) in crossings().enumerate() {
        let dst = rig.local.slice(2 * PAGE..2 * PAGE + len).unwrap();
        let src = remote_at(&rig, PAGE - before, len);
        rig.client
            .read(&dst, &src, Signal::Always(n as u64))
            .unwrap();
        success(rig.client.cq(), n as u64);
        assert_eq!(
            bytes(&rig.local, 2 * PAGE, len),
            bytes(&rig.log, PAGE - before, len),
            "{len} bytes, {before} before the page's end"
        );
    }
    assert!(nothing(rig.client.cq()), "one completion for each read");
}

#[test]
fn writes_behind_others_from_what_crosses_a_page_are_right() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().sq_size(16));
    let tail = remote_at(&rig, 0, 8);
    for (n, (len, before)) in crossings().enumerate() {
        let (src, dst) = (
            local(&rig, len, before),
            remote_at(&rig, 3 * PAGE - before, len),
        );
        let mut batch = rig.client.batch();
        batch
            .flush(&tail, FlushKind::Visibility, Signal::OnError(0))
            .unwrap();
        batch.write(&src, &dst, Signal::OnError(0)).unwrap();
        batch
            .flush(&dst, FlushKind::Visibility, Signal::Always(n as u64))
            .unwrap();
        batch.submit().unwrap();
        success(rig.client.cq(), n as u64);
        assert_eq!(
            bytes(&rig.log, 3 * PAGE - before, len),
            bytes(&rig.local, PAGE - before, len),
            "{len} bytes, {before} before the page's end"
        );
    }
}

#[test]
fn sends_and_fenced_writes_from_what_crosses_a_page_are_right() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().sq_size(16));
    let first = rig.local.slice(2 * PAGE..2 * PAGE + 8).unwrap();
    for (n, (len, before)) in crossings().enumerate().step_by(3) {
        let n = 2 * n as u64;
        let src = local(&rig, len, before);
        let dst = remote_at(&rig, 3 * PAGE - before, len);
        let received = rig.log.slice(PAGE..PAGE + 64).unwrap();
        rig.server.recv(&received, n).unwrap();
        rig.client
            .read(&first, &remote_at(&rig, 0, 8), Signal::OnError(0))
            .unwrap();
        rig.client
            .write(&src, &dst, Signal::OnError(n).fenced())
            .unwrap();
        rig.client.send(&src, Signal::Always(n).fenced()).unwrap();
        success(rig.client.cq(), n);
        let got = success(rig.server.cq(), n);
        assert_eq!(u64::from(got.byte_len()), len);
        let sent = bytes(&rig.local, PAGE - before, len);
        assert_eq!(
            bytes(&rig.log, PAGE, len),
            sent,
            "{len} bytes sent, {before} before"
        );
        assert_eq!(
            bytes(&rig.log, 3 * PAGE - before, len),
            sent,
            "{len} bytes written"
        );
    }
}

#[test]
fn a_read_that_is_refused_has_one_completion() {
    let peer = device!();
    let rig = Rig::of(&peer, &ConnCfg::new(), 4 * PAGE as usize, remote_usage());
    let gone = rig.remote.slice(PAGE - 8..PAGE + 8).unwrap();
    drop(rig.log);
    let dst = rig.local.slice(0..16).unwrap();
    rig.client.read(&dst, &gone, Signal::Always(7)).unwrap();
    let wc = completion(rig.client.cq());
    assert_eq!(wc.wr_id(), 7);
    assert_ne!(wc.status(), WcStatus::SUCCESS);
    let mut more = [rpma::Completion::default()];
    let wait = rpma::Wait::new().timeout(std::time::Duration::from_millis(50));
    let more = rig.client.cq().take(&mut more, wait).unwrap();
    // soft-iWARP flushes a read twice that is both under way and in its list of those under way, as
    // it may be on a busy machine. The number of the first part must not be seen even then.
    let again = |other: &rpma::Completion| {
        iwarp(&peer) && other.wr_id() == 7 && other.status() == WcStatus::WR_FLUSH_ERR
    };
    assert!(more.iter().all(again), "{wc:?}, then {more:?}");
}

#[test]
fn as_many_split_reads_as_the_send_queue_was_asked_for_fit() {
    let peer = device!();
    let asked = 6;
    let rig = rig(&peer, &ConnCfg::new().sq_size(asked));
    let src = remote_at(&rig, PAGE - 8, 16);
    let dst = rig.local.slice(0..16).unwrap();
    let mut batch = rig.client.batch();
    for n in 1..asked {
        batch.read(&dst, &src, Signal::OnError(n.into())).unwrap();
    }
    batch
        .read(&dst, &src, Signal::Always(asked.into()))
        .unwrap();
    batch.submit().unwrap();
    success(rig.client.cq(), asked.into());
}

/// When a kernel comes whose driver is right, this test fails on it: then the table in
/// `src/verbs/workarounds.rs` gets a line.
#[test]
fn soft_iwarp_still_has_the_fault() {
    let peer = device!();
    if peer.capabilities().vendor_id != 0x62_6d74 {
        skip!("the device is not soft-iWARP");
    }
    let rig = rig(&peer, &ConnCfg::new().device_workarounds(false));
    rig.log.write_at(0, &contents(&rig.local)).unwrap();
    let unequal = crossings().filter(|(len, before)| 2 * before != *len);
    let mut wrong = 0;
    for (n, (len, before)) in unequal.enumerate() {
        let dst = rig.local.slice(2 * PAGE..2 * PAGE + len).unwrap();
        let src = remote_at(&rig, PAGE - before, len);
        rig.client
            .read(&dst, &src, Signal::Always(n as u64))
            .unwrap();
        success(rig.client.cq(), n as u64);
        wrong +=
            usize::from(bytes(&rig.local, 2 * PAGE, len) != bytes(&rig.log, PAGE - before, len));
    }
    assert!(
        wrong > 0,
        "this soft-iWARP answers reads across pages rightly: see src/verbs/workarounds.rs"
    );
}

#[test]
fn a_message_that_invalidates_is_right_across_a_page() {
    let peer = device!();
    if !peer.capabilities().region_invalidation {
        skip!("the device cannot invalidate regions");
    }
    let rig = rig(&peer, &ConnCfg::new());
    let first = rig.local.slice(2 * PAGE..2 * PAGE + 8).unwrap();
    for (n, (len, before)) in crossings().enumerate().step_by(7) {
        let n = n as u64;
        let inbox = region(&peer, 64, local_usage(), |_| 0);
        let lost = region(&peer, 64, remote_usage(), |_| 0);
        rig.server.recv(&inbox.slice(..).unwrap(), n).unwrap();
        rig.client
            .read(&first, &remote_at(&rig, 0, 8), Signal::OnError(0))
            .unwrap();
        rig.client
            .send_with_invalidate(&local(&rig, len, before), &remote(&lost), Signal::Always(n))
            .unwrap();
        success(rig.client.cq(), n);
        success(rig.server.cq(), n);
        assert_eq!(
            bytes(&inbox, 0, len),
            bytes(&rig.local, PAGE - before, len),
            "{len} bytes, {before} before the page's end"
        );
    }
}

#[test]
fn reads_of_nothing_and_fenced_reads_touch_nothing_else() {
    let peer = device!();
    let rig = rig(&peer, &ConnCfg::new().sq_size(4));
    let (near, far) = (rig.local.slice(0..64).unwrap(), remote_at(&rig, PAGE, 64));
    // Often enough that each place of the queue has had an element before.
    for n in 0..32 {
        rig.client.read(&near, &far, Signal::Always(n)).unwrap();
        success(rig.client.cq(), n);
    }
    let before = contents(&rig.local);
    rig.log.write_at(0, &[0x11; 4 * PAGE as usize]).unwrap();
    let none = rig.local.slice(2 * PAGE..2 * PAGE).unwrap();
    for n in 0..32 {
        rig.client
            .read(&none, &remote_at(&rig, PAGE, 0), Signal::Always(n))
            .unwrap();
        success(rig.client.cq(), n);
    }
    assert!(contents(&rig.local) == before);
    rig.client
        .read(&near, &far, Signal::OnError(1).fenced())
        .unwrap();
    rig.client
        .flush(&far, FlushKind::Visibility, Signal::Always(2).fenced())
        .unwrap();
    success(rig.client.cq(), 2);
    assert_eq!(bytes(&rig.local, 0, 64), [0x11; 64]);
}
