//! One work request: its checks and the fields that a provider reads. Nothing is zeroed that is not read.

use std::ptr::addr_of_mut;

use rdma_sys as ffi;

use super::{qp::Qp, sges::Sges};
use crate::{
    Error, FlushKind, FlushMethod, Post, Result, Usage,
    mr::{LocalSlice, RemoteSlice},
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
    /// Writes the fields that a provider reads for this request.
    ///
    /// # Safety
    /// `wr` must be valid for writes.
    #[inline]
    pub(super) unsafe fn write_to(
        &self,
        wr: *mut ffi::ibv_send_wr,
        sg_list: *const ffi::ibv_sge,
        num_sge: usize,
    ) {
        // SAFETY: the caller's word; each place lies inside of `*wr`.
        unsafe {
            addr_of_mut!((*wr).wr_id).write(self.wr_id);
            addr_of_mut!((*wr).next).write(std::ptr::null_mut());
            addr_of_mut!((*wr).sg_list).write(sg_list.cast_mut());
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
                // These two never go through a list of C requests.
                Body::Flush { .. } | Body::AtomicWrite { .. } => {}
            }
        }
    }

    /// Starts a native flush or atomic write on an extended queue pair.
    ///
    /// # Safety
    /// Between `ibv_wr_start` and `ibv_wr_complete`, on a live queue pair that was created with the operation.
    #[inline]
    pub(super) unsafe fn start_extended(&self, qp: *mut ffi::ibv_qp_ex) {
        // SAFETY: the caller's word.
        unsafe {
            (*qp).wr_id = self.wr_id;
            (*qp).wr_flags = self.flags;
            match self.body {
                Body::Flush {
                    address,
                    rkey,
                    len,
                    kinds,
                    level,
                } => {
                    ffi::ibv_wr_flush(qp, rkey, address, len as usize, kinds, level);
                }
                Body::AtomicWrite {
                    address,
                    rkey,
                    value,
                } => {
                    ffi::ibv_wr_atomic_write(qp, rkey, address, value.as_ptr().cast());
                }
                _ => {}
            }
        }
    }
}

impl Qp {
    #[inline]
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

    #[inline]
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

    /// A flush: a native one, or a read of the first bytes of the range into the scratch buffer.
    #[inline]
    pub(super) fn check_flush(
        &self,
        range: &RemoteSlice,
        kind: FlushKind,
        post: Post,
    ) -> Result<(Request, Option<ffi::ibv_sge>)> {
        let (usage, native_here) = match kind {
            FlushKind::Persistent => (Usage::FLUSH_PERSISTENT, self.features.flush_persistent),
            FlushKind::Visibility => (Usage::FLUSH_VISIBILITY, self.features.flush_visibility),
        };
        if !range.usage().contains(usage) {
            return Err(Error::not_supported(match kind {
                FlushKind::Persistent => {
                    "persistent flush: the remote region was registered without FLUSH_PERSISTENT"
                }
                FlushKind::Visibility => {
                    "flush to visibility: the remote region was registered without FLUSH_VISIBILITY"
                }
            }));
        }
        if kind == FlushKind::Persistent && !self.peer_writes_to_pmem() {
            return Err(Error::not_supported(
                "persistent flush: the peer did not declare direct write to persistent memory (PeerCfg)",
            ));
        }
        if range.is_empty() {
            return Err(Error::invalid("range", "a flush of no bytes"));
        }
        let native = match self.flush_method {
            FlushMethod::ReadAfterWrite => false,
            FlushMethod::Auto => native_here && range.accepts_native(kind),
            FlushMethod::Native => {
                if !(native_here && range.accepts_native(kind)) {
                    return Err(Error::not_supported(
                        "native flush: the device, the queue pair or the remote region does not have it",
                    ));
                }
                true
            }
        };
        let (address, rkey) = (range.address(), range.rkey);
        if !native {
            let mut sge = self.scratch;
            sge.length = range.len().min(u64::from(sge.length)) as u32;
            let request = Request {
                wr_id: post.wr_id,
                flags: post.flags,
                opcode: ffi::IBV_WR_RDMA_READ,
                body: Body::Rdma { address, rkey },
            };
            return Ok((request, Some(sge)));
        }
        let level = if range.whole {
            ffi::IBV_FLUSH_MR
        } else {
            ffi::IBV_FLUSH_RANGE
        };
        if level == ffi::IBV_FLUSH_RANGE && range.len() > u64::from(u32::MAX) {
            return Err(too_long("range", range.len(), u64::from(u32::MAX)));
        }
        let kinds = match kind {
            FlushKind::Persistent => ffi::IBV_FLUSH_PERSISTENT,
            FlushKind::Visibility => ffi::IBV_FLUSH_GLOBAL,
        };
        let request = Request {
            wr_id: post.wr_id,
            flags: post.flags,
            opcode: ffi::IBV_WR_FLUSH,
            body: Body::Flush {
                address,
                rkey,
                len: range.len(),
                kinds: kinds as u8,
                level: level as u8,
            },
        };
        Ok((request, None))
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
            return Ok(Request {
                wr_id: post.wr_id,
                flags: post.flags,
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

    #[inline]
    fn peer_writes_to_pmem(&self) -> bool {
        self.direct_write_to_pmem
            .load(std::sync::atomic::Ordering::Relaxed)
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
