//! What the device or the system refused where nobody can be told by a return value: in drops. It is logged, and no more often than a
//! person can read.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use crate::Error;

/// Logs `result` if it is an error; a flood of errors is cut to ten a second and counted.
pub(crate) fn report(result: Result<(), Error>) {
    if let Err(err) = result {
        log_error(&err);
    }
}

/// Logs an error, as [`report`] does.
#[cold]
pub(crate) fn log_error(err: &Error) {
    static START: OnceLock<Instant> = OnceLock::new();
    static LIMIT: Limit = Limit::new(10);
    let second = START.get_or_init(Instant::now).elapsed().as_secs();
    match LIMIT.admit(second) {
        Some(0) => log::error!(target: "rpma", "{err}"),
        Some(suppressed) => {
            log::error!(target: "rpma", "{err} ({suppressed} more errors were not logged)");
        }
        None => {}
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

    /// `None` where the limit of this second is reached, else how many were suppressed since the last that was not.
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
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted() {
        let limit = Limit::new(3);
        let admitted: Vec<_> = (0..10).map(|_| limit.admit(5)).collect();
        assert_eq!(admitted[..3], [Some(0); 3]);
        assert_eq!(admitted[3..], [None; 7]);
        assert_eq!(limit.admit(6), Some(7));
        assert_eq!(limit.admit(6), Some(0));
    }

    #[test]
    fn the_first_second_counts_too() {
        let limit = Limit::new(1);
        assert_eq!(limit.admit(0), Some(0));
        assert_eq!(limit.admit(0), None);
    }
}
