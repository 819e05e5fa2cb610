//! A real file descriptor that is readable exactly while its queue has something in it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::c_int;

/// An eventfd. It is rung and emptied under the world's lock only, so its state follows the
/// queue's.
pub struct Doorbell(OwnedFd);

impl Doorbell {
    /// A silent doorbell, or errno.
    pub fn new() -> Result<Self, c_int> {
        // SAFETY: no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(last_errno());
        }
        // SAFETY: a new descriptor that nothing else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The descriptor that the program polls.
    pub fn fd(&self) -> c_int {
        self.0.as_raw_fd()
    }

    /// Makes the descriptor readable. Each ring wakes an edge-triggered poller anew.
    pub fn ring(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are read from a local variable.
        unsafe { libc::write(self.fd(), (&raw const one).cast(), 8) };
    }

    /// Makes it unreadable. The caller holds the lock and knows that it was rung.
    pub fn silence(&self) {
        let mut n = 0u64;
        let mut p = libc::pollfd {
            fd: self.fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one pollfd; then eight bytes are written to a local variable.
        unsafe {
            if libc::poll(&raw mut p, 1, 0) == 1 {
                libc::read(self.fd(), (&raw mut n).cast(), 8);
            }
        }
    }
}

/// Waits until `fd` is readable, the way a read of it would: EAGAIN at once if the program made it
/// non-blocking.
pub fn wait_readable(fd: c_int) -> Result<(), c_int> {
    // SAFETY: no pointers.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 {
        return Err(last_errno());
    }
    if flags & libc::O_NONBLOCK != 0 {
        return Err(libc::EAGAIN);
    }
    let mut p = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd.
    if unsafe { libc::poll(&raw mut p, 1, -1) } < 0 {
        return Err(last_errno());
    }
    if p.revents & libc::POLLNVAL != 0 {
        return Err(libc::EBADF);
    }
    Ok(())
}

fn last_errno() -> c_int {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}
