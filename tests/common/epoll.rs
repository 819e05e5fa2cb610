//! epoll(7) and poll(2), for the tests that wait on many fds.

use std::{
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    time::Duration,
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
        // SAFETY: the list is as long as is said.
        let n = unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                64,
                timeout.as_millis() as i32,
            )
        };
        events[..n.max(0) as usize]
            .iter()
            .map(|event| event.u64)
            .collect()
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
    unsafe { libc::poll(fds.as_mut_ptr(), 1, timeout.as_millis() as i32) == 1 }
}
