//! Ranges given by callers, checked once and for all.

use std::ops::{Bound, RangeBounds};

use crate::error::{Error, Result};

/// Turns `range` into where it starts and how long it is, given that there are `size` bytes.
///
/// An empty range is fine wherever it lies within `0..=size`. The bounds may be anything: no arithmetic here can overflow.
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
mod tests {
    use super::*;

    fn of(range: impl RangeBounds<u64>, size: u64) -> Option<(u64, u64)> {
        resolve("range", range, size).ok()
    }

    #[test]
    fn every_kind_of_range_is_understood() {
        assert_eq!(of(.., 10), Some((0, 10)));
        assert_eq!(of(3.., 10), Some((3, 7)));
        assert_eq!(of(..3, 10), Some((0, 3)));
        assert_eq!(of(..=3, 10), Some((0, 4)));
        assert_eq!(of(2..5, 10), Some((2, 3)));
        assert_eq!(of(2..=9, 10), Some((2, 8)));
        assert_eq!(
            of((Bound::Excluded(2), Bound::Included(4)), 10),
            Some((3, 2))
        );
    }

    #[test]
    fn empty_ranges_inside_are_fine() {
        assert_eq!(of(0..0, 10), Some((0, 0)));
        assert_eq!(of(10..10, 10), Some((10, 0)));
        assert_eq!(of(10.., 10), Some((10, 0)));
        assert_eq!(of(0..0, 0), Some((0, 0)));
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges)]
    fn ranges_that_leave_or_overflow_are_refused() {
        assert_eq!(of(0..11, 10), None);
        assert_eq!(of(11..11, 10), None);
        assert_eq!(of(11.., 10), None);
        assert_eq!(of(5..4, 10), None);
        assert_eq!(of(..=10, 10), None);
        assert_eq!(of(0..=u64::MAX, u64::MAX), None);
        assert_eq!(of((Bound::Excluded(u64::MAX), Bound::Unbounded), 10), None);
        assert_eq!(of(0..u64::MAX, u64::MAX), Some((0, u64::MAX)));
        assert!(matches!(
            resolve("src", 4..12, 10),
            Err(Error::OutOfRange {
                argument: "src",
                start: 4,
                end: 12,
                size: 10
            })
        ));
    }

    #[test]
    fn offset_and_length_never_wrap() {
        assert!(check("offset", 0, 10, 10).is_ok());
        assert!(check("offset", 10, 0, 10).is_ok());
        assert!(check("offset", 10, 1, 10).is_err());
        assert!(check("offset", u64::MAX, 1, 10).is_err());
        assert!(check("offset", u64::MAX - 3, 8, u64::MAX).is_err());
        assert!(inside(0, 10, 10) && inside(10, 0, 10));
        assert!(!inside(10, 1, 10) && !inside(u64::MAX - 3, 8, u64::MAX));
    }
}
