//! The C interface of librpma: `librpma.so.0` for programs that were written for librpma 1.0 to 1.3.
//!
//! Every function here checks its arguments, calls the Rust crate and turns the outcome into a number. What the functions do is
//! said in `include/librpma.h`, what differs from librpma in `docs/c-abi.md`.
//!
//! # Safety
//! The contract of each function is that of C: a pointer is null or points at what its type says, a handle comes from the function
//! that makes it and was not deleted, and nobody uses a handle while another thread deletes it. Under this contract the parameter types
//! (`Option<&T>` for a handle, `Option<&mut MaybeUninit<T>>` for a place that gets a value, `Option<&mut Option<Box<T>>>` for a place
//! that holds a handle) are valid, and the code behind them is safe Rust, except where raw bytes and strings come in.
//!
//! Handles are boxes of the Rust types; a `struct rpma_cq` is the completion queue inside of its connection or shared receive queue. All of
//! them may be used by several threads at once. A panic becomes `RPMA_E_UNKNOWN`.

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

use rpma::{Error, code};

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
macro_rules! c_api {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The contract of C: see the crate.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> std::ffi::c_int {
            $crate::call(stringify!($name), line!(), move || $body)
        }
    )*};
}
use c_api;

/// Runs the body of one function.
#[inline]
fn call(name: &'static str, line: u32, body: impl FnOnce() -> Outcome) -> c_int {
    // What a panic leaves behind is only what the types guard themselves: nothing is shared but through locks and atomics.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => failed(name, line, failure),
        Err(panic) => {
            // Its drop may panic again.
            std::mem::forget(panic);
            log::emit(
                log::FATAL,
                "rpma-capi",
                line,
                name,
                format_args!("a panic: this is a bug of rpma"),
            );
            code::UNKNOWN
        }
    }
}

#[cold]
fn failed(name: &'static str, line: u32, failure: Failure) -> c_int {
    match failure {
        Failure::Code(code) => code,
        Failure::Error(error) => {
            log::emit(log::ERROR, "rpma-capi", line, name, format_args!("{error}"));
            error.code()
        }
    }
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
