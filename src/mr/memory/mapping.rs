//! Mappings: anonymous, huge, of files.

#[cfg(test)]
mod tests;

use std::{
    ffi::c_void,
    num::NonZeroUsize,
    os::fd::{AsFd, BorrowedFd},
    ptr::NonNull,
};

use nix::{
    errno::Errno,
    libc::off_t,
    sys::mman::{self, MapFlags, MmapAdvise, ProtFlags},
};

use super::{Backing, Memory, check_len};
use crate::{
    Call,
    error::{Error, Result},
    log_limit::log_error,
};

/// The size of the pages that [`Memory::huge`] is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HugePage {
    /// 2 MiB.
    Size2M,
    /// 1 GiB.
    Size1G,
}

impl HugePage {
    /// The size in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            HugePage::Size2M => 2 << 20,
            HugePage::Size1G => 1 << 30,
        }
    }
}

impl Memory {
    /// `len` bytes of zeroed memory, starting on a page.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for `len` 0; [`Error::OutOfMemory`].
    pub fn anonymous(len: usize) -> Result<Memory> {
        let flags = MapFlags::MAP_PRIVATE;
        let mapping = Mapping::anonymous(Call::Mmap, len, page_size(), flags)?;
        Memory::new(mapping.base, len, true, Backing::Anonymous(mapping))
    }

    /// `len` bytes of zeroed memory on huge pages: the device, and the CPU, need fewer translations
    /// to reach it.
    ///
    /// The pages are taken from those that the administrator has set aside, at once on Linux 5.14
    /// and newer. Older kernels take each when it is first used; if the limit of a cgroup keeps it
    /// out then, the process gets a SIGBUS. A length that is no multiple of the page's wastes the
    /// rest of the last page.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] when too few pages are set aside, or a cgroup or NUMA policy lets the
    /// process have fewer; [`Error::InvalidArgument`] for `len` 0; [`Error::Provider`] when the
    /// machine has no pages of this size.
    pub fn huge(len: usize, page: HugePage) -> Result<Memory> {
        let (call, size) = match page {
            HugePage::Size2M => (Call::MmapHuge2M, MapFlags::MAP_HUGE_2MB),
            HugePage::Size1G => (Call::MmapHuge1G, MapFlags::MAP_HUGE_1GB),
        };
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_HUGETLB | size;
        let mapping = Mapping::anonymous(call, len, page.bytes(), flags)?;
        mapping.populate()?;
        Memory::new(mapping.base, len, true, Backing::Anonymous(mapping))
    }
}

/// Mapped pages. Dropping it unmaps them.
pub(super) struct Mapping {
    pub(super) base: NonNull<u8>,
    len: NonZeroUsize,
}

impl Mapping {
    fn anonymous(call: Call, len: usize, page: usize, flags: MapFlags) -> Result<Mapping> {
        let len = round_up(len, page)?;
        // SAFETY: a new mapping where the kernel likes it touches no memory that anybody has.
        let base = unsafe { mman::mmap_anonymous(None, len, read_write(true), flags) }
            .map_err(|errno| Error::provider(call, errno as i32))?;
        Ok(Mapping::at(base, len))
    }

    /// Gets all pages of a private mapping now: one that cannot be had later is a SIGBUS. Kernels
    /// before 5.14 cannot do it.
    fn populate(&self) -> Result<()> {
        let advice = MmapAdvise::MADV_POPULATE_WRITE;
        loop {
            // SAFETY: the mapping is ours, writable, and new: pages that are there already are left
            // as they are.
            match unsafe { mman::madvise(self.base.cast(), self.len.get(), advice) } {
                Ok(()) | Err(Errno::EINVAL) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(not_populated(errno)),
            }
        }
    }

    /// Maps `len` bytes of `fd` from `offset` on, shared. Tells whether the kernel has granted
    /// `MAP_SYNC`.
    pub(super) fn of_file(
        fd: BorrowedFd<'_>,
        offset: off_t,
        len: NonZeroUsize,
        writable: bool,
    ) -> Result<(Mapping, bool)> {
        let map = |flags| {
            // SAFETY: as above.
            unsafe { mman::mmap(None, len, read_write(writable), flags, fd.as_fd(), offset) }
        };
        let (base, sync) = match map(MapFlags::MAP_SHARED_VALIDATE | MapFlags::MAP_SYNC) {
            Ok(base) => (base, true),
            // What a file system without DAX says, and what a kernel older than 4.15 says.
            Err(Errno::EOPNOTSUPP | Errno::EINVAL) => match map(MapFlags::MAP_SHARED) {
                Ok(base) => (base, false),
                Err(errno) => return Err(Error::provider(Call::Mmap, errno as i32)),
            },
            Err(errno) => return Err(Error::provider(Call::Mmap, errno as i32)),
        };
        Ok((Mapping::at(base, len), sync))
    }

    fn at(base: NonNull<c_void>, len: NonZeroUsize) -> Mapping {
        Mapping {
            base: base.cast(),
            len,
        }
    }

    /// The address `delta` bytes into the mapping.
    pub(super) fn inside(&self, delta: usize) -> Result<NonNull<u8>> {
        if delta >= self.len.get() {
            return Err(Error::invalid("offset", "not inside the mapping"));
        }
        // SAFETY: less than the mapping's length, just checked.
        Ok(unsafe { self.base.add(delta) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more.
        if let Err(errno) = unsafe { mman::munmap(self.base.cast(), self.len.get()) } {
            log_error(format_args!("munmap of {} bytes failed: {errno}", self.len));
        }
    }
}

/// The kernel says EFAULT where writing to a page would raise a SIGBUS: it cannot be had.
fn not_populated(errno: Errno) -> Error {
    let errno = match errno {
        Errno::EFAULT => Errno::ENOMEM,
        errno => errno,
    };
    Error::provider(Call::Madvise, errno as i32)
}

pub(super) fn page_size() -> usize {
    // SAFETY: sysconf(3) has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

pub(super) fn round_up(len: usize, unit: usize) -> Result<NonZeroUsize> {
    check_len(len)?;
    len.checked_next_multiple_of(unit)
        .and_then(NonZeroUsize::new)
        .ok_or_else(|| Error::invalid("len", "more bytes than an address space holds"))
}

fn read_write(writable: bool) -> ProtFlags {
    match writable {
        true => ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
        false => ProtFlags::PROT_READ,
    }
}
