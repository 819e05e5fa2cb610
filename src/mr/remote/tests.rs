use super::*;

fn region() -> RemoteRegion {
    let methods = Some(FlushMethods::NATIVE_VISIBILITY);
    RemoteRegion::new(
        0x1000,
        100,
        7,
        Usage::READ_SRC | Usage::FLUSH_VISIBILITY,
        methods,
    )
}

#[test]
fn a_slice_carries_all_that_a_post_needs() {
    let slice = region().slice(10..30).unwrap();
    assert_eq!(
        (slice.address(), slice.len, slice.target.rkey()),
        (0x100a, 20, 7)
    );
    assert_eq!(slice.usage(), region().usage());
    assert_eq!(slice.flushes(), region().whole().flushes());
    assert!(slice.level() == 0 && !slice.is_empty());
    assert_eq!((slice.address(), slice.len()), (0x100a, 20));
}

#[test]
fn a_slice_of_a_slice_counts_from_its_own_start() {
    let slice = region().slice(10..30).unwrap().slice(5..=9).unwrap();
    assert_eq!((slice.address(), slice.len), (0x100f, 5));
    assert!(region().slice(10..30).unwrap().slice(..21).is_err());
}

#[test]
fn a_quick_part_is_a_slice() {
    let region = region();
    for (offset, len) in [(0, 100), (0, 1), (10, 20), (99, 1)] {
        let part = region.all().quick_part(offset, len);
        assert_eq!(part, region.slice(offset..offset + len).ok());
    }
    for (offset, len) in [(0, 0), (0, 101), (100, 1), (u64::MAX, 2), (2, u64::MAX)] {
        assert_eq!(region.all().quick_part(offset, len), None);
    }
}

#[test]
fn only_the_entire_region_is_whole() {
    let region = region();
    assert_eq!(region.whole().level(), 1);
    assert_eq!(region.slice(..).unwrap().level(), 1);
    assert_eq!(region.slice(0..100).unwrap().slice(..).unwrap().level(), 1);
    assert_eq!(region.slice(1..).unwrap().level(), 0);
    assert_eq!(region.slice(1..).unwrap().slice(..).unwrap().level(), 0);
    assert_eq!(region.slice(..0).unwrap().level(), 0);
}

#[test]
fn the_ends_are_exact() {
    let region = region();
    assert!(region.slice(100..).unwrap().is_empty());
    assert!(region.slice(99..101).is_err());
    assert!(region.slice(101..).is_err());
    assert!(region.slice(..=u64::MAX).is_err());
    let top = RemoteRegion::new(u64::MAX - 8, 8, 1, Usage::READ_SRC, None);
    assert_eq!(top.slice(8..8).unwrap().address(), u64::MAX);
}

#[test]
fn flushing_needs_its_own_usage() {
    assert!(region().can_flush(FlushKind::Visibility));
    assert!(!region().can_flush(FlushKind::Persistent));
}

#[test]
fn a_slice_fits_a_cache_line() {
    assert!(size_of::<RemoteSlice>() <= 32);
}
