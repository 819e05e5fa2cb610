//! The log of the example, as processes: a server, clients, a client that is killed, and the look
//! at what they leave.

mod common;
#[allow(dead_code)]
#[path = "../examples/remote_log/format.rs"]
mod format;

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::Ordering,
        mpsc::{Receiver, channel},
    },
    thread::{sleep, spawn},
    time::{Duration, Instant},
};

use common::LONG;
use rpma::Memory;

#[test]
fn records_are_committed_and_validated() {
    let _peer = device!();
    let Some(_turn) = turn() else {
        skip!("the stand-in connects no two processes");
    };
    let place = Place::new("committed");
    let mut server = Server::start(&place.log, CAPACITY, &[]);
    let said = ok(place.client(&server, 200, &["--doorbells", "both"]));
    for word in ["flush method: ", "one doorbell", "four doorbells", "p99.9"] {
        assert!(said.contains(word), "{word} in {said}");
    }
    assert!(server.line("valid: ").contains("200 records"));
    assert_eq!(place.acknowledged(), 200);
    assert!(place.validate().contains("valid: 200 records"));

    // Each way to flush leaves the same.
    ok(place.client(&server, 50, &["--flush", "read"]));
    assert!(server.line("valid: ").contains("250 records"));
    let output = place.client(&server, 50, &["--flush", "native"]);
    let records = match output.status.success() {
        true => 300,
        false => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("not supported"), "{said}");
            250
        }
    };
    assert!(
        server
            .line("valid: ")
            .contains(&format!("{records} records"))
    );
}

#[test]
fn a_killed_client_loses_no_committed_record() {
    let _peer = device!();
    let Some(_turn) = turn() else {
        skip!("the stand-in connects no two processes");
    };
    let place = Place::new("killed");
    let mut server = Server::start(&place.log, CAPACITY, &[]);
    let mut expected = 0;
    for (round, doorbells) in ["one", "four"].into_iter().enumerate() {
        let at = expected + 20 + 17 * round as u64;
        let mut client = place
            .client_command(&server, 50_000, &["--doorbells", doorbells])
            .stdout(Stdio::null())
            .spawn()
            .map(Killed)
            .unwrap();
        place.wait_for(at, &mut client.0);
        client.0.kill().unwrap();
        client.0.wait().unwrap();
        let acknowledged = place.acknowledged();
        server.line("valid: ");
        let found = place.records();
        assert!(
            (acknowledged..=acknowledged + 1).contains(&found),
            "{acknowledged} acknowledged, {found} found"
        );

        ok(place.client(&server, 50, &[]));
        server.line("valid: ");
        expected = found + 50;
        assert_eq!(place.records(), expected);
        assert_eq!(place.acknowledged(), expected);
    }
}

#[test]
fn a_newer_client_fences_the_older_off() {
    let _peer = device!();
    let Some(_turn) = turn() else {
        skip!("the stand-in connects no two processes");
    };
    let place = Place::new("fenced");
    let mut server = Server::start(&place.log, CAPACITY, &[]);
    let mut older = place
        .client_command(&server, 50_000, &[])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map(Killed)
        .unwrap();
    place.wait_for(20, &mut older.0);

    // The newer one counts in another file: the older one still writes to the first.
    let mut newer = place.clone();
    newer.acks = place.folder.join("newer");
    drop(Memory::create_file(&newer.acks, 8).unwrap());
    ok(newer.client(&server, 50, &[]));
    assert!(server.line("client 1: gone: ").contains("a newer client"));
    server.line("valid: ");
    server.line("valid: ");
    let status = wait(&mut older.0);
    assert!(!status.success(), "the older client noticed nothing");

    let acknowledged = place.acknowledged();
    let found = place.records();
    assert_eq!(newer.acknowledged(), found);
    assert!(
        (acknowledged + 50..=acknowledged + 51).contains(&found),
        "{acknowledged} acknowledged to the older, {found} found"
    );
}

#[test]
fn a_killed_server_goes_on_where_it_was() {
    let _peer = device!();
    let Some(_turn) = turn() else {
        skip!("the stand-in connects no two processes");
    };
    let place = Place::new("server");
    let mut server = Server::start(&place.log, CAPACITY, &[]);
    ok(place.client(&server, 50, &[]));
    server.line("valid: ");
    drop(server);
    assert_eq!(place.records(), 50);

    let mut server = Server::start(&place.log, CAPACITY, &["--clients", "1"]);
    ok(place.client(&server, 50, &[]));
    server.line("valid: ");
    assert!(wait(&mut server.child.0).success());
    assert_eq!(place.records(), 100);
}

