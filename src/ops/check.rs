//! The full check of an operation: what the quick one could not decide, and all that is no plain
//! transfer.

use std::sync::atomic::Ordering;

use rdma_sys as ffi;

use super::{
    Qp,
    sges::Sges,
    table::{Lengths, Needs, Row},
};
use crate::{
    Error, FlushKind, Post, Result, Usage,
    mr::{FlushPlan, LocalSlice, RemoteSlice},
    verbs::{Op, Request, Target, flush_arg},
};

/// The local side of an operation.
#[derive(Clone, Copy)]
pub(crate) enum Near<'a> {
    /// Slices, one after the other.
    Slices(&'a [LocalSlice<'a>]),
    /// Plain bytes, which are copied.
    Bytes(&'a [u8]),
    Nothing,
}

/// The arguments of an operation that are no memory, as a [`Request`] has them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Args {
    pub(crate) imm: u32,
    pub(crate) words: [u64; 2],
}

impl Args {
    pub(crate) fn imm(imm: u32) -> Self {
        Args {
            imm: imm.to_be(),
            ..Args::default()
        }
    }

    /// A key to invalidate.
    pub(crate) fn key(key: u32) -> Self {
        Args {
            imm: key,
            ..Args::default()
        }
    }

    pub(crate) fn words(words: [u64; 2]) -> Self {
        Args { imm: 0, words }
    }
}

impl Request {
    /// A checked operation without arguments.
    #[inline(always)]
    pub(super) fn plain(op: Op, target: Target, post: Post) -> Self {
        Request {
            op,
            wr_id: post.wr_id,
            flags: post.flags,
            imm: 0,
            target,
            args: [0; 2],
        }
    }

    /// How it is posted.
    pub(super) fn post(&self) -> Post {
        Post {
            wr_id: self.wr_id,
            flags: self.flags,
        }
    }

    /// A native flush.
    #[inline(always)]
    pub(super) fn flush(range: &RemoteSlice, kind: FlushKind, post: Post) -> Self {
        let kinds = match kind {
            FlushKind::Persistent => ffi::IBV_FLUSH_PERSISTENT,
            FlushKind::Visibility => ffi::IBV_FLUSH_GLOBAL,
        };
        Request {
            args: [range.len, flush_arg(kinds, range.level())],
            ..Request::plain(Op::Flush, range.target, post)
        }
    }

    /// A native atomic write.
    #[inline(always)]
    pub(super) fn atomic_write(target: Target, value: [u8; 8], post: Post) -> Self {
        Request {
            args: [u64::from_ne_bytes(value), 0],
            ..Request::plain(Op::AtomicWrite, target, post)
        }
    }
}

impl Qp {
    /// Checks an operation, and gathers its slices to `sges`.
    pub(super) fn check(
        &self,
        op: Op,
        near: Near<'_>,
        far: Option<&RemoteSlice>,
        args: Args,
        post: Post,
        sges: &mut Sges,
    ) -> Result<Request> {
        let row = op.row();
        self.check_needs(row.needs)?;
        self.check_answered(op)?;
        let len = match near {
            Near::Slices(list) => {
                let (usage, argument) = (row.near.usage, row.near.argument);
                let reads = op == Op::Read && self.iwarp;
                let most = if reads { 1 } else { self.max_send_sge };
                let len = sges.gather(self.tag, usage, argument, list, most)?;
                if reads {
                    // Without an element siw reads into that of an earlier operation.
                    sges.fill_empty();
                }
                len
            }
            Near::Bytes(data) => self.check_inline(row.near.argument, data.len())?,
            Near::Nothing => 8,
        };
        if let Some(far) = far {
            check_far(&row, len, far)?;
        }
        if len > self.max_message {
            return Err(too_long(row.near.argument, len, self.max_message));
        }
        let target = far.map_or(Target::NOWHERE, |far| far.target);
        Ok(Request {
            imm: args.imm,
            args: args.words,
            flags: post.flags & !self.needless_flags(op),
            ..Request::plain(op, target, post)
        })
    }

