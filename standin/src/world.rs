//! All state, behind one lock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::cm::{CmEventState, EventChannel, Id};
use crate::config::Config;
use crate::cq::{Channel, Cq};
use crate::device::{Context, Device};
use crate::lock::{Guard, Lock};
use crate::mr::{Mr, Pd};
use crate::qp::Qp;
use crate::srq::Srq;
use crate::table::Table;

/// Everything that exists.
pub struct World {
    pub config: Config,
    pub devices: Vec<Device>,
    pub contexts: Table<Context>,
    pub pds: Table<Pd>,
    pub mrs: Table<Mr>,
    pub channels: Table<Channel>,
    pub cqs: Table<Cq>,
    pub qps: Table<Qp>,
    pub srqs: Table<Srq>,
    pub event_channels: Table<EventChannel>,
    pub ids: Table<Id>,
    pub cm_events: Table<CmEventState>,
    /// Device lists, address lists: what a program must hand back.
    pub lists: HashMap<usize, &'static str>,
    /// Queue pairs by number.
    pub qp_numbers: HashMap<u32, usize>,
    /// Regions by key (without the low byte, which tells local from remote).
    pub mr_keys: HashMap<u32, usize>,
    pub transfers: Transfers,
    next: u32,
    next_sequence: u64,
    pub next_port: u16,
}

/// Whether and how transfers are executed.
#[derive(Default)]
pub struct Transfers {
    /// Not held: None. Held: how many may still pass.
    pub budget: Option<u64>,
    /// (how many work requests to go, status)
    pub injected: Vec<(u64, u32)>,
    /// How many work requests were executed.
    pub executed: u64,
}

static WORLD: Lock<World> = Lock::new(World::new);

/// The world, locked.
pub fn world() -> Guard<World> {
    WORLD.lock()
}

/// Wakes those who wait in [`wait_until`].
pub fn changed() {
    WORLD.notify();
}

/// Waits, up to the configured limit, until `ready`: for calls that block in the real library until
/// another thread has acknowledged its events. False: the real call would hang.
pub fn wait_until(mut guard: Guard<World>, ready: impl Fn(&World) -> bool) -> (Guard<World>, bool) {
    let deadline = Instant::now() + Duration::from_millis(guard.config.block_limit_ms);
    loop {
        if ready(&guard) {
            return (guard, true);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return (guard, false);
        }
        guard.wait(left);
    }
}

impl World {
    fn new() -> Self {
        Self {
            config: Config::from_env(),
            devices: Vec::new(),
            contexts: Table::new(),
            pds: Table::new(),
            mrs: Table::new(),
            channels: Table::new(),
            cqs: Table::new(),
            qps: Table::new(),
            srqs: Table::new(),
            event_channels: Table::new(),
            ids: Table::new(),
            cm_events: Table::new(),
            lists: HashMap::new(),
            qp_numbers: HashMap::new(),
            mr_keys: HashMap::new(),
            transfers: Transfers::default(),
            next: 0,
            next_sequence: 0,
            next_port: 49152,
        }
    }

    /// A number never given before: handles, keys, queue pair numbers.
    pub fn number(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1) & 0x00ff_ffff;
        if self.next == 0 {
            self.next = 1;
        }
        self.next
    }

    /// The place of a work request in the order of posting.
    pub fn sequence(&mut self) -> u64 {
        self.next_sequence += 1;
        self.next_sequence
    }
}
