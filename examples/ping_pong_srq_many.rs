//! Messages by a shared receive queue, with many clients: one stock of receives and one completion
//! queue for all of them.
//!
//! For servers with many connections of which few are busy at a time: memory for messages grows
//! with the load, not with the number of clients. A completion's `qp_num` says whose message it is.
//!
//! ```text
//! ping_pong_srq_many server ADDR PORT [CLIENTS]
//! ping_pong_srq_many client ADDR PORT
//! ```
//!
//! The server ends when so many clients (3) have come and gone.

mod common;

use std::collections::HashMap;

use common::*;
use rpma::{ConnCfg, Connection, Memory, Peer, Signal, Srq, SrqCfg, Usage};

const RECEIVES: u64 = 20;

fn server(args: &Args) -> Outcome {
    let clients = args.extra.as_deref().unwrap_or("3").parse::<u64>()?;
    let peer = Peer::local(&args.addr)?;
    let inbox = peer.register(Memory::anonymous(8 * RECEIVES as usize)?, Usage::RECV)?;
    let srq = Srq::new(&peer, &SrqCfg::new().size(RECEIVES as u32))?;
    let place = |n: u64| inbox.slice(n * 8..(n + 1) * 8);
    for n in 0..RECEIVES {
        srq.recv(&place(n)?, n)?;
    }
    let messages = srq.rcq().ok_or("the queue has no completion queue")?;

    let endpoint = listen(&peer, args)?;
    let cfg = ConnCfg::new().srq(&srq);
    let mut conns: HashMap<u32, Connection> = HashMap::new();
    for _ in 0..clients {
        // The first clients may talk already: their messages wait on the queue.
        let conn = accept(&endpoint, &cfg, &[])?;
        conns.insert(conn.qp_num(), conn);
    }
    let mut answers: HashMap<u32, u64> = HashMap::new();
    for _ in 0..clients * QUESTIONS {
        let wc = next_completion(messages)?;
        let n = wc.wr_id();
        let number = number_in(&inbox, n * 8)?;
        srq.recv(&place(n)?, n)?;

        let conn = conns.get(&wc.qp_num()).ok_or("a message of nobody's")?;
        conn.send_inline(&(number * number).to_le_bytes(), Signal::Always(number))?;
        // Sends complete on each connection's own queue.
        next_completion(conn.cq())?;
        *answers.entry(wc.qp_num()).or_default() += 1;
    }
    for (qp_num, conn) in &conns {
        check(
            answers.get(qp_num) == Some(&QUESTIONS),
            "a question is missing",
        )?;
        wait_closed(conn)?;
    }
    println!("{clients} clients were served");
    Ok(())
}

fn main() -> std::process::ExitCode {
    run(server, ask)
}
