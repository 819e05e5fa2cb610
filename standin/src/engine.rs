//! What the requester's device does: executes work requests, one after another, in the thread that
//! makes them possible.

use std::collections::VecDeque;

use libc::c_uint;
use rdma_sys as ffi;

use crate::config::Personality;
use crate::cq::{Cqe, Frees};
use crate::memory;
use crate::respond::Nak;
use crate::world::World;
use crate::wqe::{Op, Payload, SendWqe};

/// How far the head of a send queue got.
enum Progress {
    /// Nothing to do.
    Idle,
    /// It waits: held, no receive posted, peer not ready.
    Stalled,
    /// One done.
    Done,
}

/// What became of one request.
enum Outcome {
    Status(u32, u32),
    /// The peer has no receive posted.
    NotReady,
    /// This status, and then the stream to this peer is torn down (iWARP).
    Torn(u32, usize),
}

impl World {
    /// Executes what can be executed on one queue pair.
    pub fn kick(&mut self, key: usize) {
        while let Progress::Done = self.step(key) {}
    }

    /// Executes what can be executed on all, in the order of posting.
    pub fn pump(&mut self) {
        let mut stalled: Vec<usize> = Vec::new();
        loop {
            let head = self
                .qps
                .iter()
                .filter(|(k, _)| !stalled.contains(k))
                .filter_map(|(k, q)| q.send.front().map(|s| (s.sequence, k)))
                .min();
            let Some((_, key)) = head else {
                return;
            };
            if !matches!(self.step(key), Progress::Done) {
                stalled.push(key);
            }
        }
    }

    /// Executes what waits for the queue pair of this number.
    pub fn kick_senders_to(&mut self, number: u32) {
        let waiting: Vec<usize> = self
            .qps
            .iter()
            .filter(|(_, q)| q.remote == number && !q.send.is_empty())
            .map(|(k, _)| k)
            .collect();
        for key in waiting {
            self.kick(key);
        }
    }

    fn step(&mut self, key: usize) -> Progress {
        let Some(q) = self.qps.at_mut(key) else {
            return Progress::Idle;
        };
        if q.executing || q.send.is_empty() {
            return Progress::Idle;
        }
        if q.state == ffi::IBV_QPS_ERR {
            self.flush_send(key);
            return Progress::Idle;
        }
        if q.state != ffi::IBV_QPS_RTS || self.transfers.budget == Some(0) {
            return Progress::Stalled;
        }
        let Some(wqe) = q.send.pop_front() else {
            return Progress::Idle;
        };
        // What the execution sets off may come back to this queue pair: its next request waits for
        // this one.
        q.executing = true;
        let outcome = match self.due() {
            Some(status) => Outcome::Status(status, 0),
            None => self.execute(key, &wqe),
        };
        let q = match self.qps.at_mut(key) {
            Some(q) => q,
            None => return Progress::Idle,
        };
        let (status, byte_len, torn) = match outcome {
            Outcome::NotReady => {
                q.send.push_front(wqe);
                q.executing = false;
                return Progress::Stalled;
            }
            Outcome::Status(s, n) => (s, n, None),
            Outcome::Torn(s, peer) => (s, 0, Some(peer)),
        };
        self.count_executed();
        self.finish(key, &wqe, status, byte_len);
        if let Some(q) = self.qps.at_mut(key) {
            q.executing = false;
        }
        if let Some(peer) = torn {
            self.terminate(key, peer);
        } else if status != ffi::IBV_WC_SUCCESS {
            self.qp_to_error(key);
        }
        Progress::Done
    }

    /// The status that a test wants for the request at hand.
    fn due(&mut self) -> Option<u32> {
        let list = &mut self.transfers.injected;
        let at = list.iter().position(|i| i.0 <= 1)?;
        Some(list.swap_remove(at).1)
    }

    fn count_executed(&mut self) {
        let t = &mut self.transfers;
        if let Some(n) = &mut t.budget {
            *n = n.saturating_sub(1);
        }
        for i in &mut t.injected {
            i.0 = i.0.saturating_sub(1).max(1);
        }
        t.executed += 1;
    }

    fn finish(&mut self, key: usize, wqe: &SendWqe, status: u32, byte_len: u32) {
        let Some(q) = self.qps.at(key) else {
            return;
        };
        let (cq, number) = (q.send_cq, q.number);
        if wqe.signalled || status != ffi::IBV_WC_SUCCESS {
            self.complete(
                cq,
                Cqe {
                    wc: ffi::ibv_wc {
                        wr_id: wqe.wr_id,
                        status,
                        opcode: wqe.op.wc_opcode(),
                        byte_len,
                        qp_num: number,
                        ..Default::default()
                    },
                    frees: Frees::Send {
                        qp: key,
                        up_to: wqe.slot,
                    },
                    solicited: false,
                },
            );
        }
    }

