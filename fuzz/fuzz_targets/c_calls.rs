//! Calls of the C interface in any order with any arguments that C's contract allows, on the
//! stand-in device.
#![no_main]

use std::{
    ffi::{c_char, c_int, c_void},
    ptr::{null, null_mut},
};

use libfuzzer_sys::fuzz_target;
use rpma_capi as _;

type Handle = *mut c_void;

unsafe extern "C" {
    fn rpma_utils_get_ibv_context(addr: *const c_char, kind: c_int, ctx: *mut Handle) -> c_int;
    fn rpma_peer_new(ctx: Handle, peer: *mut Handle) -> c_int;
    fn rpma_peer_delete(peer: *mut Handle) -> c_int;
    fn rpma_peer_cfg_from_descriptor(desc: *const c_void, len: usize, cfg: *mut Handle) -> c_int;
    fn rpma_peer_cfg_delete(cfg: *mut Handle) -> c_int;
    fn rpma_mr_reg(peer: Handle, ptr: *mut c_void, len: usize, usage: c_int, mr: *mut Handle) -> c_int;
    fn rpma_mr_dereg(mr: *mut Handle) -> c_int;
    fn rpma_mr_get_descriptor(mr: Handle, desc: *mut c_void) -> c_int;
    fn rpma_mr_advise(mr: Handle, offset: usize, len: usize, advice: c_int, flags: u32) -> c_int;
    fn rpma_mr_remote_from_descriptor(desc: *const c_void, len: usize, mr: *mut Handle) -> c_int;
    fn rpma_mr_remote_delete(mr: *mut Handle) -> c_int;
    fn rpma_conn_cfg_new(cfg: *mut Handle) -> c_int;
    fn rpma_conn_cfg_delete(cfg: *mut Handle) -> c_int;
    fn rpma_conn_cfg_set_timeout(cfg: Handle, ms: c_int) -> c_int;
    fn rpma_conn_cfg_set_cq_size(cfg: Handle, n: u32) -> c_int;
    fn rpma_conn_cfg_set_rcq_size(cfg: Handle, n: u32) -> c_int;
    fn rpma_conn_cfg_set_sq_size(cfg: Handle, n: u32) -> c_int;
    fn rpma_conn_cfg_set_rq_size(cfg: Handle, n: u32) -> c_int;
    fn rpma_ep_listen(peer: Handle, addr: *const c_char, port: *const c_char, ep: *mut Handle) -> c_int;
    fn rpma_ep_shutdown(ep: *mut Handle) -> c_int;
    fn rpma_ep_get_fd(ep: Handle, fd: *mut c_int) -> c_int;
    fn rpma_ep_next_conn_req(ep: Handle, cfg: Handle, req: *mut Handle) -> c_int;
    fn rpma_conn_req_new(peer: Handle, addr: *const c_char, port: *const c_char, cfg: Handle, req: *mut Handle) -> c_int;
    fn rpma_conn_req_delete(req: *mut Handle) -> c_int;
    fn rpma_conn_req_recv(req: Handle, mr: Handle, offset: usize, len: usize, id: *const c_void) -> c_int;
    fn rpma_conn_req_connect(req: *mut Handle, data: *const c_void, conn: *mut Handle) -> c_int;
    fn rpma_conn_delete(conn: *mut Handle) -> c_int;
    fn rpma_conn_disconnect(conn: Handle) -> c_int;
    fn rpma_conn_get_event_fd(conn: Handle, fd: *mut c_int) -> c_int;
    fn rpma_conn_next_event(conn: Handle, event: *mut c_int) -> c_int;
    fn rpma_conn_apply_remote_peer_cfg(conn: Handle, cfg: Handle) -> c_int;
    fn rpma_conn_get_cq(conn: Handle, cq: *mut Handle) -> c_int;
    fn rpma_cq_get_wc(cq: Handle, n: c_int, wc: *mut c_void, got: *mut c_int) -> c_int;
    fn rpma_recv(conn: Handle, mr: Handle, offset: usize, len: usize, id: *const c_void) -> c_int;
    fn rpma_write(conn: Handle, dst: Handle, to: usize, src: Handle, from: usize, len: usize, flags: c_int, id: *const c_void) -> c_int;
    fn rpma_read(conn: Handle, dst: Handle, to: usize, src: Handle, from: usize, len: usize, flags: c_int, id: *const c_void) -> c_int;
    fn rpma_send(conn: Handle, src: Handle, from: usize, len: usize, flags: c_int, id: *const c_void) -> c_int;
    fn rpma_flush(conn: Handle, dst: Handle, to: usize, len: usize, kind: c_int, flags: c_int, id: *const c_void) -> c_int;
    fn rpma_atomic_write(conn: Handle, dst: Handle, to: usize, src: *const c_char, flags: c_int, id: *const c_void) -> c_int;
    fn fcntl(fd: c_int, what: c_int, ...) -> c_int;
}

