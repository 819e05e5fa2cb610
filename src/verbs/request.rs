//! One work request: its checks and the fields that a provider reads. Nothing is zeroed that is not read.

use std::ptr::addr_of_mut;

use rdma_sys as ffi;

use super::{
    qp::{Qp, SCRATCHES},
    sges::Sges,
};
use crate::{
    Error, FlushKind, Post, Result, Usage,
    mr::{FlushPlan, LocalSlice, RemoteSlice, quick},
};

/// A request that passed its checks.
#[derive(Clone, Copy)]
pub(super) struct Checked {
    pub(super) request: Request,
    /// How many of the operation's scatter/gather elements are passed on.
    pub(super) num_sge: usize,
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
        address: u64,
        rkey: u32,
    },
    RdmaImm {
        address: u64,
        rkey: u32,
        imm: u32,
    },
    Atomic {
        address: u64,
        rkey: u32,
        compare_add: u64,
        swap: u64,
    },
    Flush {
        address: u64,
        rkey: u32,
        len: u64,
        kinds: u8,
        level: u8,
    },
    AtomicWrite {
        address: u64,
        rkey: u32,
        value: [u8; 8],
    },
}

impl Request {
    /// A read or a write of one element.
    #[inline(always)]
    pub(super) fn transfer(opcode: u32, remote: &RemoteSlice, post: Post) -> Self {
        Request {
            wr_id: post.wr_id,
            flags: post.flags,
            opcode,
            body: Body::Rdma {
                address: remote.addr,
                rkey: remote.rkey,
            },
        }
    }

    /// Writes the fields that a provider reads for this request.
    ///
    /// # Safety
    /// `wr` must be valid for writes.
    #[inline(always)]
    pub(super) unsafe fn write_to(
        &self,
        wr: *mut ffi::ibv_send_wr,
        sg_list: *const ffi::ibv_sge,
        num_sge: usize,
    ) {
        // SAFETY: the caller's word; each place lies inside of `*wr`.
        unsafe {
            addr_of_mut!((*wr).next).write(std::ptr::null_mut());
            addr_of_mut!((*wr).sg_list).write(sg_list.cast_mut());
            self.write_body(wr, num_sge);
        }
    }

    /// Writes all but the list's links: `next` and `sg_list`.
    ///
    /// # Safety
    /// `wr` must be valid for writes.
    #[inline(always)]
    pub(super) unsafe fn write_body(&self, wr: *mut ffi::ibv_send_wr, num_sge: usize) {
        // SAFETY: the caller's word; each place lies inside of `*wr`.
        unsafe {
            addr_of_mut!((*wr).wr_id).write(self.wr_id);
            addr_of_mut!((*wr).num_sge).write(num_sge as i32);
            addr_of_mut!((*wr).opcode).write(self.opcode);
            addr_of_mut!((*wr).send_flags).write(self.flags);
            match self.body {
                Body::Send => {}
                Body::SendImm { imm } => {
                    addr_of_mut!((*wr).__bindgen_anon_1.imm_data).write(imm.to_be());
                }
                Body::Rdma { address, rkey } => {
                    addr_of_mut!((*wr).wr.rdma.remote_addr).write(address);
                    addr_of_mut!((*wr).wr.rdma.rkey).write(rkey);
                }
                Body::RdmaImm { address, rkey, imm } => {
                    addr_of_mut!((*wr).__bindgen_anon_1.imm_data).write(imm.to_be());
                    addr_of_mut!((*wr).wr.rdma.remote_addr).write(address);
                    addr_of_mut!((*wr).wr.rdma.rkey).write(rkey);
                }
                Body::Atomic {
                    address,
                    rkey,
                    compare_add,
                    swap,
                } => {
                    addr_of_mut!((*wr).wr.atomic.remote_addr).write(address);
                    addr_of_mut!((*wr).wr.atomic.compare_add).write(compare_add);
                    addr_of_mut!((*wr).wr.atomic.swap).write(swap);
                    addr_of_mut!((*wr).wr.atomic.rkey).write(rkey);
                }
                // These two never go to `ibv_post_send`; a batch keeps them so until it starts them (`read_extended`).
                Body::Flush {
                    address,
                    rkey,
                    len,
                    kinds,
                    level,
                } => {
                    let how = u32::from(kinds) | u32::from(level) << 8;
                    addr_of_mut!((*wr).__bindgen_anon_1.imm_data).write(how);
                    addr_of_mut!((*wr).wr.atomic.remote_addr).write(address);
                    addr_of_mut!((*wr).wr.atomic.compare_add).write(len);
                    addr_of_mut!((*wr).wr.atomic.rkey).write(rkey);
                }
                Body::AtomicWrite {
                    address,
                    rkey,
                    value,
                } => {
                    addr_of_mut!((*wr).wr.atomic.remote_addr).write(address);
                    addr_of_mut!((*wr).wr.atomic.compare_add).write(u64::from_ne_bytes(value));
                    addr_of_mut!((*wr).wr.atomic.rkey).write(rkey);
                }
            }
        }
    }
}

