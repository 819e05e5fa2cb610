//! The C library librpma, as distributions ship it, on the stand-in: `RPMA_LIBRPMA` names its
//! librpma.so.0.

mod common;

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use common::standin;
use libloading::os::unix::Library;
use rdma_sys as ffi;
use standin_control::{Knob, Personality};

type Handle = *mut c_void;

/// The functions of librpma by name, each called with the arguments that its man page lists.
struct Librpma(Library);

macro_rules! call {
    ($lib:expr, $name:literal, $($arg:expr => $ty:ty),*) => {{
        let f = $lib.0.get::<unsafe extern "C" fn($($ty),*) -> c_int>(concat!($name, "\0").as_bytes()).unwrap();
        f($($arg),*)
    }};
}

const VISIBILITY: c_int = 1;
const ALWAYS: c_int = 3;
const E_PROVIDER: c_int = -100_002;

/// WRITE_SRC, WRITE_DST, READ_SRC, READ_DST, FLUSH_TYPE_VISIBILITY.
const USAGE: c_int = 0b1_1111;

fn librpma(test: &str) -> Option<Librpma> {
    let Some(path) = std::env::var_os("RPMA_LIBRPMA").filter(|p| !p.is_empty()) else {
        println!("SKIP: {test}: RPMA_LIBRPMA names no librpma.so.0");
        return None;
    };
    // SAFETY: a C library without surprising constructors.
    Some(Librpma(
        unsafe { Library::new(path) }.expect("librpma loads on the stand-in"),
    ))
}

const ADDR: *const c_char = c"192.168.77.1".as_ptr();

unsafe fn peer(lib: &Librpma) -> Handle {
    unsafe {
        let (mut ctx, mut peer): (Handle, Handle) = (null_mut(), null_mut());
        let r = call!(lib, "rpma_utils_get_ibv_context", ADDR => *const c_char, 0 => c_int, &raw mut ctx => *mut Handle);
        assert_eq!(r, 0);
        assert_eq!(
            call!(lib, "rpma_peer_new", ctx => Handle, &raw mut peer => *mut Handle),
            0
        );
        peer
    }
}

unsafe fn event(lib: &Librpma, conn: Handle) -> c_int {
    unsafe {
        let mut e = -1;
        assert_eq!(
            call!(lib, "rpma_conn_next_event", conn => Handle, &raw mut e => *mut c_int),
            0
        );
        e
    }
}

unsafe fn close(lib: &Librpma, conn: &mut Handle) {
    unsafe {
        assert_eq!(call!(lib, "rpma_conn_delete", conn => *mut Handle), 0);
    }
}

/// Takes requests at the endpoint and connects them, in another thread: the active side blocks
/// meanwhile.
unsafe fn accept(lib: &Librpma, ep: Handle) -> (Handle, c_int) {
    unsafe {
        let (mut req, mut conn): (Handle, Handle) = (null_mut(), null_mut());
        let r = call!(lib, "rpma_ep_next_conn_req", ep => Handle, null_mut() => Handle, &raw mut req => *mut Handle);
        if r != 0 {
            return (null_mut(), r);
        }
        let r = call!(lib, "rpma_conn_req_connect", &raw mut req => *mut Handle, null_mut() => Handle, &raw mut conn => *mut Handle);
        assert_eq!((r, event(lib, conn)), (0, 0));
        (conn, 0)
    }
}

