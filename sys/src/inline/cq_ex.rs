//! Polling an extended CQ: `man 3 ibv_create_cq_ex`.
//!
//! `ibv_start_poll` (0: one completion is current; `ENOENT`: none), the accessors, `ibv_next_poll`
//! while it gives 0, then `ibv_end_poll`, also after `ENOENT` from `ibv_next_poll` but not after a
//! failed `ibv_start_poll`. `wr_id` and `status` are fields of the `ibv_cq_ex`.

use crate::*;
use core::ffi::{c_int, c_uint};

/// The plain CQ that an extended one begins with.
///
/// # Safety
/// None beyond the pointer's own: nothing is read.
#[inline]
pub unsafe fn ibv_cq_ex_to_cq(cq: *mut ibv_cq_ex) -> *mut ibv_cq {
    cq.cast()
}

macro_rules! cq_ex {
    ($($(#[$doc:meta])* $name:ident = $entry:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `cq` came from [`ibv_create_cq_ex`], and a poll is open on it (except for
        /// [`ibv_start_poll`]). A field that is optional was asked for in `wc_flags` when the CQ
        /// was created, else its entry may be null.
        #[inline]
        pub unsafe fn $name(cq: *mut ibv_cq_ex $(, $arg: $ty)*) $(-> $ret)? {
            // SAFETY: the caller's contract.
            unsafe { ((*cq).$entry.unwrap_unchecked())(cq $(, $arg)*) }
        }
    )*};
}

cq_ex! {
    /// Opens a poll at the first completion: 0, `ENOENT` when there is none, or another errno.
    ibv_start_poll = start_poll(attr: *mut ibv_poll_cq_attr) -> c_int;
    /// Moves to the next completion: 0, `ENOENT` when there is none, or another errno.
    ibv_next_poll = next_poll() -> c_int;
    /// Closes the poll.
    ibv_end_poll = end_poll();

    /// What completed.
    ibv_wc_read_opcode = read_opcode() -> ibv_wc_opcode;
    /// The device's own code for a failure.
    ibv_wc_read_vendor_err = read_vendor_err() -> u32;
    /// Bytes transferred (`IBV_WC_EX_WITH_BYTE_LEN`).
    ibv_wc_read_byte_len = read_byte_len() -> u32;
    /// Immediate data, in network order (`IBV_WC_EX_WITH_IMM`).
    ibv_wc_read_imm_data = read_imm_data() -> __be32;
    /// Number of the local QP (`IBV_WC_EX_WITH_QP_NUM`).
    ibv_wc_read_qp_num = read_qp_num() -> u32;
    /// Number of the sending QP, UD only (`IBV_WC_EX_WITH_SRC_QP`).
    ibv_wc_read_src_qp = read_src_qp() -> u32;
    /// `ibv_wc_flags` of the completion.
    ibv_wc_read_wc_flags = read_wc_flags() -> c_uint;
    /// Source LID (`IBV_WC_EX_WITH_SLID`).
    ibv_wc_read_slid = read_slid() -> u32;
    /// Service level (`IBV_WC_EX_WITH_SL`).
    ibv_wc_read_sl = read_sl() -> u8;
    /// Destination path bits (`IBV_WC_EX_WITH_DLID_PATH_BITS`).
    ibv_wc_read_dlid_path_bits = read_dlid_path_bits() -> u8;
    /// Time of the completion in ticks of the device (`IBV_WC_EX_WITH_COMPLETION_TIMESTAMP`).
    ibv_wc_read_completion_ts = read_completion_ts() -> u64;
    /// Time of the completion in nanoseconds of wall clock
    /// (`IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK`).
    ibv_wc_read_completion_wallclock_ns = read_completion_wallclock_ns() -> u64;
    /// VLAN tag (`IBV_WC_EX_WITH_CVLAN`).
    ibv_wc_read_cvlan = read_cvlan() -> u16;
    /// Flow tag (`IBV_WC_EX_WITH_FLOW_TAG`).
    ibv_wc_read_flow_tag = read_flow_tag() -> u32;
    /// Tag-matching information (`IBV_WC_EX_WITH_TM_INFO`).
    ibv_wc_read_tm_info = read_tm_info(tm_info: *mut ibv_wc_tm_info);
}

/// The key that the peer's send invalidated, when `IBV_WC_WITH_INV` is in the flags: it travels in
/// the place of immediate data.
///
/// # Safety
/// As for [`ibv_wc_read_imm_data`].
#[inline]
pub unsafe fn ibv_wc_read_invalidated_rkey(cq: *mut ibv_cq_ex) -> u32 {
    // SAFETY: the caller's contract.
    u32::from_be(unsafe { ibv_wc_read_imm_data(cq) })
}
