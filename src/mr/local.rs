//! Memory of this machine that a device has.

use std::{
    fmt,
    marker::PhantomData,
    ops::RangeBounds,
    sync::{Arc, atomic::Ordering},
};

use rdma_sys as ffi;

use super::{
    Descriptor, FlushMethods, Memory, OwnedSlice, Usage, held::Held, quick, range,
    usage::is_on_demand,
};
use crate::{
    error::{Error, Result},
    verbs::Mr,
};

/// A region of this machine's memory that is registered with a device: the local side of
/// operations, and, once a peer has its [`descriptor`](Self::descriptor), the remote side of the
/// peer's.
///
/// It is a handle: cloning it is cheap, and all clones are the same region. As long as one of them
/// or an [`OwnedSlice`] lives, the device may reach the memory. Dropping the last one deregisters
/// first and gives the memory back after, also while operations are in flight: these complete with
/// an error. If the device refuses to deregister, dropping logs the error and leaves the memory
/// allocated; [`close`](Self::close) reports it and lets you retry.
///
/// Peers and the device may change its bytes at any time, so safe code gets copies and atomic
/// words, never a reference. All methods may be called from any thread at any time. None of them
/// blocks, except [`flush_to_media`](Self::flush_to_media) and `close`, which are system calls.
///
/// All offsets and lengths are in bytes.
#[derive(Clone)]
#[doc(alias = "rpma_mr_local")]
#[doc(alias = "rpma_mr_reg")]
pub struct LocalRegion {
    /// All of it: what its slices are cut from. In the handle itself, where posting finds it
    /// without a detour.
    whole: LocalSlice<'static>,
    inner: Arc<Inner>,
}

struct Inner {
    held: Held<Mr>,
    rkey: u32,
    methods: FlushMethods,
    on_demand: bool,
}

impl LocalRegion {
    /// `mr` is the registration of all of `memory`; `pd_tag` is the number of the protection domain
    /// that it was made in, never 0; `access` are the rights that the device has granted.
    pub(crate) fn new(
        mr: Mr,
        memory: Memory,
        usage: Usage,
        pd_tag: u32,
        access: u32,
    ) -> LocalRegion {
        let at = (memory.as_ptr().addr() as u64, memory.len() as u64);
        LocalRegion::at(at, mr, memory, usage, pd_tag, access)
    }

    /// As [`new`](Self::new), where the device knows the bytes by another address: that, and how
    /// many there are. If only the device can reach them, `memory` has none.
    pub(crate) fn at(
        (addr, len): (u64, u64),
        mr: Mr,
        memory: Memory,
        usage: Usage,
        pd_tag: u32,
        access: u32,
    ) -> LocalRegion {
        LocalRegion {
            whole: LocalSlice::whole(addr, len, mr.lkey(), pd_tag, usage),
            inner: Arc::new(Inner {
                rkey: mr.rkey(),
                held: Held::new(mr, memory),
                methods: FlushMethods::from_access(access),
                on_demand: is_on_demand(access),
            }),
        }
    }

