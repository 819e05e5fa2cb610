//! The layout of work requests: the one place that knows it.
//!
//! A [`Request`] becomes an `ibv_send_wr` ([`Request::write_to`]), or calls of `ibv_wr_post(3)`
//! ([`start`]). Both match every operation; fields that no provider reads are not written.

use std::ptr::addr_of_mut;

use rdma_sys as ffi;

type Wr = ffi::ibv_send_wr;
type Ex = *mut ffi::ibv_qp_ex;

/// Every operation of a send queue, by its number in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Op {
    Write = ffi::IBV_WR_RDMA_WRITE,
    WriteImm = ffi::IBV_WR_RDMA_WRITE_WITH_IMM,
    Read = ffi::IBV_WR_RDMA_READ,
    Send = ffi::IBV_WR_SEND,
    SendImm = ffi::IBV_WR_SEND_WITH_IMM,
    SendInvalidate = ffi::IBV_WR_SEND_WITH_INV,
    CompareSwap = ffi::IBV_WR_ATOMIC_CMP_AND_SWP,
    FetchAdd = ffi::IBV_WR_ATOMIC_FETCH_AND_ADD,
    Flush = ffi::IBV_WR_FLUSH,
    AtomicWrite = ffi::IBV_WR_ATOMIC_WRITE,
}

impl Op {
    /// Does only `ibv_wr_post(3)` have it, and not `ibv_post_send(3)`?
    pub(crate) const fn is_extended(self) -> bool {
        matches!(self, Op::Flush | Op::AtomicWrite)
    }
}

/// Remote memory, as a work request names it: its first 12 bytes lie as there, so that all 16 are
/// copied at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct Target {
    addr: u64,
    /// The rkey, then the tag.
    keys: u64,
}

impl Target {
    pub(crate) const NOWHERE: Target = Target::new(0, 0, 0);

    /// `tag` is whatever the caller wants to keep here.
    pub(crate) const fn new(addr: u64, rkey: u32, tag: u32) -> Self {
        Target {
            addr,
            keys: side_by_side(rkey, tag),
        }
    }

    #[inline(always)]
    pub(crate) const fn addr(self) -> u64 {
        self.addr
    }

    #[inline(always)]
    pub(crate) const fn rkey(self) -> u32 {
        match cfg!(target_endian = "little") {
            true => self.keys as u32,
            false => (self.keys >> 32) as u32,
        }
    }

    #[inline(always)]
    pub(crate) const fn tag(self) -> u32 {
        match cfg!(target_endian = "little") {
            true => (self.keys >> 32) as u32,
            false => self.keys as u32,
        }
    }

    /// The same, `by` bytes further on. The caller knows that it does not leave the address space.
    #[inline(always)]
    pub(crate) const fn at(self, by: u64) -> Self {
        Target {
            addr: self.addr.wrapping_add(by),
            ..self
        }
    }
}

/// Two numbers as they lie in memory one after the other.
const fn side_by_side(first: u32, second: u32) -> u64 {
    let (first, second) = (first as u64, second as u64);
    match cfg!(target_endian = "little") {
        true => first | second << 32,
        false => first << 32 | second,
    }
}

/// The same of a number of 32 bits in 64 and one in 32.
#[inline(always)]
const fn beside(first: u64, second: u32) -> u64 {
    match cfg!(target_endian = "little") {
        true => first | (second as u64) << 32,
        false => first << 32 | second as u64,
    }
}

/// A work request but for its elements.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) op: Op,
    pub(crate) wr_id: u64,
    /// Of 32 bits.
    pub(crate) flags: u64,
    /// Immediate data in network order, or a key to invalidate.
    pub(crate) imm: u32,
    pub(crate) target: Target,
    /// Compare-and-swap: what is expected and what is new. Fetch-and-add: what is added. Flush: the
    /// length, and [`flush_arg`]. Atomic write: the bytes.
    pub(crate) args: [u64; 2],
}

/// What a flush is told beside its range, in one argument, whose bytes lie so that a slice's level
/// takes no shift: the level is 0 for a range and 1 for a region.
#[inline(always)]
pub(crate) const fn flush_arg(kinds: u32, level: u8) -> u64 {
    const _: () = assert!(ffi::IBV_FLUSH_RANGE == 0 && ffi::IBV_FLUSH_MR == 1);
    u64::from_ne_bytes([kinds as u8, 0, level, 0, 0, 0, 0, 0])
}

/// Kinds and level of what [`flush_arg`] made, in memory.
///
/// # Safety
/// `arg` must be valid for reads.
#[inline(always)]
unsafe fn flush_how(arg: *const u64) -> (u8, u8) {
    let bytes = arg.cast::<u8>();
    // SAFETY: bytes of the caller's number.
    unsafe { (*bytes, *bytes.add(2)) }
}

