use std::fmt;

use rdma_sys as ffi;

use crate::{
    Error, Result,
    numbers::{WcOpcode, WcStatus},
};

/// A completion, as the device wrote it (`ibv_poll_cq(3)`).
///
/// Fields other than [`wr_id`](Self::wr_id), [`status`](Self::status), [`qp_num`](Self::qp_num) and
/// [`vendor_error`](Self::vendor_error) mean something only when the status is
/// [`WcStatus::SUCCESS`].
#[derive(Clone, Copy)]
#[repr(transparent)]
#[doc(alias = "ibv_wc")]
#[derive(Default)]
pub struct Completion(ffi::ibv_wc);

impl Completion {
    /// The number that was given to the operation, by [`Signal`](crate::Signal) or the receive.
    #[inline]
    pub fn wr_id(&self) -> u64 {
        self.0.wr_id
    }

    /// How the operation ended.
    #[inline]
    pub fn status(&self) -> WcStatus {
        WcStatus::from_raw(self.0.status)
    }

    /// Did the operation succeed?
    #[inline]
    pub fn is_success(&self) -> bool {
        self.0.status == ffi::IBV_WC_SUCCESS
    }

    /// `Ok` with the completion when it succeeded, else [`Error::Completion`].
    #[inline]
    pub fn ok(&self) -> Result<&Self> {
        if self.is_success() {
            Ok(self)
        } else {
            Err(self.failed())
        }
    }

    #[cold]
    fn failed(&self) -> Error {
        Error::Completion {
            wr_id: self.wr_id(),
            status: self.status(),
            vendor_error: self.vendor_error(),
        }
    }

    /// Which operation it was.
    #[inline]
    pub fn opcode(&self) -> WcOpcode {
        WcOpcode::from_raw(self.0.opcode)
    }

    /// The number of bytes received or read.
    #[inline]
    pub fn byte_len(&self) -> u32 {
        self.0.byte_len
    }

    /// The queue pair that it belongs to: tells the connections of a shared receive queue apart
    /// (see [`Connection::qp_num`](crate::Connection::qp_num)).
    #[inline]
    pub fn qp_num(&self) -> u32 {
        self.0.qp_num
    }

    /// The immediate data that came with a receive, in the host's byte order; `None` where there
    /// was none.
    #[inline]
    pub fn imm_data(&self) -> Option<u32> {
        self.extra(ffi::IBV_WC_WITH_IMM).map(u32::from_be)
    }

    /// The key that the message of a receive invalidated: that of a region of this side
    /// ([`send_with_invalidate`](crate::Connection::send_with_invalidate)); `None` where there was
    /// none, and on soft-iWARP, whose library does not tell (rdma-core 56).
    #[inline]
    #[doc(alias = "invalidated_rkey")]
    pub fn invalidated_key(&self) -> Option<u32> {
        self.extra(ffi::IBV_WC_WITH_INV)
    }

    /// The number that comes with a receive, where `flag` says what it is.
    #[inline]
    fn extra(&self, flag: u32) -> Option<u32> {
        // SAFETY: both members of the union are plain 32-bit numbers.
        let number = unsafe { self.0.__bindgen_anon_1.imm_data };
        (self.0.wc_flags & flag != 0).then_some(number)
    }

    /// The provider's own error number, for its support.
    #[inline]
    pub fn vendor_error(&self) -> u32 {
        self.0.vendor_err
    }

    /// The C struct.
    #[inline]
    pub fn as_raw(&self) -> &ffi::ibv_wc {
        &self.0
    }

    /// A list of completions as a list of the C struct, and so a pointer to write to.
    #[inline]
    pub(crate) fn as_mut_ptr(list: &mut [Completion]) -> *mut ffi::ibv_wc {
        list.as_mut_ptr().cast()
    }

    /// C structs as completions.
    #[inline]
    pub fn from_raw_mut(list: &mut [ffi::ibv_wc]) -> &mut [Completion] {
        // SAFETY: `Completion` is a transparent wrapper of the struct, so lists of both have one
        // layout.
        unsafe { std::slice::from_raw_parts_mut(list.as_mut_ptr().cast(), list.len()) }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion")
            .field("wr_id", &self.wr_id())
            .field("status", &self.status())
            .field("opcode", &self.opcode())
            .field("byte_len", &self.byte_len())
            .field("imm_data", &self.imm_data())
            .field("qp_num", &self.qp_num())
            .field("vendor_error", &self.vendor_error())
            .finish()
    }
}
