//! The bytes of a completion entry and the phase logic of its ring: pure functions, nothing of a
//! device.

use std::{fmt, num::NonZeroU32};

/// One entry of an EFA completion queue, copied out of the ring and decoded.
///
/// What the device does not say for this kind of entry is `None`. No bytes, whatever they are, make
/// a method panic: unknown numbers come through as they are.
///
/// Fields other than [`status`](Self::status), [`queue`](Self::queue), [`qp_num`](Self::qp_num) and
/// the request id mean something only when the status is [`Status::OK`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    bytes: [u8; Entry::EXTENDED],
    len: u8,
}

impl Entry {
    /// The bytes of the shortest entry that is decoded.
    pub const BASIC: usize = 16;
    /// The bytes of an entry with the extended receive part. Longer entries are cut to this.
    pub const EXTENDED: usize = 32;

    /// Decodes an entry of the length that the ring's stride says. `None` for fewer than
    /// [`Entry::BASIC`] bytes.
    ///
    /// The extended part counts only where there are at least [`Entry::EXTENDED`] bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut entry = Entry {
            bytes: [0; Self::EXTENDED],
            len: Self::BASIC as u8,
        };
        if let Some(extended) = bytes.first_chunk::<{ Self::EXTENDED }>() {
            entry.bytes = *extended;
            entry.len = Self::EXTENDED as u8;
        } else {
            let basic = bytes.first_chunk::<{ Self::BASIC }>()?;
            entry.bytes[..Self::BASIC].copy_from_slice(basic);
        }
        Some(entry)
    }

    /// The bytes that were decoded: 16 or 32.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Was the extended part there?
    pub fn is_extended(&self) -> bool {
        usize::from(self.len) == Self::EXTENDED
    }

    /// The phase bit. Whether the entry is news, [`Cursor::is_ready`] says.
    pub fn phase(&self) -> Phase {
        Phase::of_flags(self.flags())
    }

    /// The kind of work queue that the completed request came from.
    pub fn queue(&self) -> Queue {
        Queue((self.flags() >> 1) & 0b11)
    }

    /// What was done.
    pub fn operation(&self) -> Operation {
        Operation((self.flags() >> 4) & 0b111)
    }

    /// How it ended.
    pub fn status(&self) -> Status {
        Status(self.bytes[2])
    }

    /// Did it end well?
    pub fn is_ok(&self) -> bool {
        self.status() == Status::OK
    }

    /// The request's number within its work queue, as the device was given it. It is not the
    /// `wr_id` of verbs: libibverbs keeps the translation to itself.
    pub fn request_id(&self) -> u16 {
        self.u16_at(0)
    }

    /// The 64-bit request id of a send entry, whose low 16 bits are
    /// [`request_id`](Self::request_id).
    ///
    /// Filled only where the work queue has
    /// [`WqCaps::WIDE_REQUEST_ID`](super::WqCaps::WIDE_REQUEST_ID). `None` for other queues.
    pub fn wide_request_id(&self) -> Option<u64> {
        (self.queue() == Queue::SEND).then(|| {
            u64::from(self.u16_at(0))
                | u64::from(self.u16_at(6)) << 16
                | u64::from(self.u16_at(8)) << 32
                | u64::from(self.u16_at(10)) << 48
        })
    }

    /// The local queue pair's number.
    pub fn qp_num(&self) -> u16 {
        self.u16_at(4)
    }

    /// The immediate data of a receive, in the host's byte order. `None` where there is none.
    pub fn immediate(&self) -> Option<u32> {
        const HAS_IMMEDIATE: u8 = 1 << 3;
        let [.., a, b, c, d] = *self.bytes.first_chunk::<16>()?;
        (self.is_receive() && self.flags() & HAS_IMMEDIATE != 0)
            .then_some(u32::from_le_bytes([a, b, c, d]))
    }

    /// The bytes received. `None` for a send entry: the device does not count these.
    ///
    /// The length of a received write has 32 bits, of which the upper 16 stand in the extended
    /// part.
    pub fn length(&self) -> Option<u32> {
        if !self.is_receive() {
            return None;
        }
        let high = match self.operation() {
            Operation::WRITE if self.is_extended() => self.u16_at(16),
            _ => 0,
        };
        Some(u32::from(high) << 16 | u32::from(self.u16_at(6)))
    }

    /// The number of the address handle that stands for the sender of a receive. `None` where none
    /// does ([`source_gid`](Self::source_gid) may know), and for a send entry.
    pub fn address_handle(&self) -> Option<u16> {
        const UNKNOWN: u16 = 0xffff;
        let ah = self.u16_at(8);
        (self.is_receive() && ah != UNKNOWN).then_some(ah)
    }

    /// The sender's queue pair. `None` for a send entry.
    pub fn source_qp(&self) -> Option<u16> {
        self.is_receive().then(|| self.u16_at(10))
    }

    /// The sender's GID, of a receive whose sender has no address handle here.
    ///
    /// The device writes it only to a queue that was created with source GIDs
    /// ([`CqOptions::source_gids`](super::CqOptions::source_gids)), and not for writes, whose
    /// length takes its place.
    pub fn source_gid(&self) -> Option<[u8; 16]> {
        let known = self.address_handle().is_some();
        if !self.is_receive()
            || known
            || !self.is_extended()
            || self.operation() == Operation::WRITE
        {
            return None;
        }
        self.bytes.last_chunk::<16>().copied()
    }

    /// A write with immediate data that used up no receive request: then the request id means
    /// nothing.
    pub fn is_unsolicited(&self) -> bool {
        const UNSOLICITED: u8 = 1 << 7;
        self.flags() & UNSOLICITED != 0
    }

    /// Is it of a receive queue?
    pub fn is_receive(&self) -> bool {
        self.queue() == Queue::RECEIVE
    }

    fn flags(&self) -> u8 {
        self.bytes[FLAGS_OFFSET]
    }

    /// For offsets below 31 only.
    fn u16_at(&self, offset: usize) -> u16 {
        u16::from_le_bytes([self.bytes[offset], self.bytes[offset + 1]])
    }
}