const F_GETFL: c_int = 3;
const F_SETFL: c_int = 4;
const O_NONBLOCK: c_int = 0o4000;
const ADDR: *const c_char = c"192.168.77.1".as_ptr();
const PORT: *const c_char = c"7204".as_ptr();
const SLOTS: usize = 3;

/// One handle of each kind in each place, null or alive: what C's contract asks for.
#[derive(Default)]
struct Handles {
    peer: [Slot; SLOTS],
    cfg: [Slot; SLOTS],
    pcfg: [Slot; SLOTS],
    mr: [Slot; SLOTS],
    remote: [Slot; SLOTS],
    ep: [Slot; SLOTS],
    req: [Slot; SLOTS],
    conn: [Slot; SLOTS],
}

struct Slot(Handle);

impl Default for Slot {
    fn default() -> Self {
        Slot(null_mut())
    }
}

#[repr(C)]
struct PrivateData {
    ptr: *const c_void,
    len: u8,
}

fuzz_target!(|data: &[u8]| {
    let mut memory = vec![0u8; 8192];
    // SAFETY: each handle is null or alive, and used as its kind; the memory outlives its
    // registrations; buffers are as long as the functions write.
    unsafe {
        let mut handles = Handles::default();
        let mut ctx = null_mut();
        assert_eq!(rpma_utils_get_ibv_context(ADDR, 0, &mut ctx), 0, "run with LD_LIBRARY_PATH=$(ci/standin)");
        for step in data.chunks_exact(8) {
            let code = call(&mut handles, ctx, &mut memory, step);
            assert!(code == 0 || (-100009..=-100000).contains(&code), "{code}");
            assert_ne!(code, -100000, "a panic, or an event of no kind");
        }
        for (slots, delete) in [
            (&mut handles.conn, rpma_conn_delete as unsafe extern "C" fn(*mut Handle) -> c_int),
            (&mut handles.req, rpma_conn_req_delete),
            (&mut handles.ep, rpma_ep_shutdown),
            (&mut handles.mr, rpma_mr_dereg),
            (&mut handles.remote, rpma_mr_remote_delete),
            (&mut handles.cfg, rpma_conn_cfg_delete),
            (&mut handles.pcfg, rpma_peer_cfg_delete),
            (&mut handles.peer, rpma_peer_delete),
        ] {
            for slot in slots {
                let _ = delete(&mut slot.0);
                assert!(slot.0.is_null());
            }
        }
    }
});

