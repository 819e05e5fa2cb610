//! What the tests on a device share: the address to use, connected pairs, registered memory.
#![allow(dead_code)]

pub mod alarm;
pub mod refused;

use std::time::{Duration, Instant};

use rpma::{
    ConnCfg, ConnRequest, Connection, Endpoint, FlushKind, LocalRegion, Memory, Peer, PeerCfg,
    RemoteRegion, Usage, WcStatus,
};

/// Long enough for anything on an emulated machine.
pub const LONG: Duration = Duration::from_secs(60);

/// The local address of the RDMA device that the tests run on, from `RPMA_TEST_ADDR`.
///
/// Without it the test is skipped, and says so. With it a device that cannot be used fails the
/// test.
pub fn address(test: &str) -> Option<String> {
    match std::env::var("RPMA_TEST_ADDR") {
        Ok(address) if !address.is_empty() => Some(address),
        _ => {
            println!("SKIP: {test}: RPMA_TEST_ADDR names no RDMA device");
            None
        }
    }
}

/// The peer on the device under test; returns from the test where there is none.
#[macro_export]
macro_rules! device {
    () => {{
        let name = std::any::type_name_of_val(&|| {}).trim_end_matches("::{{closure}}");
        match $crate::common::address(name) {
            Some(address) => {
                $crate::common::alarm::start();
                rpma::Peer::local(&address).expect("the declared device is usable")
            }
            None => return,
        }
    }};
}

/// Skips the test with a reason.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        let name = std::any::type_name_of_val(&|| {}).trim_end_matches("::{{closure}}");
        println!("SKIP: {name}: {}", format_args!($($reason)*));
        return;
    }};
}

/// The address under test, once `device!` has found it.
pub fn addr() -> String {
    std::env::var("RPMA_TEST_ADDR").unwrap_or_default()
}

/// Two connected ends on the device under test: first the one that asked, then the one that
/// accepted.
pub struct Pair {
    pub client: Connection,
    pub server: Connection,
}

/// A pair with one configuration for both ends.
pub fn pair(peer: &Peer, cfg: &ConnCfg) -> Pair {
    pair_of(peer, cfg, peer, cfg)
}

/// A pair with a peer and a configuration for each end.
pub fn pair_of(
    client_peer: &Peer,
    client_cfg: &ConnCfg,
    server_peer: &Peer,
    server_cfg: &ConnCfg,
) -> Pair {
    let (endpoint, port) = listen(server_peer);
    let client = ask(client_peer, &port, client_cfg)
        .connect(None)
        .expect("connect");
    let server = next(&endpoint, server_cfg).connect(None).expect("accept");
    client.wait_established(LONG).expect("client established");
    server.wait_established(LONG).expect("server established");
    for conn in [&client, &server] {
        conn.apply_peer_cfg(&PeerCfg::new().with_direct_write_to_pmem(true));
    }
    Pair { client, server }
}

/// A connection whose client has a buffer, and whose server a region that the client knows.
pub struct Rig {
    pub client: Connection,
    pub server: Connection,
    /// The client's buffer, filled with `byte`.
    pub local: LocalRegion,
    /// The server's region, all 0xEE.
    pub log: LocalRegion,
    pub remote: RemoteRegion,
}

impl Rig {
    /// Buffer and region have `len` bytes, the region these usages.
    pub fn of(peer: &Peer, cfg: &ConnCfg, len: usize, usage: Usage) -> Self {
        let Pair { client, server } = pair(peer, cfg);
        let local = region(peer, len, local_usage(), byte);
        let log = region(peer, len, usage, |_| 0xEE);
        let remote = remote(&log);
        Rig {
            client,
            server,
            local,
            log,
            remote,
        }
    }
}

/// An endpoint on a port of the system's choice, and the port.
pub fn listen(peer: &Peer) -> (Endpoint, String) {
    let endpoint = Endpoint::listen(peer, &addr(), "0").expect("listen");
    let port = endpoint.local_addr().expect("an address").port();
    (endpoint, port.to_string())
}

/// A request for a connection to a port of the device under test.
pub fn ask(peer: &Peer, port: &str, cfg: &ConnCfg) -> ConnRequest {
    ConnRequest::new(peer, &addr(), port, &cfg.clone().timeout(LONG)).expect("request")
}

/// The endpoint's next request, which must come.
pub fn next(endpoint: &Endpoint, cfg: &ConnCfg) -> ConnRequest {
    endpoint
        .next_request_timeout(cfg, LONG)
        .expect("a request")
        .expect("a request in time")
}

/// A transport may pad private data with zeros (RoCE and InfiniBand do); it never changes or cuts
/// them.
pub fn assert_private_data(peer: &Peer, got: &[u8], sent: &[u8]) {
    assert!(got.starts_with(sent), "{got:x?} is not {sent:x?}");
    assert!(got[sent.len()..].iter().all(|&byte| byte == 0), "{got:x?}");
    if iwarp(peer) {
        assert_eq!(got.len(), sent.len());
    }
}