impl Qp {
    /// Is a transfer between the two right beyond doubt? `usages` are those of both sides together.
    #[inline(always)]
    pub(super) fn quick(
        &self,
        local: &LocalSlice<'_>,
        remote: &RemoteSlice,
        usages: Usage,
    ) -> bool {
        quick::fit(self.quick, local.quick, remote.quick, usages) && local.len == remote.len
    }

    /// What [`quick`](Self::quick) could not decide.
    #[cold]
    #[inline(never)]
    pub(super) fn check_write(
        &self,
        src: &LocalSlice<'_>,
        dst: &RemoteSlice,
        post: Post,
    ) -> Result<Checked> {
        check_local(self.tag, src, Usage::WRITE_SRC, "src")?;
        check_remote(dst, Usage::WRITE_DST, "dst")?;
        self.check_length("src", src.len(), dst.len())?;
        Ok(Checked {
            request: Request {
                wr_id: post.wr_id,
                flags: post.flags,
                opcode: ffi::IBV_WR_RDMA_WRITE,
                body: Body::Rdma {
                    address: dst.address(),
                    rkey: dst.rkey,
                },
            },
            num_sge: usize::from(!src.is_empty()),
        })
    }

    /// What [`quick`](Self::quick) could not decide.
    #[cold]
    #[inline(never)]
    pub(super) fn check_read(
        &self,
        dst: &LocalSlice<'_>,
        src: &RemoteSlice,
        post: Post,
    ) -> Result<Checked> {
        check_local(self.tag, dst, Usage::READ_DST, "dst")?;
        check_remote(src, Usage::READ_SRC, "src")?;
        self.check_length("dst", dst.len(), src.len())?;
        Ok(Checked {
            request: Request {
                wr_id: post.wr_id,
                flags: post.flags,
                opcode: ffi::IBV_WR_RDMA_READ,
                body: Body::Rdma {
                    address: src.address(),
                    rkey: src.rkey,
                },
            },
            num_sge: usize::from(!dst.is_empty()),
        })
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
        check_remote(dst, Usage::WRITE_DST, "dst")?;
        self.check_length("src", len, dst.len())?;
        let (address, rkey) = (dst.address(), dst.rkey);
        let (opcode, body) = match imm {
            None => (ffi::IBV_WR_RDMA_WRITE, Body::Rdma { address, rkey }),
            Some(imm) => {
                self.check_immediate()?;
                (
                    ffi::IBV_WR_RDMA_WRITE_WITH_IMM,
                    Body::RdmaImm { address, rkey, imm },
                )
            }
        };
        Ok(Request {
            wr_id: post.wr_id,
            flags: post.flags,
            opcode,
            body,
        })
    }

    /// A read into gathered slices, `len` bytes in all.
    #[inline]
    pub(super) fn check_read_into(
        &self,
        len: u64,
        src: &RemoteSlice,
        post: Post,
    ) -> Result<Request> {
        check_remote(src, Usage::READ_SRC, "src")?;
        self.check_length("dst", len, src.len())?;
        Ok(Request {
            wr_id: post.wr_id,
            flags: post.flags,
            opcode: ffi::IBV_WR_RDMA_READ,
            body: Body::Rdma {
                address: src.address(),
                rkey: src.rkey,
            },
        })
    }