// `num_sge` and `opcode` are written at once, and so are `send_flags` and `imm_data`; a target lies
// inside of the union; the arguments of an operation that `ibv_post_send` does not have lie behind
// it.
const _: () = assert!(
    std::mem::offset_of!(Wr, num_sge) % 8 == 0
        && std::mem::offset_of!(Wr, opcode) == std::mem::offset_of!(Wr, num_sge) + 4
        && std::mem::offset_of!(Wr, send_flags) % 8 == 0
        && std::mem::offset_of!(Wr, __bindgen_anon_1) == std::mem::offset_of!(Wr, send_flags) + 4
        && size_of::<Kept>() <= size_of::<ffi::ibv_send_wr__bindgen_ty_2>()
);

/// Of an operation of `ibv_wr_post(3)` alone, in the memory of a batch.
#[repr(C)]
struct Kept {
    target: Target,
    args: [u64; 2],
}

impl Request {
    /// Writes all fields that a provider reads for this operation, but for the links `next` and
    /// `sg_list`. The immediate data are written always: providers copy them to the device whatever
    /// the operation is.
    ///
    /// # Safety
    /// `wr` must be valid for writes.
    #[inline(always)]
    pub(crate) unsafe fn write_to(&self, wr: *mut Wr, num_sge: usize) {
        // SAFETY: the caller's `wr`; the assertion above says why the wide writes stay inside of
        // it.
        unsafe {
            addr_of_mut!((*wr).wr_id).write(self.wr_id);
            addr_of_mut!((*wr).num_sge)
                .cast::<u64>()
                .write(side_by_side(num_sge as u32, self.op as u32));
            addr_of_mut!((*wr).send_flags)
                .cast::<u64>()
                .write(beside(self.flags, self.imm));
            let body = addr_of_mut!((*wr).wr);
            match self.op {
                Op::Send | Op::SendImm => {}
                // siw's library takes the key from here (rdma-core 56).
                Op::SendInvalidate => body.cast::<Target>().write(Target::new(0, self.imm, 0)),
                Op::Write | Op::WriteImm | Op::Read => body.cast::<Target>().write(self.target),
                Op::CompareSwap | Op::FetchAdd => {
                    addr_of_mut!((*body).atomic.remote_addr).write(self.target.addr());
                    addr_of_mut!((*body).atomic.compare_add).write(self.args[0]);
                    addr_of_mut!((*body).atomic.swap).write(self.args[1]);
                    addr_of_mut!((*body).atomic.rkey).write(self.target.rkey());
                }
                Op::Flush | Op::AtomicWrite => {
                    let kept = body.cast::<Kept>();
                    addr_of_mut!((*kept).target).write(self.target);
                    addr_of_mut!((*kept).args[0]).write(self.args[0]);
                    if self.op == Op::Flush {
                        addr_of_mut!((*kept).args[1]).write(self.args[1]);
                    }
                }
            }
        }
    }
}

/// Where [`start`] finds the fields of an operation. Each may be asked for only where the operation
/// has it.
pub(crate) trait Fields: Copy {
    /// Address and rkey.
    unsafe fn target(self) -> (u64, u32);
    unsafe fn imm(self) -> u32;
    /// Address, rkey and both arguments of a compare-and-swap or fetch-and-add.
    unsafe fn atomic(self) -> (u64, u32, u64, u64);
    /// Length, kinds and level of a flush.
    unsafe fn flush(self) -> (u64, u8, u8);
    /// The bytes of an atomic write.
    unsafe fn value(self) -> u64;
}

impl Fields for &Request {
    #[inline(always)]
    unsafe fn target(self) -> (u64, u32) {
        (self.target.addr(), self.target.rkey())
    }

    #[inline(always)]
    unsafe fn imm(self) -> u32 {
        self.imm
    }

    #[inline(always)]
    unsafe fn atomic(self) -> (u64, u32, u64, u64) {
        let [first, second] = self.args;
        (self.target.addr(), self.target.rkey(), first, second)
    }

    #[inline(always)]
    unsafe fn flush(self) -> (u64, u8, u8) {
        // SAFETY: it lies in the request.
        let (kinds, level) = unsafe { flush_how(&raw const self.args[1]) };
        (self.args[0], kinds, level)
    }

    #[inline(always)]
    unsafe fn value(self) -> u64 {
        self.args[0]
    }
}

/// A request that [`Request::write_to`] wrote.
impl Fields for *const Wr {
    #[inline(always)]
    unsafe fn target(self) -> (u64, u32) {
        // SAFETY: it was written as an operation with a target.
        unsafe {
            let target = (&raw const (*self).wr).cast::<Target>();
            ((*target).addr(), (*target).rkey())
        }
    }

    #[inline(always)]
    unsafe fn imm(self) -> u32 {
        // SAFETY: it is always written.
        unsafe { (*self).__bindgen_anon_1.imm_data }
    }

