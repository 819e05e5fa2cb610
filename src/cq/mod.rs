//! Completion queues and the channels that say when they have news.

mod arming;
mod channel;

use std::{
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    time::{Duration, Instant},
};

use arming::{Arming, Source};
pub(crate) use channel::{ChannelTurn, CompletionChannel};

use crate::{
    Error, Result,
    verbs::{Context, RawCq},
    wait::Until,
};
pub use crate::{
    numbers::{WcOpcode, WcStatus},
    verbs::Completion,
};

/// A completion queue: where the outcome of operations and receives is taken from.
///
/// [`poll`](Self::poll) takes what is there and never blocks. The waits block until there is something to poll for; after each, poll
/// until nothing comes, then wait again. [`AsFd`] gives the completion channel's fd for any reactor: it is readable when
/// [`try_wait`](Self::try_wait) has something.
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

/// How [`Cq::take`] waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Wait {
    polls: u32,
    timeout: Option<Duration>,
}

impl Wait {
    /// Polls some 2,000 times, then blocks, for as long as it takes. Small operations are done within the polls, so that most waits cost no
    /// system call; a long wait costs the CPU little.
    pub fn new() -> Self {
        Wait {
            polls: 2000,
            timeout: None,
        }
    }

    /// Blocks at once when nothing is there.
    pub fn block() -> Self {
        Wait {
            polls: 0,
            timeout: None,
        }
    }

    /// Never blocks: polls until something is there.
    pub fn spin() -> Self {
        Wait {
            polls: u32::MAX,
            timeout: None,
        }
    }

    /// Polls this often before it blocks; `u32::MAX` never blocks.
    pub fn polls(mut self, polls: u32) -> Self {
        self.polls = polls;
        self
    }

