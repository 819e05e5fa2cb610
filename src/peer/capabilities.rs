use std::fmt;

use rdma_sys as ffi;

use super::info::mtu_bytes;
use crate::{
    Result,
    numbers::Transport,
    verbs::{Context, Workarounds},
};

/// Which operations the device can do on memory registered for on-demand paging, over reliable
/// connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OdpCapabilities {
    /// On-demand paging at all.
    #[doc(alias = "rpma_utils_ibv_context_is_odp_capable")]
    pub supported: bool,
    /// Sends from such memory.
    pub send: bool,
    /// Receives into it.
    pub recv: bool,
    /// Writes to and from it.
    pub write: bool,
    /// Reads of and into it.
    pub read: bool,
    /// Atomic operations on it.
    pub atomic: bool,
    /// Receives into it through a shared receive queue.
    pub srq_recv: bool,
}

/// What a device can do (`ibv_query_device_ex(3)`, `ibv_query_port(3)`).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// InfiniBand/RoCE or iWARP.
    pub transport: Transport,
    /// On-demand paging of registered memory.
    pub odp: OdpCapabilities,
    /// The device can flush written data to visibility natively (IBTA annex A19, placement type
    /// global).
    pub native_flush_visibility: bool,
    /// The device can flush written data to persistence natively (IBTA annex A19).
    pub native_flush_persistent: bool,
    /// The device has an 8-byte atomic write of its own (IBTA annex A19).
    pub native_atomic_write: bool,
    /// Remote compare-and-swap and fetch-and-add.
    pub atomics: bool,
    /// Immediate data with sends and writes. iWARP has none.
    pub immediate_data: bool,
    /// Messages can invalidate the key of a peer's region
    /// ([`send_with_invalidate`](crate::Connection::send_with_invalidate)): on iWARP.
    pub region_invalidation: bool,
    /// The longest message of the port, in bytes.
    pub max_message_size: u64,
    /// The MTU of the port, in bytes: no path from here has a larger one.
    pub active_mtu: u32,
    /// The most work requests in one queue, in entries.
    pub max_queue_depth: u32,
    /// The most entries of a completion queue.
    pub max_cq_entries: u32,
    /// The most scatter/gather elements of one work request.
    pub max_sge: u32,
    /// The longest region that can be registered, in bytes.
    pub max_region_size: u64,
    /// The most regions.
    pub max_regions: u32,
    /// The most queue pairs.
    pub max_queue_pairs: u32,
    /// The most work requests of a shared receive queue, in entries.
    pub max_srq_depth: u32,
    /// The most reads and atomics that one queue pair can have outstanding as their responder.
    pub max_responder_resources: u32,
    /// The most reads and atomics that one queue pair can have in flight.
    pub max_initiator_depth: u32,
    /// The number of completion vectors: interrupts that completion events can be spread over.
    pub completion_vectors: u32,
    /// The device's vendor, by its IEEE number; software devices have made-up ones.
    pub vendor_id: u32,
    /// The device's vendor part id.
    pub vendor_part_id: u32,
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capabilities({:?}", self.transport)?;
        for (has, what) in [
            (self.odp.supported, "on-demand paging"),
            (self.native_flush_visibility, "native visibility flush"),
            (self.native_flush_persistent, "native persistent flush"),
            (self.native_atomic_write, "native atomic write"),
            (self.atomics, "atomics"),
            (self.immediate_data, "immediate data"),
        ] {
            if has {
                write!(f, ", {what}")?;
            }
        }
        write!(
            f,
            "; message {}, MTU {}, queue {}, cq {}, sge {}, srq {}, depths {}/{}, vectors {})",
            self.max_message_size,
            self.active_mtu,
            self.max_queue_depth,
            self.max_cq_entries,
            self.max_sge,
            self.max_srq_depth,
            self.max_responder_resources,
            self.max_initiator_depth,
            self.completion_vectors
        )
    }
}

impl Capabilities {
    /// Whether regions may be registered for on-demand paging.
    ///
    /// Soft-RoCE says it has it since Linux 6.15, but its reads and writes of such regions leave
    /// out the offset within the page (measured on 7.3.4: 8 bytes written to offset 64 arrive at
    /// 0). That is silent loss of data, so it does not get such regions from us.
    pub(crate) fn trusts_odp(&self) -> bool {
        self.odp.supported && !self.is_soft_roce()
    }

