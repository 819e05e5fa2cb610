//! Memory of others, taken over.

use std::ptr::NonNull;

use super::{Backing, Memory};
use crate::error::{Error, Result};

/// An owner of bytes that stay where they are when the owner moves.
///
/// `Box<[u8]>` and `Vec<u8>` are such owners. Implement it for a pool's buffer, for memory of a
/// library, or of a device.
///
/// # Safety
///
/// From the call of [`as_mut_ptr`](Self::as_mut_ptr) on, and until the owner is dropped:
///
/// - the [`byte_len`](Self::byte_len) bytes at the pointer are allocated, initialised, readable and
///   writable, and stay at this address, wherever the owner itself is moved;
/// - nobody but who holds the pointer reads or writes them, not even the owner, except by atomic
///   operations on whole, aligned 8-byte words. Dropping the owner may do with them what it likes.
pub unsafe trait StableBytes: Send + 'static {
    /// The address of the first byte.
    fn as_mut_ptr(&mut self) -> *mut u8;

    /// How many bytes there are. Always the same.
    fn byte_len(&self) -> usize;
}

// SAFETY: a box's content has its own allocation, initialised, that nothing else refers to.
unsafe impl StableBytes for Box<[u8]> {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        (**self).as_mut_ptr()
    }

    fn byte_len(&self) -> usize {
        self.len()
    }
}

// SAFETY: a vector's content has its own allocation that nothing else refers to; its first `len`
// bytes are initialised, and it neither grows nor shrinks while nobody can get at it.
unsafe impl StableBytes for Vec<u8> {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        Vec::as_mut_ptr(self)
    }

    fn byte_len(&self) -> usize {
        self.len()
    }
}

impl Memory {
    /// Takes over the bytes of any owner that keeps them in place: a `Vec<u8>`, a `Box<[u8]>`, or
    /// whatever implements [`StableBytes`].
    ///
    /// The owner is dropped with the memory, or taken out again by
    /// [`into_owner`](Self::into_owner). Bytes that start on a page and fill whole pages are the
    /// best for a device; [`anonymous`](Self::anonymous) gives such.
    ///
    /// In programs that fork, mind Linux before 5.12. Either the next write to a page after the
    /// fork moves the parent to a copy, and the device keeps the old page; or, where
    /// `ibv_fork_init(3)` prevents that, the child does not get the pages, nor what else of the
    /// heap is on them. Such programs better register memory that has its pages to itself, and
    /// leave it alone in the child.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] when the owner has no bytes.
    pub fn from_owner(owner: impl StableBytes) -> Result<Memory> {
        // The owner gets its last place before it is asked for the pointer, so that moving it
        // cannot make the pointer invalid.
        let mut owner = Box::new(owner);
        let len = owner.byte_len();
        let ptr = NonNull::new(owner.as_mut_ptr())
            .ok_or_else(|| Error::invalid("owner", "its bytes are at address 0"))?;
        Memory::new(ptr, len, true, Backing::Owned(owner))
    }

    /// The owner that the memory was [made from](Self::from_owner), with its bytes: nothing is
    /// copied. A region gives its memory back by [`LocalRegion::close`](crate::LocalRegion::close).
    ///
    /// ```
    /// use rpma::Memory;
    ///
    /// let memory = Memory::from_owner(vec![0; 4])?;
    /// memory.write_at(0, b"ring")?;
    /// assert_eq!(memory.into_owner::<Vec<u8>>().unwrap(), b"ring");
    /// # Ok::<(), rpma::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The memory as it was, where it was not made from an owner of this type.
    pub fn into_owner<T: StableBytes>(self) -> Result<T, Memory> {
        let backing = match self.backing {
            Backing::Owned(owner) => match owner.downcast() {
                Ok(owner) => return Ok(*owner),
                Err(owner) => Backing::Owned(owner),
            },
            backing => backing,
        };
        Err(Memory { backing, ..self })
    }
}
