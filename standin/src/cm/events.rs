//! Event channels: making, reading, acknowledging, moving ids between them.

use std::collections::VecDeque;

use libc::{c_int, c_void};
use rdma_sys as ffi;

use super::{CmEventState, EventChannel, Pending, State};
use crate::calls::{Call, enter};
use crate::doorbell::{Doorbell, wait_readable};
use crate::ret::{minus, pointer, status};
use crate::table::allocate;
use crate::violations::{still_in_use, violation};
use crate::world::{World, changed, wait_until, world};

impl World {
    /// A new event channel.
    pub fn new_event_channel(
        &mut self,
        private: bool,
    ) -> Result<*mut ffi::rdma_event_channel, c_int> {
        let bell = Doorbell::new()?;
        let p = allocate::<ffi::rdma_event_channel>();
        // SAFETY: a fresh struct.
        unsafe { (*p).fd = bell.fd() };
        Ok(self.event_channels.insert(EventChannel {
            ffi: p,
            bell,
            queue: VecDeque::new(),
            private,
        }))
    }

    /// Takes back the unread events of an id; gives those that were connection requests.
    pub fn purge_events(&mut self, id: usize) -> Vec<Pending> {
        let channel = self.ids.at(id).map_or(0, |i| i.channel);
        let Some(c) = self.event_channels.at_mut(channel) else {
            return Vec::new();
        };
        let mut gone = Vec::new();
        let mut kept = VecDeque::new();
        for e in std::mem::take(&mut c.queue) {
            if e.owner() == id || e.id == id {
                gone.push(e);
            } else {
                kept.push_back(e);
            }
        }
        c.queue = kept;
        if c.queue.is_empty() {
            c.bell.silence();
        }
        gone
    }

    /// The next event of a channel, as the program gets it.
    pub fn take_event(&mut self, channel: usize) -> Option<*mut ffi::rdma_cm_event> {
        let c = self.event_channels.at_mut(channel)?;
        let mut e = c.queue.pop_front()?;
        if c.queue.is_empty() {
            c.bell.silence();
        }
        match e.kind {
            ffi::RDMA_CM_EVENT_CONNECT_REQUEST => self.adopt(&e),
            ffi::RDMA_CM_EVENT_CONNECT_RESPONSE => self.answer_response(&mut e),
            _ => {}
        }
        let p = allocate::<ffi::rdma_cm_event>();
        let private = e.private.clone().into_boxed_slice();
        // SAFETY: a fresh struct.
        unsafe {
            (*p).id = e.id as *mut ffi::rdma_cm_id;
            (*p).listen_id = e.listener as *mut ffi::rdma_cm_id;
            (*p).event = e.kind;
            (*p).status = e.status;
            (*p).param.conn = ffi::rdma_conn_param {
                private_data: if private.is_empty() {
                    std::ptr::null()
                } else {
                    private.as_ptr().cast::<c_void>()
                },
                private_data_len: private.len() as u8,
                responder_resources: e.info.responder_resources,
                initiator_depth: e.info.initiator_depth,
                flow_control: e.info.flow_control,
                retry_count: e.info.retry_count,
                rnr_retry_count: e.info.rnr_retry_count,
                srq: e.info.srq,
                qp_num: e.info.qp_num,
            };
        }
        let owner = e.owner();
        if let Some(i) = self.ids.at_mut(owner) {
            i.unacked += 1;
        }
        Some(self.cm_events.insert(CmEventState {
            ffi: p,
            owner,
            private,
        }))
    }

    /// The program gets the id of a request: it lives on the listener's present channel.
    fn adopt(&mut self, e: &Pending) {
        let channel = self.ids.at(e.listener).map_or(0, |l| l.channel);
        if let Some(i) = self.ids.at_mut(e.id) {
            i.visible = true;
            i.channel = channel;
            // SAFETY: our own allocation.
            unsafe { (*i.ffi).channel = channel as *mut ffi::rdma_event_channel };
        }
    }

    /// The active side reads the reply: librdmacm readies its queue pair, tells the peer, and calls
    /// it established.
    fn answer_response(&mut self, e: &mut Pending) {
        let Some(i) = self.ids.at(e.id) else {
            return;
        };
        if i.qp == 0 {
            return;
        }
        e.kind = ffi::RDMA_CM_EVENT_ESTABLISHED;
        self.establish(e.id);
    }

    /// Acknowledges an event.
    pub fn ack_event(&mut self, event: *mut ffi::rdma_cm_event) -> Result<(), c_int> {
        self.cm_events.get(event, Call::rdma_ack_cm_event)?;
        if let Some(mut e) = self.cm_events.remove(event as usize) {
            // Whoever still reads it sees that it is gone.
            e.private.fill(0xdd);
            if let Some(i) = self.ids.at_mut(e.owner) {
                i.unacked = i.unacked.saturating_sub(1);
            }
        }
        Ok(())
    }
}

