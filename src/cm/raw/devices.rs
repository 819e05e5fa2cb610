//! The devices that librdmacm has open.

use std::{ffi::c_int, ptr::NonNull, sync::Arc};

use rdma_sys as ffi;

use crate::{
    Call, Error, Result,
    verbs::{Context, last_errno, no_device},
};

/// librdmacm's list of open devices (`rdma_get_devices(3)`). The contexts in it stay open as long
/// as it lives.
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
    let no_device = |errno| no_device(name.to_owned(), std::io::Error::from_raw_os_error(errno));
    let found = contexts().map_err(|err| no_device(err.raw_os_error().unwrap_or(libc::ENODEV)))?;
    (found.into_iter())
        .find(|context| context.device_name() == name)
        .ok_or_else(|| no_device(libc::ENODEV))
}

fn context(list: &Arc<DeviceList>, raw: *mut ffi::ibv_context) -> Option<Context> {
    let raw = NonNull::new(raw)?;
    // SAFETY: the context is one of the list, which keeps it open.
    Some(unsafe { Context::new(raw, Box::new(list.clone())) })
}
