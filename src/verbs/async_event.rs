use std::{
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use rdma_sys as ffi;

use super::{Context, last_errno};
use crate::{
    Call, Error, Result,
    numbers::AsyncEventKind,
    wait::{Gate, Until},
};

/// The asynchronous events of a device (`ibv_get_async_event(3)`): errors and changes that belong to no single operation.
///
/// The device is shared by all [`Peer`](crate::Peer)s of the process on it, and so are its events: whoever takes one, takes it
/// for all. [`AsFd`] gives the fd that becomes readable when an event is there.
#[derive(Debug)]
pub struct AsyncEvents {
    context: Arc<Context>,
    gate: Arc<Gate>,
}

/// The gates of the devices that somebody waits for events of. One for each device, since that has one fd for all who wait.
static GATES: Mutex<Vec<(usize, Weak<Gate>)>> = Mutex::new(Vec::new());

fn gate_of(context: &Context) -> Arc<Gate> {
    let address = context.as_ptr().addr();
    let mut gates = GATES.lock().unwrap_or_else(PoisonError::into_inner);
    gates.retain(|(_, gate)| gate.strong_count() > 0);
    let known = gates.iter().find(|(at, _)| *at == address);
    if let Some(gate) = known.and_then(|(_, gate)| gate.upgrade()) {
        return gate;
    }
    let gate = Arc::new(Gate::new());
    gates.push((address, Arc::downgrade(&gate)));
    gate
}

impl AsyncEvents {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        AsyncEvents {
            gate: gate_of(&context),
            context,
        }
    }

    /// Waits for the next event.
    pub fn next_event(&self) -> Result<AsyncEvent> {
        loop {
            if let Some(event) = self.wait(Until::Forever)? {
                return Ok(event);
            }
        }
    }

    /// Waits for the next event, `timeout` at most; `None` when there was none.
    pub fn next_event_timeout(&self, timeout: Duration) -> Result<Option<AsyncEvent>> {
        self.wait(Until::after(timeout))
    }

    /// The next event if there is one; never blocks.
    pub fn try_next_event(&self) -> Result<Option<AsyncEvent>> {
        self.wait(Until::Now)
    }

    fn wait(&self, until: Until) -> Result<Option<AsyncEvent>> {
        self.gate.run(self.context.as_fd(), until, || self.take())
    }

    fn take(&self) -> Result<Option<AsyncEvent>> {
        let mut event = MaybeUninit::<ffi::ibv_async_event>::zeroed();
        loop {
            // SAFETY: the context is open and `event` is ours.
            let ret =
                unsafe { ffi::ibv_get_async_event(self.context.as_ptr(), event.as_mut_ptr()) };
            if ret == 0 {
                break;
            }
            match last_errno() {
                libc::EAGAIN => return Ok(None),
                libc::EINTR => {}
                errno => return Err(Error::provider(Call::IbvGetAsyncEvent, errno)),
            }
        }
        // SAFETY: the call succeeded, so the event is whole; the queues that it names live until it is acknowledged.
        unsafe {
            let decoded = AsyncEvent::read(event.assume_init_ref());
            ffi::ibv_ack_async_event(event.as_mut_ptr());
            Ok(Some(decoded))
        }
    }
}

impl AsFd for AsyncEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.context.as_fd()
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
