//! The addresses inside an `rdma_cm_id`.

use crate::*;
use libc::sockaddr;

/// Where the id keeps its own address; valid as long as the id. `man 3 rdma_get_local_addr`.
///
/// # Safety
/// `id` is valid.
#[inline]
pub unsafe fn rdma_get_local_addr(id: *mut rdma_cm_id) -> *mut sockaddr {
    // SAFETY: the caller's contract; an address within the id is taken, nothing is read.
    unsafe { (&raw mut (*id).route.addr.__bindgen_anon_1).cast() }
}

/// Where the id keeps its peer's address; valid as long as the id. `man 3 rdma_get_peer_addr`.
///
/// # Safety
/// `id` is valid.
#[inline]
pub unsafe fn rdma_get_peer_addr(id: *mut rdma_cm_id) -> *mut sockaddr {
    // SAFETY: the caller's contract; an address within the id is taken, nothing is read.
    unsafe { (&raw mut (*id).route.addr.__bindgen_anon_2).cast() }
}
