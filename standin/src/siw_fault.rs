//! The fault of the kernel's siw driver (Linux 6.12 to 7.3): short payloads that cross a page go
//! out wrong.
//!
//! The driver copies a payload of one element and 32 bytes or fewer into the packet's header. If it
//! crosses a page, and the driver's own thread sends it, the driver takes the count of bytes on the
//! second page for that on the first. It copies so many from the first page, and the rest from the
//! start of the page in which that count ends.
//!
//! The driver's thread sends every answer to a read. Of writes and sends this device lets it send
//! those that are not the first of their call to `ibv_post_send`: on the real driver that depends
//! on what the connection is doing.

use rdma_sys as ffi;

use crate::config::Personality;
use crate::memory;
use crate::world::World;

const PAGE: usize = 4096;
/// The longest payload that goes into a header.
const LONGEST: usize = 32;

impl World {
    /// Does to the bytes of a write or send what the driver does.
    pub fn spoil_outgoing(&self, pd: usize, sges: &[ffi::ibv_sge], data: &mut [u8]) {
        let [sge] = sges else {
            return;
        };
        if data.is_empty() {
            return;
        }
        let Ok(from) = self.local(pd, sge, 0) else {
            return;
        };
        spoil(from, data, |offset, length| {
            let start = ffi::ibv_sge {
                addr: sge.addr.checked_sub(offset as u64)?,
                length: length as u32,
                ..*sge
            };
            self.local(pd, &start, 0).ok()
        });
    }

    /// Does to the answer of a read at `addr`, whose bytes are at `from`, what the driver does.
    pub fn spoil_answer(&self, peer: usize, rkey: u32, addr: u64, from: usize, answer: &mut [u8]) {
        let context = self.qps.at(peer).map_or(0, |p| p.context);
        if self.personality_of(context) != Personality::Siw {
            return;
        }
        spoil(from, answer, |offset, length| {
            let start = addr.checked_sub(offset as u64)?;
            self.target(peer, rkey, start, length, ffi::IBV_ACCESS_REMOTE_READ)
                .ok()
        });
    }
}

/// Replaces the bytes read at `from` by those that the driver sends.
///
/// `page_start(offset, length)` is where `length` bytes at `offset` before `from` are, if they are
/// registered. The driver also sends bytes that are not: in their place stand those that should
/// have gone out, with each bit turned over.
fn spoil(from: usize, bytes: &mut [u8], page_start: impl FnOnce(usize, usize) -> Option<usize>) {
    let offset = from % PAGE;
    let on_first = PAGE - offset;
    if bytes.len() > LONGEST || bytes.len() <= on_first {
        return;
    }
    let on_second = bytes.len() - on_first;
    let right = bytes.to_vec();
    let (head, tail) = bytes.split_at_mut(on_second);
    if on_second < on_first {
        // The count ends before the first page does: the rest comes from that page's start.
        match page_start(offset, tail.len()) {
            // SAFETY: found registered and mapped just now, under the lock.
            Some(start) => unsafe { memory::read(start, tail) },
            None => turn_over(tail),
        }
    } else {
        // The first copy runs over the page's end, into whatever lies there in the machine's
        // memory.
        turn_over(head.get_mut(on_first..).unwrap_or_default());
        for (to, byte) in tail.iter_mut().zip(right.iter().skip(on_first)) {
            *to = *byte;
        }
    }
}

fn turn_over(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}
