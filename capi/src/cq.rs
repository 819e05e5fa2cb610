//! Completion queues.

use std::{
    ffi::c_int,
    os::fd::{AsFd, AsRawFd},
};

use rdma_sys as ffi;
use rpma::{Cq, Error, capi_support, code};

use crate::{Failure, Out, Outcome, c_api, failed, given};

pub(crate) const NO_COMPLETION: Failure = Failure::Code(code::NO_COMPLETION);

c_api! {
    /// The fd of the completion channel.
    fn rpma_cq_get_fd(cq: Option<&Cq>, fd: Out<'_, c_int>) {
        let (cq, place) = (given(cq)?, given(fd)?);
        place.write(cq.as_fd().as_raw_fd());
        Ok(())
    }

    /// Waits for news, or says that there is none, as the fd is set.
    fn rpma_cq_wait(cq: Option<&Cq>) {
        news(capi_support::wait_cq(given(cq)?).map(|news| news.then_some(())))
    }
}

/// The outcome of a wait for completions. A signal ends it, and librpma calls that "no completion".
pub(crate) fn news<T>(waited: rpma::Result<Option<T>>) -> Outcome<T> {
    match waited {
        Ok(Some(news)) => Ok(news),
        Ok(None) => Err(NO_COMPLETION),
        Err(Error::Provider {
            call: rpma::Call::IbvGetCqEvent,
            source,
        }) if source.raw_os_error() == Some(libc::EINTR) => Err(NO_COMPLETION),
        Err(err) => Err(err.into()),
    }
}

/// Takes completions.
///
/// # Safety
/// The contract of C: see the crate.
// Without the guard against panics: nothing here can panic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpma_cq_get_wc(
    cq: Option<&Cq>,
    num_entries: c_int,
    wc: *mut ffi::ibv_wc,
    num_entries_got: Option<&mut c_int>,
) -> c_int {
    let Some(cq) = cq.filter(|_| !wc.is_null()) else {
        return invalid();
    };
    match num_entries {
        1 => {}
        2.. if num_entries_got.is_some() => {}
        _ => return invalid(),
    }
    // SAFETY: the contract of C: room for so many.
    let ret = unsafe { capi_support::poll_raw(cq, num_entries, wc) };
    if ret <= 0 {
        return none_taken(ret);
    }
    if let Some(got) = num_entries_got {
        *got = ret;
    }
    0
}

/// The number for wrong arguments, hidden: else the compiler has it ready on the way of the right
/// ones.
#[cold]
#[inline(never)]
fn invalid() -> c_int {
    std::hint::black_box(code::INVAL)
}

#[inline(always)]
fn none_taken(ret: c_int) -> c_int {
    match ret {
        0 => code::NO_COMPLETION,
        _ => poll_failed(ret),
    }
}

#[cold]
#[inline(never)]
fn poll_failed(ret: c_int) -> c_int {
    failed("rpma_cq_get_wc", line!(), capi_support::poll_error(ret))
}
