//! A mutex of the C library. Rust's own is invisible to helgrind and drd, which then see races
//! everywhere.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// A value that one thread at a time has, made when first asked for.
pub struct Lock<T> {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    changed: UnsafeCell<libc::pthread_cond_t>,
    value: UnsafeCell<Option<T>>,
    make: fn() -> T,
}

// SAFETY: the value is only reached with the mutex held.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The value, while it is held.
pub struct Guard<T: 'static>(&'static Lock<T>);

impl<T> Lock<T> {
    /// A lock around what `make` makes.
    pub const fn new(make: fn() -> T) -> Self {
        Self {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            changed: UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER),
            value: UnsafeCell::new(None),
            make,
        }
    }

    /// Waits for its turn.
    pub fn lock(&'static self) -> Guard<T> {
        // SAFETY: an initialised mutex that never moves; the value is reached with it held.
        unsafe {
            libc::pthread_mutex_lock(self.mutex.get());
            (*self.value.get()).get_or_insert_with(self.make);
        }
        Guard(self)
    }

    /// Wakes those who wait in [`Guard::wait`].
    pub fn notify(&'static self) {
        // SAFETY: an initialised condition that never moves.
        unsafe { libc::pthread_cond_broadcast(self.changed.get()) };
    }
}

impl<T> Guard<T> {
    /// Lets others have the value until one of them notifies, or time is up.
    pub fn wait(&mut self, limit: Duration) {
        // SAFETY: the mutex is held, and is again when the call returns.
        unsafe {
            let mut until: libc::timespec = std::mem::zeroed();
            libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut until);
            let nanos = until.tv_nsec + libc::c_long::from(limit.subsec_nanos() as i32);
            until.tv_sec += limit.as_secs() as libc::time_t + nanos / 1_000_000_000;
            until.tv_nsec = nanos % 1_000_000_000;
            let lock = self.0;
            libc::pthread_cond_timedwait(lock.changed.get(), lock.mutex.get(), &raw const until);
        }
    }
}

impl<T> Deref for Guard<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the mutex is held, and the value was made when it was taken.
        unsafe { (*self.0.value.get()).as_ref().unwrap_unchecked() }
    }
}

impl<T> DerefMut for Guard<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the mutex is held, and the value was made when it was taken.
        unsafe { (*self.0.value.get()).as_mut().unwrap_unchecked() }
    }
}

impl<T> Drop for Guard<T> {
    fn drop(&mut self) {
        // SAFETY: the mutex is held by this thread.
        unsafe { libc::pthread_mutex_unlock(self.0.mutex.get()) };
    }
}
