use std::time::Duration;

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// One thread at a time, the others wait.
#[derive(Debug)]
pub(crate) struct Turns {
    busy: Mutex<bool>,
    free: Condvar,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Turns {
            busy: Mutex::new(false),
            free: Condvar::new(),
        }
    }

    /// Waits for the turn; `None` when the time is over first. `left` is asked how much there is; `None` is for ever.
    pub(crate) fn take(&self, left: impl Fn() -> Option<Duration>) -> Option<Turn<'_>> {
        let mut busy = self.busy();
        while *busy {
            busy = match left() {
                None => self.free.wait(busy).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return None,
                Some(left) => {
                    self.free
                        .wait_timeout(busy, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
        *busy = true;
        Some(Turn(self))
    }

    #[cfg(test)]
    pub(crate) fn is_taken(&self) -> bool {
        *self.busy()
    }

    fn busy(&self) -> MutexGuard<'_, bool> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn; given back when dropped.
#[derive(Debug)]
pub(crate) struct Turn<'t>(&'t Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.busy() = false;
        self.0.free.notify_one();
    }
}