    /// The highest retry count after which the device still gives up.
    ///
    /// Soft-RoCE takes 7 for retries without end (measured on 7.3.4: a write on a link that was cut
    /// had no completion for as long as was waited). So an operation whose peer is gone would never
    /// be told.
    pub(crate) fn max_retry_count(&self) -> u8 {
        if self.is_soft_roce() { 6 } else { 7 }
    }

    /// The kernel's siw, by the number that it makes up for its vendor.
    pub(crate) fn is_soft_iwarp(&self) -> bool {
        self.transport.is_iwarp() && self.vendor_id == 0x62_6d74
    }

    /// The ways around faults that the device's queue pairs need.
    pub(crate) fn workarounds(&self) -> Workarounds {
        let mut all = Workarounds::empty();
        all.set(Workarounds::INLINE_SHORT, self.is_soft_iwarp());
        all.set(Workarounds::SPLIT_SHORT_READS, self.transport.is_iwarp());
        let rxe = Workarounds::SPLIT_LONG_READS
            | Workarounds::FLUSH_BY_READING
            | Workarounds::INLINE_WORDS;
        all.set(rxe, self.is_soft_roce());
        all
    }

    fn is_soft_roce(&self) -> bool {
        self.vendor_id == 0xff_ffff
    }

    pub(crate) fn of(context: &Context, port: u8) -> Result<Self> {
        let attr = context.query_device()?;
        let port = context.query_port(port)?;
        let orig = &attr.orig_attr;
        let flags = attr.device_cap_flags_ex;
        let transport = context.transport();
        let rc = attr.odp_caps.per_transport_caps.rc_odp_caps;
        let odp = |bit: u32| rc & bit != 0;
        Ok(Capabilities {
            transport,
            odp: OdpCapabilities {
                supported: attr.odp_caps.general_caps & ffi::IBV_ODP_SUPPORT as u64 != 0,
                send: odp(ffi::IBV_ODP_SUPPORT_SEND),
                recv: odp(ffi::IBV_ODP_SUPPORT_RECV),
                write: odp(ffi::IBV_ODP_SUPPORT_WRITE),
                read: odp(ffi::IBV_ODP_SUPPORT_READ),
                atomic: odp(ffi::IBV_ODP_SUPPORT_ATOMIC),
                srq_recv: odp(ffi::IBV_ODP_SUPPORT_SRQ_RECV),
            },
            native_flush_visibility: flags & CAP_FLUSH_GLOBAL != 0,
            native_flush_persistent: flags & CAP_FLUSH_PERSISTENT != 0,
            native_atomic_write: flags & CAP_ATOMIC_WRITE != 0,
            atomics: orig.atomic_cap != ffi::IBV_ATOMIC_NONE && !transport.is_iwarp(),
            immediate_data: !transport.is_iwarp(),
            region_invalidation: transport.is_iwarp()
                && orig.device_cap_flags & ffi::IBV_DEVICE_MEM_MGT_EXTENSIONS != 0,
            max_message_size: port.max_msg_sz.into(),
            active_mtu: mtu_bytes(port.active_mtu),
            max_queue_depth: unsigned(orig.max_qp_wr),
            max_cq_entries: unsigned(orig.max_cqe),
            max_sge: unsigned(orig.max_sge),
            max_region_size: orig.max_mr_size,
            max_regions: unsigned(orig.max_mr),
            max_queue_pairs: unsigned(orig.max_qp),
            max_srq_depth: unsigned(orig.max_srq_wr),
            max_responder_resources: unsigned(orig.max_qp_rd_atom),
            max_initiator_depth: unsigned(orig.max_qp_init_rd_atom),
            completion_vectors: context.num_comp_vectors(),
            vendor_id: orig.vendor_id,
            vendor_part_id: orig.vendor_part_id,
        })
    }
}

/// Bits of `device_cap_flags_ex`, as the kernel defines them (include/uapi/rdma/ib_user_verbs.h).
const CAP_FLUSH_GLOBAL: u64 = 1 << 38;
const CAP_FLUSH_PERSISTENT: u64 = 1 << 39;
const CAP_ATOMIC_WRITE: u64 = 1 << 40;

/// Limits are signed in the C struct; a negative one means nothing.
fn unsigned(limit: i32) -> u32 {
    limit.max(0) as u32
}
