use std::{
    fmt,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    conn_cfg::ConnCfg,
    event::ConnEvent,
    parts::Parts,
    raw::{EventChannel, OrUnknown, RawEvent},
    request::{ConnRequest, Param},
};
use crate::{
    Call, Cq, Error, Peer, PeerCfg, Result, Srq,
    numbers::CmEventKind,
    ops::Qp,
    wait::{Turn, Until, Waker},
};

/// A connection, from the moment when it is asked for or accepted.
///
/// Operations are in the list of methods below: each checks all of its arguments, posts one work
/// request and returns; its outcome comes as a [`Completion`](crate::Completion) on
/// [`cq`](Self::cq). [`batch`](Self::batch) posts many with one doorbell.
///
/// Its events (established, closed, lost) come by [`next_event`](Self::next_event) and its like;
/// [`event_fd`](Self::event_fd) is readable when one is there. All methods may be called by several
/// threads at once.
///
/// Dropping a connection closes it: the peer sees it closed, operations in flight are gone without
/// a completion. The drop does not wait for the peer, but on soft-iWARP: in the midst of a handshake
/// that the peer does not answer, dropping, [`close`](Self::close) and
/// [`disconnect`](Self::disconnect) take up to 10 s there, inside the kernel.
#[doc(alias = "rpma_conn")]
pub struct Connection {
    pub(super) parts: Parts,
    param: Param,
    // What events have said; set by whoever took the event, with the turn to read the channel held.
    pub(super) initiator_depth: OnceLock<u8>,
    established: AtomicBool,
    end: OnceLock<ConnEvent>,
    deadline: Until,
    timeout: Duration,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (OrUnknown(self.local_addr()), OrUnknown(self.peer_addr()));
        let (qp, peer) = (self.qp_num(), self.peer());
        write!(f, "Connection({from} to {to}, qp {qp}, {peer:?})")
    }
}

/// Which completion queue of a connection with a shared channel has news.
#[derive(Debug, Clone, Copy)]
pub struct Fired<'c> {
    /// The queue.
    pub cq: &'c Cq,
    /// Is it the receive CQ?
    pub is_rcq: bool,
}

impl Connection {
    pub(super) fn new(parts: Parts, param: Param, deadline: Until, timeout: Duration) -> Self {
        Connection {
            parts,
            param,
            initiator_depth: OnceLock::new(),
            established: AtomicBool::new(false),
            end: OnceLock::new(),
            deadline,
            timeout,
        }
    }

    /// Connects to `node` and `service` and waits until the connection is established:
    /// [`ConnRequest::new`], [`ConnRequest::connect`] and
    /// [`wait_established`](Self::wait_established) under one deadline, [`ConnCfg::timeout`] from
    /// now.
    ///
    /// # Errors
    /// Those of the three.
    pub fn open(
        peer: &Peer,
        node: &str,
        service: &str,
        cfg: &ConnCfg,
        private_data: Option<&[u8]>,
    ) -> Result<Self> {
        Connection::establish(ConnRequest::new(peer, node, service, cfg)?, private_data)
    }

    /// As [`open`](Self::open), to an address and port. Nothing is resolved by name.
    pub fn open_addr(
        peer: &Peer,
        addr: SocketAddr,
        cfg: &ConnCfg,
        private_data: Option<&[u8]>,
    ) -> Result<Self> {
        Connection::establish(ConnRequest::new_addr(peer, addr, cfg)?, private_data)
    }

    fn establish(request: ConnRequest, private_data: Option<&[u8]>) -> Result<Self> {
        let conn = request.connect(private_data)?;
        conn.established_by(conn.deadline, conn.timeout)?;
        Ok(conn)
    }

    /// Waits until the connection is established, `timeout` at most. Returns at once where that was
    /// seen before, here or by another thread that took the event.
    ///
    /// # Errors
    /// [`Error::Connection`] with the event that came instead (rejected, with status and private
    /// data; unreachable; closed; …), [`Error::TimedOut`], [`Error::Woken`].
    pub fn wait_established(&self, timeout: Duration) -> Result<()> {
        self.established_by(Until::after(timeout), timeout)
    }

