//! What can go wrong, and what to do about it.
//!
//! Every error of this crate is an [`Error`]: one variant per kind, naming the [`Call`] or the
//! argument that failed. What the operating system said is kept as the
//! [source](std::error::Error::source), and where people are known to get stuck the message says
//! what helps. [`Error::code`] gives librpma's number for those who speak C.
//!
//! "Nothing there yet" is no error in this crate: it is `Ok(None)`, `Ok(false)` or an empty slice.

mod call;
pub mod code;
#[cfg(test)]
mod tests;

use std::{fmt, io, time::Duration};

pub use call::Call;

use crate::numbers::{CmEventKind, WcStatus};

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this crate.
///
/// The kinds are the variants. [`Error::is_timeout`] and [`Error::is_fatal`] say what to do next,
/// [`Error::code`] maps them to librpma's error numbers, and [`Error::raw_os_error`] gives the
/// errno of the failed system or provider call where there was one. [`io::Error`] is made of one by
/// `From`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[doc(alias = "rpma_err_2str")]
pub enum Error {
    /// A call of libibverbs, librdmacm or the system failed; the source has its errno.
    #[error("{call} failed: {source}{}", call.hint(source.raw_os_error()))]
    #[doc(alias = "RPMA_E_PROVIDER")]
    Provider {
        /// The function that failed.
        call: Call,
        /// What it said. Its [`raw_os_error`](io::Error::raw_os_error) is the errno, always
        /// positive.
        source: io::Error,
    },

    /// An argument cannot be right, whatever the device is. Nothing was done.
    #[error("{argument}: {problem}")]
    #[doc(alias = "RPMA_E_INVAL")]
    InvalidArgument {
        /// The name of the argument.
        argument: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },

    /// A range does not lie inside the region or the buffer that it refers to. Nothing was done.
    #[error("{argument}: bytes {start}..{end} are outside of 0..{size}")]
    #[doc(alias = "RPMA_E_INVAL")]
    OutOfRange {
        /// The name of the argument.
        argument: &'static str,
        /// Where the range starts, in bytes.
        start: u64,
        /// Where the range ends (exclusive), in bytes.
        end: u64,
        /// How many bytes there are.
        size: u64,
    },

    /// Two sides of one transfer differ in length. Nothing was posted.
    #[error("{argument}: {actual} bytes where the other side of the transfer has {expected}")]
    #[doc(alias = "RPMA_E_INVAL")]
    LengthMismatch {
        /// The argument whose length is off.
        argument: &'static str,
        /// The length of the other side, in bytes.
        expected: u64,
        /// The length that was given, in bytes.
        actual: u64,
    },

    /// A message is longer than the port, the queue pair or the inline space allows. Nothing was
    /// posted.
    #[error("{argument}: {length} bytes are more than the {limit} that {limited_by} allows")]
    #[doc(alias = "RPMA_E_INVAL")]
    TooLong {
        /// The argument that is too long.
        argument: &'static str,
        /// Its length, in bytes (or elements, when a list is too long).
        length: u64,
        /// The most that is allowed.
        limit: u64,
        /// Who sets the limit.
        limited_by: &'static str,
    },

    /// An argument is above what the device has. Nothing was done.
    #[error("{argument}: {value} is above {limit}, the most that {limited_by} allows")]
    #[doc(alias = "RPMA_E_PROVIDER")]
    AboveLimit {
        /// The name of the argument.
        argument: &'static str,
        /// What it was.
        value: u64,
        /// The most that is allowed.
        limit: u64,
        /// Who sets the limit.
        limited_by: &'static str,
    },

