//! Clients that append to remote logs, die, go silent and flood, against one server, over a network
//! that loses, delays, doubles, reorders and ends: for as long as it is told to. `ci/soak` runs it
//! in the guest.
//!
//! ```text
//! soak run --dev rxe --minutes 3        as root, in a machine whose network may be changed: all of it
//! ```
//!
//! The hosts are network namespaces, each with a device of its own (net.rs). Server, clients and
//! floods are processes: one can be killed alone. The log, and what makes it valid, are those of
//! `examples/remote_log`. At the end every acknowledged record must be there, whole and in
//! sequence, and the server must hold what it held after the warm-up (sample.rs).

#![forbid(unsafe_code)]

mod board;
mod client;
mod differs;
mod flood;
#[allow(dead_code)]
#[path = "../../examples/remote_log/format.rs"]
mod format;
#[path = "../../examples/remote_log/hello.rs"]
mod hello;
mod link;
mod listener;
mod log;
mod net;
mod options;
mod pages;
mod processes;
mod report;
mod rng;
mod run;
mod sample;
mod server;
#[path = "../../examples/remote_log/store.rs"]
mod store;
mod verdict;

use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
};

use clap::{Parser, Subcommand};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Clients, accidents and a bad network against one server, for a long time.
#[derive(Parser)]
#[command(max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Sets up hosts, starts the others, makes trouble, and looks at what is left
    Run(options::Args),
    /// Owns the logs
    Server(server::Args),
    /// Appends to one log, reads it back, and ends in some way, again and again
    Client(client::Args),
    /// Asks for many connections that come to nothing
    Flood(flood::Args),
}

fn main() -> ExitCode {
    let (name, result) = match Args::parse().role {
        Role::Run(args) => ("run", run::run(&args)),
        Role::Server(args) => ("server", server::run(&args)),
        Role::Client(args) => ("client", client::run(&args)),
        Role::Flood(args) => ("flood", flood::run(&args)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            // In one piece: others write to the same stream.
            let _ = io::stderr().write_all(format!("soak {name}: FAILED: {err}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

/// Prints a line. That nobody reads it is no reason to stop.
fn say(line: impl std::fmt::Display) {
    let _ = io::stdout().write_all(format!("{line}\n").as_bytes());
}
