//! Completion channels and completion queues.

use std::collections::VecDeque;

use libc::{c_int, c_uint, c_void};
use rdma_sys as ffi;

use crate::calls::{Call, destroying, enter};
use crate::config::Personality;
use crate::doorbell::{Doorbell, wait_readable};
use crate::null::{self, Ring};
use crate::ret::{code, minus, pointer, set_errno};
use crate::table::{Object, allocate};
use crate::violations::{still_in_use, violation};
use crate::world::{World, changed, wait_until, world};

/// The largest completion queue.
const MAX_CQE: c_int = 65535;

/// A completion channel.
pub struct Channel {
    ffi: *mut ffi::ibv_comp_channel,
    pub context: usize,
    bell: Doorbell,
    /// Completion queues with an event to be read.
    queue: VecDeque<usize>,
}

// SAFETY: the pointer is only followed under the world's lock, or by the program.
unsafe impl Send for Channel {}

impl Object for Channel {
    type Ffi = ffi::ibv_comp_channel;
    const KIND: &'static str = "completion channel";
    fn ffi(&self) -> *mut ffi::ibv_comp_channel {
        self.ffi
    }
}

/// What a completion queue will report next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Armed {
    No,
    Any,
    Solicited,
}

/// A completion queue.
pub struct Cq {
    ffi: *mut null::CqMemory,
    pub context: usize,
    channel: usize,
    capacity: usize,
    queue: VecDeque<Cqe>,
    armed: Armed,
    unacked: i64,
    /// The completion that the extended readers tell of.
    pub current: Option<ffi::ibv_wc>,
    pub async_unacked: i64,
    overrun: bool,
}

// SAFETY: as for Channel.
unsafe impl Send for Cq {}

impl Object for Cq {
    type Ffi = ffi::ibv_cq;
    const KIND: &'static str = "completion queue";
    fn ffi(&self) -> *mut ffi::ibv_cq {
        self.ffi.cast()
    }
}

/// A completion, and what its polling sets free.
#[derive(Clone, Copy)]
pub struct Cqe {
    pub wc: ffi::ibv_wc,
    pub frees: Frees,
    pub solicited: bool,
}

/// Slots of a work queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frees {
    /// The send queue's, up to this one (counted from the first ever posted).
    Send { qp: usize, up_to: u64 },
    /// One of the receive queue's.
    Recv { qp: usize },
    /// One of the shared receive queue's.
    Srq { srq: usize },
}

impl World {
    fn create_channel(
        &mut self,
        ctx: *mut ffi::ibv_context,
    ) -> Result<*mut ffi::ibv_comp_channel, c_int> {
        self.contexts.get(ctx, Call::ibv_create_comp_channel)?;
        self.new_channel(ctx)
    }

    pub fn new_channel(
        &mut self,
        ctx: *mut ffi::ibv_context,
    ) -> Result<*mut ffi::ibv_comp_channel, c_int> {
        let bell = Doorbell::new()?;
        let p = allocate::<ffi::ibv_comp_channel>();
        // SAFETY: a fresh struct.
        unsafe {
            (*p).context = ctx;
            (*p).fd = bell.fd();
        }
        Ok(self.channels.insert(Channel {
            ffi: p,
            context: ctx as usize,
            bell,
            queue: VecDeque::new(),
        }))
    }

    pub fn destroy_channel(&mut self, ch: *mut ffi::ibv_comp_channel) -> Result<(), c_int> {
        self.channels.get(ch, Call::ibv_destroy_comp_channel)?;
        let users = self
            .cqs
            .iter()
            .filter(|(_, c)| c.channel == ch as usize)
            .count();
        if users > 0 {
            still_in_use(&format!(
                "ibv_destroy_comp_channel: {users} completion queues still use the channel"
            ));
            return Err(libc::EBUSY);
        }
        self.channels.remove(ch as usize);
        Ok(())
    }

