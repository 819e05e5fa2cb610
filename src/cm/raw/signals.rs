//! Signals of the process, kept away from a thread for a time.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Keeps the process's signals away from this thread, which is none of the program's.
pub(crate) fn block_signals() {
    let _ = SigSet::all().thread_block();
}

/// As long as it lives, signals to this thread wait, but for those that ask a program to end or
/// that tell of a fault: for calls that wait inside the library or the kernel, and that a signal would break off. It stays in
/// the thread that made it.
pub(super) struct HeldSignals {
    before: Option<SigSet>,
    _in_this_thread: std::marker::PhantomData<*const ()>,
}

impl HeldSignals {
    pub(super) fn hold() -> Self {
        let mut held = SigSet::all();
        use Signal::*;
        for other in [
            SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS,
            SIGTRAP,
        ] {
            held.remove(other);
        }
        HeldSignals {
            before: held.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok(),
            _in_this_thread: std::marker::PhantomData,
        }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = before.thread_set_mask();
        }
    }
}
