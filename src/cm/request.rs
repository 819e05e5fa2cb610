use std::{
    ptr::NonNull,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use rdma_sys as ffi;

use super::{
    addr::{self, Address},
    channel::EventChannel,
    conn_cfg::ConnCfg,
    connection::Connection,
    event::{CmEventKind, ConnEvent},
    id::{ConnParam, Id},
};
use crate::{
    Cq, Error, LocalRegion, Peer, RecvBatch, Result, Srq,
    cq::CompletionChannel,
    mr::LocalSlice,
    verbs::{
        Qp,
        qp::{Features, QpParts},
    },
    wait::Until,
};

/// A connection that is not made yet: one that this side asks for ([`ConnRequest::new`]), or one that a peer asks for
/// ([`Endpoint::next_request`](crate::Endpoint::next_request)).
///
/// It has its queues already: receives can be posted before the connection is made, so that no message finds none.
/// Dropping an incoming request rejects it; dropping an outgoing one forgets it. Either way all that it took is given back.
#[derive(Debug)]
#[doc(alias = "rpma_conn_req")]
#[must_use = "dropping an incoming request rejects it"]
pub struct ConnRequest {
    parts: Parts,
    role: Role,
    param: Param,
    deadline: Until,
    timeout: Duration,
    // Taken by `connect` and `reject`: what is left is not rejected on drop.
    pending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Active,
    Passive,
}

/// What of the configuration is needed when the connection is made.
#[derive(Debug, Clone, Copy)]
struct Param {
    retry_count: u8,
    rnr_retry_count: u8,
    responder_resources: u8,
    initiator_depth: u8,
}

/// What a request and the connection that it becomes hold. The order of the fields is the order in which they go: the queue pair (with
/// its id) before the queues that it completes on and the memory that it reads into.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) qp: Qp,
    pub(super) id: Id,
    pub(super) rcq: Option<Cq>,
    pub(super) cq: Cq,
    pub(super) srq: Option<Srq>,
    pub(super) private_data: OnceLock<Box<[u8]>>,
    _scratch: Arc<LocalRegion>,
    pub(super) peer: Peer,
}

impl ConnRequest {
    /// A request for a connection to `node`, an address or a name, and `service`, a port number or a service's name.
    ///
    /// Blocks until address and route are resolved, for [`ConnCfg::timeout`] at most; all addresses of the name are tried in order.
    ///
    /// # Errors
    /// [`Error::Resolve`] for a name that is none, [`Error::Connection`] where no route leads there,
    /// [`Error::WrongDevice`] where the route goes over another device than `peer`'s, [`Error::TimedOut`], and what the provider says of
    /// the queues.
    ///
    /// Source: `rdma_resolve_addr(3)`, `rdma_resolve_route(3)`, `rdma_create_qp(3)`.
    #[doc(alias = "rpma_conn_req_new")]
    pub fn new(peer: &Peer, node: &str, service: &str, cfg: &ConnCfg) -> Result<Self> {
        cfg.check()?;
        let deadline = Until::after(cfg.timeout);
        let addresses = addr::resolve(node, Some(service), false)?;
        let mut last = None;
        for address in &addresses {
            match route_to(peer, address, cfg, deadline) {
                Ok(id) => return ConnRequest::with_id(peer, id, Role::Active, cfg, deadline, None),
                Err(err) => {
                    log::debug!(target: "rpma", "{address:?}: {err}");
                    last = Some(err);
                    if deadline.is_over() {
                        break;
                    }
                }
            }
        }
        Err(last.unwrap_or_else(|| Error::invalid("node", "resolves to nothing")))
    }

    /// Takes the request of a peer that came in on `id`; on failure rejects and destroys it.
    pub(super) fn incoming(
        peer: &Peer,
        mut id: Id,
        event: ConnEvent,
        cfg: &ConnCfg,
    ) -> Result<Self> {
        let prepared = EventChannel::create().and_then(|channel| {
            // First of all: no event of this connection may land on the listener's channel from now on.
            id.migrate(channel)?;
            check_device(peer, &id)?;
            cfg.check()
        });
        if let Err(err) = prepared {
            reject(&id, &[]);
            return Err(err);
        }
        let deadline = Until::after(cfg.timeout);
        let private_data = event.into_private_data();
        ConnRequest::with_id(peer, id, Role::Passive, cfg, deadline, Some(private_data))
    }

