use std::{ffi::c_void, sync::Arc};

use rdma_sys as ffi;

use super::{Pd, check, check_ptr};
use crate::{Call, Error, Result};

/// The most inline data, in bytes, that a queue pair with one entry gets on the device.
///
/// No query tells, so small queue pairs are created, never connected and destroyed. The answer
/// falls with more scatter/gather elements or entries on some devices.
pub(crate) fn max_inline(pd: &Arc<Pd>) -> Result<u32> {
    // SAFETY: the context is open; a CQ without a channel is allowed.
    let cq = unsafe {
        ffi::ibv_create_cq(
            pd.context().as_ptr(),
            2,
            std::ptr::null_mut::<c_void>(),
            std::ptr::null_mut(),
            0,
        )
    };
    let cq = check_ptr(Call::IbvCreateCq, cq)?;
    let most = try_sizes(pd, cq.as_ptr());
    // SAFETY: this is the owner; a queue pair is left on it only where the device refused its end,
    // and then refuses this too.
    let ended = check(Call::IbvDestroyCq, unsafe {
        ffi::ibv_destroy_cq(cq.as_ptr())
    });
    crate::log_limit::log_failure(ended);
    most
}

fn try_sizes(pd: &Arc<Pd>, cq: *mut ffi::ibv_cq) -> Result<u32> {
    let (mut low, mut high) = (0u32, 4096u32);
    while low < high {
        let middle = (low + high).div_ceil(2);
        let mut attr = ffi::ibv_qp_init_attr {
            send_cq: cq,
            recv_cq: cq,
            cap: ffi::ibv_qp_cap {
                max_send_wr: 1,
                max_recv_wr: 1,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: middle,
            },
            qp_type: ffi::IBV_QPT_RC,
            ..Default::default()
        };
        // SAFETY: the domain and the CQ are alive and `attr` is whole; the queue pair is destroyed
        // at once.
        unsafe {
            let qp = ffi::ibv_create_qp(pd.as_ptr(), &mut attr);
            if qp.is_null() {
                let err = check_ptr(Call::IbvCreateQp, qp).err();
                if let Some(err) = err.filter(is_no_answer) {
                    return Err(err);
                }
                high = middle - 1;
            } else {
                low = middle;
                crate::log_limit::log_failure(check(Call::IbvDestroyQp, ffi::ibv_destroy_qp(qp)));
            }
        }
    }
    Ok(low)
}

/// Does the error say nothing about the size? Providers refuse one that is too large by `EINVAL`
/// and the like, and what passes would be remembered as the device's limit.
fn is_no_answer(err: &Error) -> bool {
    matches!(
        err.raw_os_error(),
        Some(
            libc::ENOMEM
                | libc::EAGAIN
                | libc::EINTR
                | libc::EMFILE
                | libc::ENFILE
                | libc::EIO
                | libc::ENODEV
        )
    )
}
