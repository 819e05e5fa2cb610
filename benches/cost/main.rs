//! One operation of rpma, again and again: what `ci/cost` counts the instructions of.
//!
//! `cost OP N` sets up two connected ends on the stand-in device in its null mode and does OP N
//! times. `ci/cost` runs it twice under callgrind, with different N, and takes the difference.

use std::{hint::black_box, process::ExitCode, time::Duration};

use rpma::{
    Completion, ConnCfg, ConnRequest, Connection, Endpoint, FlushKind, LocalRegion, LocalSlice,
    Memory, Peer, RemoteRegion, RemoteSlice, Signal, Usage,
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
    // What is done around the faults of Soft-RoCE's driver is left out: librpma and verbs by hand
    // do not do it either.
    let cfg = ConnCfg::new()
        .sq_size(64)
        .timeout(LONG)
        .device_workarounds(false);
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

/// A loop in a function of its own, as in a program; all in one function would have too few
/// registers. What it works on may change with each call as far as the compiler knows, as it may in
/// C: else it would check once what is the same each time.
macro_rules! looped {
    ($n:ident, ($($arg:ident: $type:ty),*), $([$($before:tt)*],)? |$i:ident| $body:expr) => {{
        #[inline(never)]
        fn run(n: u64, $($arg: *const $type),*) -> rpma::Result<()> {
            // SAFETY: they are made of references, below.
            $(let $arg = move || unsafe { &*$arg };)*
            $($($before)*)?
            for $i in 0..n {
                $(
                    let $arg = $arg();
                    let _ = $arg;
                )*
                $body;
            }
            Ok(())
        }
        run($n, $(black_box(&raw const *$arg)),*)
    }};
}

fn repeat(
    op: &str,
    n: u64,
    conn: &Connection,
    near: &LocalRegion,
    far: &RemoteRegion,
) -> rpma::Result<()> {
    type Near<'a> = LocalSlice<'a>;
    type Far = RemoteSlice;
    const SEEN: FlushKind = FlushKind::Visibility;
    const QUIET: fn(u64) -> Signal = Signal::OnError;
    let local = &near.slice(..64)?;
    let remote = &far.slice(..64)?;
    let word = &far.slice(..8)?;
    match op {
        "none" => looped!(n, (), |i| black_box(i)),
        "write" => looped!(n, (conn: Connection, local: Near<'_>, remote: Far), |i| {
            conn.write(local, remote, QUIET(i))?
        }),
        "read" => looped!(n, (conn: Connection, local: Near<'_>, remote: Far), |i| {
            conn.read(local, remote, QUIET(i))?
        }),
        "flush" => looped!(n, (conn: Connection, remote: Far), |i| {
            conn.flush(remote, SEEN, QUIET(i))?
        }),
        "atomic_write" => looped!(n, (conn: Connection, word: Far), |i| {
            conn.atomic_write(word, i.to_ne_bytes(), QUIET(i))?
        }),
        "send" => looped!(n, (conn: Connection, local: Near<'_>), |i| {
            conn.send(local, QUIET(i))?
        }),
        "recv" => looped!(n, (conn: Connection, local: Near<'_>), |i| {
            conn.recv(local, i)?
        }),
        "poll_empty" => looped!(
            n,
            (conn: Connection),
            [let mut wc = [Completion::default()];],
            |_i| black_box(conn.cq().poll(&mut wc)?.len())
        ),
        "slice" => looped!(n, (far: RemoteRegion), |i| {
            black_box(&far.slice(i % 64..i % 64 + 8)?);
        }),
        // A signalled write and its completion; less `write` it is the cost of taking one.
        "write_poll" => looped!(
            n,
            (conn: Connection, local: Near<'_>, remote: Far),
            [let mut wc = [Completion::default()];],
            |i| {
                conn.write(local, remote, Signal::Always(i))?;
                black_box(conn.cq().poll(&mut wc)?.len())
            }
        ),
        "pair" => looped!(n, (conn: Connection, local: Near<'_>, remote: Far), |i| {
            conn.write(local, remote, QUIET(i))?;
            conn.flush(remote, SEEN, QUIET(i))?
        }),
        "batch_2" => looped!(
            n,
            (conn: Connection, local: Near<'_>, remote: Far),
            [let mut batch = conn().batch();],
            |i| {
                batch.write(local, remote, QUIET(i))?;
                batch.flush(remote, SEEN, QUIET(i))?;
                batch.submit()?
            }
        ),
        "batch_2_new" => looped!(n, (conn: Connection, local: Near<'_>, remote: Far), |i| {
            let mut batch = conn.batch();
            batch.write(local, remote, QUIET(i))?;
            batch.flush(remote, SEEN, QUIET(i))?;
            batch.submit()?
        }),
        "batch_17" => looped!(
            n,
            (conn: Connection, local: Near<'_>, remote: Far),
            [let mut batch = conn().batch();],
            |i| {
                for _ in 0..16 {
                    batch.write(local, remote, QUIET(i))?;
                }
                batch.flush(remote, SEEN, QUIET(i))?;
                batch.submit()?
            }
        ),
        _ => Err(rpma::Error::NotSupported {
            capability: "no such operation",
        }),
    }
}
