//! Creation, polling and events of queues.

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
    fs::File,
    os::fd::{AsFd, AsRawFd},
    ptr,
    time::{Duration, Instant},
};

use rdma_sys as ffi;
use rpma::{
    Call, Completion, Error, WcOpcode, WcStatus,
    efa::{CompletionEx, Cq, CqOptions, Device, ExternalMemory},
};

use crate::{
    device,
    library::Standin,
    put, u32_at, u64_at,
    verbs::{self, ACKED_EVENTS, ARMED, DESTROYED_CQS, OPEN_CHANNELS, OPEN_DEVICES},
};

/// `struct efadv_cq`
#[repr(C)]
struct EfaCq {
    comp_mask: u64,
    wc_read_sgid: extern "C" fn(*mut c_void, *mut ffi::ibv_gid) -> c_int,
    wc_is_unsolicited: extern "C" fn(*mut c_void) -> bool,
}

/// Queues are never freed: a test makes one.
pub fn create(standin: &mut Standin, device: &Device, options: CqOptions) -> Cq {
    // SAFETY: all-zero bytes are a value of the struct.
    let mut cq: ffi::ibv_cq_ex = unsafe { std::mem::zeroed() };
    cq.context = device.as_raw();
    cq.start_poll = Some(start_poll);
    cq.next_poll = Some(next_poll);
    cq.end_poll = Some(end_poll);
    cq.read_opcode = Some(read_opcode);
    cq.read_vendor_err = Some(read_vendor_err);
    cq.read_byte_len = Some(read_byte_len);
    cq.read_imm_data = Some(read_imm_data);
    cq.read_qp_num = Some(read_qp_num);
    cq.read_src_qp = Some(read_qp_num);
    cq.read_wc_flags = Some(read_wc_flags);
    let efa = EfaCq {
        comp_mask: 0,
        wc_read_sgid,
        wc_is_unsolicited,
    };
    standin.state().cq = Box::into_raw(Box::new(cq)).cast();
    standin.state().efa_cq = Box::into_raw(Box::new(efa)).cast();
    device.create_cq(options).unwrap()
}

#[test]
fn a_plain_queue_asks_for_nothing_more() {
    device!(standin, device = 65);
    let cq = create(&mut standin, &device, CqOptions::new(512));
    let state = standin.state();
    assert_eq!(cq.as_raw().cast(), state.cq);
    // What the first library with this function knew.
    assert_eq!(state.inlen, 16);
    assert_eq!(state.input[..16], [0; 16]);
    assert_eq!(state.object, device.as_raw().cast());
    let verbs = &state.input_verbs;
    assert_eq!(u32_at(verbs, 0), 512);
    assert_eq!(u64_at(verbs, 16), 0, "channel");
    assert_eq!(u32_at(verbs, 24), 0, "vector");
    assert_eq!(
        u64_at(verbs, 32) & !u64::from(ffi::IBV_WC_STANDARD_FLAGS),
        0
    );
    assert_eq!(verbs[40..], [0; 16]);
    assert_eq!(cq.options().entries, 512);
    assert!(cq.event_fd().is_none());
    for refused in [cq.arm(), cq.take_event().map(drop), cq.wait(None).map(drop)] {
        assert!(matches!(refused, Err(Error::NotSupported { .. })));
    }
}

#[test]
fn a_queue_with_everything_says_so() {
    device!(standin, device = 65);
    let options = CqOptions {
        channel: true,
        comp_vector: 3,
        source_gids: true,
        unsolicited: true,
        ..CqOptions::new(16)
    };
    let cq = create(&mut standin, &device, options);
    let state = standin.state();
    assert_eq!((state.inlen, u64_at(&state.input, 8)), (16, 3));
    assert_ne!(u64_at(&state.input_verbs, 16), 0);
    assert_eq!(u32_at(&state.input_verbs, 24), 3);
    drop(device);
    assert_eq!((OPEN_CHANNELS.get(), OPEN_DEVICES.get()), (1, 1));
    drop(cq);
    assert_eq!(DESTROYED_CQS.get(), 1);
    assert_eq!((OPEN_CHANNELS.get(), OPEN_DEVICES.get()), (0, 0));
}

