//! The asynchronous events of a device.

use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use crate::{
    AsyncEvent, Result,
    verbs::Context,
    wait::{Gate, Until, Waker, set_nonblocking},
};

/// The asynchronous events of a device (`ibv_get_async_event(3)`): errors and changes that belong
/// to no single operation.
///
/// The device is shared by all [`Peer`](crate::Peer)s of the process on it, and so are its events:
/// whoever takes one, takes it for all. [`AsFd`] gives the fd that becomes readable when an event
/// is there; the first wait puts it into non-blocking mode. Under `EPOLLET` take events after each
/// edge until [`try_next_event`](Self::try_next_event) gives `None`.
#[derive(Debug)]
pub struct AsyncEvents {
    // Before the context, whose address names it.
    gate: Arc<Gate>,
    context: Arc<Context>,
}

/// The gates of the devices that somebody waits for events of. One for each device, since that has
/// one fd for all who wait.
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
    ///
    /// # Errors
    /// What the provider says; [`Error::Woken`](crate::Error::Woken) where a [`waker`](Self::waker)
    /// ended it.
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

    /// What ends waits for the device's events from another thread, whichever handle they wait by.
    ///
    /// # Errors
    /// [`Error::Provider`](crate::Error::Provider) where there is no fd left for it.
    pub fn waker(&self) -> Result<Waker> {
        self.gate.waker()
    }

    fn wait(&self, until: Until) -> Result<Option<AsyncEvent>> {
        // Each time, since the fd is not this crate's alone: others of the process may have opened
        // the device. An event can vanish between poll(2) and the read, when its queue is
        // destroyed.
        set_nonblocking(self.as_fd(), true)?;
        let take = || self.context.take_async_event();
        self.gate.run(self.as_fd(), until, take)
    }
}

impl AsFd for AsyncEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.context.as_fd()
    }
}
