//! What threads share. Files that take it from here are also compiled with loom's types in its
//! place, by tests/models, which tries every order in which threads can meet in them.

pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicPtr, AtomicU32, Ordering},
};
