//! What the queries answer.

use std::ptr::NonNull;

use super::abi::*;

/// What an EFA device can do (`efadv_query_device(3)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "efadv_device_attr")]
pub struct DeviceAttr {
    /// The most work requests of a send queue.
    pub max_sq_wr: u32,
    /// The most work requests of a receive queue.
    pub max_rq_wr: u32,
    /// The most scatter/gather elements of a send.
    pub max_sq_sge: u16,
    /// The most scatter/gather elements of a receive.
    pub max_rq_sge: u16,
    /// The most bytes that can be sent inline.
    pub max_inline: u16,
    /// The most bytes of one read or write; 0 where the device has neither.
    pub max_rdma_size: u32,
    /// What else it can do.
    pub capabilities: DeviceCaps,
    /// The device's vendor part id: 0xefa0 is the first generation, 0xefa1 the second, and so on.
    pub vendor_part_id: u32,
}

bitflags::bitflags! {
    /// Capabilities of an EFA device. Bits without a name here are kept.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct DeviceCaps: u32 {
        /// RDMA reads.
        #[doc(alias = "EFADV_DEVICE_ATTR_CAPS_RDMA_READ")]
        const RDMA_READ = 1 << 0;
        /// SRD queue pairs can retry while the receiver is not ready.
        #[doc(alias = "EFADV_DEVICE_ATTR_CAPS_RNR_RETRY")]
        const RNR_RETRY = 1 << 1;
        /// Completions can carry the GID of a sender that has no address handle here.
        #[doc(alias = "EFADV_DEVICE_ATTR_CAPS_CQ_WITH_SGID")]
        const CQ_WITH_SGID = 1 << 2;
        /// RDMA writes.
        #[doc(alias = "EFADV_DEVICE_ATTR_CAPS_RDMA_WRITE")]
        const RDMA_WRITE = 1 << 3;
        /// Writes with immediate data can be received without a receive request.
        #[doc(alias = "EFADV_DEVICE_ATTR_CAPS_UNSOLICITED_WRITE_RECV")]
        const UNSOLICITED_WRITE_RECV = 1 << 4;
        /// Completion queues can lie in a dma-buf of the caller's.
        #[doc(alias = "EFADV_DEVICE_ATTR_CAPS_CQ_WITH_EXT_MEM_DMABUF")]
        const CQ_WITH_EXT_MEM_DMABUF = 1 << 5;
        /// Completion counters.
        #[doc(alias = "EFADV_DEVICE_ATTR_CAPS_COMP_CNTR")]
        const COMP_CNTR = 1 << 6;
        const _ = !0;
    }

    /// Capabilities of a work queue. Bits without a name here are kept.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct WqCaps: u16 {
        /// Requests have 64-bit ids, and so have their completions
        /// ([`Entry::wide_request_id`](super::Entry::wide_request_id)).
        #[doc(alias = "EFADV_WQ_CAPS_64_BIT_REQ_ID")]
        const WIDE_REQUEST_ID = 1 << 0;
        const _ = !0;
    }
}

/// The shape of a send queue, whose greatest depth is asked for. Zeros ask for the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[doc(alias = "efadv_sq_depth_attr")]
pub struct SqShape {
    /// Scatter/gather elements of a send.
    pub max_send_sge: u32,
    /// Scatter/gather elements of a read or write.
    pub max_rdma_sge: u32,
    /// Bytes of inline data.
    pub max_inline_data: u32,
    /// Inline data of writes too.
    pub inline_write: bool,
}

/// Where a completion queue lies and how it is laid out (`efadv_query_cq(3)`).
///
/// The pointers are valid as long as the queue. [`Cq::ring`](super::Cq::ring) gives a safe look at
/// what they point to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "efadv_cq_attr")]
pub struct CqAttr {
    /// The ring, mapped read-only.
    pub buffer: *const u8,
    /// Bytes from one entry to the next.
    pub entry_size: u32,
    /// The number of entries; of one ring of several on device 0xefa0.
    pub entries: u32,
    /// The register by which the consumer tells the device how far it is, and asks for events.
    /// `None` where the queue has none, and with rdma-core older than 60.
    pub doorbell: Option<NonNull<u32>>,
}

