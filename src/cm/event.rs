use std::fmt;

use super::raw::RawEvent;
use crate::numbers::CmEventKind;

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
    /// The connection was closed. It can come twice: at the disconnection and at the end of its
    /// time-wait state.
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

    /// 0, a positive errno, or for [`CmEventKind::REJECTED`] the transport's reason (InfiniBand:
    /// the CM's reject code, 28 where the peer's program rejected, 8 where nobody listens; iWARP: a
    /// positive errno).
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

    /// Copies the event out, so that it can be acknowledged.
    pub(super) fn of(event: &RawEvent) -> Self {
        ConnEvent {
            kind: CmEventKind::from_raw(event.kind()),
            // A negative errno becomes positive; the reasons that InfiniBand gives for a rejection
            // are so already.
            status: event.status().checked_abs().unwrap_or(libc::EIO),
            private_data: event.private_data().into(),
            initiator_depth: event.initiator_depth(),
        }
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
