use std::{ffi::c_int, ptr::NonNull, sync::Arc, time::Duration};

use rdma_sys as ffi;

use super::{Target, bound_context, resolved_context};
use crate::{
    Capabilities, DeviceInfo, Error, Peer, Result,
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
            None => Err(Error::provider("rdma_get_devices", last_errno())),
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

/// The RDMA devices of this machine that connections can be made on, as librdmacm opens them. No device is an empty list.
///
/// # Errors
/// When the devices cannot be listed; a machine without RDMA support gives `ENODEV` or an empty list, as librdmacm has it.
pub fn devices() -> Result<Vec<DeviceInfo>> {
    let list = Arc::new(DeviceList::open()?);
    list.contexts()
        .iter()
        .filter_map(|raw| context(&list, *raw))
        .map(|context| DeviceInfo::of(&context))
        .collect()
}

/// The device called `name`, kept open by its list.
pub(crate) fn context_by_name(name: &str) -> Result<Context> {
    let no_device = |errno| Error::NoDevice {
        address: name.to_owned(),
        source: std::io::Error::from_raw_os_error(errno),
    };
    let list = match DeviceList::open() {
        Ok(list) => Arc::new(list),
        Err(err) => return Err(no_device(err.raw_os_error().unwrap_or(libc::ENODEV))),
    };
    list.contexts()
        .iter()
        .filter_map(|raw| context(&list, *raw))
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
    /// The device that owns the local address `address`; see [`Peer::local`].
    pub fn local(address: &str) -> Result<Self> {
        RawContext::anchored(bound_context(Target::Name(address, None))?.0)
    }

    /// The device over which the remote address `address` is reached; see [`Peer::remote`].
    pub fn remote(address: &str) -> Result<Self> {
        let address = Target::Name(address, None);
        RawContext::anchored(resolved_context(address, Duration::from_millis(1000))?.0)
    }

    /// What the id of `context` keeps open now is kept by a list after, which takes neither an fd nor anything of the kernel's.
    fn anchored(context: Context) -> Result<Self> {
        let list = DeviceList::open()?;
        let raw = context.as_ptr();
        if !list.contexts().contains(&raw) {
            return Err(Error::provider("rdma_get_devices", libc::ENODEV));
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

impl Peer {
    /// A peer on a device that was opened by others: a C program's, say. It must be one of librdmacm's own, as `rdma_get_devices(3)` lists
    /// them or a bound or resolved id has it in its `verbs` field, since connections are made by librdmacm. Limits are those of its first
    /// port.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where librdmacm does not have it; a pointer that is not in its list is not looked at.
    #[doc(alias = "rpma_peer_new")]
    pub fn from_raw_context(context: *mut ffi::ibv_context) -> Result<Peer> {
        let list = DeviceList::open()?;
        let raw = NonNull::new(context).filter(|raw| list.contexts().contains(&raw.as_ptr()));
        let Some(raw) = raw else {
            return Err(Error::invalid(
                "context",
                "not a device that librdmacm has opened",
            ));
        };
        // SAFETY: the context is one of the list, which keeps it open.
        Peer::on(unsafe { Context::new(raw, Box::new(list)) }, 1, None)
    }

    /// The C device context, for calls that this crate does not have. It stays open as long as the peer.
    pub fn as_raw_context(&self) -> *mut ffi::ibv_context {
        self.pd().context().as_ptr()
    }
}

fn context(list: &Arc<DeviceList>, raw: *mut ffi::ibv_context) -> Option<Context> {
    let raw = NonNull::new(raw)?;
    // SAFETY: the context is one of the list, which keeps it open.
    Some(unsafe { Context::new(raw, Box::new(list.clone())) })
}
