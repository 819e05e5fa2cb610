//! Waiting on fds that several threads may wait on, with timeouts, whatever mode the fd is in.

mod turns;

use std::{
    os::fd::BorrowedFd,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
};

use turns::Turns;

use crate::{Call, Error, Result};

/// How long a wait may take.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// Not at all.
    Now,
    /// Until then.
    Deadline(Instant),
    /// As long as it takes.
    Forever,
    /// One attempt that blocks or not as the fd is set.
    Mode,
}

impl Until {
    /// `timeout` from now; a time beyond what the clock can hold is for ever.
    pub(crate) fn after(timeout: Duration) -> Self {
        if timeout.is_zero() {
            return Until::Now;
        }
        match Instant::now().checked_add(timeout) {
            Some(deadline) => Until::Deadline(deadline),
            None => Until::Forever,
        }
    }

    pub(crate) fn is_over(self) -> bool {
        matches!(self, Until::Deadline(deadline) if Instant::now() >= deadline)
            || matches!(self, Until::Now)
    }

    /// An even share of what is left, for the first of so many.
    pub(crate) fn share(self, of: usize) -> Self {
        let of = u32::try_from(of).unwrap_or(u32::MAX);
        match self {
            Until::Deadline(deadline) if of > 1 => {
                let now = Instant::now();
                Until::Deadline(now + deadline.saturating_duration_since(now) / of)
            }
            other => other,
        }
    }

    pub(crate) fn left_or(self, forever: Duration) -> Duration {
        match self {
            Until::Now => Duration::ZERO,
            Until::Deadline(deadline) => deadline.saturating_duration_since(Instant::now()),
            Until::Forever | Until::Mode => forever,
        }
    }

    /// What is left; `None` for ever.
    fn left(self) -> Option<Duration> {
        match self {
            Until::Now => Some(Duration::ZERO),
            Until::Deadline(deadline) => Some(deadline.saturating_duration_since(Instant::now())),
            Until::Forever | Until::Mode => None,
        }
    }
}

/// Lets one thread at a time read an fd, so that "readable" stays true until it is read.
#[derive(Debug)]
pub(crate) struct Gate {
    turns: Turns,
    nonblocking: AtomicBool,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Gate {
            turns: Turns::new(),
            nonblocking: AtomicBool::new(false),
        }
    }

    /// Sets the mode of `fd`, which is this gate's.
    pub(crate) fn set_nonblocking(&self, fd: BorrowedFd<'_>, yes: bool) -> Result<()> {
        let failed = |errno: Errno| Error::provider(Call::Fcntl, errno as i32);
        let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL).map_err(failed)?);
        let mut wanted = flags;
        wanted.set(OFlag::O_NONBLOCK, yes);
        if wanted != flags {
            fcntl(fd, FcntlArg::F_SETFL(wanted)).map_err(failed)?;
        }
        self.nonblocking.store(yes, Ordering::Relaxed);
        Ok(())
    }

    /// Takes the turn, and waits as [`Turn::wait`] does.
    pub(crate) fn run<T>(
        &self,
        fd: BorrowedFd<'_>,
        until: Until,
        attempt: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        match self.turn(until) {
            Some(turn) => turn.wait(fd, until, attempt),
            None => Ok(None),
        }
    }

    /// Takes the turn to read; `None` when the time is over first.
    pub(crate) fn turn(&self, until: Until) -> Option<Turn<'_>> {
        Some(Turn {
            gate: self,
            _turn: self.turns.take(|| until.left())?,
        })
    }
}

/// The turn to read; given back when dropped.
pub(crate) struct Turn<'g> {
    gate: &'g Gate,
    _turn: turns::Turn<'g>,
}

impl Turn<'_> {
    /// Calls `attempt`, which reads `fd` once and gives `None` where nothing was there, until it gives something or the time is over.
    ///
    /// On a blocking fd `attempt` is called only when the fd is readable, except where it may block for ever anyway.
    pub(crate) fn wait<T>(
        &self,
        fd: BorrowedFd<'_>,
        until: Until,
        mut attempt: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let nonblocking = self.gate.nonblocking.load(Ordering::Relaxed);
        match until {
            Until::Mode => attempt(),
            Until::Now if nonblocking => attempt(),
            Until::Forever if !nonblocking => loop {
                if let Some(value) = attempt()? {
                    return Ok(Some(value));
                }
                // Somebody made the fd non-blocking behind our back.
                readable(fd, until)?;
            },
            Until::Now | Until::Deadline(_) | Until::Forever => loop {
                if !readable(fd, until)? {
                    return Ok(None);
                }
                if let Some(value) = attempt()? {
                    return Ok(Some(value));
                }
                if matches!(until, Until::Now) {
                    return Ok(None);
                }
            },
        }
    }
}

