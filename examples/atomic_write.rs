//! Publishing with an atomic write: an append-only log in the server's memory, whose length is one
//! 8-byte word.
//!
//! For everything that is read while it is written: whoever sees the new length sees the whole
//! entry, since the atomic write takes effect after the operations before it, and at once. The
//! server reads along with plain loads of its own memory, and never finds half an entry or half a
//! length.
//!
//! ```text
//! atomic_write server ADDR PORT
//! atomic_write client ADDR PORT
//! ```

mod common;

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use common::*;
use rpma::{ConnCfg, FlushKind, Memory, Peer, RemoteRegion, Signal, Usage};

const ENTRY: u64 = 128;
const ENTRIES: u64 = 100;
/// The number of entries, then the entries.
const FIRST: u64 = 64;
const LEN: u64 = FIRST + ENTRY * ENTRIES;

fn server(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let usage = Usage::WRITE_DST | Usage::FLUSH_VISIBILITY;
    let log = peer.register(Memory::anonymous(LEN as usize)?, usage)?;
    let endpoint = listen(&peer, args)?;
    let conn = accept(&endpoint, &ConnCfg::new(), log.descriptor().as_bytes())?;

    let mut seen = 0;
    let deadline = Instant::now() + TIMEOUT;
    while seen < ENTRIES {
        // Acquire: what is read below is not older than the count.
        let count = u64::from_le(log.load_u64(0, Ordering::Acquire)?);
        check(seen <= count && count <= ENTRIES, "half a count")?;
        for i in seen..count {
            let mut bytes = [0; ENTRY as usize];
            log.read_at(FIRST + i * ENTRY, &mut bytes)?;
            check(bytes == entry(i), "half an entry")?;
        }
        seen = count;
        check(Instant::now() < deadline, "no news in time")?;
        std::thread::sleep(Duration::from_micros(100));
    }
    println!("{seen} entries read, each whole");
    wait_closed(&conn)
}

fn client(args: &Args) -> Outcome {
    let peer = Peer::remote(&args.addr)?;
    let source = region_with(&peer, &[0; ENTRY as usize], Usage::WRITE_SRC)?;
    let conn = connect(&peer, args)?;
    let remote = RemoteRegion::from_descriptor(conn.private_data())?;
    let count = remote.slice(0..8)?;

    for i in 0..ENTRIES {
        source.write_at(0, &entry(i))?;
        let start = FIRST + i * ENTRY;
        let slot = remote.slice(start..start + ENTRY)?;
        let mut batch = conn.batch();
        batch.write(&source.slice(..)?, &slot, Signal::OnError(i))?;
        // The entry is in place before the count says so.
        batch.flush(&slot, FlushKind::Visibility, Signal::OnError(i))?;
        batch.atomic_write(&count, (i + 1).to_le_bytes(), Signal::Always(i))?;
        batch.submit()?;
        next_completion(conn.cq())?;
    }
    println!("{ENTRIES} entries written");
    disconnect(&conn)
}

fn entry(i: u64) -> [u8; ENTRY as usize] {
    [(i + 1) as u8; ENTRY as usize]
}

fn main() -> std::process::ExitCode {
    run(server, client)
}
