//! Queue pairs and shared receive queues on ids.

use libc::{c_int, c_void};
use rdma_sys as ffi;

use crate::calls::{Call, enter};
use crate::cq::destroy_cq;
use crate::qp::{NewQp, destroy_qp, extended, plain};
use crate::ret::{minus, status};
use crate::srq::destroy_srq;
use crate::violations::violation;
use crate::world::{World, world};

impl World {
    /// Makes a queue pair on an id, with completion queues where the program gave none.
    pub fn create_qp_on(
        &mut self,
        id: *mut ffi::rdma_cm_id,
        mut ask: NewQp,
    ) -> Result<ffi::ibv_qp_cap, c_int> {
        let key = id as usize;
        let call = ask.call;
        let i = self.ids.get(id, call)?;
        if i.context == 0 || i.qp != 0 {
            return Err(libc::EINVAL);
        }
        let (context, own_srq) = (i.context, i.own_srq);
        if ask.pd.is_null() {
            // SAFETY: a live id of ours.
            ask.pd = unsafe { (*id).pd };
        }
        if self.pds.get(ask.pd, call)?.context != context {
            return Err(libc::EINVAL);
        }
        let caps = ask.attr.cap;
        let r = (|| {
            if ask.attr.send_cq.is_null() {
                ask.attr.send_cq = self.own_cq(id, 0, caps.max_send_wr)?;
            }
            if ask.attr.recv_cq.is_null() {
                ask.attr.recv_cq = self.own_cq(id, 1, caps.max_recv_wr)?;
            }
            if ask.attr.srq.is_null() {
                ask.attr.srq = own_srq as *mut ffi::ibv_srq;
            }
            self.new_qp(&mut ask)
        })();
        let qp = match r {
            Ok(qp) => qp,
            Err(e) => {
                self.drop_own_cqs(key);
                return Err(e);
            }
        };
        if let Some(q) = self.qps.at_mut(qp as usize) {
            q.id = key;
        }
        self.set_state(qp as usize, ffi::IBV_QPS_INIT);
        if let Some(i) = self.ids.at_mut(key) {
            i.qp = qp as usize;
            // SAFETY: our own allocation.
            unsafe {
                (*i.ffi).qp = qp;
                (*i.ffi).pd = ask.pd;
                (*i.ffi).send_cq = ask.attr.send_cq;
                (*i.ffi).recv_cq = ask.attr.recv_cq;
            }
        }
        Ok(ask.attr.cap)
    }

    fn create_srq_on(
        &mut self,
        id: *mut ffi::rdma_cm_id,
        pd: *mut ffi::ibv_pd,
        (context, attr): (*mut c_void, ffi::ibv_srq_attr),
        call: Call,
    ) -> Result<(), c_int> {
        let i = self.ids.get(id, call)?;
        if i.own_srq != 0 || i.context == 0 {
            return Err(libc::EINVAL);
        }
        // SAFETY: a live id of ours.
        let pd = if pd.is_null() {
            unsafe { (*id).pd }
        } else {
            pd
        };
        let srq = self.new_srq(pd, context, attr)?;
        if let Some(i) = self.ids.at_mut(id as usize) {
            i.own_srq = srq as usize;
            // SAFETY: our own allocation.
            unsafe { (*i.ffi).srq = srq };
        }
        Ok(())
    }

    fn own_cq(
        &mut self,
        id: *mut ffi::rdma_cm_id,
        which: usize,
        size: u32,
    ) -> Result<*mut ffi::ibv_cq, c_int> {
        let context = self.ids.at(id as usize).map_or(0, |i| i.context) as *mut ffi::ibv_context;
        let channel = self.new_channel(context)?;
        let cq = self.new_cq(context, size.max(1) as c_int, id.cast(), channel)?;
        if let Some(i) = self.ids.at_mut(id as usize) {
            if let (Some(c), Some(q)) = (i.own_channels.get_mut(which), i.own_cqs.get_mut(which)) {
                *c = channel as usize;
                *q = cq as usize;
            }
            // SAFETY: our own allocation.
            unsafe {
                if which == 0 {
                    (*i.ffi).send_cq_channel = channel;
                } else {
                    (*i.ffi).recv_cq_channel = channel;
                }
            }
        }
        Ok(cq)
    }

    /// Destroys the completion queues that librdmacm made, where their events are acknowledged.
    fn drop_own_cqs(&mut self, key: usize) {
        let Some(i) = self.ids.at_mut(key) else {
            return;
        };
        let cqs = std::mem::take(&mut i.own_cqs);
        let channels = std::mem::take(&mut i.own_channels);
        for cq in cqs.into_iter().filter(|c| *c != 0) {
            self.remove_cq(cq);
        }
        for channel in channels.into_iter().filter(|c| *c != 0) {
            self.channels.remove(channel);
        }
    }
}

#[unsafe(export_name = "standin_rdma_create_qp")]
unsafe extern "C" fn rdma_create_qp(
    id: *mut ffi::rdma_cm_id,
    pd: *mut ffi::ibv_pd,
    init: *mut ffi::ibv_qp_init_attr,
) -> c_int {
    if let Some(e) = enter(Call::rdma_create_qp) {
        return minus(e);
    }
    let ask = NewQp {
        pd,
        // SAFETY: the caller's struct.
        attr: unsafe { *init },
        send_ops: None,
        call: Call::rdma_create_qp,
    };
    match world().create_qp_on(id, ask) {
        Ok(cap) => {
            // SAFETY: the caller's struct.
            unsafe { (*init).cap = cap };
            0
        }
        Err(e) => minus(e),
    }
}

