//! The shortest way through everything: is the device usable at all?

mod common;

use common::*;
use rpma::{ConnCfg, FlushKind, Signal, Usage};

#[test]
fn a_record_is_written_flushed_and_committed() {
    let peer = device!();
    println!("{peer:?}: {:?}", peer.capabilities());
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    let log = region(&peer, 4096, remote_usage(), |_| 0);
    let record = region(&peer, 256, Usage::WRITE_SRC | Usage::READ_DST, |i| i as u8);
    let remote = remote(&log);
    let slot = remote.slice(64..320).unwrap();

    client
        .write(&record.slice(..).unwrap(), &slot, Signal::OnError(1))
        .unwrap();
    client
        .flush(&slot, FlushKind::Persistent, Signal::Always(2))
        .unwrap();
    success(client.cq(), 2);
    client
        .atomic_write(
            &remote.slice(0..8).unwrap(),
            7u64.to_le_bytes(),
            Signal::Always(3),
        )
        .unwrap();
    success(client.cq(), 3);

    let mut batch = client.batch();
    batch
        .write(
            &record.slice(..128).unwrap(),
            &remote.slice(1024..1152).unwrap(),
            Signal::OnError(4),
        )
        .unwrap();
    batch
        .flush(
            &remote.slice(1024..1152).unwrap(),
            FlushKind::Visibility,
            Signal::OnError(5),
        )
        .unwrap();
    batch
        .atomic_write(
            &remote.slice(8..16).unwrap(),
            9u64.to_le_bytes(),
            Signal::OnError(6),
        )
        .unwrap();
    batch
        .flush(
            &remote.slice(8..16).unwrap(),
            FlushKind::Visibility,
            Signal::Always(7),
        )
        .unwrap();
    batch.submit().unwrap();
    assert!(batch.is_empty());
    success(client.cq(), 7);

    let bytes = contents(&log);
    assert_eq!(bytes[..8], 7u64.to_le_bytes());
    assert_eq!(bytes[8..16], 9u64.to_le_bytes());
    assert_eq!(bytes[64..320], contents(&record)[..]);
    assert_eq!(bytes[1024..1152], contents(&record)[..128]);
    drop(server);
    assert_eq!(
        client.next_event_timeout(LONG).unwrap().unwrap().kind(),
        rpma::ConnEventKind::Closed
    );
}