    /// The bytes of `range`, counted from the start of the region: the local side of an operation.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the range does not lie inside the region. An empty range inside
    /// is fine.
    #[inline]
    pub fn slice(&self, range: impl RangeBounds<u64>) -> Result<LocalSlice<'_>> {
        self.whole.slice(range)
    }

    /// The bytes of `range`, as a value that keeps the region alive: for operations that are posted
    /// by another task or thread.
    ///
    /// # Errors
    ///
    /// As [`slice`](Self::slice).
    pub fn slice_owned(&self, range: impl RangeBounds<u64>) -> Result<OwnedSlice> {
        Ok(OwnedSlice::new(self, self.whole.slice(range)?))
    }

    /// All of it.
    #[inline(always)]
    pub(crate) fn all(&self) -> &LocalSlice<'_> {
        &self.whole
    }

    /// The length of the region in bytes, at least 1.
    #[inline]
    #[allow(
        clippy::len_without_is_empty,
        reason = "a region is never empty, so the question has one answer"
    )]
    #[doc(alias = "rpma_mr_get_size")]
    pub fn len(&self) -> u64 {
        self.whole.len
    }

    /// What the region was registered for.
    #[inline]
    pub fn usage(&self) -> Usage {
        self.whole.usage()
    }

    /// The native flushes that the device has granted for this memory. Every flushable region can
    /// also be flushed by a read.
    #[inline]
    pub fn methods(&self) -> FlushMethods {
        self.inner.methods
    }

    /// Are the pages fetched when the device needs them, not pinned? Then the device may have to
    /// ask the peer to send again later, as often as the peer's
    /// [`rnr_retry_count`](crate::ConnCfg::rnr_retry_count) allows: do not set it to 0.
    #[inline]
    pub fn is_on_demand(&self) -> bool {
        self.inner.on_demand
    }

    /// The bytes to send to a peer, of which it makes a [`RemoteRegion`](crate::RemoteRegion).
    #[doc(alias = "rpma_mr_get_descriptor")]
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::new(
            self.whole.sge.addr,
            self.whole.len,
            self.inner.rkey,
            self.usage(),
            self.methods(),
        )
    }

    /// The memory that is registered, for what else it can do.
    #[inline]
    pub fn memory(&self) -> &Memory {
        self.inner.held.memory()
    }

    /// Copies bytes out. See [`Memory::read_at`] for what a concurrent write does to it.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the bytes are not all inside.
    #[inline]
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.memory().read_at(offset, buf)
    }

    /// Copies the bytes of `range` out: [`Memory::read_vec`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn read_vec(&self, range: impl RangeBounds<u64>) -> Result<Vec<u8>> {
        self.memory().read_vec(range)
    }

    /// Copies bytes in. See [`Memory::write_at`] for what a concurrent read may find.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the bytes would not all be inside; [`Error::InvalidArgument`]
    /// when the memory is read-only.
    #[inline]
    pub fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.memory().write_at(offset, buf)
    }

    /// Loads the 8-byte word at `offset` at once: [`Memory::load_u64`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn load_u64(&self, offset: u64, order: Ordering) -> Result<u64> {
        self.memory().load_u64(offset, order)
    }

    /// Stores the 8-byte word at `offset` at once: [`Memory::store_u64`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn store_u64(&self, offset: u64, value: u64, order: Ordering) -> Result<()> {
        self.memory().store_u64(offset, value, order)
    }

    /// Replaces the 8-byte word at `offset` if it is `current`: [`Memory::compare_exchange_u64`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn compare_exchange_u64(
        &self,
        offset: u64,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<std::result::Result<u64, u64>> {
        self.memory()
            .compare_exchange_u64(offset, current, new, success, failure)
    }

    /// Adds to the 8-byte word at `offset`: [`Memory::fetch_add_u64`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn fetch_add_u64(&self, offset: u64, add: u64, order: Ordering) -> Result<u64> {
        self.memory().fetch_add_u64(offset, add, order)
    }

    /// Brings what is in `range` to the medium: [`Memory::flush_to_media`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn flush_to_media(&self, range: impl RangeBounds<u64>) -> Result<()> {
        self.memory().flush_to_media(range)
    }

    /// The address of the first byte. Reading through it races with whatever the device does.
    #[inline]
    #[doc(alias = "rpma_mr_get_ptr")]
    pub fn as_ptr(&self) -> *const u8 {
        self.memory().as_ptr()
    }

    /// The address of the first byte, for writing. Do so only if the memory [is
    /// writable](Memory::is_writable); and mind that it races with whatever the device does.
    #[inline]
    #[doc(alias = "rpma_mr_get_ptr")]
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.memory().as_mut_ptr()
    }

    /// Deregisters and gives the memory back. Operations that are in flight complete with an error.
    ///
    /// # Errors
    ///
    /// The region, as it was, and why:
    ///
    /// - [`Error::InUse`] when there are clones of it or [`OwnedSlice`]s: nothing was done;
    /// - what the device said ([`Error::Provider`], `ibv_dereg_mr(3)`). Memory windows that are
    ///   bound to the region are the usual reason.
    #[doc(alias = "rpma_mr_dereg")]
    #[allow(
        clippy::result_large_err,
        reason = "the region itself comes back, and this is no path to be fast on"
    )]
    pub fn close(mut self) -> Result<Memory, (LocalRegion, Error)> {
        self.close_in_place().map_err(|error| (self, error))
    }

    /// As [`close`](Self::close), for the C interface, whose handles stay in place where a call
    /// fails. After success all that the region is good for is to be dropped.
    pub(crate) fn close_in_place(&mut self) -> Result<Memory> {
        match Arc::get_mut(&mut self.inner) {
            Some(inner) => inner.held.release(),
            None => Err(Error::InUse {
                what: "the region",
                // As of now; where the last one has just gone, there was one.
                handles: (Arc::strong_count(&self.inner) - 1).max(1),
            }),
        }
    }

    /// `None` once it was closed in place.
    pub(crate) fn registration(&self) -> Option<&Mr> {
        self.inner.held.registration()
    }
}

