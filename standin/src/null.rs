//! Null mode: posting notes the identifier, polling hands it back. Nothing is copied, checked,
//! counted or locked, so that what is measured is the caller. One thread per queue pair and its
//! completion queue.

use std::ffi::{c_int, c_void};

use rdma_sys as ffi;

/// A completion queue and, behind it, what null mode needs.
#[repr(C)]
pub struct CqMemory {
    pub cq: ffi::ibv_cq_ex,
    pub ring: Ring,
}

/// A queue pair and, behind it, what null mode needs.
#[repr(C)]
pub struct QpMemory {
    pub qp: ffi::ibv_qp_ex,
    pub send_cq: *mut CqMemory,
}

/// Signalled work requests not yet polled.
#[repr(C)]
pub struct Ring {
    head: u32,
    tail: u32,
    mask: u32,
    entries: *mut Entry,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Entry {
    wr_id: u64,
    opcode: u32,
    qp_num: u32,
}

/// Completion opcodes by work request opcode.
const OPCODES: [u32; 16] = {
    let mut t = [ffi::IBV_WC_RDMA_WRITE; 16];
    t[ffi::IBV_WR_SEND as usize] = ffi::IBV_WC_SEND;
    t[ffi::IBV_WR_SEND_WITH_IMM as usize] = ffi::IBV_WC_SEND;
    t[ffi::IBV_WR_RDMA_READ as usize] = ffi::IBV_WC_RDMA_READ;
    t[ffi::IBV_WR_ATOMIC_CMP_AND_SWP as usize] = ffi::IBV_WC_COMP_SWAP;
    t[ffi::IBV_WR_ATOMIC_FETCH_AND_ADD as usize] = ffi::IBV_WC_FETCH_ADD;
    t[ffi::IBV_WR_FLUSH as usize] = ffi::IBV_WC_FLUSH;
    t[ffi::IBV_WR_ATOMIC_WRITE as usize] = ffi::IBV_WC_ATOMIC_WRITE;
    t
};

impl Ring {
    /// Room for `cqe` completions and more.
    pub fn new(cqe: u32) -> Self {
        let len = cqe.max(1).next_power_of_two();
        let entries = vec![Entry::default(); len as usize].into_boxed_slice();
        Self {
            head: 0,
            tail: 0,
            mask: len - 1,
            entries: Box::into_raw(entries).cast(),
        }
    }

    /// Gives the memory back.
    pub fn free(&mut self) {
        let len = self.mask as usize + 1;
        // SAFETY: made by `new`, freed once: the pointer is cleared.
        unsafe {
            if !self.entries.is_null() {
                drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
                    self.entries,
                    len,
                )));
            }
        }
        self.entries = std::ptr::null_mut();
    }

    /// Notes a signalled work request.
    ///
    /// # Safety
    /// The ring is alive.
    #[inline(always)]
    unsafe fn push(&mut self, wr_id: u64, opcode: u32, qp_num: u32) {
        // SAFETY: masked to the ring's length.
        unsafe {
            *self.entries.add((self.head & self.mask) as usize) = Entry {
                wr_id,
                opcode,
                qp_num,
            };
        }
        self.head = self.head.wrapping_add(1);
    }
}

/// `ibv_context.ops.post_send`.
pub unsafe extern "C" fn post_send(
    qp: *mut ffi::ibv_qp,
    wr: *mut ffi::ibv_send_wr,
    _bad: *mut *mut ffi::ibv_send_wr,
) -> c_int {
    let mut wr = wr;
    // SAFETY: a queue pair of ours, a list of the caller's.
    unsafe {
        let ring = &mut (*(*qp.cast::<QpMemory>()).send_cq).ring;
        while !wr.is_null() {
            if (*wr).send_flags & ffi::IBV_SEND_SIGNALED != 0 {
                let opcode = OPCODES[(*wr).opcode as usize & 15];
                ring.push((*wr).wr_id, opcode, (*qp).qp_num);
            }
            wr = (*wr).next;
        }
    }
    0
}

/// `ibv_context.ops.post_recv`.
pub unsafe extern "C" fn post_recv(
    _qp: *mut ffi::ibv_qp,
    _wr: *mut ffi::ibv_recv_wr,
    _bad: *mut *mut ffi::ibv_recv_wr,
) -> c_int {
    0
}

/// `ibv_context.ops.poll_cq`.
pub unsafe extern "C" fn poll_cq(cq: *mut ffi::ibv_cq, n: c_int, wc: *mut ffi::ibv_wc) -> c_int {
    let mut done = 0;
    // SAFETY: a completion queue of ours; room for `n` at `wc`.
    unsafe {
        let ring = &mut (*cq.cast::<CqMemory>()).ring;
        while done < n && ring.tail != ring.head {
            let e = ring.entries.add((ring.tail & ring.mask) as usize);
            let wc = wc.add(done as usize);
            (*wc).wr_id = (*e).wr_id;
            (*wc).status = ffi::IBV_WC_SUCCESS;
            (*wc).opcode = (*e).opcode;
            (*wc).qp_num = (*e).qp_num;
            (*wc).wc_flags = 0;
            ring.tail = ring.tail.wrapping_add(1);
            done += 1;
        }
    }
    done
}

