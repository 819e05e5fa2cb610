//! Memory regions.

use std::ffi::{c_int, c_void};

use rpma::{
    Advice, LocalRegion, LocalSlice, Memory, Peer, RemoteRegion, Usage, capi_support::Piece, code,
};

use crate::{Failure, INVAL, Out, OutHandle, Outcome, Slot, c_api, given};

/// `struct rpma_mr_local`.
pub(crate) struct Local {
    region: LocalRegion,
    /// What the program asked for; the region may be usable for more.
    usage: Usage,
}

const DESCRIPTOR_LEN: usize = 21;
/// `IBV_ADVISE_MR_FLAG_FLUSH`: wait until the advice was followed.
const WAIT: u32 = 1;

impl Local {
    #[inline(always)]
    pub(crate) fn piece(&self, offset: usize, len: usize) -> Piece<'_, LocalRegion> {
        Piece {
            region: &self.region,
            offset: offset as u64,
            len: len as u64,
        }
    }

    /// `len` bytes at `offset`.
    pub(crate) fn slice(&self, offset: usize, len: usize) -> Outcome<LocalSlice<'_>> {
        let (start, end) = range(offset, len)?;
        Ok(self.region.slice(start..end)?)
    }
}

/// A buffer to send from or receive into: none at all for no bytes.
pub(crate) fn buffer(mr: Option<&Local>, offset: usize, len: usize) -> Outcome<LocalSlice<'_>> {
    match mr {
        Some(mr) => mr.slice(offset, len),
        None if offset == 0 && len == 0 => Ok(LocalSlice::EMPTY),
        None => Err(INVAL),
    }
}

/// Where `len` bytes at `offset` start and end.
#[inline]
pub(crate) fn range(offset: usize, len: usize) -> Outcome<(u64, u64)> {
    let end = given(offset.checked_add(len))?;
    Ok((offset as u64, end as u64))
}

/// `asked`, and what the device lets the process do with such a region anyway: librpma's programs
/// may count on it, since librpma never looks.
fn usable(asked: Usage, iwarp: bool) -> Usage {
    let mut usage = asked | Usage::WRITE_SRC | Usage::SEND;
    if asked.intersects(Usage::READ_DST | Usage::WRITE_DST | Usage::RECV) {
        usage |= Usage::RECV;
        // On iWARP it would give the peer the right to write.
        if !iwarp {
            usage |= Usage::READ_DST;
        }
    }
    usage
}

/// The bits of a usage that is not empty and has none that librpma does not know.
fn known_usage(usage: c_int) -> Outcome<u32> {
    match u32::from(u8::try_from(usage).map_err(|_| INVAL)?) {
        0 => Err(INVAL),
        usage => Ok(usage),
    }
}

c_api! {
    /// Registers memory.
    fn rpma_mr_reg(
        peer: Option<&Peer>,
        ptr: *mut c_void,
        size: usize,
        usage: c_int,
        mr_ptr: OutHandle<'_, Local>,
    ) {
        let (peer, place) = (given(peer)?, given(mr_ptr)?);
        if ptr.is_null() || size == 0 {
            return Err(INVAL);
        }
        let usage = Usage::from_bits_truncate(known_usage(usage)?);
        // SAFETY: the contract of C, and of RDMA: the memory stays where it is until it is
        // deregistered. Whether it can be written to is known to the kernel, which refuses what
        // cannot be; the C interface never writes.
        let memory = unsafe { Memory::from_raw_parts(ptr.cast(), size, true) }?;
        let iwarp = peer.capabilities().transport.is_iwarp();
        let region = peer.register(memory, usable(usage, iwarp))?;
        place.write(Some(Box::new(Local { region, usage })));
        Ok(())
    }

    /// Deregisters memory. Where the device refuses, the handle is as it was: neither moved nor
    /// replaced, so its copies stay valid.
    fn rpma_mr_dereg(mr_ptr: Slot<'_, Local>) {
        let slot = given(mr_ptr)?;
        if let Some(mr) = slot {
            rpma::capi_support::close_in_place(&mut mr.region)?;
        }
        *slot = None;
        Ok(())
    }

    /// Writes the descriptor.
    fn rpma_mr_get_descriptor(mr: Option<&Local>, desc: Out<'_, [u8; DESCRIPTOR_LEN]>) {
        let (mr, place) = (given(mr)?, given(desc)?);
        let mut bytes = mr.region.descriptor().to_librpma();
        bytes[DESCRIPTOR_LEN - 1] = mr.usage.bits() as u8;
        place.write(bytes);
        Ok(())
    }

    /// The size of the descriptor.
    fn rpma_mr_get_descriptor_size(mr: Option<&Local>, desc_size: Out<'_, usize>) {
        let (_, place) = (given(mr)?, given(desc_size)?);
        place.write(DESCRIPTOR_LEN);
        Ok(())
    }

    /// The memory.
    fn rpma_mr_get_ptr(mr: Option<&Local>, ptr: Out<'_, *mut c_void>) {
        let (mr, place) = (given(mr)?, given(ptr)?);
        place.write(mr.region.as_mut_ptr().cast());
        Ok(())
    }

    /// The size of the memory.
    fn rpma_mr_get_size(mr: Option<&Local>, size: Out<'_, usize>) {
        let (mr, place) = (given(mr)?, given(size)?);
        place.write(mr.region.len() as usize);
        Ok(())
    }

    /// Advises the kernel about pages.
    fn rpma_mr_advise(mr: Option<&Local>, offset: usize, len: usize, advice: c_int, flags: u32) {
        let mr = given(mr)?;
        let (start, end) = range(offset, len)?;
        if flags & !WAIT != 0 {
            return Err(INVAL);
        }
        let advice = Advice::from_raw(advice as u32);
        mr.region.advise(start..end, advice, flags & WAIT != 0).map_err(|err| {
            match err.raw_os_error() {
                Some(libc::EINVAL | libc::EFAULT) => INVAL,
                _ => err.into(),
            }
        })
    }

    /// Makes a remote region of a descriptor.
    fn rpma_mr_remote_from_descriptor(
        desc: *const c_void,
        desc_size: usize,
        mr_ptr: OutHandle<'_, RemoteRegion>,
    ) {
        let place = given(mr_ptr)?;
        if desc.is_null() {
            return Err(INVAL);
        }
        // SAFETY: the contract of C; the memory is only read during the call.
        let bytes = unsafe { std::slice::from_raw_parts(desc.cast::<u8>(), desc_size) };
        place.write(Some(Box::new(RemoteRegion::from_descriptor(bytes)?)));
        Ok(())
    }

    /// The size of a remote region.
    fn rpma_mr_remote_get_size(mr: Option<&RemoteRegion>, size: Out<'_, usize>) {
        let (mr, place) = (given(mr)?, given(size)?);
        // A size of another machine's that this one has no number for.
        let size = usize::try_from(mr.len()).map_err(|_| Failure::Code(code::NOSUPP))?;
        place.write(size);
        Ok(())
    }

    /// How a remote region can be flushed.
    fn rpma_mr_remote_get_flush_type(mr: Option<&RemoteRegion>, flush_type: Out<'_, c_int>) {
        let (mr, place) = (given(mr)?, given(flush_type)?);
        let types = mr.usage() & (Usage::FLUSH_VISIBILITY | Usage::FLUSH_PERSISTENT);
        place.write(types.bits() as c_int);
        Ok(())
    }

    /// Forgets a remote region.
    fn rpma_mr_remote_delete(mr_ptr: Slot<'_, RemoteRegion>) {
        given(mr_ptr)?.take();
        Ok(())
    }
}