    #[inline(always)]
    unsafe fn atomic(self) -> (u64, u32, u64, u64) {
        // SAFETY: it was written as one of the two atomics.
        unsafe {
            let atomic = &raw const (*self).wr.atomic;
            (
                (*atomic).remote_addr,
                (*atomic).rkey,
                (*atomic).compare_add,
                (*atomic).swap,
            )
        }
    }

    #[inline(always)]
    unsafe fn flush(self) -> (u64, u8, u8) {
        // SAFETY: it was written as a flush.
        unsafe {
            let kept = (&raw const (*self).wr).cast::<Kept>();
            let (kinds, level) = flush_how(&raw const (*kept).args[1]);
            ((*kept).args[0], kinds, level)
        }
    }

    #[inline(always)]
    unsafe fn value(self) -> u64 {
        // SAFETY: it was written as an atomic write.
        unsafe { (*(&raw const (*self).wr).cast::<Kept>()).args[0] }
    }
}

/// Starts an operation whose number and flags are set; its elements come after, with
/// `set_elements`.
///
/// # Safety
/// Between `ibv_wr_start` and `ibv_wr_complete` on a live queue pair that was created with `op`;
/// `fields` are those of an `op`.
#[inline(always)]
pub(crate) unsafe fn start(ex: Ex, op: Op, fields: impl Fields) {
    // SAFETY: the caller's contract; each arm asks for what its operation has.
    unsafe {
        match op {
            Op::Write => {
                let (addr, rkey) = fields.target();
                ffi::ibv_wr_rdma_write(ex, rkey, addr);
            }
            Op::WriteImm => {
                let (addr, rkey) = fields.target();
                ffi::ibv_wr_rdma_write_imm(ex, rkey, addr, fields.imm());
            }
            Op::Read => {
                let (addr, rkey) = fields.target();
                ffi::ibv_wr_rdma_read(ex, rkey, addr);
            }
            Op::Send => ffi::ibv_wr_send(ex),
            Op::SendImm => ffi::ibv_wr_send_imm(ex, fields.imm()),
            Op::SendInvalidate => ffi::ibv_wr_send_inv(ex, fields.imm()),
            Op::CompareSwap => {
                let (addr, rkey, compare, swap) = fields.atomic();
                ffi::ibv_wr_atomic_cmp_swp(ex, rkey, addr, compare, swap);
            }
            Op::FetchAdd => {
                let (addr, rkey, add, _) = fields.atomic();
                ffi::ibv_wr_atomic_fetch_add(ex, rkey, addr, add);
            }
            Op::Flush => {
                let (addr, rkey) = fields.target();
                let (len, kinds, level) = fields.flush();
                ffi::ibv_wr_flush(ex, rkey, addr, len as usize, kinds, level);
            }
            Op::AtomicWrite => {
                let (addr, rkey) = fields.target();
                let value = fields.value();
                ffi::ibv_wr_atomic_write(ex, rkey, addr, (&raw const value).cast());
            }
        }
    }
}

/// The operation of a request.
///
/// # Safety
/// [`Request::write_to`] must have written `wr`.
#[inline(always)]
pub(crate) unsafe fn op(wr: *const Wr) -> Op {
    // SAFETY: so the number is that of an `Op`.
    unsafe { (&raw const (*wr).opcode).cast::<Op>().read() }
}

/// Is it this operation, with one element?
///
/// # Safety
/// As for [`op`].
#[inline(always)]
pub(crate) unsafe fn is_one(wr: *const Wr, op: Op, num_sge: u32) -> bool {
    // SAFETY: both numbers were written.
    let shape = unsafe { (&raw const (*wr).num_sge).cast::<u64>().read() };
    shape == side_by_side(num_sge, op as u32)
}

/// Starts an operation of a list that `ibv_post_send(3)` would take, too, with its number, flags
/// and elements.
///
/// # Safety
/// As for [`start`] and [`op`]; `sg_list` must be set, and inline elements be addresses.
#[inline(never)]
pub(crate) unsafe fn start_with_elements(ex: Ex, wr: *const Wr) {
    // SAFETY: the caller's contract.
    unsafe {
        start(ex, op(wr), wr);
        let list = (*wr).sg_list;
        match (*wr).num_sge {
            0 => {}
            1 if (*wr).send_flags & ffi::IBV_SEND_INLINE != 0 => {
                ffi::ibv_wr_set_inline_data(ex, (*list).addr as *mut _, (*list).length as usize);
            }
            1 => ffi::ibv_wr_set_sge(ex, (*list).lkey, (*list).addr, (*list).length),
            num => ffi::ibv_wr_set_sge_list(ex, num as usize, list),
        }
    }
}

#[cfg(test)]
mod tests;
