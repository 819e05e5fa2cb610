//! The buffer that one batch hands to the next, whichever thread that is in.

use std::ptr::null_mut;

use loom::{
    cell::UnsafeCell,
    sync::{Arc, atomic::AtomicU32},
};

use crate::{
    check,
    spare::{free_spare, give_spare, take_spare},
    sync::{AtomicPtr, Ordering},
    threads,
};

/// What is in it nobody else touches, which loom checks; and loom counts what is left of the
/// counter.
struct Buffer {
    requests: UnsafeCell<u32>,
    made: Arc<AtomicU32>,
}

struct Queue {
    place: AtomicPtr<Buffer>,
    made: Arc<AtomicU32>,
}

impl Queue {
    fn batch(&self) {
        let buffer = take_spare(&self.place, || {
            let made = self.made.clone();
            made.fetch_add(1, Ordering::Relaxed);
            let requests = UnsafeCell::new(0);
            Buffer { requests, made }
        });
        // SAFETY: the buffer is this thread's; loom says if not.
        buffer
            .requests
            .with_mut(|requests| unsafe { *requests += 1 });
        give_spare(&self.place, buffer);
    }
}

#[test]
fn a_buffer_is_in_one_hand_and_none_is_lost() {
    check(3, || {
        let made = Arc::new(AtomicU32::new(0));
        let queue = Arc::new(Queue {
            place: AtomicPtr::new(null_mut()),
            made,
        });
        threads(&queue, 3, Queue::batch);
        let last = queue.place.swap(null_mut(), Ordering::Acquire);
        assert!(!last.is_null());
        // SAFETY: it was given back, and taken out of its place.
        let handed = unsafe { (*last).requests.with(|requests| *requests) };
        let made = queue.made.load(Ordering::Relaxed);
        assert!(handed >= 1 && made >= 1 && handed + made <= 4);
        // SAFETY: as above.
        assert!(Arc::ptr_eq(unsafe { &(*last).made }, &queue.made));
        free_spare(last);
    });
}
