//! What is posted in another way because of a fault of a device's driver.
//!
//! | driver, kernels | fault | what is done here |
//! |---|---|---|
//! | siw, Linux 6.12 to 7.3 | a write or send of at most 32 bytes from one element that crosses a page can go out with wrong bytes (`siw_try_1seg()`) | it is posted inline |
//! | siw, as above, at the other end | a read of at most 32 bytes whose source crosses a page is answered with wrong bytes | on iWARP, it is two reads that meet at the page's end |
//!
//! | rxe, Linux 6.12 and 7.3, where packets are lost or late | a read longer than the path MTU can complete with success and a buffer that is only partly filled; what is behind it then fails | where it is signalled, its last 8 bytes are a read of their own |
//! | the same | a repeated native flush goes to another address, or is never answered | flushes to visibility are done by reading, unless native ones are asked for |
//! | the same | a repeated native atomic write goes to another address; with a fence before it, it may never complete | eight bytes are written inline, without a fence: rxe answers strictly in order |
//!
//! `tests/device_page_crossing.rs` shows both faults on the kernel's driver, so that a corrected
//! kernel is noticed. [`ConnCfg::device_workarounds`](crate::ConnCfg::device_workarounds) switches
//! all of this off.

use bitflags::bitflags;
use rdma_sys as ffi;

bitflags! {
    /// The ways around faults that a queue pair takes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Workarounds: u8 {
        /// Short writes and sends that cross a page are posted inline.
        const INLINE_SHORT = 1;
        /// Short reads of what crosses a page are split there.
        const SPLIT_SHORT_READS = 2;
        /// The end of a long read that is signalled is a read of its own.
        const SPLIT_LONG_READS = 4;
        /// Flushes to visibility are done by reading unless native ones are asked for.
        const FLUSH_BY_READING = 8;
        /// Atomic writes are inline writes without a fence.
        const INLINE_WORDS = 16;
        /// A read may be two.
        const SPLIT_READS = Self::SPLIT_SHORT_READS.bits() | Self::SPLIT_LONG_READS.bits();
    }
}

/// The faults concern payloads of at most so many bytes.
pub(crate) const SHORT: u32 = 32;

/// The smallest path MTU, in bytes. The peer's decides how many packets answer a read, and no call
/// tells it.
const LEAST_MTU: u64 = 256;

/// The bytes of a long read that are read by themselves.
const LAST: u64 = 8;

/// The smallest page that a kernel has; the boundaries of larger pages are among those of this
/// size.
const PAGE: u64 = 4096;

/// The number of the first part of a split read, which never reaches a user; see
/// [`poll_without_first_parts`].
pub(crate) const FIRST_PART: u64 = 0x7270_6d61_2d31_2f32;

impl Workarounds {
    /// Must a message of one element be posted inline?
    pub(crate) fn inline(self, sge: &ffi::ibv_sge) -> bool {
        self.contains(Workarounds::INLINE_SHORT) && page_end(sge.addr, sge.length).is_some()
    }

    /// Where a read of `len` bytes at the remote `addr` must be split: the length of the first
    /// part.
    pub(crate) fn split(self, addr: u64, len: u64, signaled: bool) -> Option<u64> {
        if self.contains(Workarounds::SPLIT_LONG_READS) && signaled && len > LEAST_MTU {
            return Some(len - LAST);
        }
        match u32::try_from(len) {
            Ok(len) if self.contains(Workarounds::SPLIT_SHORT_READS) => {
                page_end(addr, len).map(u64::from)
            }
            _ => None,
        }
    }
}

/// How many of `len` bytes at `addr` lie before a page's end; `None` where none lie behind it, or
/// where there are more than [`SHORT`].
fn page_end(addr: u64, len: u32) -> Option<u32> {
    let before = (PAGE - addr % PAGE) as u32;
    (len <= SHORT && before < len).then_some(before)
}

/// `ibv_poll_cq(3)` on a queue whose send queue may hold split reads: a first part has a completion
/// only where it failed, and that is left out. The second part, flushed behind it, completes with
/// the first one's status.
///
/// # Safety
/// As for the provider's poll; the queue's context must be the address of a [`Failed`].
pub(crate) unsafe extern "C" fn poll_without_first_parts(
    cq: *mut ffi::ibv_cq,
    room: i32,
    wcs: *mut ffi::ibv_wc,
) -> i32 {
    // SAFETY: the queue is alive, its device has a poll (or this one would not be in its place),
    // and the context is as said.
    let (poll, failed) = unsafe {
        let failed = &*(*cq).cq_context.cast::<Failed>();
        ((*(*cq).context).ops.poll_cq, failed)
    };
    let Some(poll) = poll else {
        return -libc::EOPNOTSUPP;
    };
    let mut kept = 0;
    loop {
        // SAFETY: as the caller says, behind those that are kept.
        let taken = unsafe { poll(cq, room - kept, wcs.add(kept as usize)) };
        if taken <= 0 || taken > room - kept {
            return if kept > 0 { kept } else { taken };
        }
        let mut hidden = 0;
        for n in kept..kept + taken {
            // SAFETY: so many were filled.
            unsafe {
                let wc = wcs.add(n as usize);
                match failed.hides(&mut *wc) {
                    true => hidden += 1,
                    false => wcs.add((n - hidden) as usize).copy_from(wc, 1),
                }
            }
        }
        kept += taken - hidden;
        // Fewer than there is room for says that the queue is empty, so it must be.
        if hidden == 0 || kept == room {
            return kept;
        }
    }
}

/// Of the first parts of split reads on one queue: which failed, and how.
#[derive(Debug, Default)]
pub(crate) struct Failed(std::sync::atomic::AtomicU64);

impl Failed {
    /// Is it the completion of a first part? The next one of the same queue pair's send queue then
    /// gets its status.
    fn hides(&self, wc: &mut ffi::ibv_wc) -> bool {
        use std::sync::atomic::Ordering::Relaxed;
        if wc.status == ffi::IBV_WC_SUCCESS {
            return false;
        }
        let of_qp = |status: u32| u64::from(wc.qp_num) << 32 | u64::from(status);
        if wc.opcode & ffi::IBV_WC_RECV != 0 {
            return false;
        }
        if wc.wr_id == FIRST_PART {
            self.0.store(of_qp(wc.status), Relaxed);
            return true;
        }
        let pending = self.0.load(Relaxed);
        if pending != 0 && pending >> 32 == u64::from(wc.qp_num) {
            self.0.store(0, Relaxed);
            wc.status = pending as u32;
        }
        false
    }
}

#[cfg(test)]
mod tests;
