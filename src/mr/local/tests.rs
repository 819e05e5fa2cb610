use super::*;

fn span(len: u64) -> LocalSlice<'static> {
    LocalSlice::whole(0x1000, len, 9, 3, Usage::WRITE_SRC | Usage::ATOMIC)
}

fn fields(slice: LocalSlice<'_>) -> (u64, u32, u32, u64) {
    (slice.sge.addr, slice.sge.length, slice.sge.lkey, slice.len)
}

#[test]
fn a_slice_is_what_the_device_wants() {
    let slice = span(100).slice(10..30).unwrap();
    assert_eq!(fields(slice), (0x100a, 20, 9, 20));
    assert_eq!(slice.tag >> 32, 3);
    assert_eq!(slice.usage(), Usage::WRITE_SRC | Usage::ATOMIC);
    assert!(!slice.is_empty());
}

#[test]
fn a_slice_of_a_slice_counts_from_its_own_start() {
    let slice = span(100).slice(10..30).unwrap();
    let part = slice.slice(5..=9).unwrap();
    assert_eq!(fields(part), (0x100f, 5, 9, 5));
    assert_eq!(part.tag, slice.tag);
    assert_eq!(fields(slice.slice(20..).unwrap()), (0x101e, 0, 9, 0));
    assert!(slice.slice(..21).is_err());
    assert!(slice.slice(..=u64::MAX).is_err());
}

#[test]
fn ranges_outside_are_refused() {
    let span = span(100);
    assert!(span.slice(..101).is_err());
    assert!(span.slice(101..).is_err());
    assert!(span.slice(..=u64::MAX).is_err());
    assert!(span.slice(100..).unwrap().is_empty());
}

#[test]
fn lengths_beyond_32_bits_are_kept_for_posting_to_refuse() {
    let len = (1 << 32) + 8;
    let slice = span(len).slice(..).unwrap();
    assert_eq!((slice.len, slice.sge.length), (len, u32::MAX));
    let part = slice.slice(1 << 32..).unwrap();
    assert_eq!((part.len, part.sge.length), (8, 8));
    assert_eq!(part.sge.addr, 0x1000 + (1 << 32));
}

#[test]
fn the_empty_slice_belongs_to_nobody() {
    let empty = LocalSlice::EMPTY;
    assert!(empty.is_empty() && empty.tag == 0);
    assert_eq!(fields(empty), (0, 0, 0, 0));
    assert!(empty.slice(..).unwrap().is_empty());
}

#[test]
fn a_pointer_to_a_slice_is_one_to_its_sge() {
    assert_eq!(std::mem::offset_of!(LocalSlice<'_>, sge), 0);
    assert!(size_of::<LocalSlice<'_>>() <= 40);
}

#[test]
fn a_slice_is_shown_in_one_line() {
    assert_eq!(
        format!("{:#?}", span(100)),
        "LocalSlice(0x1000 + 0x64, Usage(WRITE_SRC | ATOMIC), lkey 0x9)"
    );
}

#[test]
fn regions_and_slices_go_to_any_thread() {
    fn everywhere<T: Send + Sync>() {}
    everywhere::<LocalRegion>();
    everywhere::<LocalSlice<'_>>();
    everywhere::<OwnedSlice>();
    everywhere::<Memory>();
}
