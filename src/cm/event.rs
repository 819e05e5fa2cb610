use std::{ffi::CStr, fmt, ptr::NonNull};

use rdma_sys as ffi;

use crate::verbs::check;

/// An event of the connection manager: a number of its own, with names for those that are known (`rdma_get_cm_event(3)`).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "rdma_cm_event_type")]
pub struct CmEventKind(u32);

crate::verbs::numbers!(CmEventKind {
    /// The address was resolved.
    ADDR_RESOLVED = RDMA_CM_EVENT_ADDR_RESOLVED;
    /// The address could not be resolved.
    ADDR_ERROR = RDMA_CM_EVENT_ADDR_ERROR;
    /// The route was resolved.
    ROUTE_RESOLVED = RDMA_CM_EVENT_ROUTE_RESOLVED;
    /// The route could not be resolved.
    ROUTE_ERROR = RDMA_CM_EVENT_ROUTE_ERROR;
    /// A peer asks for a connection.
    CONNECT_REQUEST = RDMA_CM_EVENT_CONNECT_REQUEST;
    /// A peer answered; the connection is not established yet.
    CONNECT_RESPONSE = RDMA_CM_EVENT_CONNECT_RESPONSE;
    /// The connection failed while it was being established.
    CONNECT_ERROR = RDMA_CM_EVENT_CONNECT_ERROR;
    /// The peer did not answer or cannot be reached.
    UNREACHABLE = RDMA_CM_EVENT_UNREACHABLE;
    /// The peer, or its connection manager when nobody listens, rejected the request.
    REJECTED = RDMA_CM_EVENT_REJECTED;
    /// The connection is established.
    ESTABLISHED = RDMA_CM_EVENT_ESTABLISHED;
    /// The connection was closed by either side.
    DISCONNECTED = RDMA_CM_EVENT_DISCONNECTED;
    /// The device is gone.
    DEVICE_REMOVAL = RDMA_CM_EVENT_DEVICE_REMOVAL;
    /// A multicast group was joined (never seen here).
    MULTICAST_JOIN = RDMA_CM_EVENT_MULTICAST_JOIN;
    /// Joining a multicast group failed (never seen here).
    MULTICAST_ERROR = RDMA_CM_EVENT_MULTICAST_ERROR;
    /// The network interface of the connection changed its address.
    ADDR_CHANGE = RDMA_CM_EVENT_ADDR_CHANGE;
    /// The queue pair of a closed connection has left its time-wait state.
    TIMEWAIT_EXIT = RDMA_CM_EVENT_TIMEWAIT_EXIT;
});

impl fmt::Display for CmEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Self::ADDR_ERROR => "failed: the address cannot be resolved",
            Self::ROUTE_ERROR => "failed: the route cannot be resolved",
            Self::CONNECT_ERROR => "failed while it was being established",
            Self::UNREACHABLE => "failed: the peer is unreachable or does not answer",
            Self::REJECTED => "was rejected by the peer, or nobody listens there",
            Self::ESTABLISHED => "is established",
            Self::DISCONNECTED => "was closed",
            Self::DEVICE_REMOVAL => "lost its device",
            Self::ADDR_CHANGE => "changed its address",
            Self::TIMEWAIT_EXIT => "was closed (time-wait is over)",
            _ => {
                // SAFETY: the function takes any number and gives a static string, or null.
                let text = unsafe { ffi::rdma_event_str(self.as_raw() as _) };
                if text.is_null() {
                    return write!(f, "gave the unknown event {}", self.as_raw());
                }
                // SAFETY: it is a static, NUL-terminated string.
                let text = unsafe { CStr::from_ptr(text) };
                return write!(f, "gave the event {}", text.to_string_lossy());
            }
        };
        f.write_str(text)
    }
}

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
    initiator_depth: u8,
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

    /// How many reads and atomics of this side the peer answers at once; 0 where the event is of
    /// another kind.
    pub(crate) fn initiator_depth(&self) -> u8 {
        self.initiator_depth
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
        CmEventKind(self.get().event)
    }

    /// The id that the event is about: for a connect request, a new one that its taker owns.
    pub(crate) fn id(&self) -> *mut ffi::rdma_cm_id {
        self.get().id
    }

    /// Copies the event out, so that it can be acknowledged.
    pub(crate) fn to_event(&self) -> ConnEvent {
        let raw = self.get();
        let (private_data, initiator_depth) = match self.kind() {
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
                let data = if conn.private_data.is_null() || len == 0 {
                    Box::default()
                } else {
                    // SAFETY: the library holds that many bytes there until the acknowledgement.
                    unsafe { std::slice::from_raw_parts(conn.private_data.cast::<u8>(), len) }
                        .into()
                };
                (data, conn.initiator_depth)
            }
            _ => Default::default(),
        };
        // A negative errno becomes positive; the reasons that InfiniBand gives for a rejection are so already.
        let status = raw.status.checked_abs().unwrap_or(libc::EIO);
        ConnEvent {
            kind: self.kind(),
            status,
            private_data,
            initiator_depth,
        }
    }
}

impl Drop for RawEvent {
    fn drop(&mut self) {
        // SAFETY: the event was not acknowledged before.
        let ret = unsafe { ffi::rdma_ack_cm_event(self.0.as_ptr()) };
        crate::refused::report(check("rdma_ack_cm_event", ret));
    }
}
