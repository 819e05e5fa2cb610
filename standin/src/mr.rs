//! Protection domains and memory regions.

use libc::{c_int, c_uint, c_void};
use rdma_sys as ffi;

use crate::calls::{Call, destroying, enter};
use crate::config::Personality;
use crate::memory;
use crate::ret::{code, pointer};
use crate::table::{Object, allocate};
use crate::violations::{still_in_use, violation};
use crate::world::{World, world};

/// A protection domain.
pub struct Pd {
    ffi: *mut ffi::ibv_pd,
    pub context: usize,
    /// librdmacm's own.
    pub by_cm: bool,
}

// SAFETY: the pointer is only followed under the world's lock, or by the program.
unsafe impl Send for Pd {}

impl Object for Pd {
    type Ffi = ffi::ibv_pd;
    const KIND: &'static str = "protection domain";
    fn ffi(&self) -> *mut ffi::ibv_pd {
        self.ffi
    }
}

/// A memory region.
pub struct Mr {
    ffi: *mut ffi::ibv_mr,
    pub pd: usize,
    pub addr: usize,
    pub len: usize,
    pub iova: u64,
    pub access: c_uint,
    key: u32,
    /// The device's own mapping of a dma-buf, to be unmapped in the end.
    own_mapping: bool,
}

// SAFETY: as for Pd.
unsafe impl Send for Mr {}

impl Object for Mr {
    type Ffi = ffi::ibv_mr;
    const KIND: &'static str = "memory region";
    fn ffi(&self) -> *mut ffi::ibv_mr {
        self.ffi
    }
}

/// The low byte of a key tells what it is for: a mix-up is never forgiven.
const LOCAL: u32 = 0x11;
const REMOTE: u32 = 0x22;

/// Rights that need the memory to be writable.
const WRITING: c_uint =
    ffi::IBV_ACCESS_LOCAL_WRITE | ffi::IBV_ACCESS_REMOTE_WRITE | ffi::IBV_ACCESS_REMOTE_ATOMIC;

/// Why a key does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    Unknown,
    OtherPd,
    Range,
    Rights,
    Gone,
}

impl World {
    pub fn alloc_pd(&mut self, ctx: *mut ffi::ibv_context, by_cm: bool) -> *mut ffi::ibv_pd {
        let pd = allocate::<ffi::ibv_pd>();
        let handle = self.number();
        // SAFETY: a fresh struct.
        unsafe {
            (*pd).context = ctx;
            (*pd).handle = handle;
        }
        self.pds.insert(Pd {
            ffi: pd,
            context: ctx as usize,
            by_cm,
        })
    }

    fn dealloc_pd(&mut self, pd: *mut ffi::ibv_pd) -> Result<(), c_int> {
        let by_cm = self.pds.get(pd, Call::ibv_dealloc_pd)?.by_cm;
        if by_cm {
            violation("ibv_dealloc_pd: the protection domain belongs to librdmacm");
            return Err(libc::EINVAL);
        }
        let key = pd as usize;
        let users = self.mrs.iter().filter(|(_, m)| m.pd == key).count()
            + self.qps.iter().filter(|(_, q)| q.pd == key).count()
            + self.srqs.iter().filter(|(_, s)| s.pd == key).count();
        if users > 0 {
            still_in_use(&format!(
                "ibv_dealloc_pd: {users} objects still use the protection domain"
            ));
            return Err(libc::EBUSY);
        }
        self.pds.remove(key);
        Ok(())
    }

