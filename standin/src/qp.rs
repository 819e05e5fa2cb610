//! Queue pairs: their making, states and end.

use std::collections::VecDeque;

use libc::{c_int, c_uint};
use rdma_sys as ffi;

use crate::calls::{Call, destroying, enter};
use crate::config::Personality;
use crate::null::{self, QpMemory};
use crate::qp_ex;
use crate::ret::{code, pointer};
use crate::table::{Object, allocate};
use crate::violations::violation;
use crate::world::{World, changed, wait_until, world};
use crate::wqe::{RecvWqe, SendWqe};

const MAX_WR: u32 = 16384;
const MAX_SGE: u32 = 30;

/// All that an extended queue pair of this stand-in can do.
const SEND_OPS: u64 = (ffi::IBV_QP_EX_WITH_RDMA_WRITE
    | ffi::IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
    | ffi::IBV_QP_EX_WITH_SEND
    | ffi::IBV_QP_EX_WITH_SEND_WITH_IMM
    | ffi::IBV_QP_EX_WITH_RDMA_READ
    | ffi::IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
    | ffi::IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD) as u64;
/// And what a device with native flush adds.
const FLUSH_OPS: u64 = (ffi::IBV_QP_EX_WITH_FLUSH | ffi::IBV_QP_EX_WITH_ATOMIC_WRITE) as u64;

/// A queue pair.
pub struct Qp {
    ffi: *mut QpMemory,
    pub context: usize,
    pub pd: usize,
    pub send_cq: usize,
    pub recv_cq: usize,
    pub srq: usize,
    pub number: u32,
    pub state: u32,
    pub cap: ffi::ibv_qp_cap,
    pub signal_all: bool,
    /// What the extended calls may do; None: not extended.
    pub send_ops: Option<u64>,
    /// What a peer may do through this queue pair.
    pub access: c_uint,
    /// The peer's number.
    pub remote: u32,
    pub rnr_retry: u8,
    pub attr: ffi::ibv_qp_attr,
    pub send: VecDeque<SendWqe>,
    pub send_posted: u64,
    pub send_freed: u64,
    pub recv: VecDeque<RecvWqe>,
    pub recv_used: u32,
    pub async_unacked: i64,
    /// Its first request is being executed.
    pub executing: bool,
    /// It reached the error state once.
    pub failed: bool,
    /// The id that it was made on.
    pub id: usize,
    pub builder: qp_ex::Builder,
}

// SAFETY: the pointers are only followed under the world's lock, or by the program.
unsafe impl Send for Qp {}

impl Object for Qp {
    type Ffi = ffi::ibv_qp;
    const KIND: &'static str = "queue pair";
    fn ffi(&self) -> *mut ffi::ibv_qp {
        self.ffi.cast()
    }
}

/// What a new queue pair is to be.
pub struct NewQp {
    pub pd: *mut ffi::ibv_pd,
    pub attr: ffi::ibv_qp_init_attr,
    pub send_ops: Option<u64>,
    pub call: Call,
}

