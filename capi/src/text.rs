//! Numbers in words.

use std::ffi::{CStr, c_char, c_int};

use rpma::code;

/// The words for an error number.
///
/// # Safety
/// None is needed: any number will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpma_err_2str(ret: c_int) -> *const c_char {
    error(ret).as_ptr()
}

/// The words for an event of a connection.
///
/// # Safety
/// None is needed: any number will do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpma_utils_conn_event_2str(event: c_int) -> *const c_char {
    match event {
        UNDEFINED => c"Undefined connection event",
        ESTABLISHED => c"Connection established",
        CLOSED => c"Connection closed",
        LOST => c"Connection lost",
        REJECTED => c"Connection rejected",
        UNREACHABLE => c"Connection unreachable",
        _ => c"Unsupported connection event",
    }
    .as_ptr()
}

/// `enum rpma_conn_event` of librpma.h.
pub(crate) const UNDEFINED: c_int = -1;
pub(crate) const ESTABLISHED: c_int = 0;
pub(crate) const CLOSED: c_int = 1;
pub(crate) const LOST: c_int = 2;
pub(crate) const REJECTED: c_int = 3;
pub(crate) const UNREACHABLE: c_int = 4;

/// The words are part of the interface: programs print and compare them.
fn error(ret: c_int) -> &'static CStr {
    match ret {
        0 => c"Success",
        code::NOSUPP => c"Not supported",
        code::PROVIDER => c"Provider error occurred",
        code::NOMEM => c"Out of memory",
        code::INVAL => c"Invalid argument",
        code::NO_COMPLETION => c"No next completion available",
        code::NO_EVENT => c"No next event available",
        code::AGAIN => c"Temporary error, try again",
        code::SHARED_CHANNEL => c"Completion channel is shared",
        code::NOT_SHARED_CHNL => c"Completion channel is not shared",
        _ => c"Unknown error",
    }
}
