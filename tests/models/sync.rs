//! What `src/sync.rs` is in the crate.

pub(crate) use std::sync::PoisonError;

pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicU32, Ordering},
};