impl World {
    /// Makes a queue pair.
    pub fn new_qp(&mut self, ask: &mut NewQp) -> Result<*mut ffi::ibv_qp, c_int> {
        let context = self.pds.get(ask.pd, ask.call)?.context;
        let a = &mut ask.attr;
        let send_cq = self.cqs.get(a.send_cq, ask.call)?;
        let ring = send_cq.ffi().cast::<null::CqMemory>();
        let same = send_cq.context == context;
        let same = same && self.cqs.get(a.recv_cq, ask.call)?.context == context;
        if !a.srq.is_null() {
            self.srqs.get(a.srq, ask.call)?;
        }
        let personality = self.personality_of(context);
        if !same
            || a.qp_type != ffi::IBV_QPT_RC
            || a.cap.max_send_wr > MAX_WR
            || a.cap.max_recv_wr > MAX_WR
            || a.cap.max_send_sge > MAX_SGE
            || a.cap.max_recv_sge > MAX_SGE
            || a.cap.max_inline_data > personality.max_inline()
        {
            return Err(libc::EINVAL);
        }
        if let Some(ops) = ask.send_ops {
            let has = if personality.has_flush() {
                SEND_OPS | FLUSH_OPS
            } else {
                SEND_OPS
            };
            if !personality.has_qp_ex() || ops & !has != 0 {
                return Err(libc::EOPNOTSUPP);
            }
        }
        if !a.srq.is_null() {
            a.cap.max_recv_wr = 0;
            a.cap.max_recv_sge = 0;
        }
        let number = self.number();
        let p = allocate::<QpMemory>();
        // SAFETY: a fresh struct.
        unsafe {
            let qp = &mut (*p).qp.qp_base;
            qp.context = context as *mut ffi::ibv_context;
            qp.qp_context = a.qp_context;
            qp.pd = ask.pd;
            qp.send_cq = a.send_cq;
            qp.recv_cq = a.recv_cq;
            qp.srq = a.srq;
            qp.handle = number;
            qp.qp_num = number;
            qp.state = ffi::IBV_QPS_RESET;
            qp.qp_type = a.qp_type;
            (*p).send_cq = ring;
            if let Some(ops) = ask.send_ops {
                qp_ex::fill(&mut (*p).qp, ops);
                if self.config.null {
                    null::fill(&mut (*p).qp);
                }
            }
        }
        let qp = self.qps.insert(Qp {
            ffi: p,
            context,
            pd: ask.pd as usize,
            send_cq: a.send_cq as usize,
            recv_cq: a.recv_cq as usize,
            srq: a.srq as usize,
            number,
            state: ffi::IBV_QPS_RESET,
            cap: a.cap,
            signal_all: a.sq_sig_all != 0,
            send_ops: ask.send_ops,
            access: 0,
            remote: 0,
            rnr_retry: 7,
            attr: ffi::ibv_qp_attr::default(),
            send: VecDeque::new(),
            send_posted: 0,
            send_freed: 0,
            recv: VecDeque::new(),
            recv_used: 0,
            async_unacked: 0,
            executing: false,
            failed: false,
            id: 0,
            builder: qp_ex::Builder::default(),
        });
        self.qp_numbers.insert(number, qp as usize);
        Ok(qp)
    }

    /// Moves a queue pair to a state; wakes what waited for it.
    pub fn set_state(&mut self, key: usize, state: u32) {
        let Some(q) = self.qps.at_mut(key) else {
            return;
        };
        q.state = state;
        // SAFETY: our own allocation.
        unsafe { (*q.ffi).qp.qp_base.state = state };
        match state {
            ffi::IBV_QPS_ERR => self.qp_to_error(key),
            ffi::IBV_QPS_RESET => {
                q.send.clear();
                q.recv.clear();
                q.send_freed = q.send_posted;
                q.recv_used = 0;
                q.remote = 0;
                q.failed = false;
            }
            _ => {
                let number = q.number;
                self.kick(key);
                self.kick_senders_to(number);
            }
        }
    }

    /// Connects the queue pair of an id to a peer's, ready to send.
    pub fn connect_qp(&mut self, id: usize, remote: u32, retry: u8, rnr_retry: u8) {
        let Some(i) = self.ids.at(id) else {
            return;
        };
        let (key, timeout, ours, theirs) = (i.qp, i.ack_timeout, i.offer, i.offered);
        let Some(q) = self.qps.at_mut(key) else {
            return;
        };
        q.attr.timeout = timeout;
        q.attr.max_rd_atomic = ours.initiator_depth.min(theirs.responder_resources);
        q.attr.max_dest_rd_atomic = ours.responder_resources.min(theirs.initiator_depth);
        q.remote = remote;
        q.attr.retry_cnt = retry;
        q.rnr_retry = rnr_retry;
        q.access = ffi::IBV_ACCESS_LOCAL_WRITE
            | ffi::IBV_ACCESS_REMOTE_WRITE
            | ffi::IBV_ACCESS_REMOTE_READ
            | ffi::IBV_ACCESS_REMOTE_ATOMIC
            | ffi::IBV_ACCESS_FLUSH_GLOBAL
            | ffi::IBV_ACCESS_FLUSH_PERSISTENT;
        self.set_state(key, ffi::IBV_QPS_RTS);
    }

