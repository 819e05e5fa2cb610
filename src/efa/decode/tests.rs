use proptest::prelude::*;

use super::*;

/// A receive of a write with immediate data: every field differs from every other.
const RECEIVED_WRITE: [u8; 32] = [
    0x02,
    0x01,        // request id
    0,           // status
    0b0010_1101, // phase, receive queue, immediate, write
    0x04,
    0x03, // queue pair
    0x06,
    0x05, // length, low part
    0x08,
    0x07, // address handle
    0x0a,
    0x09, // source queue pair
    0x0e,
    0x0d,
    0x0c,
    0x0b, // immediate data
    0x10,
    0x0f,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0, // length, high part
];

fn entries(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap()
}

fn with_flags(flags: u8) -> Entry {
    let mut bytes = RECEIVED_WRITE;
    bytes[3] = flags;
    Entry::decode(&bytes).unwrap()
}

#[test]
fn a_received_write_has_every_field() {
    let entry = Entry::decode(&RECEIVED_WRITE).unwrap();
    assert!(entry.phase().bit());
    assert_eq!(entry.queue(), Queue::RECEIVE);
    assert!(entry.is_receive());
    assert_eq!(entry.operation(), Operation::WRITE);
    assert_eq!(entry.status(), Status::OK);
    assert!(entry.is_ok());
    assert_eq!(entry.request_id(), 0x0102);
    assert_eq!(entry.wide_request_id(), None);
    assert_eq!(entry.qp_num(), 0x0304);
    assert_eq!(entry.length(), Some(0x0f10_0506));
    assert_eq!(entry.address_handle(), Some(0x0708));
    assert_eq!(entry.source_qp(), Some(0x090a));
    assert_eq!(entry.immediate(), Some(0x0b0c_0d0e));
    assert_eq!(entry.source_gid(), None);
    assert!(!entry.is_unsolicited());
    assert_eq!(entry.as_bytes(), RECEIVED_WRITE);
}

#[test]
fn the_short_form_has_the_low_length_only() {
    let entry = Entry::decode(&RECEIVED_WRITE[..16]).unwrap();
    assert!(!entry.is_extended());
    assert_eq!(entry.length(), Some(0x0506));
    assert_eq!(entry.immediate(), Some(0x0b0c_0d0e));
    assert_eq!(entry.as_bytes(), &RECEIVED_WRITE[..16]);
    // In between the two forms the tail does not count.
    assert_eq!(Entry::decode(&RECEIVED_WRITE[..31]), Some(entry));
    assert_eq!(Entry::decode(&RECEIVED_WRITE[..15]), None);
    assert_eq!(Entry::decode(&[]), None);
}

#[test]
fn a_longer_entry_is_cut() {
    let mut long = [0xee; 64];
    long[..32].copy_from_slice(&RECEIVED_WRITE);
    assert_eq!(Entry::decode(&long), Entry::decode(&RECEIVED_WRITE));
}

#[test]
fn a_sender_without_address_handle_has_a_gid() {
    let mut bytes = RECEIVED_WRITE;
    bytes[3] = 0b0000_0101;
    bytes[8..10].copy_from_slice(&[0xff, 0xff]);
    bytes[16..].copy_from_slice(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let entry = Entry::decode(&bytes).unwrap();
    assert_eq!(entry.operation(), Operation::SEND);
    assert_eq!(entry.address_handle(), None);
    assert_eq!(entry.source_gid().unwrap(), bytes[16..]);
    // The high part belongs to writes: here it is the GID's first bytes.
    assert_eq!(entry.length(), Some(0x0506));
    assert_eq!(entry.immediate(), None);

    let short = Entry::decode(&bytes[..16]).unwrap();
    assert_eq!(short.source_gid(), None);
    bytes[8] = 0;
    assert_eq!(Entry::decode(&bytes).unwrap().source_gid(), None);
}

#[test]
fn a_send_entry_has_what_a_send_has() {
    let mut bytes = RECEIVED_WRITE;
    bytes[3] = 0b0001_1010;
    let entry = Entry::decode(&bytes).unwrap();
    assert!(!entry.phase().bit());
    assert_eq!(entry.queue(), Queue::SEND);
    assert_eq!(entry.operation(), Operation::READ);
    assert_eq!(entry.request_id(), 0x0102);
    assert_eq!(entry.wide_request_id(), Some(0x090a_0708_0506_0102));
    assert_eq!(entry.immediate(), None);
    assert_eq!(entry.length(), None);
    assert_eq!(entry.address_handle(), None);
    assert_eq!(entry.source_qp(), None);
    assert_eq!(entry.source_gid(), None);
}

#[test]
fn every_flag_is_its_own() {
    assert!(with_flags(0b1000_0000).is_unsolicited());
    assert!(!with_flags(0b0111_1111).is_unsolicited());
    for op in 0..8 {
        assert_eq!(with_flags(op << 4).operation().as_raw(), op);
    }
    for queue in 0..4 {
        assert_eq!(with_flags(queue << 1).queue().as_raw(), queue);
    }
    assert_eq!(with_flags(1).phase(), Phase::FIRST);
    assert_eq!(with_flags(0xfe).phase(), Phase::FIRST.flipped());
    assert_eq!(with_flags(0b0000_0100).immediate(), None);
    assert_eq!(with_flags(0b0000_1100).immediate(), Some(0x0b0c_0d0e));
}

#[test]
fn unknown_numbers_come_through() {
    let named = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18];
    for raw in 0..=u8::MAX {
        let mut bytes = RECEIVED_WRITE;
        bytes[2] = raw;
        let status = Entry::decode(&bytes).unwrap().status();
        assert_eq!(status, Status::from_raw(raw));
        assert_eq!(status.as_raw(), raw);
        let debug = format!("{status:?}");
        assert_eq!(
            debug == format!("Status({raw})"),
            !named.contains(&raw),
            "{debug}"
        );
        let unknown = format!("unknown ({raw})");
        assert_eq!(status.to_string() == unknown, !named.contains(&raw));
    }
    assert_eq!(format!("{:?}", Status::REMOTE_RNR), "REMOTE_RNR");
    assert_eq!(Status::REMOTE_RNR.to_string(), "receiver not ready");
    assert_eq!(format!("{:?}", Operation::from_raw(5)), "Operation(5)");
    assert_eq!(format!("{:?}", Queue::from_raw(3)), "Queue(3)");
}

