//! The queries: what goes in, what comes out, what is missing.

use std::{path::Path, ptr};

use rpma::{
    Call, Error,
    efa::{Device, DeviceCaps, Library, SqShape, WqCaps},
};

use crate::{
    device,
    library::Standin,
    put, u32_at,
    verbs::{self, OPEN_DEVICES},
};

fn not_supported<T: std::fmt::Debug>(result: rpma::Result<T>) -> String {
    match result.unwrap_err() {
        err @ Error::NotSupported { .. } => err.to_string(),
        err => panic!("{err:?}"),
    }
}

#[test]
fn a_device_tells_what_it_can_do() {
    device!(standin, device = 65);
    let state = standin.state();
    assert_eq!(
        (state.calls, state.inlen, state.object),
        (1, 32, device.as_raw().cast())
    );
    let attr = device.attr();
    assert_eq!((attr.max_sq_wr, attr.max_rq_wr), (1000, 2000));
    assert_eq!((attr.max_sq_sge, attr.max_rq_sge), (3, 4));
    assert_eq!((attr.max_inline, attr.max_rdma_size), (64, 1 << 30));
    assert_eq!(attr.capabilities.bits(), 0x7f);
    assert!(
        attr.capabilities
            .contains(DeviceCaps::CQ_WITH_SGID | DeviceCaps::RDMA_WRITE)
    );
    assert_eq!(attr.vendor_part_id, 0xefa2);
    assert_eq!(device.name(), verbs::NAME);
    assert!(format!("{device:?}").contains("efa_0"));
}

#[test]
fn capabilities_without_a_name_are_kept() {
    let Some(mut standin) = Standin::of_release(65) else {
        return;
    };
    put(
        &mut standin.state().device_attr,
        24,
        &0x8000_0001u32.to_ne_bytes(),
    );
    let device = Device::open_with(verbs::NAME, standin.library).unwrap();
    assert_eq!(device.attr().capabilities.bits(), 0x8000_0001);
}

#[test]
fn the_device_is_closed_by_the_last_handle() {
    device!(_standin, device = 65);
    let clone = device.clone();
    drop(device);
    assert_eq!(OPEN_DEVICES.get(), 1);
    drop(clone);
    assert_eq!(OPEN_DEVICES.get(), 0);
}

#[test]
fn another_device_is_not_supported_and_closed() {
    let Some(mut standin) = Standin::of_release(65) else {
        return;
    };
    standin.state().error = libc::EOPNOTSUPP;
    let why = not_supported(Device::open_with(verbs::NAME, standin.library));
    assert!(why.contains("not on this device"), "{why}");
    assert_eq!(OPEN_DEVICES.get(), 0);
}