    /// The address of an atomic operation, local or remote, is no multiple of 8. Nothing was done.
    #[error(
        "{argument}: address {address:#x} is not a multiple of 8, as an atomic operation needs"
    )]
    #[doc(alias = "RPMA_E_INVAL")]
    Misaligned {
        /// The argument that is misaligned.
        argument: &'static str,
        /// The whole address, not the offset.
        address: u64,
    },

    /// A region was not registered for this use. Nothing was posted.
    #[error("{argument}: its region was registered without {missing}")]
    #[doc(alias = "RPMA_E_INVAL")]
    MissingUsage {
        /// The argument whose region lacks the right.
        argument: &'static str,
        /// The usage that is missing, by its name in [`Usage`](crate::Usage).
        missing: &'static str,
    },

    /// A local region belongs to another [`Peer`](crate::Peer) than the connection does. Nothing
    /// was posted.
    #[error("{argument}: registered with another Peer than the one this connection belongs to")]
    #[doc(alias = "RPMA_E_INVAL")]
    ForeignRegion {
        /// The argument in question.
        argument: &'static str,
    },

    /// Bytes that should be a descriptor are none.
    #[error("{what} descriptor: {problem}")]
    #[doc(alias = "RPMA_E_INVAL")]
    BadDescriptor {
        /// Which descriptor: "memory region" or "peer configuration".
        what: &'static str,
        /// What is wrong with the bytes.
        problem: &'static str,
    },

    /// What should end has other handles, which still use it. Nothing was done.
    #[error("{what} is in use: {handles} more of its clones or owned slices are alive")]
    #[doc(alias = "RPMA_E_INVAL")]
    InUse {
        /// What should end.
        what: &'static str,
        /// How many other handles there were.
        handles: usize,
    },

    /// The device, the transport, the region or the peer cannot do this. Nothing was done.
    #[error("not supported: {capability}")]
    #[doc(alias = "RPMA_E_NOSUPP")]
    NotSupported {
        /// What is missing, and where.
        capability: &'static str,
    },

    /// No memory, or no memory that may be pinned.
    #[error("{call}: out of memory{}", call.memory_hint())]
    #[doc(alias = "RPMA_E_NOMEM")]
    OutOfMemory {
        /// The call that ran out.
        call: Call,
        /// What it said.
        source: io::Error,
    },

    /// The send, receive or shared receive queue has no room. Take completions, then post again.
    ///
    /// An unsignalled operation holds its place until a later signalled one of the same queue
    /// completes.
    #[error(
        "{call}: the queue is full: take completions, then post again ({accepted} of this post were accepted)"
    )]
    #[doc(alias = "RPMA_E_PROVIDER")]
    QueueFull {
        /// The call that found the queue full.
        call: Call,
        /// How many work requests of this post the device had accepted before: these will complete.
        accepted: usize,
        /// What the provider said.
        source: io::Error,
    },

    /// A post of several operations failed in its midst.
    #[error("{call} failed after {accepted} of its operations were accepted: {source}")]
    #[doc(alias = "RPMA_E_PROVIDER")]
    PartlyPosted {
        /// The call that failed.
        call: Call,
        /// How many were accepted: these were posted and will complete.
        accepted: usize,
        /// What the provider said.
        source: io::Error,
    },

    /// The name of a host or service could not be resolved.
    #[error("cannot resolve {node:?}, service {service:?}: {reason}")]
    #[doc(alias = "RPMA_E_PROVIDER")]
    Resolve {
        /// The node asked for.
        node: String,
        /// The service asked for.
        service: String,
        /// What the resolver said.
        reason: String,
    },

    /// No RDMA device goes by this name or owns this address.
    #[error(
        "no RDMA device for {address:?}: {source} (`rdma link` lists the devices; `rdma link add rxe0 type rxe netdev NAME` makes a software one; the address must be one of a network interface that has a device, in this network namespace, never 127.0.0.1)"
    )]
    #[doc(alias = "RPMA_E_PROVIDER")]
    NoDevice {
        /// What was asked for.
        address: String,
        /// What the last call said.
        source: io::Error,
    },

    /// The machine has a device that this process cannot use: its node is missing or may not be
    /// opened, its driver is not installed, or a cgroup forbids it.
    #[error("no RDMA device can be used{}: {reason}", for_address(address))]
    #[doc(alias = "RPMA_E_PROVIDER")]
    Unusable {
        /// What was asked for; empty where it was no certain device.
        address: String,
        /// What keeps this process from the device, and what helps.
        reason: String,
        /// What the last look at it said.
        source: io::Error,
    },

    /// The connection request goes over another device than its [`Peer`](crate::Peer) was made for.
    #[error("the route goes over device {actual:?}, but the Peer was made for {expected:?}")]
    #[doc(alias = "RPMA_E_INVAL")]
    WrongDevice {
        /// The peer's device.
        expected: String,
        /// The device that the address leads to.
        actual: String,
    },

    /// The connection was not established, or is established no longer.
    #[error("connection {event}{}", status_hint(*status))]
    #[doc(alias = "RPMA_E_PROVIDER")]
    Connection {
        /// The event that said so.
        event: CmEventKind,
        /// The event's status: 0, a positive errno, or the transport's reject reason for
        /// [`CmEventKind::REJECTED`](crate::CmEventKind::REJECTED).
        status: i32,
        /// The private data that came with it (a reject may carry some).
        private_data: Box<[u8]>,
    },

    /// An operation failed: its completion says so. [`Completion::ok`](crate::Completion::ok) gives
    /// this.
    #[error("operation {wr_id} failed: {status} ({status:?}, vendor error {vendor_error:#x})")]
    #[doc(alias = "RPMA_E_PROVIDER")]
    Completion {
        /// The number that was given to the operation.
        wr_id: u64,
        /// How it ended.
        status: WcStatus,
        /// The provider's own error number, for its support.
        vendor_error: u32,
    },

    /// The time given was over first.
    #[error("{call}: nothing after {after:?}")]
    #[doc(alias = "RPMA_E_PROVIDER")]
    TimedOut {
        /// What was waited for.
        call: Call,
        /// How long.
        after: Duration,
    },

    /// The wait was ended by a [`Waker`](crate::Waker). Nothing was taken.
    #[error("the wait was ended by its waker")]
    #[doc(alias = "RPMA_E_AGAIN")]
    Woken,

    /// A wait on a single CQ whose completion channel is shared. Wait on the connection instead.
    #[error("the completion channel is shared: wait on the connection, not on one of its CQs")]
    #[doc(alias = "RPMA_E_SHARED_CHANNEL")]
    SharedChannel,

    /// A wait on a connection whose CQs have a channel each. Wait on one of the CQs instead.
    #[error("the completion channel is not shared: wait on one of the CQs, not on the connection")]
    #[doc(alias = "RPMA_E_NOT_SHARED_CHNL")]
    NotSharedChannel,

    /// A transient failure: the same call may succeed later.
    #[error("{call}: try again")]
    #[doc(alias = "RPMA_E_AGAIN")]
    Again {
        /// The call that asks for it.
        call: Call,
    },
}

