//! Memory and its registration.

use std::path::PathBuf;

use super::*;

pub fn register(run: &Run) -> Result<()> {
    let peer = run.peer()?;
    for usage in [
        Usage::all(),
        Usage::READ_DST,
        Usage::FLUSH_PERSISTENT | Usage::WRITE_DST,
    ] {
        let mut memory = Some(Memory::anonymous(REGION)?);
        // A failed registration gives the memory back.
        let region = run.again(|| {
            let given = memory.take().expect("the memory that came back");
            peer.try_register(given, usage).map_err(|(back, err)| {
                memory = Some(back);
                err
            })
        })?;
        for advice in [Advice::PREFETCH, Advice::PREFETCH_WRITE] {
            match region.advise(0..4096, advice, true) {
                Ok(()) | Err(Error::NotSupported { .. }) => {}
                // The region is not registered for on-demand paging.
                Err(err) if err.raw_os_error() == Some(libc::EINVAL) => {}
                Err(err) => return Err(err),
            }
        }
        let mut region = Some(region);
        let memory = run.again(|| {
            let given = region.take().expect("the region that came back");
            given.close().map_err(|(back, err)| {
                region = Some(back);
                err
            })
        })?;
        assert_eq!(memory.len(), REGION);
    }
    let owned = peer.register(Memory::from_owner(vec![1u8; 4096])?, Usage::SEND)?;
    drop(owned);
    Ok(())
}

pub fn files(run: &Run) -> Result<()> {
    let path = std::env::temp_dir().join(format!("rpma-sweep-{}", std::process::id()));
    // A file that could not be made whole is gone.
    let memory = run.again(|| Memory::create_file(&path, REGION))?;
    let file = Removed(path);
    let mapped = run.again(|| Memory::map_file(&file.0))?;
    let part = run.again(|| Memory::map_file_range(&file.0, 5000, 9000))?;
    assert_eq!((mapped.len(), part.len()), (REGION, 9000));
    run.again(|| mapped.flush_to_media(100..5000))?;
    drop(run.again(|| Memory::map_file_read_only(&file.0))?);
    // Longer now, by a hole that must be filled.
    let path = std::ffi::CString::new(file.0.as_os_str().as_encoded_bytes()).expect("a path");
    // SAFETY: a string.
    assert_eq!(
        unsafe { libc::truncate(path.as_ptr(), 2 * REGION as i64) },
        0
    );
    drop(run.again(|| Memory::map_file(&file.0))?);
    let usage = Usage::WRITE_DST | Usage::FLUSH_PERSISTENT;
    let region = run.peer()?.register(memory, usage);
    drop(region?);
    Ok(())
}

/// A file that goes with the scenario.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // Whatever is left fails the next run.
        let _ = std::fs::remove_file(&self.0);
    }
}

pub fn dmabuf(run: &Run) -> Result<()> {
    // SAFETY: a string; the descriptor is owned below.
    let fd = unsafe { libc::memfd_create(c"sweep".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(fd >= 0, "{}", io::Error::last_os_error());
    // SAFETY: it was just made and belongs to nobody else.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the descriptor is open.
    assert_eq!(
        unsafe { libc::ftruncate(std::os::fd::AsRawFd::as_raw_fd(&fd), REGION as i64) },
        0
    );
    let peer = run.peer()?;
    let register = || peer.register_dmabuf(fd.as_fd(), 0, REGION, 0, Usage::READ_SRC);
    if run.personality == Personality::Mlx5 {
        return run.again(register).map(|_| ());
    }
    match register() {
        Err(Error::NotSupported { .. }) => Ok(()),
        other => other.map(|_| ()),
    }
}
