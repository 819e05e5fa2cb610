//! What each operation needs: one row each.

use crate::{Usage, verbs::Op};

/// What an operation asks of its two sides and of the queue pair.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// The local side of an operation that has one.
    pub(super) near: Side,
    /// The remote side of an operation that names one.
    pub(super) far: Side,
    pub(super) lengths: Lengths,
    pub(super) needs: Needs,
}

/// What a region must be registered for, and the name of the argument.
#[derive(Clone, Copy)]
pub(super) struct Side {
    pub(super) usage: Usage,
    pub(super) argument: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lengths {
    /// Both sides have as many bytes.
    Equal,
    /// Both sides have 8 bytes, at a multiple of 8 on the remote side.
    Word,
}

/// What the device or its transport may lack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    Immediate,
    Atomics,
    /// Keys of regions that the peer's device lets a message invalidate.
    Invalidation,
    /// What the flush plan or the way of an atomic write has found to be there.
    Extended,
}

const fn side(usage: Usage, argument: &'static str) -> Side {
    Side { usage, argument }
}

const NO_SIDE: Side = side(Usage::empty(), "");

impl Op {
    /// The operation's row.
    #[inline(always)]
    pub(super) const fn row(self) -> Row {
        const WRITE: Row = Row {
            near: side(Usage::WRITE_SRC, "src"),
            far: side(Usage::WRITE_DST, "dst"),
            lengths: Lengths::Equal,
            needs: Needs::Nothing,
        };
        const SEND: Row = Row {
            near: side(Usage::SEND, "src"),
            far: NO_SIDE,
            ..WRITE
        };
        const ATOMIC: Row = Row {
            near: side(Usage::READ_DST, "dst"),
            far: side(Usage::ATOMIC, "word"),
            lengths: Lengths::Word,
            needs: Needs::Atomics,
        };
        match self {
            Op::Write => WRITE,
            Op::WriteImm => Row {
                needs: Needs::Immediate,
                ..WRITE
            },
            Op::Read => Row {
                near: side(Usage::READ_DST, "dst"),
                far: side(Usage::READ_SRC, "src"),
                ..WRITE
            },
            Op::Send => SEND,
            Op::SendImm => Row {
                needs: Needs::Immediate,
                ..SEND
            },
            Op::SendInvalidate => Row {
                needs: Needs::Invalidation,
                ..SEND
            },
            Op::CompareSwap | Op::FetchAdd => ATOMIC,
            Op::Flush => Row {
                near: NO_SIDE,
                far: side(Usage::empty(), "range"),
                needs: Needs::Extended,
                ..WRITE
            },
            Op::AtomicWrite => Row {
                near: NO_SIDE,
                lengths: Lengths::Word,
                needs: Needs::Extended,
                ..WRITE
            },
        }
    }

    /// The usages of both sides.
    #[inline(always)]
    pub(super) const fn usages(self) -> Usage {
        let row = self.row();
        row.near.usage.union(row.far.usage)
    }
}
