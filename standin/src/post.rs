//! Posting through `ibv_post_send` and `ibv_post_recv`.

use libc::c_int;
use rdma_sys as ffi;

use crate::calls::{Call, enter};
use crate::config::Personality;
use crate::world::{World, world};
use crate::wqe::{Op, Payload, RecvWqe, SendWqe};

/// A scatter list as a vector.
///
/// # Safety
/// `list` has `n` entries.
pub unsafe fn sges(list: *const ffi::ibv_sge, n: c_int) -> Vec<ffi::ibv_sge> {
    let n = usize::try_from(n).unwrap_or(0);
    if n == 0 || list.is_null() {
        return Vec::new();
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(list, n).to_vec() }
}

/// The bytes of an inline request, taken at once.
///
/// # Safety
/// The list tells readable memory.
unsafe fn inline_bytes(list: &[ffi::ibv_sge]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for s in list {
        if s.length > 0 {
            // SAFETY: as the caller promises.
            let part = unsafe {
                std::slice::from_raw_parts(s.addr as usize as *const u8, s.length as usize)
            };
            bytes.extend_from_slice(part);
        }
    }
    bytes
}

/// Reads a work request.
///
/// # Safety
/// As for `ibv_post_send`.
unsafe fn parse(wr: &ffi::ibv_send_wr, personality: Personality) -> Result<SendWqe, c_int> {
    // SAFETY: which part of the unions counts is what the opcode says.
    let (op, list) = unsafe {
        let list = sges(wr.sg_list, wr.num_sge);
        let imm = wr.__bindgen_anon_1.imm_data;
        let rdma = wr.wr.rdma;
        let op = match wr.opcode {
            ffi::IBV_WR_RDMA_WRITE => Op::write(rdma.remote_addr, rdma.rkey, None),
            ffi::IBV_WR_RDMA_WRITE_WITH_IMM => Op::write(rdma.remote_addr, rdma.rkey, Some(imm)),
            ffi::IBV_WR_RDMA_READ => Op::read(rdma.remote_addr, rdma.rkey),
            ffi::IBV_WR_SEND => Op::send(None),
            ffi::IBV_WR_SEND_WITH_IMM => Op::send(Some(imm)),
            // The real siw's library takes the key from the other union.
            ffi::IBV_WR_SEND_WITH_INV => Op::Send {
                imm: None,
                invalidate: Some(rdma.rkey),
            },
            ffi::IBV_WR_ATOMIC_CMP_AND_SWP => Op::CompareSwap {
                addr: wr.wr.atomic.remote_addr,
                rkey: wr.wr.atomic.rkey,
                compare: wr.wr.atomic.compare_add,
                swap: wr.wr.atomic.swap,
            },
            ffi::IBV_WR_ATOMIC_FETCH_AND_ADD => Op::FetchAdd {
                addr: wr.wr.atomic.remote_addr,
                rkey: wr.wr.atomic.rkey,
                add: wr.wr.atomic.compare_add,
            },
            ffi::IBV_WR_ATOMIC_WRITE => Op::AtomicWrite {
                addr: rdma.remote_addr,
                rkey: rdma.rkey,
            },
            _ => return Err(libc::EINVAL),
        };
        (op, list)
    };
    if !op.is_known_to(personality) {
        return Err(libc::EINVAL);
    }
    let payload = if wr.send_flags & ffi::IBV_SEND_INLINE != 0 {
        if !op.sends_data() {
            return Err(libc::EINVAL);
        }
        // SAFETY: inline data is readable, as the caller of ibv_post_send promises.
        Payload::Inline(unsafe { inline_bytes(&list) })
    } else {
        Payload::Sges(list)
    };
    Ok(SendWqe::new(wr.wr_id, op, wr.send_flags, payload))
}

