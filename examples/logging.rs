//! What the library logs, and how to see it.
//!
//! The library logs to the `log` facade with the target `rpma`, and never what it transfers. A
//! program chooses a logger (env_logger, systemd's, its own as here) and a level, which costs
//! nothing while it is off: errors are what a drop could not report otherwise, warnings what was
//! worked around, debug what the connection manager and the devices say.
//!
//! ```text
//! logging server ADDR PORT [off|error|warn|info|debug|trace]
//! logging client ADDR PORT [off|error|warn|info|debug|trace]
//! ```

mod common;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use common::*;
use log::{LevelFilter, Log, Metadata, Record};
use rpma::{ConnCfg, Peer};

/// Writes what the library logs to stderr, with the time.
struct Logger {
    written: AtomicUsize,
}

static LOGGER: Logger = Logger {
    written: AtomicUsize::new(0),
};

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("rpma")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        self.written.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default();
        let (level, target) = (record.level(), record.target());
        eprintln!(
            "{:.6} {level:5} {target}: {}",
            now.as_secs_f64(),
            record.args()
        );
    }

    fn flush(&self) {}
}

/// Starts logging, before anything else.
fn start(args: &Args) -> Outcome<LevelFilter> {
    let level = args.extra.as_deref().unwrap_or("debug").parse()?;
    log::set_logger(&LOGGER)?;
    log::set_max_level(level);
    Ok(level)
}

fn finish(level: LevelFilter) -> Outcome {
    let written = LOGGER.written.load(Ordering::Relaxed);
    println!("{written} lines were logged");
    // A connection without trouble is worth words to those only who asked for all of them.
    check(
        (written > 0) == (level >= LevelFilter::Debug),
        "more or less than expected",
    )
}

fn server(args: &Args) -> Outcome {
    let level = start(args)?;
    let peer = Peer::local(&args.addr)?;
    let endpoint = listen(&peer, args)?;
    let conn = accept(&endpoint, &ConnCfg::new(), &[])?;
    wait_closed(&conn)?;
    finish(level)
}

fn client(args: &Args) -> Outcome {
    let level = start(args)?;
    let peer = Peer::remote(&args.addr)?;
    let conn = connect(&peer, args)?;
    disconnect(&conn)?;
    finish(level)
}

fn main() -> std::process::ExitCode {
    run(server, client)
}
