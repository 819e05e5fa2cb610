//! Ids without a channel: each call waits for its event.

use libc::c_int;
use rdma_sys as ffi;

use super::events::next_event;
use crate::calls::Call;
use crate::world::world;

/// For an id without a channel: waits for the event that ends the call just made, and keeps it in
/// the id.
pub fn complete(id: *mut ffi::rdma_cm_id, call: Call) -> Result<(), c_int> {
    let channel = {
        let mut w = world();
        let Ok(i) = w.ids.get(id, call) else {
            return Err(libc::EINVAL);
        };
        if !i.sync {
            return Ok(());
        }
        let channel = i.channel;
        w.drop_sync_event(id);
        channel
    };
    let event = next_event(channel, call)?;
    // SAFETY: a live id of ours, and its event.
    let (kind, status) = unsafe {
        (*id).event = event;
        ((*event).event, (*event).status)
    };
    match kind {
        ffi::RDMA_CM_EVENT_REJECTED if status > 0 => Err(libc::ECONNREFUSED),
        _ if status < 0 => Err(-status),
        _ if status > 0 => Err(status),
        _ => Ok(()),
    }
}

impl crate::world::World {
    /// Acknowledges the event that an id without a channel keeps.
    pub fn drop_sync_event(&mut self, id: *mut ffi::rdma_cm_id) {
        // SAFETY: a live id of ours.
        let event = unsafe {
            let e = (*id).event;
            (*id).event = std::ptr::null_mut();
            e
        };
        if !event.is_null() {
            // It is ours: nobody else acknowledges it.
            let _ = self.ack_event(event);
        }
    }
}