/// Waits until `fd` is readable; `false` when the time is over first. Times are rounded up to whole milliseconds.
pub(crate) fn readable(fd: BorrowedFd<'_>, until: Until) -> Result<bool> {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    loop {
        let left = until.left();
        let timeout = match left {
            None => PollTimeout::NONE,
            Some(left) => {
                let millis = left.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32;
                PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
            }
        };
        match poll(&mut fds, timeout) {
            Ok(0) if left.is_none() => {}
            // A very long wait comes in pieces.
            Ok(0) if until.left().is_some_and(|left| !left.is_zero()) => {}
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(Error::provider(Call::Poll, errno as i32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        os::fd::AsFd,
        os::unix::net::UnixStream,
        sync::Arc,
        thread,
    };

    use super::*;

    fn read_one(mut reader: &UnixStream) -> Result<Option<u8>> {
        let mut byte = [0];
        match reader.read(&mut byte) {
            Ok(_) => Ok(Some(byte[0])),
            Err(err) if err.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(err) => Err(Error::provider(Call::Poll, err.raw_os_error().unwrap_or(0))),
        }
    }

    #[test]
    fn nothing_there_is_none_in_both_modes() {
        let (reader, mut writer) = UnixStream::pair().unwrap();
        let gate = Gate::new();
        for nonblocking in [false, true] {
            gate.set_nonblocking(reader.as_fd(), nonblocking).unwrap();
            let run = |until| {
                gate.run(reader.as_fd(), until, || read_one(&reader))
                    .unwrap()
            };
            assert_eq!(run(Until::Now), None);
            assert_eq!(run(Until::after(Duration::from_millis(5))), None);
            writer.write_all(&[7, 8, 9]).unwrap();
            assert_eq!(run(Until::Now), Some(7));
            assert_eq!(run(Until::after(Duration::from_secs(60))), Some(8));
            assert_eq!(run(Until::Forever), Some(9));
        }
        assert_eq!(
            gate.run(reader.as_fd(), Until::Mode, || read_one(&reader))
                .unwrap(),
            None
        );
    }

    #[test]
    fn a_timed_wait_keeps_its_time_behind_an_endless_one() {
        let (reader, mut writer) = UnixStream::pair().unwrap();
        let shared = Arc::new((Gate::new(), reader));
        let endless = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared
                    .0
                    .run(shared.1.as_fd(), Until::Forever, || read_one(&shared.1))
                    .unwrap()
            })
        };
        while !shared.0.turns.is_taken() {
            thread::yield_now();
        }
        let timed = Until::after(Duration::from_millis(20));
        assert_eq!(
            shared
                .0
                .run(shared.1.as_fd(), timed, || read_one(&shared.1))
                .unwrap(),
            None
        );
        assert_eq!(
            shared
                .0
                .run(shared.1.as_fd(), Until::Now, || read_one(&shared.1))
                .unwrap(),
            None
        );
        writer.write_all(&[1]).unwrap();
        assert_eq!(endless.join().unwrap(), Some(1));
    }

    #[test]
    fn shares_of_a_time_leave_something_for_the_others() {
        let whole = Until::after(Duration::from_secs(60));
        let share = whole.share(3).left_or(Duration::MAX);
        assert!(share > Duration::from_secs(18) && share <= Duration::from_secs(20));
        assert!(whole.share(1).left_or(Duration::MAX) > Duration::from_secs(50));
        assert!(matches!(Until::Forever.share(2), Until::Forever));
        assert!(matches!(Until::Now.share(2), Until::Now));
    }

    #[test]
    fn an_endless_time_does_not_overflow() {
        assert!(matches!(Until::after(Duration::MAX), Until::Forever));
        assert!(matches!(Until::after(Duration::ZERO), Until::Now));
    }
}
