//! What a region is registered for, and which access rights that takes.

use bitflags::bitflags;

use super::{FlushMethods, Memory};
use crate::error::{Error, Result};

bitflags! {
    /// What a region of memory may be used for. Combine with `|`.
    ///
    /// *Source* and *destination* are those of the data: a read takes data from its (remote) source
    /// to its (local) destination, a write from its (local) source to its (remote) destination.
    ///
    /// The lowest eight bits are those of librpma and travel in the region's
    /// [`Descriptor`](crate::Descriptor), so a peer knows before it posts what a region was
    /// registered for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[doc(alias = "rpma_mr_reg")]
    pub struct Usage: u32 {
        /// A peer may read from it.
        #[doc(alias = "RPMA_MR_USAGE_READ_SRC")]
        const READ_SRC = 1;
        /// Reads of this machine may place their data in it.
        #[doc(alias = "RPMA_MR_USAGE_READ_DST")]
        const READ_DST = 2;
        /// Writes of this machine may take their data from it. Read-only memory will do.
        #[doc(alias = "RPMA_MR_USAGE_WRITE_SRC")]
        const WRITE_SRC = 4;
        /// A peer may write to it.
        #[doc(alias = "RPMA_MR_USAGE_WRITE_DST")]
        const WRITE_DST = 8;
        /// A peer may flush it with [`FlushKind::Visibility`](crate::FlushKind::Visibility). It may then
        /// read it too, whatever its descriptor says: a flush may be done by reading.
        #[doc(alias = "RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY")]
        const FLUSH_VISIBILITY = 16;
        /// A peer may flush it with [`FlushKind::Persistent`](crate::FlushKind::Persistent), and read it,
        /// as above.
        #[doc(alias = "RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT")]
        const FLUSH_PERSISTENT = 32;
        /// Messages may be sent from it. Read-only memory will do.
        #[doc(alias = "RPMA_MR_USAGE_SEND")]
        const SEND = 64;
        /// Messages may be received in it.
        #[doc(alias = "RPMA_MR_USAGE_RECV")]
        const RECV = 128;
        /// A peer may change its 8-byte words with compare-and-swap and fetch-and-add.
        ///
        /// librpma has no such operations, so its peers do not learn of this bit.
        const ATOMIC = 256;
    }
}

/// The access rights of `ibv_reg_mr(3)`. The two for flushing exist since rdma-core 45 and Linux
/// 6.3.
mod access {
    pub(super) use rdma_sys::{
        IBV_ACCESS_FLUSH_GLOBAL as FLUSH_GLOBAL, IBV_ACCESS_FLUSH_PERSISTENT as FLUSH_PERSISTENT,
        IBV_ACCESS_LOCAL_WRITE as LOCAL_WRITE, IBV_ACCESS_ON_DEMAND as ON_DEMAND,
        IBV_ACCESS_RELAXED_ORDERING as RELAXED_ORDERING, IBV_ACCESS_REMOTE_ATOMIC as REMOTE_ATOMIC,
        IBV_ACCESS_REMOTE_READ as REMOTE_READ, IBV_ACCESS_REMOTE_WRITE as REMOTE_WRITE,
    };
}

/// What decides, beside the usage, which access rights are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessEnv {
    /// The transport is iWARP, where the responder of a read writes to the reader's memory by its
    /// remote key (RFC 5040, section 5.2).
    pub(crate) iwarp: bool,
    /// Grant the device's native flush for visibility.
    pub(crate) native_visibility: bool,
    /// Grant the device's native flush for persistence. To be given up, and nothing else, for
    /// memory that the device refuses it for.
    pub(crate) native_persistent: bool,
    /// Pages are not pinned but fetched when the device needs them.
    pub(crate) on_demand: bool,
}

impl Usage {
    /// The device and the bus may reorder accesses to the region, which some machines do faster. An
    /// option beside usages, and not in [`all`](Self::all); a device that has no such thing ignores
    /// it.
    ///
    /// What a completion says still holds. But a write or a flush may overtake the writes before
    /// it, so a flag or the end of a buffer may be seen before the bytes in front of it: refused
    /// with the two FLUSH usages, and wrong for memory that is watched without a completion.
    #[doc(alias = "IBV_ACCESS_RELAXED_ORDERING")]
    pub const RELAXED_ORDERING: Usage = Usage::from_bits_retain(512);

    /// The bits that librpma knows and puts on the wire.
    pub(crate) const WIRE: Usage = Usage::from_bits_retain(0xff);

