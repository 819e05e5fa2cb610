//! Regions, rights, words and descriptors that cannot be right are refused before anything is
//! posted, by an error that names the argument; and the connection goes on.

mod common;

use common::{refused::*, *};
use rpma::{ConnCfg, FlushKind, FlushMethod, Memory, Peer, PeerCfg, RemoteRegion, Signal, Usage};

#[test]
fn regions_without_the_right_usage() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new());
    let (client, here, there) = (&rig.client, rig.here(8), rig.there(8));
    let all = local_usage() | remote_usage() | Usage::ATOMIC;
    let lacking = |usage: Usage| region(&peer, 64, all - usage, |_| 0);

    let region = lacking(Usage::WRITE_SRC);
    let src = region.slice(0..8).unwrap();
    refused(
        [
            client.write(&src, &there, SIGNAL),
            client.write_gather(&[src], &there, SIGNAL),
            client.batch().write(&src, &there, SIGNAL),
            client.batch().write_gather(&[src], &there, SIGNAL),
        ],
        "src: its region was registered without WRITE_SRC",
    );
    let region = lacking(Usage::READ_DST);
    let dst = region.slice(0..8).unwrap();
    refused(
        [
            client.read(&dst, &there, SIGNAL),
            client.read_scatter(&[dst], &there, SIGNAL),
            client.batch().read(&dst, &there, SIGNAL),
        ],
        "dst: its region was registered without READ_DST",
    );
    let region = lacking(Usage::SEND);
    let src = region.slice(0..8).unwrap();
    refused(
        [
            client.send(&src, SIGNAL),
            client.send_gather(&[src], SIGNAL),
            client.batch().send(&src, SIGNAL),
        ],
        "src: its region was registered without SEND",
    );
    let region = lacking(Usage::RECV);
    let dst = region.slice(0..8).unwrap();
    refused(
        [
            client.recv(&dst, 1),
            client.recv_scatter(&[dst], 1),
            client.recv_batch().unwrap().recv(&dst, 1),
        ],
        "dst: its region was registered without RECV",
    );

    let dst = remote(&lacking(Usage::WRITE_DST)).slice(0..8).unwrap();
    refused(
        [
            client.write(&here, &dst, SIGNAL),
            client.write_gather(&[here], &dst, SIGNAL),
            client.write_inline(&[0; 8], &dst, SIGNAL),
            client.atomic_write(&dst, [0; 8], SIGNAL),
            client.batch().write(&here, &dst, SIGNAL),
            client.batch().write_inline(&[0; 8], &dst, SIGNAL),
            client.batch().atomic_write(&dst, [0; 8], SIGNAL),
        ],
        "dst: its region was registered without WRITE_DST",
    );
    let src = remote(&lacking(Usage::READ_SRC)).slice(0..8).unwrap();
    refused(
        [
            client.read(&here, &src, SIGNAL),
            client.read_scatter(&[here], &src, SIGNAL),
            client.batch().read(&here, &src, SIGNAL),
        ],
        "src: its region was registered without READ_SRC",
    );
    if peer.capabilities().atomics {
        let word = remote(&lacking(Usage::ATOMIC)).slice(0..8).unwrap();
        refused(
            [
                client.fetch_and_add(&here, &word, 1, SIGNAL),
                client.compare_and_swap(&here, &word, 1, 2, SIGNAL),
                client.batch().fetch_and_add(&here, &word, 1, SIGNAL),
            ],
            "word: its region was registered without ATOMIC",
        );
    }
    rig.goes_on();
}

#[test]
fn flushes_without_their_conditions() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new());
    let client = &rig.client;
    for (kind, expected) in [
        (
            FlushKind::Persistent,
            "not supported: persistent flush: the remote region was registered without FLUSH_PERSISTENT",
        ),
        (
            FlushKind::Visibility,
            "not supported: flush to visibility: the remote region was registered without FLUSH_VISIBILITY",
        ),
    ] {
        let usage = remote_usage() - kind.usage();
        let range = remote(&region(&peer, 64, usage, |_| 0)).whole();
        refused(
            [
                client.flush(&range, kind, SIGNAL),
                client.batch().flush(&range, kind, SIGNAL),
            ],
            expected,
        );
        refused([client.flush(&rig.there(0), kind, SIGNAL)], "range: ");
    }
    // The peer takes back its declaration; visibility does not need it.
    client.apply_peer_cfg(&PeerCfg::new());
    let there = rig.there(8);
    refused(
        [client.flush(&there, FlushKind::Persistent, SIGNAL)],
        "not supported: persistent flush: the peer did not declare",
    );
    client
        .flush(&there, FlushKind::Visibility, Signal::Always(1))
        .unwrap();
    success(client.cq(), 1);
    rig.goes_on();

    // What must be native, and cannot be.
    let rig = Rig::new(&peer, &ConnCfg::new().flush_method(FlushMethod::Native));
    for kind in FLUSHES {
        let granted = rig.log.methods().contains(kind.native());
        if !(granted && rig.client.has_native_flush(kind)) {
            let result = rig.client.flush(&rig.there(8), kind, SIGNAL);
            refused([result], "not supported: native flush: ");
        }
    }
    rig.goes_on();
}