    fn with_id(
        peer: &Peer,
        id: Id,
        role: Role,
        cfg: &ConnCfg,
        deadline: Until,
        private_data: Option<Box<[u8]>>,
    ) -> Result<Self> {
        let parts = match Parts::create(peer, id, cfg, private_data) {
            Ok(parts) => parts,
            Err((id, err)) => {
                if role == Role::Passive {
                    reject(&id, &[]);
                }
                return Err(err);
            }
        };
        Ok(ConnRequest {
            parts,
            role,
            param: Param {
                retry_count: cfg.retry_count,
                rnr_retry_count: cfg.rnr_retry_count,
                responder_resources: cfg.responder_resources,
                initiator_depth: cfg.initiator_depth,
            },
            deadline,
            timeout: cfg.timeout,
            pending: role == Role::Passive,
        })
    }

    /// Asks the peer for the connection, or accepts the one that it asked for, with private data for it (at most 56 bytes in a request and
    /// 196 in an answer on InfiniBand and RoCE, 255 on iWARP). Does not wait: the outcome comes as an event; see
    /// [`Connection::wait_established`].
    ///
    /// # Errors
    /// [`Error::TooLong`] for private data that do not fit, before anything is sent; and what `rdma_connect(3)` or `rdma_accept(3)` says. An
    /// incoming request that fails here is rejected.
    #[doc(alias = "rpma_conn_req_connect")]
    pub fn connect(mut self, private_data: Option<&[u8]>) -> Result<Connection> {
        let private_data = private_data.unwrap_or_default();
        let (limit, limited_by) = match (self.parts.iwarp(), self.role) {
            (true, _) => (255, "the connection manager's private data"),
            (false, Role::Active) => (56, "the private data of a request"),
            (false, Role::Passive) => (196, "the private data of an answer"),
        };
        check_private_data(private_data, limit, limited_by)?;
        let param = ConnParam {
            private_data,
            responder_resources: self.param.responder_resources,
            initiator_depth: self.param.initiator_depth,
            retry_count: self.param.retry_count,
            rnr_retry_count: self.param.rnr_retry_count,
            srq: self.parts.srq.is_some(),
        };
        match self.role {
            Role::Active => self.parts.id.connect(param)?,
            // A failure rejects: the drop does it.
            Role::Passive => self.parts.id.accept(param)?,
        }
        self.pending = false;
        let passive = self.role == Role::Passive;
        let (parts, deadline, timeout) = self.into_parts();
        Ok(Connection::new(parts, passive, deadline, timeout))
    }

    /// Rejects an incoming request, with private data for the peer (at most 148 bytes on InfiniBand and RoCE). An outgoing request is forgotten.
    ///
    /// # Errors
    /// [`Error::TooLong`] for private data that do not fit (the request is then rejected without), and what `rdma_reject(3)` says.
    #[doc(alias = "rpma_conn_req_delete")]
    pub fn reject(mut self, private_data: Option<&[u8]>) -> Result<()> {
        if self.role == Role::Active {
            return Ok(());
        }
        let private_data = private_data.unwrap_or_default();
        let limit = if self.parts.iwarp() { 255 } else { 148 };
        check_private_data(private_data, limit, "the private data of a rejection")?;
        self.pending = false;
        self.parts.id.reject(private_data)?;
        let (parts, ..) = self.into_parts();
        parts.close()
    }

    /// The private data that came with an incoming request; empty for an outgoing one. Some transports pad it with zeros.
    #[doc(alias = "rpma_conn_req_get_private_data")]
    pub fn private_data(&self) -> &[u8] {
        self.parts.private_data.get().map_or(&[], |data| data)
    }

    /// Is it a request of a peer's?
    pub fn is_incoming(&self) -> bool {
        self.role == Role::Passive
    }

    /// The address of the peer, where the connection manager knows it.
    pub fn peer_addr(&self) -> Option<std::net::SocketAddr> {
        self.parts.id.peer_addr()
    }

    /// The local address of the connection, where the connection manager knows it.
    pub fn local_addr(&self) -> Option<std::net::SocketAddr> {
        self.parts.id.local_addr()
    }

    /// The number of the queue pair: what its completions carry.
    pub fn qp_num(&self) -> u32 {
        self.parts.qp.num()
    }

