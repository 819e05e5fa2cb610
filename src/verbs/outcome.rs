//! What a provider said of a post, as a result.

use super::errno;
use crate::{Call, Error, Result};

/// What became of a post of one request: `taken` or not.
#[inline(always)]
pub(super) fn tried<T>(call: Call, ret: i32, bad: *mut T) -> Tried {
    match taken(ret, bad) {
        true => Tried::Done,
        false => Tried::Refused { call, ret },
    }
}

/// Was all taken? Both tell: siw's provider returns 0 for a request that it names as refused.
#[inline(always)]
pub(super) fn taken<T>(ret: i32, bad: *mut T) -> bool {
    u64::from(ret as u32) | bad.addr() as u64 == 0
}

/// What became of an attempt to post, small enough to stay in registers.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// The device took it.
    Done,
    /// Nothing was tried: the quick checks did not find it right. It may be so.
    Unfit,
    /// The provider refused it.
    Refused {
        /// The call.
        call: Call,
        /// What it returned.
        ret: i32,
    },
}

impl Tried {
    /// The error of a post that was refused.
    #[inline(always)]
    pub fn check(self) -> Result<()> {
        match self {
            Tried::Refused { call, ret } => Err(one_refused(call, ret)),
            _ => Ok(()),
        }
    }
}

#[cold]
#[inline(never)]
pub(super) fn no_extended() -> Error {
    Error::not_supported("native flush and atomic write on this queue pair")
}

/// How many of a list were accepted, from where its first refused element lies.
fn accepted(first: usize, bad: usize, stride: usize, len: usize) -> usize {
    match bad.checked_sub(first) {
        Some(offset) if bad != 0 => (offset / stride).min(len.saturating_sub(1)),
        _ => 0,
    }
}

/// The outcome of posting a list of `len` requests that starts at `first`, of which the provider returned `ret` and named `bad` as the
/// first that it refused.
#[cold]
pub(super) fn list_result(
    call: Call,
    ret: i32,
    first: usize,
    bad: usize,
    stride: usize,
    len: usize,
    before: usize,
) -> Result<()> {
    match (ret, bad) {
        (0, 0) => Ok(()),
        // siw's provider, once its queue is full, names the request that it did not take and returns the doorbell's 0.
        (0, bad) if (first..first + stride * len).contains(&bad) => Err(post_failed(
            call,
            libc::ENOMEM,
            before + accepted(first, bad, stride, len),
        )),
        (0, _) => Ok(()),
        (ret, bad) => Err(post_failed(
            call,
            ret,
            before + accepted(first, bad, stride, len),
        )),
    }
}

/// The error of a single request that the provider refused, with `ret` or by naming it.
#[cold]
#[inline(never)]
fn one_refused(call: Call, ret: i32) -> Error {
    post_failed(call, if ret == 0 { libc::ENOMEM } else { ret }, 0)
}

/// The error of a post that the provider refused with `ret` after `accepted` requests.
#[cold]
#[inline(never)]
pub(super) fn post_failed(call: Call, ret: i32, accepted: usize) -> Error {
    let errno = errno(ret);
    let source = std::io::Error::from_raw_os_error(errno);
    match (errno, accepted) {
        // The man pages name ENOMEM for a full queue; some providers say EAGAIN, rxe's extended queue pair ENOSPC.
        (libc::ENOMEM | libc::EAGAIN | libc::ENOSPC, _) => Error::QueueFull {
            call,
            accepted,
            source,
        },
        (_, 0) => Error::Provider { call, source },
        _ => Error::PartlyPosted {
            call,
            accepted,
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_is_the_index_of_the_bad_one() {
        assert_eq!(accepted(1000, 1000, 136, 4), 0);
        assert_eq!(accepted(1000, 1272, 136, 4), 2);
        assert_eq!(accepted(1000, 0, 136, 4), 0);
        assert_eq!(accepted(1000, 900, 136, 4), 0);
        assert_eq!(accepted(1000, 99_999, 136, 4), 3);
    }

    #[test]
    fn a_request_that_is_named_as_bad_was_not_taken() {
        let of = |ret, bad| list_result(Call::IbvPostSend, ret, 1000, bad, 100, 3, 5);
        assert!(of(0, 0).is_ok());
        assert!(of(0, 999).is_ok());
        assert!(of(0, 1300).is_ok());
        assert!(matches!(
            of(0, 1100),
            Err(Error::QueueFull { accepted: 6, .. })
        ));
        assert!(matches!(
            of(libc::EINVAL, 1200),
            Err(Error::PartlyPosted { accepted: 7, .. })
        ));
    }

    #[test]
    fn a_full_queue_is_told_apart() {
        assert!(matches!(
            post_failed(Call::IbvPostSend, libc::ENOMEM, 0),
            Error::QueueFull { accepted: 0, .. }
        ));
        assert!(matches!(
            post_failed(Call::IbvPostSend, -libc::ENOMEM, 3),
            Error::QueueFull { accepted: 3, .. }
        ));
        assert!(matches!(
            post_failed(Call::IbvWrComplete, libc::ENOSPC, 0),
            Error::QueueFull { accepted: 0, .. }
        ));
        assert!(matches!(
            post_failed(Call::IbvPostSend, libc::EINVAL, 0),
            Error::Provider { .. }
        ));
        assert!(matches!(
            post_failed(Call::IbvPostSend, libc::EINVAL, 2),
            Error::PartlyPosted { accepted: 2, .. }
        ));
    }
}