#[test]
fn a_full_log_and_a_damaged_one_are_refused() {
    let _peer = device!();
    let Some(_turn) = turn() else {
        skip!("the stand-in connects no two processes");
    };
    let place = Place::new("full");
    let mut server = Server::start(&place.log, 8192, &["--clients", "1"]);
    let output = place.client(&server, 100, &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(said.contains("the log is full at record 31"), "{said}");
    assert!(server.line("valid: ").contains("31 records"));
    assert!(wait(&mut server.child.0).success());

    let log = Memory::map_file(&place.log).unwrap();
    log.write_at(format::RECORDS_AT + 256 * 7 + 100, b"?")
        .unwrap();
    let output = program().arg("validate").arg(&place.log).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(
        said.contains("record 7 at byte 1920 is committed, but torn"),
        "{said}"
    );
    let output = program()
        .args(["server", "--port", "0", "--addr", &common::addr(), "--file"])
        .arg(&place.log)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(said.contains("torn") && said.contains("--format"), "{said}");
}

#[test]
fn what_is_no_persistent_memory_is_not_taken_for_it() {
    let _peer = device!();
    let Some(_turn) = turn() else {
        skip!("the stand-in connects no two processes");
    };
    let place = Place::new("pmem");
    let output = program()
        .args([
            "server",
            "--pmem",
            "--port",
            "0",
            "--addr",
            &common::addr(),
            "--file",
        ])
        .arg(&place.log)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(said.contains("--pmem: "), "{said}");
}

#[test]
fn persistent_memory_is_flushed_to_persistence() {
    let _peer = device!();
    let Some(_turn) = turn() else {
        skip!("the stand-in connects no two processes");
    };
    let Some(device) = std::env::var_os("RPMA_TEST_DAX") else {
        skip!("RPMA_TEST_DAX names no persistent memory");
    };
    let mut place = Place::new("dax");
    place.log = device.into();
    let mut server = Server::start(
        &place.log,
        CAPACITY,
        &["--pmem", "--format", "--clients", "1"],
    );
    let said = ok(place.client(&server, 100, &[]));
    assert!(said.contains("(to persistence)"), "{said}");
    server.line("valid: ");
    assert!(wait(&mut server.child.0).success());
    assert_eq!(place.records(), 100);
}

/// The example's program, which cargo builds beside the tests.
fn program() -> Command {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    Command::new(profile.join("examples/remote_log"))
}

/// Room for 8,191 records.
const CAPACITY: u64 = 2 << 20;

/// One test at a time: their processes would only wait for each other.
static TURN: Mutex<()> = Mutex::new(());

/// Files of one test.
#[derive(Clone)]
struct Place {
    folder: PathBuf,
    log: PathBuf,
    acks: PathBuf,
}

impl Place {
    fn new(name: &str) -> Place {
        // On tmpfs: a device that pins pages takes no writable mapping of other files.
        let folder = PathBuf::from(format!("/dev/shm/rpma-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let acks = folder.join("acks");
        drop(Memory::create_file(&acks, 8).unwrap());
        Place {
            log: folder.join("log"),
            acks,
            folder,
        }
    }

    fn client_command(&self, server: &Server, records: u64, more: &[&str]) -> Command {
        let mut command = program();
        command
            .args(["client", "--addr", &common::addr(), "--port", &server.port])
            .args(["--records", &records.to_string(), "--acks"])
            .arg(&self.acks)
            .args(more);
        command
    }

    fn client(&self, server: &Server, records: u64, more: &[&str]) -> Output {
        self.client_command(server, records, more).output().unwrap()
    }

    fn acknowledged(&self) -> u64 {
        let acks = Memory::map_file_read_only(&self.acks).unwrap();
        acks.load_u64(0, Ordering::Acquire).unwrap()
    }

    fn wait_for(&self, records: u64, client: &mut Child) {
        let start = Instant::now();
        while self.acknowledged() < records {
            assert!(client.try_wait().unwrap().is_none(), "the client ended");
            assert!(start.elapsed() < LONG, "the client does not get on");
            sleep(Duration::from_millis(1));
        }
    }

    /// What a process of its own says of the log.
    fn validate(&self) -> String {
        ok(program().arg("validate").arg(&self.log).output().unwrap())
    }

    fn records(&self) -> u64 {
        let said = self.validate();
        let words: Vec<_> = said.split_whitespace().collect();
        words[1].parse().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Server {
    child: Killed,
    lines: Receiver<String>,
    port: String,
}

impl Server {
    fn start(log: &Path, capacity: u64, more: &[&str]) -> Server {
        let mut child = program()
            .args(["server", "--port", "0", "--addr", &common::addr(), "--file"])
            .arg(log)
            .args(["--capacity", &capacity.to_string()])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .map(Killed)
            .expect("the example was built");
        let stdout = BufReader::new(child.0.stdout.take().unwrap());
        let (sender, lines) = channel();
        spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                println!("server: {line}");
                let _ = sender.send(line);
            }
        });
        let mut server = Server {
            child,
            lines,
            port: String::new(),
        };
        let listening = server.line("listening on ");
        server.port = listening.rsplit(':').next().unwrap().into();
        server
    }

    /// Waits for a line that starts so.
    fn line(&mut self, start: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(LONG).expect(start);
            if line.starts_with(start) {
                return line;
            }
        }
    }
}

/// `None` where two processes cannot share the device.
fn turn() -> Option<MutexGuard<'static, ()>> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    std::env::var_os("STANDIN_DEVICE").is_none().then_some(turn)
}

/// A process that does not outlive the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait(child: &mut Child) -> std::process::ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(start.elapsed() < LONG, "the process does not end");
        sleep(Duration::from_millis(5));
    }
}

fn ok(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}: {said}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    said
}
