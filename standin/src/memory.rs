//! The program's memory: is it there, and may it be written? And the copies that a device would
//! make.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the kernel says of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub mapped: bool,
    pub writable: bool,
}

/// Looks a range up in /proc/self/maps. An empty range is there.
pub fn mapping(addr: usize, len: usize) -> Mapping {
    let mut all = Mapping {
        mapped: true,
        writable: true,
    };
    let Some(end) = addr.checked_add(len) else {
        return Mapping {
            mapped: false,
            writable: false,
        };
    };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut at = addr;
    for line in maps.lines() {
        if at >= end {
            break;
        }
        let Some((from, to, perms)) = parse(line) else {
            continue;
        };
        if to <= at {
            continue;
        }
        if from > at || !perms.starts_with('r') {
            break;
        }
        all.writable &= perms.as_bytes().get(1) == Some(&b'w');
        at = to;
    }
    if at < end {
        all.mapped = false;
        all.writable = false;
    }
    all
}

fn parse(line: &str) -> Option<(usize, usize, &str)> {
    let mut words = line.split(' ');
    let (from, to) = words.next()?.split_once('-')?;
    Some((
        usize::from_str_radix(from, 16).ok()?,
        usize::from_str_radix(to, 16).ok()?,
        words.next()?,
    ))
}

/// Whether a range is mapped: a system call for each 4 MiB, for the data path.
pub fn is_mapped(addr: usize, len: usize) -> bool {
    const PAGES: usize = 1024;
    const CHUNK: usize = PAGES * 4096;
    let mut residency = [0u8; PAGES];
    let Some(end) = addr.checked_add(len) else {
        return false;
    };
    let mut at = addr & !4095;
    while at < end {
        let n = (end - at).min(CHUNK);
        // SAFETY: mincore only looks at the mappings (ENOMEM where there is none), and has a byte
        // for each page.
        let r = unsafe { libc::mincore(at as *mut libc::c_void, n, residency.as_mut_ptr()) };
        if r != 0 {
            return false;
        }
        at += n;
    }
    true
}

/// Whether AddressSanitizer, if the program runs under it, says that part of a range is freed
/// memory.
pub fn is_freed(addr: usize, len: usize) -> bool {
    type Check = unsafe extern "C" fn(*mut libc::c_void, usize) -> *mut libc::c_void;
    static CHECK: OnceLock<Option<Check>> = OnceLock::new();
    let check = CHECK.get_or_init(|| {
        // SAFETY: the symbol, if there is one, is the sanitizer's function of this type.
        unsafe {
            let p = libc::dlsym(libc::RTLD_DEFAULT, c"__asan_region_is_poisoned".as_ptr());
            (!p.is_null()).then(|| std::mem::transmute::<*mut libc::c_void, Check>(p))
        }
    });
    match check {
        // SAFETY: the function only looks at its own records.
        Some(f) => unsafe { !f(addr as *mut libc::c_void, len).is_null() },
        None => false,
    }
}

/// Reads the program's memory as a device does.
///
/// # Safety
/// The range is mapped and readable.
pub unsafe fn read(addr: usize, to: &mut [u8]) {
    // An aligned word is read in one piece, so that a concurrent atomic is never seen half done.
    if to.len() == 8 && addr % 8 == 0 {
        // SAFETY: mapped and aligned.
        let v = unsafe { word(addr) }.load(Ordering::Acquire);
        to.copy_from_slice(&v.to_ne_bytes());
        return;
    }
    // SAFETY: mapped; `to` is our own buffer.
    unsafe { std::ptr::copy(addr as *const u8, to.as_mut_ptr(), to.len()) };
}

/// Writes the program's memory as a device does.
///
/// # Safety
/// The range is mapped and writable.
pub unsafe fn write(addr: usize, from: &[u8]) {
    if let (Ok(bytes), 0) = (<[u8; 8]>::try_from(from), addr % 8) {
        // SAFETY: mapped and aligned.
        unsafe { word(addr) }.store(u64::from_ne_bytes(bytes), Ordering::Release);
        return;
    }
    // SAFETY: mapped; `from` is our own buffer.
    unsafe { std::ptr::copy(from.as_ptr(), addr as *mut u8, from.len()) };
}

/// An aligned word of the program's memory.
///
/// # Safety
/// Mapped, writable (or only loaded from), aligned to 8.
pub unsafe fn word(addr: usize) -> &'static AtomicU64 {
    // SAFETY: as the caller promises; the reference does not outlive the operation.
    unsafe { AtomicU64::from_ptr(addr as *mut u64) }
}