    fn modify_qp(
        &mut self,
        qp: *mut ffi::ibv_qp,
        attr: &ffi::ibv_qp_attr,
        mask: c_uint,
    ) -> Result<(), c_int> {
        let key = qp as usize;
        let q = self.qps.get(qp, Call::ibv_modify_qp)?;
        let has = |bit: c_uint| mask & bit != 0;
        if has(ffi::IBV_QP_STATE) {
            use ffi::{IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RESET, IBV_QPS_RTR, IBV_QPS_RTS};
            let legal = matches!(
                (q.state, attr.qp_state),
                (_, IBV_QPS_RESET | IBV_QPS_ERR)
                    | (IBV_QPS_RESET | IBV_QPS_INIT, IBV_QPS_INIT)
                    | (IBV_QPS_INIT, IBV_QPS_RTR)
                    | (IBV_QPS_RTR | IBV_QPS_RTS, IBV_QPS_RTS)
            );
            let complete = attr.qp_state != IBV_QPS_RTR || has(ffi::IBV_QP_DEST_QPN);
            if !legal || !complete {
                return Err(libc::EINVAL);
            }
        }
        if has(ffi::IBV_QP_ACCESS_FLAGS) {
            q.access = attr.qp_access_flags;
        }
        if has(ffi::IBV_QP_DEST_QPN) {
            q.remote = attr.dest_qp_num;
        }
        if has(ffi::IBV_QP_RNR_RETRY) {
            q.rnr_retry = attr.rnr_retry;
        }
        if has(ffi::IBV_QP_TIMEOUT) {
            q.attr.timeout = attr.timeout;
        }
        if has(ffi::IBV_QP_RETRY_CNT) {
            q.attr.retry_cnt = attr.retry_cnt;
        }
        if has(ffi::IBV_QP_MIN_RNR_TIMER) {
            q.attr.min_rnr_timer = attr.min_rnr_timer;
        }
        if has(ffi::IBV_QP_MAX_QP_RD_ATOMIC) {
            q.attr.max_rd_atomic = attr.max_rd_atomic;
        }
        if has(ffi::IBV_QP_MAX_DEST_RD_ATOMIC) {
            q.attr.max_dest_rd_atomic = attr.max_dest_rd_atomic;
        }
        if has(ffi::IBV_QP_STATE) {
            self.set_state(key, attr.qp_state);
        }
        Ok(())
    }

    /// Takes a queue pair out. Its events were acknowledged.
    pub fn remove_qp(&mut self, key: usize) {
        let Some(q) = self.qps.remove(key) else {
            return;
        };
        self.qp_numbers.remove(&q.number);
        self.purge_async(q.context, key);
        self.clean_cq(q.send_cq, key, q.number);
        if q.recv_cq != q.send_cq {
            self.clean_cq(q.recv_cq, key, q.number);
        }
        // TCP ends with its socket: iWARP's other side finds the stream lost.
        let peer = self.qp_numbers.get(&q.remote).copied();
        let peer = peer.filter(|p| self.qps.at(*p).is_some_and(|p| p.remote == q.number));
        if let (Some(peer), true) = (peer, self.personality_of(q.context).is_iwarp()) {
            self.qp_to_error(peer);
            self.stream_lost(peer);
        }
        self.kick_senders_to(q.number);
        changed();
    }

