//! Server, clients and accidents, each a process of its own, and a look at the log after each.
//!
//! 1. A client appends records, and ends.
//! 2. A client is killed by SIGKILL at a random record; the next one goes on.
//! 3. The network is cut at a random record; the next client goes on.
//! 4. The network device is set down at a random record, and the server killed by SIGKILL; the file
//!    is read.
//!
//! After each: all records that were acknowledged are in the log, whole and in sequence; at most
//! one more, which was under way; and what lies beyond the tail counts for nothing.

use std::{
    io::{BufRead, BufReader, IsTerminal},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    sync::{
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread::{sleep, spawn},
    time::{Duration, Instant},
};

use rpma::{Memory, Peer};

use crate::{
    Outcome,
    report::{say, valid},
    store,
};

/// An emulated machine under load is slow.
const TIMEOUT: Duration = Duration::from_secs(120);

#[derive(clap::Args)]
pub struct Args {
    /// The address to use: that of a network interface with an RDMA device, never 127.0.0.1
    #[arg(long)]
    addr: String,
    /// The records of the first run
    #[arg(long, default_value_t = 2000)]
    records: u64,
    /// Persistent memory for the log (/dev/dax0.0): what is there is lost. Else a file in /dev/shm
    #[arg(long)]
    pmem: Option<PathBuf>,
    /// The network interface to cut in the third run and to set down in the fourth; without it the
    /// network is left alone
    #[arg(long)]
    cut_link: Option<String>,
}

const SIZE: u64 = 256;

pub fn run(args: &Args) -> Outcome {
    let records = args.records.max(20);
    let folder = PathBuf::from(format!("/dev/shm/rpma-demo-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let _cleaner = OnDrop(|| {
        let _ = std::fs::remove_dir_all(&folder);
    });
    let log = args.pmem.clone().unwrap_or_else(|| folder.join("log"));
    let mut demo = Demo {
        server: Server::start(args, &log, 16 * records * SIZE)?,
        acks: Memory::create_file(folder.join("acks"), 8)?,
        acks_path: folder.join("acks"),
        addr: args.addr.clone(),
        records,
        log,
        summary: Vec::new(),
    };

    heading(&format!("1. a client appends {records} records"));
    let said = demo.append(records, "both")?;
    demo.note(format!("1. {records} records appended and committed"));
    demo.summary
        .extend(said.into_iter().map(|line| format!("   {line}")));

    demo.accident("2. a client is killed by SIGKILL", |client| {
        Ok(client.child.kill()?)
    })?;
    demo.next_client()?;

    if let Some(link) = &args.cut_link {
        demo.cut(&Link::of(link, &args.addr)?)?;
    } else {
        demo.note("3. not done: the network is cut in the guest only".into());
    }

    heading("   the server is killed by SIGKILL");
    demo.server.process.child.kill()?;
    let found = demo.check(demo.acknowledged()?)?;
    demo.note(format!(
        "   server killed by SIGKILL: its log holds all {found} records"
    ));

    heading("what was seen");
    for line in &demo.summary {
        say(line);
    }
    say(
        "after each accident every acknowledged record was there, whole and in sequence: all is well",
    );
    Ok(())
}

struct Demo {
    server: Server,
    log: PathBuf,
    addr: String,
    /// The number of the log's records that a client had acknowledged: clients keep it, and it
    /// outlives them.
    acks: Memory,
    acks_path: PathBuf,
    records: u64,
    summary: Vec<String>,
}

impl Demo {
    fn cut(&mut self, link: &Link) -> Outcome {
        let restore = OnDrop(|| {
            let _ = link.mend();
        });
        let what = match link.iwarp {
            true => "3. the network is cut (lo, which carries TCP here, is set down)",
            false => {
                "3. the network is cut (the hardware address that the client sends to is gone)"
            }
        };
        self.accident(what, |_| link.cut())?;
        drop(restore);
        say(format_args!("        {} is as before again", link.name));
        self.next_client()?;

        // Software RoCE makes no new connection once its own connection manager has tried to send
        // while the device was down: so this comes last.
        if !link.iwarp {
            let _restore = OnDrop(|| {
                let _ = link.set(&["up"]);
            });
            self.accident("4. the network device is set down", |_| link.set(&["down"]))?;
        }
        Ok(())
    }

    fn note(&mut self, line: String) {
        self.summary.push(line);
    }

    fn acknowledged(&self) -> Outcome<u64> {
        Ok(self.acks.load_u64(0, Ordering::Acquire)?)
    }

    fn client(&self, records: u64, doorbells: &str) -> Outcome<Process> {
        let mut command = this_program()?;
        command
            .args(["client", "--doorbells", doorbells, "--addr", &self.addr])
            .args(["--port", &self.server.port])
            .args(["--records", &records.to_string()])
            .args(["--size", &SIZE.to_string()])
            .arg("--acks")
            .arg(&self.acks_path);
        Process::start(command, "client")
    }

    /// Lets a client append its records in peace; gives its own words on it.
    fn append(&mut self, records: u64, doorbells: &str) -> Outcome<Vec<String>> {
        let expected = self.acknowledged()? + records;
        let (status, mut said) = self.client(records, doorbells)?.end()?;
        if !status.success() {
            return Err(format!("the client failed: {status}").into());
        }
        self.server.look()?;
        if self.check(self.acknowledged()?)? != expected {
            return Err(format!("{expected} records should be there").into());
        }
        // Without the greeting.
        said.retain(|line| !line.starts_with("device"));
        Ok(said)
    }

    fn next_client(&mut self) -> Outcome {
        let records = self.records / 20;
        self.append(records, "one")?;
        self.note(format!("   the next client appended {records} more"));
        Ok(())
    }

    /// Has a client append records without end, and lets `happen` befall it at a random one.
    fn accident(&mut self, what: &str, happen: impl FnOnce(&mut Process) -> Outcome) -> Outcome {
        let first = self.acknowledged()?;
        let at = first + 1 + store::random() % (self.records / 2);
        heading(&format!("{what}, at record {at}, a random one"));
        let mut client = self.client(4 * self.records, "one")?;
        self.wait_for(at, &mut client)?;
        let start = Instant::now();
        happen(&mut client)?;
        let (status, _) = client.end()?;
        // A killed client leaves its progress bar behind.
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[2K");
        }
        if status.success() {
            return Err("the client did not notice".into());
        }
        self.server.look()?;
        let seconds = start.elapsed().as_secs_f64();
        let acknowledged = self.acknowledged()?;
        let found = self.check(acknowledged)?;
        self.note(format!(
            "{what}: {acknowledged} acknowledged, {found} in the log; seen by both sides within {seconds:.1} s"
        ));
        // The record under way may have been committed: the next client counts on from there.
        self.acks.store_u64(0, found, Ordering::Release)?;
        Ok(())
    }

    /// Waits until this many records are acknowledged.
    fn wait_for(&self, records: u64, client: &mut Process) -> Outcome {
        let start = Instant::now();
        while self.acknowledged()? < records {
            if let Some(status) = client.child.try_wait()? {
                return Err(format!("the client ended early: {status}").into());
            }
            if start.elapsed() > TIMEOUT {
                return Err("the client does not get on".into());
            }
            sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// Reads the log: `acknowledged` records must be there, and at most one more, which was under
    /// way.
    fn check(&self, acknowledged: u64) -> Outcome<u64> {
        let found = store::contents(&store::open_read_only(&self.log)?)??;
        say(format_args!(
            "check   {}; {acknowledged} were acknowledged",
            valid(&found)
        ));
        if !(acknowledged..=acknowledged + 1).contains(&found.records) {
            return Err(format!(
                "{acknowledged} records were acknowledged, and {} are in the log",
                found.records
            )
            .into());
        }
        Ok(found.records)
    }
}

/// A process whose lines are shown as they come.
struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start(mut command: Command, name: &'static str) -> Outcome<Process> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no pipe")?;
        Ok(Process {
            child,
            lines: lines(stdout, name),
        })
    }

    /// Waits for the end; gives the status and what was said.
    fn end(mut self) -> Outcome<(ExitStatus, Vec<String>)> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                // The sender goes with the pipe.
                return Ok((status, self.lines.iter().collect()));
            }
            if start.elapsed() > TIMEOUT {
                return Err(format!("still running after {TIMEOUT:?}").into());
            }
            sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(stdout: ChildStdout, name: &'static str) -> Receiver<String> {
    let (sender, receiver) = channel();
    spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            say(format_args!("{name:<8}{line}"));
            let _ = sender.send(line);
        }
    });
    receiver
}

