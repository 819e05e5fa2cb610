use std::{
    fmt,
    marker::PhantomData,
    num::NonZeroU32,
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
};

use super::{
    CqAttr,
    decode::{Cursor, Entry, Phase},
};
use crate::{Error, Result};

/// The ring of a completion queue, to be looked at while it is used.
///
/// Looking consumes nothing: whoever polls the queue still finds every completion. It borrows the
/// queue, whose destruction unmaps the ring.
///
/// The device writes to the ring while it is read. An entry that [`ready`](Self::ready) gives was
/// whole when the device set its phase bit, and the device writes there again only after the
/// queue's consumer went past it. So follow the ring with a [`Cursor`] and stay less than one lap
/// ahead of or behind the consumer: a view that falls further behind takes later entries for those
/// it waits for. It is for looking: what depends on seeing each completion exactly once polls the
/// queue.
///
/// `Send` and `Sync`: many threads may look.
pub struct CqRing<'cq> {
    entries: Mapped,
    count: NonZeroU32,
    _cq: PhantomData<&'cq ()>,
}

impl<'cq> CqRing<'cq> {
    /// The ring that `attr` describes.
    ///
    /// # Errors
    /// `NotSupported` for device 0xefa0, for no ring (a buffer at null or without entries) and for
    /// entries of a length that is not understood.
    ///
    /// # Safety
    /// `attr` must be libefa's answer for a queue, on a device with vendor part id
    /// `vendor_part_id`, that stays alive for `'cq`.
    pub unsafe fn from_attr(attr: &CqAttr, vendor_part_id: u32) -> Result<Self> {
        const SEVERAL_SUB_QUEUES: u32 = 0xefa0;
        if vendor_part_id == SEVERAL_SUB_QUEUES {
            return Err(Error::not_supported(
                "a ring view on EFA device 0xefa0: its queues consist of several rings, and it does not say of how many",
            ));
        }
        let buffer = NonNull::new(attr.buffer.cast::<u32>().cast_mut());
        let (Some(words), Some(count)) = (buffer, NonZeroU32::new(attr.entries)) else {
            return Err(Error::not_supported(
                "a ring view: the queue has no ring in this host's memory",
            ));
        };
        let stride = attr.entry_size as usize;
        let whole_words = stride % WORD == 0 && words.is_aligned();
        if stride < Entry::BASIC || !whole_words {
            return Err(Error::not_supported(
                "a ring view: this device's completion entries have another form than is known",
            ));
        }
        Ok(CqRing {
            entries: Mapped {
                words,
                stride: stride / WORD,
            },
            count,
            _cq: PhantomData,
        })
    }

    /// The number of entries.
    pub fn len(&self) -> NonZeroU32 {
        self.count
    }

    /// The bytes from one entry to the next.
    pub fn stride(&self) -> usize {
        self.entries.stride * WORD
    }

    /// The start of the ring, for a queue that no entry was written to.
    pub fn start(&self) -> Cursor {
        Cursor::start(self.count)
    }

    /// The entry at `index` as it is now, whatever its phase: perhaps an old one, or bytes that
    /// were never written. `None` past the end.
    ///
    /// Of an entry that the device is just writing, a part may be old; [`ready`](Self::ready) does
    /// not have this doubt.
    pub fn peek(&self, index: u32) -> Option<Entry> {
        if index >= self.count.get() {
            return None;
        }
        read(&self.entries.at(index))
    }

    /// The entry at the cursor if it is new, else `None`. The cursor stays where it is:
    /// [`Cursor::advance`] moves it.
    ///
    /// A cursor of another ring, longer than this one, finds nothing past the end.
    pub fn ready(&self, cursor: &Cursor) -> Option<Entry> {
        if cursor.index() >= self.count.get() {
            return None;
        }
        read_if(&self.entries.at(cursor.index()), cursor.phase())
    }
}

impl fmt::Debug for CqRing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CqRing")
            .field("len", &self.count)
            .field("stride", &self.stride())
            .finish()
    }
}

/// The device's words, read through atomics: it may write them meanwhile.
#[derive(Clone, Copy)]
struct Mapped {
    words: NonNull<u32>,
    /// In words.
    stride: usize,
}

// SAFETY: the words are only read, by atomic loads.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// `index` must be below the ring's length.
    fn at(&self, index: u32) -> Slot {
        // SAFETY: the ring has that entry.
        Slot {
            words: unsafe { self.words.add(index as usize * self.stride) },
            len: self.stride,
        }
    }
}

/// One entry in the ring.
struct Slot {
    words: NonNull<u32>,
    len: usize,
}

const WORD: usize = size_of::<u32>();

/// What one entry's words are read from: the ring, or a model of it.
trait Words {
    /// How many there are, at least those of [`Entry::BASIC`].
    fn len(&self) -> usize;
    /// Word `index`, once, in the host's byte order.
    fn load(&self, index: usize) -> u32;
    /// Keeps later loads after earlier ones, as the device's writes are seen.
    fn fence(&self);
}

impl Words for Slot {
    fn len(&self) -> usize {
        self.len
    }

    fn load(&self, index: usize) -> u32 {
        debug_assert!(index < self.len);
        // SAFETY: the word lies in the ring, which is aligned and mapped; a relaxed load of 4 bytes
        // may be of read-only memory.
        unsafe { AtomicU32::from_ptr(self.words.as_ptr().add(index)) }.load(Ordering::Relaxed)
    }

    fn fence(&self) {
        fence_after_flag();
    }
}

/// The entry if its phase bit is `phase`. First the word with the flags, then the fence, then all
/// the words: once the bit is seen, so is what the device wrote before it.
///
/// The first word is looked at once more in the end: the device may have come round.
fn read_if<W: Words>(slot: &W, phase: Phase) -> Option<Entry> {
    if Phase::of_first_word(u32::from_le(slot.load(0))) != phase {
        return None;
    }
    slot.fence();
    let entry = read(slot)?;
    slot.fence();
    let unchanged = entry.as_bytes().starts_with(&slot.load(0).to_ne_bytes());
    (unchanged && entry.phase() == phase).then_some(entry)
}

/// The entry as it is.
fn read<W: Words>(slot: &W) -> Option<Entry> {
    let mut bytes = [0; Entry::EXTENDED];
    let mut len = 0;
    for (index, word) in bytes.chunks_exact_mut(WORD).take(slot.len()).enumerate() {
        word.copy_from_slice(&slot.load(index).to_ne_bytes());
        len += WORD;
    }
    Entry::decode(&bytes[..len])
}

/// Keeps loads of an entry after the load of its flags.
///
/// The device's writes come in by the bus: on Arm the barrier must reach beyond the cores, on
/// x86-64 loads stay in order by themselves.
fn fence_after_flag() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier touches no memory and no register.
    unsafe {
        std::arch::asm!("dmb oshld", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    std::sync::atomic::fence(Ordering::Acquire);
}

#[cfg(test)]
mod tests;
