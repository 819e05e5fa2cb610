//! Asynchronous events of a context.

use libc::c_int;
use rdma_sys as ffi;

use crate::calls::{Call, enter};
use crate::doorbell::wait_readable;
use crate::ret::minus;
use crate::violations::violation;
use crate::world::{World, changed, world};

/// An event that waits to be read.
#[derive(Clone, Copy, Debug)]
pub struct AsyncEvent {
    pub kind: u32,
    /// The address of the queue pair, completion queue or SRQ; the number of the port.
    pub element: usize,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Qp,
    Cq,
    Srq,
    Port,
}

fn subject(kind: u32) -> Subject {
    match kind {
        ffi::IBV_EVENT_CQ_ERR => Subject::Cq,
        ffi::IBV_EVENT_QP_FATAL
        | ffi::IBV_EVENT_QP_REQ_ERR
        | ffi::IBV_EVENT_QP_ACCESS_ERR
        | ffi::IBV_EVENT_COMM_EST
        | ffi::IBV_EVENT_SQ_DRAINED
        | ffi::IBV_EVENT_PATH_MIG
        | ffi::IBV_EVENT_PATH_MIG_ERR
        | ffi::IBV_EVENT_QP_LAST_WQE_REACHED => Subject::Qp,
        ffi::IBV_EVENT_SRQ_ERR | ffi::IBV_EVENT_SRQ_LIMIT_REACHED => Subject::Srq,
        _ => Subject::Port,
    }
}

impl World {
    /// Queues an event on a context.
    pub fn async_event(&mut self, context: usize, kind: u32, element: usize) {
        if let Some(c) = self.contexts.at_mut(context) {
            c.async_events.push_back(AsyncEvent { kind, element });
            c.bell.ring();
        }
    }

    /// Takes back the events about an object that is about to go.
    pub fn purge_async(&mut self, context: usize, element: usize) {
        if let Some(c) = self.contexts.at_mut(context) {
            c.async_events
                .retain(|e| e.element != element || subject(e.kind) == Subject::Port);
            if c.async_events.is_empty() {
                c.bell.silence();
            }
        }
    }

    /// Counts an event as read (by 1) or acknowledged (by -1) on its object. False: no such object.
    fn account(&mut self, e: AsyncEvent, by: i64) -> bool {
        let counter = match subject(e.kind) {
            Subject::Qp => self.qps.at_mut(e.element).map(|q| &mut q.async_unacked),
            Subject::Cq => self.cqs.at_mut(e.element).map(|c| &mut c.async_unacked),
            Subject::Srq => self.srqs.at_mut(e.element).map(|s| &mut s.async_unacked),
            Subject::Port => return true,
        };
        match counter {
            Some(n) if *n + by >= 0 => *n += by,
            _ => return false,
        }
        true
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_async_event(
    ctx: *mut ffi::ibv_context,
    event: *mut ffi::ibv_async_event,
) -> c_int {
    if let Some(e) = enter(Call::ibv_get_async_event) {
        return minus(e);
    }
    loop {
        let fd = {
            let mut w = world();
            let c = match w.contexts.get(ctx, Call::ibv_get_async_event) {
                Ok(c) => c,
                Err(e) => return minus(e),
            };
            if let Some(e) = c.async_events.pop_front() {
                if c.async_events.is_empty() {
                    c.bell.silence();
                }
                w.account(e, 1);
                // SAFETY: the caller's struct. The union holds a pointer or a number, both in its
                // first bytes.
                unsafe {
                    (*event).event_type = e.kind;
                    (*event).element.qp = e.element as *mut ffi::ibv_qp;
                }
                return 0;
            }
            c.bell.fd()
        };
        if let Err(e) = wait_readable(fd) {
            return minus(e);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_ack_async_event(event: *mut ffi::ibv_async_event) {
    enter(Call::ibv_ack_async_event);
    // SAFETY: the caller's struct, filled by `ibv_get_async_event`.
    let e = unsafe {
        AsyncEvent {
            kind: (*event).event_type,
            element: (*event).element.qp as usize,
        }
    };
    if !world().account(e, -1) {
        violation(&format!(
            "ibv_ack_async_event: event {} of {:#x} is not outstanding",
            e.kind, e.element
        ));
    }
    changed();
}