    fn established_by(&self, until: Until, timeout: Duration) -> Result<()> {
        let timed_out = || Error::TimedOut {
            call: Call::Establishment,
            after: timeout,
        };
        loop {
            if let Some(outcome) = self.known_outcome() {
                return outcome;
            }
            let channel = self.parts.id.channel()?;
            let turn = channel.gate().turn(until, || self.is_outcome_known());
            // Whoever had the turn before may have taken the event.
            if let Some(outcome) = self.known_outcome() {
                return outcome;
            }
            let turn = turn.ok_or_else(timed_out)?;
            self.take(channel, turn, until)?.ok_or_else(timed_out)?;
        }
    }

    fn is_outcome_known(&self) -> bool {
        self.established.load(Ordering::Acquire) || self.end.get().is_some()
    }

    /// How establishing the connection has ended, where that is known.
    fn known_outcome(&self) -> Option<Result<()>> {
        if self.established.load(Ordering::Acquire) {
            return Some(Ok(()));
        }
        self.end.get().map(|event| Err(event.clone().into_error()))
    }

    /// Waits for the connection's next event.
    ///
    /// # Errors
    /// What the provider says; [`Error::Woken`] where an [`event_waker`](Self::event_waker) ended
    /// it.
    ///
    /// Source: `rdma_get_cm_event(3)`.
    #[doc(alias = "rpma_conn_next_event")]
    pub fn next_event(&self) -> Result<ConnEvent> {
        loop {
            if let Some(event) = self.event(Until::Forever)? {
                return Ok(event);
            }
        }
    }

    /// Waits for the connection's next event, `timeout` at most; `None` when there was none.
    pub fn next_event_timeout(&self, timeout: Duration) -> Result<Option<ConnEvent>> {
        self.event(Until::after(timeout))
    }

    /// The connection's next event if there is one; never blocks.
    pub fn try_next_event(&self) -> Result<Option<ConnEvent>> {
        self.event(Until::Now)
    }

    pub(crate) fn event(&self, until: Until) -> Result<Option<ConnEvent>> {
        let channel = self.parts.id.channel()?;
        let Some(turn) = channel.gate().turn(until, || false) else {
            return Ok(None);
        };
        self.take(channel, turn, until)
    }

    /// The channel's next event. What it says of the connection is kept before the turn to read
    /// ends, and whoever waits for such news is told: another may hold the turn from then on.
    fn take(
        &self,
        channel: &EventChannel,
        turn: Turn<'_>,
        until: Until,
    ) -> Result<Option<ConnEvent>> {
        let event = turn.wait(channel.as_fd(), until, || channel.take())?;
        let noted = event.map(|event| self.note(event));
        if noted.is_some() {
            turn.tell();
        }
        drop(turn);
        let Some((event, answered)) = noted else {
            return Ok(None);
        };
        log::debug!(target: "rpma", "connection {}: {:?}", self.qp_num(), event.cm_kind());
        if answered {
            self.set_min_rnr_timer();
        }
        Ok(Some(event))
    }

    /// Keeps what the event says of the connection, and says whether it is the answer that an
    /// active side waits for.
    fn note(&self, event: RawEvent) -> (ConnEvent, bool) {
        let event = ConnEvent::of(&event);
        let mut answered = false;
        match event.cm_kind() {
            CmEventKind::ESTABLISHED => {
                // There is one answer only, and the passive side has private data already.
                let answer = event.private_data().into();
                answered = self.parts.private_data.set(answer).is_ok();
                if answered {
                    self.agree(event.initiator_depth());
                }
                self.established.store(true, Ordering::Release);
            }
            CmEventKind::CONNECT_RESPONSE | CmEventKind::ADDR_CHANGE => {}
            _ => {
                let _ = self.end.set(event.clone());
            }
        }
        (event, answered)
    }

