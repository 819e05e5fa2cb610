//! Reading a peer's memory into persistent memory of one's own: the client fetches, then makes what
//! it has durable itself.
//!
//! For backups and replicas that are pulled. When the read has completed, the data are in the
//! client's memory, visible to its CPU but perhaps still in a cache: `flush_to_media` brings them
//! to the medium. No flush of RDMA is needed, and nothing of the server but that it lets its memory
//! be read.
//!
//! ```text
//! read_to_persistent server ADDR PORT
//! read_to_persistent client ADDR PORT [FILE]
//! ```
//!
//! FILE is the client's: `/dev/dax0.0`, or a file (on tmpfs, or on any file system where the device
//! does on-demand paging). Without it the memory is volatile, and what comes last is left out.

mod common;

use common::*;
use rpma::{ConnCfg, Memory, Peer, RemoteRegion, Signal, Usage};

const LEN: u64 = 4096;

fn server(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let region = region_with(&peer, &data(), Usage::READ_SRC)?;
    let endpoint = listen(&peer, args)?;
    let conn = accept(&endpoint, &ConnCfg::new(), region.descriptor().as_bytes())?;
    wait_closed(&conn)
}

fn client(args: &Args) -> Outcome {
    let peer = Peer::remote(&args.addr)?;
    let conn = connect(&peer, args)?;
    let remote = RemoteRegion::from_descriptor(conn.private_data())?;
    let copy = peer.register(memory_of(args, LEN as usize)?, Usage::READ_DST)?;

    conn.read(
        &copy.slice(..LEN)?,
        &remote.slice(..LEN)?,
        Signal::Always(1),
    )?;
    next_completion(conn.cq())?;
    disconnect(&conn)?;

    if let Some(path) = &args.extra {
        copy.flush_to_media(..LEN)?;
        println!("{LEN} bytes are in {path}");
        // A mapping of its own sees what the file has.
        check(read(&Memory::map_file(path)?)? == data(), "not in the file")?;
    }
    check(read(copy.memory())? == data(), "not what the server has")
}

fn read(memory: &Memory) -> Outcome<Vec<u8>> {
    let mut bytes = vec![0; LEN as usize];
    memory.read_at(0, &mut bytes)?;
    Ok(bytes)
}

fn data() -> Vec<u8> {
    (0..LEN).map(|i| (i % 251) as u8).collect()
}

fn main() -> std::process::ExitCode {
    run(server, client)
}