#[test]
fn other_refusals_are_the_providers() {
    let Some(mut standin) = Standin::of_release(65) else {
        return;
    };
    standin.state().error = libc::EINVAL;
    let err = Device::open_with(verbs::NAME, standin.library).unwrap_err();
    assert!(
        matches!(
            err,
            Error::Provider {
                call: Call::EfadvQueryDevice,
                ..
            }
        ),
        "{err:?}"
    );
    assert_eq!(err.raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn no_device_of_that_name() {
    let Some(standin) = Standin::of_release(65) else {
        return;
    };
    let err = Device::open_with("efa_7", standin.library).unwrap_err();
    assert!(matches!(err, Error::NoDevice { .. }), "{err:?}");
    assert_eq!(OPEN_DEVICES.get(), 0);
}

#[test]
fn no_library_is_said() {
    // SAFETY: there is nothing to run.
    let why = not_supported(unsafe { Library::open_at(Path::new("/nonexistent/libefa.so.1")) });
    assert!(why.contains("libefa.so.1 is not here"), "{why}");
}

#[test]
fn an_old_library_is_said_function_by_function() {
    device!(standin, device = 43);
    let calls = standin.state().calls;
    let raw = ptr::dangling_mut;
    // SAFETY: functions that are missing are not called.
    unsafe {
        let too_old = |why: String, function: &str, release: &str| {
            assert!(why.contains(function), "{why}");
            assert!(
                why.ends_with(&format!("rdma-core {release} or newer has it")),
                "{why}"
            );
        };
        too_old(
            not_supported(device.query_raw_cq(raw())),
            "efadv_query_cq",
            "59",
        );
        too_old(
            not_supported(device.query_raw_qp(ptr::dangling_mut())),
            "efadv_query_qp_wqs",
            "59",
        );
        too_old(
            not_supported(device.query_raw_mr(ptr::dangling_mut())),
            "efadv_query_mr",
            "50",
        );
        too_old(
            not_supported(device.max_sq_depth(SqShape::default())),
            "efadv_get_max_sq_depth",
            "63",
        );
        too_old(
            not_supported(device.max_rq_depth(1)),
            "efadv_get_max_rq_depth",
            "63",
        );
    }
    assert_eq!(standin.state().calls, calls);
}

#[test]
fn the_oldest_library_creates_no_queues() {
    device!(_standin, device = 26);
    let why = not_supported(device.create_cq(rpma::efa::CqOptions::new(8)));
    assert!(why.ends_with("rdma-core 43 or newer has it"), "{why}");
}

/// A function is looked up by name and version: under another version it may be another function.
#[test]
#[cfg(target_env = "gnu")]
fn functions_of_another_version_are_not_taken() {
    let Some(mut standin) = Standin::with_other_versions() else {
        return;
    };
    let why = not_supported(Device::open_with(verbs::NAME, standin.library));
    assert!(why.contains("efadv_query_device"), "{why}");
    assert_eq!(standin.state().calls, 0);
}

#[test]
fn depths_go_in_and_come_out() {
    device!(standin, device = 65);
    standin.state().depth = 777;
    let shape = SqShape {
        max_send_sge: 2,
        max_rdma_sge: 1,
        max_inline_data: 32,
        inline_write: true,
    };
    assert_eq!(device.max_sq_depth(shape).unwrap(), 777);
    let state = standin.state();
    assert_eq!((state.inlen, state.object), (24, device.as_raw().cast()));
    assert_eq!(state.input[..8], [0; 8]);
    assert_eq!(
        [8, 12, 16, 20].map(|at| u32_at(&state.input, at)),
        [1, 2, 1, 32]
    );

    device
        .max_sq_depth(SqShape {
            inline_write: false,
            ..shape
        })
        .unwrap();
    assert_eq!(u32_at(&standin.state().input, 8), 0);

    assert_eq!(device.max_rq_depth(3).unwrap(), 777);
    let state = standin.state();
    assert_eq!((state.inlen, u32_at(&state.input, 8)), (16, 3));

    state.error = libc::EINVAL;
    let err = device.max_sq_depth(shape).unwrap_err();
    assert_eq!(err.raw_os_error(), Some(libc::EINVAL));
    standin.state().error = libc::EOPNOTSUPP;
    not_supported(device.max_rq_depth(3));
}

#[test]
fn interconnects_are_told_where_valid() {
    device!(standin, device = 65);
    let attr = &mut standin.state().mr_attr;
    for (at, value) in [(8, 0b101u16), (10, 11), (12, 12), (14, 13)] {
        put(attr, at, &value.to_ne_bytes());
    }
    // SAFETY: the stand-in does not look at the region.
    let attr = unsafe { device.query_raw_mr(ptr::dangling_mut()) }.unwrap();
    assert_eq!(
        (attr.receive, attr.rdma_read, attr.rdma_receive),
        (Some(11), None, Some(13))
    );
    assert_eq!(standin.state().inlen, 16);
}

#[test]
fn work_queues_are_described() {
    device!(standin, device = 65);
    let mut doorbell = 0u32;
    let doorbell = &raw mut doorbell;
    let [sq, rq] = &mut standin.state().wq_attr;
    put(sq, 8, &0x1000usize.to_ne_bytes());
    put(sq, 16, &64u32.to_ne_bytes());
    put(sq, 20, &256u32.to_ne_bytes());
    put(sq, 24, &doorbell.expose_provenance().to_ne_bytes());
    put(sq, 32, &16u32.to_ne_bytes());
    put(sq, 36, &0x8001u16.to_ne_bytes());
    put(rq, 16, &32u32.to_ne_bytes());
    // SAFETY: the stand-in does not look at the queue pair.
    let wqs = unsafe { device.query_raw_qp(ptr::dangling_mut()) }.unwrap();
    assert_eq!(wqs.send.buffer.addr(), 0x1000);
    assert_eq!(
        (wqs.send.entry_size, wqs.send.entries, wqs.send.max_batch),
        (64, 256, 16)
    );
    assert_eq!(wqs.send.doorbell.unwrap().as_ptr().addr(), doorbell.addr());
    assert!(wqs.send.capabilities.contains(WqCaps::WIDE_REQUEST_ID));
    assert_eq!(wqs.send.capabilities.bits(), 0x8001);
    assert_eq!((wqs.receive.entry_size, wqs.receive.doorbell), (32, None));
    assert_eq!(standin.state().inlen, 40);
}

#[test]
fn handles_cross_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Device>();
    shared::<rpma::efa::Cq>();
    shared::<rpma::efa::CqRing<'_>>();
    sent::<rpma::efa::Poller<'_>>();
}