/// Which interconnects the device takes to a region (`efadv_query_mr(3)`): `None` where it does not
/// say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "efadv_mr_attr")]
pub struct MrAttr {
    /// For what is received into it.
    pub receive: Option<u16>,
    /// For what reads bring into it.
    pub rdma_read: Option<u16>,
    /// For what a peer writes into it.
    pub rdma_receive: Option<u16>,
}

/// Where a work queue lies and how it is laid out (`efadv_query_qp_wqs(3)`). The pointers are valid
/// as long as the queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "efadv_wq_attr")]
pub struct WqAttr {
    /// The ring.
    pub buffer: *mut u8,
    /// Bytes from one entry to the next.
    pub entry_size: u32,
    /// The number of entries.
    pub entries: u32,
    /// The register that tells the device of new entries.
    pub doorbell: Option<NonNull<u32>>,
    /// The most entries that it may be told of at once.
    pub max_batch: u32,
    /// What else the queue can do.
    pub capabilities: WqCaps,
}

/// The work queues of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QpWqs {
    /// The send queue.
    pub send: WqAttr,
    /// The receive queue.
    pub receive: WqAttr,
}

impl DeviceAttr {
    pub(super) fn new(attr: &efadv_device_attr, vendor_part_id: u32) -> Self {
        DeviceAttr {
            max_sq_wr: attr.max_sq_wr,
            max_rq_wr: attr.max_rq_wr,
            max_sq_sge: attr.max_sq_sge,
            max_rq_sge: attr.max_rq_sge,
            // An older library knows the first only.
            max_inline: attr.inline_buf_size_ex.max(attr.inline_buf_size),
            max_rdma_size: attr.max_rdma_size,
            capabilities: DeviceCaps::from_bits_retain(attr.device_caps),
            vendor_part_id,
        }
    }
}

impl From<SqShape> for efadv_sq_depth_attr {
    fn from(shape: SqShape) -> Self {
        efadv_sq_depth_attr {
            flags: if shape.inline_write {
                EFADV_SQ_DEPTH_ATTR_INLINE_WRITE
            } else {
                0
            },
            max_send_sge: shape.max_send_sge,
            max_rdma_sge: shape.max_rdma_sge,
            max_inline_data: shape.max_inline_data,
            ..Default::default()
        }
    }
}

impl From<efadv_cq_attr> for CqAttr {
    fn from(attr: efadv_cq_attr) -> Self {
        CqAttr {
            buffer: attr.buffer,
            entry_size: attr.entry_size,
            entries: attr.num_entries,
            doorbell: NonNull::new(attr.doorbell),
        }
    }
}

impl From<efadv_mr_attr> for MrAttr {
    fn from(attr: efadv_mr_attr) -> Self {
        let valid = |bit: u16, id: u16| (attr.ic_id_validity & bit != 0).then_some(id);
        MrAttr {
            receive: valid(EFADV_MR_ATTR_VALIDITY_RECV_IC_ID, attr.recv_ic_id),
            rdma_read: valid(EFADV_MR_ATTR_VALIDITY_RDMA_READ_IC_ID, attr.rdma_read_ic_id),
            rdma_receive: valid(EFADV_MR_ATTR_VALIDITY_RDMA_RECV_IC_ID, attr.rdma_recv_ic_id),
        }
    }
}

impl From<efadv_wq_attr> for WqAttr {
    fn from(attr: efadv_wq_attr) -> Self {
        WqAttr {
            buffer: attr.buffer,
            entry_size: attr.entry_size,
            entries: attr.num_entries,
            doorbell: NonNull::new(attr.doorbell),
            max_batch: attr.max_batch,
            capabilities: WqCaps::from_bits_retain(attr.caps),
        }
    }
}
