//! Names for numbers, and functions that programs import but this stand-in has no device for.

use std::ffi::{CStr, c_char, c_int, c_void};

use rdma_sys as ffi;

use crate::calls::{Call, enter};
use crate::config::Personality;
use crate::ret::{minus, null};
use crate::world::world;

fn name(list: &[&'static CStr], at: usize) -> *const c_char {
    list.get(at).copied().unwrap_or(c"unknown").as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn ibv_wc_status_str(status: ffi::ibv_wc_status) -> *const c_char {
    enter(Call::ibv_wc_status_str);
    const NAMES: &[&CStr] = &[
        c"success",
        c"local length error",
        c"local QP operation error",
        c"local EE context operation error",
        c"local protection error",
        c"Work Request Flushed Error",
        c"memory management operation error",
        c"bad response error",
        c"local access error",
        c"remote invalid request error",
        c"remote access error",
        c"remote operation error",
        c"transport retry counter exceeded",
        c"RNR retry counter exceeded",
        c"local RDD violation error",
        c"remote invalid RD request",
        c"aborted error",
        c"invalid EE context number",
        c"invalid EE context state",
        c"fatal error",
        c"response timeout error",
        c"general error",
    ];
    name(NAMES, status as usize)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_event_type_str(event: ffi::ibv_event_type) -> *const c_char {
    enter(Call::ibv_event_type_str);
    const NAMES: &[&CStr] = &[
        c"CQ error",
        c"local work queue catastrophic error",
        c"invalid request local work queue error",
        c"local access violation work queue error",
        c"communication established",
        c"send queue drained",
        c"path migrated",
        c"path migration request error",
        c"local catastrophic error",
        c"port active",
        c"port error",
        c"LID change",
        c"P_Key change",
        c"SM change",
        c"SRQ catastrophic error",
        c"SRQ limit reached",
        c"last WQE reached",
        c"client reregistration",
        c"GID table change",
    ];
    name(NAMES, event as usize)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_node_type_str(kind: ffi::ibv_node_type) -> *const c_char {
    enter(Call::ibv_node_type_str);
    const NAMES: &[&CStr] = &[
        c"unknown",
        c"InfiniBand channel adapter",
        c"InfiniBand switch",
        c"InfiniBand router",
        c"iWARP NIC",
    ];
    name(NAMES, usize::try_from(kind).unwrap_or(0))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_port_state_str(state: ffi::ibv_port_state) -> *const c_char {
    enter(Call::ibv_port_state_str);
    const NAMES: &[&CStr] = &[
        c"no state change",
        c"down",
        c"init",
        c"armed",
        c"active",
        c"active deferred",
    ];
    name(NAMES, state as usize)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_fork_init() -> c_int {
    enter(Call::ibv_fork_init).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_is_fork_initialized() -> ffi::ibv_fork_status {
    enter(Call::ibv_is_fork_initialized);
    ffi::IBV_FORK_UNNEEDED
}

#[unsafe(no_mangle)]
extern "C" fn ibv_get_sysfs_path() -> *const c_char {
    c"/sys".as_ptr()
}

/// Rates in multiples of 2.5 Gb/s, and in Mb/s.
const RATES: &[(u32, c_int, c_int)] = &[
    (ffi::IBV_RATE_2_5_GBPS, 1, 2500),
    (ffi::IBV_RATE_5_GBPS, 2, 5000),
    (ffi::IBV_RATE_10_GBPS, 4, 10000),
    (ffi::IBV_RATE_20_GBPS, 8, 20000),
    (ffi::IBV_RATE_25_GBPS, 10, 25781),
    (ffi::IBV_RATE_40_GBPS, 16, 40000),
    (ffi::IBV_RATE_100_GBPS, 40, 103125),
];

#[unsafe(no_mangle)]
extern "C" fn ibv_rate_to_mult(rate: ffi::ibv_rate) -> c_int {
    RATES.iter().find(|r| r.0 == rate).map_or(-1, |r| r.1)
}

#[unsafe(no_mangle)]
extern "C" fn mult_to_ibv_rate(mult: c_int) -> ffi::ibv_rate {
    RATES
        .iter()
        .find(|r| r.1 == mult)
        .map_or(ffi::IBV_RATE_MAX, |r| r.0)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_rate_to_mbps(rate: ffi::ibv_rate) -> c_int {
    RATES.iter().find(|r| r.0 == rate).map_or(-1, |r| r.2)
}

#[unsafe(no_mangle)]
extern "C" fn mbps_to_ibv_rate(mbps: c_int) -> ffi::ibv_rate {
    RATES
        .iter()
        .find(|r| r.2 == mbps)
        .map_or(ffi::IBV_RATE_MAX, |r| r.0)
}

/// Functions whose absence a program hears of: NULL with EOPNOTSUPP.
macro_rules! absent_pointers {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> *mut c_void { null(libc::EOPNOTSUPP) }
    )* };
}

/// The same, with EOPNOTSUPP as result.
macro_rules! absent_codes {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> c_int { libc::EOPNOTSUPP }
    )* };
}

/// The same, with -1 and errno.
macro_rules! absent_minus {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> c_int { minus(libc::EOPNOTSUPP) }
    )* };
}

/// Nothing to give back.
macro_rules! absent_void {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name() {}
    )* };
}

absent_pointers! {
    ibv_import_device ibv_import_pd ibv_import_mr ibv_import_dm ibv_create_ah ibv_create_ah_from_wc
}
absent_codes! {
    ibv_attach_mcast ibv_detach_mcast ibv_destroy_ah ibv_set_ece ibv_query_ece ibv_rereg_mr
    ibv_resolve_eth_l2_from_gid
}
absent_minus! {
    ibv_init_ah_from_wc ibv_get_pkey_index standin_rdma_join_multicast standin_rdma_join_multicast_ex
    standin_rdma_leave_multicast standin_rdma_reject_ece standin_rdma_set_local_ece standin_rdma_get_remote_ece
}
absent_void! { ibv_unimport_pd ibv_unimport_mr ibv_unimport_dm }

#[unsafe(no_mangle)]
extern "C" fn ibv_query_qp_data_in_order(
    qp: *mut ffi::ibv_qp,
    _op: ffi::ibv_wr_opcode,
    flags: u32,
) -> c_int {
    let w = world();
    let adapter = w
        .qps
        .at(qp as usize)
        .is_some_and(|q| w.personality_of(q.context) == Personality::Mlx5);
    // In 128-byte blocks only, as adapters on some buses say.
    let flagged = flags == ffi::IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS;
    if adapter && flagged {
        ffi::IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES as c_int
    } else {
        0
    }
}
