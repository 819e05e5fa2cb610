//! Numbers that all processes share: in a file in memory, so that a process that is killed leaves
//! what it counted.

use std::{
    path::Path,
    sync::atomic::Ordering,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rpma::{Error, Memory, WcStatus};

use crate::Outcome;

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident: $label:literal,)*) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Count {
            $($(#[$doc])* $name,)*
        }

        impl Count {
            /// All of them, with the words of the report.
            pub const ALL: &[(Count, &str)] = &[$((Count::$name, $label),)*];
        }
    };
}

counts! {
    Acknowledged: "records appended and acknowledged",
    Recovered: "records read and checked after connecting",
    ReadBack: "records read back and checked",
    Crossed: "short records across pages, written and acknowledged",
    CrossedRead: "short records across pages, read and checked",
    Operations: "operations completed (writes, flushes, atomic writes, reads)",
    Connections: "connections established",
    /// By the client, in good order.
    Closed: "sessions closed by disconnecting",
    Dropped: "sessions dropped without disconnecting",
    Broken: "sessions that broke off",
    NothingCame: "waits for a completion that never came",
    Refused: "attempts to connect that failed",
    Kills: "clients killed by SIGKILL",
    Silent: "clients that went silent",
    Floods: "floods",
    FloodRequests: "requests of floods",
    Unanswered: "of them never looked at again",
    Admitted: "clients admitted by the server",
    Rejected: "requests rejected by the server",
    /// By the server.
    Fenced: "times that the server took a client's rights back",
    FencedSilent: "of them for silence",
    FencedUnanswered: "of them for no answer of the device",
    FencedTakeover: "of them for a newer client",
    Validations: "logs validated, on the server and by clients",
    Renewed: "logs that were full and made anew",
    /// By the kernel's driver: see server.rs.
    Deaf: "times that the driver closed the listener and the server listened anew",
    Phases: "changes of the network",
    CutBoth: "cuts of the link",
    CutOneWay: "cuts of one direction",
    CutForGood: "cuts for good, of one client",
    LongestHold: "longest time until a client cut for good held nothing (ms)",
    /// The run itself waits 50 ms between its steps. All others stood still then, too.
    LongestStall: "longest time that the machine stood still (ms)",
}

/// What all are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Run,
    /// Clients end, the server stays.
    Pause,
    Quit,
    /// The server sleeps for good: its end would have the driver fail.
    Sleep,
}

const MODE: u64 = 0;
const BEATS: u64 = 1;
const MOST_BEATS: u64 = 64;
const LIVE: u64 = BEATS + MOST_BEATS;
const COUNTS: u64 = LIVE + MOST_BEATS;
const WORST: u64 = COUNTS + 64;
const STATUSES: u64 = WORST + 64;
const MOST_STATUSES: u64 = 32;
const REASONS: u64 = STATUSES + MOST_STATUSES;
const PORT: u64 = REASONS + 64;
const WORDS: u64 = PORT + 1;

/// Why a connection was not made, or ended: places in the list of reasons.
pub const REASON_NAMES: &[&str] = &[
    "rejected",
    "unreachable",
    "connect error",
    "closed",
    "other event",
    "timed out",
    "address or route not resolved",
    "provider said no",
    "other error",
];

#[derive(Debug)]
pub struct Board(Memory);

impl Board {
    pub fn create(path: &Path) -> Outcome<Board> {
        Ok(Board(Memory::create_file(path, WORDS as usize * 8)?))
    }

    pub fn open(path: &Path) -> Outcome<Board> {
        let memory = Memory::map_file(path)?;
        if memory.len() as u64 != WORDS * 8 {
            return Err("the board has another size: of another version?".into());
        }
        Ok(Board(memory))
    }

    // The indices are constants below WORDS, and the length was checked: an error would be a
    // mistake here, and a count is not worth an end.
    fn load(&self, word: u64) -> u64 {
        self.0.load_u64(word * 8, Ordering::Acquire).unwrap_or(0)
    }

    fn store(&self, word: u64, value: u64) {
        let _ = self.0.store_u64(word * 8, value, Ordering::Release);
    }

    fn add_to(&self, word: u64, n: u64) {
        let _ = self.0.fetch_add_u64(word * 8, n, Ordering::AcqRel);
    }

    pub fn mode(&self) -> Mode {
        match self.load(MODE) {
            0 => Mode::Run,
            1 => Mode::Pause,
            2 => Mode::Quit,
            _ => Mode::Sleep,
        }
    }

