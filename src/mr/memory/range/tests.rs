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
