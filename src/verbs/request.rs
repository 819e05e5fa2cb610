//! One work request: its checks and the fields that a provider reads. Nothing is zeroed that is not read.

use std::ptr::addr_of_mut;

use rdma_sys as ffi;

use super::{
    qp::Qp,
    sges::Sges,
    workarounds::{FIRST_PART, SHORT},
};
use crate::{
    Error, FlushKind, Post, Result, Usage,
    mr::{FlushPlan, LocalSlice, RemoteSlice, Target, quick},
};

/// A read or a write: what the two do not share.
pub(super) struct Transfer {
    pub(super) opcode: u32,
    /// What the local side must be registered for, and its name as an argument.
    local: (Usage, &'static str),
    /// The same of the remote side.
    remote: (Usage, &'static str),
}

pub(super) const WRITE: Transfer = Transfer {
    opcode: ffi::IBV_WR_RDMA_WRITE,
    local: (Usage::WRITE_SRC, "src"),
    remote: (Usage::WRITE_DST, "dst"),
};

pub(super) const READ: Transfer = Transfer {
    opcode: ffi::IBV_WR_RDMA_READ,
    local: (Usage::READ_DST, "dst"),
    remote: (Usage::READ_SRC, "src"),
};

impl Transfer {
    /// The usages of both sides.
    #[inline(always)]
    pub(super) fn usages(&self) -> Usage {
        self.local.0 | self.remote.0
    }

    #[inline(always)]
    pub(super) fn request(&self, remote: Target, post: Post) -> Request {
        Request::new(self.opcode, post, Body::Rdma { target: remote })
    }
}

/// A work request but for its scatter/gather list.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(super) wr_id: u64,
    pub(super) flags: u32,
    pub(super) opcode: u32,
    pub(super) body: Body,
}

/// What the opcodes do not share.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    Send,
    SendImm {
        imm: u32,
    },
    Rdma {
        target: Target,
    },
    RdmaImm {
        target: Target,
        imm: u32,
    },
    Atomic {
        target: Target,
        compare_add: u64,
        swap: u64,
    },
    Flush {
        range: RemoteSlice,
        kinds: u32,
    },
    AtomicWrite {
        target: Target,
        value: [u8; 8],
    },
}

/// Of an atomic write that is none of the device's: inline, behind a fence.
pub(super) const WORD_FLAGS: u32 = ffi::IBV_SEND_INLINE | ffi::IBV_SEND_FENCE;

type Wr = ffi::ibv_send_wr;
const _: () = assert!(
    size_of::<RemoteSlice>() <= size_of::<ffi::ibv_send_wr__bindgen_ty_2>()
        && std::mem::offset_of!(Wr, num_sge) % 8 == 0
        && std::mem::offset_of!(Wr, num_sge) + 4 == std::mem::offset_of!(Wr, opcode)
);

/// The number of elements and the opcode, as they lie side by side in a request.
pub(super) const fn shape(num_sge: u32, opcode: u32) -> u64 {
    let (first, second) = (num_sge as u64, opcode as u64);
    match cfg!(target_endian = "little") {
        true => first | second << 32,
        false => first << 32 | second,
    }
}

impl Request {
    #[inline(always)]
    pub(super) fn new(opcode: u32, post: Post, body: Body) -> Self {
        Request {
            wr_id: post.wr_id,
            flags: post.flags,
            opcode,
            body,
        }
    }

    /// A native flush.
    #[inline(always)]
    pub(super) fn flush(range: &RemoteSlice, kind: FlushKind, post: Post) -> Self {
        let (range, kinds) = (*range, flush_kinds(kind));
        Request::new(ffi::IBV_WR_FLUSH, post, Body::Flush { range, kinds })
    }

    /// A native atomic write.
    #[inline(always)]
    pub(super) fn atomic_write(target: Target, value: [u8; 8], post: Post) -> Self {
        let body = Body::AtomicWrite { target, value };
        Request::new(ffi::IBV_WR_ATOMIC_WRITE, post, body)
    }

