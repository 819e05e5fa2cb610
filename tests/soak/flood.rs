//! Requests for connections that come to nothing: garbage, and greetings whose answer nobody looks
//! at.

use std::{path::PathBuf, thread::sleep, time::Duration};

use rpma::{ConnCfg, ConnRequest, Connection, Error, Memory, Peer, Usage};

use crate::{
    Outcome,
    board::{Board, Count, Mode},
    log::Request,
    rng::Rng,
};

/// The most that are held at a time: soft-iWARP has room for 48 in a process.
const AT_ONCE: usize = 16;

#[derive(clap::Args)]
pub struct Args {
    #[arg(long)]
    addr: String,
    #[arg(long)]
    folder: PathBuf,
    /// The log that a request asks for which is not garbage
    #[arg(long)]
    slot: u64,
    #[arg(long)]
    seed: u64,
    /// How many requests
    #[arg(long)]
    requests: u64,
}

pub fn run(args: &Args) -> Outcome {
    let board = Board::open(&args.folder.join("board"))?;
    let mut rng = Rng::new(args.seed, args.slot);
    let mut held: Vec<Connection> = Vec::new();
    for _ in 0..args.requests {
        if board.mode() != Mode::Run {
            break;
        }
        board.beat(args.slot);
        match ask(args, &board, &mut rng) {
            Ok(conn) => {
                board.add(Count::FloodRequests, 1);
                held.push(conn);
            }
            Err(err) => {
                // An unreachable server, or no room for a queue pair: the flood ebbs.
                board.reason(&err);
                sleep(Duration::from_millis(20));
            }
        }
        if held.len() >= AT_ONCE || rng.percent(10) {
            end(&mut held, &board, &mut rng);
        }
    }
    end(&mut held, &board, &mut rng);
    Ok(())
}

fn ask(args: &Args, board: &Board, rng: &mut Rng) -> Result<Connection, Error> {
    // Each with a device context of its own, as if from a process of its own.
    let peer = Peer::remote(&args.addr)?;
    let cfg = ConnCfg::new()
        .timeout(Duration::from_secs(2))
        .sq_size(1)
        .rq_size(1);
    let request = ConnRequest::new(&peer, &args.addr, &board.port().to_string(), &cfg)?;
    if rng.percent(20) {
        let pulse = peer.register(Memory::anonymous(8)?, Usage::WRITE_DST)?;
        // The memory is gone as soon as this returns, the greeting is on its way.
        return request.connect(Some(&Request::encode(args.slot, &pulse.descriptor())));
    }
    let len = rng.in_range(0..57) as usize;
    let mut garbage = rng.bytes(len);
    if rng.percent(30) {
        for (byte, letter) in garbage.iter_mut().zip(b"soak\x00rlog\x01") {
            *byte = *letter;
        }
    }
    request.connect(Some(&garbage))
}

/// Looks at the answers of some, and drops all.
fn end(held: &mut Vec<Connection>, board: &Board, rng: &mut Rng) {
    for conn in held.drain(..) {
        if rng.percent(50) {
            board.add(Count::Unanswered, 1);
            continue;
        }
        match conn.wait_established(Duration::from_millis(300)) {
            // It has no time.
            Ok(()) | Err(Error::TimedOut { .. }) => {}
            Err(err) => board.reason(&err),
        }
    }
}
