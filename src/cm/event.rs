use std::{fmt, ptr::NonNull};

use rdma_sys as ffi;

use crate::{Call, numbers::CmEventKind, verbs::check};

/// What happened to a connection, in librpma's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[doc(alias = "rpma_conn_event")]
#[doc(alias = "rpma_utils_conn_event_2str")]
pub enum ConnEventKind {
    /// An event that librpma has no word for; see [`ConnEvent::cm_kind`].
    #[doc(alias = "RPMA_CONN_UNDEFINED")]
    Unknown,
    /// The connection is established.
    #[doc(alias = "RPMA_CONN_ESTABLISHED")]
    Established,
    /// The connection was closed. It can come twice: at the disconnection and at the end of its time-wait state.
    #[doc(alias = "RPMA_CONN_CLOSED")]
    Closed,
    /// The connection was lost: it failed while being established, or the device is gone.
    #[doc(alias = "RPMA_CONN_LOST")]
    Lost,
    /// The peer rejected the connection.
    #[doc(alias = "RPMA_CONN_REJECTED")]
    Rejected,
    /// The peer cannot be reached.
    #[doc(alias = "RPMA_CONN_UNREACHABLE")]
    Unreachable,
}

impl fmt::Display for ConnEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConnEventKind::Unknown => "another event",
            ConnEventKind::Established => "established",
            ConnEventKind::Closed => "closed",
            ConnEventKind::Lost => "lost",
            ConnEventKind::Rejected => "rejected",
            ConnEventKind::Unreachable => "unreachable",
        })
    }
}

/// An event of a connection, with its details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnEvent {
    kind: CmEventKind,
    status: i32,
    private_data: Box<[u8]>,
}

impl ConnEvent {
    /// The event in librpma's words.
    #[doc(alias = "rpma_conn_next_event")]
    pub fn kind(&self) -> ConnEventKind {
        match self.kind {
            CmEventKind::ESTABLISHED => ConnEventKind::Established,
            CmEventKind::DISCONNECTED | CmEventKind::TIMEWAIT_EXIT => ConnEventKind::Closed,
            CmEventKind::CONNECT_ERROR | CmEventKind::DEVICE_REMOVAL => ConnEventKind::Lost,
            CmEventKind::REJECTED => ConnEventKind::Rejected,
            CmEventKind::UNREACHABLE => ConnEventKind::Unreachable,
            _ => ConnEventKind::Unknown,
        }
    }

    /// The event as the connection manager has it.
    pub fn cm_kind(&self) -> CmEventKind {
        self.kind
    }

    /// 0, a positive errno, or for [`CmEventKind::REJECTED`] the transport's reason (InfiniBand: the CM's reject code, 28 where the
    /// peer's program rejected, 8 where nobody listens; iWARP: a positive errno).
    pub fn status(&self) -> i32 {
        self.status
    }

    /// The private data that came with the event. Some transports pad it with zeros.
    #[doc(alias = "rpma_conn_get_private_data")]
    pub fn private_data(&self) -> &[u8] {
        &self.private_data
    }

    pub(crate) fn into_private_data(self) -> Box<[u8]> {
        self.private_data
    }

    /// The error that the event is, for those who wait for another.
    pub(crate) fn into_error(self) -> crate::Error {
        crate::Error::Connection {
            event: self.kind,
            status: self.status,
            private_data: self.private_data,
        }
    }
}

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

    pub(crate) fn kind(&self) -> CmEventKind {
        CmEventKind::from_raw(self.get().event)
    }

    /// The id that the event is about: for a connect request, a new one that its taker owns.
    pub(crate) fn id(&self) -> *mut ffi::rdma_cm_id {
        self.get().id
    }

    /// Copies the event out, so that it can be acknowledged.
    pub(crate) fn to_event(&self) -> ConnEvent {
        let raw = self.get();
        let private_data = match self.kind() {
            CmEventKind::CONNECT_REQUEST
            | CmEventKind::CONNECT_RESPONSE
            | CmEventKind::ESTABLISHED
            | CmEventKind::REJECTED
            | CmEventKind::DISCONNECTED
            | CmEventKind::UNREACHABLE
            | CmEventKind::CONNECT_ERROR => {
                // SAFETY: for connection events (not for datagrams, which this crate never makes) the union holds the connection's
                // parameters, zeroed where there are none.
                let conn = unsafe { raw.param.conn };
                let len = usize::from(conn.private_data_len);
                if conn.private_data.is_null() || len == 0 {
                    Box::default()
                } else {
                    // SAFETY: the library holds that many bytes there until the acknowledgement.
                    unsafe { std::slice::from_raw_parts(conn.private_data.cast::<u8>(), len) }
                        .into()
                }
            }
            _ => Box::default(),
        };
        // A negative errno becomes positive; the reasons that InfiniBand gives for a rejection are so already.
        let status = raw.status.checked_abs().unwrap_or(libc::EIO);
        ConnEvent {
            kind: self.kind(),
            status,
            private_data,
        }
    }
}

impl Drop for RawEvent {
    fn drop(&mut self) {
        // SAFETY: the event was not acknowledged before.
        let ret = unsafe { ffi::rdma_ack_cm_event(self.0.as_ptr()) };
        crate::refused::report(check(Call::RdmaAckCmEvent, ret));
    }
}
