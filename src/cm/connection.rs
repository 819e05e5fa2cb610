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
    event::{CmEventKind, ConnEvent},
    host::OrUnknown,
    parts::Parts,
    request::{ConnRequest, Param},
};
use crate::{Cq, Error, Peer, PeerCfg, Result, Srq, verbs::Qp, wait::Until};

/// A connection, from the moment when it is asked for or accepted.
///
/// Operations are in the list of methods below: each checks all of its arguments, posts one work request and returns; its
/// outcome comes as a [`Completion`](crate::Completion) on [`cq`](Self::cq). [`batch`](Self::batch) posts many with one doorbell.
///
/// Its events (established, closed, lost) come by [`next_event`](Self::next_event) and its like; [`event_fd`](Self::event_fd) is readable when one is
/// there. All methods may be called by several threads at once.
///
/// Dropping a connection closes it: the peer sees it closed, operations in flight are gone without a completion. The drop
/// does not wait for the peer.
#[doc(alias = "rpma_conn")]
pub struct Connection {
    pub(super) parts: Parts,
    param: Param,
    initiator_depth: OnceLock<u8>,
    established: AtomicBool,
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
            deadline,
            timeout,
        }
    }

    /// Connects to `node` and `service` and waits until the connection is established: [`ConnRequest::new`],
    /// [`ConnRequest::connect`] and [`wait_established`](Self::wait_established) under one deadline, [`ConnCfg::timeout`] from now.
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

    /// Waits until the connection is established, `timeout` at most. Returns at once where that was seen before.
    ///
    /// # Errors
    /// [`Error::Connection`] with the event that came instead (rejected, with status and private data; unreachable; closed; …),
    /// [`Error::TimedOut`].
    pub fn wait_established(&self, timeout: Duration) -> Result<()> {
        self.established_by(Until::after(timeout), timeout)
    }

    fn established_by(&self, until: Until, timeout: Duration) -> Result<()> {
        loop {
            if self.established.load(Ordering::Acquire) {
                return Ok(());
            }
            let Some(event) = self.event(until)? else {
                return Err(Error::TimedOut {
                    call: "establishing the connection",
                    after: timeout,
                });
            };
            match event.cm_kind() {
                CmEventKind::ESTABLISHED => return Ok(()),
                CmEventKind::CONNECT_RESPONSE | CmEventKind::ADDR_CHANGE => {}
                _ => return Err(event.into_error()),
            }
        }
    }

    /// Waits for the connection's next event.
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

    /// One attempt, which blocks or not as the fd is set.
    #[doc(hidden)]
    pub fn next_event_as_fd_is_set(&self) -> Result<Option<ConnEvent>> {
        self.event(Until::Mode)
    }

    fn event(&self, until: Until) -> Result<Option<ConnEvent>> {
        let Some(event) = self.parts.id.channel()?.next(until)? else {
            return Ok(None);
        };
        let event = event.to_event();
        log::debug!(target: "rpma", "connection {}: {:?}", self.qp_num(), event.cm_kind());
        if event.cm_kind() == CmEventKind::ESTABLISHED {
            // The answer's private data; there is one answer only, and the passive side has none.
            if self
                .parts
                .private_data
                .set(event.private_data().into())
                .is_ok()
            {
                self.agree(event.initiator_depth());
            }
            self.established.store(true, Ordering::Release);
        }
        Ok(Some(event))
    }

    /// Takes note of how many reads the peer answers, and sets what the connection manager leaves
    /// at its worst value; on a queue pair that is connected.
    pub(super) fn agree(&self, offered_depth: u8) {
        let depth = offered_depth.min(self.param.initiator_depth);
        let depth = match self.peer().capabilities().max_initiator_depth {
            0 => depth,
            most => depth.min(most.min(255) as u8),
        };
        let _ = self.initiator_depth.set(depth);
        if !self.parts.iwarp() {
            if let Err(err) = self.parts.qp.set_min_rnr_timer(self.param.min_rnr_timer) {
                log::debug!(target: "rpma", "connection {}: {err}", self.qp_num());
            }
        }
    }

    /// The fd that is readable when an event of the connection is there.
    #[doc(alias = "rpma_conn_get_event_fd")]
    pub fn event_fd(&self) -> BorrowedFd<'_> {
        self.parts.id.event_fd()
    }

    /// Makes [`event_fd`](Self::event_fd) blocking, or non-blocking as it is at first. The methods of this type behave the same in both
    /// modes.
    pub fn set_event_fd_nonblocking(&self, yes: bool) -> Result<()> {
        self.parts.id.channel()?.set_nonblocking(yes)
    }

    /// Asks the peer to close the connection, and does not wait: the end comes as an event, [`ConnEventKind::Closed`](crate::ConnEventKind::Closed), on
    /// both sides; on InfiniBand and RoCE it comes on this side once the peer has answered by disconnecting too, or by dropping its connection.
    /// This side's operations in flight, and its receives, complete with [`WcStatus::WR_FLUSH_ERR`](crate::WcStatus::WR_FLUSH_ERR).
    ///
    /// # Errors
    /// What `rdma_disconnect(3)` says, such as `EINVAL` where the connection is none.
    #[doc(alias = "rpma_conn_disconnect")]
    pub fn disconnect(&self) -> Result<()> {
        self.parts.id.disconnect()
    }

    /// Closes the connection and gives back all that it took, as dropping it does, and says what the library said.
    #[doc(alias = "rpma_conn_delete")]
    pub fn close(self) -> Result<()> {
        self.parts.close()
    }

    /// Waits until one of the completion queues has news, and arms it again; for connections with a
    /// [shared channel](ConnCfg::shared_channel).
    ///
    /// # Errors
    /// [`Error::NotSharedChannel`] where each queue has its own channel: use [`Cq::wait`].
    #[doc(alias = "rpma_conn_wait")]
    pub fn wait(&self) -> Result<Fired<'_>> {
        loop {
            if let Some(fired) = self.wait_until(Until::Forever)? {
                return Ok(fired);
            }
        }
    }

    /// Waits until one of the completion queues has news, `timeout` at most; `None` when neither had.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Option<Fired<'_>>> {
        self.wait_until(Until::after(timeout))
    }

    /// Takes an event of the completion queues if one is there; never blocks.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn try_wait(&self) -> Result<Option<Fired<'_>>> {
        self.wait_until(Until::Now)
    }

    /// One attempt, which blocks or not as the fd is set.
    #[doc(hidden)]
    pub fn wait_as_fd_is_set(&self) -> Result<Option<Fired<'_>>> {
        self.wait_until(Until::Mode)
    }

    fn wait_until(&self, until: Until) -> Result<Option<Fired<'_>>> {
        if !self.parts.cq.is_shared() {
            return Err(Error::NotSharedChannel);
        }
        let cqs = [Some(&self.parts.cq), self.parts.rcq.as_ref()];
        Ok(Cq::wait_shared(cqs, until)?.map(|(cq, n)| Fired { cq, is_rcq: n == 1 }))
    }

    /// The fd of the shared completion channel.
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

    /// The completion queue of receives: the shared receive queue's where that has one, else the connection's own where it was asked for;
    /// `None` where receives complete on the main one.
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

    /// The private data of the peer: a passive connection has those of the request; an active one those of the answer, once it is
    /// established. Some transports pad them with zeros.
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

    /// The number of the queue pair: what its completions carry ([`Completion::qp_num`](crate::Completion::qp_num)).
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

    /// The inline data, in bytes, that one operation may carry, as the device granted it.
    pub fn max_inline(&self) -> u32 {
        self.parts.qp.max_inline()
    }

    /// The longest message, in bytes.
    pub fn max_message_size(&self) -> u64 {
        self.parts.qp.max_message()
    }

    /// The number of slices that one operation may gather or scatter, as the device granted it.
    pub fn max_sge(&self) -> u32 {
        self.parts.qp.max_send_sge()
    }

    /// The number of operations that can be outstanding, as the device granted it.
    pub fn sq_size(&self) -> u32 {
        self.parts.qp.sq_depth()
    }

    /// The number of receives that can be outstanding, as the device granted it; 0 with a shared receive queue.
    pub fn rq_size(&self) -> u32 {
        self.parts.qp.rq_depth()
    }

    /// How many reads, atomics and flushes this side can have in flight, as both sides agreed;
    /// `None` until the active side has seen the connection established. With 0 none of them ever
    /// completes.
    pub fn initiator_depth(&self) -> Option<u8> {
        self.initiator_depth.get().copied()
    }

    /// In which order the bytes of writes come to be seen in this side's memory, of which the
    /// device says something only on few machines.
    pub fn data_in_order(&self) -> crate::DataInOrder {
        self.parts.qp.data_in_order()
    }

    /// Can the connection do this flush natively, as far as this side is concerned?
    pub fn has_native_flush(&self, kind: crate::FlushKind) -> bool {
        let features = self.parts.qp.features();
        match kind {
            crate::FlushKind::Persistent => features.flush_persistent,
            crate::FlushKind::Visibility => features.flush_visibility,
        }
    }

    /// Does the connection have an atomic write of the device's own? Else it is an inline write behind a fence.
    pub fn has_native_atomic_write(&self) -> bool {
        self.parts.qp.features().atomic_write
    }

    #[inline]
    pub(super) fn qp(&self) -> &Qp {
        &self.parts.qp
    }

    /// The C queue pair, for calls that this crate does not have. It lives as long as the connection.
    pub fn as_raw_qp(&self) -> *mut rdma_sys::ibv_qp {
        self.parts.qp.as_ptr()
    }

    /// The older interface's completion fd: that of the main CQ's channel.
    #[deprecated(note = "use `cq().as_fd()`, or `completion_fd()` with a shared channel")]
    #[doc(alias = "rpma_conn_get_completion_fd")]
    pub fn get_completion_fd(&self) -> BorrowedFd<'_> {
        self.parts.cq.as_fd()
    }

    /// The older interface's wait for completions of the main CQ.
    #[deprecated(note = "use `cq().wait()`")]
    #[doc(alias = "rpma_conn_completion_wait")]
    pub fn completion_wait(&self) -> Result<()> {
        self.parts.cq.wait().map(|_| ())
    }

    /// The older interface's way to take one completion of the main CQ.
    #[deprecated(note = "use `cq().poll()`")]
    #[doc(alias = "rpma_conn_completion_get")]
    #[allow(deprecated)]
    pub fn completion_get(&self) -> Result<Option<crate::cq::OldCompletion>> {
        self.parts.cq.get_completion()
    }
}
