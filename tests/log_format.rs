//! The log of the example: what makes its bytes valid, and that no damage passes.

#[path = "../examples/remote_log/format.rs"]
mod format;

use format::*;

const ID: u64 = 0x0123_4567_89ab_cdef;
const CAPACITY: usize = 4096;

/// A log with these payloads committed.
fn log(payloads: &[&[u8]]) -> Vec<u8> {
    let mut log = vec![0; CAPACITY];
    let header = Header {
        capacity: CAPACITY as u64,
        id: ID,
    };
    log[..64].copy_from_slice(&header.encode());
    set_tail(&mut log, RECORDS_AT);
    for (sequence, payload) in payloads.iter().enumerate() {
        let tail = put(&mut log, sequence as u64, payload);
        set_tail(&mut log, tail);
    }
    log
}

/// Writes a record at the tail and commits nothing; gives where it ends.
fn put(log: &mut [u8], sequence: u64, payload: &[u8]) -> u64 {
    let mut record = Vec::new();
    encode_record(&mut record, ID, sequence, payload);
    let tail = tail(log);
    log[tail as usize..][..record.len()].copy_from_slice(&record);
    tail + record.len() as u64
}

fn tail(log: &[u8]) -> u64 {
    u64::from_le_bytes(log[64..72].try_into().unwrap())
}

fn set_tail(log: &mut [u8], tail: u64) {
    log[64..72].copy_from_slice(&tail.to_le_bytes());
}

fn three() -> Vec<u8> {
    log(&[b"first", &[7; 240], b""])
}

#[test]
fn an_empty_log_is_valid() {
    let contents = validate(&log(&[])).unwrap();
    assert_eq!((contents.records, contents.tail), (0, RECORDS_AT));
    assert_eq!(contents.beyond, Beyond::Nothing);
    assert_eq!(contents.header.id, ID);
}

#[test]
fn committed_records_are_counted() {
    let contents = validate(&three()).unwrap();
    assert_eq!(contents.records, 3);
    assert_eq!(contents.tail, RECORDS_AT + 24 + 256 + 16);
    assert_eq!(contents.beyond, Beyond::Nothing);
}

#[test]
fn what_is_longer_than_the_log_is_not_looked_at() {
    let mut bytes = three();
    bytes.resize(2 * CAPACITY, 0xff);
    assert_eq!(validate(&bytes).unwrap().beyond, Beyond::Nothing);
}

#[test]
fn a_record_that_was_not_committed_does_not_count() {
    let mut bytes = three();
    let end = put(&mut bytes, 3, b"fourth");
    let contents = validate(&bytes).unwrap();
    assert_eq!(
        (contents.records, contents.beyond),
        (3, Beyond::WholeRecord)
    );

    // Torn, of another place in the sequence, of another log: remains, all of them.
    let torn = end as usize - 3;
    bytes[torn] ^= 1;
    assert_eq!(validate(&bytes).unwrap().beyond, Beyond::Remains);
    put(&mut bytes, 4, b"fourth");
    assert_eq!(validate(&bytes).unwrap().beyond, Beyond::Remains);
    let mut record = Vec::new();
    encode_record(&mut record, ID + 1, 3, b"fourth");
    let at = tail(&bytes) as usize;
    bytes[at..at + record.len()].copy_from_slice(&record);
    assert_eq!(validate(&bytes).unwrap().beyond, Beyond::Remains);
    assert_eq!(validate(&bytes).unwrap().records, 3);
}

#[test]
fn garbage_beyond_the_tail_does_not_count() {
    let mut bytes = three();
    let tail = tail(&bytes) as usize;
    for fill in [0xff, 0x01, 0x80] {
        bytes[tail..].fill(fill);
        let contents = validate(&bytes).unwrap();
        assert_eq!((contents.records, contents.beyond), (3, Beyond::Remains));
    }
}

#[test]
fn no_flipped_bit_of_a_committed_record_passes() {
    let good = three();
    for at in RECORDS_AT as usize..tail(&good) as usize {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let damage = validate(&bad).unwrap_err();
            assert!(
                matches!(damage, Damage::Length { .. } | Damage::Checksum { .. }),
                "byte {at}, bit {bit}: {damage}"
            );
        }
    }
}

