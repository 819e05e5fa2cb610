//! epoll(7) and poll(2), for the tests that wait on many fds.

use std::{
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    time::{Duration, Instant},
};

/// An epoll instance.
pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> Self {
        // SAFETY: the call makes a new fd, which is ours.
        unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            assert!(fd >= 0);
            Epoll(OwnedFd::from_raw_fd(fd))
        }
    }

    /// Watches `fd` for reading, level-triggered.
    pub fn add(&self, fd: &impl AsFd, data: u64) {
        self.watch(fd, libc::EPOLLIN as u32, data);
    }

    /// Watches `fd` for reading, edge-triggered.
    pub fn add_edge(&self, fd: &impl AsFd, data: u64) {
        self.watch(fd, (libc::EPOLLIN | libc::EPOLLET) as u32, data);
    }

    fn watch(&self, fd: &impl AsFd, events: u32, data: u64) {
        let mut event = libc::epoll_event { events, u64: data };
        let fd = fd.as_fd().as_raw_fd();
        // SAFETY: both fds are open, the event is ours.
        let ret =
            unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) };
        assert_eq!(ret, 0);
    }

    /// What is readable, by the data it was added with; nothing when the time is over.
    pub fn wait(&self, timeout: Duration) -> Vec<u64> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let n = within(timeout, |millis| {
            // SAFETY: the list is as long as is said.
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), 64, millis) }
        });
        events[..n].iter().map(|event| event.u64).collect()
    }
}

/// Is `fd` readable within the time, as poll(2) sees it?
pub fn readable(fd: &impl AsFd, timeout: Duration) -> bool {
    let mut fds = [libc::pollfd {
        fd: fd.as_fd().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    }];
    // SAFETY: a list of one.
    within(timeout, |millis| unsafe {
        libc::poll(fds.as_mut_ptr(), 1, millis)
    }) == 1
}

/// Waits in `call`, which is told how many milliseconds are left, again after each signal.
fn within(timeout: Duration, mut call: impl FnMut(i32) -> i32) -> usize {
    let start = Instant::now();
    loop {
        let left = timeout.saturating_sub(start.elapsed());
        let n = call(left.as_millis() as i32);
        let interrupted =
            n < 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
        if !interrupted {
            assert!(n >= 0, "{}", std::io::Error::last_os_error());
            return n as usize;
        }
    }
}