    /// A queue pair fails: all that it holds is flushed, in order.
    pub fn qp_to_error(&mut self, key: usize) {
        let Some(q) = self.qps.at_mut(key) else {
            return;
        };
        let first = !q.failed;
        q.failed = true;
        q.state = ffi::IBV_QPS_ERR;
        let (number, srq, context) = (q.number, q.srq, q.context);
        self.flush_send(key);
        self.flush_recv(key);
        if first {
            if srq != 0 {
                self.async_event(context, ffi::IBV_EVENT_QP_LAST_WQE_REACHED, key);
            }
            self.kick_senders_to(number);
        }
    }

    fn flush_send(&mut self, key: usize) {
        let Some(q) = self.qps.at_mut(key).filter(|q| !q.executing) else {
            return;
        };
        let left: VecDeque<SendWqe> = std::mem::take(&mut q.send);
        for wqe in left {
            self.finish_flushed(key, &wqe);
        }
    }

    fn finish_flushed(&mut self, key: usize, wqe: &SendWqe) {
        let Some(q) = self.qps.at(key) else {
            return;
        };
        let (cq, number) = (q.send_cq, q.number);
        self.complete(
            cq,
            Cqe {
                wc: ffi::ibv_wc {
                    wr_id: wqe.wr_id,
                    status: ffi::IBV_WC_WR_FLUSH_ERR,
                    opcode: wqe.op.wc_opcode(),
                    qp_num: number,
                    ..Default::default()
                },
                frees: Frees::Send {
                    qp: key,
                    up_to: wqe.slot,
                },
                solicited: false,
            },
        );
    }

    /// Flushes the receives of a failed queue pair.
    pub fn flush_recv(&mut self, key: usize) {
        let Some(q) = self.qps.at_mut(key) else {
            return;
        };
        for wqe in std::mem::take(&mut q.recv) {
            let wc = ffi::ibv_wc {
                status: ffi::IBV_WC_WR_FLUSH_ERR,
                opcode: ffi::IBV_WC_RECV,
                ..Default::default()
            };
            self.complete_recv(key, wqe.wr_id, wc, false);
        }
    }

    pub fn complete_recv(&mut self, key: usize, wr_id: u64, wc: ffi::ibv_wc, solicited: bool) {
        let Some(q) = self.qps.at(key) else {
            return;
        };
        let frees = if q.srq == 0 {
            Frees::Recv { qp: key }
        } else {
            Frees::Srq { srq: q.srq }
        };
        let wc = ffi::ibv_wc {
            wr_id,
            qp_num: q.number,
            src_qp: q.remote,
            ..wc
        };
        let cq = q.recv_cq;
        self.complete(
            cq,
            Cqe {
                wc,
                frees,
                solicited,
            },
        );
    }

    fn execute(&mut self, key: usize, wqe: &SendWqe) -> Outcome {
        let Some(q) = self.qps.at(key) else {
            return Outcome::Status(ffi::IBV_WC_FATAL_ERR, 0);
        };
        let (pd, number, remote) = (q.pd, q.number, q.remote);
        let (rnr_retry, context) = (q.rnr_retry, q.context);
        let personality = self.personality_of(context);
        let data = match self.outgoing(pd, wqe, personality) {
            Ok(d) => d,
            Err(ffi::IBV_WC_LOC_PROT_ERR) => return self.bad_source(key, personality),
            Err(status) => return Outcome::Status(status, 0),
        };
        // The peer must be there, and connected to us.
        let peer = self.qp_numbers.get(&remote).copied();
        let peer_state = peer
            .and_then(|p| self.qps.at(p))
            .map(|p| (p.state, p.remote));
        let peer = match (peer, peer_state) {
            _ if self.config.cut => return Outcome::Status(ffi::IBV_WC_RETRY_EXC_ERR, 0),
            (Some(p), Some((ffi::IBV_QPS_RTR | ffi::IBV_QPS_RTS | ffi::IBV_QPS_SQD, r)))
                if r == number =>
            {
                p
            }
            (Some(_), Some((ffi::IBV_QPS_RESET | ffi::IBV_QPS_INIT, _))) => {
                return Outcome::NotReady;
            }
            _ if personality.is_iwarp() => return Outcome::Status(ffi::IBV_WC_WR_FLUSH_ERR, 0),
            _ => return Outcome::Status(ffi::IBV_WC_RETRY_EXC_ERR, 0),
        };
        match self.respond(peer, wqe, &data) {
            Ok(answer) => match self.take_answer(pd, wqe, &answer, personality) {
                Outcome::Status(status, _)
                    if personality.is_iwarp() && status != ffi::IBV_WC_SUCCESS =>
                {
                    self.async_event(context, ffi::IBV_EVENT_QP_ACCESS_ERR, key);
                    Outcome::Torn(status, peer)
                }
                outcome => outcome,
            },
            Err(None) if personality.is_iwarp() => Outcome::Torn(ffi::IBV_WC_SUCCESS, peer),
            Err(None) if rnr_retry == 7 => Outcome::NotReady,
            Err(None) => Outcome::Status(ffi::IBV_WC_RNR_RETRY_EXC_ERR, 0),
            Err(Some(nak)) => self.refused(peer, wqe, &nak, personality),
        }
    }

