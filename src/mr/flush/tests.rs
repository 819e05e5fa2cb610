use super::*;

#[test]
fn a_region_is_flushed_as_its_owner_registered_it() {
    let plan = FlushPlan::of_region;
    assert_eq!(plan(Usage::READ_SRC, None), FlushPlan::empty());
    assert_eq!(
        plan(Usage::FLUSH_VISIBILITY, None),
        FlushPlan::of_kind(FlushKind::Visibility)
    );
    // Of librpma's regions only those that can be read for sure are said to be readable.
    let flushable = Usage::FLUSH_VISIBILITY | Usage::READ_SRC;
    assert!(plan(flushable, None).contains(FlushPlan::READABLE));
    assert!(!plan(Usage::FLUSH_VISIBILITY, None).contains(FlushPlan::READABLE));
    let all = FlushPlan::all();
    assert_eq!(all.of_range(0, true), FlushPlan::empty());
    assert_eq!(all.of_range(FlushPlan::MAX_RANGE, false), all);
    assert_eq!(
        all.of_range(FlushPlan::MAX_RANGE + 1, false),
        all - FlushPlan::NATIVE
    );
    assert_eq!(all.of_range(FlushPlan::MAX_RANGE + 1, true), all);
    let both = Usage::FLUSH_VISIBILITY | Usage::FLUSH_PERSISTENT;
    assert_eq!(
        plan(both, Some(FlushMethods::NATIVE_VISIBILITY)),
        FlushPlan::all() - FlushPlan::NATIVE_PERSISTENT
    );
    assert_eq!(
        plan(both, Some(FlushMethods::empty())),
        FlushPlan::all() - FlushPlan::NATIVE
    );
}

#[test]
fn a_kind_without_a_native_method_is_flushed_by_reading() {
    let visible = FlushPlan::of_kind(FlushKind::Visibility);
    let persistent = FlushPlan::of_kind(FlushKind::Persistent);
    assert!(!FlushPlan::empty().reads() && !visible.reads() && !FlushPlan::all().reads());
    assert!(!FlushPlan::NATIVE.reads());
    assert!((visible - FlushPlan::NATIVE).reads());
    assert!((visible | (persistent - FlushPlan::NATIVE)).reads());
}

#[test]
fn each_kind_needs_its_own_right_and_method() {
    assert_eq!(FlushKind::Persistent.usage(), Usage::FLUSH_PERSISTENT);
    assert_eq!(FlushKind::Visibility.usage(), Usage::FLUSH_VISIBILITY);
    assert_eq!(
        FlushKind::Persistent.native(),
        FlushMethods::NATIVE_PERSISTENT
    );
    assert_eq!(
        FlushKind::Visibility.native(),
        FlushMethods::NATIVE_VISIBILITY
    );
}
