//! The functions of librpma.h, as a C program declares them.

use std::ffi::{c_char, c_int, c_void};

/// A handle of any kind.
pub type Handle = *mut c_void;

/// What deletes a handle and clears its place.
pub type Delete = unsafe extern "C" fn(*mut Handle) -> c_int;

macro_rules! functions {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        unsafe extern "C" {
            $(pub fn $name($($arg: $ty),*) -> c_int;)*
        }
    };
}

functions! {
    fn rpma_log_set_threshold(threshold: c_int, level: c_int);
    fn rpma_log_set_function(function: *const c_void);
    fn rpma_utils_get_ibv_context(addr: *const c_char, kind: c_int, ctx: *mut Handle);
    fn rpma_utils_ibv_context_is_odp_capable(ctx: Handle, capable: *mut c_int);
    fn rpma_peer_new(ctx: Handle, peer: *mut Handle);
    fn rpma_peer_delete(peer: *mut Handle);
    fn rpma_peer_cfg_new(cfg: *mut Handle);
    fn rpma_peer_cfg_delete(cfg: *mut Handle);
    fn rpma_peer_cfg_set_direct_write_to_pmem(cfg: Handle, yes: bool);
    fn rpma_mr_reg(peer: Handle, ptr: *mut c_void, len: usize, usage: c_int, mr: *mut Handle);
    fn rpma_mr_dereg(mr: *mut Handle);
    fn rpma_mr_get_descriptor(mr: Handle, desc: *mut u8);
    fn rpma_mr_advise(mr: Handle, offset: usize, len: usize, advice: c_int, flags: u32);
    fn rpma_mr_remote_from_descriptor(desc: *const u8, len: usize, mr: *mut Handle);
    fn rpma_mr_remote_delete(mr: *mut Handle);
    fn rpma_conn_cfg_new(cfg: *mut Handle);
    fn rpma_conn_cfg_delete(cfg: *mut Handle);
    fn rpma_conn_cfg_set_timeout(cfg: Handle, ms: c_int);
    fn rpma_conn_cfg_set_rcq_size(cfg: Handle, n: u32);
    fn rpma_conn_cfg_set_compl_channel(cfg: Handle, shared: bool);
    fn rpma_conn_cfg_set_srq(cfg: Handle, srq: Handle);
    fn rpma_srq_cfg_new(cfg: *mut Handle);
    fn rpma_srq_cfg_delete(cfg: *mut Handle);
    fn rpma_srq_cfg_set_rcq_size(cfg: Handle, n: u32);
    fn rpma_srq_new(peer: Handle, cfg: Handle, srq: *mut Handle);
    fn rpma_srq_get_rcq(srq: Handle, cq: *mut Handle);
    fn rpma_srq_delete(srq: *mut Handle);
    fn rpma_srq_recv(srq: Handle, mr: Handle, offset: usize, len: usize, id: *const c_void);
    fn rpma_ep_listen(peer: Handle, addr: *const c_char, port: *const c_char, ep: *mut Handle);
    fn rpma_ep_shutdown(ep: *mut Handle);
    fn rpma_ep_get_fd(ep: Handle, fd: *mut c_int);
    fn rpma_ep_next_conn_req(ep: Handle, cfg: Handle, req: *mut Handle);
    fn rpma_conn_req_new(peer: Handle, addr: *const c_char, port: *const c_char, cfg: Handle, req: *mut Handle);
    fn rpma_conn_req_delete(req: *mut Handle);
    fn rpma_conn_req_recv(req: Handle, mr: Handle, offset: usize, len: usize, id: *const c_void);
    fn rpma_conn_req_connect(req: *mut Handle, data: *const PrivateData, conn: *mut Handle);
    fn rpma_conn_req_get_private_data(req: Handle, data: *mut PrivateData);
    fn rpma_conn_delete(conn: *mut Handle);
    fn rpma_conn_disconnect(conn: Handle);
    fn rpma_conn_get_event_fd(conn: Handle, fd: *mut c_int);
    fn rpma_conn_next_event(conn: Handle, event: *mut c_int);
    fn rpma_conn_get_private_data(conn: Handle, data: *mut PrivateData);
    fn rpma_conn_apply_remote_peer_cfg(conn: Handle, cfg: Handle);
    fn rpma_conn_get_cq(conn: Handle, cq: *mut Handle);
    fn rpma_conn_get_rcq(conn: Handle, cq: *mut Handle);
    fn rpma_conn_get_compl_fd(conn: Handle, fd: *mut c_int);
    fn rpma_conn_wait(conn: Handle, flags: c_int, cq: *mut Handle, is_rcq: *mut bool);
    fn rpma_cq_get_fd(cq: Handle, fd: *mut c_int);
    fn rpma_cq_wait(cq: Handle);
    fn rpma_cq_get_wc(cq: Handle, n: c_int, wc: *mut rdma_sys::ibv_wc, got: *mut c_int);
    fn rpma_read(conn: Handle, dst: Handle, to: usize, src: Handle, from: usize, len: usize, flags: c_int, id: *const c_void);
    fn rpma_write(conn: Handle, dst: Handle, to: usize, src: Handle, from: usize, len: usize, flags: c_int, id: *const c_void);
    fn rpma_write_with_imm(conn: Handle, dst: Handle, to: usize, src: Handle, from: usize, len: usize, flags: c_int, imm: u32, id: *const c_void);
    fn rpma_atomic_write(conn: Handle, dst: Handle, to: usize, src: *const u8, flags: c_int, id: *const c_void);
    fn rpma_flush(conn: Handle, dst: Handle, to: usize, len: usize, kind: c_int, flags: c_int, id: *const c_void);
    fn rpma_send(conn: Handle, src: Handle, from: usize, len: usize, flags: c_int, id: *const c_void);
    fn rpma_send_with_imm(conn: Handle, src: Handle, from: usize, len: usize, flags: c_int, imm: u32, id: *const c_void);
    fn rpma_recv(conn: Handle, mr: Handle, offset: usize, len: usize, id: *const c_void);
    fn rpma_conn_get_completion_fd(conn: Handle, fd: *mut c_int);
    fn rpma_conn_completion_wait(conn: Handle);
    fn rpma_conn_completion_get(conn: Handle, cmpl: *mut Completion);
    fn rpma_cq_get_completion(cq: Handle, cmpl: *mut Completion);
    fn rpma_write_atomic(conn: Handle, dst: Handle, to: usize, src: Handle, from: usize, flags: c_int, id: *const c_void);
}

/// `struct rpma_completion`, of the functions before librpma 1.0.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Completion {
    pub op_context: *mut c_void,
    pub op: c_int,
    pub byte_len: u32,
    pub op_status: c_int,
    pub flags: u32,
    pub imm: u32,
}

/// `struct rpma_conn_private_data`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct PrivateData {
    pub ptr: *mut c_void,
    pub len: u8,
}

pub const UNKNOWN: c_int = -100_000;
pub const NOSUPP: c_int = -100_001;
pub const PROVIDER: c_int = -100_002;
pub const NOMEM: c_int = -100_003;
pub const INVAL: c_int = -100_004;
pub const NO_COMPLETION: c_int = -100_005;
pub const NO_EVENT: c_int = -100_006;
pub const AGAIN: c_int = -100_007;

pub const ESTABLISHED: c_int = 0;
pub const CLOSED: c_int = 1;
pub const REJECTED: c_int = 3;

/// `RPMA_F_COMPLETION_ALWAYS`.
pub const ALWAYS: c_int = 3;
/// `RPMA_F_COMPLETION_ON_ERROR`.
pub const ON_ERROR: c_int = 1;