    /// What a new completion queue is to belong to.
    pub fn check_cq(
        &mut self,
        ctx: *mut ffi::ibv_context,
        channel: *mut ffi::ibv_comp_channel,
        vector: c_int,
        call: Call,
    ) -> Result<(), c_int> {
        self.contexts.get(ctx, call)?;
        if !channel.is_null() && self.channels.get(channel, call)?.context != ctx as usize {
            return Err(libc::EINVAL);
        }
        if !(0..2).contains(&vector) {
            return Err(libc::EINVAL);
        }
        Ok(())
    }

    pub fn new_cq(
        &mut self,
        ctx: *mut ffi::ibv_context,
        cqe: c_int,
        cq_context: *mut c_void,
        channel: *mut ffi::ibv_comp_channel,
    ) -> Result<*mut ffi::ibv_cq, c_int> {
        if !(1..=MAX_CQE).contains(&cqe) {
            return Err(libc::EINVAL);
        }
        let p = allocate::<null::CqMemory>();
        let handle = self.number();
        // SAFETY: a fresh struct.
        unsafe {
            (*p).cq.context = ctx;
            (*p).cq.channel = channel;
            (*p).cq.cq_context = cq_context;
            (*p).cq.handle = handle;
            (*p).cq.cqe = cqe;
            (*p).ring = Ring::new(cqe as u32);
        }
        if let Some(c) = self.channels.at_mut(channel as usize) {
            // SAFETY: our own allocation.
            unsafe { (*c.ffi).refcnt += 1 };
        }
        Ok(self.cqs.insert(Cq {
            ffi: p,
            context: ctx as usize,
            channel: channel as usize,
            capacity: cqe as usize,
            queue: VecDeque::new(),
            armed: Armed::No,
            unacked: 0,
            current: None,
            async_unacked: 0,
            overrun: false,
        }))
    }

    /// Who still uses a completion queue.
    pub fn cq_users(&self, cq: usize) -> usize {
        self.qps
            .iter()
            .filter(|(_, q)| q.send_cq == cq || q.recv_cq == cq)
            .count()
    }

    /// Takes a completion queue out. The checks were made.
    pub fn remove_cq(&mut self, key: usize) {
        let Some(cq) = self.cqs.remove(key) else {
            return;
        };
        if let Some(c) = self.channels.at_mut(cq.channel) {
            c.queue.retain(|q| *q != key);
            if c.queue.is_empty() {
                c.bell.silence();
            }
            // SAFETY: our own allocation.
            unsafe { (*c.ffi).refcnt -= 1 };
        }
        self.purge_async(cq.context, key);
        // SAFETY: the ring was made with the queue; its memory lies in quarantine still.
        unsafe { (*cq.ffi).ring.free() };
    }

    /// Puts a completion into its queue.
    pub fn complete(&mut self, cq_key: usize, cqe: Cqe) {
        let Some(cq) = self.cqs.at_mut(cq_key) else {
            return;
        };
        if cq.overrun {
            return;
        }
        if cq.queue.len() >= cq.capacity {
            cq.overrun = true;
            let context = cq.context;
            self.async_event(context, ffi::IBV_EVENT_CQ_ERR, cq_key);
            self.fail_users_of(cq_key);
            return;
        }
        cq.queue.push_back(cqe);
        let report = match cq.armed {
            Armed::No => false,
            Armed::Any => true,
            Armed::Solicited => cqe.solicited || cqe.wc.status != ffi::IBV_WC_SUCCESS,
        };
        if report {
            cq.armed = Armed::No;
            let channel = cq.channel;
            if let Some(c) = self.channels.at_mut(channel) {
                c.queue.push_back(cq_key);
                c.bell.ring();
            }
        }
    }

    /// An overrun queue takes its queue pairs with it.
    fn fail_users_of(&mut self, cq: usize) {
        let users: Vec<usize> = self
            .qps
            .iter()
            .filter(|(_, q)| q.send_cq == cq || q.recv_cq == cq)
            .map(|(k, _)| k)
            .collect();
        for qp in users {
            let context = self.qps.at(qp).map_or(0, |q| q.context);
            self.async_event(context, ffi::IBV_EVENT_QP_FATAL, qp);
            self.qp_to_error(qp);
        }
    }

