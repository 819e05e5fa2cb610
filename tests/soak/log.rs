//! What a record holds, so that everybody can tell what belongs where; and what client and server
//! tell each other.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use rpma::{Descriptor, Memory, RemoteRegion};

use crate::{
    Outcome,
    differs::Difference,
    format::{self, Contents, Header},
    hello,
};

/// The bytes of a log: some 900 records.
pub const CAPACITY: u64 = 128 << 10;

/// A client finds at least this much room; else the server makes the log anew first.
pub const ROOM: u64 = 32 << 10;

const MAGIC: &[u8; 4] = b"soak";

/// The file of a log.
pub fn path(folder: &Path, slot: u64) -> PathBuf {
    folder.join(format!("log-{slot}"))
}

/// The number of a log's records whose commit was acknowledged. Its client counts, the server
/// compares; and it outlives both.
pub struct Acks(Memory);

impl Acks {
    pub fn create(folder: &Path, slot: u64) -> Outcome<Acks> {
        Ok(Acks(Memory::create_file(Acks::path(folder, slot), 8)?))
    }

    pub fn open(folder: &Path, slot: u64) -> Outcome<Acks> {
        Ok(Acks(Memory::map_file(Acks::path(folder, slot))?))
    }

    fn path(folder: &Path, slot: u64) -> PathBuf {
        folder.join(format!("acks-{slot}"))
    }

    pub fn get(&self) -> Outcome<u64> {
        Ok(self.0.load_u64(0, Ordering::Acquire)?)
    }

    pub fn set(&self, records: u64) -> Outcome {
        Ok(self.0.store_u64(0, records, Ordering::Release)?)
    }
}

/// What is in a log against what was acknowledged: all of it must be there, and one more may be,
/// which was under way.
pub fn accept(slot: u64, contents: &Contents, acknowledged: u64) -> Outcome {
    let found = contents.records;
    if found < acknowledged {
        return Err(format!(
            "LOST: log {slot} has {found} records, and {acknowledged} were acknowledged"
        )
        .into());
    }
    if found > acknowledged + 1 {
        return Err(format!(
            "log {slot} has {found} records, and only {acknowledged} were acknowledged"
        )
        .into());
    }
    Ok(())
}

/// A record that is not what was written.
pub struct Differing {
    pub sequence: u64,
    pub at: u64,
    pub written: Vec<u8>,
    pub found: Vec<u8>,
}

/// The first of so many records that is not what was written.
pub fn first_differing(id: u64, log: &[u8], records: u64) -> Option<Differing> {
    let (mut scratch, mut written) = (Vec::new(), Vec::new());
    let mut at = format::RECORDS_AT as usize;
    for sequence in 0..records {
        record(id, sequence, &mut scratch, &mut written);
        let end = at + written.len();
        let found = log.get(at..end.min(log.len())).unwrap_or_default();
        if found != written {
            return Some(Differing {
                sequence,
                at: at as u64,
                found: found.to_vec(),
                written,
            });
        }
        at = end;
    }
    None
}

/// What is different in a damaged log as the server sees it; empty if only the header or the tail
/// is.
pub fn damage(slot: u64, memory: &Memory, acknowledged: u64) -> Outcome<String> {
    let mut log = vec![0; memory.len()];
    memory.read_at(0, &mut log)?;
    let differing = Header::decode(&log)
        .ok()
        .and_then(|header| first_differing(header.id, &log, acknowledged));
    Ok(differing.map_or_else(String::new, |d| {
        let what = format!("record {} of log {slot}", d.sequence);
        let difference = Difference::new(what, d.at, &d.written);
        format!(
            "\n{}",
            difference.found::<String>("the server's memory", Ok(d.found))
        )
    }))
}