    #[inline]
    pub(super) fn check_send(&self, imm: Option<u32>, post: Post) -> Result<Request> {
        let (opcode, body) = match imm {
            None => (ffi::IBV_WR_SEND, Body::Send),
            Some(imm) => {
                self.check_immediate()?;
                (ffi::IBV_WR_SEND_WITH_IMM, Body::SendImm { imm })
            }
        };
        Ok(Request {
            wr_id: post.wr_id,
            flags: post.flags,
            opcode,
            body,
        })
    }

    /// Makes the request of a flush, and gives it to `native`, or to `read` with the element to read the first bytes of the range into.
    #[inline(always)]
    pub(super) fn flush_by<R>(
        &self,
        range: &RemoteSlice,
        kind: FlushKind,
        post: Post,
        native: impl FnOnce(Request) -> Result<R>,
        read: impl FnOnce(Request, &ffi::ibv_sge) -> Result<R>,
    ) -> Result<R> {
        let possible = self.flush_plan() & range.flushes & FlushPlan::of_kind(kind);
        if possible.intersects(FlushPlan::NATIVE) {
            let kinds = match kind {
                FlushKind::Persistent => ffi::IBV_FLUSH_PERSISTENT,
                FlushKind::Visibility => ffi::IBV_FLUSH_GLOBAL,
            };
            return native(Request {
                wr_id: post.wr_id,
                flags: post.flags,
                opcode: ffi::IBV_WR_FLUSH,
                body: Body::Flush {
                    address: range.addr,
                    rkey: range.rkey,
                    len: range.len,
                    kinds: kinds as u8,
                    level: u8::from(range.whole),
                },
            });
        }
        if possible.is_empty() {
            return Err(self.flush_refused(range, kind));
        }
        read(
            Request::transfer(ffi::IBV_WR_RDMA_READ, range, post),
            &self.scratch[usize::from(range.head) % SCRATCHES],
        )
    }

    #[cold]
    #[inline(never)]
    fn flush_refused(&self, range: &RemoteSlice, kind: FlushKind) -> Error {
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

    /// An atomic write of 8 bytes: native, or as an inline write behind a fence.
    #[inline]
    pub(super) fn check_atomic_write(
        &self,
        dst: &RemoteSlice,
        value: [u8; 8],
        post: Post,
    ) -> Result<Request> {
        check_remote(dst, Usage::WRITE_DST, "dst")?;
        check_word(dst, "dst")?;
        let (address, rkey) = (dst.address(), dst.rkey);
        if self.features.atomic_write {
            // Behind a native flush the order is the device's own; behind a read it takes a fence.
            let fence = match (self.flush_plan() & dst.flushes).reads() {
                true => ffi::IBV_SEND_FENCE,
                false => 0,
            };
            return Ok(Request {
                wr_id: post.wr_id,
                flags: post.flags | fence,
                opcode: ffi::IBV_WR_ATOMIC_WRITE,
                body: Body::AtomicWrite {
                    address,
                    rkey,
                    value,
                },
            });
        }
        if self.max_inline < 8 {
            return Err(Error::not_supported(
                "atomic write: the queue pair has neither a native one nor 8 bytes of inline data",
            ));
        }
        Ok(Request {
            wr_id: post.wr_id,
            flags: post.flags | ffi::IBV_SEND_INLINE | ffi::IBV_SEND_FENCE,
            opcode: ffi::IBV_WR_RDMA_WRITE,
            body: Body::Rdma { address, rkey },
        })
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
        let (address, rkey) = (word.address(), word.rkey);
        let opcode = match swap {
            Some(_) => ffi::IBV_WR_ATOMIC_CMP_AND_SWP,
            None => ffi::IBV_WR_ATOMIC_FETCH_AND_ADD,
        };
        Ok(Request {
            wr_id: post.wr_id,
            flags: post.flags,
            opcode,
            body: Body::Atomic {
                address,
                rkey,
                compare_add,
                swap: swap.unwrap_or(0),
            },
        })
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

const _: () = assert!(ffi::IBV_FLUSH_RANGE == 0 && ffi::IBV_FLUSH_MR == 1);

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
