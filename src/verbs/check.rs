//! The one place that reads the return codes of verbs and of librdmacm.
//!
//! The rule: `-1` means that errno tells; another negative value `-x` means errno `x` (soft-iWARP's provider); a positive value is the errno
//! itself (the man pages). A null pointer means that errno tells.

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
mod tests {
    use super::*;

    #[test]
    fn minus_one_reads_errno() {
        nix::errno::Errno::set_raw(libc::EBUSY);
        assert_eq!(errno(-1), libc::EBUSY);
        nix::errno::Errno::set_raw(0);
        assert_eq!(errno(-1), libc::EIO);
    }

    #[test]
    fn other_negatives_and_positives_are_the_errno() {
        nix::errno::Errno::set_raw(libc::EBUSY);
        assert_eq!(errno(-libc::ENOMEM), libc::ENOMEM);
        assert_eq!(errno(libc::EINVAL), libc::EINVAL);
        assert_eq!(errno(c_int::MIN), libc::EIO);
    }

    #[test]
    fn errors_name_the_call() {
        let err = check(Call::RdmaAccept, -libc::EACCES).unwrap_err();
        assert_eq!(err.raw_os_error(), Some(libc::EACCES));
        assert!(err.to_string().starts_with("rdma_accept failed: "), "{err}");
        assert!(matches!(
            check(Call::IbvRegMr, libc::ENOMEM),
            Err(Error::OutOfMemory {
                call: Call::IbvRegMr,
                ..
            })
        ));
    }
}
