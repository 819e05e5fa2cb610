//! Wakers that are made while others wait: none wakes in vain.

use loom::sync::{Arc, Condvar, Mutex};

use crate::{check, wakeups::Wakeups};

/// What an eventfd is: a count of wake-ups.
#[derive(Default)]
struct Wake {
    count: Mutex<u32>,
    more: Condvar,
}

impl Wake {
    fn wake(&self) {
        *self.count.lock().unwrap() += 1;
        self.more.notify_all();
    }

    /// Sleeps until there is a wake-up, and uses it.
    fn sleep(&self) {
        let mut count = self.count.lock().unwrap();
        while *count == 0 {
            count = self.more.wait(count).unwrap();
        }
        *count -= 1;
    }
}

fn make() -> Result<Arc<Wake>, ()> {
    Ok(Arc::default())
}

/// One wait that ends by what it waits for, and one that only the waker can end.
#[test]
fn a_wake_up_ends_a_wait_whenever_the_waker_was_made() {
    check(4, || {
        let wakeups = Arc::new(Wakeups::new());
        let waiter = {
            let wakeups = wakeups.clone();
            loom::thread::spawn(move || {
                wakeups.lend(make).unwrap();
                wakeups.take_back();
                wakeups.lend(make).unwrap().sleep();
                wakeups.take_back();
            })
        };
        wakeups.give(make).unwrap().wake();
        waiter.join().unwrap();
        // The waker that somebody has is the one of all later waits.
        assert!(wakeups.current().is_some());
    });
}

#[test]
fn what_was_lent_does_not_stay() {
    check(4, || {
        let wakeups = Wakeups::new();
        wakeups.lend(make).unwrap();
        wakeups.take_back();
        assert!(wakeups.current().is_none());
    });
}