    /// Takes note of how many reads the peer answers. On iWARP the events do not tell: soft-iWARP
    /// (Linux 6.12) gives the number that the peer asks for.
    pub(super) fn agree(&self, offered_depth: u8) {
        if self.parts.iwarp() {
            return;
        }
        let depth = offered_depth.min(self.param.initiator_depth);
        let depth = match self.peer().capabilities().max_initiator_depth {
            0 => depth,
            most => depth.min(most.min(255) as u8),
        };
        if self.initiator_depth.set(depth).is_ok() && depth == 0 {
            self.parts.qp.refuse_reads();
        }
    }

    /// Sets what the connection manager leaves at its worst value; on a queue pair that is
    /// connected.
    pub(super) fn set_min_rnr_timer(&self) {
        if self.parts.iwarp() {
            return;
        }
        if let Err(err) = self
            .parts
            .qp
            .raw()
            .set_min_rnr_timer(self.param.min_rnr_timer)
        {
            log::debug!(target: "rpma", "connection {}: {err}", self.qp_num());
        }
    }

    /// What ends waits for the connection's events from another thread:
    /// [`next_event`](Self::next_event), [`wait_established`](Self::wait_established) and their
    /// like. Waits for completions have [`Cq::waker`].
    ///
    /// # Errors
    /// [`Error::Provider`] where there is no fd left for it.
    pub fn event_waker(&self) -> Result<Waker> {
        self.parts.id.channel()?.gate().waker()
    }

    /// The completion queues that are the connection's alone.
    pub(crate) fn own_cqs(&self) -> impl Iterator<Item = &Cq> {
        [Some(&self.parts.cq), self.parts.rcq.as_ref()]
            .into_iter()
            .flatten()
    }

