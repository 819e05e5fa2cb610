//! The devices of this machine, and those that others have opened.

use std::io;

use rdma_sys as ffi;

use super::{DeviceInfo, Peer};
use crate::{
    Error, Result,
    cm::raw::{context_of, contexts},
    verbs::no_device,
};

/// The RDMA devices of this machine that connections can be made on, as librdmacm opens them. No
/// device is an empty list.
///
/// # Errors
/// [`Error::Unusable`] where the machine has devices and this process can use none of them. When
/// the devices cannot be listed or do not answer; a machine without RDMA support gives `ENODEV` or
/// an empty list, as librdmacm has it.
pub fn devices() -> Result<Vec<DeviceInfo>> {
    let found = contexts();
    if found.as_ref().map_or(true, Vec::is_empty) {
        let none = io::Error::from_raw_os_error(libc::ENODEV);
        if let unusable @ Error::Unusable { .. } = no_device(String::new(), none) {
            return Err(unusable);
        }
    }
    found?.iter().map(DeviceInfo::of).collect()
}

impl Peer {
    /// A peer on a device that was opened by others: a C program's, say. It must be one of
    /// librdmacm's own, as `rdma_get_devices(3)` lists them or a bound or resolved id has it in its
    /// `verbs` field, since connections are made by librdmacm. Limits are those of its first port.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where librdmacm does not have it; a pointer that is not in its
    /// list is not looked at.
    #[doc(alias = "rpma_peer_new")]
    pub fn from_raw_context(context: *mut ffi::ibv_context) -> Result<Peer> {
        match context_of(context)? {
            Some(context) => Peer::on(context, 1, None),
            None => Err(Error::invalid(
                "context",
                "not a device that librdmacm has opened",
            )),
        }
    }

    /// The C device context, for calls that this crate does not have. It stays open as long as the
    /// peer.
    pub fn as_raw_context(&self) -> *mut ffi::ibv_context {
        self.pd().context().as_ptr()
    }
}