    /// Writes all fields that a provider reads for this request, but for the list's links: `next` and `sg_list`.
    ///
    /// # Safety
    /// `wr` must be valid for writes.
    #[inline(always)]
    pub(super) unsafe fn write_to(&self, wr: *mut Wr, num_sge: usize) {
        // SAFETY: the caller's word; each place lies inside of `*wr`: the two that are wider than the field that they are named by
        // are so by the assertion above.
        unsafe {
            addr_of_mut!((*wr).wr_id).write(self.wr_id);
            addr_of_mut!((*wr).num_sge)
                .cast::<u64>()
                .write(shape(num_sge as u32, self.opcode));
            addr_of_mut!((*wr).send_flags).write(self.flags);
            let target = addr_of_mut!((*wr).wr).cast::<Target>();
            match self.body {
                Body::Send => {}
                Body::SendImm { imm } => {
                    addr_of_mut!((*wr).__bindgen_anon_1.imm_data).write(imm.to_be());
                }
                Body::Rdma { target: to } => target.write(to),
                Body::RdmaImm { target: to, imm } => {
                    addr_of_mut!((*wr).__bindgen_anon_1.imm_data).write(imm.to_be());
                    target.write(to);
                }
                Body::Atomic {
                    target,
                    compare_add,
                    swap,
                } => {
                    addr_of_mut!((*wr).wr.atomic.remote_addr).write(target.addr());
                    addr_of_mut!((*wr).wr.atomic.compare_add).write(compare_add);
                    addr_of_mut!((*wr).wr.atomic.swap).write(swap);
                    addr_of_mut!((*wr).wr.atomic.rkey).write(target.rkey());
                }
                // These two never go to `ibv_post_send`; a batch keeps them so until it starts them.
                Body::Flush { range, kinds } => {
                    addr_of_mut!((*wr).__bindgen_anon_1.imm_data).write(kinds);
                    target.cast::<RemoteSlice>().write(range);
                }
                Body::AtomicWrite { target: to, value } => {
                    target.write(to);
                    addr_of_mut!((*wr).wr.atomic.swap).write(u64::from_ne_bytes(value));
                }
            }
        }
    }
}

/// A read that is split, as two requests with their elements.
pub(super) type Split = [(Request, ffi::ibv_sge); 2];

impl Qp {
    /// What a request with these elements becomes where the device is faulty: one with data that are copied, or two.
    pub(super) fn way_around(&self, request: &mut Request, list: &[ffi::ibv_sge]) -> Option<Split> {
        let [sge] = list else { return None };
        match (request.opcode, request.body) {
            (ffi::IBV_WR_RDMA_WRITE, _) | (ffi::IBV_WR_SEND, _)
                if self.workarounds.inline(sge) && self.max_inline >= SHORT =>
            {
                request.flags |= ffi::IBV_SEND_INLINE;
                None
            }
            (ffi::IBV_WR_RDMA_READ, Body::Rdma { target }) => {
                let first = self.workarounds.split(target.addr(), sge.length)?;
                let (mut before, mut behind) = (*request, *request);
                before.wr_id = FIRST_PART;
                before.flags &= !ffi::IBV_SEND_SIGNALED;
                behind.body = Body::Rdma {
                    target: target.at(u64::from(first)),
                };
                let rest = ffi::ibv_sge {
                    addr: sge.addr + u64::from(first),
                    length: sge.length - first,
                    ..*sge
                };
                let head = ffi::ibv_sge {
                    length: first,
                    ..*sge
                };
                Some([(before, head), (behind, rest)])
            }
            _ => None,
        }
    }

    /// Is a transfer between the two right beyond doubt?
    #[inline(always)]
    pub(super) fn quick(
        &self,
        transfer: &Transfer,
        local: &LocalSlice<'_>,
        remote: &RemoteSlice,
    ) -> bool {
        quick_pair(self.quick, transfer, local, remote)
    }

    /// The full check, where [`quick`](Self::quick) could not decide.
    #[cold]
    #[inline(never)]
    pub(super) fn check_transfer(
        &self,
        transfer: &Transfer,
        local: &LocalSlice<'_>,
        remote: &RemoteSlice,
    ) -> Result<()> {
        let (usage, argument) = transfer.local;
        check_local(self.tag, local, usage, argument)?;
        self.check_remote_of(transfer, local.len(), remote)
    }

    /// The remote side of a transfer of `len` bytes in all.
    #[inline]
    pub(super) fn check_remote_of(
        &self,
        transfer: &Transfer,
        len: u64,
        remote: &RemoteSlice,
    ) -> Result<()> {
        let (usage, argument) = transfer.remote;
        check_remote(remote, usage, argument)?;
        self.check_length(transfer.local.1, len, remote.len())
    }

