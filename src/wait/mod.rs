//! Waiting on fds that several threads may wait on, with timeouts and wake-ups.
//!
//! Every fd that the crate reads is in non-blocking mode. A wait takes the turn to read, tries, and
//! sleeps in poll(2) where nothing was there. Only the C interface has fds in another mode, since
//! its programs set them: there the read itself blocks ([`Until::InRead`]).

#[cfg(test)]
mod tests;
mod turns;
mod wakeups;

use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::eventfd::{EfdFlags, EventFd},
};

use turns::Turns;
use wakeups::Wakeups;

use crate::{Call, Error, Result};

/// Ends waits of other threads: of one queue, one connection's events, one endpoint, or one
/// device's events. It needs no ownership of what is waited on, and may outlive it.
///
/// Each [`wake`](Self::wake) ends one wait, which then gives [`Error::Woken`]. Clones are the same
/// waker.
#[derive(Debug, Clone)]
pub struct Waker(Arc<EventFd>);

impl Waker {
    fn new() -> Result<Self> {
        // Each read takes one wake-up off the count.
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_SEMAPHORE;
        match EventFd::from_value_and_flags(0, flags) {
            Ok(eventfd) => Ok(Waker(Arc::new(eventfd))),
            Err(errno) => Err(Error::provider(Call::Eventfd, errno as i32)),
        }
    }

    /// Ends one wait: one that blocks now, or else the next one that would block. Waits that find
    /// what they wait for, and the `try_` methods, leave the wake-up to another.
    pub fn wake(&self) {
        // It fails only when 2^64 - 2 wake-ups are there, and then one more changes nothing.
        let _ = self.0.write(1);
    }

    /// Uses one wake-up, where there is one.
    fn was_woken(&self) -> bool {
        self.0.read().is_ok()
    }
}

/// How long a wait may take.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// Not at all.
    Now,
    /// Until then.
    Deadline(Instant),
    /// As long as it takes.
    Forever,
    /// As long as it takes, in the read itself, and no longer than until a signal comes: for the C
    /// interface, whose programs decide how their fds block.
    InRead,
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

    /// As a C program has set `fd`: it blocks unless O_NONBLOCK is set.
    pub(crate) fn as_fd_is_set(fd: BorrowedFd<'_>) -> Result<Self> {
        Ok(match flags(fd)?.contains(OFlag::O_NONBLOCK) {
            true => Until::Now,
            false => Until::InRead,
        })
    }

    pub(crate) fn is_over(self) -> bool {
        matches!(self, Until::Deadline(deadline) if Instant::now() >= deadline)
            || matches!(self, Until::Now)
    }

    /// `time` from now, or this where it is over sooner.
    fn at_most(self, time: Duration) -> Self {
        match self.left() {
            Some(left) if left <= time => self,
            _ => Until::after(time),
        }
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
            Until::Forever | Until::InRead => forever,
        }
    }

    /// What is left; `None` for ever.
    fn left(self) -> Option<Duration> {
        match self {
            Until::Now => Some(Duration::ZERO),
            Until::Deadline(deadline) => Some(deadline.saturating_duration_since(Instant::now())),
            Until::Forever | Until::InRead => None,
        }
    }
}

/// Lets one thread at a time read an fd, so that what a thread has seen of it stays true while it
/// holds the turn.
#[derive(Debug)]
pub(crate) struct Gate {
    turns: Turns,
    wakeups: Wakeups<Waker>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Gate {
            turns: Turns::new(),
            wakeups: Wakeups::new(),
        }
    }

    /// Takes the turn, and waits as [`Turn::wait`] does.
    pub(crate) fn run<T>(
        &self,
        fd: BorrowedFd<'_>,
        until: Until,
        attempt: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        match self.turn(until, || false) {
            Some(turn) => turn.wait(fd, until, attempt),
            None => Ok(None),
        }
    }

    /// Takes the turn to read; `None` when the time is over first, or when `is_known` says that it
    /// is needed no longer: who sleeps asks again after each [`Turn::tell`].
    pub(crate) fn turn(&self, until: Until, is_known: impl Fn() -> bool) -> Option<Turn<'_>> {
        Some(Turn {
            gate: self,
            turn: self.turns.take(|| until.left(), is_known)?,
        })
    }

    /// What ends the waits of this gate.
    pub(crate) fn waker(&self) -> Result<Waker> {
        self.wakeups.give(Waker::new)
    }

    /// Uses one wake-up, where there is one: for those who wait without this gate.
    pub(crate) fn was_woken(&self) -> bool {
        self.wakeups
            .current()
            .is_some_and(|waker| waker.was_woken())
    }
}

