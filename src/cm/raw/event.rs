use std::{ffi::c_int, ptr::NonNull, sync::Arc};

use rdma_sys as ffi;

use super::{EventChannel, Id};
use crate::{Call, Error, Result, verbs::check};

/// An event taken from a channel. Dropping it acknowledges it.
pub(crate) struct RawEvent(NonNull<ffi::rdma_cm_event>);

impl RawEvent {
    /// # Safety
    /// `raw` must come from `rdma_get_cm_event` and not be acknowledged.
    pub(crate) unsafe fn new(raw: NonNull<ffi::rdma_cm_event>) -> Self {
        RawEvent(raw)
    }

    fn get(&self) -> &ffi::rdma_cm_event {
        // SAFETY: the event is whole until it is acknowledged, which drop does.
        unsafe { self.0.as_ref() }
    }

    /// `RDMA_CM_EVENT_…`
    pub(crate) fn kind(&self) -> u32 {
        self.get().event
    }

    /// As librdmacm has it: 0, a negative errno, or the transport's reason.
    pub(crate) fn status(&self) -> c_int {
        self.get().status
    }

    /// The parameters of the connection, of events that carry them.
    fn conn(&self) -> Option<&ffi::rdma_conn_param> {
        let event = self.get();
        match event.event {
            ffi::RDMA_CM_EVENT_CONNECT_REQUEST
            | ffi::RDMA_CM_EVENT_CONNECT_RESPONSE
            | ffi::RDMA_CM_EVENT_ESTABLISHED
            | ffi::RDMA_CM_EVENT_REJECTED
            | ffi::RDMA_CM_EVENT_DISCONNECTED
            | ffi::RDMA_CM_EVENT_UNREACHABLE
            | ffi::RDMA_CM_EVENT_CONNECT_ERROR => {}
            _ => return None,
        }
        // SAFETY: for connection events (not for datagrams, which this crate never makes) the union
        // holds the connection's parameters, zeroed where there are none.
        Some(unsafe { &event.param.conn })
    }

    /// How many reads and atomics of this side the peer answers at once; 0 where the event does not
    /// say.
    pub(crate) fn initiator_depth(&self) -> u8 {
        self.conn().map_or(0, |conn| conn.initiator_depth)
    }

    /// What the other side sent along; empty for events that carry nothing.
    pub(crate) fn private_data(&self) -> &[u8] {
        let Some(conn) = self.conn() else {
            return &[];
        };
        let len = usize::from(conn.private_data_len);
        if conn.private_data.is_null() || len == 0 {
            return &[];
        }
        // SAFETY: the library holds that many bytes there until the acknowledgement, which takes
        // this event away.
        unsafe { std::slice::from_raw_parts(conn.private_data.cast(), len) }
    }

    /// Takes the id of a connect request that came on `channel`, and acknowledges the event first:
    /// migrating and destroying the id wait for that.
    pub(crate) fn into_request(self, channel: &Arc<EventChannel>) -> Result<Id> {
        let event = self.get();
        let id = match event.event {
            ffi::RDMA_CM_EVENT_CONNECT_REQUEST => NonNull::new(event.id),
            _ => None,
        };
        drop(self);
        let id = id.ok_or_else(|| Error::provider(Call::RdmaGetCmEvent, libc::EIO))?;
        // SAFETY: a connect request brings a new id (rdma_get_cm_event(3)), which is this taker's,
        // since each event is taken once and used up here.
        Ok(unsafe { Id::of_request(id, channel.clone()) })
    }
}

impl Drop for RawEvent {
    fn drop(&mut self) {
        // SAFETY: the event was not acknowledged before.
        let ret = unsafe { ffi::rdma_ack_cm_event(self.0.as_ptr()) };
        crate::log_limit::log_failure(check(Call::RdmaAckCmEvent, ret));
    }
}