impl fmt::Debug for LocalRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (LocalSlice { sge, len, .. }, rkey) = (&self.whole, self.inner.rkey);
        let (usage, methods) = (self.usage(), self.methods());
        write!(
            f,
            "LocalRegion({:#x} + {len:#x}, {usage:?}, {methods:?}, lkey {:#x}, rkey {rkey:#x})",
            sge.addr, sge.lkey
        )
    }
}

/// A part of a [`LocalRegion`]: the local side of an operation. Small, [`Copy`], and checked when
/// it was made.
///
/// It borrows the region, but an operation that was posted with it does not: the region may be
/// dropped before the operation is complete. An [`OwnedSlice`] borrows nothing.
///
/// ```compile_fail,E0505
/// # fn f(region: rpma::LocalRegion) -> rpma::Result<()> {
/// let slice = region.slice(0..8)?;
/// drop(region);
/// println!("{slice:?}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LocalSlice<'a> {
    /// What the device gets. Its length is the greatest possible where `len` does not fit: posting
    /// refuses by `len`.
    pub(crate) sge: ffi::ibv_sge,
    pub(crate) len: u64,
    /// The protection domain's number in the upper half, the usage bits in the lower.
    pub(crate) tag: u64,
    /// What the quick check needs.
    pub(crate) quick: u32,
    region: PhantomData<&'a LocalRegion>,
}

/// A [`LocalSlice`], or what holds one: what operations take as their local side.
pub trait AsLocalSlice {
    /// The slice.
    fn as_local_slice(&self) -> &LocalSlice<'_>;
}

impl AsLocalSlice for LocalSlice<'_> {
    #[inline(always)]
    fn as_local_slice(&self) -> &LocalSlice<'_> {
        self
    }
}

impl<T: AsLocalSlice + ?Sized> AsLocalSlice for &T {
    #[inline(always)]
    fn as_local_slice(&self) -> &LocalSlice<'_> {
        (**self).as_local_slice()
    }
}

impl<'a> LocalSlice<'a> {
    /// No bytes of no region, for messages without content.
    pub const EMPTY: LocalSlice<'static> = LocalSlice {
        sge: ffi::ibv_sge {
            addr: 0,
            length: 0,
            lkey: 0,
        },
        len: 0,
        tag: 0,
        quick: quick::part(quick::local(0, Usage::empty()), 0),
        region: PhantomData,
    };

    /// All of a region. One that is registered does not leave the address space.
    fn whole(addr: u64, len: u64, lkey: u32, pd_tag: u32, usage: Usage) -> Self {
        LocalSlice {
            sge: ffi::ibv_sge {
                addr,
                length: u32::try_from(len).unwrap_or(u32::MAX),
                lkey,
            },
            len,
            tag: u64::from(pd_tag) << 32 | u64::from(usage.bits()),
            quick: quick::part(quick::local(pd_tag, usage), len),
            region: PhantomData,
        }
    }

    /// The bytes of `range`, counted from the start of this slice.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the range does not lie inside the slice. An empty range inside is
    /// fine.
    #[inline]
    pub fn slice(&self, range: impl RangeBounds<u64>) -> Result<LocalSlice<'a>> {
        let (start, len) = range::resolve("range", range, self.len)?;
        Ok(self.part(start, len))
    }

    /// What the device gets of `len` bytes from `offset` on, which lie inside and are not longer
    /// than 32 bits tell.
    #[inline(always)]
    pub(crate) fn sge_at(&self, offset: u64, len: u64) -> ffi::ibv_sge {
        ffi::ibv_sge {
            addr: self.sge.addr + offset,
            length: len as u32,
            lkey: self.sge.lkey,
        }
    }

    /// `start` and `len` lie inside.
    #[inline]
    fn part(&self, start: u64, len: u64) -> LocalSlice<'a> {
        LocalSlice {
            sge: ffi::ibv_sge {
                addr: self.sge.addr + start,
                length: u32::try_from(len).unwrap_or(u32::MAX),
                lkey: self.sge.lkey,
            },
            len,
            quick: quick::part(self.quick, len),
            ..*self
        }
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
        Usage::from_bits_retain(self.tag as u32)
    }
}

impl fmt::Debug for LocalSlice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (LocalSlice { sge, len, .. }, usage) = (self, self.usage());
        write!(
            f,
            "LocalSlice({:#x} + {len:#x}, {usage:?}, lkey {:#x})",
            sge.addr, sge.lkey
        )
    }
}

#[cfg(test)]
mod tests;
