use std::{num::NonZeroU32, ptr::NonNull, sync::atomic::Ordering};

use super::{
    Cq, CqRing,
    decode::{Cursor, Entry, doorbell_word},
};
use crate::{Error, Result};

/// A consumer of a completion queue's ring in place of libibverbs, made by [`Cq::poller`].
///
/// It is `Send`, not shared: one thread at a time consumes.
#[derive(Debug)]
pub struct Poller<'cq> {
    cq: &'cq Cq,
    ring: CqRing<'cq>,
    doorbell: Option<Doorbell>,
    cursor: Cursor,
    /// How far the device was told that the cursor is.
    told: u64,
}

impl<'cq> Poller<'cq> {
    /// # Safety
    /// As for [`Cq::poller`]; `passed` entries were consumed before.
    pub(super) unsafe fn new(cq: &'cq Cq, passed: u64) -> Result<Self> {
        let attr = cq.attr()?;
        // SAFETY: libefa's answer for this queue, which is borrowed.
        let ring = unsafe { CqRing::from_attr(&attr, cq.device().attr().vendor_part_id)? };
        let cursor = Cursor::at(ring.len(), passed);
        Ok(Poller {
            cq,
            ring,
            doorbell: attr.doorbell.map(Doorbell),
            cursor,
            told: passed,
        })
    }

    /// Takes the next completion. `None` where there is none yet.
    ///
    /// The device hears of it by [`update`](Self::update) or [`arm`](Self::arm).
    #[inline]
    pub fn next_entry(&mut self) -> Option<Entry> {
        let entry = self.ring.ready(&self.cursor)?;
        self.cursor.advance();
        Some(entry)
    }

    /// Takes completions into `buf`, says how many, and [updates](Self::update) the device.
    #[inline]
    pub fn poll(&mut self, buf: &mut [Entry]) -> usize {
        let mut taken = 0;
        for place in buf {
            let Some(entry) = self.next_entry() else {
                break;
            };
            *place = entry;
            taken += 1;
        }
        self.update();
        taken
    }

    /// Tells the device how far the consumer is, if it went on since it was last told. Where the
    /// queue has no doorbell there is nothing to tell.
    #[inline]
    pub fn update(&mut self) {
        if self.told != self.cursor.passed() {
            self.ring_doorbell(false);
        }
    }

    /// Asks for an event at the next completion, and tells the device how far the consumer is.
    ///
    /// Poll once more before waiting: a completion may have come in between, and for it there is no
    /// event. One request gives one event, which must be taken ([`Cq::take_event`], [`Cq::wait`])
    /// before the next request counts.
    ///
    /// # Errors
    /// `NotSupported` where the queue has no doorbell: it was created without a completion channel,
    /// the device has no interrupts for it, or rdma-core is older than 60.
    pub fn arm(&mut self) -> Result<()> {
        if self.doorbell.is_none() {
            return Err(Error::not_supported(
                "arming an EFA queue by its doorbell: it has none (no completion channel, or rdma-core older than 60)",
            ));
        }
        self.ring_doorbell(true);
        Ok(())
    }

    /// Where the consumer is.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// The ring, to look ahead.
    pub fn ring(&self) -> &CqRing<'cq> {
        &self.ring
    }

    /// The number of entries.
    pub fn len(&self) -> NonZeroU32 {
        self.ring.len()
    }

    fn ring_doorbell(&mut self, arm: bool) {
        self.told = self.cursor.passed();
        if let Some(doorbell) = &self.doorbell {
            doorbell.write(doorbell_word(self.told, self.cq.events_taken(), arm));
        }
    }
}

/// The register of the device by which a consumer talks to it.
#[derive(Debug)]
struct Doorbell(NonNull<u32>);

// SAFETY: the register may be written by any thread.
unsafe impl Send for Doorbell {}

impl Doorbell {
    fn write(&self, word: u32) {
        fence_before_doorbell();
        // SAFETY: libefa mapped the register, and it stays so as long as the queue, which the
        // poller borrows.
        unsafe { self.0.write_volatile(word.to_le()) }
    }
}

/// The entries were read before the device hears that it may write there again.
fn fence_before_doorbell() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier touches no memory and no register.
    unsafe {
        std::arch::asm!("dmb osh", options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "aarch64"))]
    std::sync::atomic::fence(Ordering::Release);
}
