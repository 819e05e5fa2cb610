//! Messages back and forth: the way to talk when both CPUs take part.
//!
//! A message needs a receive that was posted before it arrives, so both sides post one before they
//! connect, and the next one before they send what the peer will answer. Receives and sends
//! complete on the same queue here; `receive_cq` shows them apart.
//!
//! ```text
//! ping_pong server ADDR PORT
//! ping_pong client ADDR PORT
//! ```

mod common;

use common::*;
use rpma::{ConnCfg, ConnRequest, Connection, LocalRegion, Memory, Peer, Signal, Usage, WcOpcode};

const ROUNDS: u64 = 100;
const PING: u64 = 1;
const PONG: u64 = 2;

/// The two messages of a side.
struct Messages {
    out: LocalRegion,
    inbox: LocalRegion,
}

impl Messages {
    fn new(peer: &Peer) -> Outcome<Self> {
        Ok(Messages {
            out: peer.register(Memory::anonymous(8)?, Usage::SEND)?,
            inbox: peer.register(Memory::anonymous(8)?, Usage::RECV)?,
        })
    }

    /// Sends a number.
    fn send(&self, conn: &Connection, number: u64) -> Outcome {
        self.out.write_at(0, &number.to_le_bytes())?;
        Ok(conn.send(&self.out.slice(..)?, Signal::Always(PING))?)
    }

    /// Waits for as many completions: sends that are done, and the message that the peer has sent.
    fn complete(&self, conn: &Connection, completions: u32) -> Outcome {
        for _ in 0..completions {
            let wc = next_completion(conn.cq())?;
            match wc.opcode() {
                WcOpcode::RECV => check(wc.wr_id() == PONG && wc.byte_len() == 8, "odd message")?,
                _ => check(wc.wr_id() == PING, "the completion of something else")?,
            }
        }
        Ok(())
    }
}

fn server(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let messages = Messages::new(&peer)?;
    let endpoint = listen(&peer, args)?;
    let request = endpoint.next_request(&ConnCfg::new())?;
    request.recv(&messages.inbox.slice(..)?, PONG)?;
    let conn = request.connect(None)?;
    conn.wait_established(TIMEOUT)?;

    messages.complete(&conn, 1)?;
    for round in 1..=ROUNDS {
        let number = number_in(&messages.inbox, 0)?;
        if round < ROUNDS {
            conn.recv(&messages.inbox.slice(..)?, PONG)?;
        }
        messages.send(&conn, number + 1)?;
        // The answer was sent, and the next message is there.
        messages.complete(&conn, if round < ROUNDS { 2 } else { 1 })?;
    }
    wait_closed(&conn)
}

fn client(args: &Args) -> Outcome {
    let peer = Peer::remote(&args.addr)?;
    let messages = Messages::new(&peer)?;
    let cfg = ConnCfg::new().timeout(TIMEOUT);
    let request = ConnRequest::new(&peer, &args.addr, &args.port, &cfg)?;
    request.recv(&messages.inbox.slice(..)?, PONG)?;
    let conn = request.connect(None)?;
    conn.wait_established(TIMEOUT)?;

    let mut number = 0;
    for round in 1..=ROUNDS {
        messages.send(&conn, number)?;
        messages.complete(&conn, 2)?;
        let answer = number_in(&messages.inbox, 0)?;
        check(answer == number + 1, "a wrong answer")?;
        number = answer + 1;
        if round < ROUNDS {
            conn.recv(&messages.inbox.slice(..)?, PONG)?;
        }
    }
    println!("{ROUNDS} rounds, the last number is {number}");
    check(number == 2 * ROUNDS, "a round is missing")?;
    disconnect(&conn)
}

fn main() -> std::process::ExitCode {
    run(server, client)
}
