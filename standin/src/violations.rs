//! Illegal use by the program: noted, printed, and never executed.

use crate::calls;
use crate::lock::{Guard, Lock};

/// Beyond this many the rest are only printed.
const LIMIT: usize = 10_000;

static LIST: Lock<Vec<String>> = Lock::new(Vec::new);

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

/// Notes that something is destroyed while others use it, unless a test made the destruction of one
/// of those fail.
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

fn list() -> Guard<Vec<String>> {
    LIST.lock()
}
