//! EFA's direct verbs where there is no EFA: every call says so, and touches nothing. And, ignored
//! but for those who have one, on an EFA device:
//!
//! ```sh
//! RPMA_TEST_EFA_DEV=rdmap0s6 cargo test --features efa --test device_efa -- --ignored
//! ```
//!
//! on an EC2 instance with an EFA (`ibv_devices` names it), its kernel driver, and libefa of
//! rdma-core 59 or newer.

mod common;
mod efa_hardware;

use std::{
    ffi::{CStr, c_int, c_void},
    path::Path,
    process::Command,
    ptr,
};

use rdma_sys as ffi;
use rpma::{
    Error, Memory, Peer, Usage,
    efa::{Device, Library, SqShape},
};

const LIBEFA: &CStr = c"libefa.so.1";

/// What another device's objects get.
const NOT_HERE: &str = "not on this device";

/// The functions, their versions, and the rdma-core release that brought them.
const FUNCTIONS: [(&CStr, &CStr, &str); 7] = [
    (c"efadv_query_device", c"EFA_1.1", "26"),
    (c"efadv_create_cq", c"EFA_1.2", "43"),
    (c"efadv_query_mr", c"EFA_1.3", "50"),
    (c"efadv_query_cq", c"EFA_1.4", "59"),
    (c"efadv_query_qp_wqs", c"EFA_1.4", "59"),
    (c"efadv_get_max_sq_depth", c"EFA_1.5", "63"),
    (c"efadv_get_max_rq_depth", c"EFA_1.5", "63"),
];

fn why<T>(result: rpma::Result<T>) -> String {
    match result.err() {
        Some(err @ Error::NotSupported { .. }) => err.to_string(),
        Some(err) => panic!("{err:?}"),
        None => panic!("supported"),
    }
}

/// The system's function, looked up here once more.
fn function(name: &CStr, version: &CStr) -> *mut c_void {
    // SAFETY: plain look-ups.
    unsafe {
        let handle = libc::dlopen(LIBEFA.as_ptr(), libc::RTLD_NOW);
        if handle.is_null() {
            return handle;
        }
        libc::dlvsym(handle, name.as_ptr(), version.as_ptr())
    }
}

fn has_libefa() -> bool {
    // SAFETY: a plain look-up.
    !unsafe { libc::dlopen(LIBEFA.as_ptr(), libc::RTLD_NOW) }.is_null()
}

#[test]
fn the_device_under_test_is_no_efa() {
    let peer = device!();
    let says = why(Device::try_new(&peer));
    let expected = if has_libefa() {
        NOT_HERE
    } else {
        "libefa.so.1 is not here"
    };
    assert!(says.contains(expected), "{says}");
    let by_name = why(Device::open(&peer.device_name()));
    assert_eq!(by_name, says);
    // The peer is as good as before.
    let memory = Memory::anonymous(4096).unwrap();
    peer.register(memory, Usage::WRITE_DST).unwrap();
}

#[test]
fn no_device_goes_by_a_strange_name() {
    let _ = device!();
    if !has_libefa() {
        skip!("no libefa.so.1 on this machine");
    }
    let err = Device::open("no-such-device").unwrap_err();
    assert!(matches!(err, Error::NoDevice { .. }), "{err:?}");
}

/// Objects of the device under test, made with nothing but verbs. They are left to the end of the
/// process.
struct Objects {
    context: *mut ffi::ibv_context,
    pd: *mut ffi::ibv_pd,
    cq: *mut ffi::ibv_cq,
    mr: *mut ffi::ibv_mr,
    qp: *mut ffi::ibv_qp,
}

