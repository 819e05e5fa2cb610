//! What the responder's device does with a request.

use libc::c_uint;
use rdma_sys as ffi;

use crate::config::Personality;
use crate::memory;
use crate::mr::KeyError;
use crate::world::World;
use crate::wqe::{Op, RecvWqe, SendWqe};

/// What a receive takes.
struct Message<'a> {
    data: &'a [u8],
    imm: Option<u32>,
    invalidated: Option<u32>,
    len: u32,
    opcode: u32,
    solicited: bool,
}

/// What the responder found wrong.
pub struct Nak {
    pub status: u32,
    /// Its own queue pair fails too, with this event.
    pub event: Option<u32>,
}

impl World {
    /// What the peer's device does. `Err(None)`: no receive posted.
    pub fn respond(
        &mut self,
        peer: usize,
        wqe: &SendWqe,
        data: &[u8],
    ) -> Result<Vec<u8>, Option<Nak>> {
        match wqe.op {
            Op::Write { addr, rkey, imm } => {
                if imm.is_some() && !self.has_receive(peer) {
                    return Err(None);
                }
                if !data.is_empty() {
                    let to =
                        self.target(peer, rkey, addr, data.len(), ffi::IBV_ACCESS_REMOTE_WRITE)?;
                    // SAFETY: found registered, writable and mapped just now, under the lock.
                    unsafe { memory::write(to, data) };
                }
                if imm.is_some() {
                    self.deliver(
                        peer,
                        &Message {
                            data: &[],
                            imm,
                            invalidated: None,
                            len: data.len() as u32,
                            opcode: ffi::IBV_WC_RECV_RDMA_WITH_IMM,
                            solicited: wqe.solicited,
                        },
                    )?;
                }
                Ok(Vec::new())
            }
            Op::Send { imm, invalidate } => {
                if !self.has_receive(peer) {
                    return Err(None);
                }
                self.deliver(
                    peer,
                    &Message {
                        data,
                        imm,
                        invalidated: invalidate,
                        len: data.len() as u32,
                        opcode: ffi::IBV_WC_RECV,
                        solicited: wqe.solicited,
                    },
                )?;
                if let Some(key) = invalidate {
                    self.revoke(key);
                }
                Ok(Vec::new())
            }
            Op::Read { addr, rkey } => {
                let mut answer = vec![0; data.len()];
                if !answer.is_empty() {
                    let from =
                        self.target(peer, rkey, addr, data.len(), ffi::IBV_ACCESS_REMOTE_READ)?;
                    // SAFETY: found registered and mapped just now, under the lock.
                    unsafe { memory::read(from, &mut answer) };
                    self.spoil_answer(peer, rkey, addr, from, &mut answer);
                }
                Ok(answer)
            }
            Op::CompareSwap { addr, rkey, .. } | Op::FetchAdd { addr, rkey, .. } => {
                self.atomic(peer, wqe.op, addr, rkey)
            }
            Op::AtomicWrite { addr, rkey } => {
                if data.len() != 8 || addr % 8 != 0 {
                    return Err(Some(invalid()));
                }
                let to = self.target(peer, rkey, addr, 8, ffi::IBV_ACCESS_REMOTE_WRITE)?;
                // SAFETY: found registered, writable and mapped just now, under the lock.
                unsafe { memory::write(to, data) };
                Ok(Vec::new())
            }
            Op::Flush {
                addr,
                rkey,
                len,
                kind,
                level,
            } => {
                self.flush(peer, addr, rkey, len, kind, level)?;
                Ok(Vec::new())
            }
        }
    }

    fn atomic(&self, peer: usize, op: Op, addr: u64, rkey: u32) -> Result<Vec<u8>, Option<Nak>> {
        if addr % 8 != 0 {
            return Err(Some(invalid()));
        }
        let at = self.target(peer, rkey, addr, 8, ffi::IBV_ACCESS_REMOTE_ATOMIC)?;
        // SAFETY: found registered, writable and mapped just now, under the lock. A region may
        // begin anywhere, but the address was just found to be aligned, unless the region's own
        // addresses differ from the memory's.
        let old = unsafe {
            if at % 8 != 0 {
                return Err(Some(invalid()));
            }
            let word = memory::word(at);
            match op {
                Op::CompareSwap { compare, swap, .. } => word
                    .compare_exchange(
                        compare,
                        swap,
                        std::sync::atomic::Ordering::AcqRel,
                        std::sync::atomic::Ordering::Acquire,
                    )
                    .unwrap_or_else(|v| v),
                Op::FetchAdd { add, .. } => {
                    word.fetch_add(add, std::sync::atomic::Ordering::AcqRel)
                }
                _ => return Err(Some(invalid())),
            }
        };
        Ok(old.to_ne_bytes().to_vec())
    }

