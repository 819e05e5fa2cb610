use super::*;

const C_BYTES: [u8; 21] = [
    0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, // address
    0x00, 0x10, 0, 0, 0, 0, 0, 0, // length
    0x78, 0x56, 0x34, 0x12, // rkey
    0x29, // READ_SRC, WRITE_DST, FLUSH_PERSISTENT
];

fn problem(bytes: &[u8]) -> &'static str {
    match RemoteRegion::from_descriptor(bytes) {
        Err(Error::BadDescriptor {
            what: "memory region",
            problem,
        }) => problem,
        other => panic!("{other:?} from {bytes:x?}"),
    }
}

#[test]
fn the_layout_is_that_of_librpma_and_one_byte() {
    let usage = Usage::READ_SRC | Usage::WRITE_DST | Usage::FLUSH_PERSISTENT;
    let descriptor = Descriptor::new(
        0x0102_0304_0506_0708,
        0x1000,
        0x1234_5678,
        usage,
        FlushMethods::NATIVE_PERSISTENT,
    );
    assert_eq!(descriptor.to_librpma(), C_BYTES);
    assert_eq!(descriptor.as_bytes()[..21], C_BYTES);
    assert_eq!(descriptor.as_bytes()[21], 0xA2);
    assert_eq!(descriptor.as_bytes().len(), Descriptor::LEN);
    assert_eq!(descriptor.as_ref(), <[u8; 22]>::from(descriptor));
}

#[test]
fn every_region_comes_back_as_it_was() {
    for usage in (1..512).map(Usage::from_bits_truncate) {
        for methods in (0..4).map(FlushMethods::from_bits_truncate) {
            for (addr, len, rkey) in [
                (0, 1, 0),
                (4096, u64::MAX - 4096, u32::MAX),
                (u64::MAX - 1, 1, 1),
            ] {
                let descriptor = Descriptor::new(addr, len, rkey, usage, methods);
                let region = RemoteRegion::from_descriptor(descriptor.as_bytes()).unwrap();
                assert_eq!(
                    region,
                    RemoteRegion::new(addr, len, rkey, usage, Some(methods))
                );
            }
        }
    }
}

#[test]
fn a_c_peer_is_known_by_what_it_leaves_out() {
    let expected = RemoteRegion::new(
        0x0102_0304_0506_0708,
        0x1000,
        0x1234_5678,
        Usage::READ_SRC | Usage::WRITE_DST | Usage::FLUSH_PERSISTENT,
        None,
    );
    assert_eq!(RemoteRegion::from_descriptor(&C_BYTES).unwrap(), expected);
    // Whatever a C program keeps behind the descriptor, say a peer configuration descriptor, is not
    // ours.
    for other in (0..=255u8).filter(|byte| byte & 0xF0 != 0xA0) {
        let mut bytes = C_BYTES.to_vec();
        bytes.push(other);
        assert_eq!(RemoteRegion::from_descriptor(&bytes).unwrap(), expected);
    }
}

#[test]
fn bits_to_come_and_bytes_to_come_are_ignored() {
    let mut bytes = C_BYTES.to_vec();
    bytes.push(0xA8 | 1);
    bytes.extend([0xff; 40]);
    let region = RemoteRegion::from_descriptor(&bytes).unwrap();
    assert_eq!(region.methods(), Some(FlushMethods::NATIVE_VISIBILITY));
    assert!(!region.usage().contains(Usage::ATOMIC));
}

#[test]
fn atomics_travel_in_the_last_byte_only() {
    let descriptor = Descriptor::new(8, 8, 1, Usage::ATOMIC, FlushMethods::empty());
    assert_eq!(descriptor.as_bytes()[20..], [0, 0xA4]);
    let region = RemoteRegion::from_descriptor(descriptor.as_bytes()).unwrap();
    assert_eq!(region.usage(), Usage::ATOMIC);
    assert!(problem(&descriptor.to_librpma()).starts_with("no usage"));
}

#[test]
fn garbled_descriptors_are_refused() {
    for len in 0..21 {
        assert_eq!(problem(&C_BYTES[..len]), "shorter than 21 bytes");
    }
    let with = |at: usize, new: &[u8]| {
        let mut bytes = C_BYTES;
        bytes[at..at + new.len()].copy_from_slice(new);
        bytes
    };
    assert!(problem(&with(20, &[0])).starts_with("no usage"));
    assert!(problem(&with(8, &[0; 8])).starts_with("length 0"));
    assert!(problem(&with(8, &[0xff; 8])).ends_with("address space"));
    assert!(problem(&with(0, &[0xff; 8])).ends_with("address space"));
}

#[test]
fn no_bytes_whatever_make_it_panic() {
    // A xorshift generator: the test is to do the same on every run.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for round in 0..if cfg!(miri) { 200 } else { 20_000 } {
        let bytes: Vec<u8> = (0..round % 30)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .collect();
        if let Ok(region) = RemoteRegion::from_descriptor(&bytes) {
            assert!(bytes.len() >= 21);
            assert!(region.len() > 0 && !region.usage().is_empty());
            assert!(region.address().checked_add(region.len()).is_some());
            assert!(region.slice(..).is_ok());
        }
    }
}
