//! Shared receive queues.

use std::collections::VecDeque;

use libc::{c_int, c_void};
use rdma_sys as ffi;

use crate::calls::{Call, destroying, enter};
use crate::post::sges;
use crate::ret::{code, pointer};
use crate::table::{Object, allocate};
use crate::violations::{still_in_use, violation};
use crate::world::{World, wait_until, world};
use crate::wqe::RecvWqe;

/// The largest shared receive queue.
const MAX_WR: u32 = 16384;
const MAX_SGE: u32 = 27;

/// A shared receive queue.
pub struct Srq {
    ffi: *mut ffi::ibv_srq,
    pub context: usize,
    pub pd: usize,
    pub attr: ffi::ibv_srq_attr,
    pub queue: VecDeque<RecvWqe>,
    /// Slots taken: posted and not yet polled.
    pub used: u32,
    pub async_unacked: i64,
}

// SAFETY: the pointer is only followed under the world's lock, or by the program.
unsafe impl Send for Srq {}

impl Object for Srq {
    type Ffi = ffi::ibv_srq;
    const KIND: &'static str = "shared receive queue";
    fn ffi(&self) -> *mut ffi::ibv_srq {
        self.ffi
    }
}

impl World {
    pub fn new_srq(
        &mut self,
        pd: *mut ffi::ibv_pd,
        srq_context: *mut c_void,
        attr: ffi::ibv_srq_attr,
    ) -> Result<*mut ffi::ibv_srq, c_int> {
        let context = self.pds.get(pd, Call::ibv_create_srq)?.context;
        if attr.max_wr == 0 || attr.max_wr > MAX_WR || attr.max_sge > MAX_SGE {
            return Err(libc::EINVAL);
        }
        let p = allocate::<ffi::ibv_srq>();
        let handle = self.number();
        // SAFETY: a fresh struct.
        unsafe {
            (*p).context = context as *mut ffi::ibv_context;
            (*p).srq_context = srq_context;
            (*p).pd = pd;
            (*p).handle = handle;
        }
        Ok(self.srqs.insert(Srq {
            ffi: p,
            context,
            pd: pd as usize,
            attr: ffi::ibv_srq_attr {
                srq_limit: 0,
                ..attr
            },
            queue: VecDeque::new(),
            used: 0,
            async_unacked: 0,
        }))
    }

    fn post_to_srq(&mut self, srq: *mut ffi::ibv_srq, wr: &RecvWqe) -> Result<(), c_int> {
        let s = self.srqs.get(srq, Call::ibv_post_srq_recv)?;
        if wr.sges.len() > s.attr.max_sge as usize {
            return Err(libc::EINVAL);
        }
        if s.used >= s.attr.max_wr {
            return Err(libc::ENOMEM);
        }
        s.used += 1;
        s.queue.push_back(wr.clone());
        Ok(())
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_srq(
    pd: *mut ffi::ibv_pd,
    init: *mut ffi::ibv_srq_init_attr,
) -> *mut ffi::ibv_srq {
    match enter(Call::ibv_create_srq) {
        Some(e) => pointer(Err(e)),
        // SAFETY: the caller's struct.
        None => pointer(unsafe { world().new_srq(pd, (*init).srq_context, (*init).attr) }),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_modify_srq(
    srq: *mut ffi::ibv_srq,
    attr: *mut ffi::ibv_srq_attr,
    mask: c_int,
) -> c_int {
    if let Some(e) = enter(Call::ibv_modify_srq) {
        return e;
    }
    let mut w = world();
    let s = match w.srqs.get(srq, Call::ibv_modify_srq) {
        Ok(s) => s,
        Err(e) => return e,
    };
    // SAFETY: the caller's struct.
    let attr = unsafe { *attr };
    if mask as u32 & ffi::IBV_SRQ_MAX_WR != 0 {
        if attr.max_wr < s.used || attr.max_wr > MAX_WR {
            return libc::EINVAL;
        }
        s.attr.max_wr = attr.max_wr;
    }
    if mask as u32 & ffi::IBV_SRQ_LIMIT != 0 {
        if attr.srq_limit > s.attr.max_wr {
            return libc::EINVAL;
        }
        s.attr.srq_limit = attr.srq_limit;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_srq(srq: *mut ffi::ibv_srq, attr: *mut ffi::ibv_srq_attr) -> c_int {
    if let Some(e) = enter(Call::ibv_query_srq) {
        return e;
    }
    match world().srqs.get(srq, Call::ibv_query_srq) {
        // SAFETY: the caller's struct.
        Ok(s) => unsafe {
            *attr = s.attr;
            0
        },
        Err(e) => e,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_srq(srq: *mut ffi::ibv_srq) -> c_int {
    code(destroying(Call::ibv_destroy_srq, || destroy_srq(srq)))
}

/// Destroys a shared receive queue, as the program or librdmacm asks.
pub fn destroy_srq(srq: *mut ffi::ibv_srq) -> Result<(), c_int> {
    let key = srq as usize;
    let mut w = world();
    w.srqs.get(srq, Call::ibv_destroy_srq)?;
    let users = w.qps.iter().filter(|(_, q)| q.srq == key).count();
    if users > 0 {
        still_in_use(&format!(
            "ibv_destroy_srq: {users} queue pairs still use the queue"
        ));
        return Err(libc::EBUSY);
    }
    let settled = |w: &World| w.srqs.at(key).is_none_or(|s| s.async_unacked == 0);
    let (mut w, ready) = wait_until(w, settled);
    if !ready {
        violation("ibv_destroy_srq: events are not acknowledged: the real call would hang");
        return Err(libc::EBUSY);
    }
    if let Some(s) = w.srqs.remove(key) {
        w.purge_async(s.context, key);
    }
    Ok(())
}

/// `ibv_context.ops.post_srq_recv`.
pub unsafe extern "C" fn post_srq_recv(
    srq: *mut ffi::ibv_srq,
    wr: *mut ffi::ibv_recv_wr,
    bad: *mut *mut ffi::ibv_recv_wr,
) -> c_int {
    let fault = enter(Call::ibv_post_srq_recv);
    let mut w = world();
    let mut wr = wr;
    let mut result = 0;
    while !wr.is_null() {
        // SAFETY: the caller's list.
        let (wqe, next) = unsafe {
            let wqe = RecvWqe {
                wr_id: (*wr).wr_id,
                sges: sges((*wr).sg_list, (*wr).num_sge),
            };
            (wqe, (*wr).next)
        };
        let r = match fault {
            Some(e) => Err(e),
            None => w.post_to_srq(srq, &wqe),
        };
        if let Err(e) = r {
            result = e;
            if !bad.is_null() {
                // SAFETY: the caller's variable.
                unsafe { *bad = wr };
            }
            break;
        }
        wr = next;
    }
    let context = w.srqs.at(srq as usize).map_or(0, |s| s.context);
    let iwarp = w.personality_of(context).is_iwarp();
    w.pump();
    if iwarp { -result } else { result }
}