    /// The fd that is readable when an event of the connection is there. It is in non-blocking
    /// mode, and must stay so. Under `EPOLLET` take events after each edge until
    /// [`try_next_event`](Self::try_next_event) gives `None`.
    #[doc(alias = "rpma_conn_get_event_fd")]
    pub fn event_fd(&self) -> BorrowedFd<'_> {
        self.parts.id.event_fd()
    }

    /// Asks the peer to close the connection, and does not wait: the end comes as an event,
    /// [`ConnEventKind::Closed`](crate::ConnEventKind::Closed), on both sides; on InfiniBand and
    /// RoCE it comes on this side once the peer has answered by disconnecting too, or by dropping
    /// its connection. This side's operations in flight, and its receives, complete with
    /// [`WcStatus::WR_FLUSH_ERR`](crate::WcStatus::WR_FLUSH_ERR).
    ///
    /// # Errors
    /// What `rdma_disconnect(3)` says, such as `EINVAL` where the connection is none.
    #[doc(alias = "rpma_conn_disconnect")]
    pub fn disconnect(&self) -> Result<()> {
        self.parts.id.disconnect()
    }

    /// Closes the connection and gives back all that it took, as dropping it does, and says what
    /// the library said.
    #[doc(alias = "rpma_conn_delete")]
    pub fn close(self) -> Result<()> {
        self.parts.close()
    }

    /// Waits until one of the completion queues has news, and arms it again; for connections with a
    /// [shared channel](ConnCfg::shared_channel).
    ///
    /// # Errors
    /// [`Error::NotSharedChannel`] where each queue has its own channel: use [`Cq::wait`].
    /// [`Error::Woken`] where the [`Cq::waker`] of one of the queues ended it.
    #[doc(alias = "rpma_conn_wait")]
    pub fn wait(&self) -> Result<Fired<'_>> {
        loop {
            if let Some(fired) = self.fired(Until::Forever, true)? {
                return Ok(fired);
            }
        }
    }

    /// Waits until one of the completion queues has news, `timeout` at most; `None` when neither
    /// had.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Option<Fired<'_>>> {
        self.fired(Until::after(timeout), true)
    }

    /// Takes an event of the completion queues if one is there; never blocks.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn try_wait(&self) -> Result<Option<Fired<'_>>> {
        self.fired(Until::Now, true)
    }

    /// Waits for the next event of the completion queues, takes it and leaves its queue unarmed:
    /// for those who call [`Cq::arm`] themselves, and poll once more before each wait.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_event(&self) -> Result<Fired<'_>> {
        loop {
            if let Some(fired) = self.fired(Until::Forever, false)? {
                return Ok(fired);
            }
        }
    }

    /// [`wait_event`](Self::wait_event) for `timeout` at most; `None` when there was none.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_event_timeout(&self, timeout: Duration) -> Result<Option<Fired<'_>>> {
        self.fired(Until::after(timeout), false)
    }

    /// [`wait_event`](Self::wait_event) that never blocks; `None` when there was none.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn try_wait_event(&self) -> Result<Option<Fired<'_>>> {
        self.fired(Until::Now, false)
    }

    pub(crate) fn fired(&self, until: Until, arm: bool) -> Result<Option<Fired<'_>>> {
        if !self.parts.cq.is_shared() {
            return Err(Error::NotSharedChannel);
        }
        let cqs = [Some(&self.parts.cq), self.parts.rcq.as_ref()];
        let found = Cq::wait_shared(cqs, until, arm)?;
        Ok(found.map(|(cq, n)| Fired { cq, is_rcq: n == 1 }))
    }

    /// The fd of the shared completion channel; see [`Cq::as_fd`](Cq#method.as_fd) for what may be
    /// done with it. Under `EPOLLET` go on after each edge until [`try_wait`](Self::try_wait) gives
    /// `None`.
    ///
    /// # Errors
    /// [`Error::NotSharedChannel`] where each queue has its own channel.
    #[doc(alias = "rpma_conn_get_compl_fd")]
    pub fn completion_fd(&self) -> Result<BorrowedFd<'_>> {
        if !self.parts.cq.is_shared() {
            return Err(Error::NotSharedChannel);
        }
        Ok(self.parts.cq.as_fd())
    }

    /// The main completion queue.
    #[doc(alias = "rpma_conn_get_cq")]
    #[inline]
    pub fn cq(&self) -> &Cq {
        &self.parts.cq
    }

    /// The completion queue of receives: the shared receive queue's where that has one, else the
    /// connection's own where it was asked for; `None` where receives complete on the main one.
    #[doc(alias = "rpma_conn_get_rcq")]
    pub fn rcq(&self) -> Option<&Cq> {
        self.parts
            .srq
            .as_ref()
            .and_then(Srq::rcq)
            .or(self.parts.rcq.as_ref())
    }

    /// The shared receive queue, where the connection has one.
    pub fn srq(&self) -> Option<&Srq> {
        self.parts.srq.as_ref()
    }

    /// The private data of the peer: a passive connection has those of the request; an active one
    /// those of the answer, once it is established. Some transports pad them with zeros.
    #[doc(alias = "rpma_conn_get_private_data")]
    pub fn private_data(&self) -> &[u8] {
        self.parts.private_data.get().map_or(&[], |data| data)
    }

    /// Takes note of what the peer says of itself; see [`PeerCfg`]. Persistent flushes need it.
    #[doc(alias = "rpma_conn_apply_remote_peer_cfg")]
    pub fn apply_peer_cfg(&self, cfg: &PeerCfg) {
        self.parts
            .qp
            .set_direct_write_to_pmem(cfg.direct_write_to_pmem());
    }

    /// The number of the queue pair: what its completions carry
    /// ([`Completion::qp_num`](crate::Completion::qp_num)).
    #[doc(alias = "rpma_conn_get_qp_num")]
    pub fn qp_num(&self) -> u32 {
        self.parts.qp.num()
    }

    /// The peer that it was made on.
    pub fn peer(&self) -> &Peer {
        &self.parts.peer
    }

    /// The local address of the connection.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.parts.id.local_addr()
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.parts.id.peer_addr()
    }

    #[inline]
    pub(crate) fn qp(&self) -> &Qp {
        &self.parts.qp
    }

    /// The C queue pair, for calls that this crate does not have. It lives as long as the
    /// connection.
    pub fn as_raw_qp(&self) -> *mut rdma_sys::ibv_qp {
        self.parts.qp.as_ptr()
    }
}
