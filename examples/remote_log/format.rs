//! The bytes of the log, and what makes them valid. Nothing here knows of RDMA.
//!
//! | bytes | what |
//! |---|---|
//! | 0..64 | header: magic, capacity, id, version, checksum; written once |
//! | 64..72 | tail: where the committed records end, in bytes from the start of the log; changed by 8-byte atomic writes alone |
//! | 128.. | records, one behind the other, each a multiple of 8 bytes |
//!
//! | bytes of a record | what |
//! |---|---|
//! | 0..4 | length of the payload |
//! | 4..8 | CRC32C of the log's id and of all else in the record |
//! | 8..16 | sequence number, counted from 0 |
//! | 16.. | payload, then zeros up to a multiple of 8 |
//!
//! Numbers are little-endian. The tail alone decides what is committed: what lies beyond it is no
//! record, whole as it may look. The id, made anew with each log, keeps records of an older log in
//! the same place from passing for this one's.

/// Where the tail word is. A cache line of its own, and 8-byte aligned: it is written atomically.
pub const TAIL_AT: u64 = 64;
/// Where the first record is.
pub const RECORDS_AT: u64 = 128;
/// What a record has besides its payload.
pub const RECORD_HEADER: usize = 16;

const MAGIC: &[u8; 8] = b"rpma-log";
const VERSION: u32 = 1;
const ALIGN: usize = 8;

/// What a log is, for as long as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The length of the log in bytes.
    pub capacity: u64,
    /// A random number.
    pub id: u64,
}

/// Why bytes are no valid log. The offsets are in bytes from the start of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("no log: too short, or the header is damaged or of something else")]
    Header,
    #[error("the header speaks of version {0}, which is unknown here")]
    Version(u32),
    #[error("the header speaks of {capacity} bytes, and there are {len}")]
    Capacity { capacity: u64, len: u64 },
    #[error("the tail {tail} is not where a record can end (128 to {capacity}, a multiple of 8)")]
    Tail { tail: u64, capacity: u64 },
    #[error(
        "record {sequence} at byte {at} is committed, but its length leads beyond the tail {tail}"
    )]
    Length { sequence: u64, at: u64, tail: u64 },
    #[error("record {sequence} at byte {at} is committed, but torn: its checksum is wrong")]
    Checksum { sequence: u64, at: u64 },
    #[error("at byte {at} there is record {found} where {sequence} belongs")]
    Sequence { sequence: u64, found: u64, at: u64 },
}

/// What a valid log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    pub header: Header,
    /// Where the next record goes.
    pub tail: u64,
    /// The number of committed records, and so the next record's sequence number.
    pub records: u64,
    pub beyond: Beyond,
}

/// What lies beyond the tail. None of it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    Nothing,
    /// A whole record that was not committed: its writer ended in between.
    WholeRecord,
    /// Parts of a record, or of something older.
    Remains,
}

impl Header {
    pub fn encode(&self) -> [u8; TAIL_AT as usize] {
        let mut bytes = [0; TAIL_AT as usize];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.capacity.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.id.to_le_bytes());
        bytes[24..28].copy_from_slice(&VERSION.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..28]);
        bytes[28..32].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub fn decode(log: &[u8]) -> Result<Header, Damage> {
        let bytes = log.get(..TAIL_AT as usize).ok_or(Damage::Header)?;
        let crc = u32_at(bytes, 28).ok_or(Damage::Header)?;
        if bytes[..8] != *MAGIC || crc32c::crc32c(&bytes[..28]) != crc {
            return Err(Damage::Header);
        }
        let version = u32_at(bytes, 24).ok_or(Damage::Header)?;
        if version != VERSION {
            return Err(Damage::Version(version));
        }
        Ok(Header {
            capacity: u64_at(bytes, 8).ok_or(Damage::Header)?,
            id: u64_at(bytes, 16).ok_or(Damage::Header)?,
        })
    }
}

/// What a record with so much payload takes in the log.
pub fn record_len(payload: usize) -> usize {
    (RECORD_HEADER + payload).next_multiple_of(ALIGN)
}

/// Makes a record; `record` is cleared first, so that it can be used again without allocating.
pub fn encode_record(record: &mut Vec<u8>, id: u64, sequence: u64, payload: &[u8]) {
    record.clear();
    record.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    record.extend_from_slice(&[0; 4]);
    record.extend_from_slice(&sequence.to_le_bytes());
    record.extend_from_slice(payload);
    record.resize(record_len(payload.len()), 0);
    let crc = checksum(id, record);
    record[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// The record at the start of `bytes`, if a whole one is there: its sequence number, and the bytes
/// that it takes.
fn decode_record(bytes: &[u8], id: u64) -> Result<(u64, usize), Torn> {
    let payload = u32_at(bytes, 0).ok_or(Torn::Length)? as usize;
    let record = bytes.get(..record_len(payload)).ok_or(Torn::Length)?;
    let sequence = u64_at(record, 8).ok_or(Torn::Length)?;
    if u32_at(record, 4) != Some(checksum(id, record)) {
        return Err(Torn::Checksum);
    }
    Ok((sequence, record.len()))
}

enum Torn {
    Length,
    Checksum,
}

fn checksum(id: u64, record: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&id.to_le_bytes());
    let crc = crc32c::crc32c_append(crc, &record[..4]);
    crc32c::crc32c_append(crc, &record[8..])
}

/// Reads the log from its start: are all committed records whole and in sequence?
pub fn validate(log: &[u8]) -> Result<Contents, Damage> {
    let header = Header::decode(log)?;
    let (capacity, len) = (header.capacity, log.len() as u64);
    if capacity > len || capacity < RECORDS_AT {
        return Err(Damage::Capacity { capacity, len });
    }
    let tail = u64_at(log, TAIL_AT as usize).ok_or(Damage::Header)?;
    if !(RECORDS_AT..=capacity).contains(&tail) || tail % ALIGN as u64 != 0 {
        return Err(Damage::Tail { tail, capacity });
    }
    // All of these fit: they are at most the length of a slice.
    let (end, committed) = (capacity as usize, &log[..tail as usize]);
    let mut at = RECORDS_AT as usize;
    let mut sequence = 0;
    while at < committed.len() {
        let place = at as u64;
        let (found, taken) =
            decode_record(&committed[at..], header.id).map_err(|torn| match torn {
                Torn::Length => Damage::Length {
                    sequence,
                    at: place,
                    tail,
                },
                Torn::Checksum => Damage::Checksum {
                    sequence,
                    at: place,
                },
            })?;
        if found != sequence {
            return Err(Damage::Sequence {
                sequence,
                found,
                at: place,
            });
        }
        at += taken;
        sequence += 1;
    }
    Ok(Contents {
        header,
        tail,
        records: sequence,
        beyond: beyond(&log[tail as usize..end], header.id, sequence),
    })
}

fn beyond(bytes: &[u8], id: u64, next: u64) -> Beyond {
    // By the page, not by the byte: there may be many.
    const ZEROS: [u8; 4096] = [0; 4096];
    let blank = |page: &[u8]| ZEROS.starts_with(page);
    if bytes.chunks(ZEROS.len()).all(blank) {
        return Beyond::Nothing;
    }
    match decode_record(bytes, id) {
        Ok((sequence, _)) if sequence == next => Beyond::WholeRecord,
        _ => Beyond::Remains,
    }
}

impl std::fmt::Display for Beyond {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Beyond::Nothing => "nothing beyond the tail",
            Beyond::WholeRecord => "beyond the tail a whole record, not committed: does not count",
            Beyond::Remains => "beyond the tail remains that do not count",
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
