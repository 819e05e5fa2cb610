//! Completion queues and the channels that say when they have news.

mod arming;
mod channel;
mod take;

use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    time::Duration,
};

use arming::{Arming, Source};
pub(crate) use channel::{ChannelTurn, CompletionChannel};

pub use take::Wait;

use crate::{
    Error, Result,
    verbs::{Context, RawCq},
    wait::{Until, Waker},
};
pub use crate::{
    numbers::{WcOpcode, WcStatus},
    verbs::Completion,
};

/// A completion queue: where the outcome of operations and receives is taken from.
///
/// [`poll`](Self::poll) takes what is there and never blocks. The waits block until there is
/// something to poll for; after each, poll until nothing comes, then wait again.
/// [`waker`](Self::waker) ends waits from another thread.
///
/// [`AsFd`] gives the completion channel's fd for any reactor: it is readable when
/// [`try_wait`](Self::try_wait) has something. Where the reactor tells of edges only (`EPOLLET`),
/// go on after each edge until `try_wait` has nothing: several events may stand behind one edge.
///
/// All methods may be called by several threads at once; a completion goes to one of them.
#[derive(Debug)]
#[doc(alias = "rpma_cq")]
pub struct Cq {
    raw: RawCq,
    channel: Arc<CompletionChannel>,
    shared: bool,
    arming: Arming,
}

/// The outcome of a wait with a timeout.
#[derive(Debug, Clone, Copy)]
pub struct Ready<'c> {
    cq: &'c Cq,
    ready: bool,
}

impl<'c> Ready<'c> {
    /// Did the queue have news? `false` when the time was over.
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// Takes the completions, as [`Cq::poll`] does.
    pub fn poll<'b>(&self, buf: &'b mut [Completion]) -> Result<&'b [Completion]> {
        self.cq.poll(buf)
    }

    /// The queue.
    pub fn cq(&self) -> &'c Cq {
        self.cq
    }
}

impl Cq {
    pub(crate) fn create(
        context: &Arc<Context>,
        entries: u32,
        channel: Arc<CompletionChannel>,
        shared: bool,
        comp_vector: u32,
        splits: bool,
    ) -> Result<Self> {
        let (entries, raw) = (entries.max(1), channel.raw().clone());
        let raw = RawCq::create(context, entries, raw, comp_vector, splits)?;
        let cq = Cq {
            raw,
            channel,
            shared,
            arming: Arming::new(),
        };
        cq.arm(false)?;
        Ok(cq)
    }

    pub(crate) fn raw(&self) -> &RawCq {
        &self.raw
    }

    /// The number of entries that the device gave: at least what can be outstanding.
    pub fn entries(&self) -> u32 {
        self.raw.entries()
    }

