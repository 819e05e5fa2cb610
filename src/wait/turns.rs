use std::time::Duration;

use crate::sync::{AtomicU32, Condvar, Mutex, MutexGuard, Ordering, PoisonError};

/// One thread at a time, the others wait.
#[derive(Debug)]
pub(crate) struct Turns {
    busy: Mutex<bool>,
    free: Condvar,
    /// Threads that sleep until it is free; changed and read with `busy` locked only.
    asleep: AtomicU32,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Turns {
            busy: Mutex::new(false),
            free: Condvar::new(),
            asleep: AtomicU32::new(0),
        }
    }

    /// Waits for the turn; `None` when the time is over first. `left` is asked how much there is; `None` is for ever.
    pub(crate) fn take(&self, left: impl Fn() -> Option<Duration>) -> Option<Turn<'_>> {
        let mut busy = self.busy();
        while *busy {
            let left = left();
            if left == Some(Duration::ZERO) {
                return None;
            }
            self.asleep.fetch_add(1, Ordering::Relaxed);
            busy = match left {
                None => self.free.wait(busy).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    self.free
                        .wait_timeout(busy, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
            self.asleep.fetch_sub(1, Ordering::Relaxed);
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
        let mut busy = self.0.busy();
        *busy = false;
        let wanted = self.0.asleep.load(Ordering::Relaxed) > 0;
        drop(busy);
        // Waking is a system call, even where nobody sleeps.
        if wanted {
            self.0.free.notify_one();
        }
    }
}
