//! Messages by a shared receive queue, with one client: receives belong to the queue, not to the
//! connection.
//!
//! The server posts its receives once, before any client is there, and connections take from them
//! as messages come. Here the queue has no completion queue of its own (`rcq_size(0)`), so the
//! messages of a connection complete on that connection's, as without a shared queue.
//! `ping_pong_srq_many` has one for all.
//!
//! ```text
//! ping_pong_srq server ADDR PORT
//! ping_pong_srq client ADDR PORT
//! ```

mod common;

use common::*;
use rpma::{ConnCfg, Error, Memory, Peer, Signal, Srq, SrqCfg, Usage, WcOpcode};

const RECEIVES: u64 = 8;

fn server(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let inbox = peer.register(Memory::anonymous(8 * RECEIVES as usize)?, Usage::RECV)?;
    let srq = Srq::new(&peer, &SrqCfg::new().size(RECEIVES as u32).rcq_size(0))?;
    let place = |n: u64| inbox.slice(n * 8..(n + 1) * 8);
    // All in one call; the number of a receive says where its message is.
    let mut receives = srq.recv_batch();
    for n in 0..RECEIVES {
        receives.recv(&place(n)?, n)?;
    }
    receives.submit()?;

    let endpoint = listen(&peer, args)?;
    let conn = accept(&endpoint, &ConnCfg::new().srq(&srq), &[])?;
    check(
        matches!(conn.recv(&place(0)?, 0), Err(Error::InvalidArgument { .. })),
        "the connection has receives of its own",
    )?;

    let (mut received, mut sent) = (0, 0);
    while received < QUESTIONS || sent < QUESTIONS {
        let wc = next_completion(conn.cq())?;
        if wc.opcode() != WcOpcode::RECV {
            sent += 1;
            continue;
        }
        received += 1;
        let n = wc.wr_id();
        let number = number_in(&inbox, n * 8)?;
        srq.recv(&place(n)?, n)?;
        conn.send_inline(&(number * number).to_le_bytes(), Signal::Always(n))?;
    }
    wait_closed(&conn)
}

fn main() -> std::process::ExitCode {
    run(server, ask)
}
