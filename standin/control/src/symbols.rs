//! The stand-in's control functions, found in the library that is loaded.

use std::ffi::{c_char, c_int};

use libloading::os::unix::Library;

use crate::Objects;

/// The interface that this wrapper was written for.
const VERSION: u32 = 1;

macro_rules! symbols {
    ($($field:ident: $name:literal, fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// One function pointer each.
        #[derive(Debug)]
        pub struct Symbols { $(pub $field: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)* }

        fn load(this: &Library) -> Option<Symbols> {
            // SAFETY: each is the function of this type in the stand-in, whose version was
            // compared.
            unsafe {
                Some(Symbols {
                    $($field: *this.get::<unsafe extern "C" fn($($arg),*) $(-> $ret)?>($name).ok()?,)*
                })
            }
        }
    };
}

symbols! {
    personality: b"standin_personality\0", fn(*const c_char) -> c_int;
    fail_nth: b"standin_fail_nth\0", fn(*const c_char, u64, c_int) -> c_int;
    fail_index: b"standin_fail_index\0", fn(u64, c_int);
    faults_fired: b"standin_faults_fired\0", fn() -> u64;
    calls_made: b"standin_calls_made\0", fn() -> u64;
    call: b"standin_call\0", fn(usize, *mut c_char, usize, *mut u64, *mut c_int) -> usize;
    trace_start: b"standin_trace_start\0", fn();
    trace: b"standin_trace\0", fn(*mut u16, usize) -> usize;
    objects: b"standin_objects\0", fn(*mut Objects);
    violations: b"standin_violations\0", fn() -> usize;
    violation: b"standin_violation\0", fn(usize, *mut c_char, usize) -> usize;
    hold: b"standin_hold\0", fn();
    release: b"standin_release\0", fn(u64);
    executed: b"standin_executed\0", fn() -> u64;
    inject_status: b"standin_inject_status\0", fn(u64, u32);
    async_event: b"standin_async_event\0", fn(u32, usize);
    cm_event: b"standin_cm_event\0", fn(u32, c_int);
    null: b"standin_null\0", fn(c_int);
    persistent: b"standin_persistent\0", fn(usize, usize);
    address: b"standin_address\0", fn(*const c_char) -> c_int;
    option: b"standin_option\0", fn(*const c_char, i64) -> c_int;
    reset: b"standin_reset\0", fn();
}

/// The functions, if the stand-in is what this process runs on.
pub fn find() -> Option<Symbols> {
    let this = Library::this();
    // SAFETY: the function of this type in the stand-in; another library has no such name.
    let version = unsafe { this.get::<unsafe extern "C" fn() -> u32>(b"standin_version\0") };
    // SAFETY: no arguments.
    let version = unsafe { version.ok()?() };
    if version != VERSION {
        return None;
    }
    load(&this)
}

/// A string from a function that fills a buffer and gives the whole length.
pub fn text(mut fill: impl FnMut(*mut c_char, usize) -> usize) -> String {
    let mut buf = vec![0u8; 256];
    let mut len = fill(buf.as_mut_ptr().cast(), buf.len());
    if len > buf.len() {
        buf.resize(len, 0);
        len = fill(buf.as_mut_ptr().cast(), buf.len());
    }
    buf.truncate(len);
    String::from_utf8_lossy(&buf).into_owned()
}
