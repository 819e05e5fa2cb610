//! Registration: what a device accepts, and what it notices.

mod common;

use std::ptr::null_mut;

use common::{errno, standin};
use rdma_sys as ffi;
use standin_control::{Exclusive, Knob, Personality};

const WRITE: u32 = ffi::IBV_ACCESS_LOCAL_WRITE | ffi::IBV_ACCESS_REMOTE_WRITE;

/// A page, mapped.
fn page(protection: i32) -> *mut libc::c_void {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let p = unsafe { libc::mmap(null_mut(), 4096, protection, flags, -1, 0) };
    assert_ne!(p, libc::MAP_FAILED);
    p
}

fn unmap(p: *mut libc::c_void) {
    assert_eq!(unsafe { libc::munmap(p, 4096) }, 0);
}

/// A protection domain on an open device.
struct Domain {
    ctx: *mut ffi::ibv_context,
    pd: *mut ffi::ibv_pd,
}

impl Domain {
    fn new() -> Self {
        unsafe {
            let list = ffi::ibv_get_device_list(null_mut());
            let ctx = ffi::ibv_open_device(*list);
            assert!(!ctx.is_null());
            ffi::ibv_free_device_list(list);
            let pd = ffi::ibv_alloc_pd(ctx);
            Self { ctx, pd }
        }
    }

    /// Registers a page: its region, or errno.
    fn register(&self, p: *mut libc::c_void, access: u32) -> Result<*mut ffi::ibv_mr, i32> {
        let mr = unsafe { ffi::ibv_reg_mr(self.pd, p, 4096, access as i32) };
        if mr.is_null() { Err(errno()) } else { Ok(mr) }
    }

    /// The same, and undoes it.
    fn accepts(&self, p: *mut libc::c_void, access: u32) -> Result<(), i32> {
        let mr = self.register(p, access)?;
        assert_eq!(unsafe { ffi::ibv_dereg_mr(mr) }, 0);
        Ok(())
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        unsafe {
            assert_eq!(ffi::ibv_dealloc_pd(self.pd), 0);
            assert_eq!(ffi::ibv_close_device(self.ctx), 0);
        }
    }
}

fn on(personality: Personality, test: impl FnOnce(&Exclusive, &Domain)) {
    let s = standin(personality);
    let before = s.objects();
    {
        let d = Domain::new();
        test(&s, &d);
    }
    assert_eq!(s.objects(), before);
}

#[test]
fn memory_must_be_there_and_writable() {
    on(Personality::Rxe, |s, d| {
        let (rw, ro) = (
            page(libc::PROT_READ | libc::PROT_WRITE),
            page(libc::PROT_READ),
        );
        assert_eq!(d.accepts(rw, WRITE), Ok(()));
        assert_eq!(d.accepts(ro, WRITE), Err(libc::EFAULT));
        assert_eq!(d.accepts(ro, ffi::IBV_ACCESS_REMOTE_READ), Ok(()));
        assert_eq!(d.accepts(ro, 0), Ok(()));
        unmap(ro);
        assert_eq!(d.accepts(ro, 0), Err(libc::EFAULT));
        assert_eq!(
            d.accepts(rw, ffi::IBV_ACCESS_REMOTE_WRITE),
            Err(libc::EINVAL),
            "needs local write"
        );
        unmap(rw);
        assert_eq!(s.violations(), Vec::<String>::new());
    });
}

#[test]
fn rights_depend_on_the_device() {
    let global = WRITE | ffi::IBV_ACCESS_FLUSH_GLOBAL;
    let persistent = WRITE | ffi::IBV_ACCESS_FLUSH_PERSISTENT;
    let demand = WRITE | ffi::IBV_ACCESS_ON_DEMAND;
    let p = page(libc::PROT_READ | libc::PROT_WRITE);
    on(Personality::Rxe, |s, d| {
        assert_eq!(d.accepts(p, global), Ok(()));
        assert_eq!(d.accepts(p, persistent), Err(libc::EINVAL));
        assert_eq!(d.accepts(p, demand), Err(libc::EOPNOTSUPP));
        s.set(Knob::OnDemandPaging, 1);
        assert_eq!(d.accepts(p, demand), Ok(()));
        assert_eq!(d.accepts(p, persistent | ffi::IBV_ACCESS_ON_DEMAND), Ok(()));
        s.declare_persistent(p.cast(), 4096);
        assert_eq!(d.accepts(p, persistent), Ok(()));
    });
    on(Personality::Mlx5, |s, d| {
        assert_eq!(d.accepts(p, global), Err(libc::EOPNOTSUPP));
        assert_eq!(d.accepts(p, demand), Ok(()));
        // As on fsdax: pinning is refused, on-demand paging is not.
        s.set(Knob::PinnedErrno, i64::from(libc::EOPNOTSUPP));
        assert_eq!(d.accepts(p, WRITE), Err(libc::EOPNOTSUPP));
        assert_eq!(d.accepts(p, demand), Ok(()));
    });
    on(Personality::Siw, |_, d| {
        assert_eq!(d.accepts(p, global), Err(libc::EOPNOTSUPP));
        assert_eq!(d.accepts(p, WRITE), Ok(()));
    });
    unmap(p);
}

