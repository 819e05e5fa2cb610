//! The C interface of librpma: `librpma.so.0` for programs that were written for librpma 1.0 to
//! 1.3.
//!
//! Every function here checks its arguments, calls the Rust crate and turns the outcome into a
//! number. What the functions do is said in `include/librpma.h`, what differs from librpma in
//! `docs/c-abi.md`.
//!
//! # Safety
//! The contract of each function is that of C: a pointer is null or points at what its type says, a
//! handle comes from the function that makes it and was not deleted, and nobody uses a handle while
//! another thread deletes it. Under this contract the parameter types (`Option<&T>` for a handle,
//! `Option<&mut MaybeUninit<T>>` for a place that gets a value, `Option<&mut Option<Box<T>>>` for a
//! place that holds a handle) are valid, and the code behind them is safe Rust, except where raw
//! bytes and strings come in.
//!
//! Handles are boxes of the Rust types; a `struct rpma_cq` is the completion queue inside of its
//! connection or shared receive queue. All of them may be used by several threads at once. A panic
//! becomes `RPMA_E_UNKNOWN`.

mod conn;
mod conn_cfg;
mod conn_req;
mod cq;
mod ep;
mod log;
mod mr;
mod old;
mod ops;
mod peer;
mod peer_cfg;
mod srq;
mod text;
mod utils;

use std::{
    ffi::{CStr, c_char, c_int},
    mem::MaybeUninit,
    panic::{AssertUnwindSafe, catch_unwind},
};

use rpma::{Error, capi_support::Attempt, code};

/// Why a function of the interface fails.
enum Failure {
    /// With this number, and no more to say.
    Code(c_int),
    /// With the number of this error, and a line in the log.
    Error(Error),
}

type Outcome<T = ()> = Result<T, Failure>;

/// A place that gets a value.
type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;
/// A place that gets a handle.
type OutHandle<'a, T> = Out<'a, Option<Box<T>>>;
/// A place that holds a handle, or null.
type Slot<'a, T> = Option<&'a mut Option<Box<T>>>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

/// Exports functions that give 0 or one of librpma's numbers.
///
/// A function may have a quick way, tried first: `quick { … } else { … }`. It gives the result, or
/// what became of an attempt: where that was `Undecided` the body does it. It has no guard against
/// panics and must not panic.
macro_rules! c_api {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?)
        $(quick $quick:block else)? $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The contract of C: see the crate.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> std::ffi::c_int {
            $crate::c_api!(@body $name ($($arg: $type),*) $($quick)? $body)
        }
    )*};
    (@body $name:ident ($($arg:ident: $type:ty),*) $body:block) => {
        $crate::call(stringify!($name), line!(), move || $body)
    };
    (@body $name:ident ($($arg:ident: $type:ty),*) $quick:block $body:block) => {{
        // Far from the quick way, which so needs few registers.
        #[cold]
        #[inline(never)]
        #[allow(unused_variables, clippy::too_many_arguments, reason = "not every body looks at all")]
        fn guarded($($arg: $type),*) -> std::ffi::c_int {
            $crate::call(stringify!($name), line!(), move || $body)
        }
        match $quick {
            Ok(result) => result,
            Err(rpma::capi_support::Attempt::Refused { call, ret }) => {
                $crate::refused(stringify!($name), line!(), call, ret)
            }
            Err(_) => guarded($($arg),*),
        }
    }};
}
use c_api;

/// The result of an operation that was tried, or what became of it.
#[inline(always)]
fn done(attempt: Attempt) -> Result<c_int, Attempt> {
    match attempt {
        Attempt::Posted => Ok(0),
        attempt => Err(attempt),
    }
}

/// Runs the body of one function.
#[inline]
fn call(name: &'static str, line: u32, body: impl FnOnce() -> Outcome) -> c_int {
    // What a panic leaves behind is only what the types guard themselves: nothing is shared but
    // through locks and atomics.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(Failure::Code(code))) => code,
        Ok(Err(Failure::Error(error))) => failed(name, line, error),
        Err(panic) => {
            // Its drop may panic again.
            std::mem::forget(panic);
            panicked(name, line)
        }
    }
}

#[cold]
#[inline(never)]
fn failed(name: &'static str, line: u32, error: Error) -> c_int {
    log::emit(log::ERROR, "rpma-capi", line, name, format_args!("{error}"));
    match error {
        // librpma has the resolver say so.
        Error::InvalidArgument {
            argument: "service",
            ..
        } => rpma::code::PROVIDER,
        error => error.code(),
    }
}

/// The number of an attempt that the provider refused.
#[cold]
#[inline(never)]
fn refused(name: &'static str, line: u32, call: rpma::Call, ret: i64) -> c_int {
    match (Attempt::Refused { call, ret }).check() {
        Ok(()) => 0,
        Err(error) => failed(name, line, error),
    }
}

#[cold]
#[inline(never)]
fn panicked(name: &'static str, line: u32) -> c_int {
    log::emit(
        log::FATAL,
        "rpma-capi",
        line,
        name,
        format_args!("a panic: this is a bug of rpma"),
    );
    code::UNKNOWN
}

const INVAL: Failure = Failure::Code(code::INVAL);

/// An argument that may not be null.
#[inline]
fn given<T>(argument: Option<T>) -> Outcome<T> {
    argument.ok_or(INVAL)
}

/// A string argument. One that is no UTF-8 names no host and no service.
///
/// # Safety
/// `text` must be null or a NUL-terminated string that outlives the result.
unsafe fn text<'a>(text: *const c_char) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(INVAL);
    }
    // SAFETY: the caller's word.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::Code(code::PROVIDER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_number() {
        assert_eq!(call("test", 1, || panic!("on purpose")), code::UNKNOWN);
        assert_eq!(call("test", 1, || Err(INVAL)), code::INVAL);
        assert_eq!(call("test", 1, || Ok(())), 0);
    }

    #[test]
    fn a_handle_is_one_pointer() {
        assert_eq!(
            size_of::<Option<Box<rpma::Connection>>>(),
            size_of::<*mut u8>()
        );
        let mut place = MaybeUninit::<Option<Box<u8>>>::zeroed();
        // SAFETY: all zeros are `None`, the null handle of C.
        assert!(unsafe { place.assume_init_mut() }.is_none());
    }
}
