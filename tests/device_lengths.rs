//! Ranges and lengths that cannot be right are refused before anything is posted, by an error that
//! names the argument; and the connection goes on.

mod common;

use common::{refused::*, *};
use rpma::{
    Advice, ConnCfg, Error, FlushKind, FlushMethod, LocalSlice, Memory, RemoteRegion, Signal,
};

#[test]
#[allow(clippy::reversed_empty_ranges)]
fn ranges_outside_of_their_region() {
    use std::ops::Bound::{self, Excluded, Included, Unbounded};
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new());
    let len = LEN as u64;
    let ranges: [(Bound<u64>, Bound<u64>); 8] = [
        (Included(0), Excluded(len + 1)),
        (Included(len), Excluded(len + 1)),
        (Included(len + 1), Unbounded),
        (Included(5), Excluded(4)),
        (Unbounded, Included(len)),
        (Included(8), Included(u64::MAX)),
        (Excluded(u64::MAX), Unbounded),
        (Included(u64::MAX - 7), Excluded(u64::MAX)),
    ];
    for range in ranges {
        let (local, remote) = (&rig.local, &rig.remote);
        refused(
            [
                local.slice(range).map(drop),
                local.slice(..).unwrap().slice(range).map(drop),
                remote.slice(range).map(drop),
                remote.whole().slice(range).map(drop),
            ],
            "range: bytes ",
        );
    }
    refused(
        [rig.local.slice(3..len + 1)],
        "range: bytes 3..65537 are outside of 0..65536",
    );
    refused(
        [rig.remote.slice(3..=len)],
        "range: bytes 3..65537 are outside of 0..65536",
    );
    // A slice does not reach what its region has.
    refused(
        [rig.here(10).slice(0..11)],
        "range: bytes 0..11 are outside of 0..10",
    );
    refused(
        [rig.there(10).slice(3..=10)],
        "range: bytes 3..11 are outside of 0..10",
    );
    let mut buf = [0; 8];
    for offset in [len - 7, len, u64::MAX - 3, u64::MAX] {
        refused(
            [
                rig.local.read_at(offset, &mut buf),
                rig.local.write_at(offset, &buf),
            ],
            "buf: bytes ",
        );
    }
    // The very end is inside.
    let (here, there) = (rig.local.slice(len - 3..), rig.remote.slice(len - 3..len));
    rig.client
        .read(&here.unwrap(), &there.unwrap(), Signal::Always(1))
        .unwrap();
    success(rig.client.cq(), 1);
    rig.goes_on();
}

#[test]
fn two_sides_of_different_lengths() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new().max_sge(2));
    let (client, here, there) = (&rig.client, rig.here(8), rig.there(9));
    refused(
        [
            client.write(&here, &there, SIGNAL),
            client.write_gather(&[here], &there, SIGNAL),
            client.write_inline(&[0; 8], &there, SIGNAL),
            client.batch().write(&here, &there, SIGNAL),
        ],
        "src: 8 bytes where the other side of the transfer has 9",
    );
    refused(
        [
            client.read(&here, &there, SIGNAL),
            client.read_scatter(&[here], &there, SIGNAL),
            client.batch().read(&here, &there, SIGNAL),
        ],
        "dst: 8 bytes where the other side of the transfer has 9",
    );
    refused(
        [client.write_gather(&[here, here], &there, SIGNAL)],
        "src: 16 bytes ",
    );
    refused(
        [client.write(&LocalSlice::EMPTY, &there, SIGNAL)],
        "src: 0 bytes ",
    );
    refused(
        [client.atomic_write(&there, [0; 8], SIGNAL)],
        "dst: 9 bytes ",
    );
    refused(
        [client.atomic_write(&rig.there(0), [0; 8], SIGNAL)],
        "dst: 0 bytes ",
    );
    if peer.capabilities().atomics {
        let word = rig.there(8);
        refused(
            [client.fetch_and_add(&here, &there, 1, SIGNAL)],
            "word: 9 bytes ",
        );
        refused(
            [client.fetch_and_add(&rig.here(4), &word, 1, SIGNAL)],
            "dst: 4 bytes ",
        );
        refused(
            [client.compare_and_swap(&rig.here(16), &word, 1, 2, SIGNAL)],
            "dst: 16 bytes ",
        );
    }
    rig.goes_on();
}