    /// Takes the completions that are there, as many as `buf` holds, without blocking; the result
    /// is the part of `buf` that was filled, empty when nothing was there.
    ///
    /// A failed operation is no error of this call: look at each completion's
    /// [`status`](Completion::status).
    ///
    /// Source: `ibv_poll_cq(3)`.
    #[inline]
    #[doc(alias = "rpma_cq_get_wc")]
    #[doc(alias = "rpma_cq_get_completion")]
    #[doc(alias = "rpma_conn_completion_get")]
    #[doc(alias = "ibv_poll_cq")]
    pub fn poll<'b>(&self, buf: &'b mut [Completion]) -> Result<&'b [Completion]> {
        self.raw.poll(buf)
    }

    /// Takes one completion if one is there; never blocks.
    #[inline]
    pub fn poll_one(&self) -> Result<Option<Completion>> {
        let mut wc = [Completion::default()];
        Ok(self.poll(&mut wc)?.first().copied())
    }

    /// Waits until the queue has news, and arms it again.
    ///
    /// Waits may end with nothing to poll for: a completion may have been taken before its event. A
    /// wait on a queue that is not armed, after [`take`](Self::take) or
    /// [`wait_event`](Self::wait_event), arms it and ends at once.
    ///
    /// # Errors
    /// [`Error::Woken`] where a [`waker`](Self::waker) ended it. [`Error::SharedChannel`] where the
    /// completion channel is shared: use [`Connection::wait`](crate::Connection::wait).
    ///
    /// Source: `ibv_get_cq_event(3)`.
    #[doc(alias = "rpma_cq_wait")]
    #[doc(alias = "rpma_conn_completion_wait")]
    #[doc(alias = "ibv_get_cq_event")]
    pub fn wait(&self) -> Result<&Self> {
        while !self.wait_until(Until::Forever)? {}
        Ok(self)
    }

    /// Waits until the queue has news, `timeout` at most, and arms it again.
    ///
    /// # Errors
    /// As [`wait`](Self::wait). That the time is over is no error: see [`Ready::is_ready`].
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Ready<'_>> {
        Ok(Ready {
            cq: self,
            ready: self.wait_until(Until::after(timeout))?,
        })
    }

    /// Takes the queue's event if one is there, and arms the queue again; never blocks. `false`
    /// when there was none.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn try_wait(&self) -> Result<bool> {
        self.wait_until(Until::Now)
    }

    /// What ends the waits on this queue from another thread. Where the completion channel is
    /// shared, those are [`Connection::wait`](crate::Connection::wait) and its like.
    ///
    /// # Errors
    /// [`Error::Provider`] where there is no fd left for it.
    pub fn waker(&self) -> Result<Waker> {
        self.channel.gate().waker()
    }

    pub(crate) fn wait_until(&self, until: Until) -> Result<bool> {
        self.arming.wait(&self.alone(until)?)
    }

    /// The queue as a wait of its own sees it.
    fn alone(&self, until: Until) -> Result<Waiting<'_>> {
        if self.shared {
            return Err(Error::SharedChannel);
        }
        Ok(Waiting { cq: self, until })
    }

    /// Waits for the queue's next event, takes it and leaves the queue unarmed: for those who call
    /// [`arm`](Self::arm) themselves, and poll once more before each wait. Of the completions of an
    /// unarmed queue this learns nothing.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[doc(alias = "ibv_get_cq_event")]
    pub fn wait_event(&self) -> Result<()> {
        while !self.event_until(Until::Forever)? {}
        Ok(())
    }

    /// [`wait_event`](Self::wait_event) for `timeout` at most; `false` when there was none.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_event_timeout(&self, timeout: Duration) -> Result<bool> {
        self.event_until(Until::after(timeout))
    }

    /// [`wait_event`](Self::wait_event) that never blocks; `false` when there was none.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn try_wait_event(&self) -> Result<bool> {
        self.event_until(Until::Now)
    }

    fn event_until(&self, until: Until) -> Result<bool> {
        self.arming.event(&self.alone(until)?)
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Waits on the channel that `cqs` share; gives the queue that fired, and its place in the
    /// list. With `arm` it is armed again, and a queue that is found unarmed is news.
    pub(crate) fn wait_shared(
        cqs: [Option<&Cq>; 2],
        until: Until,
        arm: bool,
    ) -> Result<Option<(&Cq, usize)>> {
        let Some(first) = cqs[0] else { return Ok(None) };
        let known = || {
            let places = cqs.into_iter().enumerate();
            places.filter_map(|(n, cq)| Some((cq?, n)))
        };
        let unarmed = || known().find(|(cq, _)| arm && cq.arming.is_unarmed());
        let next = || {
            // Another may arm it again before this thread looks a second time.
            let told = std::cell::Cell::new(None);
            let turn = first.channel.turn(until, || {
                told.set(unarmed());
                told.get().is_some()
            });
            // Whoever had the turn before may have left one unarmed.
            if let Some(found) = told.get().or_else(unarmed) {
                return Ok(Some(found));
            }
            let Some(turn) = turn else {
                return Ok::<_, Error>(None);
            };
            while let Some(id) = turn.event(until)? {
                match known().find(|(cq, _)| cq.raw.id() == id) {
                    Some((cq, n)) => {
                        cq.arming.fired();
                        cq.raw.count_event();
                        if !arm {
                            turn.tell();
                        }
                        return Ok(Some((cq, n)));
                    }
                    None => first.channel.raw().ack_stranger(id),
                }
            }
            Ok(None)
        };
        let found = match unarmed() {
            Some(found) => Some(found),
            None => next()?,
        };
        if let (Some((cq, _)), true) = (found, arm) {
            cq.arm(false)?;
        }
        Ok(found)
    }

    /// Asks for an event at the next completion, or with `solicited_only` at the next one that was
    /// [solicited](crate::Signal::solicited) or failed. A new queue is armed, and the waits arm it
    /// again: this is for those who take events with [`wait_event`](Self::wait_event) or
    /// [`Connection::wait_event`](crate::Connection::wait_event).
    ///
    /// After arming, poll once more: a completion may have come in between, and gives no event.
    ///
    /// Source: `ibv_req_notify_cq(3)`.
    #[doc(alias = "ibv_req_notify_cq")]
    pub fn arm(&self, solicited_only: bool) -> Result<()> {
        let until = Until::Now;
        self.arming
            .arm(&Waiting { cq: self, until }, solicited_only)
    }
}

/// A queue whose channel is its own, and a wait for it.
struct Waiting<'c> {
    cq: &'c Cq,
    until: Until,
}

impl Source for Waiting<'_> {
    type Error = Error;
    type Turn<'t>
        = ChannelTurn<'t>
    where
        Self: 't;

    fn turn(&self, is_known: impl Fn() -> bool) -> Option<ChannelTurn<'_>> {
        self.cq.channel.turn(self.until, is_known)
    }

    fn tell(turn: &ChannelTurn<'_>) {
        turn.tell();
    }

    fn event(&self, turn: &ChannelTurn<'_>) -> Result<bool> {
        loop {
            match turn.event(self.until)? {
                None => return Ok(false),
                Some(id) if id == self.cq.raw.id() => {
                    self.cq.raw.count_event();
                    return Ok(true);
                }
                // Nobody else should be on this channel; whoever it is, must not wait for ever at
                // its destruction.
                Some(stranger) => self.cq.channel.raw().ack_stranger(stranger),
            }
        }
    }

    fn ask(&self, solicited_only: bool) -> Result<()> {
        self.cq.raw.arm(solicited_only)
    }
}

impl AsFd for Cq {
    /// The completion channel's fd: readable when an event is there. Shared with the connection's
    /// other queue where the channel is shared.
    ///
    /// It is in non-blocking mode, and must stay so. Poll it only: an event that is read from it by
    /// other means than this crate's is never acknowledged, and dropping the queue then waits for
    /// ever (`ibv_destroy_cq(3)` waits for each event's acknowledgement).
    #[doc(alias = "rpma_cq_get_fd")]
    #[doc(alias = "rpma_conn_get_completion_fd")]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}
