use std::{
    ffi::c_int,
    fmt, io,
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd},
    ptr::NonNull,
    sync::Arc,
};

use rdma_sys as ffi;

use super::{CqAttr, DeviceAttr, Library, MrAttr, QpWqs, SqShape};
use crate::{
    Call, Error, LocalRegion, Peer, Result, log_limit,
    verbs::{Context, check, device_name, last_errno, no_device},
};

/// An open device that is known to be EFA: libefa said so. All else here hangs on it.
///
/// This is a handle: clones are the same device, and what is made on it keeps it open.
#[derive(Clone)]
pub struct Device {
    context: Arc<Context>,
    library: &'static Library,
    attr: DeviceAttr,
}

impl Device {
    /// Opens the device called `name`, such as "rdmap0s6" (`ibv_devices(1)` lists them). It is
    /// closed when the last handle and the last object on it are gone.
    ///
    /// EFA has no connection manager, so librdmacm, and with it [`devices`](crate::devices) and
    /// [`Peer`], may not know the device.
    ///
    /// # Errors
    /// [`Error::NoDevice`] where no device is called so. [`Error::NotSupported`] where the device
    /// is not EFA, and where libefa is not installed.
    ///
    /// Source: `ibv_get_device_list(3)`, `ibv_open_device(3)`, `efadv_query_device(3)`.
    pub fn open(name: &str) -> Result<Self> {
        Self::open_with(name, Library::system()?)
    }

    #[doc(hidden)]
    pub fn open_with(name: &str, library: &'static Library) -> Result<Self> {
        Self::on(Arc::new(open(name)?), library)
    }

    /// The device of `peer`, if it is EFA.
    ///
    /// # Errors
    /// [`Error::NotSupported`] where it is not, and where libefa is not installed.
    ///
    /// Source: `efadv_query_device(3)`.
    pub fn try_new(peer: &Peer) -> Result<Self> {
        Self::try_new_with(peer, Library::system()?)
    }

    #[doc(hidden)]
    pub fn try_new_with(peer: &Peer, library: &'static Library) -> Result<Self> {
        Self::on(peer.pd().context().clone(), library)
    }

    /// A device that other code opened, if it is EFA. It is not closed here.
    ///
    /// # Errors
    /// As [`try_new`](Self::try_new).
    ///
    /// # Safety
    /// The context must be open, and stay so until the last handle and the last object on it are
    /// gone.
    pub unsafe fn from_raw(context: NonNull<ffi::ibv_context>) -> Result<Self> {
        // SAFETY: the caller's word.
        let context = unsafe { Context::new(context, Box::new(())) };
        Self::on(Arc::new(context), Library::system()?)
    }

    fn on(context: Arc<Context>, library: &'static Library) -> Result<Self> {
        // SAFETY: the context is open.
        let attr = unsafe { library.query_device(context.as_ptr())? };
        let attr = DeviceAttr::new(&attr, vendor_part_id(&context)?);
        Ok(Device {
            context,
            library,
            attr,
        })
    }

    /// The device's name.
    pub fn name(&self) -> String {
        self.context.device_name()
    }

    /// What the device can do, as it said when this handle was made.
    #[doc(alias = "efadv_query_device")]
    pub fn attr(&self) -> &DeviceAttr {
        &self.attr
    }

    /// The most work requests that a send queue of this shape can have.
    ///
    /// # Errors
    /// [`Error::NotSupported`] with rdma-core older than 63; what the provider says of a shape that
    /// cannot be (`EINVAL`).
    ///
    /// Source: `infiniband/efadv.h`.
    #[doc(alias = "efadv_get_max_sq_depth")]
    pub fn max_sq_depth(&self, shape: SqShape) -> Result<u32> {
        // SAFETY: the context is open.
        unsafe { self.library.max_sq_depth(self.context.as_ptr(), shape) }
    }

    /// The most work requests that a receive queue can have whose receives have `max_recv_sge`
    /// scatter/gather elements.
    ///
    /// # Errors
    /// As [`max_sq_depth`](Self::max_sq_depth).
    ///
    /// Source: `infiniband/efadv.h`.
    #[doc(alias = "efadv_get_max_rq_depth")]
    pub fn max_rq_depth(&self, max_recv_sge: u32) -> Result<u32> {
        // SAFETY: the context is open.
        unsafe {
            self.library
                .max_rq_depth(self.context.as_ptr(), max_recv_sge)
        }
    }

