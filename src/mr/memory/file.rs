//! Files and persistent memory devices as memory.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::AsFd,
        unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    fcntl::{FallocateFlags, fallocate, posix_fallocate},
    libc::off_t,
    sys::{
        stat::{major, minor},
        statfs::{HUGETLBFS_MAGIC, fstatfs},
    },
    unistd::{Whence, lseek},
};

use super::{
    Backing, Memory, check_len,
    mapping::{Mapping, page_size, round_up},
    persist::Medium,
    range,
};
use crate::{
    Call,
    error::{Error, Result},
    log_limit::log_error,
};

impl Memory {
    /// Maps a whole file, or a whole persistent memory device (`/dev/dax0.0`), shared and writable:
    /// what is written to the memory, by this machine or by a peer, is written to the file.
    ///
    /// The kernel is asked for `MAP_SYNC` first (mmap(2)). Where it grants it, the memory [is
    /// persistent](Self::is_persistent); of other files the page cache is mapped, whose content
    /// reaches the file by [`flush_to_media`](Self::flush_to_media), or when the kernel thinks fit.
    ///
    /// Holes of the file are filled (fallocate(2)); where there is no room for them, mapping fails.
    /// On a file system that cannot fill holes, or that copies on write, a write to the memory can
    /// still find no room: it raises SIGBUS.
    ///
    /// The file must keep its length as long as it is mapped. When somebody shortens it, the next
    /// access beyond its new end raises SIGBUS, whose default is to end the process: that cannot be
    /// helped from here.
    ///
    /// Whether a device can register it depends: it can pin the pages of `/dev/dax`, of tmpfs and
    /// of hugetlbfs, but mappings of files elsewhere, with or without DAX, it may refuse unless it
    /// does on-demand paging.
    ///
    /// # Errors
    ///
    /// [`Error::Provider`] with what open(2), stat(2), fallocate(2) or mmap(2) said;
    /// [`Error::InvalidArgument`] for an empty file and for what is neither a file nor a persistent
    /// memory device.
    pub fn map_file(path: impl AsRef<Path>) -> Result<Memory> {
        Source::open(path.as_ref(), true)?.map(None)
    }

    /// Maps a file like [`map_file`](Self::map_file), but to be read only. It can be registered as
    /// a source, for [`WRITE_SRC`](crate::Usage::WRITE_SRC), [`SEND`](crate::Usage::SEND) and
    /// [`READ_SRC`](crate::Usage::READ_SRC), where the device has no objections.
    ///
    /// # Errors
    ///
    /// As [`map_file`](Self::map_file).
    pub fn map_file_read_only(path: impl AsRef<Path>) -> Result<Memory> {
        Source::open(path.as_ref(), false)?.map(None)
    }

    /// Maps `len` bytes of a file, or of a persistent memory device, from `offset` on. Otherwise
    /// like [`map_file`](Self::map_file).
    ///
    /// The offset need not be that of a page.
    ///
    /// # Errors
    ///
    /// As [`map_file`](Self::map_file), and [`Error::OutOfRange`] when the range does not lie
    /// inside the file.
    pub fn map_file_range(path: impl AsRef<Path>, offset: u64, len: usize) -> Result<Memory> {
        check_len(len)?;
        Source::open(path.as_ref(), true)?.map(Some((offset, len)))
    }

    /// Creates a file of `len` zeros and maps it like [`map_file`](Self::map_file).
    ///
    /// The blocks are allocated at once, and the file's length and name are on the medium before
    /// this returns. Only the owner may read and write the file (mode 0600).
    ///
    /// # Errors
    ///
    /// [`Error::Provider`] with `EEXIST` when there is such a file already, which stays as it is;
    /// with `ENOSPC` when the blocks cannot be had; and as [`map_file`](Self::map_file). On failure
    /// the new file is removed.
    pub fn create_file(path: impl AsRef<Path>, len: usize) -> Result<Memory> {
        check_len(len)?;
        let path = path.as_ref();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed(Call::Open))?;
        let memory = allocate(&file, path, len).and_then(|()| Source::of(file, true)?.map(None));
        if memory.is_err() {
            if let Err(error) = fs::remove_file(path) {
                log_error(format_args!(
                    "{} cannot be removed: {error}",
                    path.display()
                ));
            }
        }
        memory
    }
}

fn allocate(file: &File, path: &Path, len: usize) -> Result<()> {
    let size = off_t::try_from(len).map_err(|_| Error::invalid("len", "longer than a file"))?;
    in_pieces(0, size, |start, len| {
        posix_fallocate(file.as_fd(), start, len)
    })
    .map_err(|(errno, ..)| Error::provider(Call::PosixFallocate, errno as i32))?;
    file.sync_all().map_err(failed(Call::Fsync))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = File::open(folder).map_err(failed(Call::Open))?;
    folder.sync_all().map_err(failed(Call::Fsync))
}

/// What can be mapped, and by which rules.
struct Source {
    file: File,
    writable: bool,
    size: u64,
    /// Offset and length of a mapping are multiples of this (for an ordinary file only the offset
    /// matters).
    unit: usize,
    device: bool,
}

impl Source {
    fn open(path: &Path, writable: bool) -> Result<Source> {
        let file = OpenOptions::new()
            .read(true)
            .write(writable)
            .open(path)
            .map_err(failed(Call::Open))?;
        Source::of(file, writable)
    }