#[test]
fn the_cursor_flips_its_phase_at_each_wrap() {
    let mut cursor = Cursor::start(entries(3));
    let mut seen = Vec::new();
    for _ in 0..7 {
        seen.push((cursor.index(), cursor.phase().bit()));
        cursor.advance();
    }
    let lap = |bit| [(0, bit), (1, bit), (2, bit)];
    assert_eq!(seen[..3], lap(true));
    assert_eq!(seen[3..6], lap(false));
    assert_eq!(seen[6], (0, true));
    assert_eq!(cursor.passed(), 7);
}

#[test]
fn a_zeroed_ring_has_nothing_new() {
    let zero = Entry::decode(&[0; 32]).unwrap();
    let mut cursor = Cursor::start(entries(4));
    for _ in 0..4 {
        assert!(!cursor.is_ready(&zero));
        cursor.advance();
    }
}

#[test]
fn the_doorbell_has_its_bits() {
    assert_eq!(doorbell_word(0, 0, false), 0);
    assert_eq!(doorbell_word(0x1_2345, 0, false), 0x2345);
    assert_eq!(doorbell_word(0, 1, false), 1 << 29);
    assert_eq!(doorbell_word(0, 6, false), 1 << 30);
    assert_eq!(doorbell_word(0xffff, 7, true), 0xe000_ffff);
    assert_eq!(doorbell_word(0, 0, true), 1 << 31);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        match Entry::decode(&bytes) {
            None => prop_assert!(bytes.len() < 16),
            Some(entry) => {
                prop_assert!(bytes.starts_with(entry.as_bytes()));
                prop_assert_eq!(entry.is_extended(), bytes.len() >= 32);
                let debug = format!("{entry:?}");
                prop_assert!(debug.starts_with("Entry"));
                prop_assert!(!(entry.source_gid().is_some() && entry.address_handle().is_some()));
                prop_assert_eq!(entry.length().is_some(), entry.is_receive());
                prop_assert!(entry.wide_request_id().is_none() || !entry.is_receive());
            }
        }
    }

    #[test]
    fn what_goes_in_comes_out(
        (id, status, flags, qp, low, ah) in any::<(u16, u8, u8, u16, u16, u16)>(),
        (src, imm, high) in any::<(u16, u32, u16)>(),
    ) {
        let mut bytes = Vec::new();
        bytes.extend(id.to_le_bytes());
        bytes.extend([status, flags]);
        for word in [qp, low, ah, src] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(imm.to_le_bytes());
        bytes.extend(high.to_le_bytes());
        bytes.resize(32, 0);
        let entry = Entry::decode(&bytes).unwrap();
        prop_assert_eq!(entry.request_id(), id);
        prop_assert_eq!(entry.status().as_raw(), status);
        prop_assert_eq!(entry.qp_num(), qp);
        let receive = flags & 0b110 == 0b100;
        let write = flags & 0b111_0000 == 0b10_0000;
        let high = if write { u32::from(high) << 16 } else { 0 };
        prop_assert_eq!(entry.length(), receive.then_some(high | u32::from(low)));
        prop_assert_eq!(entry.immediate(), (receive && flags & 8 != 0).then_some(imm));
        prop_assert_eq!(entry.address_handle(), (receive && ah != 0xffff).then_some(ah));
        prop_assert_eq!(entry.source_qp(), receive.then_some(src));
        prop_assert_eq!(entry.is_unsolicited(), flags >= 128);
    }

    #[test]
    fn a_cursor_can_be_made_anywhere(n in 1u32..100, steps in 0u64..1000) {
        let mut walked = Cursor::start(entries(n));
        for _ in 0..steps {
            walked.advance();
        }
        prop_assert_eq!(walked, Cursor::at(entries(n), steps));
    }

    #[test]
    fn an_entry_is_new_exactly_in_its_own_lap(n in 1u32..50, lap in 0u64..6) {
        // Written in `lap`: new to a cursor of that lap, old to the one before and after.
        let mut bytes = [0; 16];
        bytes[3] = u8::from(lap % 2 == 0);
        let entry = Entry::decode(&bytes).unwrap();
        let n64 = u64::from(n);
        prop_assert!(Cursor::at(entries(n), lap * n64).is_ready(&entry));
        prop_assert!(Cursor::at(entries(n), lap * n64 + n64 - 1).is_ready(&entry));
        prop_assert!(!Cursor::at(entries(n), (lap + 1) * n64).is_ready(&entry));
    }
}
