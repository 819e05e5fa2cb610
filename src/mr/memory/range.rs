//! Ranges given by callers, checked once and for all.

use std::ops::{Bound, RangeBounds};

use crate::error::{Error, Result};

/// Turns `range` into where it starts and how long it is, given that there are `size` bytes.
///
/// An empty range is fine wherever it lies within `0..=size`. The bounds may be anything: no
/// arithmetic here can overflow.
#[inline]
pub(crate) fn resolve(
    argument: &'static str,
    range: impl RangeBounds<u64>,
    size: u64,
) -> Result<(u64, u64)> {
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1),
        Bound::Excluded(&end) => Some(end),
        Bound::Unbounded => Some(size),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= size => Ok((start, end - start)),
        _ => Err(outside(
            argument,
            start.unwrap_or(u64::MAX),
            end.unwrap_or(u64::MAX),
            size,
        )),
    }
}

/// Checks that `len` bytes from `offset` on lie within `size` bytes.
#[inline]
pub(crate) fn check(argument: &'static str, offset: u64, len: u64, size: u64) -> Result<()> {
    match offset.checked_add(len) {
        Some(end) if end <= size => Ok(()),
        end => Err(outside(argument, offset, end.unwrap_or(u64::MAX), size)),
    }
}

/// Do `len` bytes from `offset` on lie within `size` bytes?
#[inline(always)]
pub(crate) const fn inside(offset: u64, len: u64, size: u64) -> bool {
    match offset.checked_add(len) {
        Some(end) => end <= size,
        None => false,
    }
}

#[cold]
fn outside(argument: &'static str, start: u64, end: u64, size: u64) -> Error {
    Error::OutOfRange {
        argument,
        start,
        end,
        size,
    }
}

#[cfg(test)]
mod tests;