    fn of(file: File, writable: bool) -> Result<Source> {
        let metadata = file.metadata().map_err(failed(Call::Fstat))?;
        if metadata.is_file() {
            let unit = file_unit(&file)?;
            return Ok(Source {
                file,
                writable,
                size: metadata.len(),
                unit,
                device: false,
            });
        }
        if !metadata.file_type().is_char_device() {
            return Err(not_mappable());
        }
        let sysfs = PathBuf::from(format!(
            "/sys/dev/char/{}:{}",
            major(metadata.rdev()),
            minor(metadata.rdev())
        ));
        if !is_dax(&sysfs) {
            return Err(not_mappable());
        }
        Ok(Source {
            file,
            writable,
            size: number(&sysfs.join("size")).ok_or_else(not_mappable)?,
            unit: dax_unit(&sysfs),
            device: true,
        })
    }

    fn map(self, part: Option<(u64, usize)>) -> Result<Memory> {
        let whole = || match usize::try_from(self.size) {
            Ok(0) => Err(Error::invalid("path", "the file is empty")),
            Ok(size) => Ok((0, size)),
            Err(_) => Err(Error::invalid("path", "larger than the address space")),
        };
        let (offset, len) = part.map_or_else(whole, Ok)?;
        range::check("len", offset, len as u64, self.size)?;

        if self.writable && !self.device {
            fill_holes(&self.file, offset, len)?;
        }
        let delta = offset % self.unit as u64;
        let start = off_t::try_from(offset - delta)
            .map_err(|_| Error::invalid("offset", "beyond what a file can have"))?;
        let delta = delta as usize;
        let mapped = len
            .checked_add(delta)
            .ok_or_else(|| Error::invalid("len", "more bytes than an address space holds"))?;
        let mapped = round_up(mapped, self.unit)?;
        let (mapping, sync) = Mapping::of_file(self.file.as_fd(), start, mapped, self.writable)?;
        let medium = match (sync, self.device) {
            (true, device) => Medium::Direct { msync: !device },
            (false, true) => Medium::Volatile,
            (false, false) => Medium::PageCache,
        };
        let ptr = mapping.inside(delta)?;
        Memory::new(ptr, len, self.writable, Backing::File(mapping, medium))
    }
}

/// Allocates the blocks of `len` bytes from `offset` on, which lie inside of the file. What is
/// there stays as it is.
fn fill_holes(file: &File, offset: u64, len: usize) -> Result<()> {
    let (Ok(start), Ok(size)) = (off_t::try_from(offset), off_t::try_from(len)) else {
        return Err(Error::invalid("len", "longer than a file"));
    };
    if !has_hole(file, start, size) {
        return Ok(());
    }
    let filled = in_pieces(start, size, |start, len| {
        fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, start, len)
    });
    match filled {
        Ok(()) | Err((Errno::EOPNOTSUPP | Errno::ENOSYS, ..)) => Ok(()),
        // File systems such as XFS ask for room for the whole length, even where all of it is there.
        Err((Errno::ENOSPC | Errno::EDQUOT, start, len)) if is_allocated(file, start, len) => {
            Ok(())
        }
        Err((errno, ..)) => Err(Error::provider(Call::Fallocate, errno as i32)),
    }
}

/// Blocks that were allocated and never written count as holes, but not as missing.
fn is_allocated(file: &File, start: off_t, len: off_t) -> bool {
    let enough = |metadata: fs::Metadata| metadata.blocks().saturating_mul(512) >= metadata.len();
    !has_hole(file, start, len) || file.metadata().is_ok_and(enough)
}

/// Allocates in pieces, since a signal undoes what a call on tmpfs has done so far. On failure
/// gives the piece, too.
fn in_pieces(
    mut start: off_t,
    mut left: off_t,
    allocate: impl Fn(off_t, off_t) -> nix::Result<()>,
) -> std::result::Result<(), (Errno, off_t, off_t)> {
    let mut piece = 64 << 20;
    while left > 0 {
        let len = left.min(piece);
        match allocate(start, len) {
            Ok(()) => (start, left) = (start + len, left - len),
            Err(Errno::EINTR) => piece = (piece / 2).max(64 << 10),
            Err(errno) => return Err((errno, start, len)),
        }
    }
    Ok(())
}

/// Is a part of the range not there, or can nobody tell?
fn has_hole(file: &File, start: off_t, len: off_t) -> bool {
    lseek(file, start, Whence::SeekHole).is_ok_and(|hole| hole < start + len)
}

fn file_unit(file: &File) -> Result<usize> {
    let statfs = fstatfs(file).map_err(|errno| Error::provider(Call::Fstatfs, errno as i32))?;
    let huge = statfs.filesystem_type() == HUGETLBFS_MAGIC;
    // On hugetlbfs the block is the huge page.
    let block = usize::try_from(statfs.block_size()).ok();
    Ok(block
        .filter(|block| huge && *block > 0)
        .unwrap_or_else(page_size))
}

/// Whether a character device is of the device-dax kind: those belong to the subsystem "dax".
fn is_dax(sysfs: &Path) -> bool {
    let subsystem = fs::read_link(sysfs.join("subsystem")).ok();
    let name = subsystem.and_then(|path| path.file_name().map(OsString::from));
    name.is_some_and(|name| name == "dax")
}

/// The alignment that a device-dax asks for. Where the kernel does not tell, that of the usual 2
/// MiB pages.
fn dax_unit(sysfs: &Path) -> usize {
    let align = number(&sysfs.join("align")).or_else(|| number(&sysfs.join("device/align")));
    let align = align.and_then(|align| usize::try_from(align).ok());
    align.filter(|align| *align > 0).unwrap_or(2 << 20)
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cold]
fn not_mappable() -> Error {
    Error::invalid(
        "path",
        "neither a file nor a persistent memory device (/dev/dax)",
    )
}

fn failed(call: Call) -> impl Fn(io::Error) -> Error {
    move |source| Error::Provider { call, source }
}
