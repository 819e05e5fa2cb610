//! Runs every example as a server and its clients, processes of their own, on the device under
//! test.

mod common;

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rpma::{Memory, Peer};

/// The peer on the device under test; returns from the test where there is none that two processes
/// can share.
macro_rules! two_processes {
    () => {{
        let peer = device!();
        if std::env::var_os("STANDIN_DEVICE").is_some() {
            skip!("the stand-in connects no two processes");
        }
        peer
    }};
}

/// A process of an example that has not ended by then never will.
const LIMIT: Duration = Duration::from_secs(120);

/// The folder of the examples, beside that of this test.
fn folder() -> PathBuf {
    let exe = std::env::current_exe().expect("the path of this test");
    let profile = exe.ancestors().nth(2).expect("…/deps/this-test");
    profile.join("examples")
}

/// A process, killed when the test gives up.
struct Process {
    child: Child,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
    lines: mpsc::Receiver<String>,
}

struct Ended {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

impl Process {
    fn start<S: AsRef<OsStr>>(name: &str, args: &[S]) -> Process {
        let path = folder().join(name);
        let mut child = Command::new(&path)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|err| panic!("{}: {err} (cargo build --examples)", path.display()));
        let (send, lines) = mpsc::channel();
        let stdout = child.stdout.take().expect("piped");
        let mut stderr = child.stderr.take().expect("piped");
        let stdout = std::thread::spawn(move || {
            let mut all = String::new();
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                all += &line;
                all += "\n";
                let _ = send.send(line);
            }
            all
        });
        let stderr = std::thread::spawn(move || {
            let mut all = Vec::new();
            let _ = stderr.read_to_end(&mut all);
            String::from_utf8_lossy(&all).into_owned()
        });
        Process {
            child,
            stdout,
            stderr,
            lines,
        }
    }

    /// The port that a server says it listens on.
    fn port(&self) -> Option<String> {
        let line = self.lines.recv_timeout(LIMIT).ok()?;
        let address = line.strip_prefix("listening on ")?;
        Some(address.rsplit_once(':')?.1.to_owned())
    }

    fn end(mut self) -> Ended {
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("wait") {
                break Some(status);
            }
            if Instant::now() >= deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let stdout = self.stdout.join().expect("stdout");
        let stderr = self.stderr.join().expect("stderr");
        let status = status
            .unwrap_or_else(|| panic!("killed after {LIMIT:?}; it had said\n{stdout}\n{stderr}"));
        Ended {
            status,
            stdout,
            stderr,
        }
    }
}

/// A server and so many clients; `server` and `client` are their additional arguments.
fn run(name: &str, clients: usize, server: &[&str], client: &[&str]) -> (Ended, Vec<Ended>) {
    let addr = common::addr();
    let server = Process::start(name, &[&["server", &addr, "0"], server].concat());
    let Some(port) = server.port() else {
        let ended = server.end();
        panic!("{name}: the server does not listen: {}", ended.stderr);
    };
    let args = [&["client", &addr, &port], client].concat();
    let clients: Vec<_> = (0..clients).map(|_| Process::start(name, &args)).collect();
    let clients = clients.into_iter().map(Process::end).collect();
    (server.end(), clients)
}

/// Runs an example whose every process must succeed, one of them with `says` in what it prints.
fn succeeds(name: &str, clients: usize, server: &[&str], client: &[&str], says: &str) {
    let (server, clients) = run(name, clients, server, client);
    let mut all = clients;
    all.push(server);
    let mut report = String::new();
    for ended in &all {
        report += &format!("{}\n{}{}", ended.status, ended.stdout, ended.stderr);
    }
    assert!(all.iter().all(|ended| ended.status.success()), "{report}");
    assert!(
        all.iter().any(|ended| ended.stdout.contains(says)),
        "{report}"
    );
}

