//! The quick check: all that a transfer between two slices must satisfy but for their equal length,
//! in one comparison.
//!
//! A local slice carries its domain's number and what it lacks, a remote slice what it lacks, a
//! queue pair its domain's number. Where nothing that matters differs or lacks, the transfer is
//! right. Where the quick check fails the full one decides, and names what is wrong: so the quick
//! one may be too strict, never too lax.

use super::{FlushKind, FlushPlan, Usage};

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

/// In a remote key: the flush to visibility, or to persistence, is done by reading alone. They are
/// the bits of local usages, which no transfer asks a remote side for.
const VISIBLE_BY_READING: u32 = Usage::RECV.bits();
const PERSISTENT_BY_READING: u32 = Usage::SEND.bits();

/// The key of a remote slice of a region that can be flushed so.
#[inline]
pub(super) const fn remote(usage: Usage, flushes: FlushPlan) -> u32 {
    let mut key = !usage.bits() & Usage::all().bits() & !LOCAL;
    if flushes
        .difference(FlushPlan::of_kind(FlushKind::Persistent))
        .reads()
    {
        key |= VISIBLE_BY_READING;
    }
    if flushes
        .difference(FlushPlan::of_kind(FlushKind::Visibility))
        .reads()
    {
        key |= PERSISTENT_BY_READING;
    }
    key
}

/// What a remote key must not have for an atomic write that needs no fence, on a queue pair
/// whose flushes of the kinds in `plan` are native where the region's are.
pub(crate) const fn atomic_write_mask(plan: FlushPlan) -> u32 {
    let mut bits = AWKWARD | NEVER | FAR | DOMAIN | Usage::WRITE_DST.bits();
    if plan.by_reading(FlushKind::Visibility) {
        bits |= VISIBLE_BY_READING;
    }
    if plan.by_reading(FlushKind::Persistent) {
        bits |= PERSISTENT_BY_READING;
    }
    bits
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

/// The same for a piece of the region with the key `local` whose length is [`short`], whatever the
/// length of the region.
#[inline(always)]
pub(crate) const fn fit_regions(queue_pair: u32, local: u32, remote: u32, usages: Usage) -> bool {
    ((queue_pair ^ local) | remote) & (DOMAIN | NEVER | FAR | usages.bits()) == 0
}

#[cfg(test)]
mod tests;
