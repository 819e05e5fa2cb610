//! How older headers differ from the bindings, measured on v44 and v56; nothing else may, and v65
//! not at all.

use crate::probe::Probe;

/// The release that the bindings were made from.
const NEWEST: u32 = 65;

/// In v56, not in v44.
const SINCE_56: &[&str] = &[
    "struct ibv_port_attr.active_speed_ex",
    "struct ibv_qp_ex.wr_flush",
    "IBV_ACCESS_FLUSH_GLOBAL",
    "IBV_ACCESS_FLUSH_PERSISTENT",
    "IBV_FLUSH_GLOBAL",
    "IBV_FLUSH_MR",
    "IBV_FLUSH_PERSISTENT",
    "IBV_FLUSH_RANGE",
    "IBV_PORT_LINK_SPEED_XDR_SUP",
    "IBV_QP_EX_WITH_FLUSH",
    "IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES",
    "IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS",
    "IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG",
    "IBV_WC_FLUSH",
    "IBV_WR_FLUSH",
];

/// In v65, not in v56. A struct stands for its fields, a star for any ending.
const SINCE_65: &[&str] = &[
    "struct ibv_comp_cntr*",
    "struct ibv_dmah*",
    "struct ibv_fd_arr*",
    "struct ibv_mr_init_attr*",
    "struct ibv_qp_attach_comp_cntr_attr*",
    "struct rdma_cm_event.param.arg",
    "struct verbs_context.alloc_buf",
    "struct verbs_context.alloc_dmah",
    "struct verbs_context.dealloc_dmah",
    "struct verbs_context.dm_export_dmabuf_fd",
    "struct verbs_context.free_buf",
    "struct verbs_context.reg_mr_ex",
    "IBV_COMP_CNTR_*",
    "IBV_DEVICE_CC_DMA_BOUNCE",
    "IBV_DMAH_*",
    "IBV_EVENT_DEVICE_SPEED_CHANGE",
    "IBV_ODP_SUPPORT_ATOMIC_WRITE",
    "IBV_ODP_SUPPORT_FLUSH",
    "IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC",
    "IBV_QP_ATTACH_COMP_CNTR_*",
    "IBV_QUERY_QP_DATA_IN_ORDER_DEVICE_ONLY",
    "IBV_REG_MR_MASK_*",
    "IBV_TPH_MEM_TYPE_*",
    "RAI_DNS",
    "RAI_SA",
    "RDMA_CM_EVENT_ADDRINFO_ERROR",
    "RDMA_CM_EVENT_ADDRINFO_RESOLVED",
    "RDMA_CM_EVENT_INTERNAL",
    "RDMA_CM_EVENT_USER",
    "RDMA_DRIVER_IONIC",
];

/// Whether headers of this release, or of an unknown one, may lack the item.
pub fn may_be_absent(name: &str, release: Option<u32>) -> bool {
    let older_than = |limit| release.is_none_or(|release| release < limit);
    listed(SINCE_65, name) && older_than(65) || listed(SINCE_56, name) && older_than(56)
}

/// Whether C's answer is one of the differences that the crate accounts for: structs that have
/// grown.
pub fn differs(probe: &Probe, c: &[i128], release: Option<u32>) -> bool {
    if release.is_some_and(|release| release >= NEWEST) {
        return false;
    }
    match (probe.name(), c) {
        // The library clears what the caller's struct has more than its own.
        ("struct ibv_port_attr", [52]) => true,
        // `wr_flush` was appended; made by the library, and touched only if created with the flag.
        ("struct ibv_qp_ex", [352]) => true,
        // Grown at its front; its own `sz` says how far.
        ("struct verbs_context", [size]) => *size < probe.values()[0],
        _ => false,
    }
}

fn listed(list: &[&str], name: &str) -> bool {
    list.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *known,
    })
}
