use std::{
    ffi::c_void,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd},
    ptr::NonNull,
    sync::Arc,
    time::Duration,
};

use rdma_sys as ffi;

use super::{Address, EventChannel, signals::HeldSignals};
use crate::{
    Call, Error, Result,
    log_limit::log_failure,
    verbs::{Context, Pd, RawCq, RawQp, RawSrq, check, check_ptr, explained},
};

/// A cm id and, once it has one, its queue pair. Dropping it destroys both, the queue pair first.
#[derive(Debug)]
pub(crate) struct Id {
    raw: NonNull<ffi::rdma_cm_id>,
    channel: Option<Arc<EventChannel>>,
    has_qp: bool,
    reject_on_drop: bool,
    released: bool,
}

// SAFETY: librdmacm is thread safe; what changes in the struct changes by `&mut self` only.
unsafe impl Send for Id {}
// SAFETY: as above.
unsafe impl Sync for Id {}

/// The parameters of a connection (`rdma_connect(3)`, `rdma_accept(3)`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnParam<'a> {
    pub(crate) private_data: &'a [u8],
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry_count: u8,
    pub(crate) srq: bool,
}

/// What a queue pair is created with.
pub(crate) struct QpRequest<'a> {
    pub(crate) pd: &'a Pd,
    pub(crate) send_cq: &'a RawCq,
    pub(crate) recv_cq: &'a RawCq,
    pub(crate) srq: Option<&'a RawSrq>,
    pub(crate) cap: ffi::ibv_qp_cap,
    /// The extended send operations; none for a queue pair without the extension.
    pub(crate) send_ops: ffi::ibv_qp_create_send_ops_flags,
}

impl ConnParam<'_> {
    fn to_raw(self) -> ffi::rdma_conn_param {
        ffi::rdma_conn_param {
            private_data: if self.private_data.is_empty() {
                std::ptr::null()
            } else {
                self.private_data.as_ptr().cast()
            },
            // The callers checked it; the field has 8 bits.
            private_data_len: self.private_data.len().min(255) as u8,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            flow_control: 1,
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            srq: u8::from(self.srq),
            qp_num: 0,
        }
    }
}

impl Id {
    /// A new id whose events go to `channel`.
    pub(crate) fn create(channel: Arc<EventChannel>) -> Result<Self> {
        Id::create_on(Some(channel))
    }

    /// A new id whose calls wait until they are done.
    pub(crate) fn create_synchronous() -> Result<Self> {
        Id::create_on(None)
    }