/// `ibv_context.ops.req_notify_cq`.
pub unsafe extern "C" fn req_notify_cq(_cq: *mut ffi::ibv_cq, _solicited: c_int) -> c_int {
    0
}

/// Notes a work request of the extended kind.
#[inline(always)]
unsafe fn note(qp: *mut ffi::ibv_qp_ex, opcode: u32) {
    // SAFETY: a queue pair of ours.
    unsafe {
        if (*qp).wr_flags & ffi::IBV_SEND_SIGNALED != 0 {
            let ring = &mut (*(*qp.cast::<QpMemory>()).send_cq).ring;
            ring.push((*qp).wr_id, opcode, (*qp).qp_base.qp_num);
        }
    }
}

unsafe extern "C" fn start(_qp: *mut ffi::ibv_qp_ex) {}

unsafe extern "C" fn complete(_qp: *mut ffi::ibv_qp_ex) -> c_int {
    0
}

unsafe extern "C" fn write(qp: *mut ffi::ibv_qp_ex, _rkey: u32, _addr: u64) {
    // SAFETY: as the caller promises.
    unsafe { note(qp, ffi::IBV_WC_RDMA_WRITE) };
}

unsafe extern "C" fn write_imm(qp: *mut ffi::ibv_qp_ex, _rkey: u32, _addr: u64, _imm: u32) {
    // SAFETY: as the caller promises.
    unsafe { note(qp, ffi::IBV_WC_RDMA_WRITE) };
}

unsafe extern "C" fn read(qp: *mut ffi::ibv_qp_ex, _rkey: u32, _addr: u64) {
    // SAFETY: as the caller promises.
    unsafe { note(qp, ffi::IBV_WC_RDMA_READ) };
}

unsafe extern "C" fn send(qp: *mut ffi::ibv_qp_ex) {
    // SAFETY: as the caller promises.
    unsafe { note(qp, ffi::IBV_WC_SEND) };
}

unsafe extern "C" fn send_imm(qp: *mut ffi::ibv_qp_ex, _imm: u32) {
    // SAFETY: as the caller promises.
    unsafe { note(qp, ffi::IBV_WC_SEND) };
}

unsafe extern "C" fn atomic_write(
    qp: *mut ffi::ibv_qp_ex,
    _rkey: u32,
    _addr: u64,
    _value: *const c_void,
) {
    // SAFETY: as the caller promises.
    unsafe { note(qp, ffi::IBV_WC_ATOMIC_WRITE) };
}

unsafe extern "C" fn flush(
    qp: *mut ffi::ibv_qp_ex,
    _rkey: u32,
    _addr: u64,
    _len: usize,
    _kind: u8,
    _level: u8,
) {
    // SAFETY: as the caller promises.
    unsafe { note(qp, ffi::IBV_WC_FLUSH) };
}

unsafe extern "C" fn sge(_qp: *mut ffi::ibv_qp_ex, _lkey: u32, _addr: u64, _len: u32) {}

unsafe extern "C" fn sge_list(_qp: *mut ffi::ibv_qp_ex, _n: usize, _list: *const ffi::ibv_sge) {}

unsafe extern "C" fn inline_data(_qp: *mut ffi::ibv_qp_ex, _addr: *mut c_void, _len: usize) {}

unsafe extern "C" fn inline_list(
    _qp: *mut ffi::ibv_qp_ex,
    _n: usize,
    _list: *const ffi::ibv_data_buf,
) {
}

/// Fills the calls of an extended queue pair: those that `qp_ex` has filled.
pub fn fill(qp: &mut ffi::ibv_qp_ex) {
    qp.wr_start = Some(start);
    qp.wr_complete = Some(complete);
    qp.wr_abort = Some(start);
    qp.wr_set_sge = Some(sge);
    qp.wr_set_sge_list = Some(sge_list);
    qp.wr_set_inline_data = Some(inline_data);
    qp.wr_set_inline_data_list = Some(inline_list);
    qp.wr_rdma_write = qp.wr_rdma_write.and(Some(write));
    qp.wr_rdma_write_imm = qp.wr_rdma_write_imm.and(Some(write_imm));
    qp.wr_rdma_read = qp.wr_rdma_read.and(Some(read));
    qp.wr_send = qp.wr_send.and(Some(send));
    qp.wr_send_imm = qp.wr_send_imm.and(Some(send_imm));
    qp.wr_atomic_write = qp.wr_atomic_write.and(Some(atomic_write));
    qp.wr_flush = qp.wr_flush.and(Some(flush));
}
