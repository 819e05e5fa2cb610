//! System calls of the crate, made to fail: this program has functions of the C library's names,
//! which hand on to the C library's own.
//!
//! Only calls of the thread and the time that a scenario runs in are counted. What fails does
//! nothing, except munmap(2), which unmaps and says that it failed: what is left is then the
//! crate's.

use std::{
    cell::{Cell, RefCell},
    ffi::{CStr, c_char, c_int, c_void},
    mem::transmute,
    sync::atomic::{AtomicPtr, Ordering},
};

use libc::{MAP_FAILED, off_t, size_t};

/// Errnos that system calls are made to fail with, besides EINTR.
pub const ERRNOS: [i32; 6] = [
    libc::ENOMEM,
    libc::EAGAIN,
    libc::EMFILE,
    libc::EINVAL,
    libc::ENOSPC,
    libc::EIO,
];

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static PLAN: Cell<Option<Plan>> = const { Cell::new(None) };
    static FIRED: Cell<bool> = const { Cell::new(false) };
    /// No heap: what the crate holds of it is counted.
    static TRACE: RefCell<[&'static str; 512]> = const { RefCell::new([""; 512]) };
}

/// What shall fail.
#[derive(Clone, Copy)]
pub struct Plan {
    pub call: &'static str,
    /// The how many-th of the calls of this name, from 1: how often something polls may depend on
    /// the time.
    pub nth: u64,
    pub errno: c_int,
}

/// Forgets what was counted.
pub fn plan(plan: Option<Plan>) {
    COUNT.set(0);
    FIRED.set(false);
    PLAN.set(plan);
}

/// Whether the planned failure has happened.
pub fn fired() -> bool {
    FIRED.get()
}

/// The calls since the last plan, each with its place among those of its name.
pub fn trace() -> Vec<(&'static str, u64)> {
    TRACE.with_borrow(|trace| {
        let calls = trace
            .get(..COUNT.get() as usize)
            .expect("room for more calls");
        let nth = |at: usize| {
            calls[..=at]
                .iter()
                .filter(|name| **name == calls[at])
                .count() as u64
        };
        (0..calls.len()).map(|at| (calls[at], nth(at))).collect()
    })
}

/// Counts the calls that `run` makes.
pub fn counted<T>(run: impl FnOnce() -> T) -> T {
    struct Off;
    impl Drop for Off {
        fn drop(&mut self) {
            ON.set(false);
        }
    }
    let _off = Off;
    ON.set(true);
    run()
}

/// Counts one call. `Some(errno)`: it shall fail.
#[inline(never)]
fn enter(name: &'static str) -> Option<c_int> {
    if !ON.get() || !called_from_here() {
        return None;
    }
    let before = COUNT.replace(COUNT.get() + 1);
    TRACE.with_borrow_mut(|trace| {
        if let Some(place) = trace.get_mut(before as usize) {
            *place = name;
        }
    });
    let mut plan = PLAN
        .get()
        .filter(|plan| plan.call == name && plan.nth > 0)?;
    plan.nth -= 1;
    PLAN.set(Some(plan));
    if plan.nth > 0 {
        return None;
    }
    FIRED.set(true);
    Some(plan.errno)
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// How many frames lie between [`called_from_here`] and who made the system call: its own, that of
/// [`enter`], that of C's name.
const FRAMES: usize = 3;

/// Whether it is code of this program that makes the system call. The stand-in is a library, and
/// its calls come here too.
#[inline(never)]
fn called_from_here() -> bool {
    unsafe extern "C" fn each(context: *mut c_void, data: *mut c_void) -> c_int {
        const GO_ON: c_int = 0;
        const STOP: c_int = 4;
        // SAFETY: the place below, and the unwinder's own context.
        unsafe {
            let (frame, ip) = &mut *data.cast::<(usize, usize)>();
            *ip = _Unwind_GetIP(context);
            *frame += 1;
            if *frame > FRAMES { STOP } else { GO_ON }
        }
    }
    let mut found = (0usize, 0usize);
    // SAFETY: the callback gets the place of two numbers.
    unsafe { _Unwind_Backtrace(each, (&raw mut found).cast()) };
    let here = called_from_here as fn() -> bool as usize;
    object(found.1) == object(here)
}

/// Where the program or library that this code belongs to is loaded.
fn object(code: usize) -> usize {
    // SAFETY: plain numbers and pointers.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is looked up, not read.
    unsafe { libc::dladdr(code as *const c_void, &mut info) };
    info.dli_fbase as usize
}

/// Says so in C's way.
fn fail<T>(errno: c_int, value: T) -> T {
    // SAFETY: this thread's errno.
    unsafe { *libc::__errno_location() = errno };
    value
}

/// The C library's function of this name.
fn real(name: &CStr, cache: &AtomicPtr<c_void>) -> *mut c_void {
    let mut found = cache.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: a string.
        found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?}");
        cache.store(found, Ordering::Relaxed);
    }
    found
}

