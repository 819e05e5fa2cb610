//! The connection manager: librdmacm's half. Exported as `standin_rdma_…`; the stand-in's
//! librdmacm.so.1 forwards.

mod addr;
mod connect;
mod ep;
mod events;
mod id;
mod id_qp;
mod info;
mod sync;

use std::collections::VecDeque;
use std::net::SocketAddr;

use libc::{c_int, c_void};
use rdma_sys as ffi;

use crate::doorbell::Doorbell;
use crate::table::Object;
use crate::world::World;

/// How far an id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Idle,
    AddrBound,
    AddrResolved,
    RouteResolved,
    Listening,
    /// Active: the request is out.
    Connecting,
    /// Passive: the request came in.
    Requested,
    /// Passive: accepted, the last handshake is to come.
    Accepted,
    Connected,
    /// The other side is gone; this side has not disconnected yet.
    PeerGone,
    Disconnected,
    Failed,
}

/// What the two sides tell each other about a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnInfo {
    pub responder_resources: u8,
    pub initiator_depth: u8,
    pub flow_control: u8,
    pub retry_count: u8,
    pub rnr_retry_count: u8,
    pub srq: u8,
    pub qp_num: u32,
}

/// An id.
pub struct Id {
    ffi: *mut ffi::rdma_cm_id,
    pub channel: usize,
    /// Without a channel of the program's: every call waits for its event.
    pub sync: bool,
    pub state: State,
    /// The program has it.
    pub visible: bool,
    pub serial: u64,
    pub local: Option<SocketAddr>,
    pub remote_addr: Option<SocketAddr>,
    /// Its port counts as taken.
    pub owns_port: bool,
    pub context: usize,
    /// The id at the other end.
    pub peer: usize,
    pub backlog: c_int,
    pub reuse: bool,
    pub af_only: bool,
    pub ack_timeout: u8,
    pub qp: usize,
    pub unacked: usize,
    /// What this side offered.
    pub offer: ConnInfo,
    /// What the other side offered.
    pub offered: ConnInfo,
    /// Objects that librdmacm made for it.
    pub own_cqs: [usize; 2],
    pub own_channels: [usize; 2],
    pub own_srq: usize,
    path: *mut ffi::ibv_sa_path_rec,
    /// From rdma_create_ep: what rdma_get_request makes queue pairs from.
    pub template: Option<ffi::ibv_qp_init_attr>,
    pub template_pd: usize,
}

// SAFETY: the pointers are only followed under the world's lock, or by the program.
unsafe impl Send for Id {}

impl Object for Id {
    type Ffi = ffi::rdma_cm_id;
    const KIND: &'static str = "cm id";
    fn ffi(&self) -> *mut ffi::rdma_cm_id {
        self.ffi
    }
}

/// An event that waits to be read.
pub struct Pending {
    pub id: usize,
    /// The listener, for a connection request.
    pub listener: usize,
    pub kind: u32,
    pub status: c_int,
    pub private: Vec<u8>,
    pub info: ConnInfo,
}

impl Pending {
    /// Whose events it counts among: a request among the listener's.
    pub fn owner(&self) -> usize {
        if self.listener != 0 {
            self.listener
        } else {
            self.id
        }
    }
}

/// An event channel.
pub struct EventChannel {
    ffi: *mut ffi::rdma_event_channel,
    pub bell: Doorbell,
    pub queue: VecDeque<Pending>,
    /// The private one of an id without.
    pub private: bool,
}

// SAFETY: as for Id.
unsafe impl Send for EventChannel {}

impl Object for EventChannel {
    type Ffi = ffi::rdma_event_channel;
    const KIND: &'static str = "event channel";
    fn ffi(&self) -> *mut ffi::rdma_event_channel {
        self.ffi
    }
}

/// An event that the program has and must acknowledge.
pub struct CmEventState {
    ffi: *mut ffi::rdma_cm_event,
    pub owner: usize,
    private: Box<[u8]>,
}

// SAFETY: as for Id.
unsafe impl Send for CmEventState {}

impl Object for CmEventState {
    type Ffi = ffi::rdma_cm_event;
    const KIND: &'static str = "cm event";
    fn ffi(&self) -> *mut ffi::rdma_cm_event {
        self.ffi
    }
}

/// The transport's sizes for private data: InfiniBand pads to them, iWARP tells the true length.
pub const REQUEST_DATA: usize = 56;
pub const REPLY_DATA: usize = 196;
pub const REJECT_DATA: usize = 148;

impl World {
    /// Whether this id's transport is iWARP.
    pub fn id_is_iwarp(&self, id: usize) -> bool {
        let context = self.ids.at(id).map_or(0, |i| i.context);
        self.personality_of(context).is_iwarp()
    }

    /// Private data as it arrives.
    pub fn pad(&self, id: usize, mut data: Vec<u8>, size: usize) -> Vec<u8> {
        if !self.id_is_iwarp(id) {
            data.resize(size, 0);
        }
        data
    }

    /// Queues an event about an id on the channel that it is on.
    pub fn post_event(&mut self, id: usize, kind: u32, status: c_int) {
        self.post_full(Pending {
            id,
            listener: 0,
            kind,
            status,
            private: Vec::new(),
            info: ConnInfo::default(),
        });
    }

    /// Queues an event.
    pub fn post_full(&mut self, e: Pending) {
        let owner = e.owner();
        let Some(channel) = self.ids.at(owner).map(|i| i.channel) else {
            return;
        };
        if let Some(c) = self.event_channels.at_mut(channel) {
            c.queue.push_back(e);
            c.bell.ring();
        }
    }

    /// iWARP tore the stream of a queue pair down: its id learns that it is disconnected.
    pub fn stream_lost(&mut self, qp: usize) {
        let id = self.qps.at(qp).map_or(0, |q| q.id);
        let Some(i) = self.ids.at_mut(id) else {
            return;
        };
        if matches!(i.state, State::Connected | State::Accepted) {
            i.state = State::PeerGone;
            self.post_event(id, ffi::RDMA_CM_EVENT_DISCONNECTED, 0);
        }
    }
}

/// Private data from the caller.
///
/// # Safety
/// `len` bytes at `data`, or NULL.
unsafe fn bytes(data: *const c_void, len: usize) -> Vec<u8> {
    if data.is_null() || len == 0 {
        return Vec::new();
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len).to_vec() }
}