    fn reg_mr(&mut self, call: Call, ask: &Registration) -> Result<*mut ffi::ibv_mr, c_int> {
        let context = self.pds.get(ask.pd, call)?.context;
        let personality = self.personality_of(context);
        if ask.len == 0 {
            return Err(libc::EINVAL);
        }
        let access = ask.access & !0x3ff0_0000;
        self.check_rights(personality, ask, access)?;
        let on_demand = access & ffi::IBV_ACCESS_ON_DEMAND != 0;
        if on_demand && !self.config.has_odp() {
            return Err(libc::EOPNOTSUPP);
        }
        if !on_demand {
            if self.config.pinned_errno != 0 && access & !ffi::IBV_ACCESS_LOCAL_WRITE != 0 {
                return Err(self.config.pinned_errno);
            }
            let there = memory::mapping(ask.addr, ask.len);
            if !there.mapped || (access & WRITING != 0 && !there.writable) {
                return Err(libc::EFAULT);
            }
        }
        let key = self.number();
        let mr = allocate::<ffi::ibv_mr>();
        // SAFETY: a fresh struct.
        unsafe {
            (*mr).context = context as *mut ffi::ibv_context;
            (*mr).pd = ask.pd;
            (*mr).addr = ask.addr as *mut c_void;
            (*mr).length = ask.len;
            (*mr).handle = key;
            (*mr).lkey = (key << 8) | LOCAL;
            (*mr).rkey = (key << 8) | REMOTE;
        }
        self.mr_keys.insert(key, mr as usize);
        Ok(self.mrs.insert(Mr {
            ffi: mr,
            pd: ask.pd as usize,
            addr: ask.addr,
            len: ask.len,
            iova: if access & ffi::IBV_ACCESS_ZERO_BASED != 0 {
                0
            } else {
                ask.iova
            },
            access,
            key,
            own_mapping: ask.own_mapping,
        }))
    }

    fn check_rights(
        &self,
        personality: Personality,
        ask: &Registration,
        access: c_uint,
    ) -> Result<(), c_int> {
        let flush = access & (ffi::IBV_ACCESS_FLUSH_GLOBAL | ffi::IBV_ACCESS_FLUSH_PERSISTENT);
        let remote_writes = ffi::IBV_ACCESS_REMOTE_WRITE | ffi::IBV_ACCESS_REMOTE_ATOMIC;
        if access & remote_writes != 0 && access & ffi::IBV_ACCESS_LOCAL_WRITE == 0 {
            return Err(libc::EINVAL);
        }
        if flush != 0 && !personality.has_flush() {
            return Err(libc::EOPNOTSUPP);
        }
        if flush & ffi::IBV_ACCESS_FLUSH_PERSISTENT != 0
            && access & ffi::IBV_ACCESS_ON_DEMAND == 0
            && !self.config.is_persistent(ask.addr, ask.len)
        {
            return Err(libc::EINVAL);
        }
        Ok(())
    }

    fn dereg_mr(&mut self, mr: *mut ffi::ibv_mr) -> Result<(), c_int> {
        let m = self.mrs.get(mr, Call::ibv_dereg_mr)?;
        let (addr, len, own) = (m.addr, m.len, m.own_mapping);
        if !memory::is_mapped(addr, len) {
            violation(&format!(
                "ibv_dereg_mr: the memory {addr:#x}+{len:#x} was unmapped while it was registered"
            ));
        }
        if !own && memory::is_freed(addr, len) {
            violation(&format!(
                "ibv_dereg_mr: memory of {addr:#x}+{len:#x} was freed while it was registered"
            ));
        }
        if let Some(m) = self.mrs.remove(mr as usize) {
            self.mr_keys.remove(&m.key);
        }
        if own {
            // SAFETY: made by `ibv_reg_dmabuf_mr` and known to nobody else.
            unsafe { libc::munmap(addr as *mut c_void, len) };
        }
        Ok(())
    }

    /// Where the bytes are that a local key and address mean.
    pub fn local(&self, pd: usize, sge: &ffi::ibv_sge, rights: c_uint) -> Result<usize, KeyError> {
        self.resolve(pd, sge.lkey, LOCAL, sge.addr, sge.length as usize, rights)
    }