#[test]
fn external_memory_goes_in() {
    device!(standin, device = 65);
    drop(create(&mut standin, &device, CqOptions::new(16)));
    let file = File::open("/dev/null").unwrap();
    let memory = ExternalMemory {
        buffer: ptr::without_provenance_mut(0x7000),
        length: 0x2000,
        offset: 0x1000,
        fd: file.as_fd(),
    };
    // SAFETY: the stand-in does not touch the memory.
    let cq = unsafe { device.create_cq_in(CqOptions::new(16), memory) }.unwrap();
    let state = standin.state();
    assert_eq!(state.inlen, 56);
    assert_eq!([0, 8, 16].map(|at| u64_at(&state.input, at)), [0, 0, 1]);
    assert_eq!(
        [24, 32, 40].map(|at| u64_at(&state.input, at)),
        [0x7000, 0x2000, 0x1000]
    );
    assert_eq!(u32_at(&state.input, 48), file.as_raw_fd() as u32);
    assert_eq!(state.input[52..56], [0; 4]);
    assert_eq!(cq.poll(&mut [Completion::default(); 1]).unwrap(), 1);

    // Nothing here reads a queue that only others can.
    let unmapped = ExternalMemory {
        buffer: ptr::null_mut(),
        ..memory
    };
    // SAFETY: as above.
    let cq = unsafe { device.create_cq_in(CqOptions::new(16), unmapped) }.unwrap();
    let polled = [
        cq.poll(&mut [Completion::default(); 1]),
        cq.poll_ex(&mut [CompletionEx::default(); 1]),
    ];
    assert!(
        polled
            .iter()
            .all(|polled| matches!(polled, Err(Error::NotSupported { .. })))
    );
}

#[test]
fn what_the_device_cannot_is_not_asked() {
    let Some(mut standin) = Standin::of_release(65) else {
        return;
    };
    put(&mut standin.state().device_attr, 24, &0u32.to_ne_bytes());
    let device = Device::open_with(verbs::NAME, standin.library).unwrap();
    let calls = standin.state().calls;
    let plain = CqOptions::new(16);
    let file = File::open("/dev/null").unwrap();
    let memory = ExternalMemory {
        buffer: ptr::null_mut(),
        length: 1,
        offset: 0,
        fd: file.as_fd(),
    };
    let refused = [
        device.create_cq(CqOptions {
            source_gids: true,
            ..plain
        }),
        device.create_cq(CqOptions {
            unsolicited: true,
            ..plain
        }),
        // SAFETY: no memory is named.
        unsafe { device.create_cq_in(plain, memory) },
    ];
    for refused in refused {
        assert!(
            matches!(refused, Err(Error::NotSupported { .. })),
            "{refused:?}"
        );
    }
    let err = device.create_cq(CqOptions::new(0)).unwrap_err();
    assert!(
        matches!(
            err,
            Error::InvalidArgument {
                argument: "entries",
                ..
            }
        ),
        "{err:?}"
    );
    assert_eq!(standin.state().calls, calls);
}

#[test]
fn a_refused_creation_leaves_nothing_behind() {
    device!(standin, device = 65);
    standin.state().error = libc::ENOMEM;
    let options = CqOptions {
        channel: true,
        ..CqOptions::new(16)
    };
    let err = device.create_cq(options).unwrap_err();
    assert!(
        matches!(
            err,
            Error::OutOfMemory {
                call: Call::EfadvCreateCq,
                ..
            }
        ),
        "{err:?}"
    );
    assert_eq!((OPEN_CHANNELS.get(), DESTROYED_CQS.get()), (0, 0));
    standin.state().error = libc::EOPNOTSUPP;
    assert!(matches!(
        device.create_cq(options),
        Err(Error::NotSupported { .. })
    ));
    // Created, but not to be had as EFA's.
    standin.state().error = 0;
    let mut plain = [0u64; 64];
    standin.state().cq = plain.as_mut_ptr().cast();
    device.create_cq(options).unwrap_err();
    assert_eq!((OPEN_CHANNELS.get(), DESTROYED_CQS.get()), (0, 1));
}

#[test]
fn events_are_waited_for_and_acknowledged() {
    device!(standin, device = 65);
    let cq = create(
        &mut standin,
        &device,
        CqOptions {
            channel: true,
            ..CqOptions::new(16)
        },
    );
    assert!(cq.event_fd().is_some());
    cq.arm().unwrap();
    assert_eq!(ARMED.get(), 1);
    assert!(!cq.take_event().unwrap());
    let start = Instant::now();
    assert!(!cq.wait(Some(Duration::from_millis(20))).unwrap());
    cq.waker().unwrap().wake();
    assert!(matches!(cq.wait(None), Err(Error::Woken)));
    assert!(start.elapsed() >= Duration::from_millis(20));
    for _ in 0..70 {
        verbs::send_event();
    }
    assert!(cq.wait(None).unwrap());
    assert!(cq.wait(Some(Duration::from_secs(60))).unwrap());
    for _ in 2..70 {
        assert!(cq.take_event().unwrap());
    }
    assert!(!cq.take_event().unwrap());
    drop(cq);
    assert_eq!(ACKED_EVENTS.get(), 70);
}

#[test]
fn libibverbs_way_of_polling_works() {
    device!(standin, device = 65);
    let cq = create(&mut standin, &device, CqOptions::new(16));
    let mut buf = [Completion::default(); 4];
    assert_eq!(cq.poll(&mut buf).unwrap(), 2);
    assert_eq!(buf[1].wr_id(), 101);
    assert_eq!(cq.poll(&mut []).unwrap(), 0);
}

