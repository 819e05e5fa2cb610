//! Waiting on fds that several threads may wait on, with timeouts and wake-ups.
//!
//! Every fd that the crate reads is in non-blocking mode. A wait takes the turn to read, tries, and
//! sleeps in poll(2) where nothing was there. Only the C interface has fds in another mode, since its
//! programs set them: there the read itself blocks ([`Until::InRead`]).

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

use crate::{Error, Result};

/// Ends waits of other threads: of one queue, one connection's events, one endpoint, or one device's
/// events. It needs no ownership of what is waited on, and may outlive it.
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
            Err(errno) => Err(Error::provider("eventfd", errno as i32)),
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
    _turn: turns::Turn<'g>,
}

impl Turn<'_> {
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
            // sleep is short at first, and only a wait that lasts gets an fd for it. Where none is to
            // be had, the sleeps stay short.
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
            Err(errno) => return Err(Error::provider("poll", errno as i32)),
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
            .map_err(|errno| Error::provider("fcntl", errno as i32))?;
    }
    Ok(())
}

fn flags(fd: BorrowedFd<'_>) -> Result<OFlag> {
    match fcntl(fd, FcntlArg::F_GETFL) {
        Ok(flags) => Ok(OFlag::from_bits_retain(flags)),
        Err(errno) => Err(Error::provider("fcntl", errno as i32)),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        os::fd::AsFd,
        os::unix::net::UnixStream,
        thread,
    };

    use super::*;

    fn read_one(mut reader: &UnixStream) -> Result<Option<u8>> {
        let mut byte = [0];
        match reader.read(&mut byte) {
            Ok(_) => Ok(Some(byte[0])),
            Err(err) if err.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(err) => Err(Error::provider("read", err.raw_os_error().unwrap_or(0))),
        }
    }

    /// A socket in non-blocking mode with its gate, and the other end.
    fn gated() -> (Arc<(Gate, UnixStream)>, UnixStream) {
        let (reader, writer) = UnixStream::pair().unwrap();
        set_nonblocking(reader.as_fd(), true).unwrap();
        (Arc::new((Gate::new(), reader)), writer)
    }

    fn run(shared: &(Gate, UnixStream), until: Until) -> Result<Option<u8>> {
        shared
            .0
            .run(shared.1.as_fd(), until, || read_one(&shared.1))
    }

    #[test]
    fn nothing_there_is_none() {
        let (shared, mut writer) = gated();
        assert_eq!(run(&shared, Until::Now).unwrap(), None);
        let soon = Until::after(Duration::from_millis(5));
        assert_eq!(run(&shared, soon).unwrap(), None);
        writer.write_all(&[7, 8, 9]).unwrap();
        let later = Until::after(Duration::from_secs(60));
        for (until, byte) in [(Until::Now, 7), (later, 8), (Until::Forever, 9)] {
            assert_eq!(run(&shared, until).unwrap(), Some(byte));
        }
    }

    #[test]
    fn a_c_program_sets_how_its_fd_blocks() {
        let (shared, mut writer) = gated();
        let as_set = || Until::as_fd_is_set(shared.1.as_fd()).unwrap();
        assert!(matches!(as_set(), Until::Now));
        set_nonblocking(shared.1.as_fd(), false).unwrap();
        assert!(matches!(as_set(), Until::InRead));
        writer.write_all(&[7]).unwrap();
        assert_eq!(run(&shared, as_set()).unwrap(), Some(7));
    }

    #[test]
    fn each_wake_up_ends_one_wait() {
        let (shared, mut writer) = gated();
        let waiter = |until| {
            let shared = shared.clone();
            thread::spawn(move || run(&shared, until))
        };
        let woken = |result| matches!(result, Err(Error::Woken));
        // Made before the wait blocks, while its sleep is short, and while it is long.
        for pause in [0, 5, 50] {
            let threads = [Until::Forever, Until::after(Duration::from_secs(600))].map(waiter);
            thread::sleep(Duration::from_millis(pause));
            let waker = shared.0.waker().unwrap();
            waker.wake();
            waker.clone().wake();
            for thread in threads {
                assert!(woken(thread.join().unwrap()));
            }
        }
        // One that nobody has used is for the next wait that would block.
        shared.0.waker().unwrap().wake();
        writer.write_all(&[7]).unwrap();
        assert_eq!(run(&shared, Until::Forever).unwrap(), Some(7));
        assert_eq!(run(&shared, Until::Now).unwrap(), None);
        assert!(woken(run(&shared, Until::Forever)));
        let soon = Until::after(Duration::from_millis(5));
        assert_eq!(run(&shared, soon).unwrap(), None);
    }

    #[test]
    fn a_long_wait_leaves_no_fd_behind() {
        let (shared, _writer) = gated();
        let long = Until::after(SHORT * 2);
        assert_eq!(run(&shared, long).unwrap(), None);
        assert!(shared.0.wakeups.current().is_none());
        drop(shared.0.waker().unwrap());
        assert_eq!(run(&shared, Until::after(SHORT * 2)).unwrap(), None);
        assert!(shared.0.wakeups.current().is_some());
    }

    #[test]
    fn a_timed_wait_keeps_its_time_behind_an_endless_one() {
        let (shared, mut writer) = gated();
        let endless = {
            let shared = shared.clone();
            thread::spawn(move || run(&shared, Until::Forever).unwrap())
        };
        while !shared.0.turns.is_taken() {
            thread::yield_now();
        }
        let timed = Until::after(Duration::from_millis(20));
        assert_eq!(run(&shared, timed).unwrap(), None);
        assert_eq!(run(&shared, Until::Now).unwrap(), None);
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