    /// Posts a receive before the connection is made; see [`Connection::recv`].
    #[doc(alias = "rpma_conn_req_recv")]
    pub fn recv(&self, dst: &LocalSlice<'_>, wr_id: u64) -> Result<()> {
        self.parts.qp.recv(std::slice::from_ref(dst), wr_id)
    }

    /// Receives to be posted in one call, before the connection is made; see [`Connection::recv_batch`].
    pub fn recv_batch(&self) -> Result<RecvBatch<'_>> {
        RecvBatch::on_qp(&self.parts.qp)
    }

    fn into_parts(self) -> (Parts, Until, Duration) {
        let (deadline, timeout) = (self.deadline, self.timeout);
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, and its only field that owns anything is read out once.
        (unsafe { std::ptr::read(&this.parts) }, deadline, timeout)
    }
}

impl Drop for ConnRequest {
    fn drop(&mut self) {
        if self.pending {
            reject(&self.parts.id, &[]);
        }
    }
}

/// Rejects, and logs where that fails: the peer then learns by the destruction of the id.
fn reject(id: &Id, private_data: &[u8]) {
    if let Err(err) = id.reject(private_data) {
        log::warn!(target: "rpma", "{err}");
    }
}

fn check_private_data(data: &[u8], limit: usize, limited_by: &'static str) -> Result<()> {
    if data.len() <= limit {
        return Ok(());
    }
    Err(Error::TooLong {
        argument: "private_data",
        length: data.len() as u64,
        limit: limit as u64,
        limited_by,
    })
}

fn check_device(peer: &Peer, id: &Id) -> Result<()> {
    if id.raw_context() == peer.pd().context().as_ptr() {
        return Ok(());
    }
    Err(Error::WrongDevice {
        expected: peer.device_name(),
        actual: id.device_name(),
    })
}

/// An id with address and route resolved.
fn route_to(peer: &Peer, address: &Address, cfg: &ConnCfg, deadline: Until) -> Result<Id> {
    let id = Id::create(EventChannel::create()?)?;
    if let Some(tos) = cfg.type_of_service {
        id.set_type_of_service(tos)?;
    }
    // From the peer's own address where it has one of the same kind: that keeps the route on its device.
    let source = peer
        .source()
        .filter(|source| source.family() == address.family());
    let timed_out = || Error::TimedOut {
        call: "address and route resolution",
        after: cfg.timeout,
    };
    id.resolve_addr(source, address, deadline.left_or(FOREVER))?;
    expect(&id, CmEventKind::ADDR_RESOLVED, deadline)?.ok_or_else(timed_out)?;
    check_device(peer, &id)?;
    if let Some(exponent) = cfg.ack_timeout {
        id.set_ack_timeout(exponent)?;
    }
    id.resolve_route(deadline.left_or(FOREVER))?;
    expect(&id, CmEventKind::ROUTE_RESOLVED, deadline)?.ok_or_else(timed_out)?;
    Ok(id)
}

/// What the kernel is told where there is no deadline.
const FOREVER: Duration = Duration::from_secs(3600);

/// The next event, which must be `kind`; `None` when the time is over.
fn expect(id: &Id, kind: CmEventKind, deadline: Until) -> Result<Option<()>> {
    let Some(event) = id.channel()?.next(deadline)? else {
        return Ok(None);
    };
    let event = event.to_event();
    if event.cm_kind() == kind {
        return Ok(Some(()));
    }
    if event.status() == libc::ETIMEDOUT && deadline.is_over() {
        return Ok(None);
    }
    Err(event.into_error())
}

