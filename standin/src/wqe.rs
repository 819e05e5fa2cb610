//! Work requests, as the device keeps them.

use libc::c_uint;
use rdma_sys as ffi;

use crate::config::Personality;

/// An operation of a send queue.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Write {
        addr: u64,
        rkey: u32,
        imm: Option<u32>,
    },
    Read {
        addr: u64,
        rkey: u32,
    },
    Send {
        imm: Option<u32>,
        invalidate: Option<u32>,
    },
    CompareSwap {
        addr: u64,
        rkey: u32,
        compare: u64,
        swap: u64,
    },
    FetchAdd {
        addr: u64,
        rkey: u32,
        add: u64,
    },
    AtomicWrite {
        addr: u64,
        rkey: u32,
    },
    Flush {
        addr: u64,
        rkey: u32,
        len: u64,
        kind: u8,
        level: u8,
    },
}

/// Where its bytes come from, or go to.
#[derive(Clone)]
pub enum Payload {
    Inline(Vec<u8>),
    Sges(Vec<ffi::ibv_sge>),
}

/// A work request of a send queue.
#[derive(Clone)]
pub struct SendWqe {
    pub wr_id: u64,
    pub op: Op,
    pub payload: Payload,
    pub signalled: bool,
    pub solicited: bool,
    /// Not the first request of the call that posted it.
    pub behind: bool,
    /// Counted from the first ever posted on its queue pair.
    pub slot: u64,
    /// Its place in the order of all posting.
    pub sequence: u64,
}

/// A work request of a receive queue.
#[derive(Clone)]
pub struct RecvWqe {
    pub wr_id: u64,
    pub sges: Vec<ffi::ibv_sge>,
}

impl Op {
    pub fn write(addr: u64, rkey: u32, imm: Option<u32>) -> Self {
        Self::Write { addr, rkey, imm }
    }

    pub fn send(imm: Option<u32>) -> Self {
        Self::Send {
            imm,
            invalidate: None,
        }
    }

    pub fn read(addr: u64, rkey: u32) -> Self {
        Self::Read { addr, rkey }
    }

    /// Whether a device of this kind can do it.
    pub fn is_known_to(self, personality: Personality) -> bool {
        match self {
            Self::Write { imm: None, .. }
            | Self::Send {
                imm: None,
                invalidate: None,
            }
            | Self::Read { .. } => true,
            // RoCE devices have it for memory windows, which nobody can make here.
            Self::Send {
                invalidate: Some(_),
                ..
            } => personality.is_iwarp(),
            Self::Write { .. }
            | Self::Send { .. }
            | Self::CompareSwap { .. }
            | Self::FetchAdd { .. } => !personality.is_iwarp(),
            Self::AtomicWrite { .. } | Self::Flush { .. } => personality.has_flush(),
        }
    }

    /// Whether its payload goes out.
    pub fn sends_data(self) -> bool {
        matches!(
            self,
            Self::Write { .. } | Self::Send { .. } | Self::AtomicWrite { .. }
        )
    }

    pub fn wc_opcode(self) -> u32 {
        match self {
            Self::Write { .. } => ffi::IBV_WC_RDMA_WRITE,
            Self::Read { .. } => ffi::IBV_WC_RDMA_READ,
            Self::Send { .. } => ffi::IBV_WC_SEND,
            Self::CompareSwap { .. } => ffi::IBV_WC_COMP_SWAP,
            Self::FetchAdd { .. } => ffi::IBV_WC_FETCH_ADD,
            Self::AtomicWrite { .. } => ffi::IBV_WC_ATOMIC_WRITE,
            Self::Flush { .. } => ffi::IBV_WC_FLUSH,
        }
    }
}

impl SendWqe {
    pub fn new(wr_id: u64, op: Op, flags: c_uint, payload: Payload) -> Self {
        Self {
            wr_id,
            op,
            payload,
            signalled: flags & ffi::IBV_SEND_SIGNALED != 0,
            solicited: flags & ffi::IBV_SEND_SOLICITED != 0,
            behind: false,
            slot: 0,
            sequence: 0,
        }
    }
}