#[test]
fn memory_that_goes_while_registered_is_noticed() {
    on(Personality::Rxe, |s, d| {
        let p = page(libc::PROT_READ | libc::PROT_WRITE);
        let mr = d.register(p, WRITE).unwrap();
        unmap(p);
        assert_eq!(unsafe { ffi::ibv_dereg_mr(mr) }, 0);
        assert_eq!(s.violations().len(), 1);
        assert!(s.violations()[0].contains("unmapped while it was registered"));
    });
}

#[test]
fn advice_is_for_on_demand_regions() {
    let p = page(libc::PROT_READ | libc::PROT_WRITE);
    let advise = |d: &Domain, mr: *mut ffi::ibv_mr, length: u32| unsafe {
        let mut sge = ffi::ibv_sge {
            addr: p as u64,
            length,
            lkey: (*mr).lkey,
        };
        let advice = ffi::IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
        ffi::ibv_advise_mr(d.pd, advice, 0, &raw mut sge, 1)
    };
    on(Personality::Mlx5, |_, d| {
        let odp = d.register(p, WRITE | ffi::IBV_ACCESS_ON_DEMAND).unwrap();
        let plain = d.register(p, WRITE).unwrap();
        assert_eq!(advise(d, odp, 4096), 0);
        assert_eq!(advise(d, odp, 4097), libc::EINVAL);
        assert_eq!(advise(d, plain, 4096), libc::EINVAL);
        for mr in [odp, plain] {
            assert_eq!(unsafe { ffi::ibv_dereg_mr(mr) }, 0);
        }
    });
    on(Personality::Rxe, |_, d| {
        let mr = d.register(p, WRITE).unwrap();
        assert_eq!(advise(d, mr, 1), libc::EOPNOTSUPP);
        assert_eq!(unsafe { ffi::ibv_dereg_mr(mr) }, 0);
    });
    unmap(p);
}

#[test]
fn a_dma_buf_is_a_file_here() {
    on(Personality::Mlx5, |_, d| unsafe {
        let fd = libc::memfd_create(c"buffer".as_ptr(), 0);
        assert_eq!(libc::ftruncate(fd, 8192), 0);
        let mr = ffi::ibv_reg_dmabuf_mr(d.pd, 4096, 4096, 0, fd, WRITE as i32);
        assert!(!mr.is_null(), "{}", errno());
        assert_eq!(ffi::ibv_dereg_mr(mr), 0);
        libc::close(fd);
    });
}

#[test]
fn a_domain_with_regions_cannot_go() {
    on(Personality::Rxe, |s, d| unsafe {
        let p = page(libc::PROT_READ);
        let mr = d.register(p, 0).unwrap();
        assert_eq!(ffi::ibv_dealloc_pd(d.pd), libc::EBUSY);
        assert_eq!(ffi::ibv_close_device(d.ctx), -1);
        assert_eq!(s.violations().len(), 2);
        assert_eq!(ffi::ibv_dereg_mr(mr), 0);
        unmap(p);
    });
}

/// Under AddressSanitizer the device sees freed memory too: standin/README.md has the flags.
#[test]
fn memory_that_is_freed_while_registered_is_noticed_by_the_sanitizer() {
    let s = standin(Personality::Rxe);
    let d = Domain::new();
    let bytes = vec![0u8; 4096].into_boxed_slice();
    let mr = d.register(bytes.as_ptr() as *mut _, WRITE).unwrap();
    drop(bytes);
    assert_eq!(unsafe { ffi::ibv_dereg_mr(mr) }, 0);
    let name = c"__asan_region_is_poisoned".as_ptr();
    let sanitized = unsafe { !libc::dlsym(libc::RTLD_DEFAULT, name).is_null() };
    assert_eq!(
        s.violations().len(),
        usize::from(sanitized),
        "{:?}",
        s.violations()
    );
}