    /// Takes up to `n` completions.
    pub fn poll(
        &mut self,
        cq: *mut ffi::ibv_cq,
        n: usize,
        call: Call,
    ) -> Result<Vec<ffi::ibv_wc>, c_int> {
        let cq = self.cqs.get(cq, call)?;
        let n = n.min(cq.queue.len());
        let taken: Vec<Cqe> = cq.queue.drain(..n).collect();
        for cqe in &taken {
            match cqe.frees {
                Frees::Send { qp, up_to } => {
                    if let Some(q) = self.qps.at_mut(qp) {
                        q.send_freed = q.send_freed.max(up_to);
                    }
                }
                Frees::Recv { qp } => {
                    if let Some(q) = self.qps.at_mut(qp) {
                        q.recv_used = q.recv_used.saturating_sub(1);
                    }
                }
                Frees::Srq { srq } => {
                    if let Some(s) = self.srqs.at_mut(srq) {
                        s.used = s.used.saturating_sub(1);
                    }
                }
            }
        }
        Ok(taken.iter().map(|c| c.wc).collect())
    }

    /// The completions of a destroyed queue pair vanish where the provider cleans up (mlx5), and
    /// stay elsewhere.
    pub fn clean_cq(&mut self, cq: usize, qp: usize, qp_num: u32) {
        let Some(c) = self.cqs.at_mut(cq) else {
            return;
        };
        let context = c.context;
        if self.personality_of(context) != Personality::Mlx5 {
            return;
        }
        let mut srq_slots = Vec::new();
        if let Some(c) = self.cqs.at_mut(cq) {
            c.queue.retain(|e| match e.frees {
                Frees::Send { qp: q, .. } | Frees::Recv { qp: q } => q != qp,
                Frees::Srq { srq } if e.wc.qp_num == qp_num => {
                    srq_slots.push(srq);
                    false
                }
                Frees::Srq { .. } => true,
            });
        }
        for srq in srq_slots {
            if let Some(s) = self.srqs.at_mut(srq) {
                s.used = s.used.saturating_sub(1);
            }
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_comp_channel(
    ctx: *mut ffi::ibv_context,
) -> *mut ffi::ibv_comp_channel {
    match enter(Call::ibv_create_comp_channel) {
        Some(e) => pointer(Err(e)),
        None => pointer(world().create_channel(ctx)),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_comp_channel(ch: *mut ffi::ibv_comp_channel) -> c_int {
    let destroy = || world().destroy_channel(ch);
    code(destroying(Call::ibv_destroy_comp_channel, destroy))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_cq(
    ctx: *mut ffi::ibv_context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut ffi::ibv_comp_channel,
    vector: c_int,
) -> *mut ffi::ibv_cq {
    if let Some(e) = enter(Call::ibv_create_cq) {
        return pointer(Err(e));
    }
    let mut w = world();
    let r = w.check_cq(ctx, channel, vector, Call::ibv_create_cq);
    pointer(r.and_then(|()| w.new_cq(ctx, cqe, cq_context, channel)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_resize_cq(cq: *mut ffi::ibv_cq, cqe: c_int) -> c_int {
    if let Some(e) = enter(Call::ibv_resize_cq) {
        return e;
    }
    let mut w = world();
    let c = match w.cqs.get(cq, Call::ibv_resize_cq) {
        Ok(c) => c,
        Err(e) => return e,
    };
    if !(1..=MAX_CQE).contains(&cqe) || (cqe as usize) < c.queue.len() {
        return libc::EINVAL;
    }
    c.capacity = cqe as usize;
    // SAFETY: our own allocation.
    unsafe { (*c.ffi).cq.cqe = cqe };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_cq(cq: *mut ffi::ibv_cq) -> c_int {
    code(destroying(Call::ibv_destroy_cq, || destroy_cq(cq)))
}

/// Destroys a completion queue, as the program or librdmacm asks.
pub fn destroy_cq(cq: *mut ffi::ibv_cq) -> Result<(), c_int> {
    let key = cq as usize;
    let mut w = world();
    w.cqs.get(cq, Call::ibv_destroy_cq)?;
    let users = w.cq_users(key);
    if users > 0 {
        still_in_use(&format!(
            "ibv_destroy_cq: {users} queue pairs still use the completion queue"
        ));
        return Err(libc::EBUSY);
    }
    let settled = |w: &World| {
        w.cqs
            .at(key)
            .is_none_or(|c| c.unacked == 0 && c.async_unacked == 0)
    };
    let (mut w, ready) = wait_until(w, settled);
    if !ready {
        violation("ibv_destroy_cq: events are not acknowledged: the real call would hang");
        return Err(libc::EBUSY);
    }
    w.remove_cq(key);
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_cq_event(
    ch: *mut ffi::ibv_comp_channel,
    cq: *mut *mut ffi::ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    if let Some(e) = enter(Call::ibv_get_cq_event) {
        return minus(e);
    }
    loop {
        let fd = {
            let mut w = world();
            let c = match w.channels.get(ch, Call::ibv_get_cq_event) {
                Ok(c) => c,
                Err(e) => return minus(e),
            };
            if let Some(key) = c.queue.pop_front() {
                if c.queue.is_empty() {
                    c.bell.silence();
                }
                if let Some(q) = w.cqs.at_mut(key) {
                    q.unacked += 1;
                    // SAFETY: the caller's variables; our own struct.
                    unsafe {
                        *cq = q.ffi.cast();
                        *cq_context = (*q.ffi).cq.cq_context;
                    }
                    return 0;
                }
                continue;
            }
            c.bell.fd()
        };
        if let Err(e) = wait_readable(fd) {
            return minus(e);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_ack_cq_events(cq: *mut ffi::ibv_cq, n: c_uint) {
    enter(Call::ibv_ack_cq_events);
    let mut w = world();
    if let Ok(c) = w.cqs.get(cq, Call::ibv_ack_cq_events) {
        if i64::from(n) > c.unacked {
            violation(&format!(
                "ibv_ack_cq_events: {n} acknowledged, {} outstanding",
                c.unacked
            ));
        }
        c.unacked = (c.unacked - i64::from(n)).max(0);
        // SAFETY: our own allocation.
        unsafe { (*c.ffi).cq.comp_events_completed += n };
    }
    drop(w);
    changed();
}

/// `ibv_context.ops.poll_cq`.
pub unsafe extern "C" fn poll_cq(cq: *mut ffi::ibv_cq, n: c_int, wc: *mut ffi::ibv_wc) -> c_int {
    if let Some(e) = enter(Call::ibv_poll_cq) {
        set_errno(e);
        return -1;
    }
    match world().poll(cq, usize::try_from(n).unwrap_or(0), Call::ibv_poll_cq) {
        Ok(taken) => {
            for (i, t) in taken.iter().enumerate() {
                // SAFETY: the caller has room for `n`.
                unsafe { wc.add(i).write(*t) };
            }
            taken.len() as c_int
        }
        Err(e) => minus(e),
    }
}

/// `ibv_context.ops.req_notify_cq`.
pub unsafe extern "C" fn req_notify_cq(cq: *mut ffi::ibv_cq, solicited_only: c_int) -> c_int {
    if let Some(e) = enter(Call::ibv_req_notify_cq) {
        return e;
    }
    let mut w = world();
    match w.cqs.get(cq, Call::ibv_req_notify_cq) {
        Ok(c) => {
            // Asking for everything is not undone by asking for less.
            if solicited_only == 0 {
                c.armed = Armed::Any;
            } else if c.armed == Armed::No {
                c.armed = Armed::Solicited;
            }
            0
        }
        Err(e) => e,
    }
}

/// Counts for the report: events read and not acknowledged.
pub fn unacked(w: &World) -> u64 {
    w.cqs
        .iter()
        .map(|(_, c)| (c.unacked + c.async_unacked).max(0) as u64)
        .sum()
}
