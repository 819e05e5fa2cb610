//! The owner of the log.
//!
//! # One writer at a time
//!
//! While a client writes, no code runs here, so nothing here could tell a good write from a late
//! one of a client that was given up. What keeps late writes out is the device: before another
//! client is let in, the queue pair of the old one is destroyed and its registration, and with it
//! its key, revoked. Only then the log is read, and registered anew, with another key, for the
//! next. After this fence not even packets that are still under way can change the log.
//!
//! # How a dead client is noticed
//!
//! - A process that ends, killed or not: its kernel closes the connection, and an event comes here.
//! - A link that is cut, a machine that is switched off: no event comes. So now and then this side
//!   writes nothing, 0 bytes, to the client's memory: the client's device has to acknowledge it,
//!   and this one gives up after a bounded number of retries (seconds; on iWARP it is up to TCP,
//!   see tcp_retries2 in tcp(7)).
//! - A new client need not wait for that: it takes over, and the old one, dead or only believed so,
//!   is fenced off.

use std::{
    os::fd::AsFd,
    path::PathBuf,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use rpma::{
    ConnCfg, ConnEventKind, Connection, Endpoint, FlushKind, FlushMethods, LocalRegion, Memory,
    Peer, PeerCfg, RemoteSlice, Signal, Usage,
};

use crate::{
    Outcome,
    format::{Contents, TAIL_AT},
    hello::{Request, Welcome},
    report::{say, valid},
    store,
};

/// How often this side looks after the client.
const TICK: Duration = Duration::from_millis(500);

#[derive(clap::Args)]
pub struct Args {
    /// The address to listen on: that of a network interface with an RDMA device, never 127.0.0.1
    #[arg(long)]
    addr: String,
    /// The port to listen on; 0 lets the system choose
    #[arg(long, default_value = "7204")]
    port: String,
    /// The log: a file (made if it is not there; on tmpfs, such as /dev/shm, unless the device has
    /// on-demand paging) or /dev/dax
    #[arg(long)]
    file: PathBuf,
    /// The bytes that a new log takes
    #[arg(long, default_value_t = 16 << 20)]
    capacity: u64,
    /// Make a new log, whatever is there
    #[arg(long)]
    format: bool,
    /// Declare: the file is persistent memory, and what comes from the network reaches it without
    /// stopping in a volatile cache
    #[arg(long)]
    pmem: bool,
    /// End after so many clients
    #[arg(long)]
    clients: Option<u64>,
}

pub fn run(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let (memory, contents) = store::open(&args.file, args.capacity, args.format)?;
    if args.pmem && !memory.is_persistent() {
        return Err("--pmem: the file is not persistent memory (no MAP_SYNC to be had)".into());
    }
    say(format_args!(
        "log {}: {}",
        args.file.display(),
        valid(&contents)
    ));
    let endpoint = Endpoint::listen(&peer, &args.addr, &args.port)?;
    let mut server = Server {
        cfg: PeerCfg::new().with_direct_write_to_pmem(args.pmem),
        peer,
        log: Log::Idle(memory),
        contents,
        served: 0,
    };
    // Registered once already, to say at the start what is to be had.
    let region = server.register()?;
    say(format_args!(
        "device {}; flushes: {}",
        server.peer.device_name(),
        methods(&region, args.pmem)
    ));
    server.log = Log::Idle(region.close().map_err(|(_, err)| err)?);
    say(match args.pmem {
        true => "a committed record is on persistent memory: it outlives a power failure",
        false => {
            "a committed record is in this machine's memory: it outlives the death of the client and of this process, \
             but not the machine's"
        }
    });
    let at = endpoint.local_addr().ok_or("listening nowhere")?;
    say(format_args!("listening on {at}"));

    while args.clients.is_none_or(|clients| server.served < clients) || server.has_client() {
        server.turn(&endpoint)?;
    }
    Ok(())
}

struct Server {
    peer: Peer,
    cfg: PeerCfg,
    log: Log,
    /// As it was when the last client was gone.
    contents: Contents,
    served: u64,
}

/// Who can write to the log.
enum Log {
    Idle(Memory),
    Written(Box<Client>),
    /// In between, and after a failure that leaves the memory registered: the server ends then.
    Lost,
}

struct Client {
    number: u64,
    conn: Connection,
    region: LocalRegion,
    /// No bytes of the client's memory.
    pulse: RemoteSlice,
    /// The tail word when it came, in the log's byte order.
    tail: u64,
    iwarp: bool,
    asked: Option<Instant>,
}

impl Server {
    /// Waits for something to happen, a tick at most, and sees to it.
    fn turn(&mut self, endpoint: &Endpoint) -> Outcome {
        let mut fds = vec![PollFd::new(endpoint.as_fd(), PollFlags::POLLIN)];
        if let Log::Written(client) = &self.log {
            fds.push(PollFd::new(client.conn.event_fd(), PollFlags::POLLIN));
        }
        match poll(&mut fds, PollTimeout::try_from(TICK)?) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(err) => return Err(err.into()),
        }

        if let Log::Written(client) = &mut self.log {
            if let Some(reason) = client.gone() {
                self.fence(&reason)?;
            }
        }
        let cfg = ConnCfg::new();
        match endpoint.try_next_request(&cfg) {
            Ok(None) => {}
            Ok(Some(request)) => {
                if self.has_client() {
                    self.fence("a newer client takes over")?;
                }
                if let Err(err) = self.admit(request) {
                    say(format_args!("client {}: not admitted: {err}", self.served));
                    self.fence("not admitted")?;
                }
            }
            // What is wrong with one client is no reason to end.
            Err(err) => say(format_args!("a request was rejected: {err}")),
        }
        Ok(())
    }

    fn has_client(&self) -> bool {
        matches!(self.log, Log::Written(_))
    }

    /// Lets a client write.
    fn admit(&mut self, request: rpma::ConnRequest) -> Outcome {
        let pulse = Request::decode(request.private_data());
        let pulse = pulse
            .ok_or("its request is none for a log")?
            .pulse
            .slice(..0)?;
        let from = request.peer_addr().map_or(String::new(), |a| a.to_string());
        let region = self.register()?;
        self.served += 1;
        let number = self.served;
        let Contents {
            header,
            tail,
            records,
            ..
        } = self.contents;
        let welcome = Welcome::encode(self.cfg, &region.descriptor(), header.id, tail, records);
        let conn = match request.connect(Some(&welcome)) {
            Ok(conn) => conn,
            Err(err) => {
                self.log = Log::Idle(region.close().map_err(|(_, err)| err)?);
                return Err(err.into());
            }
        };
        let client = Box::new(Client {
            number,
            conn,
            region,
            pulse,
            tail: tail.to_le(),
            iwarp: self.peer.capabilities().transport.is_iwarp(),
            asked: None,
        });
        // From here on it can write, whatever happens: it has to be fenced off.
        let established = client.conn.wait_established(Duration::from_secs(5));
        self.log = Log::Written(client);
        established?;
        say(format_args!(
            "client {number} at {from}: may append at record {records}"
        ));
        Ok(())
    }

    /// Keeps the client's writes out, those that are under way too; then looks at what it left.
    fn fence(&mut self, reason: &str) -> Outcome {
        let client = match std::mem::replace(&mut self.log, Log::Lost) {
            Log::Written(client) => *client,
            other => {
                self.log = other;
                return Ok(());
            }
        };
        let Client {
            number,
            conn,
            region,
            ..
        } = client;
        // Closing destroys the queue pair, in any case: what it says is of interest only.
        if let Err(err) = conn.close() {
            say(format_args!("client {number}: {err}"));
        }
        let memory = region.close().map_err(|(_, err)| err)?;
        say(format_args!("client {number}: gone: {reason}"));
        let before = self.contents.records;
        // Nobody else may write to a damaged log: the error ends the server.
        self.contents = store::contents(&memory)?.map_err(|damage| format!("DAMAGED: {damage}"))?;
        let Some(new) = self.contents.records.checked_sub(before) else {
            return Err("DAMAGED: the tail went back".into());
        };
        say(format_args!("{} ({new} new)", valid(&self.contents)));
        // Nothing to wait for on persistent memory; a plain file gets to its disk so.
        memory.flush_to_media(..self.contents.tail)?;
        self.log = Log::Idle(memory);
        Ok(())
    }

    fn register(&mut self) -> Outcome<LocalRegion> {
        let memory = match std::mem::replace(&mut self.log, Log::Lost) {
            Log::Idle(memory) => memory,
            other => {
                self.log = other;
                return Err("the log is registered already".into());
            }
        };
        let mut usage = Usage::WRITE_DST | Usage::FLUSH_VISIBILITY;
        usage.set(Usage::FLUSH_PERSISTENT, self.cfg.direct_write_to_pmem());
        self.peer
            .try_register(memory, usage)
            .map_err(|(memory, err)| {
                self.log = Log::Idle(memory);
                err.into()
            })
    }
}

