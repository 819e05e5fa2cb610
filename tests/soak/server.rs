//! The owner of the logs: one process, one thread, many clients, and none of them trusted.
//!
//! Each log has one writer at a time; before another is let in, the old one is fenced off as in
//! `examples/remote_log`: its queue pair destroyed, its key revoked, the log read. What a client
//! may hold is bounded in number (one connection per log) and in time: a handshake that does not
//! end, silence, a device that does not answer, all of them end with the fence.

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
    CmEventKind, ConnCfg, ConnEventKind, ConnRequest, Connection, Endpoint, LocalRegion, Memory,
    Peer, PeerCfg, RemoteSlice, Signal, Usage,
};

use crate::{
    Outcome,
    board::{Board, Count, Mode},
    format::{Contents, TAIL_AT},
    hello::Welcome,
    listener::{self, Listener},
    log::{self, Acks, Answer, Request},
    pages::{self, Journal},
    store,
};

const TICK: Duration = Duration::from_millis(250);
/// For the handshake.
const PATIENCE: Duration = Duration::from_secs(20);
/// Which of the beats is the server's.
pub const BEAT: u64 = 63;

#[derive(clap::Args)]
pub struct Args {
    #[arg(long)]
    addr: String,
    #[arg(long)]
    port: u16,
    /// Where board and logs are
    #[arg(long)]
    folder: PathBuf,
    /// The number of logs
    #[arg(long)]
    slots: u64,
    /// The milliseconds after which a client that appends nothing is given up
    #[arg(long)]
    idle: u64,
    /// Keep a region whenever a client goes: the check must notice
    #[arg(long)]
    leak: bool,
}

pub fn run(args: &Args) -> Outcome {
    let peer = Peer::local(&args.addr)?;
    let slots = (0..args.slots)
        .map(|slot| Slot::create(args, slot))
        .collect::<Outcome<Vec<Slot>>>()?;
    let board = Board::open(&args.folder.join("board"))?;
    let mut listener = Listener::new(&peer, &args.addr, args.port, &board)?;
    let mut server = Server {
        board,
        idle: Duration::from_millis(args.idle),
        leak: args.leak,
        peer,
        slots,
    };
    std::fs::write(args.folder.join("listening"), "")?;
    let result = server.serve(&mut listener);
    match listener.is_deaf() {
        true => listener::sleep_for_good(&server.board, result),
        false => result,
    }
}

struct Server {
    peer: Peer,
    board: Board,
    idle: Duration,
    leak: bool,
    slots: Vec<Slot>,
}

struct Slot {
    state: State,
    contents: Contents,
    acks: Acks,
    journal: Journal,
    path: PathBuf,
    pages: PathBuf,
}

enum State {
    Idle(Memory),
    Written(Box<Client>),
    /// In between, and after a failure that ends the server.
    Lost,
}

struct Client {
    conn: Connection,
    region: LocalRegion,
    pages: LocalRegion,
    /// No bytes of the client's memory: writing them asks whether its device is there.
    pulse: RemoteSlice,
    established: bool,
    since: Instant,
    tail: u64,
    wrote: bool,
    last_progress: Instant,
    asked: Option<Instant>,
}

impl Slot {
    fn create(args: &Args, slot: u64) -> Outcome<Slot> {
        let path = log::path(&args.folder, slot);
        let (memory, contents) = store::open(&path, log::CAPACITY, true)?;
        let pages = pages::path(&args.folder, slot);
        Memory::create_file(&pages, pages::AREA)?;
        Ok(Slot {
            state: State::Idle(memory),
            contents,
            acks: Acks::create(&args.folder, slot)?,
            journal: Journal::create(&args.folder, slot)?,
            path,
            pages,
        })
    }
}

impl Server {
    fn serve(&mut self, listener: &mut Listener) -> Outcome {
        while !matches!(self.board.mode(), Mode::Quit | Mode::Sleep) {
            listener.watch(&self.peer, &self.board)?;
            self.turn(&listener.endpoint)?;
        }
        for slot in 0..self.slots.len() {
            self.fence(slot, "the end", None)?;
        }
        Ok(())
    }

