use std::{mem::ManuallyDrop, ptr::NonNull, sync::Arc};

use rdma_sys as ffi;

use super::{Pd, check, check_ptr};
use crate::{Call, Error, Memory, Result};

/// A memory registration (`ibv_reg_mr(3)`). Dropping it deregisters.
#[derive(Debug)]
pub(crate) struct Mr {
    raw: NonNull<ffi::ibv_mr>,
    pd: Arc<Pd>,
}

// SAFETY: registrations may be used and removed by any thread; the struct is not written by us.
unsafe impl Send for Mr {}
// SAFETY: as above.
unsafe impl Sync for Mr {}

/// A registration that the device refused to end: it may still reach the memory.
///
/// Dropping it leaks the registration and the protection domain that this needs. It can be taken
/// out only to be tried again.
#[must_use]
pub(crate) struct Refused<R> {
    registration: ManuallyDrop<R>,
    error: Error,
}

impl<R> Refused<R> {
    pub(crate) fn new(registration: R, error: Error) -> Self {
        Refused {
            registration: ManuallyDrop::new(registration),
            error,
        }
    }

    /// Leaks the registration, and says why the device refused.
    pub(crate) fn leak(self) -> Error {
        self.error
    }

    /// The registration as it was, for whoever tries again.
    pub(crate) fn take_back(self) -> (R, Error) {
        (ManuallyDrop::into_inner(self.registration), self.error)
    }
}

impl std::fmt::Debug for Pd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pd")
            .field(&self.context().device_name())
            .finish()
    }
}

impl Mr {
    /// # Safety
    /// The memory must stay mapped until the registration is gone.
    unsafe fn register(pd: &Arc<Pd>, address: *mut u8, len: usize, access: u32) -> Result<Self> {
        // SAFETY: the domain is alive; the caller answers for the memory; a range that is not
        // mapped is refused by the kernel.
        let raw =
            unsafe { ffi::ibv_reg_mr(pd.as_ptr(), address.cast(), len, access as std::ffi::c_int) };
        let raw = check_ptr(Call::IbvRegMr, raw)?;
        Ok(Mr {
            raw,
            pd: pd.clone(),
        })
    }

    /// Registers all of `memory`. The caller keeps the two together, and lets the registration go
    /// first.
    pub(crate) fn of_memory(pd: &Arc<Pd>, memory: &Memory, access: u32) -> Result<Self> {
        // SAFETY: the only callers put the registration and its memory into a `LocalRegion`, which
        // frees the memory only after the registration is gone, or drop the registration at once.
        unsafe { Mr::register(pd, memory.as_mut_ptr(), memory.len(), access) }
    }

    /// Registers a piece of a dma-buf, seen by the device at `iova`.
    pub(crate) fn register_dmabuf(
        pd: &Arc<Pd>,
        offset: u64,
        len: usize,
        iova: u64,
        fd: std::os::fd::BorrowedFd<'_>,
        access: u32,
    ) -> Result<Self> {
        use std::os::fd::AsRawFd;
        // SAFETY: the domain is alive and the fd open; the kernel holds the buffer as long as it is
        // registered.
        let raw = unsafe {
            ffi::ibv_reg_dmabuf_mr(
                pd.as_ptr(),
                offset,
                len,
                iova,
                fd.as_raw_fd(),
                access as std::ffi::c_int,
            )
        };
        let raw = check_ptr(Call::IbvRegDmabufMr, raw)?;
        Ok(Mr {
            raw,
            pd: pd.clone(),
        })
    }

    #[cfg(feature = "efa")]
    pub(crate) fn as_ptr(&self) -> *mut ffi::ibv_mr {
        self.raw.as_ptr()
    }

    #[cfg(feature = "efa")]
    pub(crate) fn context(&self) -> &Arc<super::Context> {
        self.pd.context()
    }

    pub(crate) fn lkey(&self) -> u32 {
        // SAFETY: the registration is alive.
        unsafe { (*self.raw.as_ptr()).lkey }
    }

    pub(crate) fn rkey(&self) -> u32 {
        // SAFETY: the registration is alive.
        unsafe { (*self.raw.as_ptr()).rkey }
    }

    /// Advises the kernel about pages of on-demand regions (`ibv_advise_mr(3)`), `advice` and
    /// `flags` as there.
    pub(crate) fn advise(&self, advice: u32, flags: u32, address: u64, len: u32) -> Result<()> {
        let mut sge = ffi::ibv_sge {
            addr: address,
            length: len,
            lkey: self.lkey(),
        };
        // SAFETY: the domain is alive, the list has one element.
        let ret = unsafe { ffi::ibv_advise_mr(self.pd.as_ptr(), advice as _, flags, &mut sge, 1) };
        check(Call::IbvAdviseMr, ret)
    }

    pub(crate) fn deregister(self) -> Result<(), Refused<Self>> {
        let mut this = ManuallyDrop::new(self);
        match this.dereg() {
            Ok(()) => {
                // SAFETY: `this` is not dropped, and its domain is read out exactly once.
                drop(unsafe { std::ptr::read(&this.pd) });
                Ok(())
            }
            Err(error) => Err(Refused::new(ManuallyDrop::into_inner(this), error)),
        }
    }

    fn dereg(&mut self) -> Result<()> {
        // SAFETY: the registration is alive; on failure it stays so, on success the callers never
        // touch it again.
        check(Call::IbvDeregMr, unsafe {
            ffi::ibv_dereg_mr(self.raw.as_ptr())
        })
    }
}

impl Drop for Mr {
    /// Of a registration that never came together with its memory.
    fn drop(&mut self) {
        crate::log_limit::log_failure(self.dereg());
    }
}
