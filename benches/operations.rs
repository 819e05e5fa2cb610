//! How long each operation keeps its caller, on the stand-in device in its null mode: no RDMA
//! device is needed.
//!
//! `cargo bench --bench operations` builds the stand-in and starts over on it. The times include
//! what the stand-in takes to note a request and to answer a poll; they are for comparing one build
//! with another on one machine. `ci/cost` counts instructions, which are the same on each run.

use std::{
    error::Error, hint::black_box, os::unix::process::CommandExt, process::Command, time::Duration,
};

use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use rpma::{
    Completion, ConnCfg, ConnRequest, Connection, Endpoint, FlushKind, FlushMethod, LocalRegion,
    LocalSlice, Memory, Peer, RemoteRegion, RemoteSlice, Signal, Usage,
};
use standin_control::{Personality, Standin};

const ADDRESS: &str = "127.0.0.1";
const LONG: Duration = Duration::from_secs(10);
/// Set for the second start: if the stand-in is not there then, a third would not find it either.
const STARTED_OVER: &str = "RPMA_BENCH_ON_STANDIN";

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(standin) = Standin::get() else {
        return Err(start_over());
    };
    standin.null(true);
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();

    // Each device has its own ways of flushing and of atomic writes.
    standin.personality(Personality::Rxe);
    let native = Ends::new(FlushMethod::Auto)?;
    let by_reading = Ends::new(FlushMethod::ReadAfterWrite)?;
    standin.personality(Personality::Mlx5);
    let without = Ends::new(FlushMethod::Auto)?;

    single(&mut criterion.benchmark_group("single"), &native)?;
    let mut group = criterion.benchmark_group("flush");
    flush(&mut group, "native", &native)?;
    flush(&mut group, "by reading", &by_reading)?;
    group.finish();
    let mut group = criterion.benchmark_group("atomic write");
    atomic_write(&mut group, "native", &native)?;
    atomic_write(&mut group, "inline", &without)?;
    group.finish();
    poll(&mut criterion.benchmark_group("poll"), &native)?;
    let mut group = criterion.benchmark_group("batch");
    batch(&mut group, "native flush", &native)?;
    batch(&mut group, "flush by reading", &by_reading)?;
    group.finish();
    slices(&mut criterion.benchmark_group("slice"), &native);
    descriptors(&mut criterion.benchmark_group("descriptor"), &native);
    criterion.final_summary();
    Ok(())
}

/// Replaces this process by itself on the stand-in; returns only if that fails.
fn start_over() -> Box<dyn Error> {
    if std::env::var_os(STARTED_OVER).is_some() {
        return "the stand-in's libraries are not the ones that were loaded".into();
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/ci/standin");
    let built = match Command::new(script).output() {
        Ok(built) => built,
        Err(err) => return format!("{script}: {err}").into(),
    };
    if !built.status.success() {
        return format!("{script}: {}", String::from_utf8_lossy(&built.stderr)).into();
    }
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(err) => return err.into(),
    };
    Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(
            "LD_LIBRARY_PATH",
            String::from_utf8_lossy(&built.stdout).trim_end(),
        )
        .env(STARTED_OVER, "1")
        .exec()
        .into()
}

/// Two connected ends, with a region each.
struct Ends {
    conn: Connection,
    near: LocalRegion,
    far: RemoteRegion,
    // What the others need to go on.
    _server: Connection,
    _far: LocalRegion,
}

impl Ends {
    fn new(method: FlushMethod) -> rpma::Result<Ends> {
        let peer = Peer::local(ADDRESS)?;
        // As in benches/cost.
        let cfg = ConnCfg::new()
            .device_workarounds(false)
            .sq_size(64)
            .rq_size(64)
            .timeout(LONG)
            .flush_method(method);
        let endpoint = Endpoint::listen(&peer, ADDRESS, "0")?;
        let port = endpoint.local_addr().map_or(0, |addr| addr.port());
        let conn = ConnRequest::new(&peer, ADDRESS, &port.to_string(), &cfg)?.connect(None)?;
        let server = endpoint.next_request(&cfg)?.connect(None)?;
        conn.wait_established(LONG)?;
        server.wait_established(LONG)?;
        let usage = Usage::all() - Usage::ATOMIC;
        let near = peer.register(Memory::anonymous(4096)?, usage)?;
        let far = peer.register(Memory::anonymous(4096)?, usage)?;
        Ok(Ends {
            conn,
            near,
            far: RemoteRegion::from_descriptor(far.descriptor().as_bytes())?,
            _server: server,
            _far: far,
        })
    }