    fn create_on(channel: Option<Arc<EventChannel>>) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        let raw_channel = channel
            .as_ref()
            .map_or(std::ptr::null_mut(), |channel| channel.as_ptr());
        // SAFETY: the channel is open, or null for synchronous calls; `raw` is ours.
        let ret = unsafe {
            ffi::rdma_create_id(
                raw_channel,
                &mut raw,
                std::ptr::null_mut(),
                ffi::RDMA_PS_TCP,
            )
        };
        check(Call::RdmaCreateId, ret).map_err(explained)?;
        let raw = check_ptr(Call::RdmaCreateId, raw)?;
        Ok(Id {
            raw,
            channel,
            has_qp: false,
            reject_on_drop: false,
            released: false,
        })
    }

    /// Takes the id of a connect request, which its taker owns.
    ///
    /// # Safety
    /// `raw` must come from a connect request on `channel`, and belong to nobody else.
    pub(crate) unsafe fn of_request(
        raw: NonNull<ffi::rdma_cm_id>,
        channel: Arc<EventChannel>,
    ) -> Self {
        Id {
            raw,
            channel: Some(channel),
            has_qp: false,
            reject_on_drop: false,
            released: false,
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::rdma_cm_id {
        self.raw.as_ptr()
    }

    /// The event channel; none for a synchronous id.
    pub(crate) fn channel(&self) -> Result<&Arc<EventChannel>> {
        self.channel
            .as_ref()
            .ok_or_else(|| Error::invalid("cm id", "has no event channel"))
    }

    /// The fd of the event channel.
    pub(crate) fn event_fd(&self) -> BorrowedFd<'_> {
        match &self.channel {
            Some(channel) => channel.as_fd(),
            // SAFETY: librdmacm's own channel of a synchronous id is open as long as the id.
            None => unsafe { BorrowedFd::borrow_raw((*(*self.as_ptr()).channel).fd) },
        }
    }

    /// Moves the id, and the events that wait for it, to `channel` (`rdma_migrate_id(3)`).
    pub(crate) fn migrate(&mut self, channel: Arc<EventChannel>) -> Result<()> {
        // SAFETY: both are alive.
        check(Call::RdmaMigrateId, unsafe {
            ffi::rdma_migrate_id(self.as_ptr(), channel.as_ptr())
        })?;
        self.channel = Some(channel);
        Ok(())
    }

    pub(crate) fn bind(&self, address: &Address) -> Result<()> {
        // SAFETY: the id and the address are alive; the library does not write to the address.
        check(Call::RdmaBindAddr, unsafe {
            ffi::rdma_bind_addr(self.as_ptr(), address.as_ptr())
        })
    }

    pub(crate) fn listen(&self, backlog: u32) -> Result<()> {
        let backlog = backlog.min(i32::MAX as u32) as i32;
        // SAFETY: the id is alive.
        check(Call::RdmaListen, unsafe {
            ffi::rdma_listen(self.as_ptr(), backlog)
        })
    }

    /// Starts (or on a synchronous id does) the resolution of `to`, from `from` where it is given.
    pub(crate) fn resolve_addr(
        &self,
        from: Option<&Address>,
        to: &Address,
        timeout: Duration,
    ) -> Result<()> {
        let from = from.map_or(std::ptr::null_mut(), Address::as_ptr);
        // SAFETY: the id and the addresses are alive; the library copies them.
        let ret =
            unsafe { ffi::rdma_resolve_addr(self.as_ptr(), from, to.as_ptr(), millis(timeout)) };
        check(Call::RdmaResolveAddr, ret)
    }

    pub(crate) fn resolve_route(&self, timeout: Duration) -> Result<()> {
        // SAFETY: the id is alive.
        let ret = unsafe { ffi::rdma_resolve_route(self.as_ptr(), millis(timeout)) };
        check(Call::RdmaResolveRoute, ret)
    }

    pub(crate) fn connect(&self, param: ConnParam<'_>) -> Result<()> {
        let mut param = param.to_raw();
        // soft-iWARP connects its socket within the call. Where a signal breaks that off, the id is
        // of no use any more, and Linux 6.12 panics when ids go later.
        let _held = HeldSignals::hold();
        // SAFETY: the id is alive; the parameters live through the call.
        check(Call::RdmaConnect, unsafe {
            ffi::rdma_connect(self.as_ptr(), &mut param)
        })
    }

    pub(crate) fn accept(&self, param: ConnParam<'_>) -> Result<()> {
        let mut param = param.to_raw();
        // SAFETY: the id is alive; the parameters live through the call.
        check(Call::RdmaAccept, unsafe {
            ffi::rdma_accept(self.as_ptr(), &mut param)
        })
    }

    pub(crate) fn reject(&self, private_data: &[u8]) -> Result<()> {
        let len = private_data.len().min(255) as u8;
        let data = if len == 0 {
            std::ptr::null()
        } else {
            private_data.as_ptr().cast::<c_void>()
        };
        // SAFETY: the id is alive; the data live through the call.
        check(Call::RdmaReject, unsafe {
            ffi::rdma_reject(self.as_ptr(), data, len)
        })
    }

    /// From now on, is the request that the id came with to be rejected when the id goes?
    pub(crate) fn reject_on_drop(&mut self, yes: bool) {
        self.reject_on_drop = yes;
    }

    pub(crate) fn disconnect(&self) -> Result<()> {
        // SAFETY: the id is alive.
        check(Call::RdmaDisconnect, unsafe {
            ffi::rdma_disconnect(self.as_ptr())
        })
    }

    /// The type of service of the connection's packets (`RDMA_OPTION_ID_TOS`).
    pub(crate) fn set_type_of_service(&self, tos: u8) -> Result<()> {
        self.set_option(ffi::RDMA_OPTION_ID_TOS as i32, tos)
    }

    /// The timeout of acknowledgements, as an exponent: 4.096 us times 2 to the power of it
    /// (`RDMA_OPTION_ID_ACK_TIMEOUT`).
    pub(crate) fn set_ack_timeout(&self, exponent: u8) -> Result<()> {
        self.set_option(ffi::RDMA_OPTION_ID_ACK_TIMEOUT as i32, exponent)
    }

    fn set_option(&self, option: i32, mut value: u8) -> Result<()> {
        // SAFETY: the id is alive; both options take one byte.
        let ret = unsafe {
            ffi::rdma_set_option(
                self.as_ptr(),
                ffi::RDMA_OPTION_ID as i32,
                option,
                (&raw mut value).cast(),
                1,
            )
        };
        check(Call::RdmaSetOption, ret)
    }

    /// Creates the queue pair of the id (`rdma_create_qp_ex`), and says what the device granted.
    /// The queue pair is gone with the id: whoever has the one keeps the other.
    pub(crate) fn create_qp(&mut self, wanted: &QpRequest<'_>) -> Result<(RawQp, ffi::ibv_qp_cap)> {
        let mut attr = ffi::ibv_qp_init_attr_ex {
            send_cq: wanted.send_cq.as_ptr(),
            recv_cq: wanted.recv_cq.as_ptr(),
            srq: (wanted.srq).map_or(std::ptr::null_mut(), RawSrq::as_ptr),
            cap: wanted.cap,
            qp_type: ffi::IBV_QPT_RC,
            comp_mask: ffi::IBV_QP_INIT_ATTR_PD,
            pd: wanted.pd.as_ptr(),
            ..Default::default()
        };
        let extended = wanted.send_ops != 0;
        if extended {
            attr.comp_mask |= ffi::IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
            attr.send_ops_flags = u64::from(wanted.send_ops);
        }
        // SAFETY: the id is alive, and so are the domain, the queues and the shared receive queue,
        // which are borrowed; none of them can be destroyed while it has a queue pair
        // (`ibv_destroy_cq(3)` and its kin: EBUSY).
        check(Call::RdmaCreateQpEx, unsafe {
            ffi::rdma_create_qp_ex(self.as_ptr(), &mut attr)
        })?;
        // SAFETY: the id is alive; the call has set its queue pair.
        let Some(qp) = NonNull::new(unsafe { (*self.as_ptr()).qp }) else {
            return Err(Error::provider(Call::RdmaCreateQpEx, libc::EIO));
        };
        self.has_qp = true;
        // SAFETY: the queue pair was just created as said, and lives as long as the id.
        match unsafe { RawQp::new(qp, extended) } {
            Ok(qp) => Ok((qp, attr.cap)),
            Err(err) => {
                self.destroy_qp();
                Err(err)
            }
        }
    }

    /// Would the kernel give the id a queue pair? It gives none to the request of a peer that has
    /// given up, and tells so in no other way: events of a connection that was not accepted are
    /// dropped.
    pub(crate) fn can_have_qp(&self) -> bool {
        let mut attr = ffi::ibv_qp_attr {
            qp_state: ffi::IBV_QPS_INIT,
            ..Default::default()
        };
        let mut mask = 0;
        // SAFETY: the id is alive; the attributes and the mask are ours.
        unsafe { ffi::rdma_init_qp_attr(self.as_ptr(), &mut attr, &mut mask) == 0 }
    }

    /// Destroys the queue pair, where there is one.
    pub(crate) fn destroy_qp(&mut self) {
        if std::mem::take(&mut self.has_qp) {
            // SAFETY: the id is alive and has a queue pair. Nobody posts to it any more: that takes
            // a borrow of this id's owner.
            unsafe { ffi::rdma_destroy_qp(self.as_ptr()) }
        }
    }

    /// The device that the id is on, by its address only.
    pub(crate) fn raw_context(&self) -> *mut ffi::ibv_context {
        // SAFETY: the id is alive.
        unsafe { (*self.as_ptr()).verbs }
    }

    /// The name of the device that the id is on.
    pub(crate) fn device_name(&self) -> String {
        match NonNull::new(self.raw_context()) {
            // SAFETY: the context is open as long as the id is on it.
            Some(context) => unsafe { crate::verbs::device_name((*context.as_ptr()).device) },
            None => String::new(),
        }
    }

    pub(crate) fn port(&self) -> u8 {
        // SAFETY: the id is alive.
        unsafe { (*self.as_ptr()).port_num }
    }

    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        // SAFETY: the id is alive; the address in it is valid for its family, zeroed where there is
        // none.
        unsafe {
            let addr = &raw const (*self.as_ptr()).route.addr.__bindgen_anon_1;
            Address::read(addr.cast())?.to_std()
        }
    }

    pub(crate) fn peer_addr(&self) -> Option<SocketAddr> {
        // SAFETY: as above.
        unsafe {
            let addr = &raw const (*self.as_ptr()).route.addr.__bindgen_anon_2;
            Address::read(addr.cast())?.to_std()
        }
    }

    /// The device that the id was bound or resolved to, kept open by the id; and the number of its
    /// port.
    pub(crate) fn into_context(self) -> Result<(Context, u8)> {
        let port = self.port().max(1);
        match NonNull::new(self.raw_context()) {
            // SAFETY: the context is librdmacm's and open as long as the id is on it, which becomes
            // its anchor.
            Some(raw) => Ok((unsafe { Context::new(raw, Box::new(self)) }, port)),
            None => Err(Error::provider(Call::RdmaCreateId, libc::ENODEV)),
        }
    }

    /// Gives the id back and says what the library said.
    pub(crate) fn destroy(mut self) -> Result<()> {
        self.release()
    }

    fn release(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.released, true) {
            return Ok(());
        }
        if self.reject_on_drop {
            // Where that fails, the peer learns by the destruction of the id.
            log_failure(self.reject(&[]));
        }
        self.destroy_qp();
        // SAFETY: this is the owner; every event of the id was acknowledged.
        check(Call::RdmaDestroyId, unsafe {
            ffi::rdma_destroy_id(self.as_ptr())
        })
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        log_failure(self.release());
    }
}

/// Milliseconds for librdmacm, rounded up, at least 1.
fn millis(timeout: Duration) -> i32 {
    timeout
        .as_nanos()
        .div_ceil(1_000_000)
        .clamp(1, i32::MAX as u128) as i32
}
