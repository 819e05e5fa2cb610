//! One client after the other, in one process: connects, reads what is there, appends, reads back,
//! and ends in one of several ways. The process itself may be killed at any moment.

use std::{
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

use rpma::{
    ConnCfg, ConnEventKind, ConnRequest, Error, FlushKind, FlushMethod, LocalRegion, Memory, Peer,
    RemoteSlice, Signal, Usage, Wait,
};

use crate::{
    Outcome,
    board::{Board, Count, Mode},
    differs::Difference,
    format::{self, RECORDS_AT, TAIL_AT},
    hello::Welcome,
    link::{End, Link},
    log::{self, Acks, Answer, Request},
    pages::Pages,
    rng::Rng,
};

/// A device gives up before that, and so does TCP. But a failed queue pair of soft-iWARP never says
/// anything, nor does Soft-RoCE always when packets are lost: so no wait may be without end.
const PATIENCE: Duration = Duration::from_secs(20);
const PAGE: u64 = 4096;
/// The bytes that one read fetches at most.
const CHUNK: u64 = PAGE;

#[derive(clap::Args)]
pub struct Args {
    /// The server's address
    #[arg(long)]
    addr: String,
    #[arg(long)]
    folder: PathBuf,
    /// Which log, and whose beat
    #[arg(long)]
    slot: u64,
    #[arg(long)]
    seed: u64,
    /// Append without end, until something ends it
    #[arg(long)]
    steady: bool,
    /// Do nothing against faults of the device's driver: the check must notice
    #[arg(long)]
    no_workarounds: bool,
}

pub fn run(args: &Args) -> Outcome {
    let board = Board::open(&args.folder.join("board"))?;
    let acks = Acks::open(&args.folder, args.slot)?;
    let mut rng = Rng::new(args.seed, args.slot);
    while board.mode() == Mode::Run {
        board.beat(args.slot);
        let connected = connect(args, &board, &mut rng);
        let mut session = match connected {
            Ok(session) => session,
            Err(err) => {
                board.add(Count::Refused, 1);
                board.reason(&err);
                sleep(rng.millis(50..500));
                continue;
            }
        };
        match session.work(args, &board, &acks, &mut rng) {
            Ok(()) => {}
            Err(End::Broken) => board.add(Count::Broken, 1),
            Err(End::Wrong(wrong)) => return Err(wrong),
        }
        board.beat(args.slot);
        drop(session);
        sleep(rng.millis(0..200));
    }
    Ok(())
}

struct Session {
    link: Link,
    welcome: Welcome,
    file: PathBuf,
    pages: Pages,
    tail_word: RemoteSlice,
    /// Where the records begin, and where the next one goes.
    offsets: Vec<u64>,
    tail: u64,
    staging: LocalRegion,
    inbox: LocalRegion,
    scratch: Vec<u8>,
    record: Vec<u8>,
    _pulse: LocalRegion,
}

fn connect(args: &Args, board: &Board, rng: &mut Rng) -> Result<Session, Error> {
    let peer = Peer::remote(&args.addr)?;
    let staging = peer.register(Memory::anonymous(2 * PAGE as usize)?, Usage::WRITE_SRC)?;
    let inbox = peer.register(Memory::anonymous(CHUNK as usize)?, Usage::READ_DST)?;
    let pulse = peer.register(Memory::anonymous(8)?, Usage::WRITE_DST)?;
    let sq_size = rng.in_range(4..32);
    let cfg = ConnCfg::new()
        .timeout(Duration::from_secs(5))
        .sq_size(sq_size as u32)
        .device_workarounds(!args.no_workarounds)
        // 17 to 134 ms: packets that are lost are missed soon. Soft-RoCE takes 7 retries for
        // retries without end.
        .ack_timeout(rng.in_range(12..16) as u8)
        .retry_count(rng.in_range(4..7) as u8)
        .flush_method(*rng.one_of(&[FlushMethod::Auto, FlushMethod::ReadAfterWrite]));
    let request = ConnRequest::new(&peer, &args.addr, &board.port().to_string(), &cfg)?;
    board.beat(args.slot);
    let conn = request.connect(Some(&Request::encode(args.slot, &pulse.descriptor())))?;
    conn.wait_established(PATIENCE)?;
    board.beat(args.slot);
    board.add(Count::Connections, 1);
    let Answer { welcome, pages } =
        Answer::decode(conn.private_data()).ok_or(Error::BadDescriptor {
            what: "the server's",
            problem: "its answer is none",
        })?;
    conn.apply_peer_cfg(&welcome.cfg);
    Ok(Session {
        tail_word: welcome.log.slice(TAIL_AT..TAIL_AT + 8)?,
        offsets: Vec::new(),
        tail: RECORDS_AT,
        staging,
        inbox,
        scratch: Vec::new(),
        record: Vec::new(),
        file: log::path(&args.folder, args.slot),
        pages: Pages::new(&peer, &args.folder, args.slot, pages)?,
        link: Link {
            conn,
            // Some poll first, some block at once.
            wait: Wait::new()
                .polls(*rng.one_of(&[0, 20, 200]))
                .timeout(PATIENCE),
            sq_size,
        },
        _pulse: pulse,
        welcome,
    })
}

impl Session {
    fn work(&mut self, args: &Args, board: &Board, acks: &Acks, rng: &mut Rng) -> Result<(), End> {
        self.recover(args, board)?;
        self.pages.recover(&self.link, board, rng)?;
        let rounds = if args.steady {
            u64::MAX
        } else {
            rng.in_range(1..5)
        };
        for _ in 0..rounds {
            for _ in 0..rng.in_range(1..25) {
                if board.mode() != Mode::Run || self.full() {
                    return self.leave();
                }
                board.beat(args.slot);
                self.append(board, acks, rng)?;
            }
            self.read_back(board, rng)?;
            board.beat(args.slot);
            self.pages.work(&self.link, board, rng)?;
            if rng.percent(20) {
                sleep(rng.millis(1..300));
            }
        }
        match rng.in_range(0..100) {
            0..20 => self.be_silent(args, board, rng),
            20..40 => {
                board.add(Count::Dropped, 1);
                Ok(())
            }
            _ => {
                board.add(Count::Closed, 1);
                self.leave()
            }
        }
    }

    fn full(&self) -> bool {
        self.tail + 512 > self.welcome.log.len()
    }

    /// Reads all that is committed, and compares it byte by byte.
    fn recover(&mut self, args: &Args, board: &Board) -> Result<(), End> {
        let end = self.welcome.tail;
        let id = self.welcome.id;
        let mut bytes = Vec::with_capacity(end as usize);
        while (bytes.len() as u64) < end {
            board.beat(args.slot);
            let start = bytes.len() as u64;
            let piece = self.read(board, start, (end - start).min(CHUNK))?;
            bytes.extend_from_slice(&piece);
        }
        // What lies beyond was not read: zeros stand for it.
        bytes.resize(self.welcome.log.len() as usize, 0);
        let contents = match format::validate(&bytes) {
            Ok(contents) => contents,
            Err(damage) => {
                let mut words = format!("log {} as read: {damage}", args.slot);
                if let Some(differing) = log::first_differing(id, &bytes, self.welcome.next) {
                    words += &format!(
                        "\n{}",
                        self.differs(board, differing.sequence, differing.at, differing.found)
                    );
                }
                return Err(End::wrong(words));
            }
        };
        let expected = (self.welcome.next, self.welcome.tail, id);
        let found = (contents.records, contents.tail, contents.header.id);
        if found != expected {
            return Err(End::wrong(format!(
                "log {}: read {found:?} where the server says {expected:?}",
                args.slot
            )));
        }
        for sequence in 0..contents.records {
            log::record(id, sequence, &mut self.scratch, &mut self.record);
            let end = self.tail as usize + self.record.len();
            let found = bytes.get(self.tail as usize..end).unwrap_or_default();
            if found != self.record {
                let words = self.differs(board, sequence, self.tail, found.to_vec());
                return Err(End::wrong(words));
            }
            self.offsets.push(self.tail);
            self.tail += self.record.len() as u64;
        }
        board.add(Count::Recovered, contents.records);
        board.add(Count::Validations, 1);
        Ok(())
    }

    /// What is said of a record that is not what was written: with what a second read gives, and
    /// what the server's file holds.
    fn differs(&mut self, board: &Board, sequence: u64, at: u64, found: Vec<u8>) -> String {
        let id = self.welcome.id;
        log::record(id, sequence, &mut self.scratch, &mut self.record);
        let again = self.read(board, at, self.record.len() as u64);
        Difference::new(
            format!("record {sequence} of log {id:#x}"),
            at,
            &self.record,
        )
        .found::<End>("read", Ok(found))
        .found("read again", again)
        .and_in_file(&self.file)
        .to_string()
    }

    /// Appends a record. When this returns it is committed.
    fn append(&mut self, board: &Board, acks: &Acks, rng: &mut Rng) -> Result<(), End> {
        let sequence = self.offsets.len() as u64;
        log::record(
            self.welcome.id,
            sequence,
            &mut self.scratch,
            &mut self.record,
        );
        let len = self.record.len() as u64;
        let end = self.tail + len;
        let slot = self.welcome.log.slice(self.tail..end)?;
        // It crosses the end of a page.
        let from = PAGE - rng.in_range(1..len);
        self.staging.write_at(from, &self.record)?;
        let src = self.staging.slice(from..from + len)?;
        let tail = end.to_le_bytes();
        let kind = FlushKind::Visibility;
        let conn = &self.link.conn;
        if rng.percent(25) {
            conn.write(&src, &slot, Signal::OnError(0))?;
            conn.flush(&slot, kind, Signal::Always(1))?;
            self.link.completion(board, 1)?;
            conn.atomic_write(&self.tail_word, tail, Signal::OnError(2))?;
            conn.flush(&self.tail_word, kind, Signal::Always(3))?;
        } else {
            let mut batch = conn.batch();
            batch.write(&src, &slot, Signal::OnError(0))?;
            batch.flush(&slot, kind, Signal::OnError(1))?;
            batch.atomic_write(&self.tail_word, tail, Signal::OnError(2))?;
            batch.flush(&self.tail_word, kind, Signal::Always(3))?;
            batch.submit()?;
        }
        self.link.completion(board, 3)?;
        self.offsets.push(self.tail);
        self.tail = end;
        acks.set(sequence + 1).map_err(End::Wrong)?;
        board.add(Count::Acknowledged, 1);
        board.add(Count::Operations, 4);
        Ok(())
    }

    /// Reads some of the records again.
    fn read_back(&mut self, board: &Board, rng: &mut Rng) -> Result<(), End> {
        for _ in 0..rng.in_range(1..5) {
            let count = self.offsets.len() as u64;
            // More often the newest.
            let sequence = match rng.percent(50) {
                true => count.saturating_sub(1),
                false => rng.in_range(0..count),
            };
            let Some(at) = self.offsets.get(sequence as usize).copied() else {
                return Ok(());
            };
            log::record(
                self.welcome.id,
                sequence,
                &mut self.scratch,
                &mut self.record,
            );
            let found = self.read(board, at, self.record.len() as u64)?;
            if found != self.record {
                return Err(End::wrong(self.differs(board, sequence, at, found)));
            }
            board.add(Count::ReadBack, 1);
        }
        Ok(())
    }

    fn read(&self, board: &Board, at: u64, len: u64) -> Result<Vec<u8>, End> {
        let src = self.welcome.log.slice(at..at + len)?;
        Ok(self.link.read(board, &self.inbox, &[(src, 0)])?.concat())
    }

    /// Stays connected and does nothing. The server has to see to it that this ends.
    fn be_silent(&mut self, args: &Args, board: &Board, rng: &mut Rng) -> Result<(), End> {
        board.add(Count::Silent, 1);
        // Some are gone before they are given up.
        let until = Instant::now() + rng.millis(1000..25_000);
        while Instant::now() < until && board.mode() == Mode::Run {
            board.beat(args.slot);
            let event = self
                .link
                .conn
                .next_event_timeout(Duration::from_millis(500))?;
            if event.is_some_and(|event| event.kind() == ConnEventKind::Closed) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Ends the session in good order; how long the other side takes to answer is its business.
    fn leave(&mut self) -> Result<(), End> {
        self.link.conn.disconnect()?;
        self.link.conn.next_event_timeout(Duration::from_secs(2))?;
        Ok(())
    }
}
