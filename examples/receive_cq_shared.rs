//! A completion queue for receives alone, and one channel for both queues: one wait, one fd, and it
//! says which queue has news.
//!
//! For servers that do everything in one thread, or have one fd for each connection in a reactor
//! (`epoll_shared`). With a shared channel a wait on one of the queues would take the other's news,
//! so the library refuses it.
//!
//! ```text
//! receive_cq_shared server ADDR PORT
//! receive_cq_shared client ADDR PORT
//! ```

mod common;

use common::*;
use rpma::{ConnCfg, Error, Memory, Peer, Signal, Usage, WcOpcode};

fn server(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let inbox = peer.register(Memory::anonymous(8)?, Usage::RECV)?;
    let endpoint = listen(&peer, args)?;

    let cfg = ConnCfg::new().rcq_size(10).shared_channel(true);
    let request = endpoint.next_request(&cfg)?;
    request.recv(&inbox.slice(..)?, 0)?;
    let conn = request.connect(None)?;
    conn.wait_established(TIMEOUT)?;
    check(
        matches!(conn.cq().wait(), Err(Error::SharedChannel)),
        "waited on one of two queues",
    )?;

    let (mut received, mut sent) = (0, 0);
    while received < QUESTIONS || sent < QUESTIONS {
        let fired = conn.wait_timeout(TIMEOUT)?.ok_or("no news in time")?;
        // One event may stand for many completions, and for none: take what is there.
        while let Some(wc) = fired.cq.poll_one()? {
            let opcode = wc.ok()?.opcode();
            if !fired.is_rcq {
                check(opcode == WcOpcode::SEND, "a receive among the sends")?;
                sent += 1;
                continue;
            }
            check(opcode == WcOpcode::RECV, "a send among the receives")?;
            received += 1;
            let number = number_in(&inbox, 0)?;
            conn.recv(&inbox.slice(..)?, 0)?;
            // Inline data are copied: there is nothing to keep until the answer is sent.
            let answer = (number * number).to_le_bytes();
            conn.send_inline(&answer, Signal::Always(received))?;
        }
    }
    wait_closed(&conn)
}

fn main() -> std::process::ExitCode {
    run(server, ask)
}
