//! What a provider said of a post, as a result.

use crate::{Call, Error, Result, verbs::errno};

/// What became of an attempt to post, small enough to stay in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The device, or the batch, took it.
    Posted,
    /// Nothing was tried: the quick check could not tell that it is right.
    Undecided,
    /// The provider refused it.
    Refused {
        /// The call.
        call: Call,
        /// What it returned. In 64 bits: an attempt of 8 bytes in all would be packed into one
        /// register, and that costs where nothing failed, too.
        ret: i64,
    },
}

impl Attempt {
    /// The error of a post that was refused.
    #[inline(always)]
    pub fn check(self) -> Result<()> {
        match self {
            Attempt::Refused { call, ret } => Err(one_refused(call, ret as i32)),
            Attempt::Posted | Attempt::Undecided => Ok(()),
        }
    }
}

/// What became of a post of one request.
#[inline(always)]
pub(super) fn attempted<T>(call: Call, ret: i32, bad: *mut T) -> Attempt {
    match taken(ret, bad) {
        true => Attempt::Posted,
        false => Attempt::Refused {
            call,
            ret: ret.into(),
        },
    }
}

/// Was all taken? Both tell: siw's provider returns 0 for a request that it names as refused.
#[inline(always)]
pub(super) fn taken<T>(ret: i32, bad: *mut T) -> bool {
    u64::from(ret as u32) | bad.addr() as u64 == 0
}

/// What a list of `len` requests that starts at `first` met with, where not all of it was accepted:
/// an error's return code, and how many were accepted. The provider returned `ret` and named `bad`
/// as the first that it refused.
#[cold]
pub(super) fn accepted(
    ret: i32,
    first: usize,
    bad: usize,
    stride: usize,
    len: usize,
) -> Option<(i32, usize)> {
    let named = (first..first + stride * len).contains(&bad);
    match ret {
        0 if !named => None,
        // siw's provider, once its queue is full, names the request that it did not take and
        // returns the doorbell's 0.
        0 => Some((libc::ENOMEM, (bad - first) / stride)),
        ret if named => Some((ret, (bad - first) / stride)),
        ret => Some((ret, 0)),
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
        // The man pages name ENOMEM for a full queue; some providers say EAGAIN, rxe's extended
        // queue pair ENOSPC.
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
mod tests;
