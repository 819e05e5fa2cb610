//! Making records durable with the help of the peer's CPU: the general-purpose method.
//!
//! It works with every server, also where network writes stop in a volatile cache. The client
//! writes, then sends a message that says which bytes it wants durable; the message arrives after
//! the data. The server brings them to the medium and answers. It costs a round trip and the
//! server's attention; `flush_to_persistent` needs neither, but a server that can promise more.
//!
//! ```text
//! persist_by_message server ADDR PORT [FILE]
//! persist_by_message client ADDR PORT
//! ```
//!
//! FILE is the server's: `/dev/dax0.0`, or a file (on tmpfs, or on any file system where the device
//! does on-demand paging). Without it the memory is volatile, and the server's part is left out.

mod common;

use common::*;
use rpma::{ConnCfg, Memory, Peer, RemoteRegion, Signal, Usage, WcOpcode};

const RECORD: u64 = 256;
const RECORDS: u64 = 16;
const LEN: u64 = RECORD * RECORDS;
/// A message: where the bytes start, and how many they are. The answer repeats it.
const MESSAGE: u64 = 16;

fn server(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let store = peer.register(memory_of(args, LEN as usize)?, Usage::WRITE_DST)?;
    let inbox = peer.register(Memory::anonymous(MESSAGE as usize)?, Usage::RECV)?;
    let answer = peer.register(Memory::anonymous(MESSAGE as usize)?, Usage::SEND)?;
    let endpoint = listen(&peer, args)?;
    let request = endpoint.next_request(&ConnCfg::new())?;
    request.recv(&inbox.slice(..)?, 0)?;
    let conn = request.connect(Some(store.descriptor().as_bytes()))?;
    conn.wait_established(TIMEOUT)?;

    let mut durable = 0;
    while durable < RECORDS {
        let wc = next_completion(conn.cq())?;
        if wc.opcode() != WcOpcode::RECV {
            continue; // An answer was sent.
        }
        let (start, len) = (number_in(&inbox, 0)?, number_in(&inbox, 8)?);
        // A peer may say anything: the range is checked here as everywhere.
        let end = start.checked_add(len).ok_or("the client sent nonsense")?;
        if args.extra.is_some() {
            store.flush_to_media(start..end)?;
        }
        let mut bytes = [0; RECORD as usize];
        store.read_at(start, &mut bytes)?;
        check(bytes == record(durable), "the data are behind the message")?;
        durable += 1;

        conn.recv(&inbox.slice(..)?, durable)?;
        answer.write_at(0, &start.to_le_bytes())?;
        answer.write_at(8, &len.to_le_bytes())?;
        conn.send(&answer.slice(..)?, Signal::Always(durable))?;
    }
    wait_closed(&conn)
}

fn client(args: &Args) -> Outcome {
    let peer = Peer::remote(&args.addr)?;
    let source = region_with(&peer, &[0; RECORD as usize], Usage::WRITE_SRC)?;
    let message = peer.register(Memory::anonymous(MESSAGE as usize)?, Usage::SEND)?;
    let answer = peer.register(Memory::anonymous(MESSAGE as usize)?, Usage::RECV)?;
    let conn = connect(&peer, args)?;
    let remote = RemoteRegion::from_descriptor(conn.private_data())?;

    for i in 0..RECORDS {
        let start = i * RECORD;
        source.write_at(0, &record(i))?;
        message.write_at(0, &start.to_le_bytes())?;
        message.write_at(8, &RECORD.to_le_bytes())?;

        conn.recv(&answer.slice(..)?, i)?;
        let slot = remote.slice(start..start + RECORD)?;
        let mut batch = conn.batch();
        batch.write(&source.slice(..)?, &slot, Signal::OnError(i))?;
        batch.send(&message.slice(..)?, Signal::Always(i))?;
        batch.submit()?;
        // The message was sent, and the answer is there.
        for _ in 0..2 {
            next_completion(conn.cq())?;
        }
        let durable = (number_in(&answer, 0)?, number_in(&answer, 8)?);
        check(durable == (start, RECORD), "the answer to something else")?;
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
