use std::{fmt, net::SocketAddr, time::Duration};

use super::{
    conn_cfg::ConnCfg,
    connection::Connection,
    event::ConnEvent,
    parts::Parts,
    raw::{Address, ConnParam, EventChannel, Id, OrUnknown, Target},
};
use crate::{
    Call, Error, Peer, RecvBatch, Result, mr::LocalSlice, numbers::CmEventKind, wait::Until,
};

/// A connection that is not made yet: one that this side asks for ([`ConnRequest::new`]), or one
/// that a peer asks for ([`Endpoint::next_request`](crate::Endpoint::next_request)).
///
/// It has its queues already: receives can be posted before the connection is made, so that no
/// message finds none. Dropping an incoming request rejects it; dropping an outgoing one forgets
/// it. Either way all that it took is given back.
#[doc(alias = "rpma_conn_req")]
#[must_use = "dropping an incoming request rejects it"]
pub struct ConnRequest {
    parts: Parts,
    role: Role,
    param: Param,
    offered_depth: Option<u8>,
    deadline: Until,
    timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Active,
    Passive,
}

/// What of the configuration is needed when the connection is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Param {
    retry_count: u8,
    rnr_retry_count: u8,
    pub(super) min_rnr_timer: u8,
    responder_resources: u8,
    /// Not above what the peer of an incoming request answers, unless it is 255: as many as there
    /// are.
    pub(super) initiator_depth: u8,
}

impl ConnRequest {
    /// A request for a connection to `node`, an address or a name, and `service`, a port number or
    /// a service's name.
    ///
    /// Blocks until name, address and route are resolved, for [`ConnCfg::timeout`] at most; all
    /// addresses of the name are tried in order, and what is left of the time is shared evenly
    /// among those that are left.
    ///
    /// # Errors
    /// [`Error::Resolve`] for a name that is none, [`Error::InvalidArgument`] for a service that is
    /// neither known nor a port number, [`Error::NoDevice`] for a loopback address that no device
    /// has, [`Error::Connection`] where no route leads there, [`Error::WrongDevice`] where the
    /// route goes over another device than `peer`'s, [`Error::TimedOut`], and what the provider
    /// says of the queues.
    ///
    /// Source: `rdma_resolve_addr(3)`, `rdma_resolve_route(3)`, `rdma_create_qp(3)`.
    #[doc(alias = "rpma_conn_req_new")]
    pub fn new(peer: &Peer, node: &str, service: &str, cfg: &ConnCfg) -> Result<Self> {
        ConnRequest::to(peer, Target::Name(node, Some(service)), cfg)
    }

    /// As [`new`](Self::new), for a connection to an address and port. Nothing is resolved by name.
    pub fn new_addr(peer: &Peer, addr: SocketAddr, cfg: &ConnCfg) -> Result<Self> {
        ConnRequest::to(peer, Target::Addr(addr), cfg)
    }

