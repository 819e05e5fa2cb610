//! What is asked of a queue pair, and changed of it, beside the data path.

use rdma_sys as ffi;

use super::{RawQp, check};
use crate::{Call, Result};

/// In which order the bytes of one write come to be seen by the CPUs of the machine that it is
/// written to (`ibv_query_qp_data_in_order(3)`). It says nothing of two writes, nor of regions with
/// [`Usage::RELAXED_ORDERING`](crate::Usage::RELAXED_ORDERING).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
#[doc(alias = "ibv_query_qp_data_in_order")]
pub struct DataInOrder {
    /// The bytes of a message in ascending order: whoever sees its last byte sees the whole of it.
    pub whole_message: bool,
    /// Each aligned block of 128 bytes as a whole.
    pub aligned_128_bytes: bool,
}

impl RawQp {
    /// What is said of writes into this side's memory.
    pub(crate) fn data_in_order(&self) -> DataInOrder {
        let ask = |flags| {
            // SAFETY: the queue pair is alive.
            let answer = unsafe {
                ffi::ibv_query_qp_data_in_order(self.as_ptr(), ffi::IBV_WR_RDMA_WRITE, flags)
            };
            answer.max(0) as u32
        };
        // Libraries from before the flag take none, and know one answer.
        let caps = match ask(ffi::IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS) {
            0 => ask(0),
            caps => caps,
        };
        let whole_message = caps & ffi::IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG != 0;
        let blocks = caps & ffi::IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES != 0;
        DataInOrder {
            whole_message,
            aligned_128_bytes: whole_message || blocks,
        }
    }

    /// Sets the receiver's time between attempts, by InfiniBand's code, on a connected queue pair.
    pub(crate) fn set_min_rnr_timer(&self, code: u8) -> Result<()> {
        let mut attr = ffi::ibv_qp_attr {
            min_rnr_timer: code,
            ..Default::default()
        };
        // SAFETY: the queue pair is alive, and the mask names the one attribute that is set.
        check(Call::IbvModifyQp, unsafe {
            ffi::ibv_modify_qp(self.as_ptr(), &mut attr, ffi::IBV_QP_MIN_RNR_TIMER as i32)
        })
    }
}