/// Where the flags stand in an entry.
const FLAGS_OFFSET: usize = 3;

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("phase", &self.phase())
            .field("queue", &self.queue())
            .field("operation", &self.operation())
            .field("status", &self.status())
            .field("request_id", &self.request_id())
            .field("qp_num", &self.qp_num())
            .field("length", &self.length())
            .field("immediate", &self.immediate())
            .field("address_handle", &self.address_handle())
            .field("source_qp", &self.source_qp())
            .field("source_gid", &self.source_gid())
            .field("unsolicited", &self.is_unsolicited())
            .finish()
    }
}

/// The bit by which new entries differ from those of the lap before: true at first, flipped at each
/// wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Phase(bool);

impl Phase {
    /// The phase of the first lap. The ring starts zeroed, so no entry of it looks new.
    pub const FIRST: Self = Phase(true);

    /// The phase bit of an entry's flags.
    pub(crate) fn of_flags(flags: u8) -> Self {
        Phase(flags & 1 != 0)
    }

    /// The phase bit of the first four bytes of an entry, read as one little-endian word.
    pub(crate) fn of_first_word(word: u32) -> Self {
        Self::of_flags(word.to_le_bytes()[FLAGS_OFFSET])
    }

    /// The phase of the next lap.
    pub const fn flipped(self) -> Self {
        Phase(!self.0)
    }

    /// The bit.
    pub const fn bit(self) -> bool {
        self.0
    }
}

/// A place in a ring that moves on entry by entry: which index comes next, and which phase marks it
/// as new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    entries: NonZeroU32,
    index: u32,
    phase: Phase,
    passed: u64,
}

impl Cursor {
    /// The start of a ring that the device has not written to: index 0, first lap.
    pub const fn start(entries: NonZeroU32) -> Self {
        Cursor {
            entries,
            index: 0,
            phase: Phase::FIRST,
            passed: 0,
        }
    }

    /// The cursor of a ring of which `passed` entries were passed since its creation.
    pub fn at(entries: NonZeroU32, passed: u64) -> Self {
        let laps = passed / u64::from(entries.get());
        // The remainder is below a u32.
        let index = (passed % u64::from(entries.get())) as u32;
        Cursor {
            entries,
            index,
            phase: Phase(laps % 2 == 0),
            passed,
        }
    }

    /// The index of the next entry.
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// The phase that marks the next entry as new.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// How many entries were passed since the ring's creation.
    pub const fn passed(&self) -> u64 {
        self.passed
    }

