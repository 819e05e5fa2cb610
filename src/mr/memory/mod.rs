//! Bytes to register: where they come from, how they are read and written while a device has them,
//! and how they get to the medium.
//!
//! # Safety
//!
//! All that this crate does with raw memory of the program is in this folder.
//!
//! - `mapping.rs` maps and unmaps, `file.rs` decides what to map of a file, `owner.rs` takes over
//!   the memory of others;
//! - `access.rs` reads and writes;
//! - `persist.rs` writes back to the medium;
//! - `range.rs` checks the ranges of callers;
//! - `region.rs` has the unsafe methods of [`LocalRegion`](crate::LocalRegion).
//!
//! Two rules make the rest safe. A [`Memory`] is the only owner of its bytes and keeps them in
//! place until it is dropped; and nothing ever makes a reference to them, except the `unsafe`
//! functions whose caller vouches that nobody writes meanwhile.

#![allow(unsafe_code)]

mod access;
mod file;
mod mapping;
mod owner;
mod persist;
pub(crate) mod range;
mod region;
#[cfg(test)]
mod tests;

use std::{any::Any, fmt, ptr::NonNull};

pub use mapping::HugePage;
pub use owner::StableBytes;

use crate::error::{Error, Result};
use mapping::Mapping;
use persist::Medium;

/// Memory to be registered: owned bytes whose address never changes.
///
/// ```
/// use rpma::Memory;
///
/// let memory = Memory::anonymous(4096)?;
/// memory.write_at(100, b"hello")?;
/// let mut bytes = [0; 5];
/// memory.read_at(100, &mut bytes)?;
/// assert_eq!(&bytes, b"hello");
/// # Ok::<(), rpma::Error>(())
/// ```
///
/// As long as it is registered, a device, and through it other machines, may change the bytes at
/// any time. So there is no safe way to a `&[u8]` of them: [`read_at`](Self::read_at) and
/// [`write_at`](Self::write_at) copy, [`load_u64`](Self::load_u64) and its like are atomic, and all
/// of them may be called from any thread at any time.
///
/// Dropping it gives the bytes back to where they came from.
#[doc(alias = "rpma_mr_reg")]
pub struct Memory {
    ptr: NonNull<u8>,
    /// At least 1, and at most `isize::MAX`; 0 for `nothing`.
    len: usize,
    writable: bool,
    backing: Backing,
}

enum Backing {
    /// Nothing to give back: the bytes are somebody else's, or given up.
    Borrowed,
    Anonymous(#[allow(dead_code, reason = "held to be dropped")] Mapping),
    File(
        #[allow(dead_code, reason = "held to be dropped")] Mapping,
        Medium,
    ),
    /// The owner, which is a `StableBytes`.
    Owned(Box<dyn Any + Send>),
}

// SAFETY: the bytes are owned, or vouched for by the caller of `from_raw_parts`; owners are Send
// (`StableBytes` asks for it), and unmapping may be done by any thread.
unsafe impl Send for Memory {}
// SAFETY: what a shared reference allows are the accesses of `access.rs`, which are atomic; the
// owner of the bytes is never touched before it is dropped.
unsafe impl Sync for Memory {}

impl Memory {
    /// Borrows `len` bytes at `ptr`.
    ///
    /// For memory that comes from elsewhere and whose owner cannot be handed over; prefer
    /// [`from_owner`](Self::from_owner).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a null pointer, no bytes at all, or more than an address
    /// space holds.
    ///
    /// # Safety
    ///
    /// - The bytes stay allocated, at this address and initialised, until this `Memory` is dropped,
    ///   or for ever if it is leaked. A region that is made of it owns it, so this includes: as
    ///   long as the region lives.
    /// - They can be read, and written if `writable`.
    /// - As long as it lives, nobody else in the program reads or writes the bytes except by atomic
    ///   operations on whole, aligned 8-byte words, or at moments when neither a device nor a safe
    ///   function of this crate can reach them.
    pub unsafe fn from_raw_parts(ptr: *mut u8, len: usize, writable: bool) -> Result<Memory> {
        let ptr = NonNull::new(ptr).ok_or_else(|| Error::invalid("ptr", "null"))?;
        Memory::new(ptr, len, writable, Backing::Borrowed)
    }

    fn new(ptr: NonNull<u8>, len: usize, writable: bool, backing: Backing) -> Result<Memory> {
        check_len(len)?;
        Ok(Memory {
            ptr,
            len,
            writable,
            backing,
        })
    }

    /// The number of bytes, at least 1.
    #[inline]
    #[allow(
        clippy::len_without_is_empty,
        reason = "memory is never empty, so the question has one answer"
    )]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the bytes can be written: `false` for a file that was mapped
    /// [read-only](Self::map_file_read_only). Such memory can only be registered as a source.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// The address of the first byte. Reading through it races with whatever the device does.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.ptr.as_ptr()
    }

    /// The address of the first byte, for writing. Do so only if
    /// [`is_writable`](Self::is_writable); and mind that it races with whatever the device does.
    #[inline]
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Whether the memory is itself the medium of a file or of a persistent device, so that bytes
    /// which have left the CPU's and the I/O caches outlive a power failure.
    ///
    /// This is so for a mapping that the kernel has granted `MAP_SYNC` (mmap(2)): `/dev/dax` of
    /// persistent memory, and files of a file system mounted with DAX. It is not so for an ordinary
    /// file, whose pages are copies in volatile memory.
    #[inline]
    pub fn is_persistent(&self) -> bool {
        matches!(self.backing, Backing::File(_, Medium::Direct { .. }))
    }

    /// Gives up the bytes: they stay in place until the process ends. For when a device may still
    /// reach them.
    pub(super) fn leak(&mut self) {
        std::mem::forget(std::mem::replace(&mut self.backing, Backing::Borrowed));
    }

    /// Takes the bytes out and leaves [`nothing`](Self::nothing) behind.
    pub(super) fn take(&mut self) -> Memory {
        std::mem::replace(self, Memory::nothing())
    }

    /// No bytes at all, for regions whose bytes this process cannot reach: every access is out of
    /// range.
    pub(crate) fn nothing() -> Memory {
        Memory {
            ptr: NonNull::dangling(),
            len: 0,
            writable: false,
            backing: Backing::Borrowed,
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let backing = match &self.backing {
            Backing::Borrowed => "borrowed",
            Backing::Anonymous(_) => "anonymous",
            Backing::File(_, Medium::Direct { .. }) => "persistent",
            Backing::File(..) => "file",
            Backing::Owned(_) => "owned",
        };
        let (len, access) = (self.len, if self.writable { "" } else { ", read-only" });
        write!(f, "Memory({:p} + {len:#x}, {backing}{access})", self.ptr)
    }
}

fn check_len(len: usize) -> Result<()> {
    match len {
        0 => Err(Error::invalid(
            "len",
            "0, and registered memory has at least one byte",
        )),
        len if isize::try_from(len).is_err() => Err(Error::invalid(
            "len",
            "more bytes than an address space holds",
        )),
        _ => Ok(()),
    }
}