    pub fn set_mode(&self, mode: Mode) {
        self.store(MODE, mode as u64);
    }

    /// Where the server listens now.
    pub fn port(&self) -> u64 {
        self.load(PORT)
    }

    pub fn set_port(&self, port: u16) {
        self.store(PORT, port.into());
    }

    pub fn add(&self, count: Count, n: u64) {
        self.add_to(COUNTS + count as u64, n);
    }

    pub fn get(&self, count: Count) -> u64 {
        self.load(COUNTS + count as u64)
    }

    pub fn raise(&self, count: Count, to: u64) {
        if self.get(count) < to {
            self.store(COUNTS + count as u64, to);
        }
    }

    pub fn completion(&self, status: WcStatus) {
        self.add_to(
            STATUSES + u64::from(status.as_raw()).min(MOST_STATUSES - 1),
            1,
        );
    }

    /// Why a connection failed or ended. What should be rare is said, too.
    pub fn reason(&self, err: &Error) {
        use rpma::CmEventKind as Kind;
        let place = match err {
            Error::Connection { event, .. } => match *event {
                Kind::REJECTED => 0,
                Kind::UNREACHABLE => 1,
                Kind::CONNECT_ERROR => 2,
                Kind::DISCONNECTED => 3,
                Kind::ADDR_ERROR | Kind::ROUTE_ERROR => 6,
                _ => 4,
            },
            Error::TimedOut { .. } => 5,
            Error::NoDevice { .. } | Error::Resolve { .. } => 6,
            Error::Provider { .. } => 7,
            _ => 8,
        };
        if place > 6 {
            crate::say(format_args!("note: {err}"));
        }
        self.add_to(REASONS + place, 1);
    }

    /// Completions with an error, by kind.
    pub fn statuses(&self) -> Vec<(String, u64)> {
        (1..MOST_STATUSES)
            .map(|raw| (raw, self.load(STATUSES + raw)))
            .filter(|(_, n)| *n > 0)
            .map(|(raw, n)| (format!("{:?}", WcStatus::from_raw(raw as u32)), n))
            .collect()
    }

    pub fn reasons(&self) -> Vec<(String, u64)> {
        REASON_NAMES
            .iter()
            .zip(REASONS..)
            .map(|(name, word)| ((*name).to_owned(), self.load(word)))
            .filter(|(_, n)| *n > 0)
            .collect()
    }

    /// "I am alive", of process number `who`.
    pub fn beat(&self, who: u64) {
        let last = self.load(BEATS + who);
        let now = now();
        self.store(BEATS + who, now);
        let gap = now.saturating_sub(last);
        if last > 0 && gap > self.load(WORST + who) {
            self.store(WORST + who, gap);
        }
    }

    /// Forgets the last beat, so that a new process has its time to start.
    pub fn start_beat(&self, who: u64) {
        self.store(BEATS + who, now());
    }

    pub fn since_beat(&self, who: u64) -> Duration {
        Duration::from_millis(now().saturating_sub(self.load(BEATS + who)))
    }

    /// The longest time that any process did not beat.
    pub fn longest_gap(&self) -> Duration {
        let worst = (0..MOST_BEATS).map(|who| self.load(WORST + who)).max();
        Duration::from_millis(worst.unwrap_or(0))
    }

    /// Does the server hold a connection for this log?
    pub fn is_live(&self, slot: u64) -> bool {
        self.load(LIVE + slot) != 0
    }

    pub fn set_live(&self, slot: u64, live: bool) {
        self.store(LIVE + slot, u64::from(live));
    }
}

/// Milliseconds; the same for all processes of a machine.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

#[test]
fn counts_of_two_processes_add_up() {
    let path = std::env::temp_dir().join(format!("rpma-soak-board-{}", std::process::id()));
    let one = Board::create(&path).unwrap();
    let other = Board::open(&path).unwrap();
    one.add(Count::Kills, 2);
    other.add(Count::Kills, 3);
    other.add(Count::LongestHold, 7);
    other.completion(WcStatus::WR_FLUSH_ERR);
    assert_eq!(one.get(Count::Kills), 5);
    assert_eq!(one.get(Count::LongestHold), 7);
    assert_eq!(one.statuses(), [("WR_FLUSH_ERR".to_owned(), 1)]);
    assert_eq!(one.mode(), Mode::Run);
    other.set_mode(Mode::Quit);
    assert_eq!(one.mode(), Mode::Quit);
    assert!((Count::ALL.len() as u64) <= WORST - COUNTS);
    std::fs::remove_file(&path).unwrap();
}
