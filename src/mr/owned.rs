//! Slices that keep their region alive.

use std::{fmt, ops::RangeBounds};

use super::{AsLocalSlice, LocalRegion, LocalSlice};
use crate::error::Result;

/// A part of a [`LocalRegion`] that keeps the region alive: a [`LocalSlice`] without a lifetime, to
/// be stored, cloned and sent to other threads and tasks.
///
/// ```no_run
/// # fn f(conn: &rpma::Connection, region: rpma::LocalRegion, target: &rpma::RemoteSlice) -> rpma::Result<()> {
/// let slice = region.slice_owned(0..8)?;
/// drop(region);
/// conn.write(&slice, target, rpma::Signal::Always(1))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OwnedSlice {
    /// Never given out with this lifetime.
    slice: LocalSlice<'static>,
    region: LocalRegion,
}

impl OwnedSlice {
    /// `slice` is a part of `region`.
    pub(super) fn new(region: &LocalRegion, slice: LocalSlice<'static>) -> OwnedSlice {
        OwnedSlice {
            slice,
            region: region.clone(),
        }
    }

    /// The slice, to be posted.
    #[inline]
    pub fn as_slice(&self) -> &LocalSlice<'_> {
        &self.slice
    }

    /// The bytes of `range`, counted from the start of this slice.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) when the range does not lie inside the
    /// slice. An empty range inside is fine.
    pub fn slice_owned(&self, range: impl RangeBounds<u64>) -> Result<OwnedSlice> {
        Ok(OwnedSlice::new(&self.region, self.slice.slice(range)?))
    }

    /// The region that it is a part of.
    #[inline]
    pub fn region(&self) -> &LocalRegion {
        &self.region
    }

    /// Where the slice starts in its region.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.slice.sge.addr - self.region.all().sge.addr
    }

    /// The length of the slice in bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        self.slice.len
    }

    /// Whether the slice has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slice.len == 0
    }

    /// Copies its bytes out; see [`Memory::read_at`](crate::Memory::read_at) for what a concurrent
    /// write does to it.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) for a region whose bytes only the device can
    /// reach.
    pub fn read_vec(&self) -> Result<Vec<u8>> {
        let start = self.offset();
        self.region.read_vec(start..start + self.slice.len)
    }
}

impl AsLocalSlice for OwnedSlice {
    #[inline(always)]
    fn as_local_slice(&self) -> &LocalSlice<'_> {
        &self.slice
    }
}

impl<'a> From<&'a OwnedSlice> for LocalSlice<'a> {
    fn from(slice: &'a OwnedSlice) -> LocalSlice<'a> {
        slice.slice
    }
}

impl fmt::Debug for OwnedSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (LocalSlice { sge, len, .. }, usage) = (&self.slice, self.slice.usage());
        write!(
            f,
            "OwnedSlice({:#x} + {len:#x}, {usage:?}, lkey {:#x})",
            sge.addr, sge.lkey
        )
    }
}
