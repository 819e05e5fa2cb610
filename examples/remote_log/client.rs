//! The writer.

use std::{
    path::PathBuf,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use rpma::{
    Completion, ConnCfg, ConnEventKind, ConnRequest, Connection, FlushKind, FlushMethod,
    LocalRegion, Memory, Peer, RemoteSlice, Signal, Usage, Wait, WcOpcode,
};

use crate::{
    Outcome,
    format::{self, RECORD_HEADER, TAIL_AT},
    hello::{Request, Welcome},
    report::{Times, say, table},
};

/// The device gives up on a silent peer long before.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub struct Args {
    /// The server's address: that of a network interface with an RDMA device, never 127.0.0.1
    #[arg(long)]
    addr: String,
    /// The server's port
    #[arg(long, default_value = "7204")]
    port: String,
    /// How many records to append
    #[arg(long, default_value_t = 2000)]
    records: u64,
    /// The bytes that a record takes in the log, its 16-byte header included
    #[arg(long, default_value_t = 256)]
    size: usize,
    /// How the four operations of a commit are posted
    #[arg(long, value_enum, default_value_t = Doorbells::One)]
    doorbells: Doorbells,
    /// How flushes are done
    #[arg(long, value_enum, default_value_t = Method::Auto)]
    flush: Method,
    /// Keep the number of the log's records, as far as their commit was acknowledged, in this file
    #[arg(long)]
    acks: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Doorbells {
    /// As one batch, and waited for once
    One,
    /// One by one; waits for the record to be flushed, then for the tail
    Four,
    /// By turns, to be compared
    Both,
}

#[derive(Clone, Copy, ValueEnum)]
enum Method {
    /// Natively where device and region have it, else by reading
    Auto,
    /// Natively, or not at all
    Native,
    /// By a small read behind the write
    Read,
}

pub fn run(args: &Args) -> Outcome {
    let mut log = RemoteLog::open(args)?;
    let acks = args.acks.as_ref().map(Memory::map_file).transpose()?;
    let payload = args
        .size
        .checked_sub(RECORD_HEADER)
        .filter(|_| args.size % 8 == 0)
        .ok_or("--size: a multiple of 8, 16 at least")?;
    let mut payload = vec![0; payload];

    let bar = progress_bar(args.records);
    let mut times = [Times::new("one doorbell")?, Times::new("four doorbells")?];
    let mut result = Ok(());
    for n in 0..args.records {
        let four = match args.doorbells {
            Doorbells::One => false,
            Doorbells::Four => true,
            Doorbells::Both => n % 2 == 1,
        };
        fill(&mut payload, log.next);
        let start = Instant::now();
        result = log.append(&payload, four);
        if result.is_err() {
            break;
        }
        times[usize::from(four)].add(start.elapsed());
        if let Some(acks) = &acks {
            acks.store_u64(0, log.next, Ordering::Release)?;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    log.say_methods();
    table(&times);
    result?;
    log.close()
}

/// The log as its writer has it.
struct RemoteLog {
    conn: Connection,
    welcome: Welcome,
    kind: FlushKind,
    /// The 8 bytes that decide what is committed.
    tail_word: RemoteSlice,
    tail: u64,
    next: u64,
    record: Vec<u8>,
    staging: LocalRegion,
    last: Option<Completion>,
    _pulse: LocalRegion,
}

impl RemoteLog {
    fn open(args: &Args) -> Outcome<RemoteLog> {
        let peer = Peer::remote(&args.addr)?;
        let staging = peer.register(Memory::anonymous(args.size.max(1))?, Usage::WRITE_SRC)?;
        // The server writes nothing there, but sees that it could.
        let pulse = peer.register(Memory::anonymous(8)?, Usage::WRITE_DST)?;

        let cfg = ConnCfg::new()
            .timeout(Duration::from_secs(10))
            .flush_method(match args.flush {
                Method::Auto => FlushMethod::Auto,
                Method::Native => FlushMethod::Native,
                Method::Read => FlushMethod::ReadAfterWrite,
            });
        let request = ConnRequest::new(&peer, &args.addr, &args.port, &cfg)?;
        let conn = request.connect(Some(&Request::encode(&pulse.descriptor())))?;
        conn.wait_established(Duration::from_secs(30))?;
        let welcome = Welcome::decode(conn.private_data()).ok_or("this server has no log")?;
        conn.apply_peer_cfg(&welcome.cfg);

        // Persistence needs both: memory that is persistent, and a server that vouches for the way
        // to it.
        let persistent = welcome.cfg.direct_write_to_pmem();
        let kind = match persistent && welcome.log.can_flush(FlushKind::Persistent) {
            true => FlushKind::Persistent,
            false => FlushKind::Visibility,
        };
        say(format_args!(
            "device {}, log of {} bytes at {}: appending at record {}",
            peer.device_name(),
            welcome.log.len(),
            conn.peer_addr().map_or(String::new(), |a| a.to_string()),
            welcome.next
        ));
        Ok(RemoteLog {
            kind,
            tail_word: welcome.log.slice(TAIL_AT..TAIL_AT + 8)?,
            tail: welcome.tail,
            next: welcome.next,
            record: Vec::with_capacity(args.size),
            staging,
            last: None,
            _pulse: pulse,
            conn,
            welcome,
        })
    }

    /// Appends a record. When this returns it is committed.
    fn append(&mut self, payload: &[u8], four_doorbells: bool) -> Outcome {
        format::encode_record(&mut self.record, self.welcome.id, self.next, payload);
        let len = self.record.len() as u64;
        let end = self.tail + len;
        let slot = self.welcome.log.slice(self.tail..end);
        let slot = slot.map_err(|_| format!("the log is full at record {}", self.next))?;
        self.staging.write_at(0, &self.record)?;

        let tail = end.to_le_bytes();
        if four_doorbells {
            self.conn
                .write(&self.staging.slice(..len)?, &slot, Signal::OnError(0))?;
            self.conn.flush(&slot, self.kind, Signal::Always(1))?;
            self.wait(1)?;
            self.conn
                .atomic_write(&self.tail_word, tail, Signal::OnError(2))?;
            self.conn
                .flush(&self.tail_word, self.kind, Signal::Always(3))?;
        } else {
            // The order in the batch is the order at the server: the tail is not written before the
            // record is flushed, and not at all when that fails.
            let mut batch = self.conn.batch();
            batch.write(&self.staging.slice(..len)?, &slot, Signal::OnError(0))?;
            batch.flush(&slot, self.kind, Signal::OnError(1))?;
            batch.atomic_write(&self.tail_word, tail, Signal::OnError(2))?;
            batch.flush(&self.tail_word, self.kind, Signal::Always(3))?;
            batch.submit()?;
        }
        self.wait(3)?;
        self.tail = end;
        self.next += 1;
        Ok(())
    }

    /// Waits for the completion with this number: all that was posted before it is done then, too.
    fn wait(&mut self, number: u64) -> Outcome {
        let mut buf = [Completion::default()];
        let taken = self
            .conn
            .cq()
            .take(&mut buf, Wait::new().timeout(TIMEOUT))?;
        let Some(wc) = taken.first() else {
            return Err(format!("record {}: nothing after {TIMEOUT:?}", self.next).into());
        };
        if !wc.is_success() {
            let status = wc.status();
            let what = ["write", "flush", "tail's write", "tail's flush"];
            let what = what.get(wc.wr_id() as usize).unwrap_or(&"operation");
            return Err(format!("record {}: its {what} failed: {status}", self.next).into());
        }
        if wc.wr_id() != number {
            return Err(format!("record {}: an unexpected completion", self.next).into());
        }
        self.last = Some(*wc);
        Ok(())
    }

    /// How it was done, as the device tells it.
    fn say_methods(&self) {
        let flush = match self.last.map(|wc| wc.opcode()) {
            Some(WcOpcode::FLUSH) => "native flush",
            Some(WcOpcode::RDMA_READ) => "read after write",
            Some(_) | None => "none yet",
        };
        let kind = match self.kind {
            FlushKind::Persistent => "to persistence",
            FlushKind::Visibility => "to visibility",
        };
        let atomic = match self.conn.has_native_atomic_write() {
            true => "native atomic write",
            false => "inline write",
        };
        say(format_args!(
            "flush method: {flush} ({kind}); tail by {atomic}; device {}",
            self.conn.peer().device_name()
        ));
    }

    fn close(self) -> Outcome {
        self.conn.disconnect()?;
        let event = self.conn.next_event_timeout(Duration::from_secs(5))?;
        if event.is_some_and(|event| event.kind() != ConnEventKind::Closed) {
            return Err("the connection ended otherwise than by being closed".into());
        }
        Ok(self.conn.close()?)
    }
}

/// Something to recognise, then bytes that differ from record to record.
fn fill(payload: &mut [u8], sequence: u64) {
    let mut state = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for chunk in payload.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
    let name = format!("record {sequence:>9} ");
    for (byte, letter) in payload.iter_mut().zip(name.bytes()) {
        *byte = letter;
    }
}

/// Shown on a terminal, invisible elsewhere.
fn progress_bar(records: u64) -> ProgressBar {
    let bar = ProgressBar::new(records);
    let style = "{bar:40} {pos}/{len} records, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}