/// Waits for an event of a channel, as its descriptor's flags say.
pub fn next_event(channel: usize, call: Call) -> Result<*mut ffi::rdma_cm_event, c_int> {
    loop {
        let fd = {
            let mut w = world();
            w.event_channels
                .get(channel as *mut ffi::rdma_event_channel, call)?;
            if let Some(e) = w.take_event(channel) {
                return Ok(e);
            }
            w.event_channels.at(channel).map_or(-1, |c| c.bell.fd())
        };
        wait_readable(fd)?;
    }
}

#[unsafe(export_name = "standin_rdma_create_event_channel")]
unsafe extern "C" fn create_event_channel() -> *mut ffi::rdma_event_channel {
    match enter(Call::rdma_create_event_channel) {
        Some(e) => pointer(Err(e)),
        None => pointer(world().new_event_channel(false)),
    }
}

#[unsafe(export_name = "standin_rdma_destroy_event_channel")]
unsafe extern "C" fn destroy_event_channel(channel: *mut ffi::rdma_event_channel) {
    enter(Call::rdma_destroy_event_channel);
    let mut w = world();
    if w.event_channels
        .get(channel, Call::rdma_destroy_event_channel)
        .is_err()
    {
        return;
    }
    let key = channel as usize;
    let users = w
        .ids
        .iter()
        .filter(|(_, i)| i.visible && i.channel == key)
        .count();
    if users > 0 {
        still_in_use(&format!(
            "rdma_destroy_event_channel: {users} ids still use the channel"
        ));
        return;
    }
    w.event_channels.remove(key);
}

#[unsafe(export_name = "standin_rdma_get_cm_event")]
unsafe extern "C" fn get_cm_event(
    channel: *mut ffi::rdma_event_channel,
    event: *mut *mut ffi::rdma_cm_event,
) -> c_int {
    if let Some(e) = enter(Call::rdma_get_cm_event) {
        return minus(e);
    }
    if event.is_null() {
        return minus(libc::EINVAL);
    }
    match next_event(channel as usize, Call::rdma_get_cm_event) {
        Ok(e) => {
            // SAFETY: the caller's variable.
            unsafe { *event = e };
            0
        }
        Err(e) => minus(e),
    }
}

#[unsafe(export_name = "standin_rdma_ack_cm_event")]
unsafe extern "C" fn ack_cm_event(event: *mut ffi::rdma_cm_event) -> c_int {
    let fault = enter(Call::rdma_ack_cm_event);
    // A failure on demand takes the event all the same: nobody acknowledges an event twice.
    let r = status(world().ack_event(event));
    changed();
    fault.map_or(r, minus)
}

#[unsafe(export_name = "standin_rdma_migrate_id")]
unsafe extern "C" fn migrate_id(
    id: *mut ffi::rdma_cm_id,
    channel: *mut ffi::rdma_event_channel,
) -> c_int {
    match enter(Call::rdma_migrate_id) {
        Some(e) => minus(e),
        None => status(migrate(id, channel)),
    }
}

fn migrate(id: *mut ffi::rdma_cm_id, channel: *mut ffi::rdma_event_channel) -> Result<(), c_int> {
    let key = id as usize;
    let mut w = world();
    w.ids.get(id, Call::rdma_migrate_id)?;
    let sync = channel.is_null();
    let channel = if sync {
        w.new_event_channel(true)?
    } else {
        w.event_channels.get(channel, Call::rdma_migrate_id)?;
        channel
    };
    // What a synchronous call kept is librdmacm's to acknowledge.
    if w.ids.at(key).is_some_and(|i| i.sync) {
        w.drop_sync_event(id);
    }
    let settled = |w: &World| w.ids.at(key).is_none_or(|i| i.unacked == 0);
    let (mut w, ready) = wait_until(w, settled);
    if !ready {
        violation("rdma_migrate_id: events are not acknowledged: the real call would hang");
        return Err(libc::EBUSY);
    }
    let moved = w.purge_events(key);
    let Some(i) = w.ids.at_mut(key) else {
        return Err(libc::EINVAL);
    };
    let (old, was_sync) = (i.channel, i.sync);
    i.channel = channel as usize;
    i.sync = sync;
    // SAFETY: our own allocation.
    unsafe { (*i.ffi).channel = channel };
    for e in moved {
        w.post_full(e);
    }
    if was_sync {
        w.event_channels.remove(old);
    }
    Ok(())
}

#[unsafe(export_name = "standin_rdma_establish")]
unsafe extern "C" fn establish(id: *mut ffi::rdma_cm_id) -> c_int {
    if let Some(e) = enter(Call::rdma_establish) {
        return minus(e);
    }
    let mut w = world();
    let r = w.ids.get(id, Call::rdma_establish).map(|i| (i.state, i.qp));
    match r {
        Ok((State::Connecting, 0)) => {
            w.establish(id as usize);
            0
        }
        Ok(_) => minus(libc::EINVAL),
        Err(e) => minus(e),
    }
}