#[test]
fn words_that_are_not_aligned() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new());
    let client = &rig.client;
    for at in 1..8 {
        let word = rig.remote.slice(at..at + 8).unwrap();
        let address = word.address();
        refused(
            [
                client.atomic_write(&word, [0; 8], SIGNAL),
                client.batch().atomic_write(&word, [0; 8], SIGNAL),
            ],
            &format!("dst: address {address:#x} is not a multiple of 8"),
        );
        if peer.capabilities().atomics {
            let result = client.fetch_and_add(&rig.here(8), &word, 1, SIGNAL);
            refused([result], &format!("word: address {address:#x} "));
        }
    }
    // It is the address that counts, not the offset: a region that starts at an odd one.
    let page = Memory::anonymous(4096).unwrap();
    // SAFETY: the page outlives the region, and nobody else looks at it.
    let odd = unsafe { Memory::from_raw_parts(page.as_mut_ptr().wrapping_add(4), 64, true) };
    let odd = peer.register(odd.unwrap(), remote_usage()).unwrap();
    let there = remote(&odd);
    for at in [0, 8] {
        let word = there.slice(at..at + 8).unwrap();
        refused(
            [client.atomic_write(&word, [0; 8], SIGNAL)],
            "dst: address ",
        );
    }
    let word = there.slice(4..12).unwrap();
    client
        .atomic_write(&word, [9; 8], Signal::OnError(1))
        .unwrap();
    client
        .flush(&there.whole(), FlushKind::Visibility, Signal::Always(2))
        .unwrap();
    success(client.cq(), 2);
    let mut bytes = [0; 14];
    odd.read_at(2, &mut bytes).unwrap();
    assert_eq!(bytes, [0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0]);
    drop(odd);
    rig.goes_on();
}

#[test]
fn regions_of_another_peer() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new());
    let other = Peer::local(&addr()).unwrap();
    let foreign = region(&other, 64, local_usage(), |_| 0);
    let (client, slice, there) = (&rig.client, foreign.slice(0..8).unwrap(), rig.there(8));
    refused(
        [
            client.write(&slice, &there, SIGNAL),
            client.write_gather(&[rig.here(0), slice], &there, SIGNAL),
            client.send(&slice, SIGNAL),
            client.batch().write(&slice, &there, SIGNAL),
        ],
        "src: registered with another Peer",
    );
    refused(
        [
            client.read(&slice, &there, SIGNAL),
            client.recv(&slice, 1),
            client.recv_batch().unwrap().recv(&slice, 1),
            client.batch().read(&slice, &there, SIGNAL),
        ],
        "dst: registered with another Peer",
    );
    // A clone is the same peer.
    let mine = region(&peer.clone(), 64, local_usage(), |_| 0xEE);
    client
        .write(&mine.slice(0..8).unwrap(), &there, Signal::Always(1))
        .unwrap();
    success(client.cq(), 1);
    rig.goes_on();
}

#[test]
fn descriptors_that_are_none() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new());
    let whole = rig.log.descriptor();
    let bytes = whole.as_bytes();
    for len in 0..21 {
        let result = RemoteRegion::from_descriptor(&bytes[..len]);
        refused([result], "memory region descriptor: shorter than 21 bytes");
    }
    let garbled = |at: usize, new: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes[at..at + new.len()].copy_from_slice(new);
        [RemoteRegion::from_descriptor(&bytes)]
    };
    refused(garbled(8, &[0; 8]), "memory region descriptor: length 0");
    refused(
        garbled(8, &[0xff; 8]),
        "memory region descriptor: address and length",
    );
    refused(
        garbled(20, &[0, 0xA0]),
        "memory region descriptor: no usage",
    );
    refused(
        [PeerCfg::from_descriptor(&[])],
        "peer configuration descriptor: ",
    );
    // All bytes, or librpma's 21, or more than all: the same region.
    let longer = [bytes, &[1, 2, 3]].concat();
    for bytes in [bytes, &whole.to_librpma(), &longer] {
        let region = RemoteRegion::from_descriptor(bytes).unwrap();
        let there = region.slice(0..8).unwrap();
        rig.client
            .read(&rig.here(8), &there, Signal::Always(1))
            .unwrap();
        success(rig.client.cq(), 1);
    }
    rig.local.write_at(0, &[1; 8]).unwrap();
    rig.goes_on();
}

#[test]
fn registrations_that_cannot_be() {
    let peer = device!();
    let memory = || Memory::anonymous(4096).unwrap();
    refused([peer.register(memory(), Usage::empty())], "usage: empty");
    let unknown = Usage::from_bits_retain(1 << 20);
    refused([peer.register(memory(), unknown)], "usage: ");
    refused(
        [Memory::anonymous(0), Memory::anonymous(usize::MAX)],
        "len: ",
    );
    let path = std::env::temp_dir().join(format!("rpma-refusals-{}", std::process::id()));
    std::fs::write(&path, vec![7; 4096]).unwrap();
    for usage in [
        Usage::READ_DST,
        Usage::WRITE_DST,
        Usage::RECV,
        Usage::ATOMIC,
    ] {
        let memory = Memory::map_file_read_only(&path).unwrap();
        let (memory, err) = peer
            .try_register(memory, usage | Usage::WRITE_SRC)
            .unwrap_err();
        refused([Err::<(), _>(err)], "usage: the memory is mapped read-only");
        // The memory came back, and is good for what it can be.
        let sources = Usage::WRITE_SRC | Usage::SEND | Usage::READ_SRC;
        peer.register(memory, sources).unwrap();
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn receives_of_a_connection_with_a_shared_queue() {
    let peer = device!();
    let srq = rpma::Srq::new(&peer, &rpma::SrqCfg::new()).unwrap();
    let (plain, shared) = (ConnCfg::new(), ConnCfg::new().srq(&srq));
    let pair = pair_of(&peer, &plain, &peer, &shared);
    let inbox = region(&peer, 64, Usage::RECV, |_| 0);
    let slice = inbox.slice(..).unwrap();
    refused(
        [
            pair.server.recv(&slice, 1),
            pair.server.recv_scatter(&[slice], 1),
            pair.server.recv_batch().map(drop),
        ],
        "connection: ",
    );
}
