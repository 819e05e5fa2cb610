//! From memory to the medium.

use std::ops::RangeBounds;

use nix::sys::mman::{MsFlags, msync};

use super::{Backing, Memory, mapping::page_size, range};
use crate::{
    Call,
    error::{Error, Result},
};

/// What is behind a mapped file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Medium {
    /// The memory is a copy of the file's pages.
    PageCache,
    /// The memory is the medium.
    Direct {
        /// msync(2) works too: it does for files, but not for `/dev/dax`.
        msync: bool,
    },
    /// A device that does not promise to keep its content.
    Volatile,
}

impl Memory {
    /// Brings what has been written to `range`, by this machine or by a peer, to the medium: when
    /// it returns, the bytes outlive a power failure. It blocks for as long as that takes.
    ///
    /// - For an ordinary file it is `msync(MS_SYNC)`: a system call and the disk's time.
    /// - For memory that [is persistent](Self::is_persistent), the CPU's cache lines are written
    ///   back, and a fence waits for it (`clwb`, `clflushopt` or `clflush` on x86-64): no system
    ///   call, some nanoseconds a line. On other architectures it is `msync`, which does the same
    ///   for files.
    ///
    /// It covers what has arrived in memory or in the CPU's caches. So it also makes data of a peer
    /// persistent on machines where the network writes to the cache, once the data's arrival is
    /// known here (a message behind it was received, say).
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] when the range does not lie inside; [`Error::NotSupported`] for memory
    /// that is not of a file, and where there is no way to do it; [`Error::Provider`] with what
    /// msync(2) said.
    #[doc(alias = "msync")]
    #[doc(alias = "pmem_persist")]
    pub fn flush_to_media(&self, range: impl RangeBounds<u64>) -> Result<()> {
        let (start, len) = range::resolve("range", range, self.len as u64)?;
        // Inside, so both fit.
        let (start, len) = (start as usize, len as usize);
        let medium = match &self.backing {
            Backing::File(_, medium) => *medium,
            _ => Medium::Volatile,
        };
        if medium == Medium::Volatile {
            return Err(Error::not_supported(
                "flushing memory to a medium that has none: map a file or /dev/dax",
            ));
        }
        if len == 0 {
            return Ok(());
        }
        match medium {
            Medium::Direct { .. } if write_back(self.ptr.as_ptr().wrapping_add(start), len) => {
                Ok(())
            }
            Medium::Direct { msync: false } | Medium::Volatile => Err(Error::not_supported(
                "writing back the caches of this architecture for /dev/dax",
            )),
            Medium::Direct { msync: true } | Medium::PageCache => self.msync(start, len),
        }
    }

    fn msync(&self, start: usize, len: usize) -> Result<()> {
        // msync(2) wants the start of a page. The mapping starts on one, so this stays inside of
        // it.
        let first = self.ptr.as_ptr().wrapping_add(start);
        let into_page = first.addr() % page_size();
        let Some(page) = std::ptr::NonNull::new(first.wrapping_sub(into_page)) else {
            return Ok(());
        };
        // SAFETY: pages of our own mapping; syncing changes no byte.
        unsafe { msync(page.cast(), len + into_page, MsFlags::MS_SYNC) }
            .map_err(|errno| Error::provider(Call::Msync, errno as i32))
    }
}

/// Writes back the cache lines of `len` bytes and waits for it. `false` where that cannot be done.
#[cfg(target_arch = "x86_64")]
fn write_back(ptr: *const u8, len: usize) -> bool {
    use std::arch::asm;

    let lines = Lines::of_this_cpu();
    let end = ptr.addr() + len;
    let mut line = ptr.addr() & !(lines.size - 1);
    while line < end {
        // SAFETY: these instructions change no byte, only where copies of it are kept; the address
        // is in a line that holds at least one mapped byte, and the instructions were found to
        // exist.
        unsafe {
            match lines.instruction {
                Instruction::Clwb => asm!("clwb [{}]", in(reg) line, options(nostack)),
                Instruction::ClflushOpt => asm!("clflushopt [{}]", in(reg) line, options(nostack)),
                Instruction::Clflush => asm!("clflush [{}]", in(reg) line, options(nostack)),
            }
        }
        line += lines.size;
    }
    // SAFETY: a fence has no preconditions; every x86-64 has this one.
    unsafe { asm!("sfence", options(nostack)) };
    true
}

#[cfg(not(target_arch = "x86_64"))]
fn write_back(_ptr: *const u8, _len: usize) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
struct Lines {
    size: usize,
    instruction: Instruction,
}

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
enum Instruction {
    Clwb,
    ClflushOpt,
    Clflush,
}

#[cfg(target_arch = "x86_64")]
impl Lines {
    fn of_this_cpu() -> Lines {
        use std::sync::OnceLock;
        static LINES: OnceLock<Lines> = OnceLock::new();
        *LINES.get_or_init(Lines::ask)
    }

    /// Leaf 1 tells the size of what clflush writes back, leaf 7 which of its better relatives
    /// there are (Intel SDM, volume 2A, CPUID).
    #[allow(unused_unsafe, reason = "unsafe in the oldest Rust that is supported")]
    fn ask() -> Lines {
        use std::arch::x86_64::__cpuid_count;

        // SAFETY: every x86-64 has cpuid.
        let (highest, leaf1) = unsafe { (__cpuid_count(0, 0).eax, __cpuid_count(1, 0).ebx) };
        let leaf7 = match highest >= 7 {
            // SAFETY: as above, and the leaf exists.
            true => unsafe { __cpuid_count(7, 0).ebx },
            false => 0,
        };
        let size = (leaf1 >> 8 & 0xff) as usize * 8;
        let instruction = match leaf7 {
            bits if bits & 1 << 24 != 0 => Instruction::Clwb,
            bits if bits & 1 << 23 != 0 => Instruction::ClflushOpt,
            _ => Instruction::Clflush,
        };
        Lines {
            size: if size.is_power_of_two() { size } else { 64 },
            instruction,
        }
    }
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn writing_back_keeps_every_byte() {
        let memory = Memory::anonymous(4096).unwrap();
        memory.write_at(1, &[7; 4000]).unwrap();
        for (start, len) in [(0, 1), (63, 2), (64, 64), (1, 4000), (0, 4096)] {
            assert!(write_back(memory.as_ptr().wrapping_add(start), len));
        }
        let mut bytes = [0; 4000];
        memory.read_at(1, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 4000]);
        assert!(Lines::of_this_cpu().size.is_power_of_two());
    }
}
