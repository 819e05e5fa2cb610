use std::{
    fmt,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

use super::{
    conn_cfg::ConnCfg,
    connection::Connection,
    event::ConnEvent,
    raw::{Address, EventChannel, Id, OrUnknown, RawEvent, Target},
    request::ConnRequest,
};
use crate::{
    Error, Peer, Result,
    numbers::CmEventKind,
    wait::{Until, Waker},
};

/// The configuration of an endpoint.
#[derive(Debug, Clone, Copy, Default)]
pub struct EndpointCfg {
    backlog: u32,
    type_of_service: Option<u8>,
}

impl EndpointCfg {
    /// The defaults.
    pub fn new() -> Self {
        EndpointCfg::default()
    }

    /// How many requests may wait to be taken; more are rejected by the kernel. Default: 0, which
    /// is the system's own limit.
    pub fn backlog(mut self, requests: u32) -> Self {
        self.backlog = requests;
        self
    }

    /// The type of service of the packets of the endpoint's connections. Default: the system's.
    pub fn type_of_service(mut self, tos: u8) -> Self {
        self.type_of_service = Some(tos);
        self
    }
}

/// A listening endpoint: where peers ask for connections.
///
/// [`AsFd`] gives an fd that is readable when a request waits. Dropping the endpoint stops
/// listening; requests that were not taken are rejected, those that were live on.
#[doc(alias = "rpma_ep")]
pub struct Endpoint {
    id: Id,
    peer: Peer,
}

impl Endpoint {
    /// Listens on the local address `node` and the port or service `service` ("0" lets the system
    /// choose: see [`local_addr`](Self::local_addr)).
    ///
    /// # Errors
    /// [`Error::Resolve`] for a name that is none, [`Error::InvalidArgument`] for a service that is
    /// neither known nor a port number; what `rdma_bind_addr(3)` and `rdma_listen(3)` say, such as
    /// `EADDRINUSE`; [`Error::WrongDevice`] where the address belongs to another device than
    /// `peer`'s.
    #[doc(alias = "rpma_ep_listen")]
    pub fn listen(peer: &Peer, node: &str, service: &str) -> Result<Self> {
        Endpoint::listen_with(peer, node, service, &EndpointCfg::default())
    }

    /// As [`listen`](Self::listen), with a configuration.
    pub fn listen_with(peer: &Peer, node: &str, service: &str, cfg: &EndpointCfg) -> Result<Self> {
        Endpoint::on(peer, Target::Name(node, Some(service)), cfg)
    }

    /// As [`listen_with`](Self::listen_with), on an address and port. Nothing is resolved by name.
    pub fn listen_addr(peer: &Peer, addr: SocketAddr, cfg: &EndpointCfg) -> Result<Self> {
        Endpoint::on(peer, Target::Addr(addr), cfg)
    }

    fn on(peer: &Peer, target: Target<'_>, cfg: &EndpointCfg) -> Result<Self> {
        let mut last = None;
        for address in target.addresses(true, Until::Forever, Duration::ZERO)? {
            match listen_on(peer, &address, cfg) {
                Ok(id) => {
                    return Ok(Endpoint {
                        id,
                        peer: peer.clone(),
                    });
                }
                Err(err) => last = Some(err),
            }
        }
        Err(last.unwrap_or_else(|| Error::invalid("node", "resolves to nothing")))
    }

    /// The address and port that the endpoint listens on.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.id.local_addr()
    }

    /// The peer that it was made on.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Waits for the next request, and gives it queues as `cfg` says. Requests that their peers
    /// have given up meanwhile are passed over.
    ///
    /// # Errors
    /// What the provider says of the queues: the request is then rejected, and the endpoint goes
    /// on. [`Error::Connection`] with [`CmEventKind::DEVICE_REMOVAL`] when the device is gone.
    /// [`Error::Woken`] where a [`waker`](Self::waker) ended the wait.
    ///
    /// Source: `rdma_get_cm_event(3)`.
    #[doc(alias = "rpma_ep_next_conn_req")]
    pub fn next_request(&self, cfg: &ConnCfg) -> Result<ConnRequest> {
        loop {
            if let Some(request) = self.request(cfg, Until::Forever)? {
                return Ok(request);
            }
        }
    }

    /// Waits for the next request, accepts it with `private_data` and waits until the connection is
    /// established, for [`ConnCfg::timeout`] at most: [`next_request`](Self::next_request),
    /// [`ConnRequest::connect`] and [`Connection::wait_established`] in one call, for servers that
    /// have nothing to do in between.
    ///
    /// # Errors
    /// Those of the three. What failed is that one connection; the endpoint goes on.
    pub fn accept(&self, cfg: &ConnCfg, private_data: Option<&[u8]>) -> Result<Connection> {
        let conn = self.next_request(cfg)?.connect(private_data)?;
        conn.wait_established(cfg.timeout)?;
        Ok(conn)
    }

    /// Waits for the next request, `timeout` at most; `None` when there was none. Errors as
    /// [`next_request`](Self::next_request).
    pub fn next_request_timeout(
        &self,
        cfg: &ConnCfg,
        timeout: Duration,
    ) -> Result<Option<ConnRequest>> {
        self.request(cfg, Until::after(timeout))
    }

    /// The next request if one waits; never blocks. Errors as [`next_request`](Self::next_request).
    pub fn try_next_request(&self, cfg: &ConnCfg) -> Result<Option<ConnRequest>> {
        self.request(cfg, Until::Now)
    }

    /// What ends the waits on this endpoint from another thread.
    ///
    /// # Errors
    /// [`Error::Provider`] where there is no fd left for it.
    pub fn waker(&self) -> Result<Waker> {
        self.id.channel()?.gate().waker()
    }

    pub(crate) fn request(&self, cfg: &ConnCfg, until: Until) -> Result<Option<ConnRequest>> {
        let channel = self.id.channel()?;
        loop {
            let Some(event) = channel.next(until)? else {
                return Ok(None);
            };
            match CmEventKind::from_raw(event.kind()) {
                CmEventKind::CONNECT_REQUEST => {
                    if let Some(request) = self.take(event, cfg)? {
                        return Ok(Some(request));
                    }
                }
                CmEventKind::DEVICE_REMOVAL => return Err(ConnEvent::of(&event).into_error()),
                // A peer that gave up before its request was taken, for one. The id is not ours to
                // destroy.
                kind => {
                    drop(event);
                    log::debug!(target: "rpma", "the endpoint ignores {kind:?}");
                }
            }
            // Peers that ask and give up again and again must not hold the caller.
            if matches!(until, Until::Deadline(_)) && until.is_over() {
                return Ok(None);
            }
        }
    }

    fn take(&self, event: RawEvent, cfg: &ConnCfg) -> Result<Option<ConnRequest>> {
        let details = ConnEvent::of(&event);
        let id = event.into_request(self.id.channel()?)?;
        ConnRequest::incoming(&self.peer, id, details, cfg)
    }

    /// Stops listening, and says what the library said.
    #[doc(alias = "rpma_ep_shutdown")]
    pub fn close(self) -> Result<()> {
        self.id.destroy()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = OrUnknown(self.local_addr());
        write!(f, "Endpoint(at {at}, {:?})", self.peer)
    }
}

impl AsFd for Endpoint {
    /// Readable when a request waits. It is in non-blocking mode, and must stay so. Under `EPOLLET`
    /// take requests after each edge until [`try_next_request`](Self::try_next_request) gives
    /// `None`.
    #[doc(alias = "rpma_ep_get_fd")]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.id.event_fd()
    }
}

fn listen_on(peer: &Peer, address: &Address, cfg: &EndpointCfg) -> Result<Id> {
    address.check_zone()?;
    let id = Id::create(EventChannel::create()?)?;
    id.bind(address)?;
    if !address.is_unspecified() && id.raw_context() != peer.pd().context().as_ptr() {
        return Err(Error::WrongDevice {
            expected: peer.device_name(),
            actual: id.device_name(),
        });
    }
    if let Some(tos) = cfg.type_of_service {
        id.set_type_of_service(tos)?;
    }
    id.listen(cfg.backlog)?;
    Ok(id)
}
