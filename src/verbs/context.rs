use std::{
    any::Any,
    ffi::CStr,
    fmt,
    os::fd::{AsFd, BorrowedFd},
    ptr::NonNull,
};

use rdma_sys as ffi;

/// An open device as librdmacm holds it.
///
/// The pointer stays valid because `_anchor`, whatever gave it (a bound or resolved cm id, or the list of `rdma_get_devices`), is
/// kept until the last object that hangs on the context is gone.
pub(crate) struct Context {
    raw: NonNull<ffi::ibv_context>,
    _anchor: Box<dyn Any + Send + Sync>,
}

// SAFETY: verbs contexts may be used by any thread (libibverbs is thread safe), and the struct is not written by us.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// # Safety
    /// `raw` must be librdmacm's own open context, and stay so as long as `anchor` lives.
    pub(crate) unsafe fn new(
        raw: NonNull<ffi::ibv_context>,
        anchor: Box<dyn Any + Send + Sync>,
    ) -> Self {
        Context {
            raw,
            _anchor: anchor,
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::ibv_context {
        self.raw.as_ptr()
    }

    /// The device's name, such as "mlx5_0".
    pub(crate) fn device_name(&self) -> String {
        // SAFETY: the context is open, so its device pointer is valid.
        unsafe { device_name((*self.as_ptr()).device) }
    }

    /// The fd on which the kernel reports asynchronous events of the device.
    pub(crate) fn async_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the fd is open as long as the context, which outlives the borrow.
        unsafe { BorrowedFd::borrow_raw((*self.as_ptr()).async_fd) }
    }

    pub(crate) fn transport_type(&self) -> i32 {
        // SAFETY: the context is open, so its device pointer is valid.
        unsafe { (*(*self.as_ptr()).device).transport_type }
    }

    pub(crate) fn num_comp_vectors(&self) -> u32 {
        // SAFETY: the context is open.
        unsafe { (*self.as_ptr()).num_comp_vectors.max(0) as u32 }
    }
}

impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.async_fd()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.device_name()).finish()
    }
}

/// # Safety
/// `device` must be null or a valid device.
pub(crate) unsafe fn device_name(device: *mut ffi::ibv_device) -> String {
    // SAFETY: the caller's word; the name is a NUL-terminated string that lives with the device.
    unsafe {
        let name = if device.is_null() {
            std::ptr::null()
        } else {
            ffi::ibv_get_device_name(device)
        };
        if name.is_null() {
            return String::new();
        }
        CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}
