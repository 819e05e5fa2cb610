//! The log's bytes in a file or on persistent memory, as the process that owns them sees them.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    path::Path,
};

use rpma::Memory;

use crate::{
    Outcome,
    format::{self, Contents, Damage, Header, RECORDS_AT, TAIL_AT},
};

/// Maps the log at `path`. Makes a new one of `capacity` bytes if there is none, or if `anew` says
/// so; never over something else unasked.
pub fn open(path: &Path, capacity: u64, anew: bool) -> Outcome<(Memory, Contents)> {
    let size = usize::try_from(capacity)?;
    let memory = match path.metadata() {
        // A device holds more than the log may want to have.
        Ok(found) if !found.is_file() => Memory::map_file_range(path, 0, size)?,
        Ok(_) => Memory::map_file(path)?,
        Err(_) => Memory::create_file(path, size)?,
    };
    let blank = is_blank(&memory)?;
    if anew || blank {
        initialise(&memory)?;
    }
    match contents(&memory)? {
        Ok(contents) => Ok((memory, contents)),
        Err(damage) => Err(format!(
            "{}: {damage} (--format makes a new log there; what is there is lost)",
            path.display()
        )
        .into()),
    }
}

/// Maps what is there to be read.
pub fn open_read_only(path: &Path) -> Outcome<Memory> {
    Ok(Memory::map_file_read_only(path)?)
}

/// Is the log valid, and what does it hold?
///
/// Nobody may be writing to it: so a server looks when the client's queue pair is gone.
pub fn contents(memory: &Memory) -> Outcome<Result<Contents, Damage>> {
    // A device may hold more than the log: what its header says is enough.
    let mut header = [0; TAIL_AT as usize];
    let len = match memory.read_at(0, &mut header) {
        Ok(()) => Header::decode(&header).map_or(0, |header| header.capacity),
        Err(_) => 0,
    };
    let mut log = vec![0; usize::try_from(len.min(memory.len() as u64))?];
    memory.read_at(0, &mut log)?;
    Ok(format::validate(&log))
}

fn is_blank(memory: &Memory) -> Outcome<bool> {
    let mut head = [0; RECORDS_AT as usize];
    if memory.read_at(0, &mut head).is_err() {
        return Err("too small for a log".into());
    }
    Ok(head.iter().all(|byte| *byte == 0))
}

/// The header goes last: where there is a valid one, there is a valid tail.
fn initialise(memory: &Memory) -> Outcome {
    memory.write_at(0, &[0; RECORDS_AT as usize])?;
    memory.flush_to_media(..RECORDS_AT)?;
    memory.write_at(TAIL_AT, &RECORDS_AT.to_le_bytes())?;
    memory.flush_to_media(..RECORDS_AT)?;
    let header = Header {
        capacity: memory.len() as u64,
        id: random(),
    };
    memory.write_at(0, &header.encode())?;
    memory.flush_to_media(..RECORDS_AT)?;
    Ok(())
}

/// A random number, of the kind that hash tables are seeded with.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