/// Runs an example that needs immediate data: where the device has none, the client must say so and
/// fail, and the server end too.
fn needs_immediate_data(peer: &Peer, name: &str, says: &str) {
    if peer.capabilities().immediate_data {
        return succeeds(name, 1, &[], &[], says);
    }
    let (server, clients) = run(name, 1, &[], &[]);
    let client = &clients[0];
    assert_eq!(client.status.code(), Some(1), "{}", client.stdout);
    assert!(
        client.stderr.contains("not supported: ") && client.stderr.contains("immediate data"),
        "{}",
        client.stderr
    );
    assert!(!server.status.success(), "{}", server.stdout);
}

/// Where the bytes go that shall be durable: the guest's persistent memory where it has some, else
/// a file of tmpfs, which every device can pin.
struct Durable {
    path: PathBuf,
    is_file: bool,
    // There is one device, and the tests are many.
    _turn: MutexGuard<'static, ()>,
}

impl Durable {
    fn new(name: &str) -> Durable {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let dax = std::env::var_os("RPMA_TEST_DAX").map(PathBuf::from);
        let file = || Path::new("/dev/shm").join(format!("rpma-{name}-{}", std::process::id()));
        Durable {
            is_file: dax.is_none(),
            path: dax.unwrap_or_else(file),
            _turn: turn,
        }
    }

    fn path(&self) -> &str {
        self.path.to_str().expect("plain names")
    }

