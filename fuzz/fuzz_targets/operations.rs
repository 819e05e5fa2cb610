//! Ranges, operations and batches at random, on the stand-in device, against a model of the memory.
//!
//! The first byte says what the device is like: Soft-RoCE with native flush and atomic write,
//! Soft-iWARP without atomics, or Mellanox-like.
#![no_main]

use std::{cell::OnceCell, time::Duration};

use libfuzzer_sys::fuzz_target;
use rpma::{
    Batch, Completion, ConnCfg, ConnRequest, Connection, Endpoint, Error, FlushKind, LocalRegion, Memory,
    Peer, PeerCfg, RemoteRegion, Result, Signal, Usage, Wait, WcStatus,
};
use standin_control::{Personality, Standin};

const ADDR: &str = "192.168.77.1";
/// Nothing takes as long, on the busiest machine.
const SOON: Duration = Duration::from_secs(30);
const LEN: usize = 2048;
const INLINE: usize = 64;
/// As many operations as one submit may have here.
const DEPTH: usize = 16;

const DEVICES: [Personality; 3] = [Personality::Rxe, Personality::Siw, Personality::Mlx5];

struct Rig {
    client: Connection,
    _server: Connection,
    local: LocalRegion,
    log: LocalRegion,
    remote: RemoteRegion,
    /// Compare-and-swap and fetch-and-add.
    atomics: bool,
}

thread_local! {
    static RIGS: [OnceCell<Rig>; 3] = const { [const { OnceCell::new() }; 3] };
}

fuzz_target!(|data: &[u8]| {
    let [first, steps @ ..] = data else { return };
    let number = usize::from(*first) % DEVICES.len();
    RIGS.with(|rigs| run(rigs[number].get_or_init(|| Rig::new(DEVICES[number])), steps));
});

impl Rig {
    fn new(device: Personality) -> Rig {
        Standin::get().expect("run with LD_LIBRARY_PATH=$(ci/standin)").personality(device);
        let atomics = device != Personality::Siw;
        let usage = if atomics { Usage::all() } else { Usage::all() - Usage::ATOMIC };
        let peer = Peer::local(ADDR).unwrap();
        let endpoint = Endpoint::listen(&peer, ADDR, "0").unwrap();
        let port = endpoint.local_addr().unwrap().port().to_string();
        let cfg = ConnCfg::new().sq_size(DEPTH as u32).max_inline(INLINE as u32).max_sge(2);
        let client = ConnRequest::new(&peer, ADDR, &port, &cfg).unwrap().connect(None).unwrap();
        let server = endpoint.next_request(&cfg).unwrap().connect(None).unwrap();
        client.wait_established(SOON).unwrap();
        client.apply_peer_cfg(&PeerCfg::new().with_direct_write_to_pmem(true));
        let region = || peer.register(Memory::anonymous(LEN).unwrap(), usage).unwrap();
        let (local, log) = (region(), region());
        let remote = RemoteRegion::from_descriptor(log.descriptor().as_bytes()).unwrap();
        Rig { client, _server: server, local, log, remote, atomics }
    }
}

/// Both memories as they should be.
#[derive(Clone)]
struct Model {
    local: Vec<u8>,
    log: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Step {
    what: u8,
    here: u64,
    there: u64,
    len: u64,
}

fn run(rig: &Rig, data: &[u8]) {
    let (mut model, mut waiting) = (Model::new(rig), 0u64);
    let mut batch = rig.client.batch();
    let mut pending: Vec<Step> = Vec::new();
    for bytes in data.chunks_exact(6) {
        let step = Step {
            what: bytes[0],
            here: u64::from(u16::from_le_bytes([bytes[1], bytes[2]])) % (LEN as u64 + 64),
            there: u64::from(u16::from_le_bytes([bytes[3], bytes[4]])) % (LEN as u64 + 64),
            len: u64::from(bytes[5]),
        };
        match step.what >> 4 {
            0 => {
                batch.clear();
                pending.clear();
            }
            1 => submit(rig, &mut batch, &mut pending, &mut model),
            2..=8 => {
                let added = post(rig, Some(&mut batch), step, pending.len() as u64);
                assert_eq!(added.is_ok(), step.is_right(rig), "{added:?}");
                if added.is_ok() {
                    pending.push(step);
                }
                assert_eq!(batch.len(), pending.len());
                if pending.len() == DEPTH {
                    submit(rig, &mut batch, &mut pending, &mut model);
                }
            }
            _ => {
                waiting += 1;
                let posted = post(rig, None, step, waiting);
                assert_eq!(posted.is_ok(), step.is_right(rig), "{posted:?}");
                if posted.is_ok() {
                    completes(rig, &[waiting]);
                    model.apply(step);
                }
            }
        }
    }
    drop(batch);
    model.compare(rig);
}

fn submit(rig: &Rig, batch: &mut Batch<'_>, pending: &mut Vec<Step>, model: &mut Model) {
    batch.submit().unwrap();
    assert!(batch.is_empty());
    completes(rig, &(0..pending.len() as u64).collect::<Vec<_>>());
    for step in pending.drain(..) {
        model.apply(step);
    }
}

/// These complete, in this order, with success, and no others do.
fn completes(rig: &Rig, ids: &[u64]) {
    let mut buf = [Completion::default()];
    for id in ids {
        let taken = rig.client.cq().take(&mut buf, Wait::new().timeout(SOON)).unwrap();
        assert_eq!((taken[0].status(), taken[0].wr_id()), (WcStatus::SUCCESS, *id));
    }
    assert!(rig.client.cq().poll_one().unwrap().is_none());
}

impl Step {
    fn kind(self) -> u8 {
        self.what & 7
    }

