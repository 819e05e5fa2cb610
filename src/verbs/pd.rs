use std::{ptr::NonNull, sync::Arc};

use rdma_sys as ffi;

use super::{Context, check, check_ptr};
use crate::{Call, Result};

/// A protection domain (`ibv_alloc_pd(3)`).
pub(crate) struct Pd {
    raw: NonNull<ffi::ibv_pd>,
    context: Arc<Context>,
}

// SAFETY: libibverbs is thread safe and nothing of the struct is written by us.
unsafe impl Send for Pd {}
// SAFETY: as above.
unsafe impl Sync for Pd {}

impl Pd {
    pub(crate) fn alloc(context: Arc<Context>) -> Result<Self> {
        // SAFETY: the context is open.
        let raw = check_ptr(Call::IbvAllocPd, unsafe {
            ffi::ibv_alloc_pd(context.as_ptr())
        })?;
        Ok(Pd { raw, context })
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::ibv_pd {
        self.raw.as_ptr()
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: this is the owner; all that was made in the domain holds an Arc of it and is
        // gone.
        let ret = unsafe { ffi::ibv_dealloc_pd(self.raw.as_ptr()) };
        crate::log_limit::log_failure(check(Call::IbvDeallocPd, ret));
    }
}