impl Parts {
    /// The queues of a connection on `id`; on failure gives the id back.
    #[allow(clippy::result_large_err)]
    fn create(
        peer: &Peer,
        mut id: Id,
        cfg: &ConnCfg,
        private_data: Option<Box<[u8]>>,
    ) -> std::result::Result<Self, (Id, Error)> {
        let made = (|| {
            let scratch = peer.scratch()?;
            let context = peer.pd().context();
            let max_message = context.max_message_size(id.port().max(1))?;
            Ok((scratch, max_message, Queues::create(peer, &mut id, cfg)?))
        })();
        let (scratch, max_message, queues) = match made {
            Ok(made) => made,
            Err(err) => return Err((id, err)),
        };
        let slice = match scratch.slice(0..8) {
            Ok(slice) => slice.sge,
            Err(err) => return Err((id, err)),
        };
        let parts = QpParts {
            qp: queues.qp,
            cap: queues.cap,
            extended: queues.extended,
            features: queues.features,
            flush_method: cfg.flush_method,
            pd_tag: peer.tag(),
            max_message,
            scratch: slice,
            has_srq: cfg.srq.is_some(),
        };
        // SAFETY: the queue pair was just created as the parts say; the id that owns it goes into the same struct.
        let qp = match unsafe { Qp::new(parts) } {
            Ok(qp) => qp,
            Err(err) => {
                id.destroy_qp();
                return Err((id, err));
            }
        };
        let data = OnceLock::new();
        if let Some(private_data) = private_data {
            let _ = data.set(private_data);
        }
        Ok(Parts {
            qp,
            id,
            rcq: queues.rcq,
            cq: queues.cq,
            srq: cfg.srq.clone(),
            private_data: data,
            _scratch: scratch,
            peer: peer.clone(),
        })
    }

    pub(super) fn iwarp(&self) -> bool {
        self.peer.capabilities().transport.is_iwarp()
    }

    /// Gives everything back and reports what was refused.
    pub(super) fn close(self) -> Result<()> {
        let Parts {
            qp,
            id,
            rcq,
            cq,
            srq,
            private_data: _,
            _scratch,
            peer: _,
        } = self;
        drop(qp);
        let result = id.destroy();
        drop((rcq, cq, srq));
        result
    }
}

/// A queue pair with the queues that it completes on.
struct Queues {
    qp: NonNull<ffi::ibv_qp>,
    cap: ffi::ibv_qp_cap,
    extended: bool,
    features: Features,
    rcq: Option<Cq>,
    cq: Cq,
}

impl Queues {
    fn create(peer: &Peer, id: &mut Id, cfg: &ConnCfg) -> Result<Self> {
        let own_srq_cq = cfg.srq.as_ref().is_some_and(|srq| srq.rcq().is_some());
        let receives = cfg.srq.as_ref().map_or(cfg.rq_size, Srq::depth);
        let separate = cfg.rcq_size > 0 && !own_srq_cq;
        // What can be outstanding; at first as asked for, then, where the device granted longer queues, as granted.
        let mut sends = cfg.sq_size;
        let mut receives = receives;
        for last in [false, true] {
            let on_cq = sends.saturating_add(if separate || own_srq_cq { 0 } else { receives });
            let cq_size = cfg.cq_size.max(on_cq);
            let rcq_size = separate.then(|| cfg.rcq_size.max(receives));
            let (cq, rcq) = create_cqs(peer, cfg, cq_size, rcq_size)?;
            let (qp, cap, extended, features) = create_qp(peer, id, cfg, &cq, rcq.as_ref())?;
            let granted = match cfg.srq {
                Some(_) => receives,
                None => cap.max_recv_wr.max(receives),
            };
            let full = cap.max_send_wr.max(sends);
            let fits = if separate || own_srq_cq {
                cq.entries() >= full && rcq.as_ref().is_none_or(|rcq| rcq.entries() >= granted)
            } else {
                cq.entries() >= full.saturating_add(granted)
            };
            if fits || last {
                return Ok(Queues {
                    qp,
                    cap,
                    extended,
                    features,
                    rcq,
                    cq,
                });
            }
            id.destroy_qp();
            (sends, receives) = (full, granted);
        }
        Err(Error::provider("rdma_create_qp_ex", libc::EIO))
    }
}

fn create_cqs(
    peer: &Peer,
    cfg: &ConnCfg,
    cq_size: u32,
    rcq_size: Option<u32>,
) -> Result<(Cq, Option<Cq>)> {
    let context = peer.pd().context();
    let channel = CompletionChannel::create(context)?;
    let rcq_channel = match rcq_size {
        Some(_) if cfg.shared_channel => Some(channel.clone()),
        Some(_) => Some(CompletionChannel::create(context)?),
        None => None,
    };
    let create =
        |size, channel| Cq::create(context, size, channel, cfg.shared_channel, cfg.comp_vector);
    let cq = create(cq_size, channel)?;
    let rcq = match (rcq_size, rcq_channel) {
        (Some(size), Some(channel)) => Some(create(size, channel)?),
        _ => None,
    };
    Ok((cq, rcq))
}

