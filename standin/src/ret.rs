//! C's ways to report an error.

use libc::c_int;

/// Sets errno.
pub fn set_errno(errno: c_int) {
    // SAFETY: the address of the calling thread's errno is always valid.
    unsafe { *libc::__errno_location() = errno };
}

/// NULL, with errno.
pub fn null<T>(errno: c_int) -> *mut T {
    set_errno(errno);
    std::ptr::null_mut()
}

/// -1, with errno: librdmacm's way, and that of the event readers.
pub fn minus(errno: c_int) -> c_int {
    set_errno(errno);
    -1
}

/// A pointer or NULL with errno.
pub fn pointer<T>(r: Result<*mut T, c_int>) -> *mut T {
    r.unwrap_or_else(null)
}

/// 0 or errno: libibverbs' way.
pub fn code(r: Result<(), c_int>) -> c_int {
    r.err().unwrap_or(0)
}

/// 0 or -1 with errno.
pub fn status(r: Result<(), c_int>) -> c_int {
    match r {
        Ok(()) => 0,
        Err(e) => minus(e),
    }
}
