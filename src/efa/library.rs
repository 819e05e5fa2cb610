use std::{
    ffi::{CStr, c_int, c_void},
    path::Path,
    ptr::NonNull,
    sync::OnceLock,
};

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use rdma_sys as ffi;

use super::{SqShape, abi::*};
use crate::{
    Call, Error, Result,
    verbs::{check, check_ptr, errno},
};

/// libefa, found at run time, with what it has of the functions that are used here.
///
/// Once loaded it stays: queues made by it call into it until they are destroyed.
#[derive(Debug)]
pub struct Library {
    query_device: Option<QueryDevice>,
    create_cq: Option<CreateCq>,
    cq_from_ibv_cq_ex: Option<CqFromIbvCqEx>,
    query_mr: Option<QueryMr>,
    query_cq: Option<QueryCq>,
    query_qp_wqs: Option<QueryQpWqs>,
    max_sq_depth: Option<MaxSqDepth>,
    max_rq_depth: Option<MaxRqDepth>,
}

type QueryDevice =
    unsafe extern "C" fn(*mut ffi::ibv_context, *mut efadv_device_attr, u32) -> c_int;
type CreateCq = unsafe extern "C" fn(
    *mut ffi::ibv_context,
    *mut ffi::ibv_cq_init_attr_ex,
    *mut efadv_cq_init_attr,
    u32,
) -> *mut ffi::ibv_cq_ex;
type CqFromIbvCqEx = unsafe extern "C" fn(*mut ffi::ibv_cq_ex) -> *mut efadv_cq;
type QueryMr = unsafe extern "C" fn(*mut ffi::ibv_mr, *mut efadv_mr_attr, u32) -> c_int;
type QueryCq = unsafe extern "C" fn(*mut ffi::ibv_cq, *mut efadv_cq_attr, u32) -> c_int;
type QueryQpWqs =
    unsafe extern "C" fn(*mut ffi::ibv_qp, *mut efadv_wq_attr, *mut efadv_wq_attr, u32) -> c_int;
type MaxSqDepth =
    unsafe extern "C" fn(*mut ffi::ibv_context, *mut efadv_sq_depth_attr, u32) -> c_int;
type MaxRqDepth =
    unsafe extern "C" fn(*mut ffi::ibv_context, *mut efadv_rq_depth_attr, u32) -> c_int;

const ABSENT: &str = "EFA direct verbs: libefa.so.1 is not here (rdma-core 26 or newer has it; \
                      Debian's package is ibverbs-providers)";
const OTHER_DEVICE: &str = "EFA direct verbs: not on this device, or not with its driver";

/// What is missing where a symbol is.
macro_rules! since {
    ($function:literal, $release:literal) => {
        concat!(
            $function,
            ": the libefa here is too old, rdma-core ",
            $release,
            " or newer has it"
        )
    };
}