#[test]
fn more_bytes_than_one_message_carries() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new());
    let client = &rig.client;
    let most = client.max_message_size();
    if most > 64 << 20 {
        skip!("a message of this device may have {most} bytes: more than a test should move");
    }
    let len = most as usize + 1;
    let usage = local_usage() | remote_usage();
    let (from, to) = (
        region(&peer, len, usage, byte),
        region(&peer, len, usage, |_| 0),
    );
    let remote = remote(&to);
    let (here, there) = (from.slice(..).unwrap(), remote.whole());
    refused(
        [
            client.write(&here, &there, SIGNAL),
            client.write_gather(&[here], &there, SIGNAL),
            client.send(&here, SIGNAL),
        ],
        &format!("src: {len} bytes are more than the {most} that one message of the port"),
    );
    refused(
        [client.read(&here, &there, SIGNAL), client.recv(&here, 1)],
        "dst: ",
    );
    let (here, there) = (from.slice(1..).unwrap(), remote.slice(..most).unwrap());
    client.write(&here, &there, Signal::Always(1)).unwrap();
    success(client.cq(), 1);
    assert!(contents(&to)[..len - 1] == contents(&from)[1..]);
    rig.goes_on();
}

/// Many addresses over and over the same few bytes of memory.
struct Repeated {
    start: *mut libc::c_void,
    mapped: usize,
    len: usize,
}

impl Repeated {
    const PIECE: usize = 32 << 20;

    fn map(len: u64) -> Self {
        let len = len as usize;
        let mapped = len.next_multiple_of(Self::PIECE);
        // SAFETY: plain system calls; what is mapped is ours.
        unsafe {
            let fd = libc::memfd_create(c"rpma-repeated".as_ptr(), libc::MFD_CLOEXEC);
            assert!(fd >= 0);
            assert_eq!(libc::ftruncate(fd, Self::PIECE as i64), 0);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let nowhere = std::ptr::null_mut();
            let start = libc::mmap(nowhere, mapped, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            for at in (0..mapped).step_by(Self::PIECE) {
                let place = start.wrapping_byte_add(at);
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let flags = libc::MAP_SHARED | libc::MAP_FIXED;
                let got = libc::mmap(place, Self::PIECE, access, flags, fd, 0);
                assert_eq!(got, place);
            }
            libc::close(fd);
            Repeated { start, mapped, len }
        }
    }

    fn memory(&self) -> Memory {
        // SAFETY: the test unmaps after the region is gone, and looks at the bytes through no other
        // pointer.
        unsafe { Memory::from_raw_parts(self.start.cast(), self.len, true) }.unwrap()
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and no region is on it any more.
        unsafe { libc::munmap(self.start, self.mapped) };
    }
}

/// Cut to 32 bits, this would be 8 bytes.
const BEYOND: u64 = (1 << 32) + 8;

/// A region of a peer's that is so long, as its descriptor says.
fn of_length(log: &rpma::LocalRegion, len: u64) -> RemoteRegion {
    let mut descriptor = log.descriptor().as_bytes().to_vec();
    descriptor[8..16].copy_from_slice(&len.to_le_bytes());
    RemoteRegion::from_descriptor(&descriptor).unwrap()
}

#[test]
fn slices_that_are_too_long_together() {
    let peer = device!();
    let most = peer.capabilities().max_sge.min(16);
    let rig = Rig::new(&peer, &ConnCfg::new().max_sge(most));
    let client = &rig.client;
    let (most, max_sge) = (client.max_message_size(), u64::from(client.max_sge()));
    if max_sge < 4 {
        skip!("this device takes only {max_sge} slices at once");
    }
    let memory = Repeated::map(BEYOND.div_ceil(max_sge - 1));
    let region = peer
        .register(memory.memory(), local_usage() | remote_usage())
        .unwrap();
    for total in [BEYOND, most + 1] {
        let there = of_length(&rig.log, total).whole();
        let each = total.div_ceil(max_sge - 1);
        let mut slices = vec![region.slice(..each).unwrap(); max_sge as usize - 2];
        let rest = total - each * (max_sge - 2);
        slices.push(region.slice(..rest).unwrap());
        refused(
            [
                client.write_gather(&slices, &there, SIGNAL),
                client.send_gather(&slices, SIGNAL),
                client.batch().write_gather(&slices, &there, SIGNAL),
            ],
            &format!("src: {total} bytes are more than the {most} that one message of the port"),
        );
        refused([client.read_scatter(&slices, &there, SIGNAL)], "dst: ");
        let short = format!("src: 8 bytes where the other side of the transfer has {total}");
        refused([client.write(&rig.here(8), &there, SIGNAL)], &short);
        refused([client.write_inline(&[0; 8], &there, SIGNAL)], &short);
    }
    drop(region);
    rig.goes_on();
}

#[test]
fn ranges_that_no_native_flush_has_room_for() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new().flush_method(FlushMethod::Native));
    if !rig.client.has_native_flush(FlushKind::Visibility) {
        skip!("this device has no native flush");
    }
    // 32 bits for the length, unless it is the whole region.
    let part = of_length(&rig.log, BEYOND).slice(1..=1 << 32).unwrap();
    refused(
        [
            rig.client.flush(&part, FlushKind::Visibility, SIGNAL),
            rig.client
                .batch()
                .flush(&part, FlushKind::Visibility, SIGNAL),
        ],
        "range: 4294967296 bytes ",
    );
    rig.goes_on();
    // Where the method is free it is done by reading.
    let rig = Rig::new(&peer, &ConnCfg::new());
    let part = of_length(&rig.log, BEYOND).slice(1..=1 << 32).unwrap();
    rig.client
        .flush(&part, FlushKind::Visibility, Signal::Always(5))
        .unwrap();
    let wc = success(rig.client.cq(), 5);
    assert_eq!(wc.opcode(), rpma::WcOpcode::RDMA_READ);
    rig.goes_on();
}

