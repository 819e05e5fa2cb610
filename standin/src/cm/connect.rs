//! Listening, connecting, accepting, rejecting, disconnecting.

use std::net::SocketAddr;

use libc::{c_int, c_void};
use rdma_sys as ffi;

use super::addr::{Place, place};
use super::{ConnInfo, Pending, REJECT_DATA, REPLY_DATA, REQUEST_DATA, State, bytes, sync};
use crate::calls::{Call, enter};
use crate::ret::{minus, status};
use crate::timers;
use crate::world::{World, world};

/// Why a request was refused, in InfiniBand's numbers.
const REJ_INVALID_SERVICE_ID: c_int = 8;
const REJ_CONSUMER_DEFINED: c_int = 28;
/// The most that a device answers at once or has in flight, and what asks for just that.
const MAX_RD_ATOMIC: u8 = 128;
const AS_MANY_AS_THERE_ARE: u8 = 0xFF;

/// The caller's parameters.
///
/// # Safety
/// NULL or a struct with its private data.
unsafe fn params(p: *const ffi::rdma_conn_param) -> Result<(ConnInfo, Vec<u8>), c_int> {
    if p.is_null() {
        return Ok((ConnInfo::default(), Vec::new()));
    }
    // SAFETY: as the caller promises.
    unsafe {
        let p = &*p;
        for depth in [p.responder_resources, p.initiator_depth] {
            if depth > MAX_RD_ATOMIC && depth != AS_MANY_AS_THERE_ARE {
                return Err(libc::EINVAL);
            }
        }
        let info = ConnInfo {
            responder_resources: p.responder_resources.min(MAX_RD_ATOMIC),
            initiator_depth: p.initiator_depth.min(MAX_RD_ATOMIC),
            flow_control: p.flow_control,
            retry_count: p.retry_count & 7,
            rnr_retry_count: p.rnr_retry_count & 7,
            srq: p.srq,
            qp_num: p.qp_num,
        };
        Ok((info, bytes(p.private_data, usize::from(p.private_data_len))))
    }
}

impl World {
    fn listen(&mut self, id: *mut ffi::rdma_cm_id, backlog: c_int) -> Result<(), c_int> {
        let key = id as usize;
        let i = self.ids.get(id, Call::rdma_listen)?;
        if !matches!(i.state, State::Idle | State::AddrBound) {
            return Err(libc::EINVAL);
        }
        if i.local.is_none() {
            self.bind(key, SocketAddr::from(([0, 0, 0, 0], 0)))?;
        }
        let local = self.ids.at(key).and_then(|i| i.local);
        let taken = self
            .ids
            .iter()
            .any(|(k, o)| k != key && o.state == State::Listening && o.local == local);
        if taken {
            return Err(libc::EADDRINUSE);
        }
        if let Some(i) = self.ids.at_mut(key) {
            i.state = State::Listening;
            i.backlog = backlog;
        }
        Ok(())
    }

    /// Who listens at this address: the exact one, else a wildcard.
    fn listener(&self, to: SocketAddr) -> Option<usize> {
        let at = |exact: bool| {
            self.ids
                .iter()
                .filter(|(_, i)| i.state == State::Listening)
                .filter(|(_, i)| {
                    i.local.is_some_and(|l| {
                        let any = l.ip().is_unspecified()
                            && (l.is_ipv4() == to.is_ipv4() || (l.is_ipv6() && !i.af_only));
                        l.port() == to.port() && if exact { l.ip() == to.ip() } else { any }
                    })
                })
                .map(|(k, _)| k)
                .min()
        };
        at(true).or_else(|| at(false))
    }

