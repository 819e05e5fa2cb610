//! Short records across pages: many records of 24 and 32 bytes, each at a place of its own in an
//! area beside the log, across the end of a page, written from memory that crosses a page too, and
//! read back.
//!
//! Soft-iWARP sends such bytes wrong where nothing is done against it (docs/reliability.md). The
//! records of the logs seldom lie so.
//!
//! A journal in a file of its own says, for each place, what was posted and what was acknowledged;
//! it outlives the client. So what must be there is known at any time, unless a write was under
//! way.

use std::{
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use rpma::{Error, FlushKind, LocalRegion, LocalSlice, Memory, Peer, RemoteRegion, RemoteSlice};
use rpma::{Signal, Usage};

use crate::{
    Outcome,
    board::{Board, Count},
    differs::Difference,
    link::{End, Link},
    rng::Rng,
};

const PAGE: u64 = 4096;
/// One for each end of a page, except for the last one.
pub const PLACES: u64 = 16;
/// A write that keeps a device busy, while short ones wait behind it. Nobody looks at what it
/// brings.
const LARGE: u64 = 64 << 10;
const LARGE_AT: u64 = (PLACES + 1) * PAGE;
/// The bytes of the area.
pub const AREA: usize = (LARGE_AT + LARGE) as usize;
/// The most records that are written or read at a time.
const AT_ONCE: u64 = 8;

/// The file of the area that belongs to this log.
pub fn path(folder: &Path, slot: u64) -> PathBuf {
    folder.join(format!("pages-{slot}"))
}

/// What belongs at a place: its `generation` counts how often it was written.
#[derive(Debug, PartialEq)]
struct Record {
    at: u64,
    bytes: Vec<u8>,
}

fn record(slot: u64, place: u64, generation: u64) -> Record {
    let mut rng = Rng::new(generation, slot * PLACES + place);
    let len = *rng.one_of(&[24, 32]);
    Record {
        at: (place + 1) * PAGE - rng.in_range(1..len),
        bytes: rng.bytes(len as usize),
    }
}

/// For each place the generation that was posted last, and the one that was acknowledged last.
pub struct Journal(Memory);

impl Journal {
    pub fn create(folder: &Path, slot: u64) -> Outcome<Journal> {
        let len = PLACES as usize * 16;
        Ok(Journal(Memory::create_file(
            Journal::path(folder, slot),
            len,
        )?))
    }

    pub fn open(folder: &Path, slot: u64) -> Result<Journal, Error> {
        Ok(Journal(Memory::map_file(Journal::path(folder, slot))?))
    }

    fn path(folder: &Path, slot: u64) -> PathBuf {
        folder.join(format!("journal-{slot}"))
    }

    /// Says that the place is about to be written, and gives the generation.
    fn post(&self, place: u64) -> Result<u64, Error> {
        let generation = self.0.load_u64(place * 16, Ordering::Acquire)? + 1;
        self.0
            .store_u64(place * 16, generation, Ordering::Release)?;
        Ok(generation)
    }

    fn acknowledge(&self, place: u64, generation: u64) -> Result<(), Error> {
        self.0
            .store_u64(place * 16 + 8, generation, Ordering::Release)
    }

    /// The generation that must be there, unless there was none yet or one is under way.
    fn settled(&self, place: u64) -> Result<Option<u64>, Error> {
        let acknowledged = self.0.load_u64(place * 16 + 8, Ordering::Acquire)?;
        let posted = self.0.load_u64(place * 16, Ordering::Acquire)?;
        Ok(Some(acknowledged).filter(|generation| *generation > 0 && *generation == posted))
    }
}

fn name(slot: u64, place: u64, generation: u64) -> String {
    format!("DAMAGED: record {generation} at place {place} of the pages of log {slot}")
}

/// Looks at the area as the server sees it. Nobody may be writing to it.
pub fn check(slot: u64, area: &Memory, journal: &Journal) -> Outcome {
    for place in 0..PLACES {
        let Some(generation) = journal.settled(place)? else {
            continue;
        };
        let record = record(slot, place, generation);
        let mut bytes = vec![0; record.bytes.len()];
        area.read_at(record.at, &mut bytes)?;
        if bytes != record.bytes {
            let name = name(slot, place, generation);
            let difference = Difference::new(name, record.at, &record.bytes);
            return Err(difference
                .found::<Error>("the server's memory", Ok(bytes))
                .to_string()
                .into());
        }
    }
    Ok(())
}

/// A client's side of the area.
pub struct Pages {
    slot: u64,
    file: PathBuf,
    journal: Journal,
    area: RemoteRegion,
    staging: LocalRegion,
    inbox: LocalRegion,
}

impl Pages {
    pub fn new(peer: &Peer, folder: &Path, slot: u64, area: RemoteRegion) -> Result<Pages, Error> {
        let own = (AT_ONCE + 1) * PAGE;
        Ok(Pages {
            slot,
            file: path(folder, slot),
            journal: Journal::open(folder, slot)?,
            area,
            staging: peer.register(Memory::anonymous((own + LARGE) as usize)?, Usage::WRITE_SRC)?,
            inbox: peer.register(Memory::anonymous(own as usize)?, Usage::READ_DST)?,
        })
    }

    /// Reads what was there when the client connected.
    pub fn recover(&self, link: &Link, board: &Board, rng: &mut Rng) -> Result<(), End> {
        let all: Vec<u64> = (0..PLACES).collect();
        for some in all.chunks(at_once(link)) {
            self.read(link, board, rng, some)?;
        }
        Ok(())
    }

    /// Writes some records, and reads these and others back.
    pub fn work(&self, link: &Link, board: &Board, rng: &mut Rng) -> Result<(), End> {
        for _ in 0..rng.in_range(1..6) {
            let written = self.write(link, board, rng)?;
            for some in written.chunks(at_once(link)) {
                self.read(link, board, rng, some)?;
            }
            let other = rng.in_range(0..PLACES);
            self.read(link, board, rng, &[other])?;
        }
        Ok(())
    }

    /// When this returns the places that it gives hold their new records.
    fn write(&self, link: &Link, board: &Board, rng: &mut Rng) -> Result<Vec<u64>, End> {
        // Each takes a write and a flush, and there may be a large write before them.
        let most = ((link.sq_size - 1) / 2).min(AT_ONCE);
        let first = rng.in_range(0..PLACES);
        let places = (first..first + rng.in_range(1..most + 1)).map(|place| place % PLACES);
        let places: Vec<u64> = places.collect();
        let mut generations = Vec::new();
        let mut writes = Vec::new();
        for (i, place) in places.iter().enumerate() {
            let generation = self.journal.post(*place)?;
            let record = record(self.slot, *place, generation);
            let len = record.bytes.len() as u64;
            let from = across(i, len, rng);
            self.staging.write_at(from, &record.bytes)?;
            writes.push((
                self.staging.slice(from..from + len)?,
                self.area.slice(record.at..record.at + len)?,
            ));
            generations.push(generation);
        }
        match rng.in_range(0..4) {
            0 => one_by_one(link, board, &writes)?,
            1 => self.behind_a_large_one(link, board, &writes)?,
            _ => behind_flushes(link, board, &writes)?,
        }
        for (place, generation) in places.iter().zip(generations) {
            self.journal.acknowledge(*place, generation)?;
        }
        board.add(Count::Crossed, places.len() as u64);
        board.add(Count::Operations, 2 * places.len() as u64);
        Ok(places)
    }

    /// All of the writes, then all of the flushes.
    fn behind_a_large_one(
        &self,
        link: &Link,
        board: &Board,
        writes: &[Write<'_>],
    ) -> Result<(), End> {
        let src = self.staging.slice((AT_ONCE + 1) * PAGE..)?;
        let dst = self.area.slice(LARGE_AT..LARGE_AT + LARGE)?;
        let mut batch = link.conn.batch();
        batch.write(&src, &dst, Signal::OnError(20))?;
        for (src, dst) in writes {
            batch.write(src, dst, Signal::OnError(21))?;
        }
        for (i, (_, dst)) in writes.iter().enumerate() {
            batch.flush(dst, FlushKind::Visibility, last(i, writes))?;
        }
        batch.submit()?;
        link.completion(board, LAST)
    }

    /// Reads places at once and compares what is known of them.
    fn read(&self, link: &Link, board: &Board, rng: &mut Rng, places: &[u64]) -> Result<(), End> {
        let mut known = Vec::new();
        let mut from = Vec::new();
        for place in places {
            let Some(generation) = self.journal.settled(*place)? else {
                continue;
            };
            let record = record(self.slot, *place, generation);
            let len = record.bytes.len() as u64;
            let src = self.area.slice(record.at..record.at + len)?;
            from.push((src, across(from.len(), len, rng)));
            known.push((*place, generation, record));
        }
        if known.is_empty() {
            return Ok(());
        }
        let found = link.read(board, &self.inbox, &from)?;
        for ((place, generation, record), found) in known.into_iter().zip(found) {
            if found != record.bytes {
                let src = self
                    .area
                    .slice(record.at..record.at + record.bytes.len() as u64)?;
                let again = link.read(board, &self.inbox, &[(src, 0)]);
                let name = name(self.slot, place, generation);
                let difference = Difference::new(name, record.at, &record.bytes)
                    .found::<End>("read", Ok(found))
                    .found("read again", again.map(|bytes| bytes.concat()))
                    .and_in_file(&self.file);
                return Err(End::wrong(difference.to_string()));
            }
        }
        board.add(Count::CrossedRead, from.len() as u64);
        Ok(())
    }
}

/// How many are read at once: a read may take two places of the queue.
fn at_once(link: &Link) -> usize {
    (link.sq_size / 2).min(AT_ONCE) as usize
}

type Write<'a> = (LocalSlice<'a>, RemoteSlice);

/// Where number `i` of some goes in memory of the client's own: across the end of a page.
fn across(i: usize, len: u64, rng: &mut Rng) -> u64 {
    (i as u64 + 1) * PAGE - rng.in_range(1..len)
}

const LAST: u64 = 22;

/// The last of a batch tells that it is done.
fn last(i: usize, of: &[Write<'_>]) -> Signal {
    match i + 1 == of.len() {
        true => Signal::Always(LAST),
        false => Signal::OnError(23),
    }
}

fn one_by_one(link: &Link, board: &Board, writes: &[Write<'_>]) -> Result<(), End> {
    for (src, dst) in writes {
        link.conn.write(src, dst, Signal::OnError(24))?;
        link.conn
            .flush(dst, FlushKind::Visibility, Signal::Always(25))?;
        link.completion(board, 25)?;
    }
    Ok(())
}

/// Each of the writes but the first waits for the flush before it.
fn behind_flushes(link: &Link, board: &Board, writes: &[Write<'_>]) -> Result<(), End> {
    let mut batch = link.conn.batch();
    for (i, (src, dst)) in writes.iter().enumerate() {
        batch.write(src, dst, Signal::OnError(26))?;
        batch.flush(dst, FlushKind::Visibility, last(i, writes))?;
    }
    batch.submit()?;
    link.completion(board, LAST)
}

#[test]
fn records_cross_a_page_in_many_ways_and_come_again() {
    let mut ways = std::collections::BTreeSet::new();
    for generation in 1..100 {
        for place in 0..PLACES {
            let one = record(3, place, generation);
            assert_eq!(one, record(3, place, generation));
            assert_ne!(one.bytes, record(3, place, generation + 1).bytes);
            assert_ne!(one.bytes, record(4, place, generation).bytes);
            let end = (place + 1) * PAGE;
            let len = one.bytes.len() as u64;
            assert!(one.at < end && one.at + len > end && one.at + len < LARGE_AT);
            ways.insert((len, end - one.at));
        }
    }
    // Every split of 24 bytes, and of 32.
    assert_eq!(ways.len(), 23 + 31);
}

#[test]
fn what_was_acknowledged_must_be_there_and_nothing_else() {
    let folder = std::env::temp_dir().join(format!("rpma-soak-pages-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let area = Memory::create_file(path(&folder, 2), AREA).unwrap();
    let journal = Journal::create(&folder, 2).unwrap();
    check(2, &area, &journal).unwrap();
    // Under way: anything may be there.
    let generation = journal.post(5).unwrap();
    check(2, &area, &journal).unwrap();
    journal.acknowledge(5, generation).unwrap();
    let missing = check(2, &area, &journal).unwrap_err().to_string();
    assert!(
        missing.starts_with("DAMAGED: record 1 at place 5 of the pages of log 2 is not"),
        "{missing}"
    );
    let right = record(2, 5, generation);
    area.write_at(right.at, &right.bytes).unwrap();
    check(2, &area, &Journal::open(&folder, 2).unwrap()).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
