//! Logs the errors that no return value can carry, such as those of drops, at most ten a second.
//!
//! A logger is foreign code: it may panic, and it may call back into this crate. Two rules keep
//! that harmless:
//!
//! - **Log last.** What is logged has been dealt with: objects are destroyed, or leaked where the
//!   device refused; no lock of this crate is held. This is the rule that soundness rests on.
//! - **A panic of the logger ends here.** The functions below catch it. Else it would leave a drop
//!   in the middle, or abort the process where the drop is itself part of unwinding.
//!
//! Messages of other levels go to the `log` crate directly: they come from functions that may
//! unwind.

use std::{
    fmt, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use crate::Error;

/// Logs the error of `result`, if it is one, as [`log_error`] does.
pub(crate) fn log_failure(result: Result<(), Error>) {
    if let Err(err) = result {
        log_error(format_args!("{err}"));
    }
}

/// Logs `message` as an error, once nothing depends on what the logger does. Never panics.
///
/// Of a flood of errors ten a second are logged, and the next one after them tells how many were
/// not.
#[cold]
pub(crate) fn log_error(message: fmt::Arguments<'_>) {
    static START: OnceLock<Instant> = OnceLock::new();
    static LIMIT: Limit = Limit::new(10);
    let second = START.get_or_init(Instant::now).elapsed().as_secs();
    let Some(suppressed) = LIMIT.admit(second) else {
        return;
    };
    // Nothing of ours is shared with the logger, so no broken invariant can be seen after a panic.
    let logged = catch_unwind(AssertUnwindSafe(|| match suppressed {
        0 => log::error!(target: "rpma", "{message}"),
        _ => {
            log::error!(target: "rpma", "{message} ({suppressed} more errors were not logged)");
        }
    }));
    if let Err(panic) = logged {
        // Dropping the payload is foreign code, too, and may panic again.
        mem::forget(panic);
    }
}

/// At most so many a second.
struct Limit {
    most: u64,
    /// The current second in the upper half, how many came within it in the lower.
    state: AtomicU64,
    suppressed: AtomicU64,
}

impl Limit {
    const fn new(most: u64) -> Self {
        Limit {
            most,
            state: AtomicU64::new(0),
            suppressed: AtomicU64::new(0),
        }
    }

    /// `None` where the limit of this second is reached, else how many were suppressed since the
    /// last that was not.
    fn admit(&self, second: u64) -> Option<u64> {
        let second = second & u64::from(u32::MAX);
        let next = |state: u64| {
            if state >> 32 == second {
                state.saturating_add(1)
            } else {
                second << 32 | 1
            }
        };
        let before = self
            .state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
                Some(next(state))
            })
            .unwrap_or_default();
        let count = next(before) & u64::from(u32::MAX);
        if count > self.most {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.suppressed.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests;