#[test]
fn lengths_beyond_32_bits() {
    let peer = device!();
    let name = peer.device_name();
    if !on_standin() && (name.starts_with("rxe") || name.starts_with("siw")) {
        skip!("{name}: rxe has no regions of so many pages, and siw takes minutes for them");
    }
    let rig = Rig::new(&peer, &ConnCfg::new());
    let memory = Repeated::map(BEYOND);
    let region = match peer.register(memory.memory(), local_usage() | remote_usage()) {
        Ok(region) => region,
        Err(err @ Error::OutOfMemory { .. }) => skip!("4 GiB cannot be registered here: {err}"),
        Err(err) => panic!("{err}"),
    };
    let remote = remote(&region);
    assert_eq!((region.len(), remote.len()), (BEYOND, BEYOND));
    let (client, here, there) = (&rig.client, region.slice(..).unwrap(), remote.whole());
    refused(
        [
            client.write(&here, &there, SIGNAL),
            client.write_gather(&[here], &there, SIGNAL),
            client.send(&here, SIGNAL),
            client.batch().write(&here, &there, SIGNAL),
            client.batch().send(&here, SIGNAL),
        ],
        "src: 4294967304 bytes are more than ",
    );
    refused(
        [
            client.read(&here, &there, SIGNAL),
            client.read_scatter(&[here], &there, SIGNAL),
            client.recv(&here, 1),
            client.recv_batch().unwrap().recv(&here, 1),
            client.batch().read(&here, &there, SIGNAL),
        ],
        "dst: 4294967304 bytes are more than ",
    );
    let long = "src: 4294967304 bytes where the other side of the transfer has 8";
    refused([client.write(&here, &rig.there(8), SIGNAL)], long);
    let advice = region.advise(.., Advice::PREFETCH, true);
    refused([advice], "range: 4294967304 bytes ");
    // Its last eight bytes can be used as any, and the whole can be flushed: that moves none.
    let last = remote.slice(1 << 32..).unwrap();
    client
        .write(&rig.here(8), &last, Signal::OnError(1))
        .unwrap();
    client
        .flush(&last, FlushKind::Visibility, Signal::OnError(2))
        .unwrap();
    client
        .flush(&there, FlushKind::Visibility, Signal::Always(3))
        .unwrap();
    success(client.cq(), 3);
    let mut bytes = [0; 8];
    region.read_at(1 << 32, &mut bytes).unwrap();
    assert_eq!(bytes, contents(&rig.local)[..8]);
    drop(region);
    rig.goes_on();
}

#[test]
fn what_the_queue_has_no_room_for() {
    let peer = device!();
    let rig = Rig::new(&peer, &ConnCfg::new());
    let client = &rig.client;
    let most = client.max_inline();
    let bytes = vec![0; most as usize + 1];
    let there = rig.there(bytes.len() as u64);
    refused(
        [
            client.write_inline(&bytes, &there, SIGNAL),
            client.send_inline(&bytes, SIGNAL),
            client.batch().write_inline(&bytes, &there, SIGNAL),
            client.batch().send_inline(&bytes, SIGNAL),
        ],
        &format!(
            "src: {} bytes are more than the {most} that the inline space",
            most + 1
        ),
    );
    let most = client.max_sge();
    let many = vec![rig.here(1); most as usize + 1];
    let there = rig.there(many.len() as u64);
    refused(
        [
            client.write_gather(&many, &there, SIGNAL),
            client.send_gather(&many, SIGNAL),
            client.batch().write_gather(&many, &there, SIGNAL),
        ],
        "src: ",
    );
    let far_too_many = vec![rig.here(1); 17];
    refused(
        [
            client.read_scatter(&many, &there, SIGNAL),
            client.recv_scatter(&far_too_many, 1),
            client.recv_batch().unwrap().recv_scatter(&far_too_many, 1),
        ],
        "dst: ",
    );
    rig.goes_on();
}