    /// What makes the device, or this machine by way of the device, write to the memory.
    const WRITES: Usage = Usage::READ_DST
        .union(Usage::WRITE_DST)
        .union(Usage::RECV)
        .union(Usage::ATOMIC);

    /// The access rights to register with.
    pub(crate) fn access(self, env: AccessEnv) -> u32 {
        let mut rights = 0;
        let mut grant = |usage: Usage, condition: bool, access: u32| {
            if condition && self.intersects(usage) {
                rights |= access;
            }
        };
        grant(Usage::READ_SRC, true, access::REMOTE_READ);
        grant(Usage::READ_DST, env.iwarp, access::REMOTE_WRITE);
        grant(Usage::WRITE_DST, true, access::REMOTE_WRITE);
        grant(Usage::ATOMIC, true, access::REMOTE_ATOMIC);
        grant(Usage::RELAXED_ORDERING, true, access::RELAXED_ORDERING);
        // The kernel refuses REMOTE_WRITE and REMOTE_ATOMIC without LOCAL_WRITE (ibv_reg_mr(3)).
        // WRITE_SRC and SEND only let the device read what the process itself registered: they ask
        // for nothing.
        grant(Usage::WRITES, true, access::LOCAL_WRITE);
        // A flush may always be done by a read behind the writes.
        let flush = Usage::FLUSH_VISIBILITY | Usage::FLUSH_PERSISTENT;
        grant(flush, true, access::REMOTE_READ);
        grant(
            Usage::FLUSH_VISIBILITY,
            env.native_visibility,
            access::FLUSH_GLOBAL,
        );
        grant(
            Usage::FLUSH_PERSISTENT,
            env.native_persistent,
            access::FLUSH_PERSISTENT,
        );
        if env.on_demand {
            rights |= access::ON_DEMAND;
        }
        rights
    }

    /// Refuses what means nothing, and what cannot go together.
    fn check(self) -> Result<()> {
        let usages = self.difference(Usage::RELAXED_ORDERING);
        if usages.is_empty() || !Usage::all().contains(usages) {
            return Err(Error::invalid(
                "usage",
                "empty, or with bits that have no meaning",
            ));
        }
        if usages != self && self.intersects(Usage::FLUSH_VISIBILITY | Usage::FLUSH_PERSISTENT) {
            return Err(Error::invalid(
                "usage",
                "with RELAXED_ORDERING a flush may overtake the writes that it should flush",
            ));
        }
        Ok(())
    }

    /// Refuses what no device needs to be asked about: registering for nothing, and registering
    /// read-only memory as a destination.
    pub(crate) fn check_memory(self, memory: &Memory) -> Result<()> {
        self.check()?;
        if memory.len() == 0 {
            return Err(Error::invalid(
                "memory",
                "no bytes: what is left of a region that only a device could reach",
            ));
        }
        if !memory.is_writable() && self.intersects(Usage::WRITES) {
            return Err(Error::invalid(
                "usage",
                "the memory is mapped read-only: READ_DST, WRITE_DST, RECV and ATOMIC would write to it",
            ));
        }
        Ok(())
    }

    /// Refuses what cannot be a region of memory that only the device reaches.
    pub(crate) fn check_device_only(self, len: usize, address: u64) -> Result<()> {
        self.check()?;
        if len == 0 {
            return Err(Error::invalid("len", "a region has at least one byte"));
        }
        if address.checked_add(len as u64).is_none() {
            return Err(Error::invalid(
                "iova",
                "the region would leave the address space",
            ));
        }
        Ok(())
    }

    /// The name of the first of the `needed` usages that this one lacks.
    pub(crate) fn first_missing(self, needed: Usage) -> Option<&'static str> {
        needed
            .difference(self)
            .iter_names()
            .map(|(name, _)| name)
            .next()
    }
}

/// Do the access rights `access` let the device fetch pages when it needs them?
pub(crate) fn is_on_demand(access: u32) -> bool {
    access & access::ON_DEMAND != 0
}

impl FlushMethods {
    /// The methods that a region accepts which was registered with the access rights `rights`.
    pub(crate) fn from_access(rights: u32) -> FlushMethods {
        let mut methods = FlushMethods::empty();
        methods.set(
            FlushMethods::NATIVE_VISIBILITY,
            rights & access::FLUSH_GLOBAL != 0,
        );
        methods.set(
            FlushMethods::NATIVE_PERSISTENT,
            rights & access::FLUSH_PERSISTENT != 0,
        );
        methods
    }
}

#[cfg(test)]
mod tests;
