//! The extended verbs on a real device: they must reach the provider, not the fallback.
//!
//! Runs where `RPMA_TEST_DEV` declares a device (`rxe`, `siw`, `hw`), as `ci/vm` does; a declared
//! device that cannot be used fails.

use rpma_sys as ffi;
use std::env;
use std::io::Error;
use std::ptr::null_mut;

/// The first device of this machine, open, with a protection domain.
struct Device {
    context: *mut ffi::ibv_context,
    pd: *mut ffi::ibv_pd,
}

impl Device {
    fn open() -> Self {
        // SAFETY: the list is read before it is freed, and the first entry exists if the count says
        // so.
        unsafe {
            let mut count = 0;
            let list = ffi::ibv_get_device_list(&mut count);
            assert!(
                !list.is_null() && count > 0,
                "no RDMA device: {}",
                Error::last_os_error()
            );
            let context = ffi::ibv_open_device(*list);
            ffi::ibv_free_device_list(list);
            assert!(
                !context.is_null(),
                "ibv_open_device: {}",
                Error::last_os_error()
            );
            let pd = ffi::ibv_alloc_pd(context);
            assert!(!pd.is_null(), "ibv_alloc_pd: {}", Error::last_os_error());
            Self { context, pd }
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: made by `open`, and each test destroys what it creates.
        unsafe {
            assert_eq!(ffi::ibv_dealloc_pd(self.pd), 0);
            assert_eq!(ffi::ibv_close_device(self.context), 0);
        }
    }
}

fn declared() -> Option<String> {
    let kind = env::var("RPMA_TEST_DEV").ok().filter(|kind| kind != "none");
    if kind.is_none() {
        println!("SKIP: device_sys: RPMA_TEST_DEV declares no device");
    }
    kind
}

#[test]
fn queries_reach_the_provider() {
    let Some(kind) = declared() else { return };
    let device = Device::open();
    let mut attr = ffi::ibv_device_attr_ex::default();
    let mut port = ffi::ibv_port_attr::default();
    let mut gids = [ffi::ibv_gid_entry::default(); 16];
    // SAFETY: an open context, and structs of our own.
    unsafe {
        assert_eq!(
            ffi::ibv_query_device_ex(device.context, null_mut(), &mut attr),
            0
        );
        assert_eq!(ffi::ibv_query_port(device.context, 1, &mut port), 0);
        let count = ffi::ibv_query_gid_table(device.context, gids.as_mut_ptr(), gids.len(), 0);
        assert!(count >= 1, "ibv_query_gid_table: {count}");
    }
    assert!(attr.orig_attr.max_qp > 0);
    assert_eq!(port.state, ffi::IBV_PORT_ACTIVE);
    assert_ne!(u32::from(port.link_layer), ffi::IBV_LINK_LAYER_UNSPECIFIED);
    if kind == "rxe" {
        let flush = ffi::IBV_DEVICE_FLUSH_GLOBAL | ffi::IBV_DEVICE_FLUSH_PERSISTENT;
        let wanted = flush | ffi::IBV_DEVICE_ATOMIC_WRITE;
        assert_eq!(
            attr.device_cap_flags_ex & wanted,
            wanted,
            "{:#x}",
            attr.device_cap_flags_ex
        );
    }
}

#[test]
fn an_extended_qp_and_cq_exist_where_the_provider_has_them() {
    let Some(kind) = declared() else { return };
    let device = Device::open();
    let mut cq_attr = ffi::ibv_cq_init_attr_ex {
        cqe: 16,
        ..Default::default()
    };
    // SAFETY: valid objects, destroyed in reverse order of their creation.
    unsafe {
        let cq_ex = ffi::ibv_create_cq_ex(device.context, &mut cq_attr);
        let cq_error = Error::last_os_error().raw_os_error();
        let cq = if cq_ex.is_null() {
            ffi::ibv_create_cq(device.context, 16, null_mut(), null_mut(), 0)
        } else {
            assert_eq!(
                ffi::ibv_start_poll(cq_ex, &mut Default::default()),
                libc::ENOENT
            );
            ffi::ibv_cq_ex_to_cq(cq_ex)
        };
        assert!(!cq.is_null());
        let mut wc = ffi::ibv_wc::default();
        assert_eq!(ffi::ibv_poll_cq(cq, 1, &mut wc), 0);

        let mut qp_attr = ffi::ibv_qp_init_attr_ex {
            send_cq: cq,
            recv_cq: cq,
            cap: ffi::ibv_qp_cap {
                max_send_wr: 4,
                max_recv_wr: 4,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 8,
            },
            qp_type: ffi::IBV_QPT_RC,
            comp_mask: ffi::IBV_QP_INIT_ATTR_PD,
            pd: device.pd,
            ..Default::default()
        };
        let plain = ffi::ibv_create_qp_ex(device.context, &mut qp_attr);
        assert!(!plain.is_null(), "{}", Error::last_os_error());
        assert_eq!(ffi::ibv_destroy_qp(plain), 0);

        qp_attr.comp_mask |= ffi::IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        qp_attr.send_ops_flags =
            (ffi::IBV_QP_EX_WITH_RDMA_WRITE | ffi::IBV_QP_EX_WITH_RDMA_READ).into();
        if kind == "rxe" {
            let flags = ffi::IBV_QP_EX_WITH_FLUSH | ffi::IBV_QP_EX_WITH_ATOMIC_WRITE;
            qp_attr.send_ops_flags |= u64::from(flags);
        }
        let qp = ffi::ibv_create_qp_ex(device.context, &mut qp_attr);
        let qp_error = Error::last_os_error().raw_os_error();
        match kind.as_str() {
            "siw" => {
                let unsupported = Some(libc::EOPNOTSUPP);
                assert!(qp.is_null() && qp_error == unsupported, "{qp_error:?}");
                assert!(cq_ex.is_null() && cq_error == unsupported, "{cq_error:?}");
            }
            "rxe" => {
                assert!(!cq_ex.is_null(), "{cq_error:?}");
                assert!(!qp.is_null(), "{qp_error:?}");
                let qp_ex = ffi::ibv_qp_to_qp_ex(qp);
                assert!((*qp_ex).wr_flush.is_some() && (*qp_ex).wr_atomic_write.is_some());
                ffi::ibv_wr_start(qp_ex);
                ffi::ibv_wr_abort(qp_ex);
            }
            _ => {}
        }
        if !qp.is_null() {
            assert_eq!(ffi::ibv_destroy_qp(qp), 0);
        }
        assert_eq!(ffi::ibv_destroy_cq(cq), 0);
    }
}
