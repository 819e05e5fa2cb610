//! What is asked of a queue pair, and changed of it, beside the data path.

use rdma_sys as ffi;

use super::{Qp, check};
use crate::Result;

impl Qp {
    /// Sets the receiver's time between attempts, by InfiniBand's code, on a connected queue pair.
    pub(crate) fn set_min_rnr_timer(&self, code: u8) -> Result<()> {
        let mut attr = ffi::ibv_qp_attr {
            min_rnr_timer: code,
            ..Default::default()
        };
        // SAFETY: the queue pair is alive, and the mask names the one attribute that is set.
        check("ibv_modify_qp", unsafe {
            ffi::ibv_modify_qp(self.as_ptr(), &mut attr, ffi::IBV_QP_MIN_RNR_TIMER as i32)
        })
    }
}