    /// Where the bytes are that a remote key and address mean.
    pub fn remote(
        &self,
        pd: usize,
        rkey: u32,
        addr: u64,
        len: usize,
        rights: c_uint,
    ) -> Result<usize, KeyError> {
        self.resolve(pd, rkey, REMOTE, addr, len, rights)
    }

    /// Takes all remote rights from the region of a remote key.
    pub fn revoke(&mut self, rkey: u32) {
        let at = self.mr_keys.get(&(rkey >> 8)).copied();
        if let Some(mr) = at.and_then(|at| self.mrs.at_mut(at)) {
            mr.access &= ffi::IBV_ACCESS_LOCAL_WRITE | ffi::IBV_ACCESS_ON_DEMAND;
        }
    }

    /// The region of a remote key.
    pub fn remote_region(&self, rkey: u32) -> Option<&Mr> {
        if rkey & 0xff != REMOTE {
            return None;
        }
        self.mrs.at(*self.mr_keys.get(&(rkey >> 8))?)
    }

    fn resolve(
        &self,
        pd: usize,
        key: u32,
        kind: u32,
        addr: u64,
        len: usize,
        rights: c_uint,
    ) -> Result<usize, KeyError> {
        if key & 0xff != kind {
            return Err(KeyError::Unknown);
        }
        let at = self.mr_keys.get(&(key >> 8)).ok_or(KeyError::Unknown)?;
        let mr = self.mrs.at(*at).ok_or(KeyError::Unknown)?;
        if mr.pd != pd {
            return Err(KeyError::OtherPd);
        }
        let offset = addr.checked_sub(mr.iova).ok_or(KeyError::Range)?;
        let end = offset.checked_add(len as u64).ok_or(KeyError::Range)?;
        if end > mr.len as u64 {
            return Err(KeyError::Range);
        }
        if mr.access & rights != rights {
            return Err(KeyError::Rights);
        }
        let start = mr.addr + offset as usize;
        if !memory::is_mapped(start, len) {
            if mr.access & ffi::IBV_ACCESS_ON_DEMAND == 0 {
                violation(&format!(
                    "a transfer found {start:#x}+{len:#x} unmapped while it is registered"
                ));
            }
            return Err(KeyError::Gone);
        }
        if memory::is_freed(start, len) {
            violation(&format!(
                "a transfer found {start:#x}+{len:#x} freed while it is registered"
            ));
            return Err(KeyError::Gone);
        }
        Ok(start)
    }

    pub fn advise(
        &mut self,
        pd: *mut ffi::ibv_pd,
        advice: c_uint,
        sges: &[ffi::ibv_sge],
    ) -> Result<(), c_int> {
        self.pds.get(pd, Call::ibv_advise_mr)?;
        if !self.config.has_odp() {
            return Err(libc::EOPNOTSUPP);
        }
        if advice > ffi::IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT || sges.is_empty() {
            return Err(libc::EINVAL);
        }
        let writing = advice == ffi::IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
        let rights = if writing {
            ffi::IBV_ACCESS_LOCAL_WRITE
        } else {
            0
        };
        for sge in sges {
            match self.local(pd as usize, sge, rights | ffi::IBV_ACCESS_ON_DEMAND) {
                Ok(_) => {}
                Err(KeyError::Gone) => return Err(libc::EFAULT),
                Err(KeyError::Unknown | KeyError::OtherPd) => return Err(libc::ENOENT),
                Err(KeyError::Range | KeyError::Rights) => return Err(libc::EINVAL),
            }
        }
        Ok(())
    }

    /// At the end of the process: is the memory of every region that is left still there?
    pub fn check_regions(&self) {
        for (_, m) in self.mrs.iter() {
            if m.access & ffi::IBV_ACCESS_ON_DEMAND == 0 && !memory::is_mapped(m.addr, m.len) {
                violation(&format!(
                    "the memory {:#x}+{:#x} was unmapped and is still registered",
                    m.addr, m.len
                ));
            }
        }
    }
}

