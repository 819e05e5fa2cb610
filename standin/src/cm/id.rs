//! Ids: their making, options and end.

use libc::{c_int, c_void};
use rdma_sys as ffi;

use super::{ConnInfo, Id, State};
use crate::calls::{Call, destroying, enter};
use crate::ret::{minus, status};
use crate::table::allocate;
use crate::violations::{still_in_use, violation};
use crate::world::{World, changed, wait_until, world};

impl World {
    /// A new id on a channel.
    pub fn new_id(
        &mut self,
        channel: *mut ffi::rdma_event_channel,
        context: *mut c_void,
    ) -> *mut ffi::rdma_cm_id {
        let p = allocate::<ffi::rdma_cm_id>();
        // SAFETY: a fresh struct.
        unsafe {
            (*p).channel = channel;
            (*p).context = context;
            (*p).ps = ffi::RDMA_PS_TCP;
            (*p).qp_type = ffi::IBV_QPT_RC;
        }
        let serial = self.sequence();
        self.ids.insert(Id {
            ffi: p,
            channel: channel as usize,
            sync: false,
            state: State::Idle,
            visible: true,
            serial,
            local: None,
            remote_addr: None,
            owns_port: false,
            context: 0,
            peer: 0,
            backlog: 0,
            reuse: false,
            af_only: false,
            ack_timeout: 0,
            qp: 0,
            unacked: 0,
            offer: ConnInfo::default(),
            offered: ConnInfo::default(),
            own_cqs: [0; 2],
            own_channels: [0; 2],
            own_srq: 0,
            path: std::ptr::null_mut(),
            template: None,
            template_pd: 0,
        })
    }

    pub fn create_id(
        &mut self,
        channel: *mut ffi::rdma_event_channel,
        context: *mut c_void,
        ps: ffi::rdma_port_space,
    ) -> Result<*mut ffi::rdma_cm_id, c_int> {
        if ps != ffi::RDMA_PS_TCP && ps != ffi::RDMA_PS_IB {
            return Err(libc::EOPNOTSUPP);
        }
        let sync = channel.is_null();
        let channel = if sync {
            self.new_event_channel(true)?
        } else {
            self.event_channels.get(channel, Call::rdma_create_id)?;
            channel
        };
        let p = self.new_id(channel, context);
        if let Some(i) = self.ids.at_mut(p as usize) {
            i.sync = sync;
        }
        Ok(p)
    }
}

#[unsafe(export_name = "standin_rdma_create_id")]
unsafe extern "C" fn rdma_create_id(
    channel: *mut ffi::rdma_event_channel,
    id: *mut *mut ffi::rdma_cm_id,
    context: *mut c_void,
    ps: ffi::rdma_port_space,
) -> c_int {
    if let Some(e) = enter(Call::rdma_create_id) {
        return minus(e);
    }
    match world().create_id(channel, context, ps) {
        Ok(p) => {
            // SAFETY: the caller's variable.
            unsafe { *id = p };
            0
        }
        Err(e) => minus(e),
    }
}

#[unsafe(export_name = "standin_rdma_destroy_id")]
unsafe extern "C" fn rdma_destroy_id(id: *mut ffi::rdma_cm_id) -> c_int {
    let call = Call::rdma_destroy_id;
    status(destroying(call, || destroy_id(id, call)))
}

/// Destroys an id.
pub fn destroy_id(id: *mut ffi::rdma_cm_id, call: Call) -> Result<(), c_int> {
    let key = id as usize;
    let mut w = world();
    let i = w.ids.get(id, call)?;
    // SAFETY: a live id of ours.
    let named = unsafe { (*id).qp };
    if i.qp != 0 && !named.is_null() {
        let name = call.name();
        still_in_use(&format!("{name}: the id still has its queue pair"));
        return Err(libc::EBUSY);
    }
    let sync = i.sync;
    let channel = i.channel;
    if sync {
        w.drop_sync_event(id);
    }
    let settled = |w: &World| w.ids.at(key).is_none_or(|i| i.unacked == 0);
    let (mut w, ready) = wait_until(w, settled);
    if !ready {
        let name = call.name();
        violation(&format!(
            "{name}: events are not acknowledged: the real call would hang"
        ));
        return Err(libc::EBUSY);
    }
    // Requests that nobody took are refused.
    let unread = w.purge_events(key);
    for e in unread.iter().filter(|e| e.listener == key) {
        w.leave(e.id);
        w.forget_id(e.id);
    }
    w.leave(key);
    w.forget_id(key);
    if sync {
        w.event_channels.remove(channel);
    }
    drop(w);
    changed();
    Ok(())
}

