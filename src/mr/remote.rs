//! Memory of a peer, as this machine knows it.

use std::{fmt, ops::RangeBounds};

use super::{FlushKind, FlushMethods, FlushPlan, Usage, descriptor, quick, range};
use crate::{error::Result, verbs::Target};

/// A region of a peer's memory, made of the [`Descriptor`](crate::Descriptor) that the peer has
/// sent.
///
/// It is only knowledge: nothing tells whether the peer still has the region. An operation on one
/// that is gone, or on one of another peer, completes with [an error](crate::Error) and ends the
/// connection.
///
/// All offsets and lengths are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "rpma_mr_remote")]
#[doc(alias = "rpma_mr_remote_delete")]
pub struct RemoteRegion {
    /// All of it: what its slices are cut from.
    whole: RemoteSlice,
    methods: Option<FlushMethods>,
}

impl RemoteRegion {
    /// Reads the descriptor of a region, of this crate (22 bytes) or of librpma (21 bytes). What
    /// follows is ignored.
    ///
    /// # Errors
    ///
    /// [`Error::BadDescriptor`](crate::Error::BadDescriptor) when the bytes are too few, name no
    /// usage, a length of 0, or a region that leaves the address space.
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
        let flushes = FlushPlan::of_region(usage, methods);
        RemoteRegion {
            whole: RemoteSlice {
                target: Target::new(addr, rkey, usage.bits()),
                len,
                quick: quick::remote(usage, flushes),
                shape: Shape::new(flushes, flushes, true),
            },
            methods,
        }
    }

    /// The bytes of `range`, counted from the start of the region.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) when the range does not lie inside the
    /// region. An empty range inside is fine.
    #[inline]
    pub fn slice(&self, range: impl RangeBounds<u64>) -> Result<RemoteSlice> {
        self.whole.slice(range)
    }

    /// The whole region.
    #[inline]
    pub fn whole(&self) -> RemoteSlice {
        self.whole
    }

    /// All of it.
    #[inline(always)]
    pub(crate) fn all(&self) -> &RemoteSlice {
        &self.whole
    }

    /// Where the region starts in the peer's address space.
    #[inline]
    pub const fn address(&self) -> u64 {
        self.whole.address()
    }

    /// The length of the region in bytes, at least 1.
    #[inline]
    #[allow(
        clippy::len_without_is_empty,
        reason = "a region is never empty, so the question has one answer"
    )]
    #[doc(alias = "rpma_mr_remote_get_size")]
    pub const fn len(&self) -> u64 {
        self.whole.len
    }

    /// The key by which this machine's device asks the peer's for the region.
    #[inline]
    pub const fn rkey(&self) -> u32 {
        self.whole.target.rkey()
    }

    /// What the region was registered for.
    #[inline]
    #[doc(alias = "rpma_mr_remote_get_flush_type")]
    pub const fn usage(&self) -> Usage {
        self.whole.usage()
    }

    /// The native flushes that the region accepts. `None` when its descriptor does not tell, as
    /// those of librpma do not.
    #[inline]
    pub const fn methods(&self) -> Option<FlushMethods> {
        self.methods
    }

    /// Whether the region was registered to be flushed so, by whichever method.
    #[inline]
    pub const fn can_flush(&self, kind: FlushKind) -> bool {
        self.whole.usage().contains(kind.usage())
    }
}

impl fmt::Debug for RemoteRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteRegion")
            .field("address", &format_args!("{:#x}", self.address()))
            .field("len", &self.len())
            .field("usage", &self.usage())
            .field("methods", &self.methods)
            .field("rkey", &self.rkey())
            .finish()
    }
}

/// A part of a [`RemoteRegion`]: the remote side of an operation. Small, [`Copy`], and checked when
/// it was made.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct RemoteSlice {
    pub(crate) target: Target,
    pub(crate) len: u64,
    /// What the quick check needs.
    pub(crate) quick: u32,
    shape: Shape,
}

/// The flushes that a slice can have in the lowest byte, then those that its region can have, then
/// whether it is the entire region: in one number, which is copied at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Shape(u32);

impl Shape {
    const WHOLE: u32 = 1 << 16;

    #[inline(always)]
    const fn new(flushes: FlushPlan, region: FlushPlan, whole: bool) -> Self {
        Shape(flushes.bits() as u32 | (region.bits() as u32) << 8 | (whole as u32) << 16)
    }

    /// That of `len` bytes; `all` says that these are all bytes of what has this shape.
    #[inline(always)]
    fn part(self, len: u64, all: bool) -> Self {
        let kept = self.0 & if all { 0xff00 | Shape::WHOLE } else { 0xff00 };
        let flushes = self.region().of_range(len, kept & Shape::WHOLE != 0);
        Shape(kept | u32::from(flushes.bits()))
    }

    #[inline(always)]
    const fn region(self) -> FlushPlan {
        FlushPlan::from_bits_retain((self.0 >> 8) as u8)
    }
}

impl RemoteSlice {
    /// No bytes of no region: the other side of an operation without content, as the C interface
    /// has it.
    pub(crate) const NOWHERE: RemoteSlice = RemoteSlice {
        target: Target::new(0, 0, Usage::all().bits()),
        len: 0,
        quick: u32::MAX,
        shape: Shape(0),
    };

    /// The bytes of `range`, counted from the start of this slice.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) when the range does not lie inside the
    /// slice. An empty range inside is fine.
    #[inline]
    pub fn slice(&self, range: impl RangeBounds<u64>) -> Result<RemoteSlice> {
        let (start, len) = range::resolve("range", range, self.len)?;
        Ok(self.part(start, len))
    }

    /// `len` bytes of an entire region from `offset` on, where there are some that lie inside, and
    /// that any flush can do.
    #[inline(always)]
    pub(crate) fn quick_part(&self, offset: u64, len: u64) -> Option<RemoteSlice> {
        if len.wrapping_sub(1) >= FlushPlan::MAX_RANGE || !range::inside(offset, len, self.len) {
            return None;
        }
        Some(RemoteSlice {
            target: self.target.at(offset),
            len,
            // Of an entire region, so that it can have what the region can have.
            shape: Shape::new(self.shape.region(), self.shape.region(), len == self.len),
            ..*self
        })
    }

    /// `start` and `len` lie inside.
    #[inline(always)]
    fn part(&self, start: u64, len: u64) -> RemoteSlice {
        RemoteSlice {
            // start is at most the length, and a region never leaves the address space.
            target: self.target.at(start),
            len,
            shape: self.shape.part(len, len == self.len),
            ..*self
        }
    }

    /// The flushes that it can have.
    #[inline(always)]
    pub(crate) const fn flushes(&self) -> FlushPlan {
        FlushPlan::from_bits_retain(self.shape.0 as u8)
    }

    /// 1 for the entire region, else 0.
    #[inline(always)]
    pub(crate) const fn level(&self) -> u8 {
        (self.shape.0 >> 16) as u8
    }

    /// Where the slice starts in the peer's address space.
    #[inline]
    pub const fn address(&self) -> u64 {
        self.target.addr()
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
        Usage::from_bits_truncate(self.target.tag())
    }
}

impl fmt::Debug for RemoteSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteSlice")
            .field("address", &format_args!("{:#x}", self.address()))
            .field("len", &self.len)
            .field("usage", &self.usage())
            .field("rkey", &self.target.rkey())
            .finish()
    }
}

#[cfg(test)]
mod tests;
