//! The processes of a run: how they are started, what they end by, and where one hangs.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::Child,
    time::{Duration, Instant},
};

use crate::{
    Outcome,
    board::Board,
    net::{self, Host},
};

/// What starts the processes of one run.
pub struct Starter {
    program: PathBuf,
    folder: PathBuf,
}

impl Starter {
    /// The program is copied into memory: pages of a file on a shared folder come slowly.
    pub fn new(folder: &Path) -> Outcome<Starter> {
        let program = folder.join("program");
        fs::copy(std::env::current_exe()?, &program)?;
        Ok(Starter {
            program,
            folder: folder.to_owned(),
        })
    }

    pub fn start(&self, host: Host, role: &str, beat: u64, args: &[String]) -> Outcome<Process> {
        let mut command = net::on(host, &self.program);
        command
            .args([role, "--addr", net::SERVER.addr])
            .arg("--folder")
            .arg(&self.folder)
            .args(args);
        Ok(Process {
            child: command.spawn()?,
            name: format!("{role} {beat}"),
            beat,
            stays: false,
        })
    }
}

/// A process that does not outlive the run, unless it is told to stay.
pub struct Process {
    child: Child,
    pub name: String,
    pub beat: u64,
    stays: bool,
}

impl Process {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it ended? An error if it ended otherwise than it should: every failure of ours is
    /// reported by an exit status.
    pub fn ended(&mut self) -> Outcome<bool> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(false);
        };
        match status.success() {
            true => Ok(true),
            false => Err(match status.signal() {
                Some(signal) => format!("{} crashed: signal {signal}", self.name),
                None => format!("{} failed: {status}", self.name),
            }
            .into()),
        }
    }

    /// SIGKILL, in the midst of whatever it does. What it ended by before that still counts.
    pub fn kill(mut self) -> Outcome {
        if !self.ended()? {
            self.child.kill()?;
            let status = self.child.wait()?;
            if status.signal() != Some(9) && !status.success() {
                return Err(format!("{} failed: {status}", self.name).into());
            }
        }
        Ok(())
    }

    /// Leaves it alone for good.
    pub fn stay(&mut self) {
        self.stays = true;
    }

    /// Waits for its own end.
    pub fn wait(&mut self, patience: Duration) -> Outcome {
        let start = Instant::now();
        while !self.ended()? {
            if start.elapsed() > patience {
                return Err(self.hangs("does not end"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// An error if it has not beaten for so long.
    pub fn check_beat(&self, board: &Board, patience: Duration) -> Outcome {
        match board.since_beat(self.beat) > patience {
            true => Err(self.hangs("hangs")),
            false => Ok(()),
        }
    }

    /// An error with the place in the kernel where it is.
    fn hangs(&self, what: &str) -> Box<dyn std::error::Error> {
        let mut words = format!("{} {what}", self.name);
        for file in ["wchan", "syscall", "stack"] {
            let place = format!("/proc/{}/{file}", self.pid());
            let said = fs::read_to_string(place).unwrap_or_else(|err| err.to_string());
            words += &format!("\n{file}: {}", said.trim());
        }
        words.into()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.stays {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
