//! The bytes of a region in place. It belongs to the room above, and lies here since it is unsafe.

use std::ops::RangeBounds;

use crate::{error::Result, mr::LocalRegion};

impl LocalRegion {
    /// The bytes of `range`, in place.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) when the range does not lie inside the
    /// region.
    ///
    /// # Safety
    ///
    /// As for [`Memory::as_slice`](crate::Memory::as_slice).
    pub unsafe fn as_slice(&self, range: impl RangeBounds<u64>) -> Result<&[u8]> {
        // SAFETY: handed on to the caller.
        unsafe { self.memory().as_slice(range) }
    }

    /// The bytes of `range`, in place and to be written.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) when the range does not lie inside the
    /// region; [`Error::InvalidArgument`](crate::Error::InvalidArgument) when the memory is
    /// read-only.
    ///
    /// # Safety
    ///
    /// As for [`Memory::as_mut_slice`](crate::Memory::as_mut_slice).
    #[allow(
        clippy::mut_from_ref,
        reason = "the caller vouches for being alone on these bytes, not on all"
    )]
    pub unsafe fn as_mut_slice(&self, range: impl RangeBounds<u64>) -> Result<&mut [u8]> {
        // SAFETY: handed on to the caller.
        unsafe { self.memory().as_mut_slice(range) }
    }
}