unsafe fn call(h: &mut Handles, ctx: Handle, memory: &mut [u8], step: &[u8]) -> c_int {
    let at = usize::from(step[1]) % SLOTS;
    let other = usize::from(step[2]) % SLOTS;
    let number = usize::from(u16::from_le_bytes([step[3], step[4]]));
    let len = usize::from(u16::from_le_bytes([step[5], step[6]]));
    let flags = c_int::from(step[7]);
    let id = number as *const c_void;
    // A handle that is made takes the place of none.
    macro_rules! make {
        ($kind:ident, $call:expr) => {{
            if !h.$kind[at].0.is_null() {
                return 0;
            }
            let mut made = null_mut();
            let make: &mut dyn FnMut(*mut Handle) -> c_int = &mut $call;
            let code = make(&mut made);
            h.$kind[at].0 = made;
            assert_eq!(code == 0, !made.is_null());
            code
        }};
    }
    // SAFETY: as the target says.
    unsafe {
        match step[0] % 39 {
            0 => make!(peer, |to| rpma_peer_new(if flags & 7 == 7 { null_mut() } else { ctx }, to)),
            1 => rpma_peer_delete(&mut h.peer[at].0),
            2 => make!(pcfg, |to| rpma_peer_cfg_from_descriptor(step.as_ptr().cast(), len % 9, to)),
            3 => rpma_peer_cfg_delete(&mut h.pcfg[at].0),
            4 | 5 => {
                let (peer, start) = (h.peer[other].0, number % 4096);
                let (ptr, usage) = (memory.as_mut_ptr().add(start), if flags == 0 { 0x1ff } else { flags * 3 });
                make!(mr, |to| rpma_mr_reg(peer, ptr.cast(), len % 4096, usage, to))
            }
            6 => rpma_mr_dereg(&mut h.mr[at].0),
            7 => rpma_mr_advise(h.mr[at].0, number, len, flags, 0),
            8 => make!(remote, |to| rpma_mr_remote_from_descriptor(step.as_ptr().cast(), step.len(), to)),
            9 | 10 => {
                let mut desc = [0u8; 64];
                let code = rpma_mr_get_descriptor(h.mr[other].0, desc.as_mut_ptr().cast());
                if code != 0 {
                    return code;
                }
                make!(remote, |to| rpma_mr_remote_from_descriptor(desc.as_ptr().cast(), desc.len(), to))
            }
            11 => rpma_mr_remote_delete(&mut h.remote[at].0),
            12 => make!(cfg, |to| rpma_conn_cfg_new(to)),
            13 => rpma_conn_cfg_delete(&mut h.cfg[at].0),
            14 => rpma_conn_cfg_set_timeout(h.cfg[at].0, 1 + c_int::from(step[3] & 15)),
            15 => rpma_conn_cfg_set_cq_size(h.cfg[at].0, number as u32),
            16 => rpma_conn_cfg_set_rcq_size(h.cfg[at].0, number as u32),
            17 => rpma_conn_cfg_set_sq_size(h.cfg[at].0, number as u32 & 255),
            18 => rpma_conn_cfg_set_rq_size(h.cfg[at].0, number as u32 & 255),
            19 => {
                let peer = h.peer[other].0;
                let code = make!(ep, |to| rpma_ep_listen(peer, ADDR, PORT, to));
                nonblocking(h.ep[at].0, rpma_ep_get_fd);
                code
            }
            20 => rpma_ep_shutdown(&mut h.ep[at].0),
            21 | 22 => {
                let (ep, cfg) = (h.ep[other].0, h.cfg[at].0);
                make!(req, |to| rpma_ep_next_conn_req(ep, cfg, to))
            }
            23 => {
                let (peer, cfg) = (h.peer[other].0, h.cfg[at].0);
                make!(req, |to| rpma_conn_req_new(peer, ADDR, PORT, cfg, to))
            }
            24 => rpma_conn_req_delete(&mut h.req[at].0),
            25 => rpma_conn_req_recv(h.req[at].0, h.mr[other].0, number, len, id),
            26 | 27 => {
                let data = PrivateData { ptr: step.as_ptr().cast(), len: step[7] % 9 };
                let data: *const PrivateData = if flags & 1 == 1 { null() } else { &data };
                let req: *mut Handle = &mut h.req[other].0;
                let code = make!(conn, |to| rpma_conn_req_connect(req, data.cast(), to));
                nonblocking(h.conn[at].0, rpma_conn_get_event_fd);
                code
            }
            28 => rpma_conn_delete(&mut h.conn[at].0),
            29 => rpma_conn_disconnect(h.conn[at].0),
            30 | 31 => {
                let mut event = 0;
                rpma_conn_next_event(h.conn[at].0, &mut event)
            }
            32 => rpma_conn_apply_remote_peer_cfg(h.conn[at].0, h.pcfg[other].0),
            33 => {
                let mut cq = null_mut();
                let code = rpma_conn_get_cq(h.conn[at].0, &mut cq);
                let (mut wc, mut got) = ([0u64; 4 * 6], 0);
                if code == 0 {
                    return rpma_cq_get_wc(cq, c_int::from(step[3] % 5), wc.as_mut_ptr().cast(), &mut got);
                }
                code
            }
            34 => rpma_recv(h.conn[at].0, h.mr[other].0, number, len, id),
            35 => rpma_write(h.conn[at].0, h.remote[other].0, number, h.mr[other].0, len % 64, len, flags, id),
            36 => rpma_read(h.conn[at].0, h.mr[other].0, len % 64, h.remote[other].0, number, len, flags, id),
            37 => rpma_send(h.conn[at].0, h.mr[other].0, number, len, flags, id),
            _ if flags & 1 == 1 => rpma_flush(h.conn[at].0, h.remote[other].0, number, len, flags >> 1, 2, id),
            _ => rpma_atomic_write(h.conn[at].0, h.remote[other].0, number, step.as_ptr().cast(), 2, id),
        }
    }
}

/// Nothing may wait for ever.
unsafe fn nonblocking(handle: Handle, get: unsafe extern "C" fn(Handle, *mut c_int) -> c_int) {
    let mut fd = -1;
    // SAFETY: as the target says.
    unsafe {
        if get(handle, &mut fd) == 0 {
            fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        }
    }
}