struct Registration {
    pd: *mut ffi::ibv_pd,
    addr: usize,
    len: usize,
    iova: u64,
    access: c_uint,
    own_mapping: bool,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_alloc_pd(ctx: *mut ffi::ibv_context) -> *mut ffi::ibv_pd {
    let fault = enter(Call::ibv_alloc_pd);
    let mut w = world();
    let r = match fault {
        Some(e) => Err(e),
        None => w.contexts.get(ctx, Call::ibv_alloc_pd).map(|_| ()),
    };
    pointer(r.map(|()| w.alloc_pd(ctx, false)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_dealloc_pd(pd: *mut ffi::ibv_pd) -> c_int {
    code(destroying(Call::ibv_dealloc_pd, || world().dealloc_pd(pd)))
}

fn register(call: Call, ask: &Registration) -> *mut ffi::ibv_mr {
    match enter(call) {
        Some(e) => pointer(Err(e)),
        None => pointer(world().reg_mr(call, ask)),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_mr(
    pd: *mut ffi::ibv_pd,
    addr: *mut c_void,
    len: usize,
    access: c_int,
) -> *mut ffi::ibv_mr {
    // SAFETY: as the caller promises.
    unsafe {
        reg(
            Call::ibv_reg_mr,
            pd,
            addr,
            len,
            addr as u64,
            access as c_uint,
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_mr_iova(
    pd: *mut ffi::ibv_pd,
    addr: *mut c_void,
    len: usize,
    iova: u64,
    access: c_int,
) -> *mut ffi::ibv_mr {
    // SAFETY: as the caller promises.
    unsafe { reg(Call::ibv_reg_mr_iova, pd, addr, len, iova, access as c_uint) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_mr_iova2(
    pd: *mut ffi::ibv_pd,
    addr: *mut c_void,
    len: usize,
    iova: u64,
    access: c_uint,
) -> *mut ffi::ibv_mr {
    // SAFETY: as the caller promises.
    unsafe { reg(Call::ibv_reg_mr_iova2, pd, addr, len, iova, access) }
}

unsafe fn reg(
    call: Call,
    pd: *mut ffi::ibv_pd,
    addr: *mut c_void,
    len: usize,
    iova: u64,
    access: c_uint,
) -> *mut ffi::ibv_mr {
    register(
        call,
        &Registration {
            pd,
            addr: addr as usize,
            len,
            iova,
            access,
            own_mapping: false,
        },
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_dmabuf_mr(
    pd: *mut ffi::ibv_pd,
    offset: u64,
    len: usize,
    iova: u64,
    fd: c_int,
    access: c_int,
) -> *mut ffi::ibv_mr {
    if let Some(e) = enter(Call::ibv_reg_dmabuf_mr) {
        return pointer(Err(e));
    }
    let mut w = world();
    let personality = match w.pds.get(pd, Call::ibv_reg_dmabuf_mr) {
        Ok(p) => p.context,
        Err(e) => return pointer(Err(e)),
    };
    if w.personality_of(personality) != Personality::Mlx5 {
        return pointer(Err(libc::EOPNOTSUPP));
    }
    let Ok(start) = libc::off_t::try_from(offset) else {
        return pointer(Err(libc::EINVAL));
    };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            protection,
            libc::MAP_SHARED,
            fd,
            start,
        )
    };
    if at == libc::MAP_FAILED {
        return pointer(Err(libc::EBADF));
    }
    let r = w.reg_mr(
        Call::ibv_reg_dmabuf_mr,
        &Registration {
            pd,
            addr: at as usize,
            len,
            iova,
            access: access as c_uint,
            own_mapping: true,
        },
    );
    if r.is_err() {
        // SAFETY: the mapping made above.
        unsafe { libc::munmap(at, len) };
    }
    pointer(r)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_dereg_mr(mr: *mut ffi::ibv_mr) -> c_int {
    code(destroying(Call::ibv_dereg_mr, || world().dereg_mr(mr)))
}
