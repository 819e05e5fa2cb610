//! The stand-in's `librdmacm.so.1`: every function hands its arguments to the stand-in's
//! `libibverbs.so.1`, where the one state of both is.

#![allow(missing_docs, reason = "the functions are C's, and documented there")]
#![allow(non_camel_case_types, reason = "C's names")]

use std::ffi::{c_char, c_int, c_void};

use rdma_sys::{
    ibv_ece, ibv_event_type, ibv_pd, ibv_qp_attr, ibv_qp_init_attr, ibv_qp_init_attr_ex,
    ibv_srq_init_attr, ibv_srq_init_attr_ex, rdma_addrinfo, rdma_cm_event, rdma_cm_event_type,
    rdma_cm_id, rdma_conn_param, rdma_event_channel, rdma_port_space,
};

type sockaddr = c_void;
type ibv_context = rdma_sys::ibv_context;

macro_rules! forward {
    ($($name:ident => $to:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {
        unsafe extern "C" {
            $(fn $to($($arg: $ty),*) $(-> $ret)?;)*
        }
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the same function, under its other name.
                unsafe { $to($($arg),*) }
            }
        )*
    };
}

forward! {
    rdma_create_event_channel => standin_rdma_create_event_channel() -> *mut rdma_event_channel;
    rdma_destroy_event_channel => standin_rdma_destroy_event_channel(channel: *mut rdma_event_channel);
    rdma_create_id => standin_rdma_create_id(channel: *mut rdma_event_channel, id: *mut *mut rdma_cm_id, context: *mut c_void, ps: rdma_port_space) -> c_int;
    rdma_create_ep => standin_rdma_create_ep(id: *mut *mut rdma_cm_id, res: *mut rdma_addrinfo, pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> c_int;
    rdma_destroy_ep => standin_rdma_destroy_ep(id: *mut rdma_cm_id);
    rdma_destroy_id => standin_rdma_destroy_id(id: *mut rdma_cm_id) -> c_int;
    rdma_bind_addr => standin_rdma_bind_addr(id: *mut rdma_cm_id, addr: *mut sockaddr) -> c_int;
    rdma_resolve_addr => standin_rdma_resolve_addr(id: *mut rdma_cm_id, src: *mut sockaddr, dst: *mut sockaddr, timeout: c_int) -> c_int;
    rdma_resolve_route => standin_rdma_resolve_route(id: *mut rdma_cm_id, timeout: c_int) -> c_int;
    rdma_create_qp => standin_rdma_create_qp(id: *mut rdma_cm_id, pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> c_int;
    rdma_create_qp_ex => standin_rdma_create_qp_ex(id: *mut rdma_cm_id, init: *mut ibv_qp_init_attr_ex) -> c_int;
    rdma_destroy_qp => standin_rdma_destroy_qp(id: *mut rdma_cm_id);
    rdma_create_srq => standin_rdma_create_srq(id: *mut rdma_cm_id, pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> c_int;
    rdma_create_srq_ex => standin_rdma_create_srq_ex(id: *mut rdma_cm_id, init: *mut ibv_srq_init_attr_ex) -> c_int;
    rdma_destroy_srq => standin_rdma_destroy_srq(id: *mut rdma_cm_id);
    rdma_connect => standin_rdma_connect(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int;
    rdma_establish => standin_rdma_establish(id: *mut rdma_cm_id) -> c_int;
    rdma_listen => standin_rdma_listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int;
    rdma_get_request => standin_rdma_get_request(listener: *mut rdma_cm_id, id: *mut *mut rdma_cm_id) -> c_int;
    rdma_accept => standin_rdma_accept(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int;
    rdma_reject => standin_rdma_reject(id: *mut rdma_cm_id, private: *const c_void, len: u8) -> c_int;
    rdma_reject_ece => standin_rdma_reject_ece(id: *mut rdma_cm_id, private: *const c_void, len: u8) -> c_int;
    rdma_notify => standin_rdma_notify(id: *mut rdma_cm_id, event: ibv_event_type) -> c_int;
    rdma_disconnect => standin_rdma_disconnect(id: *mut rdma_cm_id) -> c_int;
    rdma_join_multicast => standin_rdma_join_multicast(id: *mut rdma_cm_id, addr: *mut sockaddr, context: *mut c_void) -> c_int;
    rdma_join_multicast_ex => standin_rdma_join_multicast_ex(id: *mut rdma_cm_id, attr: *mut c_void, context: *mut c_void) -> c_int;
    rdma_leave_multicast => standin_rdma_leave_multicast(id: *mut rdma_cm_id, addr: *mut sockaddr) -> c_int;
    rdma_get_cm_event => standin_rdma_get_cm_event(channel: *mut rdma_event_channel, event: *mut *mut rdma_cm_event) -> c_int;
    rdma_ack_cm_event => standin_rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int;
    rdma_get_src_port => standin_rdma_get_src_port(id: *mut rdma_cm_id) -> u16;
    rdma_get_dst_port => standin_rdma_get_dst_port(id: *mut rdma_cm_id) -> u16;
    rdma_get_devices => standin_rdma_get_devices(num: *mut c_int) -> *mut *mut ibv_context;
    rdma_free_devices => standin_rdma_free_devices(list: *mut *mut ibv_context);
    rdma_event_str => standin_rdma_event_str(event: rdma_cm_event_type) -> *const c_char;
    rdma_set_option => standin_rdma_set_option(id: *mut rdma_cm_id, level: c_int, name: c_int, value: *mut c_void, len: usize) -> c_int;
    rdma_migrate_id => standin_rdma_migrate_id(id: *mut rdma_cm_id, channel: *mut rdma_event_channel) -> c_int;
    rdma_getaddrinfo => standin_rdma_getaddrinfo(node: *const c_char, service: *const c_char, hints: *const rdma_addrinfo, res: *mut *mut rdma_addrinfo) -> c_int;
    rdma_freeaddrinfo => standin_rdma_freeaddrinfo(res: *mut rdma_addrinfo);
    rdma_init_qp_attr => standin_rdma_init_qp_attr(id: *mut rdma_cm_id, attr: *mut ibv_qp_attr, mask: *mut c_int) -> c_int;
    rdma_set_local_ece => standin_rdma_set_local_ece(id: *mut rdma_cm_id, ece: *mut ibv_ece) -> c_int;
    rdma_get_remote_ece => standin_rdma_get_remote_ece(id: *mut rdma_cm_id, ece: *mut ibv_ece) -> c_int;
}