    fn connect(
        &mut self,
        id: *mut ffi::rdma_cm_id,
        info: ConnInfo,
        data: Vec<u8>,
    ) -> Result<(), c_int> {
        let key = id as usize;
        let i = self.ids.get(id, Call::rdma_connect)?;
        if i.state != State::RouteResolved {
            return Err(libc::EINVAL);
        }
        let (Some(to), Some(from)) = (i.remote_addr, i.local) else {
            return Err(libc::EINVAL);
        };
        let (qp, serial) = (i.qp, i.serial);
        let iwarp = self.id_is_iwarp(key);
        if !iwarp && data.len() > REQUEST_DATA {
            return Err(libc::EINVAL);
        }
        let qp_num = self.qps.at(qp).map_or(info.qp_num, |q| q.number);
        let info = ConnInfo { qp_num, ..info };
        if let Some(i) = self.ids.at_mut(key) {
            i.state = State::Connecting;
            i.offer = info;
        }
        let lost = self.config.cut || place(&self.config, to.ip()) != Place::Here;
        if lost {
            let ms = self.config.connect_timeout_ms;
            timers::after(self, ms, move |w| {
                let waiting = w
                    .ids
                    .at(key)
                    .is_some_and(|i| i.serial == serial && i.state == State::Connecting);
                if waiting {
                    w.fail_connect(
                        key,
                        ffi::RDMA_CM_EVENT_UNREACHABLE,
                        -libc::ETIMEDOUT,
                        Vec::new(),
                    );
                }
            });
            return Ok(());
        }
        let Some(listener) = self.listener(to) else {
            if iwarp {
                // TCP refuses at once, and siw says so in the call.
                if let Some(i) = self.ids.at_mut(key) {
                    i.state = State::RouteResolved;
                }
                return Err(libc::ECONNREFUSED);
            }
            let private = self.pad(key, Vec::new(), REJECT_DATA);
            self.fail_connect(
                key,
                ffi::RDMA_CM_EVENT_REJECTED,
                REJ_INVALID_SERVICE_ID,
                private,
            );
            return Ok(());
        };
        let waiting = self
            .ids
            .at(listener)
            .and_then(|l| self.event_channels.at(l.channel))
            .map_or(0, |c| {
                c.queue.iter().filter(|e| e.listener == listener).count()
            });
        let backlog = self.ids.at(listener).map_or(0, |l| l.backlog);
        if backlog > 0 && waiting >= backlog as usize {
            self.reject_active(key, Vec::new());
            return Ok(());
        }
        self.request(key, listener, (to, from), data);
        Ok(())
    }

    /// The request arrives at the listener.
    fn request(
        &mut self,
        active: usize,
        listener: usize,
        (to, from): (SocketAddr, SocketAddr),
        data: Vec<u8>,
    ) {
        let Ok(context) = self.cm_context() else {
            return;
        };
        let (program_context, channel) = match self.ids.at(listener) {
            // SAFETY: a live id of ours.
            Some(l) => unsafe { ((*l.ffi).context, l.channel) },
            None => return,
        };
        let child = self.new_id(channel as *mut ffi::rdma_event_channel, program_context);
        let child = child as usize;
        let info = self.ids.at(active).map(|a| a.offer).unwrap_or_default();
        self.place_id(child, context as usize, to, Some(from));
        if let Some(c) = self.ids.at_mut(child) {
            c.visible = false;
            c.state = State::Requested;
            c.peer = active;
            c.offered = info;
        }
        if let Some(a) = self.ids.at_mut(active) {
            a.peer = child;
        }
        let private = self.pad(active, data, REQUEST_DATA);
        self.post_full(Pending {
            id: child,
            listener,
            kind: ffi::RDMA_CM_EVENT_CONNECT_REQUEST,
            status: 0,
            private,
            info: mirrored(info),
        });
    }

    /// The attempt of the active side ends.
    fn fail_connect(&mut self, id: usize, kind: u32, status: c_int, private: Vec<u8>) {
        let Some(i) = self.ids.at_mut(id) else {
            return;
        };
        i.state = State::Failed;
        i.peer = 0;
        // A reply that was not read yet never came.
        let channel = i.channel;
        if let Some(c) = self.event_channels.at_mut(channel) {
            c.queue
                .retain(|e| e.id != id || e.kind != ffi::RDMA_CM_EVENT_CONNECT_RESPONSE);
        }
        self.post_full(Pending {
            id,
            listener: 0,
            kind,
            status,
            private,
            info: ConnInfo::default(),
        });
    }

    /// The active side is refused by the other program.
    fn reject_active(&mut self, active: usize, data: Vec<u8>) {
        let waiting = self
            .ids
            .at(active)
            .is_some_and(|a| a.state == State::Connecting);
        if waiting {
            let iwarp = self.id_is_iwarp(active);
            let status = if iwarp {
                -libc::ECONNRESET
            } else {
                REJ_CONSUMER_DEFINED
            };
            let private = self.pad(active, data, REJECT_DATA);
            self.fail_connect(active, ffi::RDMA_CM_EVENT_REJECTED, status, private);
        }
    }