#[unsafe(export_name = "standin_rdma_create_qp_ex")]
unsafe extern "C" fn rdma_create_qp_ex(
    id: *mut ffi::rdma_cm_id,
    init: *mut ffi::ibv_qp_init_attr_ex,
) -> c_int {
    if let Some(e) = enter(Call::rdma_create_qp_ex) {
        return minus(e);
    }
    let mut w = world();
    // SAFETY: the caller's struct.
    let asked = unsafe { &mut *init };
    let context = w.ids.get(id, Call::rdma_create_qp_ex).map(|i| i.context);
    let r = context
        .map(|c| w.personality_of(c))
        .and_then(|p| extended(asked, p))
        .and_then(|send_ops| {
            let given = asked.comp_mask & ffi::IBV_QP_INIT_ATTR_PD != 0;
            let ask = NewQp {
                pd: if given {
                    asked.pd
                } else {
                    std::ptr::null_mut()
                },
                attr: plain(asked),
                send_ops,
                call: Call::rdma_create_qp_ex,
            };
            w.create_qp_on(id, ask)
        });
    match r {
        Ok(cap) => {
            asked.cap = cap;
            0
        }
        Err(e) => minus(e),
    }
}

#[unsafe(export_name = "standin_rdma_destroy_qp")]
unsafe extern "C" fn rdma_destroy_qp(id: *mut ffi::rdma_cm_id) {
    enter(Call::rdma_destroy_qp);
    destroy_id_qp(id, Call::rdma_destroy_qp);
}

/// Destroys the queue pair of an id and what librdmacm made with it.
pub fn destroy_id_qp(id: *mut ffi::rdma_cm_id, call: Call) {
    let (qp, cqs, channels) = {
        let mut w = world();
        let Ok(i) = w.ids.get(id, call) else {
            return;
        };
        (i.qp, i.own_cqs, i.own_channels)
    };
    if qp == 0 {
        violation(&format!("{}: the id has no queue pair", call.name()));
        return;
    }
    if destroy_qp(qp as *mut ffi::ibv_qp, call).is_err() {
        return;
    }
    let mut w = world();
    if let Some(i) = w.ids.at_mut(id as usize) {
        i.qp = 0;
        i.own_cqs = [0; 2];
        i.own_channels = [0; 2];
        // SAFETY: our own allocation.
        unsafe {
            (*i.ffi).qp = std::ptr::null_mut();
            (*i.ffi).send_cq = std::ptr::null_mut();
            (*i.ffi).recv_cq = std::ptr::null_mut();
            (*i.ffi).send_cq_channel = std::ptr::null_mut();
            (*i.ffi).recv_cq_channel = std::ptr::null_mut();
        }
    }
    drop(w);
    for cq in cqs.into_iter().filter(|c| *c != 0) {
        let _ = destroy_cq(cq as *mut ffi::ibv_cq);
    }
    for channel in channels.into_iter().filter(|c| *c != 0) {
        let _ = world().destroy_channel(channel as *mut ffi::ibv_comp_channel);
    }
}

#[unsafe(export_name = "standin_rdma_create_srq")]
unsafe extern "C" fn rdma_create_srq(
    id: *mut ffi::rdma_cm_id,
    pd: *mut ffi::ibv_pd,
    init: *mut ffi::ibv_srq_init_attr,
) -> c_int {
    if let Some(e) = enter(Call::rdma_create_srq) {
        return minus(e);
    }
    // SAFETY: the caller's struct.
    let ask = unsafe { ((*init).srq_context, (*init).attr) };
    status(world().create_srq_on(id, pd, ask, Call::rdma_create_srq))
}

#[unsafe(export_name = "standin_rdma_create_srq_ex")]
unsafe extern "C" fn rdma_create_srq_ex(
    id: *mut ffi::rdma_cm_id,
    init: *mut ffi::ibv_srq_init_attr_ex,
) -> c_int {
    if let Some(e) = enter(Call::rdma_create_srq_ex) {
        return minus(e);
    }
    // SAFETY: the caller's struct.
    let asked = unsafe { &mut *init };
    let known = ffi::IBV_SRQ_INIT_ATTR_TYPE | ffi::IBV_SRQ_INIT_ATTR_PD;
    let basic =
        asked.comp_mask & ffi::IBV_SRQ_INIT_ATTR_TYPE == 0 || asked.srq_type == ffi::IBV_SRQT_BASIC;
    if asked.comp_mask & !known != 0 || !basic {
        return minus(libc::EOPNOTSUPP);
    }
    let given = asked.comp_mask & ffi::IBV_SRQ_INIT_ATTR_PD != 0;
    let pd = if given {
        asked.pd
    } else {
        std::ptr::null_mut()
    };
    status(world().create_srq_on(
        id,
        pd,
        (asked.srq_context, asked.attr),
        Call::rdma_create_srq_ex,
    ))
}

#[unsafe(export_name = "standin_rdma_destroy_srq")]
unsafe extern "C" fn rdma_destroy_srq(id: *mut ffi::rdma_cm_id) {
    enter(Call::rdma_destroy_srq);
    let srq = {
        let mut w = world();
        let Ok(i) = w.ids.get(id, Call::rdma_destroy_srq) else {
            return;
        };
        i.own_srq
    };
    if destroy_srq(srq as *mut ffi::ibv_srq).is_ok() {
        if let Some(i) = world().ids.at_mut(id as usize) {
            i.own_srq = 0;
            // SAFETY: our own allocation.
            unsafe { (*i.ffi).srq = std::ptr::null_mut() };
        }
    }
}