    fn to(peer: &Peer, target: Target<'_>, cfg: &ConnCfg) -> Result<Self> {
        cfg.check()?;
        cfg.check_limits(peer.capabilities())?;
        let deadline = Until::after(cfg.timeout);
        let addresses = target.addresses(false, deadline, cfg.timeout)?;
        let mut last = None;
        for (n, address) in addresses.iter().enumerate() {
            // An address that nobody has takes all the time that it is given: some must be left for
            // those behind it.
            let share = deadline.share(addresses.len() - n);
            match route_to(peer, address, cfg, share) {
                Ok(id) => {
                    let parts = Parts::create(peer, id, cfg, None)
                        .map_err(|(_, err)| cfg.explain(peer, err))?;
                    return Ok(ConnRequest::with_parts(parts, Role::Active, cfg, deadline));
                }
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

    /// Takes the request of a peer that came in on `id`; on failure rejects and destroys it. `None`
    /// where that failed because the peer has given up meanwhile.
    pub(super) fn incoming(
        peer: &Peer,
        mut id: Id,
        event: ConnEvent,
        cfg: &ConnCfg,
    ) -> Result<Option<Self>> {
        id.reject_on_drop(true);
        EventChannel::create().and_then(|channel| {
            // First of all: no event of this connection may land on the listener's channel from now
            // on.
            id.migrate(channel)?;
            check_device(peer, &id)?;
            cfg.check()?;
            cfg.check_limits(peer.capabilities())?;
            if cfg.type_of_service.is_some() {
                return Err(Error::invalid(
                    "type_of_service",
                    "comes too late for an incoming request: EndpointCfg has one that does not",
                ));
            }
            match cfg.ack_timeout {
                Some(exponent) => id.set_ack_timeout(exponent),
                None => Ok(()),
            }
        })?;
        let deadline = Until::after(cfg.timeout);
        let offered = event.initiator_depth();
        let private_data = event.into_private_data();
        match Parts::create(peer, id, cfg, Some(private_data)) {
            Ok(parts) => {
                let mut request = ConnRequest::with_parts(parts, Role::Passive, cfg, deadline);
                request.limit_depth(offered);
                Ok(Some(request))
            }
            Err((mut id, err)) if !id.can_have_qp() => {
                id.reject_on_drop(false);
                drop(id);
                log::debug!(target: "rpma", "a peer gave up before its request was taken: {err}");
                Ok(None)
            }
            Err((_, err)) => Err(cfg.explain(peer, err)),
        }
    }

    /// Holds the depth to what the peer offers, where the event tells; see [`Connection::agree`].
    fn limit_depth(&mut self, offered: u8) {
        if self.parts.iwarp() {
            return;
        }
        let asked = &mut self.param.initiator_depth;
        if *asked != u8::MAX {
            *asked = (*asked).min(offered);
        }
        self.offered_depth = Some(offered);
    }

    fn with_parts(parts: Parts, role: Role, cfg: &ConnCfg, deadline: Until) -> Self {
        ConnRequest {
            parts,
            role,
            offered_depth: None,
            param: Param {
                retry_count: cfg.retry_count,
                rnr_retry_count: cfg.rnr_retry_count,
                min_rnr_timer: cfg.min_rnr_timer,
                responder_resources: cfg.responder_resources,
                initiator_depth: cfg.initiator_depth,
            },
            deadline,
            timeout: cfg.timeout,
        }
    }

    /// Asks the peer for the connection, or accepts the one that it asked for, with private data
    /// for it (at most 56 bytes in a request and 196 in an answer on InfiniBand and RoCE, 251 on
    /// iWARP). Does not wait: the outcome comes as an event; see [`Connection::wait_established`].
    /// But soft-iWARP connects its socket here, which takes two minutes where a firewall drops the
    /// packets. Signals to the thread wait meanwhile, but for SIGHUP, SIGINT, SIGQUIT and SIGTERM.
    ///
    /// # Errors
    /// [`Error::TooLong`] for private data that do not fit, before anything is sent; and what
    /// `rdma_connect(3)` or `rdma_accept(3)` says. An incoming request that fails here is rejected.
    #[doc(alias = "rpma_conn_req_connect")]
    pub fn connect(mut self, private_data: Option<&[u8]>) -> Result<Connection> {
        let private_data = private_data.unwrap_or_default();
        let (limit, limited_by) = match (self.parts.iwarp(), self.role) {
            (true, _) => (
                IWARP_PRIVATE_DATA,
                "the private data of an iWARP connection",
            ),
            (false, Role::Active) => (56, "the private data of a request"),
            (false, Role::Passive) => (196, "the private data of an answer"),
        };
        check_private_data(private_data, limit, limited_by)?;
        let param = ConnParam {
            private_data,
            responder_resources: self.param.responder_resources,
            initiator_depth: self.param.initiator_depth,
            retry_count: (self.param.retry_count)
                .min(self.parts.peer.capabilities().max_retry_count()),
            rnr_retry_count: self.param.rnr_retry_count,
            srq: self.parts.srq.is_some(),
        };
        match self.role {
            Role::Active => self.parts.id.connect(param)?,
            // A failure rejects: the drop does it.
            Role::Passive => self.parts.id.accept(param)?,
        }
        self.parts.id.reject_on_drop(false);
        let conn = Connection::new(self.parts, self.param, self.deadline, self.timeout);
        if let Some(depth) = self.offered_depth {
            conn.agree(depth);
            conn.set_min_rnr_timer();
        }
        Ok(conn)
    }

    /// Rejects an incoming request, with private data for the peer (at most 148 bytes on InfiniBand
    /// and RoCE, 251 on iWARP). An outgoing request is forgotten.
    ///
    /// # Errors
    /// [`Error::TooLong`] for private data that do not fit (the request is then rejected without),
    /// and what `rdma_reject(3)` says.
    #[doc(alias = "rpma_conn_req_delete")]
    pub fn reject(mut self, private_data: Option<&[u8]>) -> Result<()> {
        if self.role == Role::Active {
            return Ok(());
        }
        let private_data = private_data.unwrap_or_default();
        let limit = if self.parts.iwarp() {
            IWARP_PRIVATE_DATA
        } else {
            148
        };
        check_private_data(private_data, limit, "the private data of a rejection")?;
        self.parts.id.reject_on_drop(false);
        self.parts.id.reject(private_data)?;
        self.parts.close()
    }

    /// The private data that came with an incoming request; empty for an outgoing one. Some
    /// transports pad it with zeros.
    #[doc(alias = "rpma_conn_req_get_private_data")]
    pub fn private_data(&self) -> &[u8] {
        self.parts.private_data.get().map_or(&[], |data| data)
    }

    /// Is it a request of a peer's?
    pub fn is_incoming(&self) -> bool {
        self.role == Role::Passive
    }

    /// The address of the peer, where the connection manager knows it.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.parts.id.peer_addr()
    }

    /// The local address of the connection, where the connection manager knows it.
    pub fn local_addr(&self) -> Option<SocketAddr> {
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

    /// Receives to be posted in one call, before the connection is made; see
    /// [`Connection::recv_batch`].
    pub fn recv_batch(&self) -> Result<RecvBatch<'_>> {
        self.parts.qp.recv_batch()
    }
}

impl fmt::Debug for ConnRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.is_incoming() { "from" } else { "to" };
        let (addr, qp) = (OrUnknown(self.peer_addr()), self.qp_num());
        write!(
            f,
            "ConnRequest({way} {addr}, qp {qp}, {:?})",
            self.parts.peer
        )
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
    address.check_remote()?;
    let id = Id::create(EventChannel::create()?)?;
    if let Some(tos) = cfg.type_of_service {
        id.set_type_of_service(tos)?;
    }
    // From the peer's own address where it has one of the same kind: that keeps the route on its
    // device.
    let source = peer
        .source()
        .filter(|source| source.family() == address.family());
    let timed_out = || Error::TimedOut {
        call: Call::AddressAndRouteResolution,
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

/// The connection manager counts private data in a byte, and MPA's enhanced handshake (RFC 6581)
/// puts 4 bytes of read depths before them: longer ones are accepted, and the connection is then
/// never made.
const IWARP_PRIVATE_DATA: usize = 251;

/// What the kernel is told where there is no deadline.
const FOREVER: Duration = Duration::from_secs(3600);

/// The next event, which must be `kind`; `None` when the time is over.
fn expect(id: &Id, kind: CmEventKind, deadline: Until) -> Result<Option<()>> {
    let Some(event) = id.channel()?.next(deadline)? else {
        return Ok(None);
    };
    let event = ConnEvent::of(&event);
    if event.cm_kind() == kind {
        return Ok(Some(()));
    }
    if event.status() == libc::ETIMEDOUT && deadline.is_over() {
        return Ok(None);
    }
    Err(event.into_error())
}
