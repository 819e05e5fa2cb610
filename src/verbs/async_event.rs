use std::mem::MaybeUninit;

use rdma_sys as ffi;

use super::{Context, nothing_yet};
use crate::{Call, Result, numbers::AsyncEventKind};

impl Context {
    /// Takes and acknowledges the next asynchronous event of the device, where there is one
    /// (`ibv_get_async_event(3)`); blocks or not as the fd is set.
    pub(crate) fn take_async_event(&self) -> Result<Option<AsyncEvent>> {
        let mut event = MaybeUninit::<ffi::ibv_async_event>::zeroed();
        // SAFETY: the context is open and `event` is ours.
        let ret = unsafe { ffi::ibv_get_async_event(self.as_ptr(), event.as_mut_ptr()) };
        if ret != 0 {
            return nothing_yet(Call::IbvGetAsyncEvent);
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
        let kind = AsyncEventKind::from_raw(raw.event_type);
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
                // SAFETY: for these events the union holds a queue pair, alive until the
                // acknowledgement.
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