impl Objects {
    fn create(peer: &Peer) -> Self {
        let name = peer.device_name();
        // SAFETY: each call gets what the one before gave.
        unsafe {
            let mut len = 0;
            let list = ffi::ibv_get_device_list(&mut len);
            let device = (0..len as usize)
                .map(|i| *list.add(i))
                .find(|device| {
                    CStr::from_ptr(ffi::ibv_get_device_name(*device)).to_str() == Ok(&name)
                })
                .unwrap();
            let context = ffi::ibv_open_device(device);
            let pd = ffi::ibv_alloc_pd(context);
            let cq = ffi::ibv_create_cq(context, 16, ptr::null_mut(), ptr::null_mut(), 0);
            let bytes = Box::leak(vec![0u8; 4096].into_boxed_slice());
            let access = ffi::IBV_ACCESS_LOCAL_WRITE as c_int;
            let mr = ffi::ibv_reg_mr(pd, bytes.as_mut_ptr().cast(), bytes.len(), access);
            let mut init = ffi::ibv_qp_init_attr {
                send_cq: cq,
                recv_cq: cq,
                qp_type: ffi::IBV_QPT_RC,
                ..std::mem::zeroed()
            };
            init.cap.max_send_wr = 4;
            init.cap.max_recv_wr = 4;
            init.cap.max_send_sge = 1;
            init.cap.max_recv_sge = 1;
            let qp = ffi::ibv_create_qp(pd, &mut init);
            assert!(!context.is_null() && !pd.is_null() && !cq.is_null());
            assert!(!mr.is_null() && !qp.is_null());
            Objects {
                context,
                pd,
                cq,
                mr,
                qp,
            }
        }
    }

    fn assert_usable(&self) {
        // SAFETY: all of them are alive, unless a call destroyed what it should not have touched.
        unsafe {
            let mut wc = ffi::ibv_wc::default();
            assert_eq!(ffi::ibv_poll_cq(self.cq, 1, &mut wc), 0);
            assert_eq!(ffi::ibv_destroy_qp(self.qp), 0);
            assert_eq!(ffi::ibv_dereg_mr(self.mr), 0);
            assert_eq!(ffi::ibv_destroy_cq(self.cq), 0);
            assert_eq!(ffi::ibv_dealloc_pd(self.pd), 0);
            assert_eq!(ffi::ibv_close_device(self.context), 0);
        }
    }
}

/// With Debian 13's libefa the younger functions are too old, with Debian testing's, which
/// `RPMA_TEST_EFA_NEWEST` announces, none is.
#[test]
fn every_function_is_refused_by_its_device_or_too_old() {
    let peer = device!();
    if !has_libefa() {
        skip!("no libefa.so.1 on this machine");
    }
    // SAFETY: the system's library.
    let library = unsafe { Library::open_at(Path::new("libefa.so.1")) }.unwrap();
    let objects = Objects::create(&peer);
    let mut cq = ffi::ibv_cq_init_attr_ex {
        cqe: 16,
        ..Default::default()
    };
    // SAFETY: all objects are alive. To other devices than EFA the calls say that before they look
    // any further.
    let answers = unsafe {
        [
            why(library.query_device(objects.context)),
            why(library.create_cq(objects.context, &mut cq, &mut Default::default())),
            why(library.query_mr(objects.mr)),
            why(library.query_cq(objects.cq)),
            why(library.query_qp_wqs(objects.qp)),
            why(library.max_sq_depth(objects.context, SqShape::default())),
            why(library.max_rq_depth(objects.context, 1)),
        ]
    };
    let mut old = Vec::new();
    for ((name, version, release), says) in FUNCTIONS.iter().zip(&answers) {
        let name_text = name.to_str().unwrap();
        if function(name, version).is_null() {
            let expected = format!("rdma-core {release} or newer has it");
            assert!(
                says.contains(name_text) && says.contains(&expected),
                "{name_text}: {says}"
            );
            old.push(name_text);
        } else {
            assert!(says.contains(NOT_HERE), "{name_text}: {says}");
        }
    }
    println!(
        "{} functions refuse this device; not in this libefa: {old:?}",
        7 - old.len()
    );
    if std::env::var_os("RPMA_TEST_EFA_NEWEST").is_some() {
        assert_eq!(old, [""; 0]);
    }
    objects.assert_usable();
}

