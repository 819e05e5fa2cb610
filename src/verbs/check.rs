//! The one place that reads the return codes of verbs and of librdmacm.
//!
//! The rule: `-1` means that errno tells; another negative value `-x` means errno `x` (soft-iWARP's
//! provider); a positive value is the errno itself (the man pages). A null pointer means that errno
//! tells.

use std::{ffi::c_int, ptr::NonNull};

use crate::{Call, Error, Result};

/// `Ok` for 0; else the error that `ret` stands for.
#[inline]
pub(crate) fn check(call: Call, ret: c_int) -> Result<()> {
    match ret {
        0 => Ok(()),
        ret => Err(failed(call, ret)),
    }
}

/// The pointer, or the error in errno.
#[inline]
pub(crate) fn check_ptr<T>(call: Call, ptr: *mut T) -> Result<NonNull<T>> {
    NonNull::new(ptr).ok_or_else(|| failed(call, -1))
}

/// The positive errno that the failed return code `ret` stands for.
pub(crate) fn errno(ret: c_int) -> i32 {
    match ret {
        -1 => last_errno(),
        ret => ret.checked_abs().unwrap_or(libc::EIO),
    }
}

/// errno as it is now; EIO where a failed call left it at 0.
pub(crate) fn last_errno() -> i32 {
    match nix::errno::Errno::last_raw() {
        0 => libc::EIO,
        errno => errno,
    }
}

/// The outcome of a failed read of events: `None` where none was there.
pub(crate) fn nothing_yet<T>(call: Call) -> Result<Option<T>> {
    match last_errno() {
        libc::EAGAIN => Ok(None),
        errno => Err(Error::provider(call, errno)),
    }
}

#[cold]
fn failed(call: Call, ret: c_int) -> Error {
    Error::provider(call, errno(ret))
}

#[cfg(test)]
mod tests;
