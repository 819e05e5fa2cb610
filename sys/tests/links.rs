//! Both libraries are found by the linker and the loader.

use rpma_sys as ffi;
use std::ffi::CStr;

#[test]
fn libibverbs_answers() {
    let mut count = -1;
    // SAFETY: `count` outlives the call, the list is freed once, the text is static.
    unsafe {
        // Null on a machine whose kernel has no RDMA at all.
        let list = ffi::ibv_get_device_list(&mut count);
        if !list.is_null() {
            assert!(count >= 0);
            ffi::ibv_free_device_list(list);
        }
        let text = CStr::from_ptr(ffi::ibv_wc_status_str(ffi::IBV_WC_SUCCESS));
        assert_eq!(text.to_str(), Ok("success"));
    }
}

#[test]
fn librdmacm_answers() {
    // SAFETY: the text is static.
    let text = unsafe { CStr::from_ptr(ffi::rdma_event_str(ffi::RDMA_CM_EVENT_ESTABLISHED)) };
    assert_eq!(text.to_str(), Ok("RDMA_CM_EVENT_ESTABLISHED"));
}
