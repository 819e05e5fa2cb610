//! Where the server listens, and what it does once the driver has closed its listener.
//!
//! soft-iWARP closes a listener when a connection is reset before it was accepted. The endpoint
//! looks alive, but nobody is heard any more. When it is destroyed later, the kernel may crash.
//! That is the driver's fault, and anybody can do it: so the server listens anew on the next port,
//! keeps the deaf endpoint, and at the end sleeps instead of ending.

use std::{
    fs,
    io::ErrorKind,
    time::{Duration, Instant},
};

use nix::unistd::{dup2_stderr, dup2_stdout};
use rpma::{ConnCfg, Endpoint, Error, Peer};

use crate::{
    Outcome,
    board::{Board, Count, Mode},
};

const LOOK_EVERY: Duration = Duration::from_secs(1);

pub struct Listener {
    pub endpoint: Endpoint,
    addr: String,
    port: u16,
    /// Is the listener one of TCP, which the kernel shows? So it is on soft-iWARP alone.
    of_tcp: bool,
    looked: Instant,
    deaf: Vec<Endpoint>,
}

impl Listener {
    pub fn new(peer: &Peer, addr: &str, port: u16, board: &Board) -> Outcome<Listener> {
        let (endpoint, port) = listen(peer, addr, port)?;
        board.set_port(port);
        Ok(Listener {
            endpoint,
            addr: addr.to_owned(),
            port,
            of_tcp: listens(&fs::read_to_string("/proc/self/net/tcp")?, port),
            looked: Instant::now(),
            deaf: Vec::new(),
        })
    }

    /// Has the driver closed a listener of this process?
    pub fn is_deaf(&self) -> bool {
        !self.deaf.is_empty()
    }

    /// Listens anew where the kernel has no listener any more though the endpoint is alive.
    pub fn watch(&mut self, peer: &Peer, board: &Board) -> Outcome {
        for deaf in &self.deaf {
            // What it heard before: dropping it rejects it.
            while let Ok(Some(_)) = deaf.try_next_request(&ConnCfg::new()) {}
        }
        if !self.of_tcp || self.looked.elapsed() < LOOK_EVERY {
            return Ok(());
        }
        self.looked = Instant::now();
        if listens(&fs::read_to_string("/proc/self/net/tcp")?, self.port) {
            return Ok(());
        }
        let (endpoint, port) = listen(peer, &self.addr, self.port + 1)?;
        self.deaf
            .push(std::mem::replace(&mut self.endpoint, endpoint));
        self.port = port;
        board.add(Count::Deaf, 1);
        board.set_port(port);
        crate::say(format_args!(
            "note: the driver closed the listener: listening anew on port {port}"
        ));
        Ok(())
    }
}

/// Listens on `port` or one behind it: deaf endpoints still have theirs, of earlier runs, too.
fn listen(peer: &Peer, addr: &str, port: u16) -> Outcome<(Endpoint, u16)> {
    let mut tries = port..port + 200;
    loop {
        let port = tries.next().ok_or("no port is free")?;
        match Endpoint::listen(peer, addr, &port.to_string()) {
            Ok(endpoint) => return Ok((endpoint, port)),
            Err(Error::Provider { source, .. }) if source.kind() == ErrorKind::AddrInUse => {}
            Err(err) => return Err(err.into()),
        }
    }
}

/// Is there a listening socket with this port in `/proc/net/tcp`?
fn listens(table: &str, port: u16) -> bool {
    let port = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let local = words.next().unwrap_or_default();
        local.ends_with(&port) && words.nth(1) == Some("0A")
    })
}

/// Keeps what this process has until the machine is switched off. A failure is told first; nobody
/// who reads the output is kept waiting.
pub fn sleep_for_good(board: &Board, result: Outcome) -> Outcome {
    if let Err(err) = result {
        eprintln!("soak server: FAILED: {err}");
    }
    board.set_mode(Mode::Sleep);
    let null = fs::OpenOptions::new().write(true).open("/dev/null")?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

#[test]
fn a_listening_socket_is_found_in_the_kernels_table() {
    let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
                 0: 014EA8C0:1D2F 00000000:0000 0A 00000000:00000000\n   \
                 1: 014EA8C0:1D30 024EA8C0:9C40 01 00000000:00000000\n";
    assert!(listens(table, 7471));
    assert!(!listens(table, 7472), "this one is connected");
    assert!(!listens(table, 7473));
    assert!(!listens("", 7471));
}
