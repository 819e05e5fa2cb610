//! The functions of libibverbs that stand between this test and a device, replaced: the linker
//! takes these instead.
//!
//! What they do is kept for each thread, which is for each test.

use std::{
    cell::{Cell, RefCell},
    ffi::{c_char, c_int, c_uint, c_void},
    io::{Read, Write},
    os::{
        fd::{FromRawFd, IntoRawFd},
        unix::net::UnixStream,
    },
    ptr,
};

use rdma_sys as ffi;

pub const NAME: &str = "efa_0";

thread_local! {
    pub static VENDOR_PART_ID: Cell<u32> = const { Cell::new(0xefa2) };
    pub static OPEN_DEVICES: Cell<i32> = const { Cell::new(0) };
    pub static OPEN_CHANNELS: Cell<i32> = const { Cell::new(0) };
    pub static DESTROYED_CQS: Cell<u32> = const { Cell::new(0) };
    pub static ACKED_EVENTS: Cell<u32> = const { Cell::new(0) };
    pub static ARMED: Cell<u32> = const { Cell::new(0) };
    static EVENTS: RefCell<Option<UnixStream>> = const { RefCell::new(None) };
}

fn add(counter: &'static std::thread::LocalKey<Cell<i32>>, n: i32) {
    counter.set(counter.get() + n);
}

/// A completion event of this thread's channel.
pub fn send_event() {
    EVENTS.with_borrow_mut(|events| events.as_mut().unwrap().write_all(&[1]).unwrap());
}

/// The one device; nobody writes to it.
struct Device(ffi::ibv_device);

// SAFETY: it is read only.
unsafe impl Sync for Device {}

// SAFETY: all-zero bytes are a value of the struct.
static DEVICE: Device = Device(unsafe { std::mem::zeroed() });

type List = [*mut ffi::ibv_device; 2];

#[unsafe(no_mangle)]
extern "C" fn ibv_get_device_list(len: *mut c_int) -> *mut *mut ffi::ibv_device {
    // SAFETY: `len` is the caller's.
    unsafe { *len = 1 };
    let list: List = [(&raw const DEVICE.0).cast_mut(), ptr::null_mut()];
    Box::into_raw(Box::new(list)).cast()
}

#[unsafe(no_mangle)]
extern "C" fn ibv_free_device_list(list: *mut *mut ffi::ibv_device) {
    // SAFETY: it is one that `ibv_get_device_list` gave.
    drop(unsafe { Box::from_raw(list.cast::<List>()) });
}

#[unsafe(no_mangle)]
extern "C" fn ibv_get_device_name(_: *mut ffi::ibv_device) -> *const c_char {
    c"efa_0".as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn ibv_open_device(device: *mut ffi::ibv_device) -> *mut ffi::ibv_context {
    add(&OPEN_DEVICES, 1);
    // SAFETY: all-zero bytes are a value of the struct.
    let mut context: ffi::ibv_context = unsafe { std::mem::zeroed() };
    context.device = device;
    context.ops.poll_cq = Some(poll_cq);
    context.ops.req_notify_cq = Some(req_notify_cq);
    Box::into_raw(Box::new(context))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_close_device(context: *mut ffi::ibv_context) -> c_int {
    add(&OPEN_DEVICES, -1);
    // SAFETY: it is one that `ibv_open_device` gave.
    drop(unsafe { Box::from_raw(context) });
    0
}

#[unsafe(no_mangle)]
extern "C" fn ibv_query_device(_: *mut ffi::ibv_context, attr: *mut ffi::ibv_device_attr) -> c_int {
    // SAFETY: the attribute is the caller's.
    unsafe { (*attr).vendor_part_id = VENDOR_PART_ID.get() };
    0
}

#[unsafe(no_mangle)]
extern "C" fn ibv_create_comp_channel(
    context: *mut ffi::ibv_context,
) -> *mut ffi::ibv_comp_channel {
    add(&OPEN_CHANNELS, 1);
    let (reader, writer) = UnixStream::pair().unwrap();
    EVENTS.set(Some(writer));
    Box::into_raw(Box::new(ffi::ibv_comp_channel {
        context,
        fd: reader.into_raw_fd(),
        refcnt: 0,
    }))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_destroy_comp_channel(channel: *mut ffi::ibv_comp_channel) -> c_int {
    add(&OPEN_CHANNELS, -1);
    // SAFETY: it is one that `ibv_create_comp_channel` gave, and so is its fd.
    unsafe { drop(UnixStream::from_raw_fd(Box::from_raw(channel).fd)) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn ibv_get_cq_event(
    channel: *mut ffi::ibv_comp_channel,
    cq: *mut *mut ffi::ibv_cq,
    _: *mut *mut c_void,
) -> c_int {
    // SAFETY: the channel is open, its fd a socket.
    let mut reader = unsafe {
        *cq = ptr::dangling_mut();
        std::mem::ManuallyDrop::new(UnixStream::from_raw_fd((*channel).fd))
    };
    // Sets errno where nothing is there.
    if reader.read_exact(&mut [0]).is_ok() {
        0
    } else {
        -1
    }
}

#[unsafe(no_mangle)]
extern "C" fn ibv_ack_cq_events(_: *mut ffi::ibv_cq, n: c_uint) {
    ACKED_EVENTS.set(ACKED_EVENTS.get() + n);
}

#[unsafe(no_mangle)]
extern "C" fn ibv_destroy_cq(_: *mut ffi::ibv_cq) -> c_int {
    DESTROYED_CQS.set(DESTROYED_CQS.get() + 1);
    0
}

/// Two completions at each call, if there is room.
extern "C" fn poll_cq(_: *mut ffi::ibv_cq, len: c_int, wc: *mut ffi::ibv_wc) -> c_int {
    let n = len.min(2);
    for i in 0..n as usize {
        // SAFETY: there is room for `len`.
        unsafe { (*wc.add(i)).wr_id = 100 + i as u64 };
    }
    n
}

extern "C" fn req_notify_cq(_: *mut ffi::ibv_cq, solicited_only: c_int) -> c_int {
    assert_eq!(solicited_only, 0);
    ARMED.set(ARMED.get() + 1);
    0
}