/// The payload of this record of this log: of a length of its own, and other bytes in each. Every
/// other record is as short as can be, which some devices treat in a way of their own.
pub fn payload(id: u64, sequence: u64, payload: &mut Vec<u8>) {
    let mut state = (id ^ sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let lengths: RangeInclusive<u64> = match next() % 2 {
        // 24 and 32 bytes with the record's header.
        0 => 1..=16,
        _ => 1..=480,
    };
    let len = lengths.start() + next() % lengths.end();
    payload.clear();
    while (payload.len() as u64) < len {
        payload.extend_from_slice(&next().to_le_bytes());
    }
    payload.truncate(len as usize);
}

/// The whole record, as it has to be in the log.
pub fn record(id: u64, sequence: u64, scratch: &mut Vec<u8>, record: &mut Vec<u8>) {
    payload(id, sequence, scratch);
    format::encode_record(record, id, sequence, scratch);
}

/// What a client asks for, in its connection request.
pub struct Request {
    pub slot: u64,
    pub hello: hello::Request,
}

impl Request {
    pub fn encode(slot: u64, pulse: &Descriptor) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(slot as u8);
        bytes.extend_from_slice(&hello::Request::encode(pulse));
        bytes
    }

    pub fn decode(bytes: &[u8], slots: u64) -> Option<Request> {
        let (slot, rest) = bytes.strip_prefix(MAGIC)?.split_first()?;
        let slot = u64::from(*slot);
        Some(Request {
            slot: Some(slot).filter(|slot| *slot < slots)?,
            hello: hello::Request::decode(rest)?,
        })
    }
}

/// The server's answer: the log, and the area beside it.
pub struct Answer {
    pub welcome: hello::Welcome,
    pub pages: RemoteRegion,
}

impl Answer {
    pub fn encode(welcome: &[u8], pages: &Descriptor) -> Vec<u8> {
        [pages.as_bytes(), welcome].concat()
    }

    pub fn decode(bytes: &[u8]) -> Option<Answer> {
        let (pages, welcome) = bytes.split_at_checked(Descriptor::LEN)?;
        Some(Answer {
            welcome: hello::Welcome::decode(welcome)?,
            pages: RemoteRegion::from_descriptor(pages).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Beyond;

    const RECORDS_AT: usize = format::RECORDS_AT as usize;

    fn contents(records: u64) -> Contents {
        Contents {
            header: Header {
                capacity: CAPACITY,
                id: 1,
            },
            tail: 128,
            records,
            beyond: Beyond::Nothing,
        }
    }

    #[test]
    fn a_lost_record_is_told_and_so_is_one_too_many() {
        assert!(accept(0, &contents(5), 5).is_ok());
        assert!(accept(0, &contents(6), 5).is_ok());
        let lost = accept(3, &contents(4), 5).unwrap_err().to_string();
        assert_eq!(lost, "LOST: log 3 has 4 records, and 5 were acknowledged");
        assert!(accept(0, &contents(7), 5).is_err());
    }

    #[test]
    fn records_differ_in_length_and_content_and_come_again() {
        let (mut scratch, mut one, mut other) = (vec![], vec![], vec![]);
        let mut lengths = std::collections::BTreeSet::new();
        for sequence in 0..200 {
            record(7, sequence, &mut scratch, &mut one);
            record(7, sequence, &mut scratch, &mut other);
            assert_eq!(one, other);
            record(8, sequence, &mut scratch, &mut other);
            assert_ne!(one, other);
            lengths.insert(one.len());
        }
        assert!(lengths.len() > 30);
    }

    #[test]
    fn the_first_record_that_differs_is_found() {
        let (mut scratch, mut one) = (vec![], vec![]);
        let mut log = vec![0; RECORDS_AT];
        for sequence in 0..10 {
            record(7, sequence, &mut scratch, &mut one);
            log.extend_from_slice(&one);
        }
        let end = log.len();
        log.resize(end + 100, 0);
        assert!(first_differing(7, &log, 10).is_none());
        let next = first_differing(7, &log, 11).unwrap();
        assert_eq!((next.sequence, next.at), (10, end as u64));
        let last = end - one.len();
        log[last + 5] ^= 1;
        let differing = first_differing(7, &log, 10).unwrap();
        assert_eq!((differing.sequence, differing.at), (9, last as u64));
        assert_eq!(differing.written, one);
        assert_eq!(differing.found, log[last..end]);
    }

    #[test]
    fn garbage_asks_for_no_log() {
        let pulse = [1; 22];
        assert!(Request::decode(&pulse, 8).is_none());
        assert!(Request::decode(b"soak", 8).is_none());
        assert!(Request::decode(b"soak\x01", 8).is_none());
        assert!(Request::decode(b"soak\x01rlog\x01", 8).is_none());
    }
}