struct Server {
    process: Process,
    port: String,
}

impl Server {
    fn start(args: &Args, log: &Path, capacity: u64) -> Outcome<Server> {
        heading("the server");
        let mut command = this_program()?;
        command
            .args(["server", "--port", "0", "--addr", &args.addr, "--format"])
            // Of the pages that persistent memory is mapped by.
            .args([
                "--capacity",
                &capacity.next_multiple_of(2 << 20).to_string(),
            ])
            .arg("--file")
            .arg(log);
        if args.pmem.is_some() {
            command.arg("--pmem");
        }
        let mut server = Server {
            process: Process::start(command, "server")?,
            port: String::new(),
        };
        let listening = server.line("listening on ")?;
        server.port = listening.rsplit(':').next().unwrap_or_default().into();
        Ok(server)
    }

    /// Waits until the server has looked at the log; it must be valid.
    fn look(&mut self) -> Outcome {
        self.line("valid: ").map(|_| ())
    }

    /// Waits for a line that starts like this.
    fn line(&mut self, start: &str) -> Outcome<String> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.process.lines.recv_timeout(left) {
                Ok(line) if line.starts_with(start) => return Ok(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return Err("the server ended".into()),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("the server says no {start:?}").into());
                }
            }
        }
    }
}

fn this_program() -> Outcome<Command> {
    Ok(Command::new(std::env::current_exe()?))
}

