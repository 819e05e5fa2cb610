//! Macros of the C headers that bindgen does not carry over, and bits of the kernel that no header
//! of rdma-core names.

use crate::*;

/// Access rights that a kernel may ignore: [`ibv_reg_mr`] leaves them out where they are not known.
pub const IBV_ACCESS_OPTIONAL_RANGE: ibv_access_flags = 0x3ff0_0000;

/// `device_cap_flags_ex`: flush to global visibility. The kernel's `IB_UVERBS_DEVICE_FLUSH_GLOBAL`,
/// since Linux 6.2.
pub const IBV_DEVICE_FLUSH_GLOBAL: u64 = 1 << 38;
/// `device_cap_flags_ex`: flush to persistence. The kernel's `IB_UVERBS_DEVICE_FLUSH_PERSISTENT`,
/// since Linux 6.2.
pub const IBV_DEVICE_FLUSH_PERSISTENT: u64 = 1 << 39;
/// `device_cap_flags_ex`: 8-byte atomic write. The kernel's `IB_UVERBS_DEVICE_ATOMIC_WRITE`, since
/// Linux 6.2.
pub const IBV_DEVICE_ATOMIC_WRITE: u64 = 1 << 40;

/// C's name for the type of [`ibv_advise_mr`]'s advice.
pub type ibv_advise_mr_advice = ib_uverbs_advise_mr_advice;
/// Bring on-demand pages in for reading.
pub const IBV_ADVISE_MR_ADVICE_PREFETCH: ibv_advise_mr_advice = IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH;
/// Bring on-demand pages in for writing.
pub const IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE: ibv_advise_mr_advice =
    IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
/// Map on-demand pages that are in memory, without faulting others in.
pub const IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT: ibv_advise_mr_advice =
    IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
/// Advise synchronously: the call returns when the pages are in.
pub const IBV_ADVISE_MR_FLAG_FLUSH: u32 = IB_UVERBS_ADVISE_MR_FLAG_FLUSH;

/// `ibv_port_attr.flags`: addressing on this port needs a global route header.
pub const IBV_QPF_GRH_REQUIRED: u8 = 1;

/// The port-space part of a native InfiniBand service id (`rdma_cma.h`).
pub const RDMA_IB_IP_PS_MASK: u64 = 0xffff_ffff_ffff_0000;
