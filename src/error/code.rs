//! librpma's error numbers, as its C interface returns them.

/// An unknown error.
#[doc(alias = "RPMA_E_UNKNOWN")]
pub const UNKNOWN: i32 = -100000;
/// Not supported.
#[doc(alias = "RPMA_E_NOSUPP")]
pub const NOSUPP: i32 = -100001;
/// A provider (libibverbs, librdmacm, the system) failed.
#[doc(alias = "RPMA_E_PROVIDER")]
pub const PROVIDER: i32 = -100002;
/// Out of memory.
#[doc(alias = "RPMA_E_NOMEM")]
pub const NOMEM: i32 = -100003;
/// Invalid argument.
#[doc(alias = "RPMA_E_INVAL")]
pub const INVAL: i32 = -100004;
/// No completion yet.
#[doc(alias = "RPMA_E_NO_COMPLETION")]
pub const NO_COMPLETION: i32 = -100005;
/// No event yet.
#[doc(alias = "RPMA_E_NO_EVENT")]
pub const NO_EVENT: i32 = -100006;
/// Try again.
#[doc(alias = "RPMA_E_AGAIN")]
pub const AGAIN: i32 = -100007;
/// The completion channel is shared.
#[doc(alias = "RPMA_E_SHARED_CHANNEL")]
pub const SHARED_CHANNEL: i32 = -100008;
/// The completion channel is not shared.
#[doc(alias = "RPMA_E_NOT_SHARED_CHNL")]
pub const NOT_SHARED_CHNL: i32 = -100009;
