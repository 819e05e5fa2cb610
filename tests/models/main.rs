//! The parts of the crate where threads meet, in every order in which they can: the very files of
//! `src`, compiled with loom's types in place of the standard library's. ci/test.d/36-model also
//! changes them, one mistake at a time, and each must be found here.

mod arming_model;
mod spare_model;
mod sync;
mod wakeups_model;

#[path = "../../src/verbs/acks.rs"]
mod acks;
#[path = "../../src/cq/arming.rs"]
mod arming;
#[path = "../../src/ops/spare.rs"]
mod spare;
#[path = "../../src/wait/turns.rs"]
mod turns;
#[path = "../../src/wait/wakeups.rs"]
mod wakeups;

use acks::Acks;
use loom::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use turns::Turns;

/// All orders with at most so many switches of a thread that could have gone on.
fn check(switches: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.check(model);
}

/// Runs `work` in as many threads, this one among them.
fn threads<T: Send + Sync + 'static>(shared: &Arc<T>, of: usize, work: fn(&T)) {
    let others: Vec<_> = (1..of)
        .map(|_| {
            let shared = shared.clone();
            loom::thread::spawn(move || work(&shared))
        })
        .collect();
    work(shared);
    for other in others {
        other.join().unwrap();
    }
}

/// Events that were taken from a channel, and of those what was given back: never more, and all of
/// them in the end.
#[test]
fn events_are_acknowledged_once_and_never_before_they_are_taken() {
    struct Queue {
        taken: AtomicU32,
        acknowledged: AtomicU32,
        acks: Acks<2>,
    }

    impl Queue {
        fn acknowledge(&self, n: u32) {
            let before = self.acknowledged.fetch_add(n, Ordering::AcqRel);
            let taken = self.taken.load(Ordering::Acquire);
            assert!(
                before + n <= taken,
                "{} of {taken} acknowledged",
                before + n
            );
        }

        fn take_two(&self) {
            for _ in 0..2 {
                self.taken.fetch_add(1, Ordering::AcqRel);
                self.acks.count(|n| self.acknowledge(n));
            }
        }
    }

    check(4, || {
        let queue = Arc::new(Queue {
            taken: AtomicU32::new(0),
            acknowledged: AtomicU32::new(0),
            acks: Acks::new(),
        });
        threads(&queue, 2, Queue::take_two);
        // As at the end of a queue.
        queue.acks.give_back(|n| queue.acknowledge(n));
        assert_eq!(queue.acknowledged.load(Ordering::Relaxed), 4);
    });
}

/// Those who wait for the turn get it, one at a time, and what one did in it the next one sees.
#[test]
fn the_turn_goes_round() {
    struct Shared {
        turns: Turns,
        read: loom::cell::UnsafeCell<u32>,
    }

    // SAFETY: the cell is used with the turn only, which loom checks.
    unsafe impl Sync for Shared {}

    check(3, || {
        let shared = Arc::new(Shared {
            turns: Turns::new(),
            read: loom::cell::UnsafeCell::new(0),
        });
        threads(&shared, 3, |shared| {
            let _turn = shared.turns.take(|| None, || false).unwrap();
            // SAFETY: the turn is held; loom says if not.
            shared.read.with_mut(|read| unsafe { *read += 1 });
        });
        // SAFETY: the threads are gone.
        shared.read.with(|read| assert_eq!(unsafe { *read }, 3));
    });
}

/// Whoever gives the turn back and wants it again comes after those who sleep: what it has learnt
/// in its turn they learn in theirs, however often it comes.
#[test]
fn a_sleeper_has_the_turn_before_the_one_that_gave_it_back() {
    check(3, || {
        let turns = Arc::new(Turns::new());
        let was_there = Arc::new(AtomicU32::new(0));
        let turn = turns.take(|| None, || false).unwrap();
        let sleeper = {
            let (turns, was_there) = (turns.clone(), was_there.clone());
            loom::thread::spawn(move || {
                let _turn = turns.take(|| None, || false).unwrap();
                was_there.store(1, Ordering::Relaxed);
            })
        };
        while turns.sleepers() == 0 {
            loom::thread::yield_now();
        }
        drop(turn);
        drop(turns.take(|| None, || false).unwrap());
        assert_eq!(was_there.load(Ordering::Relaxed), 1);
        sleeper.join().unwrap();
    });
}

/// What is news to a sleeper it learns though another, that comes before it, keeps the turn.
#[test]
fn a_sleeper_learns_of_news_behind_another() {
    check(3, || {
        let turns = Arc::new(Turns::new());
        let known = Arc::new(AtomicU32::new(0));
        let turn = turns.take(|| None, || false).unwrap();
        let learner = {
            let (turns, known) = (turns.clone(), known.clone());
            loom::thread::spawn(move || {
                let is_known = || known.load(Ordering::Relaxed) == 1;
                drop(turns.take(|| None, is_known));
                assert!(is_known());
            })
        };
        let other = {
            let turns = turns.clone();
            loom::thread::spawn(move || {
                let _turn = turns.take(|| None, || false).unwrap();
                learner.join().unwrap();
            })
        };
        known.store(1, Ordering::Relaxed);
        turn.tell();
        drop(turn);
        other.join().unwrap();
        drop(turns.take(|| None, || false).unwrap());
    });
}

/// Who has no time takes no turn from others, and leaves none behind.
#[test]
fn who_has_no_time_does_not_wait() {
    check(4, || {
        let turns = Arc::new(Turns::new());
        threads(&turns, 3, |turns| {
            drop(turns.take(|| Some(std::time::Duration::ZERO), || false));
        });
        assert!(!turns.is_taken());
        drop(turns.take(|| None, || false).unwrap());
    });
}
