//! One operation of rpma, again and again: what `ci/cost` counts the instructions of.
//!
//! `cost OP N` sets up two connected ends on the stand-in device in its null mode and does OP N times. `ci/cost` runs it twice under callgrind, with
//! different N, and takes the difference.

use std::{hint::black_box, process::ExitCode, time::Duration};

use rpma::{
    Completion, ConnCfg, ConnRequest, Connection, Endpoint, FlushKind, Memory, Peer, RemoteRegion,
    Signal, Usage,
};

const ADDRESS: &str = "127.0.0.1";
const LONG: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let (Some(op), Some(n)) = (args.next(), args.next().and_then(|n| n.parse().ok())) else {
        // `cargo bench` runs it without arguments.
        println!("usage: cost OP N, on the stand-in device; see ci/cost");
        return ExitCode::SUCCESS;
    };
    match run(&op, n) {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("{op}: {err}");
            ExitCode::FAILURE
        }
    }
}

fn run(op: &str, n: u64) -> rpma::Result<()> {
    // Before any queue pair is made: those that are there keep their ways.
    if let Some(standin) = standin_control::Standin::get() {
        standin.null(true);
    }
    let peer = Peer::local(ADDRESS)?;
    let cfg = ConnCfg::new().sq_size(64).timeout(LONG);
    let endpoint = Endpoint::listen(&peer, ADDRESS, "0")?;
    let port = endpoint
        .local_addr()
        .map_or(0, |addr| addr.port())
        .to_string();
    let client = ConnRequest::new(&peer, ADDRESS, &port, &cfg)?.connect(None)?;
    let server = endpoint.next_request(&cfg)?.connect(None)?;
    client.wait_established(LONG)?;
    server.wait_established(LONG)?;
    let usage = Usage::all() - Usage::ATOMIC;
    let near = peer.register(Memory::anonymous(4096)?, usage)?;
    let far = peer.register(Memory::anonymous(4096)?, usage)?;
    let far = RemoteRegion::from_descriptor(far.descriptor().as_bytes())?;
    repeat(op, n, &client, &near, &far)
}

fn repeat(
    op: &str,
    n: u64,
    conn: &Connection,
    near: &rpma::LocalRegion,
    far: &RemoteRegion,
) -> rpma::Result<()> {
    let local = near.slice(..64)?;
    let remote = far.slice(..64)?;
    let word = far.slice(..8)?;
    let (local, remote, word) = (black_box(&local), black_box(&remote), black_box(&word));
    let conn = black_box(conn);
    let quiet = Signal::OnError;
    let mut wc = [Completion::default()];
    match op {
        "none" => (0..n).for_each(|i| {
            black_box(i);
        }),
        "write" => (0..n).try_for_each(|i| conn.write(local, remote, quiet(i)))?,
        "read" => (0..n).try_for_each(|i| conn.read(local, remote, quiet(i)))?,
        "flush" => (0..n).try_for_each(|i| conn.flush(remote, FlushKind::Visibility, quiet(i)))?,
        "atomic_write" => {
            (0..n).try_for_each(|i| conn.atomic_write(word, i.to_ne_bytes(), quiet(i)))?;
        }
        "send" => (0..n).try_for_each(|i| conn.send(local, quiet(i)))?,
        "recv" => (0..n).try_for_each(|i| conn.recv(local, i))?,
        "poll_empty" => (0..n).try_for_each(|_| conn.cq().poll(&mut wc).map(drop))?,
        "slice" => (0..n).try_for_each(|i| {
            far.slice(i % 64..i % 64 + 8).map(|slice| {
                black_box(slice);
            })
        })?,
        // A signalled write and its completion; less `write` it is the cost of taking one.
        "write_poll" => (0..n).try_for_each(|i| {
            conn.write(local, remote, Signal::Always(i))?;
            conn.cq().poll(&mut wc).map(|taken| {
                black_box(taken.len());
            })
        })?,
        "pair" => (0..n).try_for_each(|i| {
            conn.write(local, remote, quiet(i))?;
            conn.flush(remote, FlushKind::Visibility, quiet(i))
        })?,
        "batch_2" => {
            let mut batch = conn.batch();
            (0..n).try_for_each(|i| {
                batch.write(local, remote, quiet(i))?;
                batch.flush(remote, FlushKind::Visibility, quiet(i))?;
                batch.submit()
            })?;
        }
        "batch_2_new" => (0..n).try_for_each(|i| {
            let mut batch = conn.batch();
            batch.write(local, remote, quiet(i))?;
            batch.flush(remote, FlushKind::Visibility, quiet(i))?;
            batch.submit()
        })?,
        "batch_17" => {
            let mut batch = conn.batch();
            (0..n).try_for_each(|i| {
                for _ in 0..16 {
                    batch.write(local, remote, quiet(i))?;
                }
                batch.flush(remote, FlushKind::Visibility, quiet(i))?;
                batch.submit()
            })?;
        }
        _ => {
            return Err(rpma::Error::NotSupported {
                capability: "no such operation",
            });
        }
    }
    Ok(())
}