/// The send operations that this crate posts, as a queue pair with extended operations must be asked for them.
const COMMON_OPS: ffi::ibv_qp_create_send_ops_flags = ffi::IBV_QP_EX_WITH_RDMA_WRITE
    | ffi::IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
    | ffi::IBV_QP_EX_WITH_SEND
    | ffi::IBV_QP_EX_WITH_SEND_WITH_IMM
    | ffi::IBV_QP_EX_WITH_RDMA_READ
    | ffi::IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
    | ffi::IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

/// Creates the queue pair of `id`, with as much of native flush and atomic write as device and library have together.
fn create_qp(
    peer: &Peer,
    id: &mut Id,
    cfg: &ConnCfg,
    cq: &Cq,
    rcq: Option<&Cq>,
) -> Result<(NonNull<ffi::ibv_qp>, ffi::ibv_qp_cap, bool, Features)> {
    let caps = peer.capabilities();
    let base = Features {
        atomics: caps.atomics,
        immediate: caps.immediate_data,
        ..Features::default()
    };
    let flush = caps.native_flush_visibility || caps.native_flush_persistent;
    let with_flush = Features {
        flush_visibility: caps.native_flush_visibility,
        flush_persistent: caps.native_flush_persistent,
        ..base
    };
    let atomic_write = caps.native_atomic_write;
    // An older library than the kernel may know the one and not the other.
    let candidates = [
        (
            flush && atomic_write,
            Features {
                atomic_write,
                ..with_flush
            },
        ),
        (flush, with_flush),
        (
            atomic_write,
            Features {
                atomic_write,
                ..base
            },
        ),
        (true, base),
    ];
    let mut result = Err(Error::not_supported("queue pairs on this device"));
    for (_, features) in candidates.into_iter().filter(|(possible, _)| *possible) {
        let mut ops = 0;
        if features.flush_visibility || features.flush_persistent {
            ops |= COMMON_OPS | ffi::IBV_QP_EX_WITH_FLUSH;
        }
        if features.atomic_write {
            ops |= COMMON_OPS | ffi::IBV_QP_EX_WITH_ATOMIC_WRITE;
        }
        let extended = ops != 0;
        let mut attr = qp_attr(peer, cfg, cq, rcq);
        if extended {
            attr.comp_mask |= ffi::IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
            attr.send_ops_flags = u64::from(ops);
        }
        // SAFETY: domain, CQs and SRQ are alive; `Parts` keeps them until the id, and with it the queue pair, is gone.
        match unsafe { id.create_qp(&mut attr) } {
            Ok(qp) => return Ok((qp, attr.cap, extended, features)),
            Err(err) => {
                let again = extended
                    && matches!(
                        err.raw_os_error(),
                        Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ENOSYS)
                    );
                result = Err(err);
                if !again {
                    break;
                }
            }
        }
    }
    result
}

fn qp_attr(peer: &Peer, cfg: &ConnCfg, cq: &Cq, rcq: Option<&Cq>) -> ffi::ibv_qp_init_attr_ex {
    let srq = cfg.srq.as_ref();
    let recv_cq = srq.and_then(Srq::rcq).or(rcq).unwrap_or(cq);
    ffi::ibv_qp_init_attr_ex {
        send_cq: cq.raw().as_ptr(),
        recv_cq: recv_cq.raw().as_ptr(),
        srq: srq.map_or(std::ptr::null_mut(), |srq| srq.raw().as_ptr()),
        cap: ffi::ibv_qp_cap {
            max_send_wr: cfg.sq_size,
            max_recv_wr: if srq.is_some() { 0 } else { cfg.rq_size },
            max_send_sge: cfg.max_sge,
            max_recv_sge: if srq.is_some() { 0 } else { cfg.max_sge },
            max_inline_data: cfg.max_inline.max(8),
        },
        qp_type: ffi::IBV_QPT_RC,
        comp_mask: ffi::IBV_QP_INIT_ATTR_PD,
        pd: peer.pd().as_ptr(),
        ..Default::default()
    }
}

impl Until {
    fn is_over(self) -> bool {
        matches!(self, Until::Deadline(deadline) if Instant::now() >= deadline)
            || matches!(self, Until::Now)
    }

    fn left_or(self, forever: Duration) -> Duration {
        match self {
            Until::Now => Duration::ZERO,
            Until::Deadline(deadline) => deadline.saturating_duration_since(Instant::now()),
            Until::Forever | Until::Mode => forever,
        }
    }
}
