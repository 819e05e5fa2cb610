//! What is in the files when nobody writes any more, and what is planted there that must be
//! noticed.

use std::{fs, path::Path, time::Duration};

use rpma::Memory;

use crate::{
    Outcome,
    board::{Board, Count},
    format,
    log::{self, Acks},
    pages::{self, Journal},
    say, store,
};

/// What is wrong with the logs and the pages beside them.
pub fn check(folder: &Path, slots: u64) -> Outcome<Vec<String>> {
    let mut problems = Vec::new();
    for slot in 0..slots {
        let memory = store::open_read_only(&log::path(folder, slot))?;
        let acknowledged = Acks::open(folder, slot)?.get()?;
        match store::contents(&memory)? {
            Ok(contents) => {
                let accepted = log::accept(slot, &contents, acknowledged);
                problems.extend(accepted.err().map(|problem| problem.to_string()));
            }
            Err(damage) => {
                let bytes = log::damage(slot, &memory, acknowledged)?;
                problems.push(format!("DAMAGED: log {slot}: {damage}{bytes}"));
            }
        }
        let area = store::open_read_only(&pages::path(folder, slot))?;
        let checked = pages::check(slot, &area, &Journal::open(folder, slot)?);
        problems.extend(checked.err().map(|problem| problem.to_string()));
    }
    Ok(problems)
}

/// A run in which nothing happened shows nothing.
pub fn never_happened(board: &Board, minutes: f64, stalled: Duration) -> Option<String> {
    let mut must = vec![Count::Acknowledged, Count::Connections, Count::ReadBack];
    if minutes >= 2.0 {
        must.extend([
            Count::Recovered,
            Count::Crossed,
            Count::CrossedRead,
            Count::Kills,
            Count::Floods,
            Count::Rejected,
            Count::FencedSilent,
            Count::Broken,
            Count::CutForGood,
        ]);
    }
    must.retain(|count| board.get(*count) == 0);
    if !must.is_empty() && stalled > Duration::from_secs(20) {
        say(format_args!(
            "note: never seen: {must:?}; but the machine stood still for {stalled:?}"
        ));
        return None;
    }
    (!must.is_empty()).then(|| format!("never seen: {must:?}"))
}

/// On Soft-RoCE everything ends, with an error where the link was cut: what its driver hangs on is
/// not asked of it. (Soft-iWARP's queue pairs complete nothing once they have failed.) A single
/// wait may have met with a machine that stood still for one process alone.
pub fn hung(board: &Board, device: &str, stalled: Duration) -> Option<String> {
    let waits = board.get(Count::NothingCame);
    let hung = device == "rxe" && waits > 1 && stalled <= Duration::from_secs(20);
    hung.then(|| format!("HUNG: {waits} waits for a completion that never came"))
}

/// A byte of a committed record changes.
pub fn plant_corruption(folder: &Path, slots: u64) -> Outcome {
    for slot in 0..slots {
        let log = Memory::map_file(log::path(folder, slot))?;
        if store::contents(&log)??.records > 0 {
            let at = format::RECORDS_AT + format::RECORD_HEADER as u64;
            let mut byte = [0];
            log.read_at(at, &mut byte)?;
            log.write_at(at, &[byte[0] ^ 1])?;
            return Ok(());
        }
    }
    Err("no record to corrupt".into())
}

/// One record more is taken for acknowledged than any log can have.
pub fn plant_loss(folder: &Path) -> Outcome {
    let acks = Acks::open(folder, 0)?;
    acks.set(acks.get()? + 2)?;
    Ok(())
}

pub fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".into(), |release| release.trim().into())
}
