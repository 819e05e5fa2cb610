//! Every kind of memory as a device sees it: registered, written by a peer, flushed, given back.

mod common;

use std::{env, fs};

use common::*;
use rpma::{
    ConnCfg, Error, FlushKind, FlushMethods, HugePage, LocalRegion, LocalSlice, Memory, OwnedSlice,
    Peer, Signal, StableBytes, Usage,
};

/// A peer writes all of the region; tells what was written.
fn fill(peer: &Peer, region: &LocalRegion) -> Vec<u8> {
    let Pair { client, server } = pair(peer, &ConnCfg::new());
    let source = common::region(peer, region.len() as usize, Usage::WRITE_SRC, |i| {
        (i % 253) as u8 + 1
    });
    let target = remote(region).whole();
    let all = source.slice(..).unwrap();
    client.write(&all, &target, Signal::OnError(1)).unwrap();
    let kind = match region.usage().contains(Usage::FLUSH_PERSISTENT) {
        true => FlushKind::Persistent,
        false => FlushKind::Visibility,
    };
    client.flush(&target, kind, Signal::Always(2)).unwrap();
    success(client.cq(), 2);
    drop(server);
    contents(&source)
}

#[test]
fn a_region_gives_its_memory_back() {
    let peer = device!();
    let mut memory = Memory::from_owner(vec![0; 5000]).unwrap();
    let ptr = memory.as_ptr();
    for _ in 0..10 {
        let region = peer.register(memory, remote_usage()).unwrap();
        assert_eq!((region.as_ptr(), region.len()), (ptr, 5000));
        memory = region.close().map_err(|(_, error)| error).unwrap();
    }
    let region = peer.register(memory, remote_usage()).unwrap();
    let written = fill(&peer, &region);
    let memory = region.close().map_err(|(_, error)| error).unwrap();
    let mut bytes = vec![0; 5000];
    memory.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, written);
}

#[test]
fn received_bytes_come_out_without_a_copy() {
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    let memory = Memory::from_owner(vec![0; 4096]).unwrap();
    let first = memory.as_ptr();
    let inbox = peer.register(memory, Usage::RECV).unwrap();
    let message = common::region(&peer, 4096, Usage::SEND, byte);
    server.recv(&inbox.slice(..).unwrap(), 1).unwrap();
    let all = message.slice(..).unwrap();
    client.send(&all, Signal::Always(2)).unwrap();
    success(server.cq(), 1);
    assert_eq!(inbox.read_vec(..).unwrap(), contents(&message));
    let memory = inbox.close().map_err(|(_, error)| error).unwrap();
    let bytes: Vec<u8> = memory.into_owner().unwrap();
    assert_eq!(bytes.as_ptr(), first);
    assert_eq!(bytes, contents(&message));
}

#[test]
fn a_region_is_registered_as_long_as_a_handle_of_it_lives() {
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    let log = common::region(&peer, 4096, remote_usage(), |_| 0);
    let target = remote(&log).slice(0..10).unwrap();
    let region = common::region(&peer, 4096, Usage::WRITE_SRC, byte);
    let part = region.slice_owned(100..200).unwrap();
    let clone = region.clone();

    let (region, error) = region.close().unwrap_err();
    assert!(matches!(error, Error::InUse { handles: 2, .. }), "{error}");
    drop((region, clone));
    // Sent to another thread, and cut there.
    let ten = std::thread::spawn(move || part.slice_owned(10..20).unwrap());
    let ten = ten.join().unwrap();
    assert_eq!((ten.offset(), ten.len(), ten.is_empty()), (110, 10, false));
    assert!(ten.slice_owned(..11).is_err());
    client
        .write(ten.as_slice(), &target, Signal::OnError(1))
        .unwrap();
    client
        .write(&LocalSlice::from(&ten), &target, Signal::Always(2))
        .unwrap();
    success(client.cq(), 2);
    client
        .flush(&target, FlushKind::Visibility, Signal::Always(3))
        .unwrap();
    success(client.cq(), 3);
    assert_eq!(log.read_vec(..10).unwrap(), ten.read_vec().unwrap());

    // The last handle deregisters: what it was registered for is over, and the memory comes out.
    let last = ten.region().clone();
    drop(ten);
    assert_eq!(last.read_vec(100..101).unwrap(), [byte(100)]);
    assert_eq!(
        last.close().map_err(|(_, error)| error).unwrap().len(),
        4096
    );
    drop(server);
}

#[test]
fn regions_are_shown_in_one_line() {
    let peer = device!();
    let region = common::region(&peer, 64, Usage::SEND, |_| 0);
    let slice: OwnedSlice = region.slice_owned(8..).unwrap();
    for (shown, start) in [
        (
            format!("{region:#?}"),
            format!("LocalRegion({:p} + 0x40, Usage(SEND)", region.as_ptr()),
        ),
        (
            format!("{slice:#?}"),
            format!(
                "OwnedSlice({:p} + 0x38, Usage(SEND)",
                region.as_ptr().wrapping_add(8)
            ),
        ),
    ] {
        assert!(
            shown.starts_with(&start) && !shown.contains('\n'),
            "{shown}"
        );
    }
}

