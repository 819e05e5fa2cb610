//! Many connections on one thread, setting them up, registering memory and batches of any size, on
//! a real device: what `ci/bench` measures in a guest.
//!
//! `scale KIND…`, each of KIND one of:
//!
//! - `connections:N`: N connections with completion queues of their own, what they hold and how
//!   fast messages pass through them
//! - `shared:N`: the same, with one receive queue and one completion queue for all that is received
//! - `setup:N`: N connections, one after the other
//! - `register:BYTES`: registering and deregistering memory of that size
//! - `batch:N`: writes, N to a doorbell
//!
//! It prints a RESULT line for each figure (the format: benches/report). `benches/scale/librpma.c`
//! does the same through librpma.

mod connections;
mod costs;

use std::{process::ExitCode, time::Duration};

use rpma::{ConnCfg, ConnRequest, Connection, Endpoint, Peer};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How long a connection may take.
const LONG: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let kinds: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let (Ok(address), false) = (std::env::var("RPMA_TEST_ADDR"), kinds.is_empty()) else {
        // `cargo bench` runs it so, perhaps with arguments that are for others.
        println!("usage: RPMA_TEST_ADDR=… scale KIND:N…; see benches/scale/main.rs");
        return ExitCode::SUCCESS;
    };
    for kind in &kinds {
        if let Err(err) = run(&address, kind) {
            eprintln!("scale: {kind}: {err}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn run(address: &str, kind: &str) -> Result<()> {
    let (name, number) = kind.split_once(':').ok_or("no number")?;
    let number: usize = number.parse()?;
    let host = Host::new(address)?;
    match name {
        "connections" => connections::separate(&host, number),
        "shared" => connections::shared(&host, number),
        "setup" => costs::setup(&host, number),
        "register" => costs::register(&host, number),
        "batch" => costs::batch(&host, number),
        _ => Err("no such kind".into()),
    }
}

/// Where both ends live.
struct Host {
    peer: Peer,
    endpoint: Endpoint,
    address: String,
    port: String,
}

impl Host {
    fn new(address: &str) -> Result<Self> {
        let peer = Peer::local(address)?;
        let endpoint = Endpoint::listen(&peer, address, "0")?;
        let port = endpoint.local_addr().map_or(0, |addr| addr.port());
        Ok(Host {
            peer,
            endpoint,
            address: address.to_owned(),
            port: port.to_string(),
        })
    }

    /// A client and its server.
    fn connect(&self, client: &ConnCfg, server: &ConnCfg) -> Result<(Connection, Connection)> {
        let active =
            ConnRequest::new(&self.peer, &self.address, &self.port, client)?.connect(None)?;
        let passive = self.endpoint.next_request(server)?.connect(None)?;
        active.wait_established(LONG)?;
        passive.wait_established(LONG)?;
        Ok((active, passive))
    }
}

fn cfg() -> ConnCfg {
    ConnCfg::new().timeout(LONG)
}

/// Prints a figure.
fn result(section: &str, case: &str, opponent: &str, unit: &str, value: f64) {
    println!("RESULT\t{section}\t{case}\t{opponent}\t{unit}\t{value:.2}");
}

/// `n` in a time, as a rate.
fn per_second(n: usize, took: Duration) -> f64 {
    n as f64 / took.as_secs_f64().max(1e-9)
}