impl World {
    fn forget_id(&mut self, key: usize) {
        let Some(i) = self.ids.remove(key) else {
            return;
        };
        if !i.path.is_null() {
            // SAFETY: from `allocate`, known to this id alone.
            unsafe {
                std::alloc::dealloc(
                    i.path.cast(),
                    std::alloc::Layout::new::<ffi::ibv_sa_path_rec>(),
                );
            }
        }
    }
}

#[unsafe(export_name = "standin_rdma_set_option")]
unsafe extern "C" fn rdma_set_option(
    id: *mut ffi::rdma_cm_id,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: usize,
) -> c_int {
    if let Some(e) = enter(Call::rdma_set_option) {
        return minus(e);
    }
    let mut w = world();
    let i = match w.ids.get(id, Call::rdma_set_option) {
        Ok(i) => i,
        Err(e) => return minus(e),
    };
    if level as u32 != ffi::RDMA_OPTION_ID {
        return minus(libc::ENOSYS);
    }
    // SAFETY: `len` bytes at `value`, as the caller promises.
    let number = |size: usize| unsafe {
        match (len == size, size) {
            (true, 1) => Some(c_int::from(*value.cast::<u8>())),
            (true, 4) => Some(value.cast::<c_int>().read_unaligned()),
            _ => None,
        }
    };
    let done = match name as u32 {
        ffi::RDMA_OPTION_ID_TOS => number(1).map(|_| ()),
        ffi::RDMA_OPTION_ID_ACK_TIMEOUT => number(1).map(|n| i.ack_timeout = n as u8),
        ffi::RDMA_OPTION_ID_REUSEADDR => number(4).map(|n| i.reuse = n != 0),
        ffi::RDMA_OPTION_ID_AFONLY => number(4).map(|n| i.af_only = n != 0),
        _ => return minus(libc::ENOSYS),
    };
    match done {
        Some(()) => 0,
        None => minus(libc::EINVAL),
    }
}

#[unsafe(export_name = "standin_rdma_init_qp_attr")]
unsafe extern "C" fn rdma_init_qp_attr(
    id: *mut ffi::rdma_cm_id,
    attr: *mut ffi::ibv_qp_attr,
    mask: *mut c_int,
) -> c_int {
    if let Some(e) = enter(Call::rdma_init_qp_attr) {
        return minus(e);
    }
    let mut w = world();
    let (peer, rnr) = match w.ids.get(id, Call::rdma_init_qp_attr) {
        Ok(i) => (i.offered.qp_num, i.offered.rnr_retry_count),
        Err(e) => return minus(e),
    };
    // SAFETY: the caller's structs.
    unsafe {
        let state = (*attr).qp_state;
        let mut bits = ffi::IBV_QP_STATE;
        (*attr).qp_access_flags = 0;
        match state {
            ffi::IBV_QPS_INIT => {
                (*attr).port_num = 1;
                bits |= ffi::IBV_QP_PKEY_INDEX | ffi::IBV_QP_PORT | ffi::IBV_QP_ACCESS_FLAGS;
            }
            ffi::IBV_QPS_RTR => {
                (*attr).dest_qp_num = peer;
                (*attr).qp_access_flags = ffi::IBV_ACCESS_REMOTE_WRITE
                    | ffi::IBV_ACCESS_REMOTE_READ
                    | ffi::IBV_ACCESS_REMOTE_ATOMIC
                    | ffi::IBV_ACCESS_FLUSH_GLOBAL
                    | ffi::IBV_ACCESS_FLUSH_PERSISTENT;
                bits |= ffi::IBV_QP_DEST_QPN | ffi::IBV_QP_ACCESS_FLAGS;
            }
            ffi::IBV_QPS_RTS => {
                (*attr).rnr_retry = rnr;
                bits |= ffi::IBV_QP_RNR_RETRY;
            }
            _ => return minus(libc::EINVAL),
        }
        *mask = bits as c_int;
    }
    0
}