macro_rules! system_calls {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty; $call:literal $(if $when:expr)?, $errno:ident => $failed:expr;)*) => {
        /// All of them, as the crate's errors name them.
        pub const CALLS: &[&str] = &[$($call),*];
        $(
        /// The C library's, or a failure.
        ///
        /// # Safety
        /// That of C.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let name = concat!(stringify!($name), "\0");
            let name = CStr::from_bytes_with_nul(name.as_bytes()).expect("a name");
            let real = real(name, &REAL);
            // SAFETY: the C library's function of this name has this type.
            let real = unsafe { transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> $ret>(real) };
            let counts = true $(&& $when)?;
            let planned = if counts { enter($call) } else { None };
            if let Some($errno) = planned {
                return $failed;
            }
            // SAFETY: the caller's word.
            unsafe { real($($arg),*) }
        }
    )*};
}

system_calls! {
    fn poll(fds: *mut libc::pollfd, n: libc::nfds_t, timeout: c_int) -> c_int; "poll", errno => fail(errno, -1);
    // With dots in C: what is not there is not looked at. F_GETFD is the standard library's own
    // check.
    fn fcntl(fd: c_int, what: c_int, arg: *mut c_void) -> c_int; "fcntl" if what != libc::F_GETFD, errno => fail(errno, -1);
    fn mmap(at: *mut c_void, len: size_t, prot: c_int, flags: c_int, fd: c_int, offset: off_t) -> *mut c_void;
        "mmap", errno => fail(errno, MAP_FAILED);
    fn munmap(at: *mut c_void, len: size_t) -> c_int; "munmap", errno => {
        // SAFETY: the caller's word.
        unsafe { libc::syscall(libc::SYS_munmap, at, len) };
        fail(errno, -1)
    };
    fn msync(at: *mut c_void, len: size_t, flags: c_int) -> c_int; "msync", errno => fail(errno, -1);
    fn open64(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int; "open", errno => fail(errno, -1);
    fn statx(fd: c_int, path: *const c_char, flags: c_int, mask: u32, buf: *mut c_void) -> c_int; "fstat", errno => fail(errno, -1);
    fn fstatfs64(fd: c_int, buf: *mut c_void) -> c_int; "fstatfs", errno => fail(errno, -1);
    fn fsync(fd: c_int) -> c_int; "fsync", errno => fail(errno, -1);
    fn fallocate(fd: c_int, mode: c_int, offset: off_t, len: off_t) -> c_int; "fallocate", errno => fail(errno, -1);
    // It gives the errno.
    fn posix_fallocate(fd: c_int, offset: off_t, len: off_t) -> c_int; "posix_fallocate", errno => errno;
    // It has numbers of its own.
    fn getaddrinfo(node: *const c_char, service: *const c_char, hints: *const libc::addrinfo, list: *mut *mut libc::addrinfo) -> c_int;
        "getaddrinfo", errno => fail(errno, libc::EAI_SYSTEM);
}