    /// Do its arguments make sense?
    fn is_right(self, rig: &Rig) -> bool {
        let size = LEN as u64;
        let (here, there) = (self.here + self.len <= size, self.there + self.len <= size);
        let word = self.there + 8 <= size && self.there % 8 == 0;
        match self.kind() {
            0 | 1 => here && there,
            2 => there && self.len <= INLINE as u64,
            // A flush of no bytes has nothing to read.
            3 => there && self.len > 0,
            4 => word,
            5 => rig.atomics && word && self.here + 8 <= size,
            6 => here && there && self.len >= 2,
            // Lengths that differ.
            _ => false,
        }
    }

    fn byte(self) -> u8 {
        (self.here as u8) ^ (self.len as u8)
    }
}

fn post(rig: &Rig, batch: Option<&mut Batch<'_>>, step: Step, id: u64) -> Result<()> {
    let Step { here, there, len, .. } = step;
    let signal = Signal::Always(id);
    let (local, remote) = (|a: u64, n: u64| rig.local.slice(a..a + n), |n: u64| rig.remote.slice(there..there + n));
    let conn = &rig.client;
    macro_rules! call {
        ($method:ident($($arg:expr),*)) => {
            match batch {
                Some(batch) => batch.$method($($arg),*),
                None => conn.$method($($arg),*),
            }
        };
    }
    match step.kind() {
        0 => call!(write(&local(here, len)?, &remote(len)?, signal)),
        1 => call!(read(&local(here, len)?, &remote(len)?, signal)),
        2 => {
            let bytes = vec![step.byte(); len as usize];
            call!(write_inline(&bytes, &remote(len)?, signal))
        }
        3 => call!(flush(&remote(len)?, FlushKind::Visibility, signal)),
        4 => call!(atomic_write(&remote(8)?, [step.byte(); 8], signal)),
        5 => call!(fetch_and_add(&local(here, 8)?, &remote(8)?, len, signal)),
        6 if len < 2 => Err(Error::NotSupported { capability: "two of less than two bytes" }),
        6 => {
            let two = [local(here + 1, len - 1)?, local(here, 1)?];
            call!(write_gather(&two, &remote(len)?, signal))
        }
        _ => call!(write(&local(here, len + 1)?, &remote(len)?, signal)),
    }
}

impl Model {
    fn new(rig: &Rig) -> Model {
        let bytes = |seed: usize| (0..LEN).map(|i| (i * 7 + seed) as u8).collect::<Vec<_>>();
        let model = Model { local: bytes(1), log: bytes(100) };
        rig.local.write_at(0, &model.local).unwrap();
        rig.log.write_at(0, &model.log).unwrap();
        model
    }

    fn apply(&mut self, step: Step) {
        let (here, there, len) = (step.here as usize, step.there as usize, step.len as usize);
        match step.kind() {
            0 => self.log[there..there + len].copy_from_slice(&self.local[here..here + len]),
            1 => self.local[here..here + len].copy_from_slice(&self.log[there..there + len]),
            2 => self.log[there..there + len].fill(step.byte()),
            4 => self.log[there..there + 8].fill(step.byte()),
            5 => {
                let was = u64::from_ne_bytes(self.log[there..there + 8].try_into().unwrap());
                self.local[here..here + 8].copy_from_slice(&was.to_ne_bytes());
                let sum = was.wrapping_add(step.len);
                self.log[there..there + 8].copy_from_slice(&sum.to_ne_bytes());
            }
            6 => {
                self.log[there..there + len - 1].copy_from_slice(&self.local[here + 1..here + len]);
                self.log[there + len - 1] = self.local[here];
            }
            _ => {}
        }
    }

    fn compare(&self, rig: &Rig) {
        let mut bytes = vec![0; LEN];
        rig.local.read_at(0, &mut bytes).unwrap();
        assert!(bytes == self.local, "the local memory differs");
        rig.log.read_at(0, &mut bytes).unwrap();
        assert!(bytes == self.log, "the remote memory differs");
    }
}
