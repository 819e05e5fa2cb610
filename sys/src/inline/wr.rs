//! Building work requests on an extended QP: `man 3 ibv_wr_post`.
//!
//! `ibv_wr_start`, then for each request its `wr_id` and `wr_flags` in the `ibv_qp_ex`, one opcode
//! call and its setters, then `ibv_wr_complete` (one doorbell for all) or `ibv_wr_abort`. Between
//! start and complete the QP is locked by the calling thread, unless it was made for a single
//! thread.

use crate::*;
use core::ffi::{c_int, c_void};

macro_rules! wr {
    ($($(#[$doc:meta])* $name:ident = $entry:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `qp` came from `ibv_qp_to_qp_ex` and is locked by this thread through [`ibv_wr_start`]
        /// (which itself takes the lock). The QP was created with the flag of this operation in
        /// `send_ops_flags`, else the entry may be null or, on an older library, not be there at
        /// all. Pointers are valid during the call; buffers named by an SGE, until the request's
        /// completion.
        #[inline]
        pub unsafe fn $name(qp: *mut ibv_qp_ex $(, $arg: $ty)*) $(-> $ret)? {
            // SAFETY: the caller's contract.
            unsafe { ((*qp).$entry.unwrap_unchecked())(qp $(, $arg)*) }
        }
    )*};
}

wr! {
    /// Begins a batch: locks the send queue until [`ibv_wr_complete`] or [`ibv_wr_abort`].
    ibv_wr_start = wr_start();
    /// Hands the batch to the device. 0, or an errno; then none of the batch was posted.
    ibv_wr_complete = wr_complete() -> c_int;
    /// Forgets the batch.
    ibv_wr_abort = wr_abort();

    /// RDMA write (`IBV_QP_EX_WITH_RDMA_WRITE`).
    ibv_wr_rdma_write = wr_rdma_write(rkey: u32, remote_addr: u64);
    /// RDMA write that also consumes a receive at the peer (`IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM`).
    /// Immediate data in network order.
    ibv_wr_rdma_write_imm = wr_rdma_write_imm(rkey: u32, remote_addr: u64, imm_data: __be32);
    /// RDMA read (`IBV_QP_EX_WITH_RDMA_READ`).
    ibv_wr_rdma_read = wr_rdma_read(rkey: u32, remote_addr: u64);
    /// Send (`IBV_QP_EX_WITH_SEND`).
    ibv_wr_send = wr_send();
    /// Send with immediate data in network order (`IBV_QP_EX_WITH_SEND_WITH_IMM`).
    ibv_wr_send_imm = wr_send_imm(imm_data: __be32);
    /// Send that invalidates a key at the peer (`IBV_QP_EX_WITH_SEND_WITH_INV`).
    ibv_wr_send_inv = wr_send_inv(invalidate_rkey: u32);
    /// Send cut into segments by the device (`IBV_QP_EX_WITH_TSO`).
    ibv_wr_send_tso = wr_send_tso(hdr: *mut c_void, hdr_sz: u16, mss: u16);
    /// Compare and swap of 8 remote bytes (`IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP`).
    ibv_wr_atomic_cmp_swp = wr_atomic_cmp_swp(rkey: u32, remote_addr: u64, compare: u64, swap: u64);
    /// Fetch and add on 8 remote bytes (`IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD`).
    ibv_wr_atomic_fetch_add = wr_atomic_fetch_add(rkey: u32, remote_addr: u64, add: u64);
    /// Atomic write of the 8 bytes at `atomic_wr`, read during the call
    /// (`IBV_QP_EX_WITH_ATOMIC_WRITE`). Since v44 and Linux 6.2.
    ibv_wr_atomic_write = wr_atomic_write(rkey: u32, remote_addr: u64, atomic_wr: *const c_void);
    /// Flush of `len` remote bytes (`IBV_QP_EX_WITH_FLUSH`): `type_` of `IBV_FLUSH_GLOBAL`,
    /// `IBV_FLUSH_PERSISTENT`, `level` of `IBV_FLUSH_RANGE`, `IBV_FLUSH_MR`. Since v45 and Linux
    /// 6.2: the QP of v44 ends before this entry.
    ibv_wr_flush = wr_flush(rkey: u32, remote_addr: u64, len: usize, type_: u8, level: u8);
    /// Invalidates a local key (`IBV_QP_EX_WITH_LOCAL_INV`).
    ibv_wr_local_inv = wr_local_inv(invalidate_rkey: u32);
    /// Binds a memory window (`IBV_QP_EX_WITH_BIND_MW`).
    ibv_wr_bind_mw = wr_bind_mw(mw: *mut ibv_mw, rkey: u32, bind_info: *const ibv_mw_bind_info);

    /// The one buffer of the current request.
    ibv_wr_set_sge = wr_set_sge(lkey: u32, addr: u64, length: u32);
    /// The buffers of the current request.
    ibv_wr_set_sge_list = wr_set_sge_list(num_sge: usize, sg_list: *const ibv_sge);
    /// Copies the data of the current request into it; at most the QP's `max_inline_data` bytes.
    ibv_wr_set_inline_data = wr_set_inline_data(addr: *mut c_void, length: usize);
    /// Copies the data of the current request into it from several buffers.
    ibv_wr_set_inline_data_list = wr_set_inline_data_list(num_buf: usize, buf_list: *const ibv_data_buf);
    /// The destination of the current request on a UD QP.
    ibv_wr_set_ud_addr = wr_set_ud_addr(ah: *mut ibv_ah, remote_qpn: u32, remote_qkey: u32);
    /// The remote SRQ of the current request on an XRC QP.
    ibv_wr_set_xrc_srqn = wr_set_xrc_srqn(remote_srqn: u32);
}
