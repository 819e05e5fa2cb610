use std::{fmt, mem::MaybeUninit};

use rdma_sys as ffi;

use super::{Context, nothing_yet};
use crate::Result;

impl Context {
    /// Takes and acknowledges the next asynchronous event of the device, where there is one
    /// (`ibv_get_async_event(3)`); blocks or not as the fd is set.
    pub(crate) fn take_async_event(&self) -> Result<Option<AsyncEvent>> {
        let mut event = MaybeUninit::<ffi::ibv_async_event>::zeroed();
        // SAFETY: the context is open and `event` is ours.
        let ret = unsafe { ffi::ibv_get_async_event(self.as_ptr(), event.as_mut_ptr()) };
        if ret != 0 {
            return nothing_yet("ibv_get_async_event");
        }
        // SAFETY: the call succeeded, so the event is whole; the queues that it names live until it
        // is acknowledged.
        unsafe {
            let decoded = AsyncEvent::read(event.assume_init_ref());
            ffi::ibv_ack_async_event(event.as_mut_ptr());
            Ok(Some(decoded))
        }
    }
}

/// One asynchronous event, already acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncEvent {
    kind: AsyncEventKind,
    subject: AsyncSubject,
}

/// What an asynchronous event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AsyncSubject {
    /// The device as a whole.
    Device,
    /// A port, by its number.
    Port(u32),
    /// A queue pair, by its number (see [`Connection::qp_num`](crate::Connection::qp_num)).
    QueuePair(u32),
    /// A completion queue of this process.
    CompletionQueue,
    /// A shared receive queue of this process.
    SharedReceiveQueue,
    /// Something that this crate does not know.
    Unknown,
}

impl AsyncEvent {
    /// What happened.
    pub fn kind(&self) -> AsyncEventKind {
        self.kind
    }

    /// To what.
    pub fn subject(&self) -> AsyncSubject {
        self.subject
    }

    /// # Safety
    /// `raw` must be an event that the library filled and that was not acknowledged.
    unsafe fn read(raw: &ffi::ibv_async_event) -> Self {
        let kind = AsyncEventKind(raw.event_type);
        let subject = match kind {
            AsyncEventKind::CQ_ERR => AsyncSubject::CompletionQueue,
            AsyncEventKind::QP_FATAL
            | AsyncEventKind::QP_REQ_ERR
            | AsyncEventKind::QP_ACCESS_ERR
            | AsyncEventKind::COMM_EST
            | AsyncEventKind::SQ_DRAINED
            | AsyncEventKind::PATH_MIG
            | AsyncEventKind::PATH_MIG_ERR
            | AsyncEventKind::QP_LAST_WQE_REACHED => {
                // SAFETY: for these events the union holds a queue pair, alive until the acknowledgement.
                unsafe { AsyncSubject::QueuePair((*raw.element.qp).qp_num) }
            }
            AsyncEventKind::SRQ_ERR | AsyncEventKind::SRQ_LIMIT_REACHED => {
                AsyncSubject::SharedReceiveQueue
            }
            AsyncEventKind::PORT_ACTIVE
            | AsyncEventKind::PORT_ERR
            | AsyncEventKind::LID_CHANGE
            | AsyncEventKind::PKEY_CHANGE
            | AsyncEventKind::SM_CHANGE
            | AsyncEventKind::CLIENT_REREGISTER
            | AsyncEventKind::GID_CHANGE
            | AsyncEventKind::DEVICE_SPEED_CHANGE => {
                // SAFETY: for these events the union holds a port number.
                AsyncSubject::Port(unsafe { raw.element.port_num }.max(0) as u32)
            }
            AsyncEventKind::DEVICE_FATAL => AsyncSubject::Device,
            _ => AsyncSubject::Unknown,
        };
        AsyncEvent { kind, subject }
    }
}

/// The kind of an asynchronous event: a number of the device's, with names for those that are known.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "ibv_event_type")]
pub struct AsyncEventKind(u32);

super::wc::numbers!(AsyncEventKind {
    /// A completion queue overran or failed: the queue pairs on it fail too.
    CQ_ERR = IBV_EVENT_CQ_ERR;
    /// A queue pair failed and is in its error state.
    QP_FATAL = IBV_EVENT_QP_FATAL;
    /// The peer sent a request that is none.
    QP_REQ_ERR = IBV_EVENT_QP_REQ_ERR;
    /// The peer asked for what it has no right to.
    QP_ACCESS_ERR = IBV_EVENT_QP_ACCESS_ERR;
    /// The first data arrived on a queue pair before its connection was established.
    COMM_EST = IBV_EVENT_COMM_EST;
    /// A send queue was drained.
    SQ_DRAINED = IBV_EVENT_SQ_DRAINED;
    /// A connection migrated to its alternate path.
    PATH_MIG = IBV_EVENT_PATH_MIG;
    /// A migration failed.
    PATH_MIG_ERR = IBV_EVENT_PATH_MIG_ERR;
    /// The device failed and must be closed.
    DEVICE_FATAL = IBV_EVENT_DEVICE_FATAL;
    /// The link is up.
    PORT_ACTIVE = IBV_EVENT_PORT_ACTIVE;
    /// The link is down.
    PORT_ERR = IBV_EVENT_PORT_ERR;
    /// A local identifier changed.
    LID_CHANGE = IBV_EVENT_LID_CHANGE;
    /// A partition key changed.
    PKEY_CHANGE = IBV_EVENT_PKEY_CHANGE;
    /// The subnet manager changed.
    SM_CHANGE = IBV_EVENT_SM_CHANGE;
    /// A shared receive queue failed.
    SRQ_ERR = IBV_EVENT_SRQ_ERR;
    /// A shared receive queue runs low (see [`Srq::arm_limit`](crate::Srq::arm_limit)).
    SRQ_LIMIT_REACHED = IBV_EVENT_SRQ_LIMIT_REACHED;
    /// A queue pair in its error state took its last receive from its shared receive queue.
    QP_LAST_WQE_REACHED = IBV_EVENT_QP_LAST_WQE_REACHED;
    /// The subnet manager asks clients to register again.
    CLIENT_REREGISTER = IBV_EVENT_CLIENT_REREGISTER;
    /// An address of the port changed.
    GID_CHANGE = IBV_EVENT_GID_CHANGE;
    /// A work queue failed.
    WQ_FATAL = IBV_EVENT_WQ_FATAL;
    /// The speed of the link changed.
    DEVICE_SPEED_CHANGE = IBV_EVENT_DEVICE_SPEED_CHANGE;
});

impl fmt::Display for AsyncEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the function takes any number and gives a static string, or null.
        let text = unsafe { ffi::ibv_event_type_str(self.0 as _) };
        if text.is_null() {
            return write!(f, "unknown event {}", self.0);
        }
        // SAFETY: it is a static, NUL-terminated string.
        let text = unsafe { std::ffi::CStr::from_ptr(text) };
        f.write_str(&text.to_string_lossy())
    }
}
