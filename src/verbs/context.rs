use std::{
    any::Any,
    ffi::CStr,
    fmt,
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd},
    ptr::NonNull,
};

use rdma_sys as ffi;

use super::check;
use crate::{Call, Result, numbers::Transport};

/// An open device as librdmacm holds it.
///
/// The pointer stays valid because `_anchor`, whatever gave it (a bound or resolved cm id, or the
/// list of `rdma_get_devices`), is kept until the last object that hangs on the context is gone.
pub(crate) struct Context {
    raw: NonNull<ffi::ibv_context>,
    _anchor: Box<dyn Any + Send + Sync>,
}

// SAFETY: verbs contexts may be used by any thread (libibverbs is thread safe), and the struct is
// not written by us.
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

    pub(crate) fn transport(&self) -> Transport {
        // SAFETY: the context is open, so its device pointer is valid.
        Transport::from_raw(unsafe { (*(*self.as_ptr()).device).transport_type })
    }

    pub(crate) fn query_device(&self) -> Result<ffi::ibv_device_attr_ex> {
        let mut attr = MaybeUninit::<ffi::ibv_device_attr_ex>::zeroed();
        // SAFETY: the context is open, `attr` is a whole struct; all-zero bytes are a valid value
        // of it.
        unsafe {
            check(
                Call::IbvQueryDeviceEx,
                ffi::ibv_query_device_ex(self.as_ptr(), std::ptr::null(), attr.as_mut_ptr()),
            )?;
            Ok(attr.assume_init())
        }
    }

    pub(crate) fn query_port(&self, port: u8) -> Result<ffi::ibv_port_attr> {
        let mut attr = ffi::ibv_port_attr::default();
        // SAFETY: the context is open and `attr` is a whole port attribute.
        check(Call::IbvQueryPort, unsafe {
            ffi::ibv_query_port(self.as_ptr(), port, &mut attr)
        })?;
        Ok(attr)
    }

    /// The longest message of port `port`, in bytes.
    pub(crate) fn max_message_size(&self, port: u8) -> Result<u64> {
        Ok(self.query_port(port)?.max_msg_sz.into())
    }

    /// The GIDs of all ports, `room` at most.
    pub(crate) fn gids(&self, room: usize) -> Result<Vec<GidEntry>> {
        if room == 0 {
            return Ok(Vec::new());
        }
        let mut entries = vec![ffi::ibv_gid_entry::default(); room];
        // SAFETY: the context is open, and there is room for as many entries as are said.
        let found =
            unsafe { ffi::ibv_query_gid_table(self.as_ptr(), entries.as_mut_ptr(), room, 0) };
        check(Call::IbvQueryGidTable, found.min(0) as i32)?;
        entries.truncate(found as usize);
        let entries = entries.iter().map(|entry| GidEntry {
            // SAFETY: both views of a GID are 16 bytes of any value.
            gid: unsafe { entry.gid.raw },
            index: entry.gid_index,
            port: entry.port_num,
            kind: entry.gid_type,
            interface: entry.ndev_ifindex,
        });
        Ok(entries.collect())
    }

    pub(crate) fn num_comp_vectors(&self) -> u32 {
        // SAFETY: the context is open.
        unsafe { (*self.as_ptr()).num_comp_vectors.max(0) as u32 }
    }
}

/// An entry of a GID table.
#[derive(Default)]
pub(crate) struct GidEntry {
    pub(crate) gid: [u8; 16],
    pub(crate) index: u32,
    pub(crate) port: u32,
    pub(crate) kind: u32,
    /// The index of its network interface; 0 where the kernel does not say.
    pub(crate) interface: u32,
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
