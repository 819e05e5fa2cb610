//! Connecting, and nothing else: how two processes meet, what they can tell each other on the way,
//! and how they part.
//!
//! The private data of a request and of its answer are the place for what both sides must know
//! before the first operation: descriptors of memory, versions, names. They are small (56 bytes one
//! way, 196 the other on InfiniBand and RoCE), and may arrive with zeros behind them, so a length
//! belongs into them.
//!
//! ```text
//! connection server ADDR PORT
//! connection client ADDR PORT
//! ```

mod common;

use common::*;
use rpma::{ConnCfg, Connection, Peer};

fn server(args: &Args) -> Outcome {
    // The device that owns the address.
    let peer = Peer::local(&args.addr)?;
    let endpoint = listen(&peer, args)?;
    let request = endpoint.next_request(&ConnCfg::new())?;
    let greeting = unpack(request.private_data())?;
    println!("the client says: {greeting}");
    check(
        greeting == "hello from the client",
        "not what the client says",
    )?;

    // Dropping the request instead would reject it.
    let conn = request.connect(Some(&pack("hello from the server")))?;
    conn.wait_established(TIMEOUT)?;
    println!("connected to {:?}", conn.peer_addr());
    wait_closed(&conn)
}

fn client(args: &Args) -> Outcome {
    // The device by which the address is reached.
    let peer = Peer::remote(&args.addr)?;
    let cfg = ConnCfg::new().timeout(TIMEOUT);
    let hello = pack("hello from the client");
    let conn = Connection::open(&peer, &args.addr, &args.port, &cfg, Some(&hello))?;
    let greeting = unpack(conn.private_data())?;
    println!("the server says: {greeting}");
    check(
        greeting == "hello from the server",
        "not what the server says",
    )?;
    disconnect(&conn)
}

/// A byte with the length, then the text.
fn pack(text: &str) -> Vec<u8> {
    let mut bytes = vec![text.len() as u8];
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn unpack(bytes: &[u8]) -> Outcome<&str> {
    let (&len, text) = bytes.split_first().ok_or("no private data")?;
    let text = text.get(..len.into()).ok_or("truncated private data")?;
    Ok(std::str::from_utf8(text)?)
}

fn main() -> std::process::ExitCode {
    run(server, client)
}
