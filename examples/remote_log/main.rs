//! A log in another machine's memory: a client appends records to it by RDMA, and the machine that
//! owns it proves afterwards, whatever happened, that every committed record is whole.
//!
//! ```text
//! remote_log server --addr 192.168.77.1 --file /dev/shm/log
//! remote_log client --addr 192.168.77.1 --records 2000
//! remote_log validate /dev/shm/log
//! remote_log demo --addr 192.168.77.1          all of it, with accidents
//! ```
//!
//! Each record is written and flushed; only then the 8-byte tail, which decides what is committed,
//! is moved behind it by an atomic write, and flushed too (see client.rs). No code of the server
//! runs meanwhile: it hands out the key to its memory (hello.rs), looks whether the client is
//! alive, and takes the key back before anyone else gets one (server.rs). The bytes are described
//! in format.rs.

#![forbid(unsafe_code)]

mod client;
mod demo;
mod format;
mod hello;
mod report;
mod server;
mod store;

use std::{
    error::Error,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Parser, Subcommand};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A log in another machine's memory, appended to by RDMA.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Owns the log, and lets one client at a time append to it
    Server(server::Args),
    /// Appends records, and tells how long each took to be committed
    Client(client::Args),
    /// Reads a log that nobody writes to: are all committed records whole and in sequence?
    Validate {
        /// The file, or the device of persistent memory
        file: PathBuf,
    },
    /// Server, clients and accidents: kills a client, cuts the network, kills the server
    Demo(demo::Args),
}

fn main() -> ExitCode {
    let result = match Args::parse().role {
        Role::Server(args) => server::run(&args),
        Role::Client(args) => client::run(&args),
        Role::Validate { file } => validate(file),
        Role::Demo(args) => demo::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            // In one piece: others write to the same terminal.
            let _ = io::stderr().write_all(format!("remote_log: {err}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn validate(file: PathBuf) -> Outcome {
    let contents = store::contents(&store::open_read_only(&file)?)??;
    report::say(report::valid(&contents));
    Ok(())
}
