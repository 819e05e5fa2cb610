//! A buffer that waits for the next batch.

use crate::sync::{AtomicPtr, Ordering};

/// The buffer that the last batch gave back, or a new one.
#[inline]
pub(super) fn take_spare<T>(place: &AtomicPtr<T>, new: impl FnOnce() -> T) -> Box<T> {
    let spare = place.swap(std::ptr::null_mut(), Ordering::Acquire);
    if spare.is_null() {
        return Box::new(new());
    }
    // SAFETY: the pointer came from `give_spare`, so from `Box::into_raw`, and the swap made us its
    // only owner.
    unsafe { Box::from_raw(spare) }
}

/// Keeps a buffer for the next batch.
#[inline]
pub(super) fn give_spare<T>(place: &AtomicPtr<T>, buffer: Box<T>) {
    free_spare(place.swap(Box::into_raw(buffer), Ordering::AcqRel));
}

/// Frees a buffer that `give_spare` kept and that was taken out of its place; null is fine.
#[inline]
pub(super) fn free_spare<T>(buffer: *mut T) {
    if !buffer.is_null() {
        // SAFETY: the pointer came from `Box::into_raw`, and was taken out of its only place.
        drop(unsafe { Box::from_raw(buffer) });
    }
}
