//! Memory of a peer, as this machine knows it.

use std::ops::RangeBounds;

use super::{FlushKind, FlushMethods, FlushPlan, Usage, descriptor, quick, range};
use crate::error::Result;

/// A region of a peer's memory, made of the [`Descriptor`](crate::Descriptor) that the peer has sent.
///
/// It is only knowledge: nothing tells whether the peer still has the region. An operation on one that is gone, or on one of another
/// peer, completes with [an error](crate::Error) and ends the connection.
///
/// All offsets and lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "rpma_mr_remote")]
#[doc(alias = "rpma_mr_remote_delete")]
pub struct RemoteRegion {
    addr: u64,
    len: u64,
    rkey: u32,
    usage: Usage,
    methods: Option<FlushMethods>,
}

impl RemoteRegion {
    /// Reads the descriptor of a region, of this crate (22 bytes) or of librpma (21 bytes). What follows is ignored.
    ///
    /// # Errors
    ///
    /// [`Error::BadDescriptor`](crate::Error::BadDescriptor) when the bytes are too few, name no usage, a length of 0, or a region that
    /// leaves the address space.
    #[doc(alias = "rpma_mr_remote_from_descriptor")]
    pub fn from_descriptor(bytes: &[u8]) -> Result<RemoteRegion> {
        descriptor::decode(bytes)
    }

    pub(super) fn new(
        addr: u64,
        len: u64,
        rkey: u32,
        usage: Usage,
        methods: Option<FlushMethods>,
    ) -> RemoteRegion {
        RemoteRegion {
            addr,
            len,
            rkey,
            usage,
            methods,
        }
    }

    /// The bytes of `range`, counted from the start of the region.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) when the range does not lie inside the region. An empty range inside is fine.
    #[inline]
    pub fn slice(&self, range: impl RangeBounds<u64>) -> Result<RemoteSlice> {
        self.whole().slice(range)
    }

    /// The whole region.
    #[inline]
    pub fn whole(&self) -> RemoteSlice {
        RemoteSlice {
            addr: self.addr,
            len: self.len,
            rkey: self.rkey,
            usage: self.usage,
            quick: quick::remote(self.usage),
            flushes: FlushPlan::of_region(self.usage, self.methods),
            region_flushes: FlushPlan::of_region(self.usage, self.methods),
            whole: true,
            head: head(self.len),
        }
    }

    /// Where the region starts in the peer's address space.
    #[inline]
    pub const fn address(&self) -> u64 {
        self.addr
    }

    /// The length of the region in bytes, at least 1.
    #[inline]
    #[allow(
        clippy::len_without_is_empty,
        reason = "a region is never empty, so the question has one answer"
    )]
    #[doc(alias = "rpma_mr_remote_get_size")]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// The key by which this machine's device asks the peer's for the region.
    #[inline]
    pub const fn rkey(&self) -> u32 {
        self.rkey
    }

    /// What the region was registered for.
    #[inline]
    #[doc(alias = "rpma_mr_remote_get_flush_type")]
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// The native flushes that the region accepts. `None` when its descriptor does not tell, as those of librpma do not.
    #[inline]
    pub const fn methods(&self) -> Option<FlushMethods> {
        self.methods
    }

    /// Whether the region was registered to be flushed so, by whichever method.
    #[inline]
    pub const fn can_flush(&self, kind: FlushKind) -> bool {
        self.usage.contains(kind.usage())
    }
}

/// The bytes that a flush by reading reads, at most: fewer where the range has fewer.
pub(crate) const FLUSH_READ: u8 = 8;

#[inline]
fn head(len: u64) -> u8 {
    len.min(u64::from(FLUSH_READ)) as u8
}

/// A part of a [`RemoteRegion`]: the remote side of an operation. Small, [`Copy`], and checked when it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemoteSlice {
    pub(crate) addr: u64,
    pub(crate) len: u64,
    pub(crate) rkey: u32,
    pub(crate) usage: Usage,
    /// What the quick check needs.
    pub(crate) quick: u32,
    /// The flushes that it can have.
    pub(crate) flushes: FlushPlan,
    /// The flushes that its region can have.
    region_flushes: FlushPlan,
    /// It is the entire region.
    pub(crate) whole: bool,
    /// How many of its first bytes a flush by reading reads.
    pub(crate) head: u8,
}

impl RemoteSlice {
    /// No bytes of no region: the other side of an operation without content, as the C interface has it.
    #[doc(hidden)]
    pub const NOWHERE: RemoteSlice = RemoteSlice {
        addr: 0,
        len: 0,
        rkey: 0,
        usage: Usage::all(),
        quick: u32::MAX,
        flushes: FlushPlan::empty(),
        region_flushes: FlushPlan::empty(),
        whole: false,
        head: 0,
    };

    /// The bytes of `range`, counted from the start of this slice.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) when the range does not lie inside the slice. An empty range inside is fine.
    #[inline]
    pub fn slice(&self, range: impl RangeBounds<u64>) -> Result<RemoteSlice> {
        let (start, len) = range::resolve("range", range, self.len)?;
        Ok(RemoteSlice {
            // start is at most the length, and a region never leaves the address space.
            addr: self.addr + start,
            len,
            whole: self.whole && len == self.len,
            flushes: self
                .region_flushes
                .of_range(len, self.whole && len == self.len),
            head: head(len),
            ..*self
        })
    }

    /// Where the slice starts in the peer's address space.
    #[inline]
    pub const fn address(&self) -> u64 {
        self.addr
    }

    /// The length of the slice in bytes.
    #[inline]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether the slice has no bytes.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What its region was registered for.
    #[inline]
    pub const fn usage(&self) -> Usage {
        self.usage
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!((slice.addr, slice.len, slice.rkey), (0x100a, 20, 7));
        assert_eq!(slice.usage, region().usage());
        assert_eq!(slice.flushes, region().whole().flushes);
        assert!(!slice.whole && !slice.is_empty());
        assert_eq!((slice.address(), slice.len()), (0x100a, 20));
    }

    #[test]
    fn a_slice_of_a_slice_counts_from_its_own_start() {
        let slice = region().slice(10..30).unwrap().slice(5..=9).unwrap();
        assert_eq!((slice.addr, slice.len), (0x100f, 5));
        assert!(region().slice(10..30).unwrap().slice(..21).is_err());
    }

    #[test]
    fn only_the_entire_region_is_whole() {
        let region = region();
        assert!(region.whole().whole);
        assert!(region.slice(..).unwrap().whole);
        assert!(region.slice(0..100).unwrap().slice(..).unwrap().whole);
        assert!(!region.slice(1..).unwrap().whole);
        assert!(!region.slice(1..).unwrap().slice(..).unwrap().whole);
        assert!(!region.slice(..0).unwrap().whole);
    }

    #[test]
    fn the_ends_are_exact() {
        let region = region();
        assert!(region.slice(100..).unwrap().is_empty());
        assert!(region.slice(99..101).is_err());
        assert!(region.slice(101..).is_err());
        assert!(region.slice(..=u64::MAX).is_err());
        let top = RemoteRegion::new(u64::MAX - 8, 8, 1, Usage::READ_SRC, None);
        assert_eq!(top.slice(8..8).unwrap().addr, u64::MAX);
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
}
