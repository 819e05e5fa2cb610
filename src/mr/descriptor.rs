//! The bytes by which a region is made known to a peer.
//!
//! | bytes | meaning |
//! |---|---|
//! | 0..8 | address, little-endian |
//! | 8..16 | length in bytes, little-endian |
//! | 16..20 | remote key, little-endian |
//! | 20 | the eight usage bits of librpma |
//! | 21 | 0xA0, and in the low bits: 1 native flush for visibility, 2 native flush for persistence, 4 remote atomics, 8 reserved |
//!
//! The first 21 bytes are librpma's descriptor, whose reader accepts a longer one. A descriptor
//! without the last byte, or with another high half in its place, is one of librpma.

use super::{FlushMethods, RemoteRegion, Usage};
use crate::error::{Error, Result};

const LIBRPMA_LEN: usize = 21;
const EXTENSION: u8 = 0xA0;
const EXTENSION_MASK: u8 = 0xF0;
const REMOTE_ATOMICS: u8 = 4;

/// The descriptor of a region: what a peer needs to reach it.
///
/// Send [`as_bytes`](Self::as_bytes) to the peer by any means; it makes a [`RemoteRegion`] of them.
/// Whoever holds the bytes, and a connection on the same [`Peer`](crate::Peer) as the region, can
/// use the region for what it was registered for: treat them like a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "rpma_mr_get_descriptor")]
pub struct Descriptor([u8; Descriptor::LEN]);

impl Descriptor {
    /// The length of a descriptor in bytes.
    #[doc(alias = "rpma_mr_get_descriptor_size")]
    pub const LEN: usize = LIBRPMA_LEN + 1;

    pub(crate) fn new(
        addr: u64,
        len: u64,
        rkey: u32,
        usage: Usage,
        methods: FlushMethods,
    ) -> Descriptor {
        let mut bytes = [0; Descriptor::LEN];
        bytes[..8].copy_from_slice(&addr.to_le_bytes());
        bytes[8..16].copy_from_slice(&len.to_le_bytes());
        bytes[16..20].copy_from_slice(&rkey.to_le_bytes());
        bytes[20] = (usage & Usage::WIRE).bits() as u8;
        bytes[21] = EXTENSION | methods.bits();
        if usage.contains(Usage::ATOMIC) {
            bytes[21] |= REMOTE_ATOMICS;
        }
        Descriptor(bytes)
    }

    /// The bytes to send to the peer.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The 21 bytes that librpma itself would write.
    ///
    /// librpma reads the whole descriptor as well; this one is for programs that left room for no
    /// more. What is lost with the last byte: the peer does not learn whether the region accepts
    /// native flushes and atomics.
    pub fn to_librpma(&self) -> [u8; 21] {
        let mut bytes = [0; LIBRPMA_LEN];
        bytes.copy_from_slice(&self.0[..LIBRPMA_LEN]);
        bytes
    }
}

impl AsRef<[u8]> for Descriptor {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Descriptor> for [u8; Descriptor::LEN] {
    #[inline]
    fn from(descriptor: Descriptor) -> Self {
        descriptor.0
    }
}

/// Reads a descriptor, of ours or of librpma.
pub(super) fn decode(bytes: &[u8]) -> Result<RemoteRegion> {
    let Some(fields) = Fields::split(bytes) else {
        return Err(bad("shorter than 21 bytes"));
    };
    let Fields {
        addr, len, rkey, ..
    } = fields;
    let mut usage = Usage::from_bits_truncate(fields.usage.into());
    let mut methods = None;
    if let Some(extension) = fields.extension {
        methods = Some(FlushMethods::from_bits_truncate(extension));
        usage.set(Usage::ATOMIC, extension & REMOTE_ATOMICS != 0);
    }
    if usage.is_empty() {
        return Err(bad("no usage, and a region is registered for something"));
    }
    if len == 0 {
        return Err(bad("length 0, and a region has at least one byte"));
    }
    if addr.checked_add(len).is_none() {
        return Err(bad("address and length leave the address space"));
    }
    Ok(RemoteRegion::new(addr, len, rkey, usage, methods))
}

struct Fields {
    addr: u64,
    len: u64,
    rkey: u32,
    usage: u8,
    extension: Option<u8>,
}

impl Fields {
    fn split(bytes: &[u8]) -> Option<Fields> {
        let (addr, rest) = bytes.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (rkey, rest) = rest.split_first_chunk()?;
        let (usage, rest) = rest.split_first()?;
        let extension = rest.first().copied();
        Some(Fields {
            addr: u64::from_le_bytes(*addr),
            len: u64::from_le_bytes(*len),
            rkey: u32::from_le_bytes(*rkey),
            usage: *usage,
            extension: extension.filter(|byte| byte & EXTENSION_MASK == EXTENSION),
        })
    }
}

#[cold]
fn bad(problem: &'static str) -> Error {
    Error::BadDescriptor {
        what: "memory region",
        problem,
    }
}

#[cfg(test)]
mod tests;
