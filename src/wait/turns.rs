use std::{cell::Cell, time::Duration};

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// One thread at a time, the others wait.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    free: Condvar,
}

#[derive(Debug)]
struct State {
    busy: bool,
    /// Where it is not busy: the turn is kept for a thread that sleeps: one that comes again and
    /// again would otherwise take it before the sleeper is awake, each time.
    kept: bool,
    asleep: u32,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Turns {
            state: Mutex::new(State {
                busy: false,
                kept: false,
                asleep: 0,
            }),
            free: Condvar::new(),
        }
    }

    /// Waits for the turn; `None` when the time is over first, or when `is_known` says that it is
    /// needed no longer. `left` is asked how much time there is; `None` is for ever. `is_known` is
    /// asked before each sleep, and all who sleep wake up for [`Turn::tell`].
    pub(crate) fn take(
        &self,
        left: impl Fn() -> Option<Duration>,
        is_known: impl Fn() -> bool,
    ) -> Option<Turn<'_>> {
        let mut state = self.state();
        let mut sleeps = state.busy || state.kept;
        while sleeps {
            if is_known() {
                return None;
            }
            let left = left();
            if left == Some(Duration::ZERO) {
                return None;
            }
            state.asleep += 1;
            state = match left {
                None => self
                    .free
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    self.free
                        .wait_timeout(state, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
            state.asleep -= 1;
            // A thread that has slept may take what is kept. So whoever gives up has seen the turn
            // busy, and never leaves one kept for nobody.
            sleeps = state.busy;
        }
        state.busy = true;
        Some(Turn {
            turns: self,
            news: Cell::new(false),
        })
    }

    #[cfg(test)]
    pub(crate) fn is_taken(&self) -> bool {
        self.state().busy
    }

    #[cfg(test)]
    #[allow(dead_code, reason = "for the models")]
    pub(crate) fn sleepers(&self) -> u32 {
        self.state().asleep
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn; given back when dropped.
#[derive(Debug)]
pub(crate) struct Turn<'t> {
    turns: &'t Turns,
    news: Cell<bool>,
}

impl Turn<'_> {
    /// Lets all who sleep look at what they wait for when the turn ends. The turn goes to one of
    /// them only, and that one may hold it for ever.
    pub(crate) fn tell(&self) {
        self.news.set(true);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        state.busy = false;
        state.kept = state.asleep > 0;
        let wanted = state.kept;
        drop(state);
        // Waking is a system call, even where nobody sleeps.
        match wanted {
            false => {}
            true if self.news.get() => self.turns.free.notify_all(),
            true => self.turns.free.notify_one(),
        }
    }
}