/// What the calls leave of the struct that they should fill: everything.
#[test]
fn refused_queries_touch_nothing() {
    type Query = unsafe extern "C" fn(*mut c_void, *mut c_void, u32) -> c_int;
    type QueryTwo = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, u32) -> c_int;
    type Create = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, u32) -> *mut c_void;
    const CANARY: [u8; 64] = [0xa5; 64];

    let peer = device!();
    let objects = Objects::create(&peer);
    let mut called = 0;
    for (name, version, _) in FUNCTIONS {
        let symbol = function(name, version);
        if symbol.is_null() {
            continue;
        }
        called += 1;
        let mut attrs = [CANARY; 2];
        let [first, second] = &mut attrs;
        let (first, second) = (first.as_mut_ptr().cast(), second.as_mut_ptr().cast());
        // SAFETY: the functions have these types, the objects are alive, the structs are larger
        // than any of theirs.
        let ret = unsafe {
            match name.to_bytes() {
                b"efadv_create_cq" => {
                    let create = std::mem::transmute::<*mut c_void, Create>(symbol);
                    assert!(create(objects.context.cast(), first, second, 16).is_null());
                    *libc::__errno_location()
                }
                b"efadv_query_qp_wqs" => {
                    let query = std::mem::transmute::<*mut c_void, QueryTwo>(symbol);
                    query(objects.qp.cast(), first, second, 40)
                }
                name => {
                    let query = std::mem::transmute::<*mut c_void, Query>(symbol);
                    match name {
                        b"efadv_query_cq" => query(objects.cq.cast(), first, 32),
                        b"efadv_query_mr" => query(objects.mr.cast(), first, 16),
                        b"efadv_query_device" => query(objects.context.cast(), first, 32),
                        b"efadv_get_max_sq_depth" => -query(objects.context.cast(), first, 24),
                        _ => -query(objects.context.cast(), first, 16),
                    }
                }
            }
        };
        assert_eq!(ret, libc::EOPNOTSUPP, "{name:?}");
        assert_eq!(attrs, [CANARY; 2], "{name:?}");
    }
    if called == 0 {
        skip!("no libefa.so.1 on this machine");
    }
    objects.assert_usable();
}

/// In a mount namespace where an empty file lies on the library.
#[test]
fn without_libefa_it_is_absent() {
    const INSIDE: &str = "RPMA_TEST_EFA_ABSENT";
    let peer = device!();
    if std::env::var_os(INSIDE).is_some() {
        let says = why(Device::try_new(&peer));
        assert!(says.contains("libefa.so.1 is not here"), "{says}");
        return;
    }
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        skip!("not root, so the library cannot be hidden");
    }
    let script = r#"
        for file in $(ldconfig -p | sed -n 's/.*libefa\.so\.1 .*=> //p') $RPMA_TEST_LIBEFA; do
            mount --bind /dev/null "$(realpath "$file")" || exit 77
        done
        exec "$@""#;
    let loaded = loaded_path();
    let done = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "without_libefa_it_is_absent", "--nocapture"])
        .env(INSIDE, "1")
        .env("RPMA_TEST_LIBEFA", loaded)
        .output();
    match done {
        Ok(done) if done.status.success() => {
            let out = String::from_utf8_lossy(&done.stdout);
            assert!(out.contains("1 passed"), "{out}");
        }
        Ok(done) if done.status.code() == Some(77) => skip!("mount is not allowed here"),
        Ok(done) => panic!("{done:?}"),
        Err(err) => skip!("no unshare: {err}"),
    }
}

/// Where the loader takes the library from, if it does.
fn loaded_path() -> String {
    let symbol = function(c"efadv_query_device", c"EFA_1.1");
    if symbol.is_null() {
        return String::new();
    }
    // SAFETY: the symbol is one of a loaded library, whose name lives with it.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        assert_ne!(libc::dladdr(symbol, &mut info), 0);
        CStr::from_ptr(info.dli_fname).to_str().unwrap().to_owned()
    }
}