    /// Gathers the local side of a transfer; gives the bytes in total.
    #[inline]
    pub(super) fn gather_for(
        &self,
        transfer: &Transfer,
        sges: &mut Sges,
        list: &[LocalSlice<'_>],
    ) -> Result<u64> {
        let (usage, argument) = transfer.local;
        self.gather(sges, usage, argument, list)
    }

    /// A write of gathered slices or of inline bytes, `len` bytes in all.
    #[inline]
    pub(super) fn check_write_of(
        &self,
        len: u64,
        dst: &RemoteSlice,
        imm: Option<u32>,
        post: Post,
    ) -> Result<Request> {
        self.check_remote_of(&WRITE, len, dst)?;
        let target = dst.target;
        let Some(imm) = imm else {
            return Ok(WRITE.request(target, post));
        };
        self.check_immediate()?;
        Ok(Request::new(
            ffi::IBV_WR_RDMA_WRITE_WITH_IMM,
            post,
            Body::RdmaImm { target, imm },
        ))
    }

    #[inline]
    pub(super) fn check_send(&self, imm: Option<u32>, post: Post) -> Result<Request> {
        let Some(imm) = imm else {
            return Ok(Request::new(ffi::IBV_WR_SEND, post, Body::Send));
        };
        self.check_immediate()?;
        Ok(Request::new(
            ffi::IBV_WR_SEND_WITH_IMM,
            post,
            Body::SendImm { imm },
        ))
    }

    /// The ways in which `range` can be flushed, whatever the kind.
    #[inline(always)]
    pub(super) fn flushes(&self, range: &RemoteSlice) -> FlushPlan {
        self.flush_plan() & range.flushes
    }

    #[cold]
    #[inline(never)]
    pub(super) fn flush_refused(&self, range: &RemoteSlice, kind: FlushKind) -> Error {
        if !range.usage().contains(kind.usage()) {
            return Error::not_supported(match kind {
                FlushKind::Persistent => {
                    "persistent flush: the remote region was registered without FLUSH_PERSISTENT"
                }
                FlushKind::Visibility => {
                    "flush to visibility: the remote region was registered without FLUSH_VISIBILITY"
                }
            });
        }
        if !self.flush_plan().intersects(FlushPlan::of_kind(kind))
            && kind == FlushKind::Persistent
            && !self.declared()
        {
            return Error::not_supported(
                "persistent flush: the peer did not declare direct write to persistent memory (PeerCfg)",
            );
        }
        if range.is_empty() {
            return Error::invalid("range", "a flush of no bytes");
        }
        if range.len() > FlushPlan::MAX_RANGE && self.native_only() {
            return too_long("range", range.len(), FlushPlan::MAX_RANGE);
        }
        Error::not_supported(
            "native flush: the device, the queue pair or the remote region does not have it",
        )
    }

    /// An atomic write of 8 bytes: is it native, or else an inline write, and with which flags?
    pub(super) fn check_atomic_write(&self, dst: &RemoteSlice, post: Post) -> Result<(bool, Post)> {
        check_remote(dst, Usage::WRITE_DST, "dst")?;
        if dst.len() != 8 {
            return Err(length_mismatch("dst", 8, dst.len()));
        }
        self.check_word_write(dst.address(), dst, post)
    }

    /// The same for 8 bytes at `address`, which lie in `range`.
    pub(super) fn check_word_write(
        &self,
        address: u64,
        range: &RemoteSlice,
        mut post: Post,
    ) -> Result<(bool, Post)> {
        if address % 8 != 0 {
            return Err(misaligned("dst", address));
        }
        if self.features.atomic_write {
            // Behind a native flush the order is the device's own; behind a read it takes a fence.
            if self.flushes(range).reads() {
                post.flags |= ffi::IBV_SEND_FENCE;
            }
            return Ok((true, post));
        }
        if self.max_inline < 8 {
            return Err(Error::not_supported(
                "atomic write: the queue pair has neither a native one nor 8 bytes of inline data",
            ));
        }
        post.flags |= WORD_FLAGS;
        Ok((false, post))
    }

    /// A compare-and-swap (`swap` given) or a fetch-and-add.
    #[inline]
    pub(super) fn check_atomic(
        &self,
        dst: &LocalSlice<'_>,
        word: &RemoteSlice,
        compare_add: u64,
        swap: Option<u64>,
        post: Post,
    ) -> Result<Request> {
        if !self.features.atomics {
            return Err(Error::not_supported(
                "remote atomics: the device or its transport has none",
            ));
        }
        check_local(self.tag, dst, Usage::READ_DST, "dst")?;
        check_remote(word, Usage::ATOMIC, "word")?;
        check_word(word, "word")?;
        if dst.len() != 8 {
            return Err(length_mismatch("dst", 8, dst.len()));
        }
        let opcode = match swap {
            Some(_) => ffi::IBV_WR_ATOMIC_CMP_AND_SWP,
            None => ffi::IBV_WR_ATOMIC_FETCH_AND_ADD,
        };
        let body = Body::Atomic {
            target: word.target,
            compare_add,
            swap: swap.unwrap_or(0),
        };
        Ok(Request::new(opcode, post, body))
    }

    /// Inline bytes must fit the queue pair's inline space.
    #[inline]
    pub(super) fn check_inline(&self, argument: &'static str, len: usize) -> Result<()> {
        if len <= self.max_inline as usize {
            Ok(())
        } else {
            Err(too_inline(argument, len, self))
        }
    }

    #[inline]
    fn check_immediate(&self) -> Result<()> {
        if self.features.immediate {
            return Ok(());
        }
        Err(Error::not_supported("immediate data: iWARP has none"))
    }

    #[inline]
    fn check_length(&self, argument: &'static str, local: u64, remote: u64) -> Result<()> {
        if local != remote {
            return Err(length_mismatch(argument, remote, local));
        }
        if local > self.max_message {
            return Err(too_long(argument, local, self.max_message));
        }
        Ok(())
    }

    /// Gathers `list` for an operation that needs `usage`; gives the bytes in total.
    #[inline]
    pub(super) fn gather(
        &self,
        sges: &mut Sges,
        usage: Usage,
        argument: &'static str,
        list: &[LocalSlice<'_>],
    ) -> Result<u64> {
        sges.gather(
            self.tag,
            usage,
            argument,
            list,
            self.max_send_sge,
            self.max_message,
        )
    }
}

/// The number of the C interface for a kind of flush.
#[inline(always)]
pub(super) const fn flush_kinds(kind: FlushKind) -> u32 {
    match kind {
        FlushKind::Persistent => ffi::IBV_FLUSH_PERSISTENT,
        FlushKind::Visibility => ffi::IBV_FLUSH_GLOBAL,
    }
}

/// Is a transfer between the two right beyond doubt, for a queue pair with the key `key`?
#[inline(always)]
pub(super) fn quick_pair(
    key: u32,
    transfer: &Transfer,
    local: &LocalSlice<'_>,
    remote: &RemoteSlice,
) -> bool {
    quick::fit(key, local.quick, remote.quick, transfer.usages()) && local.len == remote.len
}

/// The slice must be of the protection domain of `tag`, and registered for `usage`. An empty slice passes.
#[inline]
pub(super) fn check_local(
    tag: u64,
    slice: &LocalSlice<'_>,
    usage: Usage,
    argument: &'static str,
) -> Result<()> {
    let usage_bits = u64::from(usage.bits());
    if slice.tag & (DOMAIN | usage_bits) == tag | usage_bits || slice.is_empty() {
        return Ok(());
    }
    Err(wrong_local(tag, slice, usage, argument))
}

/// The part of a tag that names the protection domain.
const DOMAIN: u64 = 0xffff_ffff_0000_0000;

#[inline]
fn check_remote(slice: &RemoteSlice, usage: Usage, argument: &'static str) -> Result<()> {
    if slice.usage().contains(usage) {
        Ok(())
    } else {
        Err(missing_usage(argument, slice.usage(), usage))
    }
}

/// Atomics work on 8 bytes at a multiple of 8.
#[inline]
pub(super) fn check_word(word: &RemoteSlice, argument: &'static str) -> Result<()> {
    if word.len() != 8 {
        return Err(length_mismatch(argument, 8, word.len()));
    }
    if word.address() % 8 != 0 {
        return Err(misaligned(argument, word.address()));
    }
    Ok(())
}

#[cold]
fn wrong_local(tag: u64, slice: &LocalSlice<'_>, usage: Usage, argument: &'static str) -> Error {
    if slice.tag & DOMAIN != tag {
        return Error::ForeignRegion { argument };
    }
    missing_usage(argument, slice.usage(), usage)
}

#[cold]
fn missing_usage(argument: &'static str, has: Usage, needs: Usage) -> Error {
    let missing = has.first_missing(needs).unwrap_or("the right usage");
    Error::MissingUsage { argument, missing }
}

#[cold]
fn length_mismatch(argument: &'static str, expected: u64, actual: u64) -> Error {
    Error::LengthMismatch {
        argument,
        expected,
        actual,
    }
}

#[cold]
fn misaligned(argument: &'static str, address: u64) -> Error {
    Error::Misaligned { argument, address }
}

#[cold]
pub(super) fn too_long(argument: &'static str, length: u64, limit: u64) -> Error {
    Error::TooLong {
        argument,
        length,
        limit,
        limited_by: "one message of the port",
    }
}

#[cold]
fn too_inline(argument: &'static str, length: usize, qp: &Qp) -> Error {
    Error::TooLong {
        argument,
        length: length as u64,
        limit: u64::from(qp.max_inline),
        limited_by: "the inline space of the queue pair (ConnCfg::max_inline)",
    }
}
