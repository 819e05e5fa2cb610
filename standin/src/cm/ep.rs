//! rdma_create_ep and rdma_get_request: the synchronous shortcuts.

use libc::c_int;
use rdma_sys as ffi;

use super::addr;
use super::events::next_event;
use super::id::destroy_id;
use super::id_qp::destroy_id_qp;
use crate::calls::{Call, enter};
use crate::qp::NewQp;
use crate::ret::{minus, status};
use crate::violations::violation;
use crate::world::world;

unsafe extern "C" {
    fn standin_rdma_resolve_addr(
        id: *mut ffi::rdma_cm_id,
        src: *mut libc::sockaddr,
        dst: *mut libc::sockaddr,
        timeout_ms: c_int,
    ) -> c_int;
    fn standin_rdma_resolve_route(id: *mut ffi::rdma_cm_id, timeout_ms: c_int) -> c_int;
}

/// How long rdma_create_ep waits for each resolution.
const TIMEOUT_MS: c_int = 2000;

#[unsafe(export_name = "standin_rdma_create_ep")]
unsafe extern "C" fn rdma_create_ep(
    id: *mut *mut ffi::rdma_cm_id,
    res: *mut ffi::rdma_addrinfo,
    pd: *mut ffi::ibv_pd,
    init: *mut ffi::ibv_qp_init_attr,
) -> c_int {
    if let Some(e) = enter(Call::rdma_create_ep) {
        return minus(e);
    }
    // SAFETY: the caller's structs.
    unsafe {
        let made = world().create_id(
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            (*res).ai_port_space as u32,
        );
        let new = match made {
            Ok(p) => p,
            Err(e) => return minus(e),
        };
        let r = if (*res).ai_flags as u32 & ffi::RAI_PASSIVE != 0 {
            passive(new, res, pd, init)
        } else {
            active(new, res, pd, init)
        };
        match r {
            Ok(()) => {
                *id = new;
                0
            }
            Err(e) => {
                let _ = destroy_id(new, Call::rdma_create_ep);
                minus(e)
            }
        }
    }
}

unsafe fn passive(
    id: *mut ffi::rdma_cm_id,
    res: *mut ffi::rdma_addrinfo,
    pd: *mut ffi::ibv_pd,
    init: *mut ffi::ibv_qp_init_attr,
) -> Result<(), c_int> {
    let mut w = world();
    // SAFETY: the caller's structs.
    unsafe {
        let at = addr::read((*res).ai_src_addr).ok_or(libc::EINVAL)?;
        w.bind(id as usize, at)?;
        if let Some(i) = w.ids.at_mut(id as usize) {
            if !init.is_null() {
                i.template = Some(*init);
                i.template_pd = pd as usize;
            }
        }
    }
    Ok(())
}

unsafe fn active(
    id: *mut ffi::rdma_cm_id,
    res: *mut ffi::rdma_addrinfo,
    pd: *mut ffi::ibv_pd,
    init: *mut ffi::ibv_qp_init_attr,
) -> Result<(), c_int> {
    // SAFETY: the caller's structs.
    unsafe {
        let r = standin_rdma_resolve_addr(id, (*res).ai_src_addr, (*res).ai_dst_addr, TIMEOUT_MS);
        if r != 0 || standin_rdma_resolve_route(id, TIMEOUT_MS) != 0 {
            return Err(*libc::__errno_location());
        }
        if init.is_null() {
            return Ok(());
        }
        let ask = NewQp {
            pd,
            attr: *init,
            send_ops: None,
            call: Call::rdma_create_ep,
        };
        (*init).cap = world().create_qp_on(id, ask)?;
    }
    Ok(())
}

#[unsafe(export_name = "standin_rdma_destroy_ep")]
unsafe extern "C" fn rdma_destroy_ep(id: *mut ffi::rdma_cm_id) {
    enter(Call::rdma_destroy_ep);
    let has_qp = world().ids.at(id as usize).is_some_and(|i| i.qp != 0);
    if has_qp {
        destroy_id_qp(id, Call::rdma_destroy_ep);
    }
    if let Err(e) = destroy_id(id, Call::rdma_destroy_ep) {
        violation(&format!("rdma_destroy_ep: failed with errno {e}"));
    }
}

#[unsafe(export_name = "standin_rdma_get_request")]
unsafe extern "C" fn rdma_get_request(
    listener: *mut ffi::rdma_cm_id,
    id: *mut *mut ffi::rdma_cm_id,
) -> c_int {
    if let Some(e) = enter(Call::rdma_get_request) {
        return minus(e);
    }
    match request(listener) {
        Ok(p) => {
            // SAFETY: the caller's variable.
            unsafe { *id = p };
            0
        }
        Err(e) => status(Err(e)),
    }
}

fn request(listener: *mut ffi::rdma_cm_id) -> Result<*mut ffi::rdma_cm_id, c_int> {
    let (channel, template, pd) = {
        let mut w = world();
        let l = w.ids.get(listener, Call::rdma_get_request)?;
        if !l.sync {
            return Err(libc::EINVAL);
        }
        let r = (l.channel, l.template, l.template_pd);
        w.drop_sync_event(listener);
        r
    };
    let event = next_event(channel, Call::rdma_get_request)?;
    let mut w = world();
    // SAFETY: an event of ours.
    let (kind, new, state) = unsafe { ((*event).event, (*event).id, (*event).status) };
    if state != 0 || kind != ffi::RDMA_CM_EVENT_CONNECT_REQUEST {
        w.ack_event(event)?;
        return Err(if state < 0 { -state } else { libc::EINVAL });
    }
    // The new id is synchronous too, on a channel of its own; the event is its own to keep, not the
    // listener's.
    if let Some(e) = w.cm_events.at_mut(event as usize) {
        e.owner = 0;
    }
    if let Some(l) = w.ids.at_mut(listener as usize) {
        l.unacked = l.unacked.saturating_sub(1);
    }
    let own = w.new_event_channel(true)?;
    if let Some(i) = w.ids.at_mut(new as usize) {
        i.channel = own as usize;
        i.sync = true;
    }
    // SAFETY: a live id of ours.
    unsafe {
        (*new).channel = own;
        (*new).event = event;
    }
    if let Some(attr) = template {
        let ask = NewQp {
            pd: pd as *mut ffi::ibv_pd,
            attr,
            send_ops: None,
            call: Call::rdma_get_request,
        };
        w.create_qp_on(new, ask)?;
    }
    Ok(new)
}