impl Error {
    /// librpma's number for this error: one of [`code`].
    pub fn code(&self) -> i32 {
        match self {
            Error::Provider { .. }
            | Error::QueueFull { .. }
            | Error::PartlyPosted { .. }
            | Error::AboveLimit { .. }
            | Error::Resolve { .. }
            | Error::NoDevice { .. }
            | Error::Unusable { .. }
            | Error::Connection { .. }
            | Error::Completion { .. }
            | Error::TimedOut { .. } => code::PROVIDER,
            Error::InvalidArgument { .. }
            | Error::OutOfRange { .. }
            | Error::LengthMismatch { .. }
            | Error::TooLong { .. }
            | Error::Misaligned { .. }
            | Error::MissingUsage { .. }
            | Error::ForeignRegion { .. }
            | Error::BadDescriptor { .. }
            | Error::InUse { .. }
            | Error::WrongDevice { .. } => code::INVAL,
            Error::NotSupported { .. } => code::NOSUPP,
            Error::OutOfMemory { .. } => code::NOMEM,
            Error::SharedChannel => code::SHARED_CHANNEL,
            Error::NotSharedChannel => code::NOT_SHARED_CHNL,
            Error::Again { .. } | Error::Woken => code::AGAIN,
        }
    }

    /// The errno of the failed call, always positive, where a call had failed.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Error::Provider { source, .. }
            | Error::OutOfMemory { source, .. }
            | Error::QueueFull { source, .. }
            | Error::PartlyPosted { source, .. }
            | Error::NoDevice { source, .. }
            | Error::Unusable { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// Was the caller's time over? The same call may be made again.
    ///
    /// True for [`Error::TimedOut`] alone. A peer that does not answer is reported by the device,
    /// after retries of its own, as [`Error::Connection`] or [`Error::Completion`], and is fatal.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Error::TimedOut { .. })
    }

    /// Is the connection or the endpoint finished that the call was made on, or that it should have
    /// made? Then only a new one helps.
    ///
    /// - [`Error::Connection`]: yes, except for events after which a connection may still live or
    ///   come to live (such as [`CmEventKind::ADDR_CHANGE`], or one that this crate does not know).
    /// - [`Error::Completion`]: yes. A failed operation leaves a reliable connection in its error
    ///   state.
    /// - [`Error::Provider`] and [`Error::PartlyPosted`]: where a call on a device said `ENODEV`,
    ///   or `EIO` as the kernel says once a device was removed.
    /// - All others: no. Nothing was done, or the same can be tried again on what there is.
    pub fn is_fatal(&self) -> bool {
        match self {
            Error::Connection { event, .. } => matches!(
                *event,
                CmEventKind::ADDR_ERROR
                    | CmEventKind::ROUTE_ERROR
                    | CmEventKind::CONNECT_ERROR
                    | CmEventKind::UNREACHABLE
                    | CmEventKind::REJECTED
                    | CmEventKind::DISCONNECTED
                    | CmEventKind::DEVICE_REMOVAL
                    | CmEventKind::TIMEWAIT_EXIT
            ),
            Error::Completion { status, .. } => *status != WcStatus::SUCCESS,
            Error::Provider { call, source } | Error::PartlyPosted { call, source, .. } => {
                call.is_of_a_device()
                    && matches!(source.raw_os_error(), Some(libc::ENODEV | libc::EIO))
            }
            _ => false,
        }
    }

