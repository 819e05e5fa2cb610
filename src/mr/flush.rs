//! What a flush promises, and by which means.

use bitflags::bitflags;

use super::Usage;

/// How far written data has got when a flush completes.
///
/// The two are the placement types of the flush operation in annex A19 ("Memory Placement Extensions") of the InfiniBand
/// architecture specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "rpma_flush_type")]
pub enum FlushKind {
    /// The data outlives a power failure of the remote machine. The region must have been registered with
    /// [`Usage::FLUSH_PERSISTENT`].
    #[doc(alias = "RPMA_FLUSH_TYPE_PERSISTENT")]
    Persistent,
    /// The data is visible to every reader of the remote memory. The region must have been registered with
    /// [`Usage::FLUSH_VISIBILITY`].
    #[doc(alias = "RPMA_FLUSH_TYPE_VISIBILITY")]
    Visibility,
}

impl FlushKind {
    /// The usage that a region must have been registered with to be flushed so.
    #[inline]
    pub const fn usage(self) -> Usage {
        match self {
            FlushKind::Persistent => Usage::FLUSH_PERSISTENT,
            FlushKind::Visibility => Usage::FLUSH_VISIBILITY,
        }
    }

    /// What a region must accept for this flush to be done by the device's own flush operation.
    #[inline]
    pub const fn native(self) -> FlushMethods {
        match self {
            FlushKind::Persistent => FlushMethods::NATIVE_PERSISTENT,
            FlushKind::Visibility => FlushMethods::NATIVE_VISIBILITY,
        }
    }
}

bitflags! {
    /// The native flush operations that a region accepts, beside the read behind the writes that every flushable region accepts.
    ///
    /// A region's owner learns them at registration; they travel in the region's descriptor.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct FlushMethods: u8 {
        /// The device's flush operation with [`FlushKind::Visibility`].
        const NATIVE_VISIBILITY = 1;
        /// The device's flush operation with [`FlushKind::Persistent`].
        const NATIVE_PERSISTENT = 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