    /// What a request gives whose own memory cannot be read (asked of Linux 6.12's rxe and siw).
    fn bad_source(&mut self, key: usize, personality: Personality) -> Outcome {
        match personality {
            Personality::Rxe => Outcome::Status(ffi::IBV_WC_WR_FLUSH_ERR, 0),
            Personality::Siw => {
                let (context, remote) = self.qps.at(key).map_or((0, 0), |q| (q.context, q.remote));
                let peer = self.qp_numbers.get(&remote).copied().unwrap_or(0);
                self.async_event(context, ffi::IBV_EVENT_QP_FATAL, key);
                Outcome::Torn(ffi::IBV_WC_LOC_QP_OP_ERR, peer)
            }
            _ => Outcome::Status(ffi::IBV_WC_LOC_PROT_ERR, 0),
        }
    }

    /// The requester learns of a refusal.
    fn refused(
        &mut self,
        peer: usize,
        wqe: &SendWqe,
        nak: &Nak,
        personality: Personality,
    ) -> Outcome {
        let context = self.qps.at(peer).map_or(0, |p| p.context);
        if personality.is_iwarp() {
            let event = match (wqe.op, nak.event) {
                (Op::Read { .. }, Some(_)) => Some(ffi::IBV_EVENT_QP_REQ_ERR),
                (_, event) => event,
            };
            if let Some(event) = event {
                self.async_event(context, event, peer);
            }
            // A write or send is done once it is handed to TCP; the stream is torn down after it.
            let status = if wqe.op.sends_data() {
                ffi::IBV_WC_SUCCESS
            } else {
                ffi::IBV_WC_WR_FLUSH_ERR
            };
            return Outcome::Torn(status, peer);
        }
        if let Some(event) = nak.event {
            // rxe keeps it to itself.
            if personality != Personality::Rxe {
                self.async_event(context, event, peer);
            }
            self.qp_to_error(peer);
        }
        Outcome::Status(nak.status, 0)
    }

    /// iWARP: an error ends the stream, for both.
    fn terminate(&mut self, key: usize, peer: usize) {
        for qp in [peer, key] {
            self.qp_to_error(qp);
            self.stream_lost(qp);
        }
    }

    /// The bytes that go out.
    fn outgoing(&self, pd: usize, wqe: &SendWqe, personality: Personality) -> Result<Vec<u8>, u32> {
        let sges = match &wqe.payload {
            Payload::Inline(b) => return Ok(b.clone()),
            Payload::Sges(s) => s,
        };
        let mut total = 0u64;
        for s in sges {
            total += u64::from(s.length);
        }
        if total > u64::from(personality.max_msg_sz()) {
            return Err(ffi::IBV_WC_LOC_LEN_ERR);
        }
        if !wqe.op.sends_data() {
            return Ok(vec![0; total as usize]);
        }
        let mut data = vec![0; total as usize];
        let mut at = 0;
        for s in sges.iter().filter(|s| s.length > 0) {
            let from = self.local(pd, s, 0).map_err(|_| ffi::IBV_WC_LOC_PROT_ERR)?;
            let len = s.length as usize;
            if let Some(part) = data.get_mut(at..at + len) {
                // SAFETY: found registered and mapped just now, under the lock.
                unsafe { memory::read(from, part) };
            }
            at += len;
        }
        if personality == Personality::Siw && wqe.behind {
            self.spoil_outgoing(pd, sges, &mut data);
        }
        Ok(data)
    }

    /// The bytes that came back go where the requester wants them.
    fn take_answer(
        &self,
        pd: usize,
        wqe: &SendWqe,
        answer: &[u8],
        personality: Personality,
    ) -> Outcome {
        let Payload::Sges(sges) = &wqe.payload else {
            return Outcome::Status(ffi::IBV_WC_SUCCESS, answer.len() as u32);
        };
        if wqe.op.sends_data() || matches!(wqe.op, Op::Flush { .. }) {
            return Outcome::Status(ffi::IBV_WC_SUCCESS, 0);
        }
        // On iWARP the sink of a read is written to by the peer.
        let mut rights = ffi::IBV_ACCESS_LOCAL_WRITE;
        if personality.is_iwarp() {
            rights |= ffi::IBV_ACCESS_REMOTE_WRITE;
        }
        match self.scatter(pd, sges, answer, rights) {
            Ok(()) => Outcome::Status(ffi::IBV_WC_SUCCESS, answer.len() as u32),
            Err(status) => Outcome::Status(status, 0),
        }
    }

    pub fn scatter(
        &self,
        pd: usize,
        sges: &[ffi::ibv_sge],
        data: &[u8],
        rights: c_uint,
    ) -> Result<(), u32> {
        let mut rest = data;
        for s in sges {
            if rest.is_empty() {
                break;
            }
            let (part, more) = rest.split_at(rest.len().min(s.length as usize));
            rest = more;
            if part.is_empty() {
                continue;
            }
            let used = ffi::ibv_sge {
                length: part.len() as u32,
                ..*s
            };
            let to = self
                .local(pd, &used, rights)
                .map_err(|_| ffi::IBV_WC_LOC_PROT_ERR)?;
            // SAFETY: found registered, writable and mapped just now, under the lock.
            unsafe { memory::write(to, part) };
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(ffi::IBV_WC_LOC_LEN_ERR)
        }
    }
}