thread_local! {
    /// Of `LEFT` completions none is taken without being read.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    static OPEN: Cell<bool> = const { Cell::new(false) };
}

#[test]
fn extended_polling_tells_all() {
    device!(standin, device = 65);
    let options = CqOptions {
        source_gids: true,
        unsolicited: true,
        ..CqOptions::new(16)
    };
    let cq = create(&mut standin, &device, options);
    let mut buf = [CompletionEx::default(); 2];
    assert_eq!(cq.poll_ex(&mut buf).unwrap(), 0);
    LEFT.set(3);
    assert_eq!(cq.poll_ex(&mut []).unwrap(), 0);
    assert_eq!(cq.poll_ex(&mut buf).unwrap(), 2);
    let [first, failed] = buf;
    assert_eq!(
        (first.wr_id, first.status, first.qp_num),
        (3, WcStatus::SUCCESS, 42)
    );
    assert_eq!((first.opcode, first.byte_len), (Some(WcOpcode::RECV), 64));
    assert_eq!((first.imm_data, first.source_qp), (Some(0x0102_0304), 42));
    assert_eq!(first.source_gid, Some([9; 16]));
    assert!(first.unsolicited);
    assert_eq!(
        (failed.wr_id, failed.status),
        (2, WcStatus::RNR_RETRY_EXC_ERR)
    );
    assert_eq!(
        (failed.vendor_error, failed.opcode, failed.source_gid),
        (10, None, None)
    );

    assert_eq!(cq.poll_ex(&mut buf).unwrap(), 1);
    assert_eq!((buf[0].wr_id, buf[0].source_gid), (1, None));
    assert!(!OPEN.get());
}

#[test]
fn what_was_not_asked_for_is_not_told() {
    device!(standin, device = 65);
    let cq = create(&mut standin, &device, CqOptions::new(16));
    LEFT.set(3);
    let mut buf = [CompletionEx::default(); 1];
    assert_eq!(cq.poll_ex(&mut buf).unwrap(), 1);
    assert_eq!((buf[0].source_gid, buf[0].unsolicited), (None, false));
}

/// Takes the next completion: number 3 is fine, 2 failed, 1 has a sender with an address handle.
fn take(cq: *mut ffi::ibv_cq_ex) -> c_int {
    let left = LEFT.get();
    if left == 0 {
        return libc::ENOENT;
    }
    // SAFETY: the queue is alive.
    unsafe {
        (*cq).wr_id = left.into();
        (*cq).status = if left == 2 {
            ffi::IBV_WC_RNR_RETRY_EXC_ERR
        } else {
            ffi::IBV_WC_SUCCESS
        };
    }
    LEFT.set(left - 1);
    0
}

unsafe extern "C" fn start_poll(
    cq: *mut ffi::ibv_cq_ex,
    attr: *mut ffi::ibv_poll_cq_attr,
) -> c_int {
    // SAFETY: the attribute is the caller's.
    assert_eq!(unsafe { (*attr).comp_mask }, 0);
    let ret = take(cq);
    OPEN.set(ret == 0);
    ret
}

unsafe extern "C" fn next_poll(cq: *mut ffi::ibv_cq_ex) -> c_int {
    take(cq)
}

unsafe extern "C" fn end_poll(_: *mut ffi::ibv_cq_ex) {
    assert!(OPEN.replace(false));
}

unsafe extern "C" fn read_opcode(_: *mut ffi::ibv_cq_ex) -> ffi::ibv_wc_opcode {
    ffi::IBV_WC_RECV
}

unsafe extern "C" fn read_vendor_err(_: *mut ffi::ibv_cq_ex) -> u32 {
    10
}

unsafe extern "C" fn read_byte_len(_: *mut ffi::ibv_cq_ex) -> u32 {
    64
}

unsafe extern "C" fn read_imm_data(_: *mut ffi::ibv_cq_ex) -> u32 {
    0x0102_0304u32.to_be()
}

unsafe extern "C" fn read_qp_num(_: *mut ffi::ibv_cq_ex) -> u32 {
    42
}

unsafe extern "C" fn read_wc_flags(_: *mut ffi::ibv_cq_ex) -> u32 {
    ffi::IBV_WC_WITH_IMM
}

extern "C" fn wc_read_sgid(_: *mut c_void, gid: *mut ffi::ibv_gid) -> c_int {
    if LEFT.get() == 0 {
        return -libc::ENOENT;
    }
    // SAFETY: the GID is the caller's.
    unsafe { (*gid).raw = [9; 16] };
    0
}

extern "C" fn wc_is_unsolicited(_: *mut c_void) -> bool {
    true
}
