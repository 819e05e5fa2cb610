use std::{
    os::fd::{AsFd, BorrowedFd},
    ptr::NonNull,
    sync::Arc,
};

use rdma_sys as ffi;

use super::RawEvent;
use crate::{
    Call, Error, Result,
    verbs::{check_ptr, explained, nothing_yet},
    wait::{Gate, Until, set_nonblocking},
};

/// An event channel (`rdma_create_event_channel(3)`) in non-blocking mode. It lives as long as any
/// cm id on it.
#[derive(Debug)]
pub(crate) struct EventChannel {
    raw: NonNull<ffi::rdma_event_channel>,
    gate: Gate,
}

// SAFETY: librdmacm is thread safe and nothing of the struct is written by us.
unsafe impl Send for EventChannel {}
// SAFETY: as above.
unsafe impl Sync for EventChannel {}

impl EventChannel {
    /// A new channel, in non-blocking mode.
    pub(crate) fn create() -> Result<Arc<Self>> {
        // SAFETY: the function needs nothing.
        let raw = unsafe { ffi::rdma_create_event_channel() };
        let raw = check_ptr(Call::RdmaCreateEventChannel, raw).map_err(explained)?;
        let channel = EventChannel {
            raw,
            gate: Gate::new(),
        };
        set_nonblocking(channel.as_fd(), true)?;
        Ok(Arc::new(channel))
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::rdma_event_channel {
        self.raw.as_ptr()
    }

    /// The turn to read the channel, for those who note what an event says before another reads on.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The next event within the time given.
    pub(crate) fn next(&self, until: Until) -> Result<Option<RawEvent>> {
        self.gate.run(self.as_fd(), until, || self.take())
    }

    /// The next event if there is one; blocks or not as the fd is set.
    pub(crate) fn take(&self) -> Result<Option<RawEvent>> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the channel is open and `event` ours.
        let ret = unsafe { ffi::rdma_get_cm_event(self.raw.as_ptr(), &mut event) };
        match (ret, NonNull::new(event)) {
            // SAFETY: the event was just taken.
            (0, Some(event)) => Ok(Some(unsafe { RawEvent::new(event) })),
            (0, None) => Err(Error::provider(Call::RdmaGetCmEvent, libc::EIO)),
            _ => nothing_yet(Call::RdmaGetCmEvent),
        }
    }
}

impl AsFd for EventChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the fd is open as long as the channel, which outlives the borrow.
        unsafe { BorrowedFd::borrow_raw((*self.raw.as_ptr()).fd) }
    }
}

impl Drop for EventChannel {
    fn drop(&mut self) {
        // SAFETY: this is the owner; every id on the channel holds an Arc of it and is gone.
        unsafe { ffi::rdma_destroy_event_channel(self.raw.as_ptr()) }
    }
}