    /// How many entries the ring has.
    pub const fn entries(&self) -> NonZeroU32 {
        self.entries
    }

    /// Is this entry, read at [`index`](Self::index), new?
    pub fn is_ready(&self, entry: &Entry) -> bool {
        entry.phase() == self.phase
    }

    /// Moves on by one entry.
    pub fn advance(&mut self) {
        self.passed = self.passed.wrapping_add(1);
        self.index += 1;
        if self.index >= self.entries.get() {
            self.index = 0;
            self.phase = self.phase.flipped();
        }
    }
}

/// What is written to a completion queue's doorbell: how far its consumer is and, with `arm`, that
/// it wants an event.
///
/// `events` is the number of events taken so far; the device tells a new request from a repeated
/// one by it.
pub(crate) const fn doorbell_word(passed: u64, events: u32, arm: bool) -> u32 {
    let consumer = (passed & 0xffff) as u32;
    consumer | (events & 0b11) << 29 | (arm as u32) << 31
}

macro_rules! open {
    ($(#[$type_doc:meta])* $type:ident { $($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)* }) => {
        $(#[$type_doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $type(u8);

        impl $type {
            $($(#[$doc])* pub const $name: Self = $type($value);)*

            /// The device's number.
            pub const fn as_raw(self) -> u8 {
                self.0
            }

            /// A number of the device's; any is allowed.
            pub const fn from_raw(raw: u8) -> Self {
                $type(raw)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$name => f.write_str(stringify!($name)),)*
                    $type(raw) => write!(f, concat!(stringify!($type), "({})"), raw),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$name => f.write_str($text),)*
                    $type(raw) => write!(f, "unknown ({raw})"),
                }
            }
        }
    };
}

open! {
    /// The kind of work queue that an entry belongs to: a number of the device's, with names for
    /// those that are known.
    Queue {
        /// A send queue.
        SEND = 1, "send queue";
        /// A receive queue.
        RECEIVE = 2, "receive queue";
    }
}

open! {
    /// What an entry reports as done: a number of the device's, with names for those that are
    /// known.
    Operation {
        /// A send, or the receive of one.
        SEND = 0, "send";
        /// A read.
        READ = 1, "read";
        /// A write, or the receive of its immediate data.
        WRITE = 2, "write";
    }
}

open! {
    /// How a request ended: a number of the device's, with names for those that are known.
    Status {
        /// It succeeded.
        OK = 0, "success";
        /// The queue pair went down before the request was done.
        FLUSHED = 1, "flushed with its queue pair";
        /// An internal error of the local queue pair.
        LOCAL_QP_INTERNAL_ERROR = 2, "internal error of the local queue pair";
        /// The local queue pair does not do this operation.
        LOCAL_UNSUPPORTED_OP = 3, "operation not supported by the local queue pair";
        /// The address handle is none.
        LOCAL_INVALID_AH = 4, "invalid address handle";
        /// No local region goes by that key, or it does not allow this.
        LOCAL_INVALID_LKEY = 5, "invalid local key";
        /// The message is too long for the local queue pair, or its buffers are.
        LOCAL_BAD_LENGTH = 6, "bad length of the local buffers";
        /// The remote address, key or right is wrong.
        REMOTE_BAD_ADDRESS = 7, "bad remote address";
        /// The peer aborted the operation: it may have been reset.
        REMOTE_ABORT = 8, "aborted by the peer";
        /// The peer has no such queue pair, or it is down.
        REMOTE_BAD_DEST_QPN = 9, "bad destination queue pair";
        /// The peer had no receive posted.
        REMOTE_RNR = 10, "receiver not ready";
        /// The message does not fit the peer's receive.
        REMOTE_BAD_LENGTH = 11, "bad length at the peer";
        /// The peer answered with a status that the device does not know.
        REMOTE_BAD_STATUS = 12, "unexpected status from the peer";
        /// The peer did not answer.
        LOCAL_UNRESPONSIVE_REMOTE = 13, "the peer does not answer";
        /// The peer does not know this host's device (yet).
        REMOTE_UNKNOWN_PEER = 14, "unknown to the peer";
        /// There is no way to the peer.
        LOCAL_UNREACHABLE_REMOTE = 15, "peer unreachable";
        /// Both queue pairs must be set up alike, and are not.
        REMOTE_FEATURE_MISMATCH = 18, "features differ from the peer's";
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests;