    /// Waits for something to happen, a tick at most, and sees to it.
    fn turn(&mut self, endpoint: &Endpoint) -> Outcome {
        self.board.beat(BEAT);
        let mut fds = vec![PollFd::new(endpoint.as_fd(), PollFlags::POLLIN)];
        fds.extend(self.slots.iter().filter_map(|slot| match &slot.state {
            State::Written(client) => Some(PollFd::new(client.conn.event_fd(), PollFlags::POLLIN)),
            _ => None,
        }));
        match poll(&mut fds, PollTimeout::try_from(TICK)?) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(err) => return Err(err.into()),
        }
        for slot in 0..self.slots.len() {
            let State::Written(client) = &mut self.slots[slot].state else {
                continue;
            };
            if let Some((reason, count)) = client.gone(&self.board, self.idle) {
                self.fence(slot, &reason, count)?;
            }
        }
        // Not all at once: the clients that are there have their turn too.
        for _ in 0..8 {
            match endpoint.try_next_request(&ConnCfg::new().rq_size(1)) {
                Ok(Some(request)) => self.answer(request)?,
                Ok(None) => break,
                // A queue pair that cannot be had now: what is wrong with one client is no reason
                // to end.
                Err(err) => {
                    self.board.add(Count::Rejected, 1);
                    self.board.reason(&err);
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, request: ConnRequest) -> Outcome {
        let Some(asked) = Request::decode(request.private_data(), self.slots.len() as u64) else {
            self.board.add(Count::Rejected, 1);
            // Dropping rejects too; both ways have their turn.
            if self.board.get(Count::Rejected) % 2 == 0 {
                if let Err(err) = request.reject(Some(b"no log")) {
                    self.board.reason(&err);
                }
            }
            return Ok(());
        };
        let slot = asked.slot as usize;
        self.fence(slot, "a newer client", Some(Count::FencedTakeover))?;
        self.renew(slot)?;
        self.admit(slot, &asked, request)
    }

    /// Makes the log anew where there is too little room left. Nobody writes to it now.
    fn renew(&mut self, slot: usize) -> Outcome {
        let place = &mut self.slots[slot];
        if place.contents.tail + log::ROOM <= log::CAPACITY {
            return Ok(());
        }
        let (memory, contents) = store::open(&place.path, log::CAPACITY, true)?;
        place.acks.set(0)?;
        place.state = State::Idle(memory);
        place.contents = contents;
        self.board.add(Count::Renewed, 1);
        Ok(())
    }

    fn admit(&mut self, slot: usize, asked: &Request, request: ConnRequest) -> Outcome {
        let place = &mut self.slots[slot];
        let memory = match std::mem::replace(&mut place.state, State::Lost) {
            State::Idle(memory) => memory,
            _ => return Err(format!("log {slot} is not idle").into()),
        };
        let usage = Usage::WRITE_DST | Usage::READ_SRC | Usage::FLUSH_VISIBILITY;
        let pages = Memory::map_file(&place.pages)?;
        let pages = self.peer.register(pages, usage)?;
        let region = match self.peer.try_register(memory, usage) {
            Ok(region) => region,
            Err((memory, err)) => {
                place.state = State::Idle(memory);
                return Err(err.into());
            }
        };
        let Contents {
            header,
            tail,
            records,
            ..
        } = place.contents;
        // The record that was under way counts: the client goes on behind it.
        place.acks.set(records)?;
        let pulse = asked.hello.pulse.slice(..0)?;
        let cfg = PeerCfg::new();
        let welcome = Welcome::encode(cfg, &region.descriptor(), header.id, tail, records);
        let answer = Answer::encode(&welcome, &pages.descriptor());
        let conn = match request.connect(Some(&answer)) {
            Ok(conn) => conn,
            Err(err) => {
                // The peer may be gone already.
                self.board.reason(&err);
                place.state = State::Idle(region.close().map_err(|(_, err)| err)?);
                return Ok(());
            }
        };
        let now = Instant::now();
        place.state = State::Written(Box::new(Client {
            conn,
            region,
            pages,
            pulse,
            established: false,
            since: now,
            tail,
            wrote: false,
            last_progress: now,
            asked: None,
        }));
        self.board.set_live(slot as u64, true);
        self.board.add(Count::Admitted, 1);
        Ok(())
    }

    /// Keeps the client's writes out, those that are under way too; then looks at what it left.
    fn fence(&mut self, slot: usize, reason: &str, count: Option<Count>) -> Outcome {
        let place = &mut self.slots[slot];
        let client = match std::mem::replace(&mut place.state, State::Lost) {
            State::Written(client) => *client,
            other => {
                place.state = other;
                return Ok(());
            }
        };
        let Client {
            conn,
            region,
            pages,
            ..
        } = client;
        if self.leak {
            let memory = Memory::anonymous(4096)?;
            std::mem::forget(self.peer.register(memory, Usage::WRITE_DST)?);
        }
        if let Err(err) = conn.close() {
            self.board.reason(&err);
        }
        let memory = region.close().map_err(|(_, err)| err)?;
        let pages = pages.close().map_err(|(_, err)| err)?;
        let before = place.contents.records;
        // A damaged log, or a record that is not there, ends the server, and with it the run.
        place.contents = match store::contents(&memory)? {
            Ok(contents) => contents,
            Err(damage) => {
                let bytes = log::damage(slot as u64, &memory, place.acks.get()?)?;
                let words = format!("DAMAGED: log {slot} ({reason}): {damage}{bytes}");
                return Err(words.into());
            }
        };
        pages::check(slot as u64, &pages, &place.journal)?;
        self.board.add(Count::Validations, 1);
        if place.contents.records < before {
            return Err(format!("DAMAGED: the tail of log {slot} went back").into());
        }
        log::accept(slot as u64, &place.contents, place.acks.get()?)?;
        place.state = State::Idle(memory);
        self.board.set_live(slot as u64, false);
        self.board.add(Count::Fenced, 1);
        if let Some(count) = count {
            self.board.add(count, 1);
        }
        Ok(())
    }
}

impl Client {
    /// Why it is gone, if it is, or has to go.
    fn gone(&mut self, board: &Board, idle: Duration) -> Option<(String, Option<Count>)> {
        loop {
            match self.conn.try_next_event() {
                Ok(None) => break,
                Ok(Some(event)) => match (event.kind(), event.cm_kind()) {
                    (ConnEventKind::Established, _) => {
                        self.established = true;
                        self.last_progress = Instant::now();
                    }
                    (ConnEventKind::Unknown, CmEventKind::ADDR_CHANGE) => {}
                    (kind, _) => return Some((kind.to_string(), None)),
                },
                Err(err) => return Some((err.to_string(), None)),
            }
        }
        if !self.established {
            let late = self.since.elapsed() > PATIENCE;
            return late.then(|| ("no handshake".into(), Some(Count::FencedSilent)));
        }
        let tail = match self.region.load_u64(TAIL_AT, Ordering::Acquire) {
            Ok(tail) => u64::from_le(tail),
            Err(err) => return Some((err.to_string(), None)),
        };
        if tail != self.tail {
            self.tail = tail;
            self.wrote = true;
            self.last_progress = Instant::now();
        } else if self.last_progress.elapsed() > idle {
            return Some(("silent".into(), Some(Count::FencedSilent)));
        }
        self.feel_pulse(board)
            .err()
            .map(|err| (err.to_string(), Some(Count::FencedUnanswered)))
    }

    /// Asks whether the client's device is there, and takes its answers.
    fn feel_pulse(&mut self, board: &Board) -> Outcome {
        match self.asked {
            // On iWARP the side that asked for the connection has to be the first to send (RFC
            // 5044, section 7.1.2): has it?
            None if !self.wrote => {}
            None => {
                self.conn
                    .write_inline(&[], &self.pulse, Signal::Always(0))?;
                self.asked = Some(Instant::now());
            }
            Some(_) => {
                // How long the device asks is bounded; where it is not, silence ends it.
                if let Some(wc) = self.conn.cq().poll_one()? {
                    board.completion(wc.status());
                    wc.ok()?;
                    self.asked = None;
                }
            }
        }
        Ok(())
    }
}