#[test]
fn no_flipped_bit_of_the_header_passes() {
    let good = three();
    for at in 0..32 {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            assert_eq!(validate(&bad), Err(Damage::Header), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn a_torn_record_is_told_by_its_checksum() {
    // As if the second half had never arrived.
    let mut bytes = three();
    let second = RECORDS_AT as usize + 24;
    bytes[second + 128..second + 256].fill(0);
    let damage = Damage::Checksum {
        sequence: 1,
        at: second as u64,
    };
    assert_eq!(validate(&bytes), Err(damage));
    // As if only the tail had arrived.
    bytes[second..second + 256].fill(0);
    assert_eq!(validate(&bytes), Err(damage));
}

#[test]
fn records_out_of_sequence_are_told() {
    let mut bytes = log(&[b"a"]);
    let end = put(&mut bytes, 5, b"b");
    set_tail(&mut bytes, end);
    assert_eq!(
        validate(&bytes),
        Err(Damage::Sequence {
            sequence: 1,
            found: 5,
            at: RECORDS_AT + 24
        })
    );
}

#[test]
fn records_of_another_log_are_told() {
    let mut bytes = log(&[b"a", b"b"]);
    let header = Header {
        capacity: CAPACITY as u64,
        id: ID + 1,
    };
    bytes[..64].copy_from_slice(&header.encode());
    assert_eq!(
        validate(&bytes),
        Err(Damage::Checksum {
            sequence: 0,
            at: RECORDS_AT
        })
    );
}

#[test]
fn a_tail_where_no_record_can_end_is_told() {
    let good = three();
    let capacity = CAPACITY as u64;
    for tail in [
        0,
        64,
        120,
        129,
        132,
        capacity + 8,
        1 << 40,
        u64::MAX,
        u64::MAX - 7,
    ] {
        let mut bad = good.clone();
        set_tail(&mut bad, tail);
        assert_eq!(validate(&bad), Err(Damage::Tail { tail, capacity }));
    }
}

#[test]
fn a_tail_inside_of_a_record_is_told() {
    let good = three();
    let ends = [
        RECORDS_AT,
        RECORDS_AT + 24,
        RECORDS_AT + 280,
        RECORDS_AT + 296,
    ];
    for tail in (RECORDS_AT..RECORDS_AT + 296).step_by(8) {
        let mut log = good.clone();
        set_tail(&mut log, tail);
        match validate(&log) {
            Ok(contents) => assert!(ends.contains(&tail), "{contents:?}"),
            Err(damage) => assert!(
                matches!(damage, Damage::Length { .. }) && !ends.contains(&tail),
                "{damage}"
            ),
        }
    }
}

#[test]
fn a_tail_beyond_the_records_is_told() {
    let mut bytes = three();
    let end = tail(&bytes);
    set_tail(&mut bytes, end + 8);
    assert!(matches!(
        validate(&bytes),
        Err(Damage::Length { sequence: 3, .. })
    ));
    set_tail(&mut bytes, CAPACITY as u64);
    assert!(matches!(
        validate(&bytes),
        Err(Damage::Checksum { sequence: 3, .. })
    ));
}

#[test]
fn a_full_log_is_valid() {
    let mut bytes = log(&[]);
    let mut sequence = 0;
    while tail(&bytes) + 256 <= CAPACITY as u64 {
        let end = put(&mut bytes, sequence, &[sequence as u8; 240]);
        set_tail(&mut bytes, end);
        sequence += 1;
    }
    let contents = validate(&bytes).unwrap();
    assert_eq!((contents.records, sequence), (15, 15));
}

#[test]
fn what_is_no_log_is_told() {
    assert_eq!(validate(&[]), Err(Damage::Header));
    assert_eq!(validate(&[0; CAPACITY]), Err(Damage::Header));
    assert_eq!(validate(&[0xff; CAPACITY]), Err(Damage::Header));
    let good = three();
    for len in 0..64 {
        assert_eq!(validate(&good[..len]), Err(Damage::Header));
    }
    for len in [64, 72, 128, CAPACITY - 1] {
        let damage = Damage::Capacity {
            capacity: CAPACITY as u64,
            len: len as u64,
        };
        assert_eq!(validate(&good[..len]), Err(damage));
    }
}

#[test]
fn a_capacity_without_room_for_the_tail_is_told() {
    let mut bytes = vec![0; CAPACITY];
    let header = Header {
        capacity: 64,
        id: ID,
    };
    bytes[..64].copy_from_slice(&header.encode());
    assert!(matches!(validate(&bytes), Err(Damage::Capacity { .. })));
}

#[test]
fn random_bytes_never_pass_nor_panic() {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..2000 {
        let mut bytes = three();
        let end = tail(&bytes);
        // Any bytes in place of the records, under a valid header and any tail in the log.
        let from = RECORDS_AT as usize + (next() % (end - RECORDS_AT)) as usize;
        for byte in &mut bytes[from..] {
            *byte = next() as u8;
        }
        set_tail(&mut bytes, RECORDS_AT + next() % (CAPACITY as u64));
        if let Ok(contents) = validate(&bytes) {
            assert!(
                contents.tail <= from as u64,
                "{contents:?}, random from {from}"
            );
        }
    }
}
