//! What a flush promises, and by which means.

use bitflags::bitflags;

use super::Usage;

/// How far written data has got when a flush completes.
///
/// The two are the placement types of the flush operation in annex A19 ("Memory Placement
/// Extensions") of the InfiniBand architecture specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "rpma_flush_type")]
pub enum FlushKind {
    /// The data outlives a power failure of the remote machine. The region must have been
    /// registered with [`Usage::FLUSH_PERSISTENT`].
    #[doc(alias = "RPMA_FLUSH_TYPE_PERSISTENT")]
    Persistent,
    /// The data is visible to every reader of the remote memory. The region must have been
    /// registered with [`Usage::FLUSH_VISIBILITY`].
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

/// How flushes are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum FlushMethod {
    /// Natively where the queue pair and the remote region have it, else by reading. A region whose
    /// descriptor does not tell (a C peer's) is taken to have what the local device has, as librpma
    /// does. On Soft-RoCE flushes to visibility are done by reading: see
    /// [`ConnCfg::device_workarounds`](crate::ConnCfg::device_workarounds).
    #[default]
    Auto,
    /// Natively, or not at all (IBTA annex A19).
    Native,
    /// By a small read behind the writes, on any device. It pushes written data out of the peer's
    /// device; that they reach memory, or persistent memory, takes a peer whose device writes there
    /// directly (for Intel: DDIO off).
    ReadAfterWrite,
}

bitflags! {
    /// The native flush operations that a region accepts, beside the read behind the writes that
    /// every flushable region accepts.
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

bitflags! {
    /// Which kind of flush by which method: what a region can have, or what a connection does. A
    /// flush is possible by what is in both.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub(crate) struct FlushPlan: u8 {
        const READ_VISIBILITY = 1;
        const READ_PERSISTENT = 2;
        const NATIVE_VISIBILITY = 4;
        const NATIVE_PERSISTENT = 8;
        /// The region can surely be read: its owner is of this library, whose flushable regions all
        /// can, or it is registered for reading. librpma's can be read or flushed natively, as its
        /// device has it.
        const READABLE = 16;
    }
}

impl FlushPlan {
    /// The native ones.
    pub(crate) const NATIVE: FlushPlan =
        FlushPlan::NATIVE_VISIBILITY.union(FlushPlan::NATIVE_PERSISTENT);

    /// The longest range that one native flush covers, in bytes: the length on the wire has 32
    /// bits.
    pub(crate) const MAX_RANGE: u64 = u32::MAX as u64;

    /// What is left of a region's plan for `len` bytes of it. A whole region is flushed as such,
    /// whatever its length.
    #[inline]
    pub(super) fn of_range(self, len: u64, whole: bool) -> FlushPlan {
        if len == 0 {
            return FlushPlan::empty();
        }
        if len > FlushPlan::MAX_RANGE && !whole {
            return self - FlushPlan::NATIVE;
        }
        self
    }

    /// Both methods of one kind.
    #[inline(always)]
    pub(crate) const fn of_kind(kind: FlushKind) -> FlushPlan {
        match kind {
            FlushKind::Persistent => FlushPlan::READ_PERSISTENT.union(FlushPlan::NATIVE_PERSISTENT),
            FlushKind::Visibility => FlushPlan::READ_VISIBILITY.union(FlushPlan::NATIVE_VISIBILITY),
        }
    }

    /// Can it be done natively?
    #[inline(always)]
    pub(crate) const fn natively(self, kind: FlushKind) -> bool {
        self.intersects(FlushPlan::of_kind(kind).intersection(FlushPlan::NATIVE))
    }

    /// Can it be done by reading?
    #[inline(always)]
    pub(crate) const fn by_reading(self, kind: FlushKind) -> bool {
        self.intersects(FlushPlan::of_kind(kind).difference(FlushPlan::NATIVE))
    }

    /// Is there a kind of flush that is done by reading?
    #[inline(always)]
    pub(crate) const fn reads(self) -> bool {
        const _: () = assert!(
            FlushPlan::READ_VISIBILITY.bits() << 2 == FlushPlan::NATIVE_VISIBILITY.bits()
                && FlushPlan::READ_PERSISTENT.bits() << 2 == FlushPlan::NATIVE_PERSISTENT.bits()
        );
        // A bit for each of the 16 plans.
        const READS: u32 = {
            let (mut table, mut plan) = (0, 0);
            while plan < 16 {
                let reads = plan & !(plan >> 2) & 3;
                if reads != 0 {
                    table |= 1 << plan;
                }
                plan += 1;
            }
            table
        };
        READS >> (self.bits() & 15) & 1 != 0
    }

    /// What a remote region can have. A C peer's descriptor does not tell the methods; its region
    /// is taken to accept the device's own.
    pub(super) fn of_region(usage: Usage, methods: Option<FlushMethods>) -> FlushPlan {
        let mut plan = FlushPlan::empty();
        let readable = methods.is_some() || usage.contains(Usage::READ_SRC);
        let methods = methods.unwrap_or(FlushMethods::all());
        for kind in [FlushKind::Persistent, FlushKind::Visibility] {
            if usage.contains(kind.usage()) {
                plan |= FlushPlan::of_kind(kind);
                if !methods.contains(kind.native()) {
                    plan -= FlushPlan::of_kind(kind) & FlushPlan::NATIVE;
                }
                plan.set(FlushPlan::READABLE, readable);
            }
        }
        plan
    }
}

#[cfg(test)]
mod tests;