#[test]
fn any_owner_with_a_stable_address_will_do() {
    struct Skewed(Vec<u8>);

    // SAFETY: the content of a vector that nobody else has; 3 bytes less than it has, from the
    // third on.
    unsafe impl StableBytes for Skewed {
        fn as_mut_ptr(&mut self) -> *mut u8 {
            self.0.as_mut_ptr().wrapping_add(3)
        }

        fn byte_len(&self) -> usize {
            self.0.len() - 3
        }
    }

    let peer = device!();
    let memory = Memory::from_owner(Skewed(vec![0; 100])).unwrap();
    let region = peer.register(memory, remote_usage()).unwrap();
    assert_eq!(fill(&peer, &region), contents(&region));
}

#[test]
fn plain_memory_registers_for_persistent_flush_and_remembers_what_was_refused() {
    let peer = device!();
    let region = region(&peer, 4096, remote_usage(), |_| 0);
    if is_soft_roce(&peer) {
        assert!(!region.methods().contains(FlushMethods::NATIVE_PERSISTENT));
        assert!(region.methods().contains(FlushMethods::NATIVE_VISIBILITY));
    }
    assert_eq!(remote(&region).methods(), Some(region.methods()));
    assert_eq!(fill(&peer, &region), contents(&region));
}

#[test]
fn a_file_on_tmpfs_is_written_by_the_peer() {
    let peer = device!();
    let path = format!("/dev/shm/rpma-device-memory-{}", std::process::id());
    let memory = match Memory::create_file(&path, 10_000) {
        Ok(memory) => memory,
        Err(error) => skip!("no file in /dev/shm: {error}"),
    };
    let region = peer.register(memory, remote_usage());
    let outcome = region.map(|region| (fill(&peer, &region), fs::read(&path).unwrap()));
    fs::remove_file(&path).unwrap();
    let (written, file) = outcome.unwrap();
    assert_eq!(written, file);
}

#[test]
fn huge_pages_are_registered() {
    let peer = device!();
    let memory = match Memory::huge(5 << 20, HugePage::Size2M) {
        Ok(memory) => memory,
        Err(error) => skip!("{error}"),
    };
    let region = peer.register(memory, remote_usage()).unwrap();
    assert_eq!(fill(&peer, &region), contents(&region));
}

#[test]
fn a_persistent_memory_device_takes_native_persistent_flushes() {
    let Ok(path) = env::var("RPMA_TEST_DAX") else {
        skip!("RPMA_TEST_DAX names no persistent memory device")
    };
    let whole = Memory::map_file(&path).unwrap();
    assert!(whole.is_persistent() && whole.is_writable());
    assert!(whole.len() >= 2 << 20 && whole.len() % 4096 == 0);
    assert_eq!(whole.as_ptr().addr() % 4096, 0);

    // Any part of it can be mapped, though the device itself wants multiples of its alignment.
    let (offset, len) = ((2 << 20) - 100, 4096);
    let part = Memory::map_file_range(&path, offset, len).unwrap();
    part.write_at(0, &[0xEE; 4096]).unwrap();
    part.flush_to_media(..).unwrap();
    let mut bytes = vec![0; len];
    whole.read_at(offset, &mut bytes).unwrap();
    assert_eq!(bytes, [0xEE; 4096]);
    let size = whole.len();
    assert!(Memory::map_file_range(&path, size as u64 - 1, 2).is_err());
    assert!(Memory::map_file_range(&path, size as u64 - 1, 1).is_ok());

    let peer = device!();
    let region = peer.register(part, remote_usage()).unwrap();
    println!("{region:?}");
    if peer.capabilities().native_flush_persistent {
        assert!(region.methods().contains(FlushMethods::NATIVE_PERSISTENT));
    }
    let written = fill(&peer, &region);
    region.flush_to_media(..).unwrap();
    drop(region);
    whole.read_at(offset, &mut bytes).unwrap();
    assert_eq!(bytes, written);
}

#[test]
fn a_file_of_a_dax_file_system_is_persistent_memory() {
    let Ok(folder) = env::var("RPMA_TEST_FSDAX") else {
        skip!("RPMA_TEST_FSDAX names no DAX file system")
    };
    let path = format!("{folder}/rpma-device-memory-{}", std::process::id());
    let memory = Memory::create_file(&path, 100_000).unwrap();
    assert!(memory.is_persistent());
    memory.write_at(99_990, b"0123456789").unwrap();
    memory.flush_to_media(99_990..).unwrap();
    assert_eq!(fs::read(&path).unwrap()[99_990..], *b"0123456789");

    let peer = device!();
    let outcome = peer.register(memory, remote_usage());
    // On-demand paging of Soft-RoCE leaves out the offset within the page, so it must not have been
    // tried.
    if peer.capabilities().odp.supported && !is_soft_roce(&peer) {
        let region = outcome.unwrap();
        println!("{region:?}");
        let written = fill(&peer, &region);
        drop(region);
        assert!(fs::read(&path).unwrap() == written);
    } else if !peer.capabilities().transport.is_iwarp() {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("on-demand paging"), "{error}");
    }
    fs::remove_file(&path).unwrap();
}
