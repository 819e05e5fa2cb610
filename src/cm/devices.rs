use std::{ffi::c_int, ptr::NonNull, sync::Arc, time::Duration};

use rdma_sys as ffi;

use super::{
    Target,
    raw::{bound_context, resolved_context},
};
use crate::{
    Call, Capabilities, Error, Result,
    verbs::{Context, last_errno},
};

/// librdmacm's list of open devices (`rdma_get_devices(3)`). The contexts in it stay open as long as it lives.
struct DeviceList {
    list: NonNull<*mut ffi::ibv_context>,
    len: usize,
}

// SAFETY: the list is read only and belongs to nobody else.
unsafe impl Send for DeviceList {}
// SAFETY: as above.
unsafe impl Sync for DeviceList {}

impl DeviceList {
    fn open() -> Result<Self> {
        let mut len: c_int = 0;
        // SAFETY: `len` is ours.
        let list = unsafe { ffi::rdma_get_devices(&mut len) };
        match NonNull::new(list) {
            Some(list) => Ok(DeviceList {
                list,
                len: len.max(0) as usize,
            }),
            None => Err(Error::provider(Call::RdmaGetDevices, last_errno())),
        }
    }

    fn contexts(&self) -> &[*mut ffi::ibv_context] {
        // SAFETY: the library gave that many pointers, and they live as long as the list.
        unsafe { std::slice::from_raw_parts(self.list.as_ptr(), self.len) }
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: this is the owner.
        unsafe { ffi::rdma_free_devices(self.list.as_ptr()) }
    }
}

/// All devices that librdmacm opens, kept open by its list.
pub(crate) fn contexts() -> Result<Vec<Context>> {
    let list = Arc::new(DeviceList::open()?);
    let contexts = list.contexts().iter();
    Ok(contexts.filter_map(|raw| context(&list, *raw)).collect())
}

/// The device behind `raw`, which is not looked at unless librdmacm has it open; kept open by its
/// list.
pub(crate) fn context_of(raw: *mut ffi::ibv_context) -> Result<Option<Context>> {
    let list = Arc::new(DeviceList::open()?);
    let known = list.contexts().contains(&raw);
    Ok(known.then(|| context(&list, raw)).flatten())
}

/// The device called `name`, kept open by its list.
pub(crate) fn context_by_name(name: &str) -> Result<Context> {
    let no_device = |errno| Error::NoDevice {
        address: name.to_owned(),
        source: std::io::Error::from_raw_os_error(errno),
    };
    let found = contexts().map_err(|err| no_device(err.raw_os_error().unwrap_or(libc::ENODEV)))?;
    (found.into_iter())
        .find(|context| context.device_name() == name)
        .ok_or_else(|| no_device(libc::ENODEV))
}

/// A device context of librdmacm's own, open as long as this lives; for the C interface, whose users hold bare contexts.
#[doc(hidden)]
pub struct RawContext {
    raw: *mut ffi::ibv_context,
    _list: DeviceList,
}

// SAFETY: the pointer is only handed out, and what it points at is open as long as the list.
unsafe impl Send for RawContext {}
// SAFETY: as above.
unsafe impl Sync for RawContext {}

impl RawContext {
    /// The device that owns the local address `address`; see [`Peer::local`](crate::Peer::local).
    pub fn local(address: &str) -> Result<Self> {
        RawContext::anchored(bound_context(Target::Name(address, None))?.0)
    }

    /// The device over which the remote address `address` is reached; see
    /// [`Peer::remote`](crate::Peer::remote).
    pub fn remote(address: &str) -> Result<Self> {
        let address = Target::Name(address, None);
        RawContext::anchored(resolved_context(address, Duration::from_millis(1000))?.0)
    }

    /// What the id of `context` keeps open now is kept by a list after, which takes neither an fd nor anything of the kernel's.
    fn anchored(context: Context) -> Result<Self> {
        let list = DeviceList::open()?;
        let raw = context.as_ptr();
        if !list.contexts().contains(&raw) {
            return Err(Error::provider(Call::RdmaGetDevices, libc::ENODEV));
        }
        Ok(RawContext { raw, _list: list })
    }

    /// The C context.
    pub fn as_ptr(&self) -> *mut ffi::ibv_context {
        self.raw
    }
}

impl Capabilities {
    /// What a device can do that others have opened, by its first port; for the C interface.
    ///
    /// # Safety
    /// `context` must be an open device context.
    #[doc(hidden)]
    pub unsafe fn of_raw_context(context: NonNull<ffi::ibv_context>) -> Result<Self> {
        // SAFETY: the caller's contract; the context is used within this call only.
        Capabilities::of(&unsafe { Context::new(context, Box::new(())) }, 1)
    }
}

fn context(list: &Arc<DeviceList>, raw: *mut ffi::ibv_context) -> Option<Context> {
    let raw = NonNull::new(raw)?;
    // SAFETY: the context is one of the list, which keeps it open.
    Some(unsafe { Context::new(raw, Box::new(list.clone())) })
}
