//! Events that were taken and must be acknowledged.

use crate::sync::{AtomicU32, Ordering};

/// Counts events, and gives them back in groups of so many: each acknowledgement takes a lock
/// inside libibverbs.
#[derive(Debug)]
pub(crate) struct Acks<const GROUP: u32>(AtomicU32);

impl<const GROUP: u32> Acks<GROUP> {
    pub(crate) fn new() -> Self {
        Acks(AtomicU32::new(0))
    }

    /// Counts one event that was taken; `give_back` is called with how many are due, if any are.
    pub(crate) fn count(&self, give_back: impl FnOnce(u32)) {
        // Whoever gives an event back has seen that it was taken: released here, acquired below.
        if self.0.fetch_add(1, Ordering::Release) + 1 >= GROUP {
            self.give_back(give_back);
        }
    }

    /// Calls `give_back` with all that were counted and not given back yet, if there are any.
    pub(crate) fn give_back(&self, give_back: impl FnOnce(u32)) {
        let n = self.0.swap(0, Ordering::Acquire);
        if n > 0 {
            give_back(n);
        }
    }
}
