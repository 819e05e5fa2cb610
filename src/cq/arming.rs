//! Which wait finds the queue armed, and what it does about it.

use crate::sync::{AtomicBool, AtomicU8, Ordering};

/// A completion queue and its channel, as one wait sees them.
pub(crate) trait Source {
    type Error;
    /// The turn to read the channel.
    type Turn<'t>
    where
        Self: 't;

    /// `None` when the time is over first.
    fn turn(&self) -> Option<Self::Turn<'_>>;

    /// Takes the queue's next event, and counts it; `false` when the time is over first.
    fn event(&self, turn: &Self::Turn<'_>) -> Result<bool, Self::Error>;

    /// Asks for an event at the next completion, or at the next solicited one.
    fn ask(&self, solicited_only: bool) -> Result<(), Self::Error>;
}

/// What is known of a queue's arming. What it says may be less than what is so, but not more: where it says armed, the queue is, or its
/// event is in the channel.
#[derive(Debug)]
pub(crate) struct Arming {
    /// One of the four below.
    armed: AtomicU8,
    /// The queue is not armed as a wait should have left it: the next one has news, and arms it.
    owed: AtomicBool,
}

/// The next completion gives no event.
const UNARMED: u8 = 0;
/// The next solicited completion gives an event.
const ARMED_FOR_SOLICITED: u8 = 1;
/// The next completion gives an event.
const ARMED: u8 = 2;
/// As `UNARMED`: `take` had the last event, and nobody asked for an unarmed queue.
const LEFT_BY_TAKE: u8 = 3;

impl Arming {
    pub(crate) fn new() -> Self {
        Arming {
            armed: AtomicU8::new(UNARMED),
            owed: AtomicBool::new(false),
        }
    }

    /// Arms the queue.
    pub(crate) fn arm<S: Source>(&self, queue: &S, solicited_only: bool) -> Result<(), S::Error> {
        // Before the call: an event that comes at once must find the mark set, and take it away again.
        let armed = if solicited_only {
            ARMED_FOR_SOLICITED
        } else {
            ARMED
        };
        self.armed.store(armed, Ordering::Release);
        queue
            .ask(solicited_only)
            .inspect_err(|_| self.armed.store(UNARMED, Ordering::Release))
    }

    /// Arms the queue for the next wait. Where that fails, the next wait must not wait for an event that cannot come.
    pub(crate) fn arm_again<S: Source>(&self, queue: &S) -> Result<(), S::Error> {
        self.arm(queue, false)
            .inspect_err(|_| self.owed.store(true, Ordering::Release))
    }

    /// Gives the next completion an event, or is the event there?
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Acquire) == ARMED
    }

    pub(crate) fn take_owed(&self) -> bool {
        self.owed.load(Ordering::Relaxed) && self.owed.swap(false, Ordering::AcqRel)
    }

    /// The queue's event was taken from its channel: the queue is armed no longer.
    pub(crate) fn fired(&self) {
        self.armed.store(UNARMED, Ordering::Release);
    }

    /// Waits for news, and arms the queue again.
    pub(crate) fn wait<S: Source>(&self, queue: &S) -> Result<bool, S::Error> {
        if !self.event_or_left(queue, true)? {
            return Ok(false);
        }
        self.arm_again(queue)?;
        Ok(true)
    }

    /// Waits for the queue's event, and leaves the queue unarmed.
    pub(crate) fn event<S: Source>(&self, queue: &S) -> Result<bool, S::Error> {
        self.event_or_left(queue, false)
    }

    /// Waits for the queue's event, or with `left` for [`take`](Self::take) to have left it unarmed: what came since gives no event, so
    /// that is the news.
    fn event_or_left<S: Source>(&self, queue: &S, left: bool) -> Result<bool, S::Error> {
        let left = || left && self.armed.load(Ordering::Acquire) == LEFT_BY_TAKE;
        if self.take_owed() || left() {
            return Ok(true);
        }
        let Some(turn) = queue.turn() else {
            return Ok(false);
        };
        // Whoever had the turn before may have left the queue so.
        if self.take_owed() || left() {
            return Ok(true);
        }
        let fired = queue.event(&turn)?;
        if fired {
            self.fired();
        }
        Ok(fired)
    }

    /// Arms the queue, polls, and blocks until there is something to poll for. The queue is left unarmed where that was needed.
    pub(crate) fn take<S: Source>(
        &self,
        queue: &S,
        mut poll: impl FnMut() -> Result<usize, S::Error>,
    ) -> Result<usize, S::Error> {
        loop {
            let Some(turn) = queue.turn() else {
                return poll();
            };
            if !self.is_armed() {
                self.arm_again(queue)?;
            }
            let n = poll()?;
            if n > 0 {
                return Ok(n);
            }
            let fired = queue.event(&turn)?;
            if fired {
                self.armed.store(LEFT_BY_TAKE, Ordering::Release);
            }
            drop(turn);
            let n = poll()?;
            if n > 0 || !fired {
                return Ok(n);
            }
        }
    }
}
