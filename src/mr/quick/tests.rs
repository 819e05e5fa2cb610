use super::*;

const WRITE: Usage = Usage::WRITE_SRC.union(Usage::WRITE_DST);
const BIG: u64 = 1 << 30;

#[test]
fn what_goes_together_fits() {
    let fits = |pd, local_usage, len, remote_usage, qp_pd, max| {
        fit(
            queue_pair(qp_pd, max),
            part(local(pd, local_usage), len),
            remote(remote_usage, FlushPlan::all()),
            WRITE,
        )
    };
    assert!(fits(7, Usage::WRITE_SRC, 8, Usage::WRITE_DST, 7, BIG));
    assert!(fits(7, Usage::all(), 1, Usage::all(), 7, BIG));
    assert!(fits(7, Usage::WRITE_SRC, LONG, Usage::WRITE_DST, 7, LONG));
    // Another domain, a missing usage on either side, the right usage on the wrong side.
    assert!(!fits(6, Usage::WRITE_SRC, 8, Usage::WRITE_DST, 7, BIG));
    assert!(!fits(7, Usage::WRITE_DST, 8, Usage::WRITE_DST, 7, BIG));
    assert!(!fits(7, Usage::WRITE_SRC, 8, Usage::WRITE_SRC, 7, BIG));
    // Left to the full check.
    assert!(!fits(7, Usage::WRITE_SRC, 0, Usage::WRITE_DST, 7, BIG));
    assert!(!fits(
        7,
        Usage::WRITE_SRC,
        LONG + 1,
        Usage::WRITE_DST,
        7,
        BIG
    ));
    assert!(!fits(7, Usage::WRITE_SRC, 8, Usage::WRITE_DST, 7, LONG - 1));
    let far = (1 << 20) + 7;
    assert!(!fits(far, Usage::WRITE_SRC, 8, Usage::WRITE_DST, far, BIG));
    assert!(!fits(7, Usage::WRITE_SRC, 8, Usage::WRITE_DST, far, BIG));
    assert!(!fits(far, Usage::WRITE_SRC, 8, Usage::WRITE_DST, 7, BIG));
}

#[test]
fn two_awkward_ones_do_not_cancel_out() {
    let key = queue_pair(7, 1);
    assert!(!fit(
        key,
        part(local(7, Usage::all()), 0),
        remote(Usage::all(), FlushPlan::all()),
        WRITE
    ));
    assert!(!fit(
        NOTHING,
        part(local(0, Usage::all()), 0),
        remote(Usage::all(), FlushPlan::all()),
        WRITE
    ));
}

#[test]
fn a_short_piece_of_a_long_region_fits() {
    let region = |pd, len| part(local(pd, Usage::WRITE_SRC), len);
    let remote = remote(Usage::WRITE_DST, FlushPlan::empty());
    assert!(!fit(queue_pair(7, BIG), region(7, BIG), remote, WRITE));
    assert!(fit_regions(
        queue_pair(7, BIG),
        region(7, BIG),
        remote,
        WRITE
    ));
    assert!(!fit_regions(
        queue_pair(6, BIG),
        region(7, BIG),
        remote,
        WRITE
    ));
    assert!(!fit_regions(
        queue_pair(7, 1),
        region(7, BIG),
        remote,
        WRITE
    ));
    let far = u32::MAX;
    assert!(!fit_regions(
        queue_pair(far, BIG),
        region(far, BIG),
        remote,
        WRITE
    ));
    assert!(short(1) && short(LONG) && !short(0) && !short(LONG + 1));
}

#[test]
fn a_part_has_the_key_of_its_own_length() {
    let region = local(7, Usage::all());
    let empty = part(region, 0);
    assert_ne!(empty, region);
    assert_eq!(part(empty, 8), region);
    let far = local(u32::MAX, Usage::all());
    assert_ne!(part(far, 8) & FAR, 0);
}

#[test]
fn an_atomic_write_is_quick_only_where_no_flush_reads() {
    let mut quick = 0;
    for n in 0u8..=255 {
        let (plan, usage, methods) = (n & 15, n >> 4, n >> 6);
        let plan = FlushPlan::from_bits_retain(plan);
        let mut flushes = Usage::WRITE_DST;
        flushes.set(Usage::FLUSH_VISIBILITY, usage & 1 != 0);
        flushes.set(Usage::FLUSH_PERSISTENT, usage & 2 != 0);
        let methods = super::super::FlushMethods::from_bits_truncate(methods);
        let region = FlushPlan::of_region(flushes, Some(methods));
        let fits = remote(flushes, region) & atomic_write_mask(plan) == 0;
        // The caller looks at what the queue pair itself flushes by reading.
        if !plan.reads() {
            assert_eq!(fits, !(plan & region).reads(), "{plan:?}, {region:?}");
            quick += u32::from(fits);
        }
    }
    assert!(quick > 0);
    let no_write = remote(Usage::READ_SRC, FlushPlan::empty());
    assert_ne!(no_write & atomic_write_mask(FlushPlan::empty()), 0);
}
