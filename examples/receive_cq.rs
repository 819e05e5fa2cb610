//! A completion queue for receives alone: who waits for messages is not bothered with what was
//! sent.
//!
//! For servers that take messages in one place and look after their sends in another, as here: one
//! thread answers questions, the other learns which answers are sent and frees their places. Each
//! queue has its own channel, and so its own fd. `receive_cq_shared` does it in one thread.
//!
//! ```text
//! receive_cq server ADDR PORT
//! receive_cq client ADDR PORT
//! ```

mod common;

use std::sync::mpsc;

use common::*;
use rpma::{ConnCfg, Memory, Peer, Signal, Usage, WcOpcode};

/// Answers that can be under way at once.
const PLACES: u64 = 4;

fn server(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let inbox = peer.register(Memory::anonymous(8)?, Usage::RECV)?;
    let answers = peer.register(Memory::anonymous(8 * PLACES as usize)?, Usage::SEND)?;
    let endpoint = listen(&peer, args)?;

    let cfg = ConnCfg::new().rcq_size(10);
    let request = endpoint.next_request(&cfg)?;
    request.recv(&inbox.slice(..)?, 0)?;
    let conn = request.connect(None)?;
    conn.wait_established(TIMEOUT)?;
    let receives = conn.rcq().ok_or("the connection has no receive CQ")?;

    let (free, places) = mpsc::channel();
    for place in 0..PLACES {
        free.send(place)?;
    }
    std::thread::scope(|scope| {
        let sends = scope.spawn(|| {
            for _ in 0..QUESTIONS {
                let wc = next_completion(conn.cq()).map_err(|err| err.to_string())?;
                if wc.opcode() != WcOpcode::SEND {
                    return Err("a receive among the sends".to_owned());
                }
                // Where nobody wants it any more, the other thread has said why.
                let _ = free.send(wc.wr_id());
            }
            Ok(())
        });
        for _ in 0..QUESTIONS {
            let wc = next_completion(receives)?;
            check(wc.opcode() == WcOpcode::RECV, "a send among the receives")?;
            let number = number_in(&inbox, 0)?;
            conn.recv(&inbox.slice(..)?, 0)?;

            let place = places.recv_timeout(TIMEOUT)?;
            let range = place * 8..(place + 1) * 8;
            answers.write_at(range.start, &(number * number).to_le_bytes())?;
            conn.send(&answers.slice(range)?, Signal::Always(place))?;
        }
        Ok::<(), Box<dyn std::error::Error>>(
            sends.join().map_err(|_| "the thread for sends is gone")??,
        )
    })?;
    wait_closed(&conn)
}

fn main() -> std::process::ExitCode {
    run(server, ask)
}