/// The network that everything goes over, in a guest that connects to itself.
struct Link {
    name: String,
    address: String,
    iwarp: bool,
}

impl Link {
    fn of(name: &str, addr: &str) -> Outcome<Link> {
        let iwarp = Peer::local(addr)?.capabilities().transport.is_iwarp();
        // TCP to an address of the machine's own takes the loopback. Its patience is a quarter of
        // an hour unless it is told otherwise.
        if iwarp {
            std::fs::write("/proc/sys/net/ipv4/tcp_retries2", "3")?;
        }
        let name = if iwarp { "lo" } else { name };
        let address = std::fs::read_to_string(format!("/sys/class/net/{name}/address"))?;
        Ok(Link {
            name: name.into(),
            address: address.trim().into(),
            iwarp,
        })
    }

    /// RoCE: gives the interface another hardware address. What is connected sends to one that is
    /// no more; new connections find the new one.
    fn cut(&self) -> Outcome {
        match self.iwarp {
            true => self.set(&["down"]),
            false => self.set(&["address", "02:00:00:00:00:01"]),
        }
    }

    fn mend(&self) -> Outcome {
        match self.iwarp {
            true => self.set(&["up"]),
            false => self.set(&["address", &self.address]),
        }
    }

    fn set(&self, what: &[&str]) -> Outcome {
        let status = Command::new("ip")
            .args(["link", "set", "dev", &self.name])
            .args(what)
            .status()?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("ip link set dev {} {what:?}: {status}", self.name).into()),
        }
    }
}

fn heading(text: &str) {
    say(format_args!("\n=== {text}"));
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
