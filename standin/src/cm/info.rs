//! rdma_getaddrinfo, device lists, and names of events.

use std::ffi::{CStr, c_char};
use std::net::SocketAddr;
use std::ptr;

use libc::c_int;
use rdma_sys as ffi;

use super::addr;
use crate::calls::{Call, enter};
use crate::ret::{minus, null};
use crate::violations::violation;
use crate::world::world;

#[unsafe(export_name = "standin_rdma_get_devices")]
unsafe extern "C" fn rdma_get_devices(num: *mut c_int) -> *mut *mut ffi::ibv_context {
    if let Some(e) = enter(Call::rdma_get_devices) {
        return null(e);
    }
    let mut w = world();
    let mut list = Vec::new();
    if let Ok(ctx) = w.cm_context() {
        list.push(ctx);
    }
    if !num.is_null() {
        // SAFETY: the caller's counter.
        unsafe { *num = list.len() as c_int };
    }
    list.push(ptr::null_mut());
    w.hand_out(list, "rdma_get_devices")
}

#[unsafe(export_name = "standin_rdma_free_devices")]
unsafe extern "C" fn rdma_free_devices(list: *mut *mut ffi::ibv_context) {
    enter(Call::rdma_free_devices);
    world().take_back(list, Call::rdma_free_devices);
}

#[unsafe(export_name = "standin_rdma_getaddrinfo")]
unsafe extern "C" fn rdma_getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const ffi::rdma_addrinfo,
    res: *mut *mut ffi::rdma_addrinfo,
) -> c_int {
    if let Some(e) = enter(Call::rdma_getaddrinfo) {
        return minus(e);
    }
    // SAFETY: C strings, and structs of the caller.
    unsafe {
        let given_source = !hints.is_null() && !(*hints).ai_src_addr.is_null();
        if node.is_null() && service.is_null() && !given_source {
            return minus(libc::EINVAL);
        }
        let passive = !hints.is_null() && (*hints).ai_flags as u32 & ffi::RAI_PASSIVE != 0;
        let found = match look_up(node, service, hints, passive) {
            Ok(f) => f,
            Err(e) => return e,
        };
        let Some(head) = chain(&found, hints, passive) else {
            return libc::EAI_NONAME;
        };
        *res = head;
        world().lists.insert(head as usize, "rdma_getaddrinfo");
    }
    0
}

/// Asks the system.
unsafe fn look_up(
    node: *const c_char,
    service: *const c_char,
    hints: *const ffi::rdma_addrinfo,
    passive: bool,
) -> Result<Vec<SocketAddr>, c_int> {
    // SAFETY: as the caller promises; the list is freed after its last use.
    unsafe {
        let mut ask: libc::addrinfo = std::mem::zeroed();
        ask.ai_socktype = libc::SOCK_STREAM;
        if passive {
            ask.ai_flags |= libc::AI_PASSIVE;
        }
        if !hints.is_null() {
            let flags = (*hints).ai_flags as u32;
            if flags & ffi::RAI_NUMERICHOST != 0 {
                ask.ai_flags |= libc::AI_NUMERICHOST;
            }
            if flags & ffi::RAI_FAMILY != 0 {
                ask.ai_family = (*hints).ai_family;
            }
        }
        let mut list = ptr::null_mut();
        let r = libc::getaddrinfo(node, service, &raw const ask, &raw mut list);
        if r != 0 {
            return Err(r);
        }
        let mut found = Vec::new();
        let mut at = list;
        while !at.is_null() {
            found.extend(addr::read((*at).ai_addr));
            at = (*at).ai_next;
        }
        libc::freeaddrinfo(list);
        Ok(found)
    }
}

