//! The quick check: all that a transfer between two slices must satisfy but for their equal length, in one comparison.
//!
//! A local slice carries its domain's number and what it lacks, a remote slice what it lacks, a queue pair its domain's number. Where nothing
//! that matters differs or lacks, the transfer is right. Where the quick check fails the full one decides, and names what is wrong: so the
//! quick one may be too strict, never too lax.

use super::Usage;

/// The usages that matter on the local side of an operation.
const LOCAL: u32 =
    Usage::READ_DST.bits() | Usage::WRITE_SRC.bits() | Usage::SEND.bits() | Usage::RECV.bits();
/// The slice is empty or longer than [`LONG`]: not for the quick check.
const AWKWARD: u32 = 1 << 9;
/// The queue pair is not for the quick check.
const NEVER: u32 = 1 << 10;
/// The region's domain has a number that is too large for the quick check.
const FAR: u32 = 1 << 11;
const DOMAIN_SHIFT: u32 = 12;
const DOMAIN: u32 = u32::MAX << DOMAIN_SHIFT;

/// Every port's longest message that is worth the quick check is at least this long, in bytes.
const LONG: u64 = 1 << 20;

/// The key of a local region; its slices' keys are made of it by [`part`].
pub(super) const fn local(pd_tag: u32, usage: Usage) -> u32 {
    let fine = pd_tag <= DOMAIN >> DOMAIN_SHIFT;
    pd_tag << DOMAIN_SHIFT | !usage.bits() & LOCAL | if fine { 0 } else { FAR }
}

/// The key of `len` bytes of what has the key `local`.
#[inline]
pub(super) const fn part(local: u32, len: u64) -> u32 {
    local & !AWKWARD | if short(len) { 0 } else { AWKWARD }
}

/// Is a transfer of so many bytes one for the quick check?
#[inline(always)]
pub(crate) const fn short(len: u64) -> bool {
    len.wrapping_sub(1) < LONG
}

/// The key of a remote slice.
#[inline]
pub(super) const fn remote(usage: Usage) -> u32 {
    !usage.bits() & Usage::all().bits() & !LOCAL
}

/// A key in the place of a queue pair's that fits nothing.
pub(crate) const NOTHING: u32 = NEVER;

/// The key of a queue pair whose longest message has `max_message` bytes.
pub(crate) const fn queue_pair(pd_tag: u32, max_message: u64) -> u32 {
    let fine = max_message >= LONG && pd_tag <= DOMAIN >> DOMAIN_SHIFT;
    pd_tag << DOMAIN_SHIFT | if fine { 0 } else { NEVER }
}

/// Do the three go together for operations that need `usages`?
#[inline(always)]
pub(crate) const fn fit(queue_pair: u32, local: u32, remote: u32, usages: Usage) -> bool {
    misfit(queue_pair, local, remote, usages) == 0
}

/// In which bits they do not.
#[inline(always)]
pub(crate) const fn misfit(queue_pair: u32, local: u32, remote: u32, usages: Usage) -> u32 {
    ((queue_pair ^ local) | remote) & (DOMAIN | AWKWARD | NEVER | FAR | usages.bits())
}

/// The same for a piece of the region with the key `local` whose length is [`short`], whatever the length of the region.
#[inline(always)]
pub(crate) const fn fit_regions(queue_pair: u32, local: u32, remote: u32, usages: Usage) -> bool {
    ((queue_pair ^ local) | remote) & (DOMAIN | NEVER | FAR | usages.bits()) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: Usage = Usage::WRITE_SRC.union(Usage::WRITE_DST);
    const BIG: u64 = 1 << 30;

    #[test]
    fn what_goes_together_fits() {
        let fits = |pd, local_usage, len, remote_usage, qp_pd, max| {
            fit(
                queue_pair(qp_pd, max),
                part(local(pd, local_usage), len),
                remote(remote_usage),
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
            remote(Usage::all()),
            WRITE
        ));
        assert!(!fit(
            NOTHING,
            part(local(0, Usage::all()), 0),
            remote(Usage::all()),
            WRITE
        ));
    }

    #[test]
    fn a_short_piece_of_a_long_region_fits() {
        let region = |pd, len| part(local(pd, Usage::WRITE_SRC), len);
        let remote = remote(Usage::WRITE_DST);
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
}
