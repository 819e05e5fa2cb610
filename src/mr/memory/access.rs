//! Reading and writing memory that a device may read and write at the same time.
//!
//! Every byte of a memory belongs to one *cell*: an aligned 8-byte word that lies wholly inside,
//! or, at the ragged ends of memory that does not start or end on such a word, a single byte. All
//! accesses are atomic accesses to cells, so two threads that meet on a cell have a defined
//! outcome, and no access ever touches a byte outside. Whoever needs part of a word reads all of
//! it, or exchanges all of it by compare-and-swap.

use std::sync::atomic::{
    AtomicU8, AtomicU64,
    Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};

use std::ops::RangeBounds;

use super::{Memory, range};
use crate::error::{Error, Result};

const WORD: usize = size_of::<u64>();

impl Memory {
    /// Copies bytes out, from `offset` on, until `buf` is full.
    ///
    /// Each aligned 8-byte word is read at once, but the whole is no snapshot: when a device or
    /// another thread writes meanwhile, some words may be old and others new. What was complete
    /// before is read as it was: data that has arrived before a completion was taken is all there.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the bytes are not all inside.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut at = self.locate("buf", offset, buf.len())?;
        let mut rest = buf;
        while !rest.is_empty() {
            let done = match self.cell(at) {
                Cell::Words(shift) if shift == 0 && rest.len() >= WORD => {
                    let mut words = rest.chunks_exact_mut(WORD);
                    for (i, bytes) in words.by_ref().enumerate() {
                        let word = self.word(at + i * WORD).load(Relaxed);
                        bytes.copy_from_slice(&word.to_ne_bytes());
                    }
                    let left = words.into_remainder().len();
                    rest.len() - left
                }
                Cell::Words(shift) => {
                    let word = self.word(at - shift).load(Relaxed).to_ne_bytes();
                    let part = rest.len().min(WORD - shift);
                    rest[..part].copy_from_slice(&word[shift..shift + part]);
                    part
                }
                Cell::Byte => {
                    rest[0] = self.byte(at).load(Relaxed);
                    1
                }
            };
            at += done;
            rest = &mut rest[done..];
        }
        Ok(())
    }

    /// Copies the bytes of `range` out; a concurrent write does to them what it does to those of
    /// [`read_at`](Self::read_at).
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the range does not lie inside.
    pub fn read_vec(&self, range: impl RangeBounds<u64>) -> Result<Vec<u8>> {
        let (start, len) = range::resolve("range", range, self.len as u64)?;
        let mut bytes = vec![0; len as usize];
        self.read_at(start, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies all of `buf` in, from `offset` on.
    ///
    /// Each aligned 8-byte word is written at once, the whole is not: a device or another thread
    /// that reads meanwhile may find some words old and others new. What was written before an
    /// operation is posted is what the operation takes.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the bytes would not all be inside; [`Error::InvalidArgument`]
    /// when the memory is read-only.
    pub fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        let mut at = self.locate("buf", offset, buf.len())?;
        self.check_writable()?;
        let mut rest = buf;
        while !rest.is_empty() {
            let done = match self.cell(at) {
                Cell::Words(shift) if shift == 0 && rest.len() >= WORD => {
                    let words = rest.chunks_exact(WORD);
                    let left = words.remainder().len();
                    for (i, bytes) in words.enumerate() {
                        let mut word = [0; WORD];
                        word.copy_from_slice(bytes);
                        let word = u64::from_ne_bytes(word);
                        self.word(at + i * WORD).store(word, Relaxed);
                    }
                    rest.len() - left
                }
                Cell::Words(shift) => {
                    let part = rest.len().min(WORD - shift);
                    let patched = |word: u64| {
                        let mut word = word.to_ne_bytes();
                        word[shift..shift + part].copy_from_slice(&rest[..part]);
                        Some(u64::from_ne_bytes(word))
                    };
                    // It never says no, so the result has nothing to tell.
                    let _ = self
                        .word(at - shift)
                        .fetch_update(Relaxed, Relaxed, patched);
                    part
                }
                Cell::Byte => {
                    self.byte(at).store(rest[0], Relaxed);
                    1
                }
            };
            at += done;
            rest = &rest[done..];
        }
        Ok(())
    }

    /// Loads the 8-byte word at `offset`, in this machine's byte order, at once.
    ///
    /// With [`Acquire`] it may be used to watch for a word that a peer writes last. That the bytes
    /// written before are there when the word is, InfiniBand does not promise within one write; it
    /// does, for a word that a later operation of the same connection writes.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the word is not inside; [`Error::Misaligned`] when its address is
    /// no multiple of 8; [`Error::InvalidArgument`] for an `order` that a load cannot have.
    #[inline]
    pub fn load_u64(&self, offset: u64, order: Ordering) -> Result<u64> {
        let word = self.aligned(offset)?;
        if !matches!(order, Relaxed | Acquire | SeqCst) {
            return Err(bad_order());
        }
        if self.writable {
            return Ok(word.load(order));
        }
        // Of read-only memory only relaxed loads are sure to be plain loads (module documentation
        // of std::sync::atomic).
        let value = word.load(Relaxed);
        if order != Relaxed {
            fence(order);
        }
        Ok(value)
    }

    /// Stores the 8-byte word at `offset`, in this machine's byte order, at once.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the word is not inside; [`Error::Misaligned`] when its address is
    /// no multiple of 8; [`Error::InvalidArgument`] for an `order` that a store cannot have, and
    /// when the memory is read-only.
    #[inline]
    pub fn store_u64(&self, offset: u64, value: u64, order: Ordering) -> Result<()> {
        let word = self.aligned(offset)?;
        self.check_writable()?;
        if !matches!(order, Relaxed | Release | SeqCst) {
            return Err(bad_order());
        }
        word.store(value, order);
        Ok(())
    }

    /// Replaces the 8-byte word at `offset` by `new` if it is `current`, at once. Gives what was
    /// there: in `Ok` when it was replaced, in `Err` when not.
    ///
    /// Whether this is atomic towards the device's own atomic operations depends on the device;
    /// most promise it among their own only.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the word is not inside; [`Error::Misaligned`] when its address is
    /// no multiple of 8; [`Error::InvalidArgument`] for a `failure` order that a load cannot have,
    /// and when the memory is read-only.
    #[inline]
    pub fn compare_exchange_u64(
        &self,
        offset: u64,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<std::result::Result<u64, u64>> {
        let word = self.aligned(offset)?;
        self.check_writable()?;
        if !is_order(success) || !matches!(failure, Relaxed | Acquire | SeqCst) {
            return Err(bad_order());
        }
        Ok(word.compare_exchange(current, new, success, failure))
    }

    /// Adds to the 8-byte word at `offset`, wrapping around, at once. Gives what was there before.
    ///
    /// As for the device's own atomic operations, see
    /// [`compare_exchange_u64`](Self::compare_exchange_u64).
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the word is not inside; [`Error::Misaligned`] when its address is
    /// no multiple of 8; [`Error::InvalidArgument`] when the memory is read-only.
    #[inline]
    pub fn fetch_add_u64(&self, offset: u64, add: u64, order: Ordering) -> Result<u64> {
        let word = self.aligned(offset)?;
        self.check_writable()?;
        if !is_order(order) {
            return Err(bad_order());
        }
        Ok(word.fetch_add(add, order))
    }

    /// The bytes of `range`, in place.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the range does not lie inside.
    ///
    /// # Safety
    ///
    /// As long as the slice lives, nobody writes to these bytes: neither this program, nor a device
    /// on its behalf (a posted read or receive), nor another process that has mapped the file, nor
    /// a peer. What keeps peers out is the registration, not who was given the descriptor:
    /// descriptors can be guessed and forged, by safe code of this program, too. So as long as the
    /// memory is registered with [`WRITE_DST`](crate::Usage::WRITE_DST) or
    /// [`ATOMIC`](crate::Usage::ATOMIC), or on iWARP with [`READ_DST`](crate::Usage::READ_DST),
    /// whatever connects to the region's [`Peer`](crate::Peer) counts as writing there.
    pub unsafe fn as_slice(&self, range: impl RangeBounds<u64>) -> Result<&[u8]> {
        let (start, len) = range::resolve("range", range, self.len as u64)?;
        // SAFETY: inside, just checked, and initialised; that nobody writes is the caller's word.
        Ok(unsafe { std::slice::from_raw_parts(self.at(start as usize), len as usize) })
    }

    /// The bytes of `range`, in place and to be written.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the range does not lie inside; [`Error::InvalidArgument`] when
    /// the memory is read-only.
    ///
    /// # Safety
    ///
    /// As long as the slice lives, nobody else reads or writes these bytes: neither this program,
    /// nor a device on its behalf (a posted operation of any kind), nor another process that has
    /// mapped the file, nor a peer. As for [`as_slice`](Self::as_slice), the registration says what
    /// a peer can do: beside the rights named there, [`READ_SRC`](crate::Usage::READ_SRC) and the
    /// two for flushing let peers read.
    #[allow(
        clippy::mut_from_ref,
        reason = "the caller vouches for being alone on these bytes, not on all"
    )]
    pub unsafe fn as_mut_slice(&self, range: impl RangeBounds<u64>) -> Result<&mut [u8]> {
        let (start, len) = range::resolve("range", range, self.len as u64)?;
        self.check_writable()?;
        // SAFETY: inside, just checked, initialised and writable; that nobody else has them is the
        // caller's word.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.at(start as usize), len as usize) })
    }

    fn check_writable(&self) -> Result<()> {
        match self.writable {
            true => Ok(()),
            false => Err(read_only()),
        }
    }

    /// Checks that `len` bytes from `offset` on are inside. An offset that is inside fits a usize.
    fn locate(&self, argument: &'static str, offset: u64, len: usize) -> Result<usize> {
        range::check(argument, offset, len as u64, self.len as u64)?;
        Ok(offset as usize)
    }

    #[inline]
    fn aligned(&self, offset: u64) -> Result<&AtomicU64> {
        let at = self.locate("offset", offset, WORD)?;
        let address = self.at(at).addr();
        match address % WORD {
            0 => Ok(self.word(at)),
            _ => Err(misaligned(address)),
        }
    }

    /// The cell that the byte at `at`, inside, belongs to.
    #[inline]
    fn cell(&self, at: usize) -> Cell {
        let shift = self.at(at).addr() % WORD;
        match shift <= at && self.len - (at - shift) >= WORD {
            true => Cell::Words(shift),
            false => Cell::Byte,
        }
    }

    #[inline]
    fn at(&self, at: usize) -> *mut u8 {
        debug_assert!(at <= self.len);
        // SAFETY: all callers have checked that it is inside, or just behind the last byte.
        unsafe { self.ptr.as_ptr().add(at) }
    }

    #[inline]
    fn byte(&self, at: usize) -> &AtomicU8 {
        debug_assert!(at < self.len);
        // SAFETY: inside, and alive as long as the memory is; all safe accesses to this byte are of
        // this kind.
        unsafe { &*self.at(at).cast() }
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(self.at(at).addr() % WORD == 0 && at + WORD <= self.len);
        // SAFETY: inside and aligned, as all callers have checked, and alive as long as the memory
        // is; all safe accesses to these bytes are of this kind.
        unsafe { &*self.at(at).cast() }
    }
}

enum Cell {
    /// A word, and how many bytes into it.
    Words(usize),
    Byte,
}

/// Orderings are an open enum: those that std adds one day may not be for every operation.
fn is_order(order: Ordering) -> bool {
    matches!(order, Relaxed | Acquire | Release | AcqRel | SeqCst)
}

#[cold]
fn bad_order() -> Error {
    Error::invalid("order", "an ordering that this operation cannot have")
}

#[cold]
fn read_only() -> Error {
    Error::invalid("memory", "mapped read-only")
}

#[cold]
fn misaligned(address: usize) -> Error {
    Error::Misaligned {
        argument: "offset",
        address: address as u64,
    }
}