impl Library {
    /// The system's library.
    ///
    /// # Errors
    /// `NotSupported` where there is none, at this and every later call.
    pub(super) fn system() -> Result<&'static Self> {
        static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
        // Logged when the cell is initialised: a logger may call back.
        let mut failure = None;
        let loaded = LIBRARY.get_or_init(|| {
            // SAFETY: this is the provider library that libibverbs itself loads for EFA devices.
            let library = unsafe { Self::load(Path::new("libefa.so.1")) };
            library.map_err(|err| failure = Some(err)).ok()
        });
        if let Some(err) = failure {
            log::debug!(target: "rpma", "libefa: {err}");
        }
        loaded.as_ref().ok_or_else(|| Error::not_supported(ABSENT))
    }

    /// The library at `path`, for tests.
    ///
    /// # Safety
    /// Loading runs the library's code, and what it exports must be as libefa has it.
    #[doc(hidden)]
    pub unsafe fn open_at(path: &Path) -> Result<&'static Self> {
        // SAFETY: the caller's word.
        let library = unsafe { Self::load(path) };
        library
            .map(|library| &*Box::leak(Box::new(library)))
            .map_err(|_| Error::not_supported(ABSENT))
    }

    /// # Safety
    /// See [`Self::open_at`].
    unsafe fn load(path: &Path) -> std::result::Result<Self, libloading::Error> {
        // SAFETY: the caller's word.
        let handle = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }?.into_raw();
        // SAFETY: the handle is never closed; names, versions and types are those of libefa (its
        // man pages and header).
        unsafe {
            Ok(Library {
                query_device: symbol(handle, c"efadv_query_device", c"EFA_1.1")
                    .map(|f| std::mem::transmute::<NonNull<c_void>, QueryDevice>(f)),
                create_cq: symbol(handle, c"efadv_create_cq", c"EFA_1.2")
                    .map(|f| std::mem::transmute::<NonNull<c_void>, CreateCq>(f)),
                cq_from_ibv_cq_ex: symbol(handle, c"efadv_cq_from_ibv_cq_ex", c"EFA_1.2")
                    .map(|f| std::mem::transmute::<NonNull<c_void>, CqFromIbvCqEx>(f)),
                query_mr: symbol(handle, c"efadv_query_mr", c"EFA_1.3")
                    .map(|f| std::mem::transmute::<NonNull<c_void>, QueryMr>(f)),
                query_cq: symbol(handle, c"efadv_query_cq", c"EFA_1.4")
                    .map(|f| std::mem::transmute::<NonNull<c_void>, QueryCq>(f)),
                query_qp_wqs: symbol(handle, c"efadv_query_qp_wqs", c"EFA_1.4")
                    .map(|f| std::mem::transmute::<NonNull<c_void>, QueryQpWqs>(f)),
                max_sq_depth: symbol(handle, c"efadv_get_max_sq_depth", c"EFA_1.5")
                    .map(|f| std::mem::transmute::<NonNull<c_void>, MaxSqDepth>(f)),
                max_rq_depth: symbol(handle, c"efadv_get_max_rq_depth", c"EFA_1.5")
                    .map(|f| std::mem::transmute::<NonNull<c_void>, MaxRqDepth>(f)),
            })
        }
    }

    /// # Safety
    /// The context must be open.
    pub unsafe fn query_device(&self, context: *mut ffi::ibv_context) -> Result<efadv_device_attr> {
        let f = self
            .query_device
            .ok_or(Error::not_supported(since!("efadv_query_device", "26")))?;
        let mut attr = efadv_device_attr::default();
        // SAFETY: the context is open, the attribute has that length.
        let ret = unsafe { f(context, &mut attr, efadv_device_attr::LEN) };
        answer(Call::EfadvQueryDevice, ret)?;
        Ok(attr)
    }

    /// # Safety
    /// The context must be open.
    pub unsafe fn max_sq_depth(
        &self,
        context: *mut ffi::ibv_context,
        shape: SqShape,
    ) -> Result<u32> {
        let f = self
            .max_sq_depth
            .ok_or(Error::not_supported(since!("efadv_get_max_sq_depth", "63")))?;
        let mut attr = efadv_sq_depth_attr::from(shape);
        // SAFETY: the context is open, the attribute has that length.
        depth(Call::EfadvGetMaxSqDepth, unsafe {
            f(context, &mut attr, efadv_sq_depth_attr::LEN)
        })
    }

    /// # Safety
    /// The context must be open.
    pub unsafe fn max_rq_depth(
        &self,
        context: *mut ffi::ibv_context,
        max_recv_sge: u32,
    ) -> Result<u32> {
        let f = self
            .max_rq_depth
            .ok_or(Error::not_supported(since!("efadv_get_max_rq_depth", "63")))?;
        let mut attr = efadv_rq_depth_attr {
            max_recv_sge,
            ..Default::default()
        };
        // SAFETY: the context is open, the attribute has that length.
        depth(Call::EfadvGetMaxRqDepth, unsafe {
            f(context, &mut attr, efadv_rq_depth_attr::LEN)
        })
    }

    /// # Safety
    /// The context must be open, and so must the objects and memory that the attributes name.
    pub unsafe fn create_cq(
        &self,
        context: *mut ffi::ibv_context,
        attr: &mut ffi::ibv_cq_init_attr_ex,
        efa: &mut efadv_cq_init_attr,
    ) -> Result<NonNull<ffi::ibv_cq_ex>> {
        let f = self
            .create_cq
            .ok_or(Error::not_supported(since!("efadv_create_cq", "43")))?;
        // The library refuses a longer struct than it knows: give the later part only where it says
        // something.
        let len = if efa.flags == 0 {
            CQ_INIT_ATTR_FIRST_LEN
        } else {
            efadv_cq_init_attr::LEN
        };
        // SAFETY: the caller's word; the attributes have at least these lengths.
        let cq = unsafe { f(context, attr, efa, len) };
        check_ptr(Call::EfadvCreateCq, cq).map_err(other_device)
    }

    /// # Safety
    /// The CQ must be alive and made by [`Self::create_cq`]: the library does not check it.
    pub unsafe fn efa_cq(&self, cq: NonNull<ffi::ibv_cq_ex>) -> Result<NonNull<efadv_cq>> {
        let f = self.cq_from_ibv_cq_ex.ok_or(Error::not_supported(since!(
            "efadv_cq_from_ibv_cq_ex",
            "43"
        )))?;
        // SAFETY: the caller's word.
        check_ptr(Call::EfadvCqFromIbvCqEx, unsafe { f(cq.as_ptr()) })
    }

    /// # Safety
    /// The CQ must be alive.
    pub unsafe fn query_cq(&self, cq: *mut ffi::ibv_cq) -> Result<efadv_cq_attr> {
        let f = self
            .query_cq
            .ok_or(Error::not_supported(since!("efadv_query_cq", "59")))?;
        let mut attr = efadv_cq_attr::default();
        // SAFETY: the CQ is alive, the attribute has that length.
        answer(Call::EfadvQueryCq, unsafe {
            f(cq, &mut attr, efadv_cq_attr::LEN)
        })?;
        Ok(attr)
    }

    /// # Safety
    /// The region must be registered.
    pub unsafe fn query_mr(&self, mr: *mut ffi::ibv_mr) -> Result<efadv_mr_attr> {
        let f = self
            .query_mr
            .ok_or(Error::not_supported(since!("efadv_query_mr", "50")))?;
        let mut attr = efadv_mr_attr::default();
        // SAFETY: the region is registered, the attribute has that length.
        answer(Call::EfadvQueryMr, unsafe {
            f(mr, &mut attr, efadv_mr_attr::LEN)
        })?;
        Ok(attr)
    }

    /// The attributes of the send queue and of the receive queue.
    ///
    /// # Safety
    /// The queue pair must be alive.
    pub unsafe fn query_qp_wqs(&self, qp: *mut ffi::ibv_qp) -> Result<[efadv_wq_attr; 2]> {
        let f = self
            .query_qp_wqs
            .ok_or(Error::not_supported(since!("efadv_query_qp_wqs", "59")))?;
        let mut sq = efadv_wq_attr::default();
        let mut rq = efadv_wq_attr::default();
        // SAFETY: the queue pair is alive, both attributes have that length.
        let ret = unsafe { f(qp, &mut sq, &mut rq, efadv_wq_attr::LEN) };
        answer(Call::EfadvQueryQpWqs, ret)?;
        Ok([sq, rq])
    }
}

fn answer(call: Call, ret: c_int) -> Result<()> {
    check(call, ret).map_err(other_device)
}

/// Here, other than in the rest of verbs, a positive value is the answer.
fn depth(call: Call, ret: c_int) -> Result<u32> {
    u32::try_from(ret).map_err(|_| other_device(Error::provider(call, errno(ret))))
}

/// libefa looks first whether the device is its own.
fn other_device(err: Error) -> Error {
    match err.raw_os_error() {
        Some(libc::EOPNOTSUPP) => Error::not_supported(OTHER_DEVICE),
        _ => err,
    }
}

/// # Safety
/// `handle` must be an open library.
unsafe fn symbol(handle: *mut c_void, name: &CStr, version: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: the caller's word; both strings end in NUL.
    #[cfg(target_env = "gnu")]
    let symbol = unsafe { libc::dlvsym(handle, name.as_ptr(), version.as_ptr()) };
    // Other C libraries have no versions: the name is all there is to ask for.
    #[cfg(not(target_env = "gnu"))]
    // SAFETY: as above.
    let symbol = unsafe {
        let _ = version;
        libc::dlsym(handle, name.as_ptr())
    };
    NonNull::new(symbol)
}
