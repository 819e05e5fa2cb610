use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
};

use crate::{
    Result,
    verbs::{Context, CqId, RawChannel},
    wait::{Gate, Turn, Until},
};

/// A completion channel, with the turn to read it.
#[derive(Debug)]
pub(crate) struct CompletionChannel {
    raw: Arc<RawChannel>,
    gate: Gate,
}

impl CompletionChannel {
    pub(crate) fn create(context: &Arc<Context>) -> Result<Arc<Self>> {
        let raw = Arc::new(RawChannel::create(context)?);
        Ok(Arc::new(CompletionChannel {
            raw,
            gate: Gate::new(),
        }))
    }

    pub(crate) fn raw(&self) -> &Arc<RawChannel> {
        &self.raw
    }

    /// The turn to wait on the channel; `None` when the time is over first, or when `is_known` says
    /// that there is news without it.
    pub(crate) fn turn(
        &self,
        until: Until,
        is_known: impl Fn() -> bool,
    ) -> Option<ChannelTurn<'_>> {
        Some(ChannelTurn {
            turn: self.gate.turn(until, is_known)?,
            raw: &self.raw,
        })
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }
}

impl AsFd for CompletionChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.raw.as_fd()
    }
}

/// The turn to wait on a channel. What is armed is armed, and what fires is noted, while the turn
/// is held: so no waiter can miss that another took the event that it waits for.
pub(crate) struct ChannelTurn<'c> {
    turn: Turn<'c>,
    raw: &'c Arc<RawChannel>,
}

impl ChannelTurn<'_> {
    /// A queue has fired, and nobody arms it: that is news to those who wait for the turn.
    pub(crate) fn tell(&self) {
        self.turn.tell();
    }

    /// The queue of the next event within the time given. The event must be counted on that queue
    /// before the turn is given back.
    pub(crate) fn event(&self, until: Until) -> Result<Option<CqId>> {
        self.turn
            .wait(self.raw.as_fd(), until, || self.raw.take_event())
    }
}
