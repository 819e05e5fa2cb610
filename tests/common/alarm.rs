//! Signals that come all the time, while the tests run: what a program with a profiler's or an
//! interval timer has.

use std::{
    ffi::c_int,
    sync::{
        Once,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Where `RPMA_TEST_ALARM` is set: `restart` for a handler with SA_RESTART, anything else for one
/// without.
const VARIABLE: &str = "RPMA_TEST_ALARM";

static COME: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: c_int) {
    COME.fetch_add(1, Ordering::Relaxed);
}

/// From now on sends SIGALRM to each thread of the process every 2 ms, where that was asked for.
pub fn start() {
    static STARTED: Once = Once::new();
    if let Some(how) = std::env::var_os(VARIABLE) {
        STARTED.call_once(|| {
            handle(how == "restart");
            std::thread::spawn(send);
            while COME.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
        });
    }
}

fn handle(restart: bool) {
    let handler: extern "C" fn(c_int) = count;
    // SAFETY: the handler does nothing but add to a number.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = if restart { libc::SA_RESTART } else { 0 };
        assert_eq!(
            libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()),
            0
        );
    }
}

fn send() {
    // SAFETY: asks for a number.
    let this = unsafe { libc::gettid() };
    loop {
        std::thread::sleep(Duration::from_millis(2));
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let threads = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
        for thread in threads.filter(|thread: &i32| *thread != this) {
            // SAFETY: sends a signal that has a handler. A thread that is gone is an error.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGALRM) };
        }
    }
}