    fn io_kind(&self) -> io::ErrorKind {
        use io::ErrorKind;
        match self {
            Error::Provider { source, .. } | Error::PartlyPosted { source, .. } => source.kind(),
            Error::InvalidArgument { .. }
            | Error::OutOfRange { .. }
            | Error::LengthMismatch { .. }
            | Error::TooLong { .. }
            | Error::AboveLimit { .. }
            | Error::Misaligned { .. }
            | Error::MissingUsage { .. }
            | Error::ForeignRegion { .. }
            | Error::WrongDevice { .. }
            | Error::SharedChannel
            | Error::NotSharedChannel => ErrorKind::InvalidInput,
            Error::BadDescriptor { .. } => ErrorKind::InvalidData,
            Error::NotSupported { .. } => ErrorKind::Unsupported,
            Error::OutOfMemory { .. } => ErrorKind::OutOfMemory,
            Error::QueueFull { .. } | Error::Again { .. } => ErrorKind::WouldBlock,
            Error::InUse { .. } => ErrorKind::ResourceBusy,
            Error::Woken => ErrorKind::Interrupted,
            Error::Resolve { .. } | Error::NoDevice { .. } => ErrorKind::NotFound,
            Error::Unusable { source, .. } => source.kind(),
            Error::TimedOut { .. } => ErrorKind::TimedOut,
            Error::Connection { event, .. } => match *event {
                CmEventKind::REJECTED => ErrorKind::ConnectionRefused,
                CmEventKind::ADDR_ERROR | CmEventKind::ROUTE_ERROR | CmEventKind::UNREACHABLE => {
                    ErrorKind::HostUnreachable
                }
                CmEventKind::DISCONNECTED | CmEventKind::TIMEWAIT_EXIT => {
                    ErrorKind::ConnectionReset
                }
                CmEventKind::CONNECT_ERROR | CmEventKind::DEVICE_REMOVAL => {
                    ErrorKind::ConnectionAborted
                }
                _ => ErrorKind::Other,
            },
            Error::Completion { status, .. } => match *status {
                WcStatus::WR_FLUSH_ERR => ErrorKind::ConnectionAborted,
                WcStatus::RETRY_EXC_ERR | WcStatus::RESP_TIMEOUT_ERR => ErrorKind::HostUnreachable,
                WcStatus::LOC_PROT_ERR | WcStatus::REM_ACCESS_ERR => ErrorKind::PermissionDenied,
                _ => ErrorKind::Other,
            },
        }
    }

    /// The errno `errno` (positive) of the call `call`.
    #[cold]
    pub(crate) fn provider(call: Call, errno: i32) -> Self {
        let source = io::Error::from_raw_os_error(errno);
        match errno {
            libc::ENOMEM => Error::OutOfMemory { call, source },
            _ => Error::Provider { call, source },
        }
    }

    /// An invalid argument.
    #[cold]
    pub(crate) fn invalid(argument: &'static str, problem: &'static str) -> Self {
        Error::InvalidArgument { argument, problem }
    }

    /// Refuses what is above a limit of the device; 0 is no limit.
    pub(crate) fn above_limit(argument: &'static str, value: u32, limit: u32) -> Result<()> {
        if limit == 0 || value <= limit {
            return Ok(());
        }
        Err(Error::AboveLimit {
            argument,
            value: value.into(),
            limit: limit.into(),
            limited_by: "the device",
        })
    }

    /// A missing capability.
    #[cold]
    pub(crate) fn not_supported(capability: &'static str) -> Self {
        Error::NotSupported { capability }
    }
}

/// The kind says what std's vocabulary can say. The error itself is the inner one: see
/// [`io::Error::get_ref`] and [`io::Error::downcast`].
impl From<Error> for io::Error {
    fn from(err: Error) -> Self {
        io::Error::new(err.io_kind(), err)
    }
}

fn for_address(address: &str) -> impl fmt::Display {
    match address {
        "" => String::new(),
        address => format!(" for {address:?}"),
    }
}

fn status_hint(status: i32) -> impl fmt::Display {
    struct Hint(i32);
    impl fmt::Display for Hint {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self.0 {
                0 => Ok(()),
                status => write!(f, " (status {status})"),
            }
        }
    }
    Hint(status)
}
