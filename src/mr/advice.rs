//! Advice about pages of on-demand regions.

use std::ops::RangeBounds;

use rdma_sys as ffi;

use super::LocalRegion;
use crate::error::{Error, Result};

impl LocalRegion {
    /// Tells the kernel what is about to happen to the pages of `range`; for regions registered for
    /// on-demand paging, and at most 4 GiB - 1 at once. With `wait` the call returns when the
    /// advice was followed, else at once.
    ///
    /// # Errors
    ///
    /// [`Error::NotSupported`] where the device or the region does not know the advice;
    /// [`Error::OutOfRange`], [`Error::TooLong`]; and what `ibv_advise_mr(3)` says.
    #[doc(alias = "rpma_mr_advise")]
    #[doc(alias = "ibv_advise_mr")]
    pub fn advise(&self, range: impl RangeBounds<u64>, advice: Advice, wait: bool) -> Result<()> {
        let slice = self.slice(range)?;
        let Ok(len) = u32::try_from(slice.len) else {
            return Err(Error::TooLong {
                argument: "range",
                length: slice.len,
                limit: u64::from(u32::MAX),
                limited_by: "one piece of advice",
            });
        };
        let Some(mr) = self.registration() else {
            return Ok(());
        };
        let flags = if wait {
            ffi::IBV_ADVISE_MR_FLAG_FLUSH
        } else {
            0
        };
        mr.advise(advice.0, flags, slice.sge.addr, len)
            .map_err(|err| match err.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::ENOSYS) => {
                    Error::not_supported("advice: the device has no such advice for this region")
                }
                _ => err,
            })
    }
}

/// What is about to happen to pages of a region; see [`LocalRegion::advise`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "ib_uverbs_advise_mr_advice")]
pub struct Advice(u32);

impl Advice {
    /// They will be read.
    #[doc(alias = "IBV_ADVISE_MR_ADVICE_PREFETCH")]
    pub const PREFETCH: Advice = Advice(0);
    /// They will be written.
    #[doc(alias = "IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE")]
    pub const PREFETCH_WRITE: Advice = Advice(1);
    /// They will be read; those that are not in memory are left alone.
    #[doc(alias = "IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT")]
    pub const PREFETCH_NO_FAULT: Advice = Advice(2);

    /// A number of the C interface; any is allowed.
    pub const fn from_raw(raw: u32) -> Self {
        Advice(raw)
    }
}