/// The turn to read; given back when dropped.
pub(crate) struct Turn<'g> {
    gate: &'g Gate,
    turn: turns::Turn<'g>,
}

impl Turn<'_> {
    /// What was read is news to those who wait for the turn.
    pub(crate) fn tell(&self) {
        self.turn.tell();
    }

    /// Calls `attempt`, which reads `fd` once and gives `None` where nothing was there, until it
    /// gives something or the time is over.
    ///
    /// # Errors
    /// Those of `attempt`; [`Error::Woken`].
    pub(crate) fn wait<T>(
        &self,
        fd: BorrowedFd<'_>,
        until: Until,
        mut attempt: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        loop {
            match (attempt(), until) {
                (outcome, Until::InRead) => return outcome,
                (Err(err), _) if err.raw_os_error() == Some(libc::EINTR) => {}
                (Ok(None), Until::Deadline(_) | Until::Forever) => {
                    if !self.sleep(fd, until)? {
                        return Ok(None);
                    }
                }
                (outcome, _) => return outcome,
            }
        }
    }

    /// Sleeps until `fd` is readable; `false` when the time is over first.
    fn sleep(&self, fd: BorrowedFd<'_>, until: Until) -> Result<bool> {
        let wakeups = &self.gate.wakeups;
        let mut waker = wakeups.current();
        let outcome = loop {
            // A waker that is made only now does not end the poll(2) below. So without one the
            // sleep is short at first, and only a wait that lasts gets an fd for it. Where none is
            // to be had, the sleeps stay short.
            let piece = match waker {
                Some(_) => until,
                None => until.at_most(SHORT),
            };
            match readable(fd, waker.as_ref(), piece) {
                Ok(Seen::Fd) => break Ok(true),
                Ok(Seen::Waker(waker)) if waker.was_woken() => break Err(Error::Woken),
                Ok(Seen::Waker(_)) => {}
                Ok(Seen::Nothing) if until.is_over() => break Ok(false),
                Ok(Seen::Nothing) => waker = wakeups.lend(Waker::new).ok(),
                Err(err) => break Err(err),
            }
        };
        if waker.is_some() {
            wakeups.take_back();
        }
        outcome
    }
}

/// How long a wait may sleep before it looks for a waker again.
const SHORT: Duration = Duration::from_millis(20);

enum Seen<'w> {
    Fd,
    Waker(&'w Waker),
    Nothing,
}

/// Sleeps until `fd` is readable or there is a wake-up. Times are rounded up to whole milliseconds.
fn readable<'w>(fd: BorrowedFd<'_>, waker: Option<&'w Waker>, until: Until) -> Result<Seen<'w>> {
    let wakes = waker.map_or(fd, |waker| waker.0.as_fd());
    let mut fds = [fd, wakes].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    let len = 1 + usize::from(waker.is_some());
    loop {
        let left = until.left();
        let timeout = match left {
            None => PollTimeout::NONE,
            Some(left) => {
                let millis = left.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32;
                PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
            }
        };
        match poll(&mut fds[..len], timeout) {
            // A very long wait comes in pieces.
            Ok(0) if until.left().is_none_or(|left| !left.is_zero()) => {}
            Ok(0) => return Ok(Seen::Nothing),
            Ok(_) if fds[0].any() == Some(false) => {
                return Ok(waker.map_or(Seen::Nothing, Seen::Waker));
            }
            Ok(_) => return Ok(Seen::Fd),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(Error::provider(Call::Poll, errno as i32)),
        }
    }
}

/// Puts `fd` into non-blocking mode, or into blocking mode for a C program.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>, yes: bool) -> Result<()> {
    let before = flags(fd)?;
    let mut wanted = before;
    wanted.set(OFlag::O_NONBLOCK, yes);
    if wanted != before {
        fcntl(fd, FcntlArg::F_SETFL(wanted))
            .map_err(|errno| Error::provider(Call::Fcntl, errno as i32))?;
    }
    Ok(())
}

fn flags(fd: BorrowedFd<'_>) -> Result<OFlag> {
    match fcntl(fd, FcntlArg::F_GETFL) {
        Ok(flags) => Ok(OFlag::from_bits_retain(flags)),
        Err(errno) => Err(Error::provider(Call::Fcntl, errno as i32)),
    }
}