    fn accept(
        &mut self,
        id: *mut ffi::rdma_cm_id,
        info: ConnInfo,
        data: Vec<u8>,
    ) -> Result<(), c_int> {
        let key = id as usize;
        let i = self.ids.get(id, Call::rdma_accept)?;
        if i.state != State::Requested {
            return Err(libc::EINVAL);
        }
        let (qp, active, theirs) = (i.qp, i.peer, i.offered);
        let iwarp = self.id_is_iwarp(key);
        if !iwarp && data.len() > REPLY_DATA {
            return Err(libc::EINVAL);
        }
        let qp_num = self.qps.at(qp).map_or(info.qp_num, |q| q.number);
        if qp_num == 0 {
            return Err(libc::EINVAL);
        }
        let info = ConnInfo { qp_num, ..info };
        if let Some(i) = self.ids.at_mut(key) {
            i.state = State::Accepted;
            i.offer = info;
        }
        if let Some(a) = self.ids.at_mut(active) {
            a.offered = info;
        }
        // How often either side sends again is up to the one that asked.
        let retry = theirs.retry_count;
        self.connect_qp(key, theirs.qp_num, retry, theirs.rnr_retry_count);
        let private = self.pad(active, data, REPLY_DATA);
        let kind = if iwarp {
            ffi::RDMA_CM_EVENT_ESTABLISHED
        } else {
            ffi::RDMA_CM_EVENT_CONNECT_RESPONSE
        };
        self.post_full(Pending {
            id: active,
            listener: 0,
            kind,
            status: 0,
            private,
            info: mirrored(info),
        });
        if iwarp {
            self.establish(active);
        }
        Ok(())
    }

    /// The last step of the handshake: the active queue pair is ready, the passive side learns of
    /// it.
    pub fn establish(&mut self, active: usize) {
        let Some(a) = self.ids.at_mut(active) else {
            return;
        };
        if a.state != State::Connecting {
            return;
        }
        a.state = State::Connected;
        let (child, theirs, retry) = (a.peer, a.offered, a.offer.retry_count);
        self.connect_qp(active, theirs.qp_num, retry, theirs.rnr_retry_count);
        if let Some(c) = self.ids.at_mut(child) {
            c.state = State::Connected;
        }
        self.post_event(child, ffi::RDMA_CM_EVENT_ESTABLISHED, 0);
    }

    fn reject(&mut self, id: *mut ffi::rdma_cm_id, data: Vec<u8>) -> Result<(), c_int> {
        let i = self.ids.get(id, Call::rdma_reject)?;
        if i.state != State::Requested {
            return Err(libc::EINVAL);
        }
        let active = i.peer;
        if !self.id_is_iwarp(id as usize) && data.len() > REJECT_DATA {
            return Err(libc::EINVAL);
        }
        if let Some(i) = self.ids.at_mut(id as usize) {
            i.state = State::Failed;
            i.peer = 0;
        }
        self.reject_active(active, data);
        Ok(())
    }

    fn disconnect(&mut self, id: *mut ffi::rdma_cm_id) -> Result<(), c_int> {
        let key = id as usize;
        let i = self.ids.get(id, Call::rdma_disconnect)?;
        let (state, qp, peer) = (i.state, i.qp, i.peer);
        match state {
            State::Connected | State::Accepted => {
                i.state = State::Disconnected;
                self.qp_to_error(qp);
                self.post_event(key, ffi::RDMA_CM_EVENT_DISCONNECTED, 0);
                self.part(peer, key);
                self.time_wait(key);
            }
            State::PeerGone => {
                i.state = State::Disconnected;
                self.qp_to_error(qp);
            }
            State::Disconnected | State::Failed => {}
            _ => return Err(libc::EINVAL),
        }
        Ok(())
    }

    /// One side leaves: the other is disconnected, or was never connected.
    fn part(&mut self, peer: usize, leaver: usize) {
        let waits = self
            .ids
            .at(peer)
            .is_some_and(|p| p.state == State::Connecting);
        if waits {
            self.reject_active(peer, Vec::new());
        } else {
            self.peer_left(peer, leaver);
        }
    }

    fn peer_left(&mut self, peer: usize, leaver: usize) {
        let Some(p) = self.ids.at_mut(peer).filter(|p| p.peer == leaver) else {
            return;
        };
        if !matches!(p.state, State::Connected | State::Accepted) {
            return;
        }
        p.state = State::PeerGone;
        let qp = p.qp;
        if self.id_is_iwarp(peer) {
            self.qp_to_error(qp);
        }
        self.post_event(peer, ffi::RDMA_CM_EVENT_DISCONNECTED, 0);
        self.time_wait(peer);
    }

