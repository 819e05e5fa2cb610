//! Numbers that a device, the kernel or a peer chooses: names for those that are known, and any
//! other is allowed, since newer devices and kernels have more.

use std::fmt;

use rdma_sys as ffi;

/// A newtype of a number, with names, and words for [`Display`](fmt::Display) and the
/// documentation.
macro_rules! numbers {
    ($(#[$type_doc:meta])* $type:ident: $repr:ty, $unknown:literal {
        $($(#[$doc:meta])* $name:ident = $ffi:ident, $words:literal;)*
    }) => {
        $(#[$type_doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $type($repr);

        impl $type {
            $(
                #[doc = concat!("“", $words, "”\n")]
                $(#[$doc])*
                pub const $name: Self = $type(ffi::$ffi as $repr);
            )*

            /// The number as the C interface has it.
            pub const fn as_raw(self) -> $repr {
                self.0
            }

            /// A number of the C interface; any is allowed.
            pub const fn from_raw(raw: $repr) -> Self {
                $type(raw)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$name => f.write_str(stringify!($name)),)*
                    $type(raw) => write!(f, concat!(stringify!($type), "({})"), raw),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$name => f.write_str($words),)*
                    $type(raw) => write!(f, concat!($unknown, " {}"), raw),
                }
            }
        }
    };
}

numbers!(
/// How an operation ended: a number of the device's, with names for those that are known.
#[doc(alias = "ibv_wc_status")]
WcStatus: u32, "unknown status" {
    SUCCESS = IBV_WC_SUCCESS, "success";
    /// The data did not fit the receive, or the message was too long for the queue pair.
    LOC_LEN_ERR = IBV_WC_LOC_LEN_ERR, "a message did not fit";
    LOC_QP_OP_ERR = IBV_WC_LOC_QP_OP_ERR, "the local queue pair is inconsistent";
    LOC_EEC_OP_ERR = IBV_WC_LOC_EEC_OP_ERR, "the local end-to-end context is inconsistent";
    /// A local region does not cover the request or lacks the right: perhaps it was dropped while
    /// the operation was in flight.
    LOC_PROT_ERR = IBV_WC_LOC_PROT_ERR, "a local region does not allow it";
    /// The queue pair went into its error state before the operation was done: the connection
    /// ended, or an earlier operation failed.
    WR_FLUSH_ERR = IBV_WC_WR_FLUSH_ERR, "flushed: the queue pair is in its error state";
    MW_BIND_ERR = IBV_WC_MW_BIND_ERR, "the memory window cannot be bound";
    BAD_RESP_ERR = IBV_WC_BAD_RESP_ERR, "the peer's answer makes no sense";
    LOC_ACCESS_ERR = IBV_WC_LOC_ACCESS_ERR, "a local buffer cannot be reached";
    /// The peer does not accept such a request: it is not enabled for the peer's queue pair, it is
    /// misaligned, or the receive is too small.
    REM_INV_REQ_ERR = IBV_WC_REM_INV_REQ_ERR, "the peer does not accept the request";
    /// The remote region does not allow this, does not cover it, or is gone.
    REM_ACCESS_ERR = IBV_WC_REM_ACCESS_ERR, "the remote region does not allow it";
    REM_OP_ERR = IBV_WC_REM_OP_ERR, "the peer could not complete it";
    /// The peer did not answer, however often it was asked: it is gone, or the network is.
    RETRY_EXC_ERR = IBV_WC_RETRY_EXC_ERR, "the peer does not answer";
    /// The peer had no receive posted, however often it was asked.
    RNR_RETRY_EXC_ERR = IBV_WC_RNR_RETRY_EXC_ERR, "the peer has no receive posted";
    LOC_RDD_VIOL_ERR = IBV_WC_LOC_RDD_VIOL_ERR, "it violates the local reliable-datagram domain";
    REM_INV_RD_REQ_ERR = IBV_WC_REM_INV_RD_REQ_ERR, "the reliable-datagram request is invalid";
    REM_ABORT_ERR = IBV_WC_REM_ABORT_ERR, "the peer aborted it";
    INV_EECN_ERR = IBV_WC_INV_EECN_ERR, "the end-to-end context number is invalid";
    INV_EEC_STATE_ERR = IBV_WC_INV_EEC_STATE_ERR, "the state of the end-to-end context is invalid";
    FATAL_ERR = IBV_WC_FATAL_ERR, "the transport failed for good";
    RESP_TIMEOUT_ERR = IBV_WC_RESP_TIMEOUT_ERR, "the response timed out";
    /// Another error; see [`Completion::vendor_error`](crate::Completion::vendor_error).
    GENERAL_ERR = IBV_WC_GENERAL_ERR, "another error";
});

impl std::error::Error for WcStatus {}

numbers!(
/// What a completed operation was: a number of the device's, with names for those that are known.
#[doc(alias = "ibv_wc_opcode")]
WcOpcode: u32, "unknown operation" {
    SEND = IBV_WC_SEND, "send";
    /// A write, with immediate data or without, and an atomic write that the device did as an
    /// inline write.
    RDMA_WRITE = IBV_WC_RDMA_WRITE, "write";
    /// A read, and a flush that was done by reading.
    RDMA_READ = IBV_WC_RDMA_READ, "read";
    COMP_SWAP = IBV_WC_COMP_SWAP, "compare and swap";
    FETCH_ADD = IBV_WC_FETCH_ADD, "fetch and add";
    BIND_MW = IBV_WC_BIND_MW, "bind of a memory window";
    LOCAL_INV = IBV_WC_LOCAL_INV, "local invalidation";
    /// A native flush.
    FLUSH = IBV_WC_FLUSH, "flush";
    /// A native atomic write.
    ATOMIC_WRITE = IBV_WC_ATOMIC_WRITE, "atomic write";
    /// A receive of a send.
    RECV = IBV_WC_RECV, "receive";
    /// A receive that a write with immediate data used up.
    RECV_RDMA_WITH_IMM = IBV_WC_RECV_RDMA_WITH_IMM, "receive of a write with immediate data";
});

numbers!(
/// An event of the connection manager, with names for those that are known
/// (`rdma_get_cm_event(3)`).
#[doc(alias = "rdma_cm_event_type")]
CmEventKind: u32, "gave the unknown event" {
    ADDR_RESOLVED = RDMA_CM_EVENT_ADDR_RESOLVED, "has its address resolved";
    ADDR_ERROR = RDMA_CM_EVENT_ADDR_ERROR, "failed: the address cannot be resolved";
    ROUTE_RESOLVED = RDMA_CM_EVENT_ROUTE_RESOLVED, "has its route resolved";
    ROUTE_ERROR = RDMA_CM_EVENT_ROUTE_ERROR, "failed: the route cannot be resolved";
    /// A peer asks for a connection.
    CONNECT_REQUEST = RDMA_CM_EVENT_CONNECT_REQUEST, "is asked for by a peer";
    /// A peer answered; the connection is not established yet.
    CONNECT_RESPONSE = RDMA_CM_EVENT_CONNECT_RESPONSE, "was answered by the peer";
    CONNECT_ERROR = RDMA_CM_EVENT_CONNECT_ERROR, "failed while it was being established";
    UNREACHABLE = RDMA_CM_EVENT_UNREACHABLE, "failed: the peer is unreachable or does not answer";
    REJECTED = RDMA_CM_EVENT_REJECTED, "was rejected by the peer, or nobody listens there";
    ESTABLISHED = RDMA_CM_EVENT_ESTABLISHED, "is established";
    /// The connection was closed by either side.
    DISCONNECTED = RDMA_CM_EVENT_DISCONNECTED, "was closed";
    /// The device is gone.
    DEVICE_REMOVAL = RDMA_CM_EVENT_DEVICE_REMOVAL, "lost its device";
    /// A multicast group was joined (never seen here).
    MULTICAST_JOIN = RDMA_CM_EVENT_MULTICAST_JOIN, "joined a multicast group";
    /// Joining a multicast group failed (never seen here).
    MULTICAST_ERROR = RDMA_CM_EVENT_MULTICAST_ERROR, "could not join a multicast group";
    /// The network interface of the connection changed its address.
    ADDR_CHANGE = RDMA_CM_EVENT_ADDR_CHANGE, "changed its address";
    /// The queue pair of a closed connection has left its time-wait state.
    TIMEWAIT_EXIT = RDMA_CM_EVENT_TIMEWAIT_EXIT, "was closed (time-wait is over)";
});

numbers!(
/// The kind of an asynchronous event: a number of the device's, with names for those that are
/// known.
#[doc(alias = "ibv_event_type")]
AsyncEventKind: u32, "unknown event" {
    /// A completion queue overran or failed: the queue pairs on it fail too.
    CQ_ERR = IBV_EVENT_CQ_ERR, "a completion queue failed";
    /// A queue pair failed and is in its error state.
    QP_FATAL = IBV_EVENT_QP_FATAL, "a queue pair failed";
    QP_REQ_ERR = IBV_EVENT_QP_REQ_ERR, "the peer sent an invalid request";
    QP_ACCESS_ERR = IBV_EVENT_QP_ACCESS_ERR, "the peer asked for what it has no right to";
    COMM_EST = IBV_EVENT_COMM_EST, "data arrived before the connection was established";
    SQ_DRAINED = IBV_EVENT_SQ_DRAINED, "a send queue was drained";
    PATH_MIG = IBV_EVENT_PATH_MIG, "a connection migrated to its alternate path";
    PATH_MIG_ERR = IBV_EVENT_PATH_MIG_ERR, "a connection could not migrate";
    /// The device failed and must be closed.
    DEVICE_FATAL = IBV_EVENT_DEVICE_FATAL, "the device failed";
    PORT_ACTIVE = IBV_EVENT_PORT_ACTIVE, "the link is up";
    PORT_ERR = IBV_EVENT_PORT_ERR, "the link is down";
    LID_CHANGE = IBV_EVENT_LID_CHANGE, "a local identifier changed";
    PKEY_CHANGE = IBV_EVENT_PKEY_CHANGE, "a partition key changed";
    SM_CHANGE = IBV_EVENT_SM_CHANGE, "the subnet manager changed";
    SRQ_ERR = IBV_EVENT_SRQ_ERR, "a shared receive queue failed";
    /// A shared receive queue runs low (see [`Srq::arm_limit`](crate::Srq::arm_limit)).
    SRQ_LIMIT_REACHED = IBV_EVENT_SRQ_LIMIT_REACHED, "a shared receive queue runs low";
    /// A queue pair in its error state took its last receive from its shared receive queue.
    QP_LAST_WQE_REACHED = IBV_EVENT_QP_LAST_WQE_REACHED, "a queue pair took its last shared receive";
    CLIENT_REREGISTER = IBV_EVENT_CLIENT_REREGISTER, "clients must register again";
    GID_CHANGE = IBV_EVENT_GID_CHANGE, "an address of the port changed";
    WQ_FATAL = IBV_EVENT_WQ_FATAL, "a work queue failed";
    DEVICE_SPEED_CHANGE = IBV_EVENT_DEVICE_SPEED_CHANGE, "the speed of the link changed";
});

numbers!(
/// The state of a port: a number of the device's, with names for those that are known.
#[doc(alias = "ibv_port_state")]
PortState: u32, "unknown state" {
    DOWN = IBV_PORT_DOWN, "down";
    INIT = IBV_PORT_INIT, "not configured by the subnet manager yet";
    ARMED = IBV_PORT_ARMED, "configured";
    ACTIVE = IBV_PORT_ACTIVE, "up";
});

numbers!(
/// The link layer of a port: a number of the device's, with names for those that are known.
LinkLayer: u32, "unknown link layer" {
    /// It means InfiniBand, by devices from before the others.
    UNSPECIFIED = IBV_LINK_LAYER_UNSPECIFIED, "not said";
    INFINIBAND = IBV_LINK_LAYER_INFINIBAND, "InfiniBand";
    /// That of RoCE and iWARP.
    ETHERNET = IBV_LINK_LAYER_ETHERNET, "Ethernet";
});

numbers!(
/// The kind of a GID: a number of the kernel's, with names for those that are known.
#[doc(alias = "ibv_gid_type")]
GidType: u32, "unknown kind of GID" {
    IB = IBV_GID_TYPE_IB, "InfiniBand or iWARP";
    /// RoCE within an Ethernet segment.
    ROCE_V1 = IBV_GID_TYPE_ROCE_V1, "RoCE v1";
    /// RoCE over UDP.
    ROCE_V2 = IBV_GID_TYPE_ROCE_V2, "RoCE v2";
});

numbers!(
/// What carries a device's RDMA traffic.
Transport: i32, "unknown transport" {
    /// InfiniBand and RoCE (Soft-RoCE among them).
    #[doc(alias = "IBV_TRANSPORT_IB")]
    IB = IBV_TRANSPORT_IB, "InfiniBand or RoCE";
    /// iWARP, RDMA over TCP (RFC 5040; soft-iWARP among them). It knows no immediate data, no
    /// atomics and no flush.
    #[doc(alias = "IBV_TRANSPORT_IWARP")]
    IWARP = IBV_TRANSPORT_IWARP, "iWARP";
});

impl Transport {
    /// Is it iWARP?
    pub fn is_iwarp(self) -> bool {
        self == Self::IWARP
    }
}
