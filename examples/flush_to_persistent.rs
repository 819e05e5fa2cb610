//! Making each record durable at the peer without its CPU: the appliance method.
//!
//! For logs and stores with small synchronous commits. When the flush has completed, the record
//! outlives a power failure of the server, which has executed nothing. This takes a server whose
//! network writes reach persistent memory without stopping in a volatile cache (Intel: DDIO off for
//! the device's port, or eADR). Only its administrator can know that; the server passes the word on
//! as its `PeerCfg`, and without it the client is refused. Where the server cannot promise it, see
//! `persist_by_message`.
//!
//! ```text
//! flush_to_persistent server ADDR PORT [FILE]
//! flush_to_persistent client ADDR PORT
//! ```
//!
//! FILE is the server's: `/dev/dax0.0`, or a file (on tmpfs, or on any file system where the device
//! does on-demand paging). Without it the memory is volatile, and the promise of course is empty.

mod common;

use common::*;
use rpma::{ConnCfg, Descriptor, Error, FlushKind, Peer, PeerCfg, RemoteRegion, Signal, Usage};

const RECORD: u64 = 256;
const RECORDS: u64 = 16;
const LEN: u64 = RECORD * RECORDS;

fn server(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let usage = Usage::WRITE_DST | Usage::FLUSH_PERSISTENT;
    let region = peer.register(memory_of(args, LEN as usize)?, usage)?;
    // A program for real reads this from its configuration.
    let promise = PeerCfg::new().with_direct_write_to_pmem(true);

    let endpoint = listen(&peer, args)?;
    let hello = [region.descriptor().as_bytes(), &promise.descriptor()].concat();
    let conn = accept(&endpoint, &ConnCfg::new(), &hello)?;
    wait_closed(&conn)?;

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
    let source = region_with(&peer, &[0; RECORD as usize], Usage::WRITE_SRC)?;
    let conn = connect(&peer, args)?;
    let (descriptor, promise) = conn
        .private_data()
        .split_at_checked(Descriptor::LEN)
        .ok_or("truncated private data")?;
    let remote = RemoteRegion::from_descriptor(descriptor)?;

    // Nothing has been promised yet.
    let early = conn.flush(&remote.whole(), FlushKind::Persistent, Signal::Always(0));
    check(
        matches!(early, Err(Error::NotSupported { .. })),
        "flushed without the server's promise",
    )?;
    conn.apply_peer_cfg(&PeerCfg::from_descriptor(promise)?);

    for i in 0..RECORDS {
        source.write_at(0, &record(i))?;
        let slot = remote.slice(i * RECORD..(i + 1) * RECORD)?;
        // Both go out with one doorbell, and the completion of the flush speaks for the write too.
        let mut batch = conn.batch();
        batch.write(&source.slice(..)?, &slot, Signal::OnError(i))?;
        batch.flush(&slot, FlushKind::Persistent, Signal::Always(i))?;
        batch.submit()?;
        let wc = next_completion(conn.cq())?;
        check(wc.wr_id() == i, "the completion of something else")?;
        println!("record {i} is durable");
    }
    disconnect(&conn)
}

fn record(i: u64) -> [u8; RECORD as usize] {
    [(i + 1) as u8; RECORD as usize]
}

fn main() -> std::process::ExitCode {
    run(server, client)
}
