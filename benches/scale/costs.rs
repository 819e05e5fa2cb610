//! What is paid once: connections, registrations. And what a doorbell is shared by.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use rpma::{Completion, ConnEventKind, Connection, Memory, RemoteRegion, Signal, Usage};

use super::{Host, Result, cfg, connections::taken, per_second, result};

/// Sets `n` connections up, one after the other, and takes each down before the next.
pub fn setup(host: &Host, n: usize) -> Result<()> {
    let cfg = cfg().sq_size(16).rq_size(16);
    let (mut up, mut down) = (Duration::ZERO, Duration::ZERO);
    for counts in std::iter::once(false).chain(std::iter::repeat_n(true, n)) {
        let start = Instant::now();
        let (client, server) = host.connect(&cfg, &cfg)?;
        let connected = Instant::now();
        client.disconnect()?;
        closed(&server)?;
        // The client's end is confirmed by the server's.
        server.disconnect()?;
        closed(&client)?;
        drop((client, server));
        if counts {
            up += connected - start;
            down += connected.elapsed();
        }
    }
    result(
        "setup",
        "connect",
        "rpma",
        "connections/s",
        per_second(n, up),
    );
    result(
        "setup",
        "disconnect",
        "rpma",
        "connections/s",
        per_second(n, down),
    );
    Ok(())
}

fn closed(conn: &Connection) -> Result<()> {
    match conn.next_event()?.kind() {
        ConnEventKind::Closed => Ok(()),
        other => Err(format!("{other:?} in place of the end").into()),
    }
}

/// Registers memory of `len` bytes, which has been touched, and deregisters it.
pub fn register(host: &Host, len: usize) -> Result<()> {
    const REPEATED: usize = 8;
    let usage = Usage::READ_SRC | Usage::WRITE_DST | Usage::FLUSH_VISIBILITY;
    let mut memory = Memory::anonymous(len)?;
    memory.write_at(0, &vec![1; len])?;
    let (mut on, mut off) = (Duration::ZERO, Duration::ZERO);
    for n in 0..=REPEATED {
        let start = Instant::now();
        let region = host.peer.register(memory, usage)?;
        let registered = Instant::now();
        memory = region.close().map_err(|(_, err)| err)?;
        // The first finds everything cold.
        if n > 0 {
            on += registered - start;
            off += registered.elapsed();
        }
    }
    let each = |took: Duration| took.as_secs_f64() * 1e6 / REPEATED as f64;
    result(
        "regcost",
        &format!("register {len}"),
        "rpma",
        "us",
        each(on),
    );
    result(
        "regcost",
        &format!("deregister {len}"),
        "rpma",
        "us",
        each(off),
    );
    Ok(())
}

/// Writes, `n` to a doorbell, each lot done before the next: as a batch, and with as many calls.
pub fn batch(host: &Host, n: usize) -> Result<()> {
    const WRITES: usize = 2048;
    let cfg = cfg().sq_size(64).rq_size(1);
    let (client, _server) = host.connect(&cfg, &cfg)?;
    let near = host
        .peer
        .register(Memory::anonymous(4096)?, Usage::WRITE_SRC)?;
    let far = host
        .peer
        .register(Memory::anonymous(4096)?, Usage::WRITE_DST)?;
    let written = RemoteRegion::from_descriptor(far.descriptor().as_bytes())?;
    let (local, remote) = (near.slice(..64)?, written.slice(..64)?);
    let (local, remote) = (black_box(&local), black_box(&remote));
    let signal = |i| {
        if i + 1 == n {
            Signal::Always(0)
        } else {
            Signal::OnError(0)
        }
    };
    let mut batch = client.batch();
    let mut batched = || {
        (0..n).try_for_each(|i| batch.write(local, remote, signal(i)))?;
        batch.submit()
    };
    let mut called = || (0..n).try_for_each(|i| client.write(local, remote, signal(i)));
    let lots: [(&str, &mut dyn FnMut() -> rpma::Result<()>); 2] =
        [("rpma", &mut batched), ("rpma, calls", &mut called)];
    for (opponent, post) in lots {
        let rounds = WRITES / n;
        let mut start = Instant::now();
        for round in 0..=rounds {
            if round == 1 {
                start = Instant::now();
            }
            post()?;
            let mut completion = [Completion::default()];
            while taken(client.cq(), &mut completion)? == 0 {
                std::thread::yield_now();
            }
        }
        let rate = per_second(rounds * n, start.elapsed());
        result(
            "scale",
            &format!("writes in one batch {n}"),
            opponent,
            "writes/s",
            rate,
        );
    }
    Ok(())
}