    /// The interconnects that the device takes to `region`.
    ///
    /// # Errors
    /// [`Error::ForeignRegion`] for a region of another device or another opening of this one;
    /// [`Error::NotSupported`] with rdma-core older than 50.
    ///
    /// Source: `efadv_query_mr(3)`.
    #[doc(alias = "efadv_query_mr")]
    pub fn query_mr(&self, region: &LocalRegion) -> Result<MrAttr> {
        let mr = region
            .registration()
            .filter(|mr| mr.context().as_ptr() == self.context.as_ptr())
            .ok_or(Error::ForeignRegion { argument: "region" })?;
        // SAFETY: the region is registered, on this device.
        unsafe { self.query_raw_mr(mr.as_ptr()) }
    }

    /// [`query_mr`](Self::query_mr) for a region that other code registered.
    ///
    /// # Safety
    /// The region must be registered.
    pub unsafe fn query_raw_mr(&self, mr: *mut ffi::ibv_mr) -> Result<MrAttr> {
        // SAFETY: the caller's word.
        unsafe { self.library.query_mr(mr) }.map(MrAttr::from)
    }

    /// [`Cq::attr`](super::Cq::attr) for a queue that other code created.
    ///
    /// # Safety
    /// The queue must be alive.
    pub unsafe fn query_raw_cq(&self, cq: *mut ffi::ibv_cq) -> Result<CqAttr> {
        // SAFETY: the caller's word.
        unsafe { self.library.query_cq(cq) }.map(CqAttr::from)
    }

    /// Where the work queues of a queue pair lie and how they are laid out.
    ///
    /// # Errors
    /// [`Error::NotSupported`] with rdma-core older than 59.
    ///
    /// # Safety
    /// The queue pair must be alive.
    ///
    /// Source: `efadv_query_qp_wqs(3)`.
    #[doc(alias = "efadv_query_qp_wqs")]
    pub unsafe fn query_raw_qp(&self, qp: *mut ffi::ibv_qp) -> Result<QpWqs> {
        // SAFETY: the caller's word.
        let [send, receive] = unsafe { self.library.query_qp_wqs(qp)? };
        Ok(QpWqs {
            send: send.into(),
            receive: receive.into(),
        })
    }

    /// The verbs context: protection domains, regions, address handles and queue pairs (UD and SRD)
    /// are made on it with libibverbs and libefa. It stays open as long as a handle does.
    pub fn as_raw(&self) -> *mut ffi::ibv_context {
        self.context.as_ptr()
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn library(&self) -> &'static Library {
        self.library
    }
}

/// The fd on which the kernel reports asynchronous events of the device.
impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.context.as_fd()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("name", &self.name())
            .field("attr", &self.attr)
            .finish()
    }
}

/// Opens by `ibv_open_device`, past librdmacm.
fn open(name: &str) -> Result<Context> {
    let no_device = |errno| no_device(name.to_owned(), io::Error::from_raw_os_error(errno));
    let mut len: c_int = 0;
    // SAFETY: `len` is ours.
    let list = unsafe { ffi::ibv_get_device_list(&mut len) };
    let list = DeviceList(NonNull::new(list).ok_or_else(|| no_device(last_errno()))?);
    // SAFETY: the list has that many valid devices.
    let device = unsafe { std::slice::from_raw_parts(list.0.as_ptr(), len.max(0) as usize) }
        .iter()
        .copied()
        // SAFETY: as above.
        .find(|device| unsafe { device_name(*device) } == name)
        .ok_or_else(|| no_device(libc::ENODEV))?;
    // SAFETY: the device is valid as long as the list, or an open context of it.
    let raw = NonNull::new(unsafe { ffi::ibv_open_device(device) })
        .ok_or_else(|| no_device(last_errno()))?;
    // SAFETY: the context is open until the anchor closes it.
    Ok(unsafe { Context::new(raw, Box::new(Opened(raw))) })
}

struct DeviceList(NonNull<*mut ffi::ibv_device>);

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: this is the owner; an open context keeps its device.
        unsafe { ffi::ibv_free_device_list(self.0.as_ptr()) }
    }
}

/// A context that is closed in the end.
struct Opened(NonNull<ffi::ibv_context>);

// SAFETY: a context may be closed by any thread.
unsafe impl Send for Opened {}
// SAFETY: nothing can be done through a shared reference.
unsafe impl Sync for Opened {}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: this is the owner, and all that was made on the context is gone.
        let ret = unsafe { ffi::ibv_close_device(self.0.as_ptr()) };
        log_limit::log_failure(check(Call::IbvCloseDevice, ret));
    }
}

fn vendor_part_id(context: &Context) -> Result<u32> {
    let mut attr = MaybeUninit::<ffi::ibv_device_attr>::zeroed();
    // SAFETY: the context is open, `attr` is a whole struct; all-zero bytes are a value of it.
    unsafe {
        check(
            Call::IbvQueryDevice,
            ffi::ibv_query_device(context.as_ptr(), attr.as_mut_ptr()),
        )?;
        Ok(attr.assume_init().vendor_part_id)
    }
}