    /// Puts the extended calls of every queue pair in place again, after null mode was switched.
    pub fn refill_qps(&mut self) {
        for (_, q) in self.qps.iter() {
            let Some(ops) = q.send_ops else {
                continue;
            };
            // SAFETY: our own allocation; whoever switches null mode has no call in flight.
            unsafe {
                qp_ex::fill(&mut (*q.ffi).qp, ops);
                if self.config.null {
                    null::fill(&mut (*q.ffi).qp);
                }
            }
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_qp(
    pd: *mut ffi::ibv_pd,
    init: *mut ffi::ibv_qp_init_attr,
) -> *mut ffi::ibv_qp {
    if let Some(e) = enter(Call::ibv_create_qp) {
        return pointer(Err(e));
    }
    let mut ask = NewQp {
        pd,
        // SAFETY: the caller's struct.
        attr: unsafe { *init },
        send_ops: None,
        call: Call::ibv_create_qp,
    };
    let r = world().new_qp(&mut ask);
    if r.is_ok() {
        // SAFETY: the caller's struct.
        unsafe { (*init).cap = ask.attr.cap };
    }
    pointer(r)
}

/// What of an extended request a plain one has.
pub fn plain(init: &ffi::ibv_qp_init_attr_ex) -> ffi::ibv_qp_init_attr {
    ffi::ibv_qp_init_attr {
        qp_context: init.qp_context,
        send_cq: init.send_cq,
        recv_cq: init.recv_cq,
        srq: init.srq,
        cap: init.cap,
        qp_type: init.qp_type,
        sq_sig_all: init.sq_sig_all,
    }
}

/// What an extended request asks for beyond a plain one; EOPNOTSUPP for what this device cannot do.
pub fn extended(
    init: &ffi::ibv_qp_init_attr_ex,
    personality: Personality,
) -> Result<Option<u64>, c_int> {
    let known = ffi::IBV_QP_INIT_ATTR_PD
        | ffi::IBV_QP_INIT_ATTR_CREATE_FLAGS
        | ffi::IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    if init.comp_mask & !known != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    if init.comp_mask & ffi::IBV_QP_INIT_ATTR_SEND_OPS_FLAGS == 0 {
        return Ok(None);
    }
    if !personality.has_qp_ex() {
        return Err(libc::EOPNOTSUPP);
    }
    Ok(Some(init.send_ops_flags))
}

/// `verbs_context.create_qp_ex`.
pub unsafe extern "C" fn create_qp_ex(
    ctx: *mut ffi::ibv_context,
    init: *mut ffi::ibv_qp_init_attr_ex,
) -> *mut ffi::ibv_qp {
    if let Some(e) = enter(Call::ibv_create_qp_ex) {
        return pointer(Err(e));
    }
    let mut w = world();
    let personality = w
        .contexts
        .get(ctx, Call::ibv_create_qp_ex)
        .map(|c| c.personality);
    // SAFETY: the caller's struct.
    let asked = unsafe { &mut *init };
    let r = personality
        .and_then(|p| extended(asked, p))
        .and_then(|send_ops| {
            let mut ask = NewQp {
                pd: asked.pd,
                attr: plain(asked),
                send_ops,
                call: Call::ibv_create_qp_ex,
            };
            let qp = w.new_qp(&mut ask)?;
            asked.cap = ask.attr.cap;
            Ok(qp)
        });
    pointer(r)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_modify_qp(
    qp: *mut ffi::ibv_qp,
    attr: *mut ffi::ibv_qp_attr,
    mask: c_int,
) -> c_int {
    match enter(Call::ibv_modify_qp) {
        Some(e) => e,
        // SAFETY: the caller's struct.
        None => code(world().modify_qp(qp, unsafe { &*attr }, mask as c_uint)),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_qp(
    qp: *mut ffi::ibv_qp,
    attr: *mut ffi::ibv_qp_attr,
    _mask: c_int,
    init: *mut ffi::ibv_qp_init_attr,
) -> c_int {
    if let Some(e) = enter(Call::ibv_query_qp) {
        return e;
    }
    let mut w = world();
    let q = match w.qps.get(qp, Call::ibv_query_qp) {
        Ok(q) => q,
        Err(e) => return e,
    };
    // SAFETY: the caller's structs, and our own.
    unsafe {
        let mut a = q.attr;
        a.qp_state = q.state;
        a.cur_qp_state = q.state;
        a.path_mtu = ffi::IBV_MTU_1024;
        a.dest_qp_num = q.remote;
        a.qp_access_flags = q.access;
        a.rnr_retry = q.rnr_retry;
        a.cap = q.cap;
        a.port_num = 1;
        *attr = a;
        let ours = &(*q.ffi).qp.qp_base;
        *init = ffi::ibv_qp_init_attr {
            qp_context: ours.qp_context,
            send_cq: ours.send_cq,
            recv_cq: ours.recv_cq,
            srq: ours.srq,
            cap: q.cap,
            qp_type: ours.qp_type,
            sq_sig_all: c_int::from(q.signal_all),
        };
        (*q.ffi).qp.qp_base.state = q.state;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_qp(qp: *mut ffi::ibv_qp) -> c_int {
    let call = Call::ibv_destroy_qp;
    code(destroying(call, || destroy_qp(qp, call)))
}

/// Destroys a queue pair, as the program or librdmacm asks.
pub fn destroy_qp(qp: *mut ffi::ibv_qp, call: Call) -> Result<(), c_int> {
    let key = qp as usize;
    let mut w = world();
    w.qps.get(qp, call)?;
    let settled = |w: &World| w.qps.at(key).is_none_or(|q| q.async_unacked == 0);
    let (mut w, ready) = wait_until(w, settled);
    if !ready {
        violation(&format!(
            "{}: events are not acknowledged: the real call would hang",
            call.name()
        ));
        return Err(libc::EBUSY);
    }
    w.remove_qp(key);
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_qp_to_qp_ex(qp: *mut ffi::ibv_qp) -> *mut ffi::ibv_qp_ex {
    enter(Call::ibv_qp_to_qp_ex);
    match world().qps.get(qp, Call::ibv_qp_to_qp_ex) {
        Ok(q) if q.send_ops.is_some() => qp.cast(),
        _ => std::ptr::null_mut(),
    }
}