    /// Gives up after this time, rounded up to whole milliseconds once it blocks.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl Default for Wait {
    fn default() -> Self {
        Wait::new()
    }
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
    ) -> Result<Self> {
        let raw = RawCq::create(context, entries.max(1), channel.raw().clone(), comp_vector)?;
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

    /// Takes the completions that are there, as many as `buf` holds, without blocking; the result is the part of `buf` that was
    /// filled, empty when nothing was there.
    ///
    /// A failed operation is no error of this call: look at each completion's [`status`](Completion::status).
    ///
    /// Source: `ibv_poll_cq(3)`.
    #[inline]
    #[doc(alias = "rpma_cq_get_wc")]
    #[doc(alias = "ibv_poll_cq")]
    pub fn poll<'b>(&self, buf: &'b mut [Completion]) -> Result<&'b [Completion]> {
        self.raw.poll(buf)
    }

    /// The error of a poll that gave `ret`.
    #[doc(hidden)]
    pub fn poll_error(ret: i32) -> Error {
        crate::verbs::poll_failed(ret)
    }

    /// Takes one completion if one is there; never blocks.
    #[inline]
    pub fn poll_one(&self) -> Result<Option<Completion>> {
        let mut wc = [Completion::default()];
        Ok(self.poll(&mut wc)?.first().copied())
    }

    /// Waits until the queue has news, and arms it again.
    ///
    /// Waits may end with nothing to poll for: a completion may have been taken before its event.
    ///
    /// # Errors
    /// [`Error::SharedChannel`] where the completion channel is shared: use [`Connection::wait`](crate::Connection::wait).
    ///
    /// Source: `ibv_get_cq_event(3)`.
    #[doc(alias = "rpma_cq_wait")]
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

    /// Takes the queue's event if one is there, and arms the queue again; never blocks. `false` when there was none.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn try_wait(&self) -> Result<bool> {
        self.wait_until(Until::Now)
    }

    /// One attempt to take an event, which blocks or not as the fd is set.
    #[doc(hidden)]
    pub fn wait_as_fd_is_set(&self) -> Result<bool> {
        self.wait_until(Until::Mode)
    }

    fn wait_until(&self, until: Until) -> Result<bool> {
        self.arming.wait(&self.alone(until)?)
    }

    /// The queue as a wait of its own sees it.
    fn alone(&self, until: Until) -> Result<Waiting<'_>> {
        if self.shared {
            return Err(Error::SharedChannel);
        }
        Ok(Waiting { cq: self, until })
    }

    /// Takes the queue's next event within the time given, and leaves the queue unarmed: what [`try_wait`](Self::try_wait) and its
    /// like do, for those who call [`arm`](Self::arm) themselves. `None` waits for ever. `false` when there was none.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[doc(alias = "ibv_get_cq_event")]
    pub fn wait_event(&self, timeout: Option<Duration>) -> Result<bool> {
        let until = timeout.map_or(Until::Forever, Until::after);
        self.arming.event(&self.alone(until)?)
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Waits on the channel that `cqs` share; gives the queue that fired, armed again, and its place in the list.
    pub(crate) fn wait_shared(cqs: [Option<&Cq>; 2], until: Until) -> Result<Option<(&Cq, usize)>> {
        let Some(first) = cqs[0] else { return Ok(None) };
        let known = || {
            let places = cqs.into_iter().enumerate();
            places.filter_map(|(n, cq)| Some((cq?, n)))
        };
        if let Some((cq, n)) = known().find(|(cq, _)| cq.arming.take_owed()) {
            cq.arm_again(until)?;
            return Ok(Some((cq, n)));
        }
        let Some(turn) = first.channel.turn(until) else {
            return Ok(None);
        };
        loop {
            let Some(id) = turn.event(until)? else {
                return Ok(None);
            };
            match known().find(|(cq, _)| cq.raw.id() == id) {
                Some((cq, n)) => {
                    cq.count_event();
                    cq.arm_again(until)?;
                    return Ok(Some((cq, n)));
                }
                None => first.channel.raw().ack_stranger(id),
            }
        }
    }

    /// The event of this queue was taken from its channel: the queue is armed no longer.
    pub(crate) fn count_event(&self) {
        self.arming.fired();
        self.raw.count_event();
    }

    fn arm_again(&self, until: Until) -> Result<()> {
        self.arming.arm_again(&Waiting { cq: self, until })
    }

    /// Asks for an event at the next completion, or with `solicited_only` at the next one that was [solicited](crate::Signal::solicited) or
    /// failed. A new queue is armed, and the waits arm it again: this is for those who take events with
    /// [`wait_event`](Self::wait_event).
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

    /// Waits and takes in one call: polls; when nothing is there polls again for the budget of `wait`, then arms the queue, polls once more and
    /// blocks. Gives at least one completion, or none when the time is over.
    ///
    /// Where the completion is there within the polls, this makes no system call. Where it has to block, it leaves the queue unarmed: the
    /// next wait of this type sees to that by itself, but before waiting for the fd by other means [`arm`](Self::arm) and poll.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), where it has to block.
    pub fn take<'b>(&self, buf: &'b mut [Completion], wait: Wait) -> Result<&'b [Completion]> {
        if buf.is_empty() {
            return Err(Error::invalid("buf", "no room for a completion"));
        }
        let n = self.take_n(buf, wait)?;
        Ok(buf.get(..n).unwrap_or_default())
    }

    fn take_n(&self, buf: &mut [Completion], wait: Wait) -> Result<usize> {
        let n = self.raw.poll(buf)?.len();
        if n > 0 {
            return Ok(n);
        }
        let deadline = wait
            .timeout
            .and_then(|timeout| Instant::now().checked_add(timeout));
        let mut polls = 0u32;
        while polls < wait.polls {
            let n = self.raw.poll(buf)?.len();
            if n > 0 {
                return Ok(n);
            }
            if wait.polls != u32::MAX {
                polls += 1;
            }
            if polls % 64 == 0 && deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(0);
            }
            std::hint::spin_loop();
        }
        let until = deadline.map_or(Until::Forever, Until::Deadline);
        let queue = self.alone(until)?;
        self.arming.take(&queue, || Ok(self.raw.poll(buf)?.len()))
    }

    /// Makes the fd of the completion channel non-blocking, or blocking as it is at first. The methods of this type behave the same
    /// in both modes: the mode is for reactors that want non-blocking fds.
    pub fn set_nonblocking(&self, yes: bool) -> Result<()> {
        self.channel.set_nonblocking(yes)
    }

    /// The older interface's way to take one completion, with its operation names.
    ///
    /// `Ok(None)` when nothing is there.
    #[deprecated(note = "use `poll` or `poll_one`, which give the whole completion")]
    #[doc(alias = "rpma_cq_get_completion")]
    #[allow(deprecated)]
    pub fn get_completion(&self) -> Result<Option<OldCompletion>> {
        Ok(self.poll_one()?.map(OldCompletion::from))
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

    fn turn(&self) -> Option<ChannelTurn<'_>> {
        self.cq.channel.turn(self.until)
    }

    fn event(&self, turn: &ChannelTurn<'_>) -> Result<bool> {
        loop {
            match turn.event(self.until)? {
                None => return Ok(false),
                Some(id) if id == self.cq.raw.id() => {
                    self.cq.raw.count_event();
                    return Ok(true);
                }
                // Nobody else should be on this channel; whoever it is, must not wait for ever at its destruction.
                Some(stranger) => self.cq.channel.raw().ack_stranger(stranger),
            }
        }
    }

    fn ask(&self, solicited_only: bool) -> Result<()> {
        self.cq.raw.arm(solicited_only)
    }
}