    fn flush(
        &self,
        peer: usize,
        addr: u64,
        rkey: u32,
        len: u64,
        kind: u8,
        level: u8,
    ) -> Result<(), Option<Nak>> {
        let granted = self.qps.at(peer).map_or(0, |p| p.access);
        let mut rights = 0;
        if u32::from(kind) & ffi::IBV_FLUSH_GLOBAL != 0 {
            rights |= ffi::IBV_ACCESS_FLUSH_GLOBAL;
        }
        if u32::from(kind) & ffi::IBV_FLUSH_PERSISTENT != 0 {
            rights |= ffi::IBV_ACCESS_FLUSH_PERSISTENT;
        }
        if rights == 0 || granted & rights != rights {
            return Err(Some(invalid()));
        }
        let (addr, len) = if u32::from(level) == ffi::IBV_FLUSH_MR {
            match self.remote_region(rkey) {
                Some(mr) => (mr.iova, mr.len as u64),
                None => return Err(Some(denied())),
            }
        } else {
            (addr, len)
        };
        self.target(peer, rkey, addr, len as usize, rights)
            .map(|_| ())
    }

    /// Where a request may touch the peer's memory.
    pub fn target(
        &self,
        peer: usize,
        rkey: u32,
        addr: u64,
        len: usize,
        rights: c_uint,
    ) -> Result<usize, Option<Nak>> {
        let (pd, granted) = self.qps.at(peer).map_or((0, 0), |p| (p.pd, p.access));
        let remote = ffi::IBV_ACCESS_REMOTE_WRITE
            | ffi::IBV_ACCESS_REMOTE_READ
            | ffi::IBV_ACCESS_REMOTE_ATOMIC;
        if rights & remote & !granted != 0 {
            return Err(Some(invalid()));
        }
        self.remote(pd, rkey, addr, len, rights)
            .map_err(|e| match e {
                KeyError::Gone => Some(Nak {
                    status: ffi::IBV_WC_REM_OP_ERR,
                    event: Some(ffi::IBV_EVENT_QP_FATAL),
                }),
                _ => Some(denied()),
            })
    }

    fn has_receive(&self, peer: usize) -> bool {
        let Some(p) = self.qps.at(peer) else {
            return false;
        };
        match self.srqs.at(p.srq) {
            Some(s) => !s.queue.is_empty(),
            None => !p.recv.is_empty(),
        }
    }

    /// A message arrives: the next receive takes it.
    fn deliver(&mut self, peer: usize, m: &Message) -> Result<(), Option<Nak>> {
        let Some(p) = self.qps.at_mut(peer) else {
            return Err(None);
        };
        let (srq, pd, context) = (p.srq, p.pd, p.context);
        let wqe = if srq == 0 {
            p.recv.pop_front()
        } else {
            self.next_of_srq(srq, context)
        };
        let Some(wqe) = wqe else {
            return Err(None);
        };
        let room: u64 = wqe.sges.iter().map(|s| u64::from(s.length)).sum();
        let personality = self.personality_of(context);
        let status = if (m.data.len() as u64) > room {
            Err(too_long(personality))
        } else {
            self.scatter(pd, &wqe.sges, m.data, ffi::IBV_ACCESS_LOCAL_WRITE)
                .map_err(|own| (own, ffi::IBV_WC_REM_OP_ERR))
        };
        let mut wc = ffi::ibv_wc {
            status: status.map_or_else(|(own, _)| own, |()| ffi::IBV_WC_SUCCESS),
            opcode: m.opcode,
            byte_len: m.len,
            ..Default::default()
        };
        if let Some(imm) = m.imm {
            wc.wc_flags = ffi::IBV_WC_WITH_IMM;
            wc.__bindgen_anon_1.imm_data = imm;
        }
        if let Some(key) = m.invalidated {
            wc.wc_flags = ffi::IBV_WC_WITH_INV;
            wc.__bindgen_anon_1.invalidated_rkey = key;
        }
        self.complete_recv(peer, wqe.wr_id, wc, m.solicited);
        let Err((_, theirs)) = status else {
            return Ok(());
        };
        if personality.is_iwarp() {
            self.async_event(context, ffi::IBV_EVENT_QP_FATAL, peer);
        }
        self.qp_to_error(peer);
        Err(Some(Nak {
            status: theirs,
            event: None,
        }))
    }

    fn next_of_srq(&mut self, srq: usize, context: usize) -> Option<RecvWqe> {
        let s = self.srqs.at_mut(srq)?;
        let wqe = s.queue.pop_front();
        if s.attr.srq_limit > 0 && (s.queue.len() as u32) < s.attr.srq_limit {
            s.attr.srq_limit = 0;
            self.async_event(context, ffi::IBV_EVENT_SRQ_LIMIT_REACHED, srq);
        }
        wqe
    }
}

/// What a message longer than its receive gives: the receiver's status, the sender's (asked of rxe
/// in Linux 6.12).
fn too_long(personality: Personality) -> (u32, u32) {
    match personality {
        Personality::Rxe => (ffi::IBV_WC_LOC_QP_OP_ERR, ffi::IBV_WC_REM_OP_ERR),
        _ => (ffi::IBV_WC_LOC_LEN_ERR, ffi::IBV_WC_REM_INV_REQ_ERR),
    }
}

fn denied() -> Nak {
    Nak {
        status: ffi::IBV_WC_REM_ACCESS_ERR,
        event: Some(ffi::IBV_EVENT_QP_ACCESS_ERR),
    }
}

fn invalid() -> Nak {
    Nak {
        status: ffi::IBV_WC_REM_INV_REQ_ERR,
        event: Some(ffi::IBV_EVENT_QP_REQ_ERR),
    }
}