    fn slices(&self) -> rpma::Result<(LocalSlice<'_>, RemoteSlice)> {
        Ok((self.near.slice(..64)?, self.far.slice(..64)?))
    }
}

/// Measures `call`, after it has succeeded once: the time of a refusal says nothing.
fn measure(
    group: &mut Group<'_>,
    name: &str,
    mut call: impl FnMut() -> rpma::Result<()>,
) -> rpma::Result<()> {
    call()?;
    group.bench_function(name, |bencher| bencher.iter(|| black_box(call().is_ok())));
    Ok(())
}

fn single(group: &mut Group<'_>, ends: &Ends) -> rpma::Result<()> {
    let (local, remote) = ends.slices()?;
    let (conn, local, remote) = black_box((&ends.conn, &local, &remote));
    let quiet = Signal::OnError(1);
    measure(group, "write", || conn.write(local, remote, quiet))?;
    measure(group, "read", || conn.read(local, remote, quiet))?;
    measure(group, "send", || conn.send(local, quiet))?;
    measure(group, "recv", || conn.recv(local, 1))
}

fn flush(group: &mut Group<'_>, name: &str, ends: &Ends) -> rpma::Result<()> {
    let (_, remote) = ends.slices()?;
    let (conn, remote) = black_box((&ends.conn, &remote));
    measure(group, name, || {
        conn.flush(remote, FlushKind::Visibility, Signal::OnError(1))
    })
}

fn atomic_write(group: &mut Group<'_>, name: &str, ends: &Ends) -> rpma::Result<()> {
    let word = ends.far.slice(..8)?;
    let (conn, word) = black_box((&ends.conn, &word));
    measure(group, name, || {
        conn.atomic_write(word, 7u64.to_ne_bytes(), Signal::OnError(1))
    })
}

fn poll(group: &mut Group<'_>, ends: &Ends) -> rpma::Result<()> {
    let (local, remote) = ends.slices()?;
    let (conn, local, remote) = black_box((&ends.conn, &local, &remote));
    let mut wc = [Completion::default()];
    measure(group, "empty", || {
        conn.cq().poll(&mut wc).map(|taken| {
            black_box(taken.len());
        })
    })?;
    measure(group, "a write and its completion", || {
        conn.write(local, remote, Signal::Always(1))?;
        conn.cq().poll(&mut wc).map(|taken| {
            black_box(taken.len());
        })
    })
}

/// Writes and a flush with one doorbell: of 2 operations and of 17.
fn batch(group: &mut Group<'_>, name: &str, ends: &Ends) -> rpma::Result<()> {
    let (local, remote) = ends.slices()?;
    let (conn, local, remote) = black_box((&ends.conn, &local, &remote));
    for writes in [1, 16] {
        let mut batch = conn.batch();
        measure(group, &format!("{}, {name}", writes + 1), || {
            for _ in 0..writes {
                batch.write(local, remote, Signal::OnError(1))?;
            }
            batch.flush(remote, FlushKind::Visibility, Signal::OnError(1))?;
            batch.submit()
        })?;
    }
    Ok(())
}

fn slices(group: &mut Group<'_>, ends: &Ends) {
    let (near, far) = black_box((&ends.near, &ends.far));
    group.bench_function("local", |bencher| {
        bencher.iter(|| near.slice(black_box(8)..black_box(72)).is_ok());
    });
    group.bench_function("remote", |bencher| {
        bencher.iter(|| far.slice(black_box(8)..black_box(72)).is_ok());
    });
    group.bench_function("refused", |bencher| {
        bencher.iter(|| far.slice(black_box(8)..black_box(4097)).is_err());
    });
}

fn descriptors(group: &mut Group<'_>, ends: &Ends) {
    let near = black_box(&ends.near);
    let bytes = near.descriptor();
    group.bench_function("encode", |bencher| bencher.iter(|| near.descriptor()));
    group.bench_function("decode", |bencher| {
        bencher.iter(|| RemoteRegion::from_descriptor(black_box(bytes.as_bytes())).is_ok());
    });
}