    /// The flags that `op` is posted without. Reads of iWARP are answered in order (RFC 5040), so
    /// they need no fence; siw's queue never gets past one that has it.
    pub(super) fn needless_flags(&self, op: Op) -> u64 {
        match op == Op::Read && self.iwarp {
            true => ffi::IBV_SEND_FENCE.into(),
            false => 0,
        }
    }

    fn check_needs(&self, needs: Needs) -> Result<()> {
        match needs {
            Needs::Immediate if !self.features.immediate => {
                Err(Error::not_supported("immediate data: iWARP has none"))
            }
            Needs::Atomics if !self.features.atomics => Err(Error::not_supported(
                "remote atomics: the device or its transport has none",
            )),
            Needs::Invalidation if !self.features.invalidation => Err(Error::not_supported(
                "invalidation of a region's key: InfiniBand and RoCE have it for memory windows only",
            )),
            Needs::Nothing
            | Needs::Immediate
            | Needs::Atomics
            | Needs::Invalidation
            | Needs::Extended => Ok(()),
        }
    }

    /// Refuses what takes an answer of the peer's where none is to be had.
    pub(super) fn check_answered(&self, op: Op) -> Result<()> {
        let asks = matches!(
            op,
            Op::Read | Op::CompareSwap | Op::FetchAdd | Op::Flush | Op::AtomicWrite
        );
        match asks && self.unanswered.load(Ordering::Relaxed) {
            true => Err(Error::not_supported(
                "reads, atomics and flushes: the peer answers none (its responder_resources is 0, or initiator_depth here)",
            )),
            false => Ok(()),
        }
    }

    /// Inline bytes must fit the queue pair's inline space; gives their number.
    fn check_inline(&self, argument: &'static str, len: usize) -> Result<u64> {
        let (length, limit) = (len as u64, u64::from(self.max_inline));
        if length <= limit {
            return Ok(length);
        }
        Err(Error::TooLong {
            argument,
            length,
            limit,
            limited_by: "the inline space of the queue pair (ConnCfg::max_inline)",
        })
    }

    /// Why `range` cannot be flushed so.
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
}

/// The remote side of an operation whose local side has `len` bytes.
fn check_far(row: &Row, len: u64, far: &RemoteSlice) -> Result<()> {
    let (usage, argument) = (row.far.usage, row.far.argument);
    if !far.usage().contains(usage) {
        return Err(missing_usage(argument, far.usage(), usage));
    }
    let expected = match row.lengths {
        Lengths::Equal => far.len(),
        Lengths::Word => {
            check_word(far, argument)?;
            8
        }
    };
    match len == expected {
        true => Ok(()),
        false => Err(length_mismatch(row.near.argument, expected, len)),
    }
}

/// The slice must be of the protection domain of `tag`, and registered for `usage`. An empty slice
/// passes.
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
    Err(match slice.tag & DOMAIN == tag {
        true => missing_usage(argument, slice.usage(), usage),
        false => Error::ForeignRegion { argument },
    })
}

/// The part of a tag that names the protection domain.
const DOMAIN: u64 = 0xffff_ffff_0000_0000;

/// Atomics work on 8 bytes at a multiple of 8.
pub(super) fn check_word(word: &RemoteSlice, argument: &'static str) -> Result<()> {
    if word.len() != 8 {
        return Err(length_mismatch(argument, 8, word.len()));
    }
    match word.address() % 8 {
        0 => Ok(()),
        _ => Err(Error::Misaligned {
            argument,
            address: word.address(),
        }),
    }
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
pub(super) fn too_long(argument: &'static str, length: u64, limit: u64) -> Error {
    Error::TooLong {
        argument,
        length,
        limit,
        limited_by: "one message of the port",
    }
}
