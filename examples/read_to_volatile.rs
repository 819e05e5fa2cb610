//! Reading a peer's memory: the client takes what the server offers, and the server's CPU has
//! nothing to do with it.
//!
//! For data that many clients want and one server has: tables, indexes, caches. The reader learns
//! nothing of changes: a region that is written while it is read gives any mix, so readers of live
//! data check a version before and after, or a checksum.
//!
//! ```text
//! read_to_volatile server ADDR PORT
//! read_to_volatile client ADDR PORT
//! ```

mod common;

use common::*;
use rpma::{ConnCfg, Memory, Peer, RemoteRegion, Signal, Usage};

const TEXT: &[u8] = b"What the server has, the client may read.";

fn server(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let region = region_with(&peer, TEXT, Usage::READ_SRC)?;
    let endpoint = listen(&peer, args)?;
    // The descriptor is all that the client needs.
    let conn = accept(&endpoint, &ConnCfg::new(), region.descriptor().as_bytes())?;
    wait_closed(&conn)
}

fn client(args: &Args) -> Outcome {
    let peer = Peer::remote(&args.addr)?;
    let conn = connect(&peer, args)?;
    let remote = RemoteRegion::from_descriptor(conn.private_data())?;
    let copy = peer.register(Memory::anonymous(remote.len() as usize)?, Usage::READ_DST)?;

    conn.read(&copy.slice(..)?, &remote.whole(), Signal::Always(1))?;
    let wc = next_completion(conn.cq())?;
    check(wc.wr_id() == 1, "the completion of something else")?;

    let mut text = [0; TEXT.len()];
    copy.read_at(0, &mut text)?;
    println!("read: {}", String::from_utf8_lossy(&text));
    check(text == TEXT, "not what the server has")?;
    disconnect(&conn)
}

fn main() -> std::process::ExitCode {
    run(server, client)
}