impl AsFd for Cq {
    /// The completion channel's fd: readable when an event is there. Shared with the connection's other queue where the
    /// channel is shared.
    #[doc(alias = "rpma_cq_get_fd")]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// The operations as librpma's older interface (0.9 to 0.13) named them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "rpma_op")]
#[deprecated(note = "use `WcOpcode`")]
pub enum OldOperation {
    /// A read, and so a flush that was done by reading.
    #[doc(alias = "RPMA_OP_READ")]
    Read,
    /// A write.
    #[doc(alias = "RPMA_OP_WRITE")]
    Write,
    /// A flush.
    #[doc(alias = "RPMA_OP_FLUSH")]
    Flush,
    /// A send.
    #[doc(alias = "RPMA_OP_SEND")]
    Send,
    /// A receive.
    #[doc(alias = "RPMA_OP_RECV")]
    Recv,
    /// A receive that a write with immediate data used up.
    #[doc(alias = "RPMA_OP_RECV_RDMA_WITH_IMM")]
    RecvRdmaWithImm,
    /// One that the older interface had no name for.
    Other(WcOpcode),
}

/// A completion as librpma's older interface (0.9 to 0.13) gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "rpma_completion")]
#[deprecated(note = "use `Completion`")]
#[allow(deprecated)]
pub struct OldCompletion {
    /// The number given to the operation.
    pub op_context: u64,
    /// Which operation it was.
    pub op: OldOperation,
    /// How it ended.
    pub op_status: WcStatus,
    /// The number of bytes received.
    pub byte_len: u32,
    /// The immediate data, in the host's byte order.
    pub imm: Option<u32>,
}

#[allow(deprecated)]
impl From<Completion> for OldCompletion {
    fn from(wc: Completion) -> Self {
        OldCompletion {
            op_context: wc.wr_id(),
            op: match wc.opcode() {
                WcOpcode::RDMA_READ => OldOperation::Read,
                WcOpcode::RDMA_WRITE | WcOpcode::ATOMIC_WRITE => OldOperation::Write,
                WcOpcode::FLUSH => OldOperation::Flush,
                WcOpcode::SEND => OldOperation::Send,
                WcOpcode::RECV => OldOperation::Recv,
                WcOpcode::RECV_RDMA_WITH_IMM => OldOperation::RecvRdmaWithImm,
                other => OldOperation::Other(other),
            },
            op_status: wc.status(),
            byte_len: wc.byte_len(),
            imm: wc.imm_data(),
        }
    }
}