impl World {
    /// Checks a work request against its queue pair and takes it in.
    pub fn enqueue(&mut self, key: usize, mut wqe: SendWqe) -> Result<(), c_int> {
        let sequence = self.sequence();
        let context = self.qps.at(key).map_or(0, |q| q.context);
        let iwarp = self.personality_of(context).is_iwarp();
        let q = self.qps.at_mut(key).ok_or(libc::EINVAL)?;
        if !matches!(
            q.state,
            ffi::IBV_QPS_RTS | ffi::IBV_QPS_ERR | ffi::IBV_QPS_SQD
        ) {
            return Err(libc::EINVAL);
        }
        match &wqe.payload {
            // An atomic write of the extended kind carries its value: no inline room is needed.
            Payload::Inline(b)
                if b.len() > q.cap.max_inline_data as usize
                    && !(q.send_ops.is_some() && matches!(wqe.op, Op::AtomicWrite { .. })) =>
            {
                return Err(libc::EINVAL);
            }
            Payload::Sges(s) if s.len() > q.cap.max_send_sge as usize => return Err(libc::EINVAL),
            _ => {}
        }
        if q.send_posted - q.send_freed >= u64::from(q.cap.max_send_wr) {
            return Err(libc::ENOMEM);
        }
        q.send_posted += 1;
        // siw takes them and never completes them (Linux 6.12).
        if iwarp && q.state == ffi::IBV_QPS_ERR {
            return Ok(());
        }
        wqe.slot = q.send_posted;
        wqe.sequence = sequence;
        wqe.signalled |= q.signal_all;
        q.send.push_back(wqe);
        Ok(())
    }

    fn enqueue_recv(&mut self, key: usize, wqe: RecvWqe) -> Result<(), c_int> {
        let q = self.qps.at_mut(key).ok_or(libc::EINVAL)?;
        if q.state == ffi::IBV_QPS_RESET || q.srq != 0 {
            return Err(libc::EINVAL);
        }
        if wqe.sges.len() > q.cap.max_recv_sge as usize {
            return Err(libc::EINVAL);
        }
        if q.recv_used >= q.cap.max_recv_wr {
            return Err(libc::ENOMEM);
        }
        q.recv_used += 1;
        q.recv.push_back(wqe);
        Ok(())
    }
}

/// `ibv_context.ops.post_send`.
pub unsafe extern "C" fn post_send(
    qp: *mut ffi::ibv_qp,
    wr: *mut ffi::ibv_send_wr,
    bad: *mut *mut ffi::ibv_send_wr,
) -> c_int {
    let fault = enter(Call::ibv_post_send);
    let mut w = world();
    let key = qp as usize;
    let context = w.qps.get(qp, Call::ibv_post_send).map(|q| q.context);
    let personality = context.map_or(Personality::None, |c| w.personality_of(c));
    let first = wr;
    let mut wr = wr;
    let mut result = 0;
    while !wr.is_null() {
        // SAFETY: the caller's list.
        let request = unsafe { &*wr };
        let r = match (fault, context) {
            (Some(e), _) | (None, Err(e)) => Err(e),
            // SAFETY: as the caller of ibv_post_send promises.
            (None, Ok(_)) => unsafe { parse(request, personality) }.and_then(|mut wqe| {
                wqe.behind = wr != first;
                w.enqueue(key, wqe)
            }),
        };
        if let Err(e) = r {
            result = e;
            if !bad.is_null() {
                // SAFETY: the caller's variable.
                unsafe { *bad = wr };
            }
            break;
        }
        wr = request.next;
    }
    w.kick(key);
    if personality.is_iwarp() {
        -result
    } else {
        result
    }
}

/// `ibv_context.ops.post_recv`.
pub unsafe extern "C" fn post_recv(
    qp: *mut ffi::ibv_qp,
    wr: *mut ffi::ibv_recv_wr,
    bad: *mut *mut ffi::ibv_recv_wr,
) -> c_int {
    let fault = enter(Call::ibv_post_recv);
    let mut w = world();
    let key = qp as usize;
    let known = w
        .qps
        .get(qp, Call::ibv_post_recv)
        .map(|q| (q.context, q.number, q.state));
    let personality = known.map_or(Personality::None, |(c, ..)| w.personality_of(c));
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
        let r = match (fault, known) {
            (Some(e), _) | (None, Err(e)) => Err(e),
            (None, Ok(_)) => w.enqueue_recv(key, wqe),
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
    if let Ok((_, number, state)) = known {
        if state == ffi::IBV_QPS_ERR {
            w.flush_recv(key);
        }
        w.kick_senders_to(number);
    }
    if personality.is_iwarp() {
        -result
    } else {
        result
    }
}
