//! Which wait finds the queue armed, and what it does about it.

use std::cell::Cell;

use crate::sync::{AtomicU32, Ordering};

/// A completion queue and its channel, as one wait sees them.
pub(crate) trait Source {
    type Error;
    /// The turn to read the channel.
    type Turn<'t>
    where
        Self: 't;

    /// `None` when the time is over first, or when `is_known` says that there is news without it.
    fn turn(&self, is_known: impl Fn() -> bool) -> Option<Self::Turn<'_>>;

    /// Lets those who wait for the turn ask again what is known.
    fn tell(turn: &Self::Turn<'_>);

    /// Takes the queue's next event, and counts it; `false` when the time is over first.
    fn event(&self, turn: &Self::Turn<'_>) -> Result<bool, Self::Error>;

    /// Asks for an event at the next completion, or at the next solicited one.
    fn ask(&self, solicited_only: bool) -> Result<(), Self::Error>;
}

/// What is known of a queue's arming. What it says may be less than what is so, but not more: where
/// it says armed, the queue is, or its event is in the channel.
///
/// The lowest two bits are one of the four below. The rest counts the changes: whoever arms sees by
/// it whether the queue fired, or was armed by another, before it could note the outcome.
#[derive(Debug)]
pub(crate) struct Arming(AtomicU32);

/// The next completion gives no event.
const UNARMED: u32 = 0;
/// The device is being asked for an event, and has not answered yet: nobody relies on it.
const ARMING: u32 = 1;
/// The next solicited completion gives an event.
const ARMED_FOR_SOLICITED: u32 = 2;
/// The next completion gives an event.
const ARMED: u32 = 3;

const STATE: u32 = 3;

impl Arming {
    pub(crate) fn new() -> Self {
        Arming(AtomicU32::new(UNARMED))
    }

    /// Arms the queue.
    pub(crate) fn arm<S: Source>(&self, queue: &S, solicited_only: bool) -> Result<(), S::Error> {
        let arming = self.set(ARMING);
        let outcome = queue.ask(solicited_only);
        let state = match (&outcome, solicited_only) {
            (Err(_), _) => UNARMED,
            (Ok(()), true) => ARMED_FOR_SOLICITED,
            (Ok(()), false) => ARMED,
        };
        // Where another has set it meanwhile, that stays: it may be that the queue fired.
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let _ = self
            .0
            .compare_exchange(arming, arming & !STATE | state, success, failure);
        outcome
    }

    /// Sets the state, and gives what was stored.
    fn set(&self, state: u32) -> u32 {
        let next = |word: u32| (word & !STATE).wrapping_add(STATE + 1) | state;
        let before = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| Some(next(word)));
        next(before.unwrap_or_else(|word| word))
    }

    fn state(&self) -> u32 {
        self.0.load(Ordering::Acquire) & STATE
    }

    /// Gives the next completion an event, or is the event there?
    pub(crate) fn is_armed(&self) -> bool {
        self.state() == ARMED
    }

    /// Can a completion lie in the queue that gave no event, nor gives one?
    pub(crate) fn is_unarmed(&self) -> bool {
        matches!(self.state(), UNARMED | ARMING)
    }

    /// The queue's event was taken from its channel: the queue is armed no longer.
    pub(crate) fn fired(&self) {
        self.set(UNARMED);
    }

    /// Waits for news, and arms the queue again. That the queue is not armed is news: what came
    /// since gives no event.
    pub(crate) fn wait<S: Source>(&self, queue: &S) -> Result<bool, S::Error> {
        if !self.is_unarmed() {
            // Another may arm the queue again before this thread looks a second time.
            let told = Cell::new(false);
            let turn = queue.turn(|| {
                told.set(self.is_unarmed());
                told.get()
            });
            // Whoever had the turn before may have left the queue unarmed.
            if !told.get() && !self.is_unarmed() {
                let Some(turn) = turn else {
                    return Ok(false);
                };
                if !queue.event(&turn)? {
                    return Ok(false);
                }
                self.fired();
            }
        }
        self.arm(queue, false)?;
        Ok(true)
    }

    /// Waits for the queue's event, and leaves the queue unarmed.
    pub(crate) fn event<S: Source>(&self, queue: &S) -> Result<bool, S::Error> {
        let Some(turn) = queue.turn(|| false) else {
            return Ok(false);
        };
        let fired = queue.event(&turn)?;
        if fired {
            self.fired();
            S::tell(&turn);
        }
        Ok(fired)
    }

    /// Arms the queue, polls, and blocks until there is something to poll for. The queue is left
    /// unarmed where that was needed.
    pub(crate) fn take<S: Source>(
        &self,
        queue: &S,
        mut poll: impl FnMut() -> Result<usize, S::Error>,
    ) -> Result<usize, S::Error> {
        loop {
            let Some(turn) = queue.turn(|| false) else {
                return poll();
            };
            if !self.is_armed() {
                self.arm(queue, false)?;
            }
            let n = poll()?;
            if n > 0 {
                return Ok(n);
            }
            let fired = queue.event(&turn)?;
            if fired {
                self.fired();
            }
            drop(turn);
            let n = poll()?;
            if n > 0 || !fired {
                return Ok(n);
            }
        }
    }
}
