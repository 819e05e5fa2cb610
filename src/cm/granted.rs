//! What a connection got: its limits, and what its queue pair can do.

use super::Connection;
use crate::{DataInOrder, FlushKind};

impl Connection {
    /// The inline data, in bytes, that one operation may carry, as the device granted it.
    pub fn max_inline(&self) -> u32 {
        self.parts.qp.max_inline()
    }

    /// The longest message, in bytes.
    pub fn max_message_size(&self) -> u64 {
        self.parts.qp.max_message()
    }

    /// The number of slices that one operation may gather or scatter, as the device granted it.
    pub fn max_sge(&self) -> u32 {
        self.parts.qp.max_send_sge()
    }

    /// The number of operations that can be outstanding, as the device granted it.
    pub fn sq_size(&self) -> u32 {
        self.parts.qp.sq_depth()
    }

    /// The number of receives that can be outstanding, as the device granted it; 0 with a shared
    /// receive queue.
    pub fn rq_size(&self) -> u32 {
        self.parts.qp.rq_depth()
    }

    /// How many reads, atomics and flushes this side can have in flight, as both sides agreed;
    /// `None` until the active side has seen the connection established, and on iWARP, whose
    /// connection manager does not tell. With 0 they are refused, since none would ever complete.
    pub fn initiator_depth(&self) -> Option<u8> {
        self.initiator_depth.get().copied()
    }

    /// In which order the bytes of writes come to be seen in this side's memory, of which the
    /// device says something only on few machines.
    pub fn data_in_order(&self) -> DataInOrder {
        self.parts.qp.raw().data_in_order()
    }

    /// Does the connection do this flush natively, as far as this side is concerned?
    pub fn has_native_flush(&self, kind: FlushKind) -> bool {
        self.parts.qp.flushes_natively(kind)
    }

    /// Is an atomic write the device's own? Else it is an inline write, behind a fence where the
    /// device needs one.
    pub fn has_native_atomic_write(&self) -> bool {
        self.parts.qp.features().atomic_write
    }
}