/// Requests, takes and accepts again: the endpoint has lost nothing.
pub fn takes_the_next(peer: &Peer, endpoint: &Endpoint, port: &str) {
    let cfg = ConnCfg::new();
    let client = ask(peer, port, &cfg).connect(None).unwrap();
    let server = next(endpoint, &cfg).connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    server.wait_established(LONG).unwrap();
}

/// Is it iWARP, which has no immediate data, no atomics and no flush?
pub fn iwarp(peer: &Peer) -> bool {
    peer.capabilities().transport.is_iwarp()
}

/// Registered anonymous memory, filled by `byte(i)`.
pub fn region(peer: &Peer, len: usize, usage: Usage, byte: impl Fn(usize) -> u8) -> LocalRegion {
    let memory = Memory::anonymous(len).expect("memory");
    let bytes: Vec<u8> = (0..len).map(byte).collect();
    memory.write_at(0, &bytes).expect("write");
    peer.register(memory, usage).expect("register")
}

/// Is it the kernel's rxe, by the number that it makes up for its vendor?
pub fn is_soft_roce(peer: &Peer) -> bool {
    peer.capabilities().vendor_id == 0xff_ffff
}

/// All of the usages that a remote side can have.
pub fn remote_usage() -> Usage {
    Usage::READ_SRC | Usage::WRITE_DST | Usage::FLUSH_VISIBILITY | Usage::FLUSH_PERSISTENT
}

/// All of the usages that this side can have.
pub fn local_usage() -> Usage {
    Usage::READ_DST | Usage::WRITE_SRC | Usage::SEND | Usage::RECV
}

/// The region as its peer sees it.
pub fn remote(region: &LocalRegion) -> RemoteRegion {
    RemoteRegion::from_descriptor(region.descriptor().as_bytes()).expect("a descriptor")
}

/// The contents of a region.
pub fn contents(region: &LocalRegion) -> Vec<u8> {
    let mut bytes = vec![0; region.len() as usize];
    region.read_at(0, &mut bytes).expect("read");
    bytes
}

/// Takes the next completion of `cq`, which must come.
pub fn completion(cq: &rpma::Cq) -> rpma::Completion {
    let mut buf = [rpma::Completion::default()];
    let taken = cq
        .take(&mut buf, rpma::Wait::new().timeout(LONG))
        .expect("take");
    *taken.first().expect("a completion in time")
}

/// Takes the next completion, which must be a success with this number.
pub fn success(cq: &rpma::Cq, wr_id: u64) -> rpma::Completion {
    let wc = completion(cq);
    assert_eq!(
        (wc.status(), wc.wr_id()),
        (WcStatus::SUCCESS, wr_id),
        "{wc:?}"
    );
    wc
}

/// Is there nothing to take? Waits a moment for what should not come.
pub fn nothing(cq: &rpma::Cq) -> bool {
    let mut buf = [rpma::Completion::default()];
    let wait = rpma::Wait::new().timeout(Duration::from_millis(50));
    cq.take(&mut buf, wait).expect("take").is_empty()
}

/// Calls `done` until it says yes, which it must in time.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LONG, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A number like a random one, the same on every run.
pub fn byte(i: usize) -> u8 {
    (i.wrapping_mul(2_654_435_761) >> 13) as u8
}

/// Both kinds.
pub const FLUSHES: [FlushKind; 2] = [FlushKind::Persistent, FlushKind::Visibility];

/// What is held: open files of this process, and the RDMA objects of this machine (of this process
/// on the stand-in). The kernel tells the owner of some kinds only, and for those it tells the
/// thread.
#[derive(Debug, PartialEq, Eq, Clone)]
pub struct Held {
    fds: usize,
    rdma: String,
    standin: Option<standin_control::Objects>,
}

/// Do the tests run on the stand-in, whose objects are none of the kernel's?
pub fn on_standin() -> bool {
    std::env::var_os("STANDIN_DEVICE").is_some()
}

/// Counts what is held now. Tests that compare counts must be [`alone`].
pub fn held() -> Held {
    let fds = std::fs::read_dir("/proc/self/fd")
        .expect("/proc/self/fd")
        .count();
    let standin = standin_control::Standin::get().map(|standin| standin.objects());
    let rdma = match standin {
        Some(_) => String::new(),
        None => {
            let out = std::process::Command::new("rdma").arg("resource").output();
            String::from_utf8(out.expect("the rdma tool of iproute2").stdout).expect("text")
        }
    };
    Held { fds, rdma, standin }
}

/// Waits until what is held is what was held before.
pub fn given_back(before: &Held) {
    let start = Instant::now();
    loop {
        let now = held();
        if now == *before {
            return;
        }
        assert!(start.elapsed() < LONG, "{before:?} before, {now:?} now");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// One test of the executable at a time.
pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    TURN.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What a connection that should not be established says instead.
pub fn refusal(conn: &Connection) -> (rpma::CmEventKind, i32, Vec<u8>) {
    match conn.wait_established(LONG) {
        Err(rpma::Error::Connection {
            event,
            status,
            private_data,
        }) => (event, status, private_data.into()),
        other => panic!("{other:?}"),
    }
}