    /// InfiniBand tells when the numbers of a connection may be used again.
    fn time_wait(&mut self, id: usize) {
        if self.id_is_iwarp(id) {
            return;
        }
        let Some(serial) = self.ids.at(id).map(|i| i.serial) else {
            return;
        };
        let ms = self.config.timewait_ms;
        timers::after(self, ms, move |w| {
            if w.ids.at(id).is_some_and(|i| i.serial == serial) {
                w.post_event(id, ffi::RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
            }
        });
    }

    /// An id goes: whoever is at its other end learns it.
    pub fn leave(&mut self, key: usize) {
        let Some((state, peer)) = self.ids.at(key).map(|i| (i.state, i.peer)) else {
            return;
        };
        match state {
            State::Requested => self.reject_active(peer, Vec::new()),
            State::Connecting => {
                let iwarp = self.id_is_iwarp(key);
                let Some(p) = self.ids.at_mut(peer) else {
                    return;
                };
                let was = p.state;
                p.peer = 0;
                p.state = State::Failed;
                if was == State::Requested || was == State::Accepted {
                    let status = if iwarp {
                        -libc::ECONNRESET
                    } else {
                        REJ_CONSUMER_DEFINED
                    };
                    self.post_event(peer, ffi::RDMA_CM_EVENT_REJECTED, status);
                }
            }
            State::Connected | State::Accepted => self.part(peer, key),
            _ => {}
        }
    }
}

/// One side's depth is what it asks of the other's resources.
fn mirrored(info: ConnInfo) -> ConnInfo {
    ConnInfo {
        responder_resources: info.initiator_depth,
        initiator_depth: info.responder_resources,
        ..info
    }
}

#[unsafe(export_name = "standin_rdma_listen")]
unsafe extern "C" fn rdma_listen(id: *mut ffi::rdma_cm_id, backlog: c_int) -> c_int {
    match enter(Call::rdma_listen) {
        Some(e) => minus(e),
        None => status(world().listen(id, backlog)),
    }
}

#[unsafe(export_name = "standin_rdma_connect")]
unsafe extern "C" fn rdma_connect(
    id: *mut ffi::rdma_cm_id,
    param: *mut ffi::rdma_conn_param,
) -> c_int {
    if let Some(e) = enter(Call::rdma_connect) {
        return minus(e);
    }
    // SAFETY: as the caller promises.
    let r = unsafe { params(param) }.and_then(|(info, data)| world().connect(id, info, data));
    status(r.and_then(|()| sync::complete(id, Call::rdma_connect)))
}

#[unsafe(export_name = "standin_rdma_accept")]
unsafe extern "C" fn rdma_accept(
    id: *mut ffi::rdma_cm_id,
    param: *mut ffi::rdma_conn_param,
) -> c_int {
    if let Some(e) = enter(Call::rdma_accept) {
        return minus(e);
    }
    // SAFETY: as the caller promises.
    let r = unsafe { params(param) }.and_then(|(mut info, data)| {
        if param.is_null() {
            info.rnr_retry_count = 7;
        }
        world().accept(id, info, data)
    });
    status(r.and_then(|()| sync::complete(id, Call::rdma_accept)))
}

#[unsafe(export_name = "standin_rdma_reject")]
unsafe extern "C" fn rdma_reject(
    id: *mut ffi::rdma_cm_id,
    private: *const c_void,
    len: u8,
) -> c_int {
    match enter(Call::rdma_reject) {
        Some(e) => minus(e),
        // SAFETY: as the caller promises.
        None => status(world().reject(id, unsafe { bytes(private, usize::from(len)) })),
    }
}

#[unsafe(export_name = "standin_rdma_disconnect")]
unsafe extern "C" fn rdma_disconnect(id: *mut ffi::rdma_cm_id) -> c_int {
    if let Some(e) = enter(Call::rdma_disconnect) {
        return minus(e);
    }
    let r = world().disconnect(id);
    status(r.and_then(|()| sync::complete(id, Call::rdma_disconnect)))
}

#[unsafe(export_name = "standin_rdma_notify")]
unsafe extern "C" fn rdma_notify(id: *mut ffi::rdma_cm_id, _event: ffi::ibv_event_type) -> c_int {
    match enter(Call::rdma_notify) {
        Some(e) => minus(e),
        None => status(world().ids.get(id, Call::rdma_notify).map(|_| ())),
    }
}
