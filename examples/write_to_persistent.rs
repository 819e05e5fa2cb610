//! Writing much to a peer's persistent memory, which the peer makes durable once, at the end.
//!
//! For bulk transfers: loading a database, restoring a backup. The client writes all records
//! without asking for completions, then flushes for visibility once: when that completes, all that
//! was written before is in the server's memory. Then the server, which the closed connection has
//! told that the client is done, brings it to the medium. Nothing is durable before. Where each
//! record must be durable on its own, see `flush_to_persistent` and `persist_by_message`.
//!
//! ```text
//! write_to_persistent server ADDR PORT [FILE]
//! write_to_persistent client ADDR PORT
//! ```
//!
//! FILE is the server's: `/dev/dax0.0`, or a file (on tmpfs, or on any file system where the device
//! does on-demand paging). Without it the memory is volatile.

mod common;

use common::*;
use rpma::{ConnCfg, FlushKind, Peer, RemoteRegion, Signal, Usage};

const RECORD: u64 = 64;
const RECORDS: u64 = 100;
const LEN: u64 = RECORD * RECORDS;

fn server(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let usage = Usage::WRITE_DST | Usage::FLUSH_VISIBILITY;
    let region = peer.register(memory_of(args, LEN as usize)?, usage)?;
    let endpoint = listen(&peer, args)?;
    let conn = accept(&endpoint, &ConnCfg::new(), region.descriptor().as_bytes())?;
    wait_closed(&conn)?;

    if args.extra.is_some() {
        region.flush_to_media(..LEN)?;
    }
    for i in 0..RECORDS {
        let mut bytes = [0; RECORD as usize];
        region.read_at(i * RECORD, &mut bytes)?;
        check(bytes == record(i), "a record is not as it was written")?;
    }
    println!("{RECORDS} records have arrived");
    Ok(())
}

fn client(args: &Args) -> Outcome {
    let peer = Peer::remote(&args.addr)?;
    let records: Vec<u8> = (0..RECORDS).flat_map(record).collect();
    let source = region_with(&peer, &records, Usage::WRITE_SRC)?;
    let conn = connect(&peer, args)?;
    let remote = RemoteRegion::from_descriptor(conn.private_data())?;

    // An operation without a completion keeps its place in the send queue until a later one
    // completes, so the last of each turn asks for a completion.
    let turn = u64::from(conn.sq_size());
    for i in 0..RECORDS {
        let range = i * RECORD..(i + 1) * RECORD;
        let last_of_turn = i % turn == turn - 1;
        let signal = match last_of_turn {
            true => Signal::Always(i),
            false => Signal::OnError(i),
        };
        conn.write(&source.slice(range.clone())?, &remote.slice(range)?, signal)?;
        if last_of_turn {
            next_completion(conn.cq())?;
        }
    }
    conn.flush(
        &remote.slice(..LEN)?,
        FlushKind::Visibility,
        Signal::Always(RECORDS),
    )?;
    let wc = next_completion(conn.cq())?;
    check(wc.wr_id() == RECORDS, "the completion of something else")?;
    disconnect(&conn)
}

fn record(i: u64) -> [u8; RECORD as usize] {
    [(i + 1) as u8; RECORD as usize]
}

fn main() -> std::process::ExitCode {
    run(server, client)
}
