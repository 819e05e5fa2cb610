//! What the examples share: the command line, waiting with a time limit, and the client of the
//! message servers.
#![allow(dead_code, reason = "no example uses all of it")]

use std::{error::Error, process::ExitCode, time::Duration};

use rpma::{
    Completion, ConnCfg, ConnEventKind, ConnRequest, Connection, Cq, Endpoint, LocalRegion, Memory,
    Peer, Signal, Usage, Wait, WcOpcode,
};

pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// No wait of an example takes longer; in earnest, choose what your users can bear.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// What stands on the command line behind `server` or `client`.
pub struct Args {
    /// The server's address: that of a network interface with an RDMA device.
    pub addr: String,
    /// The server's port; "0" lets the system choose, and the server tells.
    pub port: String,
    /// One more argument, for the examples that have one.
    pub extra: Option<String>,
}

/// Runs the side that the command line asks for. A failure is told on stderr and by the exit
/// status.
pub fn run(server: fn(&Args) -> Outcome, client: fn(&Args) -> Outcome) -> ExitCode {
    let mut words = std::env::args();
    let name = words.next().unwrap_or_default();
    let side = match words.next().as_deref() {
        Some("server") => Some(server),
        Some("client") => Some(client),
        _ => None,
    };
    let (Some(side), Some(addr), Some(port)) = (side, words.next(), words.next()) else {
        eprintln!("usage: {name} server|client ADDR PORT (the head of the source tells more)");
        return ExitCode::from(2);
    };
    let extra = words.next();
    match side(&Args { addr, port, extra }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("{name}: {err}");
            ExitCode::FAILURE
        }
    }
}

/// Fails with `what` unless it is true.
pub fn check(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Listens, and says where.
pub fn listen(peer: &Peer, args: &Args) -> Outcome<Endpoint> {
    let endpoint = Endpoint::listen(peer, &args.addr, &args.port)?;
    if let Some(addr) = endpoint.local_addr() {
        println!("listening on {addr}");
    }
    Ok(endpoint)
}

/// Accepts one client, which gets `private_data`.
pub fn accept(endpoint: &Endpoint, cfg: &ConnCfg, private_data: &[u8]) -> Outcome<Connection> {
    let conn = endpoint.next_request(cfg)?.connect(Some(private_data))?;
    conn.wait_established(TIMEOUT)?;
    Ok(conn)
}

/// Connects to the server.
pub fn connect(peer: &Peer, args: &Args) -> Outcome<Connection> {
    let cfg = ConnCfg::new().timeout(TIMEOUT);
    Ok(Connection::open(peer, &args.addr, &args.port, &cfg, None)?)
}

/// Closes the connection and waits until it is closed.
pub fn disconnect(conn: &Connection) -> Outcome {
    conn.disconnect()?;
    wait_closed(conn)
}

/// Waits until the connection is closed.
pub fn wait_closed(conn: &Connection) -> Outcome {
    match conn.next_event_timeout(TIMEOUT)? {
        Some(event) if event.kind() == ConnEventKind::Closed => Ok(()),
        Some(event) => Err(format!("the connection {}", event.cm_kind()).into()),
        None => Err("the connection was not closed in time".into()),
    }
}

/// The next completion, which must be a success.
pub fn next_completion(cq: &Cq) -> Outcome<Completion> {
    let mut wc = [Completion::default()];
    match cq.take(&mut wc, Wait::new().timeout(TIMEOUT))? {
        [wc, ..] => Ok(*wc.ok()?),
        [] => Err("no completion in time".into()),
    }
}

/// Registered memory with `text` at its start.
pub fn region_with(peer: &Peer, text: &[u8], usage: Usage) -> Outcome<LocalRegion> {
    let memory = Memory::anonymous(text.len())?;
    memory.write_at(0, text)?;
    Ok(peer.register(memory, usage)?)
}

/// Memory of `len` bytes: of the file or the persistent memory device that the command line names,
/// or volatile where it names none. A file that is not there is made.
pub fn memory_of(args: &Args, len: usize) -> Outcome<Memory> {
    Ok(match &args.extra {
        None => Memory::anonymous(len)?,
        Some(path) if std::path::Path::new(path).exists() => Memory::map_file_range(path, 0, len)?,
        Some(path) => Memory::create_file(path, len)?,
    })
}

/// How many questions [`ask`] has.
pub const QUESTIONS: u64 = 50;

/// The client of the examples whose point is their server: sends numbers, one at a time, and gets
/// the square of each.
pub fn ask(args: &Args) -> Outcome {
    let peer = Peer::remote(&args.addr)?;
    let question = peer.register(Memory::anonymous(8)?, Usage::SEND)?;
    let answer = peer.register(Memory::anonymous(8)?, Usage::RECV)?;
    let cfg = ConnCfg::new().timeout(TIMEOUT);
    let request = ConnRequest::new(&peer, &args.addr, &args.port, &cfg)?;
    let conn = request.connect(None)?;
    conn.wait_established(TIMEOUT)?;
    for number in 1..=QUESTIONS {
        conn.recv(&answer.slice(..)?, number)?;
        question.write_at(0, &number.to_le_bytes())?;
        conn.send(&question.slice(..)?, Signal::Always(number))?;
        // Two completions, in any order: the question was sent, the answer is there.
        for _ in 0..2 {
            let wc = next_completion(conn.cq())?;
            if wc.opcode() == WcOpcode::RECV {
                check(wc.byte_len() == 8, "the answer has another length")?;
            }
        }
        check(number_in(&answer, 0)? == number * number, "a wrong answer")?;
    }
    println!("{QUESTIONS} answers are right");
    disconnect(&conn)
}

/// The number at `offset`.
pub fn number_in(region: &LocalRegion, offset: u64) -> Outcome<u64> {
    let mut bytes = [0; 8];
    region.read_at(offset, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