impl Client {
    /// Why it is gone, if it is.
    fn gone(&mut self) -> Option<String> {
        match self.conn.try_next_event() {
            Ok(Some(event)) if event.kind() == ConnEventKind::Closed => {
                return Some("its connection was closed".into());
            }
            Ok(Some(event)) if event.kind() == ConnEventKind::Lost => {
                return Some("its connection was lost".into());
            }
            Ok(_) => {}
            Err(err) => return Some(err.to_string()),
        }
        self.feel_pulse().err().map(|err| err.to_string())
    }

    /// Asks whether the client's device is there, and takes its answers.
    fn feel_pulse(&mut self) -> Outcome {
        match self.asked {
            // On iWARP the side that asked for the connection has to be the first to send (RFC
            // 5044, section 7.1.2): has it?
            None if self.iwarp
                && self.region.load_u64(TAIL_AT, Ordering::Relaxed)? == self.tail => {}
            None => {
                let pulse = &self.pulse;
                self.conn.write_inline(&[], pulse, Signal::Always(0))?;
                self.asked = Some(Instant::now());
            }
            Some(asked) => {
                if let Some(wc) = self.conn.cq().poll_one()? {
                    wc.ok()
                        .map_err(|err| format!("it does not answer: {err}"))?;
                    self.asked = None;
                } else if asked.elapsed() > Duration::from_secs(60) {
                    return Err("it does not answer, and the device keeps asking".into());
                }
            }
        }
        Ok(())
    }
}

/// How the clients will flush.
fn methods(region: &LocalRegion, pmem: bool) -> &'static str {
    let kind = match pmem {
        true => FlushKind::Persistent,
        false => FlushKind::Visibility,
    };
    let native = region.methods().contains(match kind {
        FlushKind::Persistent => FlushMethods::NATIVE_PERSISTENT,
        FlushKind::Visibility => FlushMethods::NATIVE_VISIBILITY,
    });
    match (kind, native) {
        (FlushKind::Persistent, true) => "to persistence, natively where the client can",
        (FlushKind::Persistent, false) => "to persistence, by reading",
        (FlushKind::Visibility, true) => "to visibility, natively where the client can",
        (FlushKind::Visibility, false) => "to visibility, by reading",
    }
}
