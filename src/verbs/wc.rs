use std::{ffi::CStr, fmt};

use rdma_sys as ffi;

/// A completion, as the device wrote it (`ibv_poll_cq(3)`).
///
/// Fields other than [`wr_id`](Self::wr_id), [`status`](Self::status), [`qp_num`](Self::qp_num) and [`vendor_error`](Self::vendor_error)
/// mean something only when the status is [`WcStatus::SUCCESS`].
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
        WcStatus(self.0.status)
    }

    /// Did the operation succeed?
    #[inline]
    pub fn is_success(&self) -> bool {
        self.0.status == ffi::IBV_WC_SUCCESS
    }

    /// `Ok` with the completion when it succeeded, else its status.
    #[inline]
    pub fn ok(&self) -> Result<&Self, WcStatus> {
        if self.is_success() {
            Ok(self)
        } else {
            Err(self.status())
        }
    }

    /// Which operation it was.
    #[inline]
    pub fn opcode(&self) -> WcOpcode {
        WcOpcode(self.0.opcode)
    }

    /// The number of bytes received or read.
    #[inline]
    pub fn byte_len(&self) -> u32 {
        self.0.byte_len
    }

    /// The queue pair that it belongs to: tells the connections of a shared receive queue apart (see
    /// [`Connection::qp_num`](crate::Connection::qp_num)).
    #[inline]
    pub fn qp_num(&self) -> u32 {
        self.0.qp_num
    }

    /// The immediate data that came with a receive, in the host's byte order; `None` where there was none.
    #[inline]
    pub fn imm_data(&self) -> Option<u32> {
        if self.0.wc_flags & ffi::IBV_WC_WITH_IMM == 0 {
            return None;
        }
        // SAFETY: both members of the union are plain 32-bit numbers.
        Some(u32::from_be(unsafe { self.0.__bindgen_anon_1.imm_data }))
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
        // SAFETY: `Completion` is a transparent wrapper of the struct, so lists of both have one layout.
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

/// How an operation ended: a number of the device's, with names for those that are known.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "ibv_wc_status")]
pub struct WcStatus(u32);

/// What a completed operation was: a number of the device's, with names for those that are known.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "ibv_wc_opcode")]
pub struct WcOpcode(u32);

/// An open set of numbers: names for those that are known, any other allowed.
macro_rules! numbers {
    ($type:ident { $($(#[$doc:meta])* $name:ident = $ffi:ident;)* }) => {
        impl $type {
            $($(#[$doc])* pub const $name: Self = $type(ffi::$ffi as u32);)*

            /// The number as the C interface has it.
            pub const fn as_raw(self) -> u32 {
                self.0
            }

            /// A number of the C interface; any is allowed.
            pub const fn from_raw(raw: u32) -> Self {
                $type(raw)
            }

            fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($type), "({})"), self.0),
                }
            }
        }
    };
}

pub(crate) use numbers;

numbers!(WcStatus {
    /// It succeeded.
    SUCCESS = IBV_WC_SUCCESS;
    /// The data did not fit the receive, or the message was too long for the queue pair.
    LOC_LEN_ERR = IBV_WC_LOC_LEN_ERR;
    /// An inconsistency inside the local queue pair.
    LOC_QP_OP_ERR = IBV_WC_LOC_QP_OP_ERR;
    /// An end-to-end context inconsistency.
    LOC_EEC_OP_ERR = IBV_WC_LOC_EEC_OP_ERR;
    /// A local region does not cover the request or lacks the right: it was dropped while the operation was in flight, perhaps.
    LOC_PROT_ERR = IBV_WC_LOC_PROT_ERR;
    /// The queue pair went into its error state before the operation was done: the connection ended, or an earlier operation failed.
    WR_FLUSH_ERR = IBV_WC_WR_FLUSH_ERR;
    /// A memory window could not be bound.
    MW_BIND_ERR = IBV_WC_MW_BIND_ERR;
    /// The peer's answer was none that the transport knows.
    BAD_RESP_ERR = IBV_WC_BAD_RESP_ERR;
    /// A local buffer could not be reached.
    LOC_ACCESS_ERR = IBV_WC_LOC_ACCESS_ERR;
    /// The peer does not accept such a request (not enabled for its queue pair, misaligned, or a receive too small).
    REM_INV_REQ_ERR = IBV_WC_REM_INV_REQ_ERR;
    /// The remote region does not allow this, does not cover it, or is gone.
    REM_ACCESS_ERR = IBV_WC_REM_ACCESS_ERR;
    /// The peer could not complete the operation.
    REM_OP_ERR = IBV_WC_REM_OP_ERR;
    /// The peer did not answer, however often it was asked: it is gone, or the network is.
    RETRY_EXC_ERR = IBV_WC_RETRY_EXC_ERR;
    /// The peer had no receive posted, however often it was asked.
    RNR_RETRY_EXC_ERR = IBV_WC_RNR_RETRY_EXC_ERR;
    /// A reliable-datagram domain violation.
    LOC_RDD_VIOL_ERR = IBV_WC_LOC_RDD_VIOL_ERR;
    /// An invalid reliable-datagram request.
    REM_INV_RD_REQ_ERR = IBV_WC_REM_INV_RD_REQ_ERR;
    /// The peer aborted the operation.
    REM_ABORT_ERR = IBV_WC_REM_ABORT_ERR;
    /// An invalid end-to-end context number.
    INV_EECN_ERR = IBV_WC_INV_EECN_ERR;
    /// An invalid end-to-end context state.
    INV_EEC_STATE_ERR = IBV_WC_INV_EEC_STATE_ERR;
    /// A fatal error of the transport.
    FATAL_ERR = IBV_WC_FATAL_ERR;
    /// The response timed out.
    RESP_TIMEOUT_ERR = IBV_WC_RESP_TIMEOUT_ERR;
    /// Another error; see [`Completion::vendor_error`].
    GENERAL_ERR = IBV_WC_GENERAL_ERR;
});

impl fmt::Display for WcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the function takes any number and gives a static string, or null.
        let text = unsafe { ffi::ibv_wc_status_str(self.0) };
        if text.is_null() {
            return write!(f, "unknown ({})", self.0);
        }
        // SAFETY: it is a static, NUL-terminated string.
        let text = unsafe { CStr::from_ptr(text) };
        write!(f, "{} ({})", text.to_string_lossy(), self.0)
    }
}

impl std::error::Error for WcStatus {}

numbers!(WcOpcode {
    /// A send.
    SEND = IBV_WC_SEND;
    /// A write, with immediate data or without, and an atomic write that the device did as an inline write.
    RDMA_WRITE = IBV_WC_RDMA_WRITE;
    /// A read, and a flush that was done by reading.
    RDMA_READ = IBV_WC_RDMA_READ;
    /// A compare-and-swap.
    COMP_SWAP = IBV_WC_COMP_SWAP;
    /// A fetch-and-add.
    FETCH_ADD = IBV_WC_FETCH_ADD;
    /// A memory window was bound.
    BIND_MW = IBV_WC_BIND_MW;
    /// A local invalidation.
    LOCAL_INV = IBV_WC_LOCAL_INV;
    /// A native flush.
    FLUSH = IBV_WC_FLUSH;
    /// A native atomic write.
    ATOMIC_WRITE = IBV_WC_ATOMIC_WRITE;
    /// A receive of a send.
    RECV = IBV_WC_RECV;
    /// A receive that a write with immediate data used up.
    RECV_RDMA_WITH_IMM = IBV_WC_RECV_RDMA_WITH_IMM;
});
