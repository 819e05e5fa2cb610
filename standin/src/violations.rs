//! Illegal use by the program: noted, printed, and never executed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::calls;

/// Beyond this many the rest are only printed.
const LIMIT: usize = 10_000;

static LIST: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes an illegal use.
pub fn violation(text: &str) {
    eprintln!("standin: VIOLATION: {text}");
    {
        let mut list = list();
        if list.len() < LIMIT {
            list.push(text.to_owned());
        }
    }
    if std::env::var_os("STANDIN_ABORT").is_some() {
        std::process::abort();
    }
}

/// Notes that something is destroyed while others use it, unless a test made the destruction of one of those fail.
pub fn still_in_use(text: &str) {
    if calls::object_kept() {
        eprintln!("standin: {text}, after a failure that the test asked for");
    } else {
        violation(text);
    }
}

/// How many there were.
pub fn count() -> usize {
    list().len()
}

/// The `at`th.
pub fn get(at: usize) -> Option<String> {
    list().get(at).cloned()
}

/// Forgets them.
pub fn reset() {
    list().clear();
}

fn list() -> MutexGuard<'static, Vec<String>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}
