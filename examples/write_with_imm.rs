//! Writes with immediate data: the data go straight to their place, and the peer is told.
//!
//! A plain write is silent. One with immediate data also takes a receive of the peer, whose
//! completion carries 32 bits (here: which slot was written) and comes after the data. It replaces
//! a write and a message behind it. InfiniBand and RoCE have it, iWARP has not: there the client
//! ends with "not supported".
//!
//! ```text
//! write_with_imm server ADDR PORT
//! write_with_imm client ADDR PORT
//! ```

mod common;

use common::*;
use rpma::{ConnCfg, LocalSlice, Memory, Peer, RemoteRegion, Signal, Usage, WcOpcode};

const SLOT: u64 = 64;
const SLOTS: u64 = 8;

fn server(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let slots = peer.register(
        Memory::anonymous((SLOT * SLOTS) as usize)?,
        Usage::WRITE_DST,
    )?;
    let endpoint = listen(&peer, args)?;
    let request = endpoint.next_request(&ConnCfg::new())?;
    for number in 0..SLOTS {
        // The data do not come by the receive, so it needs no memory.
        request.recv(&LocalSlice::EMPTY, number)?;
    }
    let conn = request.connect(Some(slots.descriptor().as_bytes()))?;
    conn.wait_established(TIMEOUT)?;

    for number in 0..SLOTS {
        let wc = next_completion(conn.cq())?;
        check(
            wc.opcode() == WcOpcode::RECV_RDMA_WITH_IMM,
            "not a write with immediate data",
        )?;
        let slot = u64::from(wc.imm_data().ok_or("no immediate data")?);
        check(slot == SLOTS - 1 - number, "another slot")?;
        let mut bytes = [0; SLOT as usize];
        slots.read_at(slot * SLOT, &mut bytes)?;
        check(bytes == content(slot), "the data are behind the completion")?;
        println!("slot {slot} was written, {} bytes", wc.byte_len());
    }
    wait_closed(&conn)
}

fn client(args: &Args) -> Outcome {
    let peer = Peer::remote(&args.addr)?;
    let source = region_with(&peer, &[0; SLOT as usize], Usage::WRITE_SRC)?;
    let conn = connect(&peer, args)?;
    let remote = RemoteRegion::from_descriptor(conn.private_data())?;
    for slot in (0..SLOTS).rev() {
        source.write_at(0, &content(slot))?;
        let dst = remote.slice(slot * SLOT..(slot + 1) * SLOT)?;
        conn.write_with_imm(&source.slice(..)?, &dst, slot as u32, Signal::Always(slot))?;
        next_completion(conn.cq())?;
    }
    disconnect(&conn)
}

fn content(slot: u64) -> [u8; SLOT as usize] {
    [(slot + 1) as u8; SLOT as usize]
}

fn main() -> std::process::ExitCode {
    run(server, client)
}
