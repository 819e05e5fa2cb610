//! A made-up ring: the first byte says how many entries it has, the second how long they are, the
//! rest is what a device wrote.
#![no_main]

use std::num::NonZeroU32;

use libfuzzer_sys::fuzz_target;
use rpma::efa::{Cursor, Entry, Operation, Queue};

fuzz_target!(|data: &[u8]| {
    let [count, stride, written @ ..] = data else { return };
    let count = NonZeroU32::MIN.saturating_add((*count).into());
    let stride = usize::from(*stride).max(1);
    let mut cursor = Cursor::start(count);
    for (passed, bytes) in (0u64..).zip(written.chunks(stride)) {
        assert_eq!(cursor, Cursor::at(count, passed));
        assert!(cursor.index() < count.get());
        match Entry::decode(bytes) {
            Some(entry) => {
                check(bytes, &entry);
                assert_eq!(cursor.is_ready(&entry), (bytes[3] & 1 == 1) == cursor.phase().bit());
            }
            None => assert!(bytes.len() < Entry::BASIC),
        }
        cursor.advance();
    }
});

/// What the decoder says, against the bytes.
fn check(bytes: &[u8], entry: &Entry) {
    let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let extended = bytes.len() >= Entry::EXTENDED;
    let receive = (bytes[3] >> 1) & 3 == 2;
    assert_eq!(entry.is_extended(), extended);
    assert!(bytes.starts_with(entry.as_bytes()));
    assert_eq!(entry.status().as_raw(), bytes[2]);
    assert_eq!(entry.queue() == Queue::RECEIVE, receive);
    assert_eq!(entry.request_id(), word(0));
    assert_eq!(entry.qp_num(), word(4));
    assert_eq!(entry.is_unsolicited(), bytes[3] & 0x80 != 0);
    assert_eq!(entry.length().is_some(), receive);
    assert_eq!(entry.source_qp(), receive.then(|| word(10)));
    assert_eq!(entry.address_handle(), Some(word(8)).filter(|ah| receive && *ah != 0xffff));
    assert_eq!(entry.immediate().is_some(), receive && bytes[3] & 8 != 0);
    if let Some(length) = entry.length() {
        let high = extended && entry.operation() == Operation::WRITE;
        assert_eq!(length, u32::from(word(6)) | if high { u32::from(word(16)) << 16 } else { 0 });
    }
    if let Some(gid) = entry.source_gid() {
        assert_eq!(gid, bytes[16..32]);
        assert!(receive && entry.address_handle().is_none());
    }
    if let Some(wide) = entry.wide_request_id() {
        assert_eq!(entry.queue(), Queue::SEND);
        assert_eq!(wide as u16, word(0));
    }
    let _ = format!("{entry:?} {} {} {}", entry.status(), entry.operation(), entry.queue());
}