/// Makes the list that the program gets.
unsafe fn chain(
    found: &[SocketAddr],
    hints: *const ffi::rdma_addrinfo,
    passive: bool,
) -> Option<*mut ffi::rdma_addrinfo> {
    let mut head: *mut ffi::rdma_addrinfo = ptr::null_mut();
    for a in found.iter().rev() {
        let mut info = Box::new(ffi::rdma_addrinfo {
            ai_family: if a.is_ipv4() {
                libc::AF_INET
            } else {
                libc::AF_INET6
            },
            ai_qp_type: ffi::IBV_QPT_RC as c_int,
            ai_port_space: ffi::RDMA_PS_TCP as c_int,
            ai_flags: if passive {
                ffi::RAI_PASSIVE as c_int
            } else {
                0
            },
            ai_next: head,
            ..Default::default()
        });
        // SAFETY: the caller's hints.
        unsafe {
            if !hints.is_null() {
                info.ai_flags = (*hints).ai_flags;
                if (*hints).ai_port_space != 0 {
                    info.ai_port_space = (*hints).ai_port_space;
                }
                if !passive {
                    if let Some(src) = addr::read((*hints).ai_src_addr) {
                        (info.ai_src_addr, info.ai_src_len) = boxed(src);
                    }
                }
            }
        }
        if passive {
            (info.ai_src_addr, info.ai_src_len) = boxed(*a);
        } else {
            (info.ai_dst_addr, info.ai_dst_len) = boxed(*a);
        }
        head = Box::into_raw(info);
    }
    (!head.is_null()).then_some(head)
}

fn boxed(a: SocketAddr) -> (*mut libc::sockaddr, libc::socklen_t) {
    let (storage, len) = addr::to_c(a);
    (
        Box::into_raw(Box::new(storage)).cast(),
        len as libc::socklen_t,
    )
}

#[unsafe(export_name = "standin_rdma_freeaddrinfo")]
unsafe extern "C" fn rdma_freeaddrinfo(res: *mut ffi::rdma_addrinfo) {
    enter(Call::rdma_freeaddrinfo);
    if world().lists.remove(&(res as usize)).is_none() {
        violation(&format!("rdma_freeaddrinfo: {res:p} is no list of ours"));
        return;
    }
    let mut at = res;
    while !at.is_null() {
        // SAFETY: made by `chain`, given back once.
        unsafe {
            let info = Box::from_raw(at);
            for a in [info.ai_src_addr, info.ai_dst_addr] {
                if !a.is_null() {
                    drop(Box::from_raw(a.cast::<libc::sockaddr_storage>()));
                }
            }
            at = info.ai_next;
        }
    }
}

#[unsafe(export_name = "standin_rdma_event_str")]
unsafe extern "C" fn rdma_event_str(event: ffi::rdma_cm_event_type) -> *const c_char {
    enter(Call::rdma_event_str);
    const NAMES: [&CStr; 16] = [
        c"RDMA_CM_EVENT_ADDR_RESOLVED",
        c"RDMA_CM_EVENT_ADDR_ERROR",
        c"RDMA_CM_EVENT_ROUTE_RESOLVED",
        c"RDMA_CM_EVENT_ROUTE_ERROR",
        c"RDMA_CM_EVENT_CONNECT_REQUEST",
        c"RDMA_CM_EVENT_CONNECT_RESPONSE",
        c"RDMA_CM_EVENT_CONNECT_ERROR",
        c"RDMA_CM_EVENT_UNREACHABLE",
        c"RDMA_CM_EVENT_REJECTED",
        c"RDMA_CM_EVENT_ESTABLISHED",
        c"RDMA_CM_EVENT_DISCONNECTED",
        c"RDMA_CM_EVENT_DEVICE_REMOVAL",
        c"RDMA_CM_EVENT_MULTICAST_JOIN",
        c"RDMA_CM_EVENT_MULTICAST_ERROR",
        c"RDMA_CM_EVENT_ADDR_CHANGE",
        c"RDMA_CM_EVENT_TIMEWAIT_EXIT",
    ];
    NAMES
        .get(event as usize)
        .copied()
        .unwrap_or(c"UNKNOWN EVENT")
        .as_ptr()
}