#[test]
fn librpma_connects_writes_flushes_and_reads() {
    let Some(lib) = librpma("librpma_connects_writes_flushes_and_reads") else {
        return;
    };
    for p in [Personality::Rxe, Personality::Mlx5] {
        let s = standin(p);
        s.set(Knob::TimewaitMs, 1);
        let before = s.objects();
        unsafe {
            let mut peer = peer(&lib);
            let mut ep: Handle = null_mut();
            let port = c"7401".as_ptr();
            let r = call!(lib, "rpma_ep_listen", peer => Handle, ADDR => *const c_char, port => *const c_char, &raw mut ep => *mut Handle);
            assert_eq!(r, 0);
            let (lib_ref, ep_at) = (&lib, ep as usize);
            struct Sent<'a>(&'a Librpma);
            unsafe impl Send for Sent<'_> {}
            let sent = Sent(lib_ref);
            let (mut client, mut server): (Handle, Handle) = (null_mut(), null_mut());
            std::thread::scope(|scope| {
                let acceptor = scope.spawn(move || {
                    let sent = sent;
                    accept(sent.0, ep_at as Handle).0 as usize
                });
                let mut req: Handle = null_mut();
                let r = call!(lib, "rpma_conn_req_new", peer => Handle, ADDR => *const c_char, port => *const c_char, null_mut() => Handle, &raw mut req => *mut Handle);
                assert_eq!(r, 0);
                let r = call!(lib, "rpma_conn_req_connect", &raw mut req => *mut Handle, null_mut() => Handle, &raw mut client => *mut Handle);
                assert_eq!(r, 0);
                assert_eq!(event(&lib, client), 0, "established");
                server = acceptor.join().unwrap() as Handle;
            });

            let (mut near, mut far) = (vec![0u8; 4096], vec![0u8; 4096]);
            let (mut src, mut dst, mut remote): (Handle, Handle, Handle) =
                (null_mut(), null_mut(), null_mut());
            for (mem, mr) in [(&mut near, &mut src), (&mut far, &mut dst)] {
                let r = call!(lib, "rpma_mr_reg", peer => Handle, mem.as_mut_ptr() => *mut u8, 4096 => usize, USAGE => c_int, mr => *mut Handle);
                assert_eq!(r, 0);
            }
            let mut descriptor = [0u8; 21];
            assert_eq!(
                call!(lib, "rpma_mr_get_descriptor", dst => Handle, descriptor.as_mut_ptr() => *mut u8),
                0
            );
            let r = call!(lib, "rpma_mr_remote_from_descriptor", descriptor.as_ptr() => *const u8, 21 => usize, &raw mut remote => *mut Handle);
            assert_eq!(r, 0);

            near[..5].copy_from_slice(b"bytes");
            let none: Handle = null_mut();
            let r = call!(lib, "rpma_write", client => Handle, remote => Handle, 64 => usize, src => Handle, 0 => usize, 5 => usize, 1 => c_int, none => Handle);
            assert_eq!(r, 0);
            let r = call!(lib, "rpma_flush", client => Handle, remote => Handle, 64 => usize, 5 => usize, VISIBILITY => c_int, ALWAYS => c_int, 7 as Handle => Handle);
            assert_eq!(r, 0);
            assert_eq!(&far[64..69], b"bytes");
            let mut cq: Handle = null_mut();
            assert_eq!(
                call!(lib, "rpma_conn_get_cq", client => Handle, &raw mut cq => *mut Handle),
                0
            );
            assert_eq!(call!(lib, "rpma_cq_wait", cq => Handle), 0);
            let mut wc = ffi::ibv_wc::default();
            let r = call!(lib, "rpma_cq_get_wc", cq => Handle, 1 => c_int, &raw mut wc => *mut ffi::ibv_wc, null_mut() => *mut c_int);
            assert_eq!((r, wc.status, wc.wr_id), (0, 0, 7));
            let native = p == Personality::Rxe;
            let opcode = if native {
                ffi::IBV_WC_FLUSH
            } else {
                ffi::IBV_WC_RDMA_READ
            };
            assert_eq!(wc.opcode, opcode);

            assert_eq!(call!(lib, "rpma_conn_disconnect", client => Handle), 0);
            assert_eq!(event(&lib, client), 1, "closed");
            assert_eq!(event(&lib, server), 1, "closed");
            close(&lib, &mut client);
            close(&lib, &mut server);
            assert_eq!(
                call!(lib, "rpma_mr_remote_delete", &raw mut remote => *mut Handle),
                0
            );
            for mr in [&mut src, &mut dst] {
                assert_eq!(call!(lib, "rpma_mr_dereg", mr => *mut Handle), 0);
            }
            assert_eq!(
                call!(lib, "rpma_ep_shutdown", &raw mut ep => *mut Handle),
                0
            );
            assert_eq!(
                call!(lib, "rpma_peer_delete", &raw mut peer => *mut Handle),
                0
            );
        }
        assert_eq!(s.objects(), before, "{p:?}");
        assert_eq!(s.violations(), Vec::<String>::new(), "{p:?}");
    }
}

#[test]
fn librpma_cannot_make_a_queue_pair_on_iwarp() {
    let Some(lib) = librpma("librpma_cannot_make_a_queue_pair_on_iwarp") else {
        return;
    };
    let s = standin(Personality::Siw);
    let before = s.objects();
    unsafe {
        let mut peer = peer(&lib);
        let mut req: Handle = null_mut();
        let port = c"7402".as_ptr();
        let r = call!(lib, "rpma_conn_req_new", peer => Handle, ADDR => *const c_char, port => *const c_char, null_mut() => Handle, &raw mut req => *mut Handle);
        assert_eq!(r, E_PROVIDER);
        assert_eq!(
            call!(lib, "rpma_peer_delete", &raw mut peer => *mut Handle),
            0
        );
    }
    assert_eq!(s.count("rdma_create_qp_ex"), 1);
    assert_eq!(s.objects(), before);
}

/// The stand-in finds what is known of librpma 1.3: a dropped request's id is never destroyed.
#[test]
fn librpma_leaks_the_id_of_a_dropped_request() {
    let Some(lib) = librpma("librpma_leaks_the_id_of_a_dropped_request") else {
        return;
    };
    let s = standin(Personality::Rxe);
    unsafe {
        let peer = peer(&lib);
        let mut ep: Handle = null_mut();
        let port = c"7403".as_ptr();
        let r = call!(lib, "rpma_ep_listen", peer => Handle, ADDR => *const c_char, port => *const c_char, &raw mut ep => *mut Handle);
        assert_eq!(r, 0);
        let (active, channel) = common::resolve([192, 168, 77, 1], 7403);
        let mut p = common::param(7, b"");
        p.qp_num = 1;
        assert_eq!(ffi::rdma_connect(active, &raw mut p), 0);
        let before = s.objects().ids;
        let mut req: Handle = null_mut();
        let r = call!(lib, "rpma_ep_next_conn_req", ep => Handle, null_mut() => Handle, &raw mut req => *mut Handle);
        assert_eq!(r, 0);
        assert_eq!(
            call!(lib, "rpma_conn_req_delete", &raw mut req => *mut Handle),
            0
        );
        common::expect(channel, ffi::RDMA_CM_EVENT_REJECTED);
        assert_eq!(s.objects().ids, before + 1, "librpma 1.3 defect 1");
    }
}