    /// Has it these bytes at its start?
    fn has(&self, bytes: &[u8]) -> bool {
        let mut found = vec![0; bytes.len()];
        let memory = Memory::map_file_range(&self.path, 0, bytes.len()).expect("a mapping");
        memory.read_at(0, &mut found).expect("in range");
        found == bytes
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        if self.is_file {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// `count` records of `len` bytes, as the examples make them.
fn records(count: usize, len: usize) -> Vec<u8> {
    (0..count * len).map(|i| (i / len + 1) as u8).collect()
}

#[test]
fn connection() {
    let _peer = two_processes!();
    succeeds(
        "connection",
        1,
        &[],
        &[],
        "the server says: hello from the server",
    );
}

#[test]
fn read_to_volatile() {
    let _peer = two_processes!();
    succeeds("read_to_volatile", 1, &[], &[], "read: What the server has");
}

#[test]
fn read_to_persistent() {
    let _peer = two_processes!();
    succeeds("read_to_persistent", 1, &[], &[], "");
    let file = Durable::new("read");
    succeeds(
        "read_to_persistent",
        1,
        &[],
        &[file.path()],
        "4096 bytes are in",
    );
}

#[test]
fn write_to_persistent() {
    let _peer = two_processes!();
    succeeds(
        "write_to_persistent",
        1,
        &[],
        &[],
        "100 records have arrived",
    );
    let file = Durable::new("write");
    succeeds(
        "write_to_persistent",
        1,
        &[file.path()],
        &[],
        "100 records have arrived",
    );
    assert!(file.has(&records(100, 64)));
}

#[test]
fn flush_to_persistent() {
    let _peer = two_processes!();
    succeeds("flush_to_persistent", 1, &[], &[], "record 15 is durable");
    let file = Durable::new("flush");
    succeeds(
        "flush_to_persistent",
        1,
        &[file.path()],
        &[],
        "16 records have arrived",
    );
    assert!(file.has(&records(16, 256)));
}

#[test]
fn persist_by_message() {
    let _peer = two_processes!();
    succeeds("persist_by_message", 1, &[], &[], "record 15 is durable");
    let file = Durable::new("message");
    succeeds(
        "persist_by_message",
        1,
        &[file.path()],
        &[],
        "record 15 is durable",
    );
    assert!(file.has(&records(16, 256)));
}

#[test]
fn atomic_write() {
    let _peer = two_processes!();
    succeeds("atomic_write", 1, &[], &[], "100 entries read, each whole");
}

#[test]
fn ping_pong() {
    let _peer = two_processes!();
    succeeds(
        "ping_pong",
        1,
        &[],
        &[],
        "100 rounds, the last number is 200",
    );
}

#[test]
fn send_with_imm() {
    let peer = two_processes!();
    needs_immediate_data(&peer, "send_with_imm", "\"a message\" with Some(12345678)");
}

#[test]
fn write_with_imm() {
    let peer = two_processes!();
    needs_immediate_data(&peer, "write_with_imm", "slot 0 was written, 64 bytes");
}

#[test]
fn receive_cq() {
    let _peer = two_processes!();
    succeeds("receive_cq", 1, &[], &[], "50 answers are right");
}

#[test]
fn receive_cq_shared() {
    let _peer = two_processes!();
    succeeds("receive_cq_shared", 1, &[], &[], "50 answers are right");
}

#[test]
fn ping_pong_srq() {
    let _peer = two_processes!();
    succeeds("ping_pong_srq", 1, &[], &[], "50 answers are right");
}

#[test]
fn ping_pong_srq_many() {
    let _peer = two_processes!();
    succeeds("ping_pong_srq_many", 3, &[], &[], "3 clients were served");
}

#[test]
fn epoll_separate() {
    let _peer = two_processes!();
    succeeds("epoll_separate", 4, &["4"], &[], "4 clients were served");
}

#[test]
fn epoll_shared() {
    let _peer = two_processes!();
    succeeds("epoll_shared", 4, &["4"], &[], "4 clients were served");
}

#[test]
fn logging() {
    let _peer = two_processes!();
    let (server, clients) = run("logging", 1, &["debug"], &["off"]);
    assert!(server.status.success(), "{}", server.stderr);
    assert!(server.stderr.contains("DEBUG rpma: "), "{}", server.stderr);
    let client = &clients[0];
    assert!(client.status.success(), "{}", client.stderr);
    assert_eq!(client.stderr, "");
    assert!(client.stdout.contains("0 lines were logged"));
}

#[test]
fn devices_are_listed_and_tried() {
    let peer = two_processes!();
    let name = peer.device_name();
    let list = Process::start("devices", &[""; 0]).end();
    assert!(list.status.success(), "{}", list.stderr);
    assert!(list.stdout.contains(&name), "{}", list.stdout);
    let one = Process::start("devices", &[&common::addr()]).end();
    assert!(one.status.success(), "{}", one.stderr);
    assert!(one.stdout.contains("can be made"), "{}", one.stdout);
    let none = Process::start("devices", &["127.0.0.1"]).end();
    assert_eq!(none.status.code(), Some(1));
    assert!(none.stderr.contains("no RDMA device"), "{}", none.stderr);
}

/// Every example is run above, and fails by its exit status when it cannot do its work.
#[test]
fn no_example_is_forgotten() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let names: BTreeSet<String> = std::fs::read_dir(sources)
        .expect("the examples")
        .filter_map(|entry| {
            Some(
                entry
                    .ok()?
                    .file_name()
                    .to_str()?
                    .strip_suffix(".rs")?
                    .to_owned(),
            )
        })
        .collect();
    let this = include_str!("device_examples.rs");
    for name in names {
        // A test of its own is in another file.
        if name == "remote_log" {
            continue;
        }
        assert!(this.contains(&format!("\"{name}\",")), "{name} is not run");
    }
}

#[test]
fn failure_is_told_by_the_exit_status() {
    let _peer = two_processes!();
    let usage = Process::start("connection", &["server"]).end();
    assert_eq!(usage.status.code(), Some(2));
    assert!(usage.stderr.contains("usage: "), "{}", usage.stderr);
    let addr = common::addr();
    let nobody = Process::start("connection", &["client", &addr, "9"]).end();
    assert_eq!(nobody.status.code(), Some(1));
    assert!(
        nobody.stderr.contains("nobody listens") || nobody.stderr.contains("refused"),
        "{}",
        nobody.stderr
    );
    let no_device = Process::start("connection", &["server", "127.0.0.1", "0"]).end();
    assert_eq!(no_device.status.code(), Some(1));
    assert!(
        no_device.stderr.contains("no RDMA device"),
        "{}",
        no_device.stderr
    );
}
