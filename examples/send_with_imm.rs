//! Messages with immediate data: 32 bits that travel in the message's header and arrive in the
//! completion.
//!
//! For a kind, a length or a sequence number that should not take room in the message, or that is
//! all there is to say. InfiniBand and RoCE have it, iWARP has not: there the client ends with "not
//! supported".
//!
//! ```text
//! send_with_imm server ADDR PORT
//! send_with_imm client ADDR PORT
//! ```

mod common;

use common::*;
use rpma::{ConnCfg, LocalSlice, Memory, Peer, Signal, Usage};

const TEXT: &[u8] = b"a message";
const KIND: u32 = 0x1234_5678;
const END: u32 = 0xffff_ffff;

fn server(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let inbox = peer.register(Memory::anonymous(TEXT.len())?, Usage::RECV)?;
    let endpoint = listen(&peer, args)?;
    let request = endpoint.next_request(&ConnCfg::new())?;
    request.recv(&inbox.slice(..)?, 1)?;
    request.recv(&LocalSlice::EMPTY, 2)?;
    let conn = request.connect(None)?;
    conn.wait_established(TIMEOUT)?;

    let first = next_completion(conn.cq())?;
    let mut text = vec![0; first.byte_len() as usize];
    inbox.read_at(0, &mut text)?;
    println!(
        "received {:?} with {:x?}",
        String::from_utf8_lossy(&text),
        first.imm_data()
    );
    check(text == TEXT, "another message")?;
    check(first.imm_data() == Some(KIND), "other immediate data")?;

    // A message of no bytes has room enough in an empty receive.
    let second = next_completion(conn.cq())?;
    check(second.byte_len() == 0, "a message with bytes")?;
    check(second.imm_data() == Some(END), "other immediate data")?;
    wait_closed(&conn)
}

fn client(args: &Args) -> Outcome {
    let peer = Peer::remote(&args.addr)?;
    let message = region_with(&peer, TEXT, Usage::SEND)?;
    let conn = connect(&peer, args)?;
    conn.send_with_imm(&message.slice(..)?, KIND, Signal::Always(1))?;
    conn.send_with_imm(&LocalSlice::EMPTY, END, Signal::Always(2))?;
    for number in 1..=2 {
        let wc = next_completion(conn.cq())?;
        check(wc.wr_id() == number, "the completion of something else")?;
    }
    disconnect(&conn)
}

fn main() -> std::process::ExitCode {
    run(server, client)
}
