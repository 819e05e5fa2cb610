//! Ends the process when one run takes too long: a hang is a failure, not a test that never ends.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

const LIMIT: Duration = Duration::from_secs(90);

static CURRENT: Mutex<Option<(Instant, String)>> = Mutex::new(None);

/// While it lives, its run is watched.
pub struct Watchdog(());

impl Watchdog {
    pub fn watch(label: &str) -> Watchdog {
        static STARTED: OnceLock<()> = OnceLock::new();
        STARTED.get_or_init(|| {
            // What the thread allocates as it starts must not look like something that a run left.
            let (started, starts) = std::sync::mpsc::channel::<()>();
            thread::spawn(move || {
                drop(started);
                bark();
            });
            let _ = starts.recv();
        });
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), label.to_owned()));
        Watchdog(())
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn bark() {
    loop {
        thread::sleep(Duration::from_secs(1));
        if let Some((since, label)) = &*CURRENT.lock().unwrap_or_else(PoisonError::into_inner) {
            if since.elapsed() > LIMIT {
                eprintln!("HANG: {label}: not done after {LIMIT:?}");
                std::process::abort();
            }
        }
    }
}
