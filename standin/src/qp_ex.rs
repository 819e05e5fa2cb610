//! The extended way to post: `wr_start`, requests, `wr_complete`.

use libc::{c_int, c_void};
use rdma_sys as ffi;

use crate::calls::{Call, enter};
use crate::config::Personality;
use crate::post::sges;
use crate::violations::violation;
use crate::world::world;
use crate::wqe::{Op, Payload, SendWqe};

/// What was collected since `wr_start`.
#[derive(Default)]
pub struct Builder {
    open: bool,
    owner: Option<std::thread::ThreadId>,
    requests: Vec<Request>,
    error: c_int,
}

struct Request {
    wr_id: u64,
    flags: u32,
    op: Op,
    payload: Payload,
}

/// Fills the calls of an extended queue pair: those that were asked for, as providers do. Programs
/// look whether `wr_flush` is there.
pub fn fill(qp: &mut ffi::ibv_qp_ex, ops: u64) {
    let asked = |bit: u32| ops & u64::from(bit) != 0;
    qp.wr_start = Some(start);
    qp.wr_complete = Some(complete);
    qp.wr_abort = Some(abort);
    qp.wr_set_sge = Some(set_sge);
    qp.wr_set_sge_list = Some(set_sge_list);
    qp.wr_set_inline_data = Some(set_inline_data);
    qp.wr_set_inline_data_list = Some(set_inline_data_list);
    qp.wr_rdma_write = asked(ffi::IBV_QP_EX_WITH_RDMA_WRITE).then_some(rdma_write as _);
    qp.wr_rdma_write_imm =
        asked(ffi::IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM).then_some(rdma_write_imm as _);
    qp.wr_rdma_read = asked(ffi::IBV_QP_EX_WITH_RDMA_READ).then_some(rdma_read as _);
    qp.wr_send = asked(ffi::IBV_QP_EX_WITH_SEND).then_some(send as _);
    qp.wr_send_imm = asked(ffi::IBV_QP_EX_WITH_SEND_WITH_IMM).then_some(send_imm as _);
    qp.wr_atomic_cmp_swp =
        asked(ffi::IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP).then_some(atomic_cmp_swp as _);
    qp.wr_atomic_fetch_add =
        asked(ffi::IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD).then_some(atomic_fetch_add as _);
    qp.wr_atomic_write = asked(ffi::IBV_QP_EX_WITH_ATOMIC_WRITE).then_some(atomic_write as _);
    qp.wr_flush = asked(ffi::IBV_QP_EX_WITH_FLUSH).then_some(flush as _);
}

unsafe extern "C" fn start(qp: *mut ffi::ibv_qp_ex) {
    enter(Call::ibv_wr_start);
    let me = std::thread::current().id();
    // As providers do: from start to complete the queue pair is one thread's, and others wait.
    while !started(qp, me) {
        std::thread::yield_now();
    }
}

/// Opens the queue pair's builder for the thread `me`; `false` while it is another's.
fn started(qp: *mut ffi::ibv_qp_ex, me: std::thread::ThreadId) -> bool {
    let mut w = world();
    if let Ok(q) = w.qps.get(qp.cast(), Call::ibv_wr_start) {
        if q.builder.open && q.builder.owner != Some(me) {
            return false;
        }
        if q.builder.open {
            violation("ibv_wr_start: a second time, without ibv_wr_complete or ibv_wr_abort");
        }
        q.builder = Builder {
            open: true,
            owner: Some(me),
            ..Default::default()
        };
    }
    true
}

unsafe extern "C" fn abort(qp: *mut ffi::ibv_qp_ex) {
    enter(Call::ibv_wr_abort);
    if let Ok(q) = world().qps.get(qp.cast(), Call::ibv_wr_abort) {
        if !q.builder.open {
            violation("ibv_wr_abort: without ibv_wr_start");
        }
        q.builder = Builder::default();
    }
}

unsafe extern "C" fn complete(qp: *mut ffi::ibv_qp_ex) -> c_int {
    let fault = enter(Call::ibv_wr_complete);
    let mut w = world();
    let key = qp as usize;
    let q = match w.qps.get(qp.cast(), Call::ibv_wr_complete) {
        Ok(q) => q,
        Err(e) => return e,
    };
    let builder = std::mem::take(&mut q.builder);
    if !builder.open {
        violation("ibv_wr_complete: without ibv_wr_start");
        return libc::EINVAL;
    }
    if let Some(e) = fault {
        return e;
    }
    if builder.error != 0 {
        return builder.error;
    }
    // All or nothing: the queue takes the whole list or none of it.
    let free = u64::from(q.cap.max_send_wr).saturating_sub(q.send_posted - q.send_freed);
    if builder.requests.len() as u64 > free {
        return libc::ENOMEM;
    }
    let mut result = 0;
    for r in builder.requests {
        let wqe = SendWqe::new(r.wr_id, r.op, r.flags, r.payload);
        if let Err(e) = w.enqueue(key, wqe) {
            result = e;
            break;
        }
    }
    w.kick(key);
    result
}

/// Begins a request: what is in `wr_id` and `wr_flags` now counts.
///
/// # Safety
/// A pointer that the program calls a queue pair.
unsafe fn begin(qp: *mut ffi::ibv_qp_ex, need: u32, op: Op) {
    let mut w = world();
    let Ok(q) = w.qps.get(qp.cast(), Call::ibv_wr_start) else {
        return;
    };
    if !q.builder.open {
        violation("a request of the extended kind outside ibv_wr_start … ibv_wr_complete");
        return;
    }
    let ops = q.send_ops.unwrap_or(0);
    if ops & u64::from(need) == 0 {
        violation(&format!(
            "a request ({need:#x}) that the queue pair's send_ops_flags ({ops:#x}) do not name"
        ));
        q.builder.error = libc::EINVAL;
        return;
    }
    // SAFETY: found alive just now.
    let (wr_id, flags) = unsafe { ((*qp).wr_id, (*qp).wr_flags) };
    q.builder.requests.push(Request {
        wr_id,
        flags,
        op,
        payload: Payload::Sges(Vec::new()),
    });
}

/// Gives the request just begun its data.
fn set(qp: *mut ffi::ibv_qp_ex, payload: Payload) {
    let mut w = world();
    let Ok(q) = w.qps.get(qp.cast(), Call::ibv_wr_start) else {
        return;
    };
    let personality = q.context;
    let limit = q.cap;
    let personality = w.personality_of(personality);
    let Some(q) = w.qps.at_mut(qp as usize) else {
        return;
    };
    let Some(last) = q.builder.requests.last_mut() else {
        if q.builder.error == 0 {
            violation("data set before a request of the extended kind");
        }
        return;
    };
    match &payload {
        Payload::Inline(b) if b.len() > limit.max_inline_data as usize => {
            q.builder.error = libc::EINVAL;
        }
        // rxe goes by the flag as well as by the setter.
        Payload::Inline(_)
            if personality == Personality::Rxe && last.flags & ffi::IBV_SEND_INLINE == 0 =>
        {
            q.builder.error = libc::EINVAL;
        }
        Payload::Sges(s) if s.len() > limit.max_send_sge as usize => {
            q.builder.error = libc::EINVAL;
        }
        _ => {}
    }
    last.payload = payload;
}

unsafe extern "C" fn rdma_write(qp: *mut ffi::ibv_qp_ex, rkey: u32, addr: u64) {
    // SAFETY: as the caller promises.
    unsafe {
        begin(
            qp,
            ffi::IBV_QP_EX_WITH_RDMA_WRITE,
            Op::write(addr, rkey, None),
        )
    };
}

unsafe extern "C" fn rdma_write_imm(qp: *mut ffi::ibv_qp_ex, rkey: u32, addr: u64, imm: u32) {
    let op = Op::write(addr, rkey, Some(imm));
    // SAFETY: as the caller promises.
    unsafe { begin(qp, ffi::IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, op) };
}

unsafe extern "C" fn rdma_read(qp: *mut ffi::ibv_qp_ex, rkey: u32, addr: u64) {
    // SAFETY: as the caller promises.
    unsafe { begin(qp, ffi::IBV_QP_EX_WITH_RDMA_READ, Op::read(addr, rkey)) };
}

unsafe extern "C" fn send(qp: *mut ffi::ibv_qp_ex) {
    // SAFETY: as the caller promises.
    unsafe { begin(qp, ffi::IBV_QP_EX_WITH_SEND, Op::send(None)) };
}

unsafe extern "C" fn send_imm(qp: *mut ffi::ibv_qp_ex, imm: u32) {
    // SAFETY: as the caller promises.
    unsafe { begin(qp, ffi::IBV_QP_EX_WITH_SEND_WITH_IMM, Op::send(Some(imm))) };
}

unsafe extern "C" fn atomic_cmp_swp(
    qp: *mut ffi::ibv_qp_ex,
    rkey: u32,
    addr: u64,
    compare: u64,
    swap: u64,
) {
    let op = Op::CompareSwap {
        addr,
        rkey,
        compare,
        swap,
    };
    // SAFETY: as the caller promises.
    unsafe { begin(qp, ffi::IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, op) };
}

unsafe extern "C" fn atomic_fetch_add(qp: *mut ffi::ibv_qp_ex, rkey: u32, addr: u64, add: u64) {
    let op = Op::FetchAdd { addr, rkey, add };
    // SAFETY: as the caller promises.
    unsafe { begin(qp, ffi::IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, op) };
}

unsafe extern "C" fn atomic_write(
    qp: *mut ffi::ibv_qp_ex,
    rkey: u32,
    addr: u64,
    value: *const c_void,
) {
    // SAFETY: eight bytes at `value`, as the caller promises.
    unsafe {
        begin(
            qp,
            ffi::IBV_QP_EX_WITH_ATOMIC_WRITE,
            Op::AtomicWrite { addr, rkey },
        );
        let bytes = std::slice::from_raw_parts(value.cast::<u8>(), 8).to_vec();
        if let Some(q) = world().qps.at_mut(qp as usize) {
            if let Some(last) = q.builder.requests.last_mut() {
                last.payload = Payload::Inline(bytes);
            }
        }
    }
}

unsafe extern "C" fn flush(
    qp: *mut ffi::ibv_qp_ex,
    rkey: u32,
    addr: u64,
    len: usize,
    kind: u8,
    level: u8,
) {
    let op = Op::Flush {
        addr,
        rkey,
        len: len as u64,
        kind,
        level,
    };
    // SAFETY: as the caller promises.
    unsafe { begin(qp, ffi::IBV_QP_EX_WITH_FLUSH, op) };
}

unsafe extern "C" fn set_sge(qp: *mut ffi::ibv_qp_ex, lkey: u32, addr: u64, length: u32) {
    set(qp, Payload::Sges(vec![ffi::ibv_sge { addr, length, lkey }]));
}

unsafe extern "C" fn set_sge_list(qp: *mut ffi::ibv_qp_ex, n: usize, list: *const ffi::ibv_sge) {
    // SAFETY: `n` entries, as the caller promises.
    set(qp, Payload::Sges(unsafe { sges(list, n as c_int) }));
}

unsafe extern "C" fn set_inline_data(qp: *mut ffi::ibv_qp_ex, addr: *mut c_void, len: usize) {
    let buf = ffi::ibv_data_buf { addr, length: len };
    // SAFETY: as the caller promises.
    unsafe { set_inline_data_list(qp, 1, &raw const buf) };
}

unsafe extern "C" fn set_inline_data_list(
    qp: *mut ffi::ibv_qp_ex,
    n: usize,
    list: *const ffi::ibv_data_buf,
) {
    let mut bytes = Vec::new();
    // SAFETY: `n` entries of readable memory, as the caller promises.
    unsafe {
        for i in 0..n {
            let b = &*list.add(i);
            if b.length > 0 {
                bytes.extend_from_slice(std::slice::from_raw_parts(b.addr.cast::<u8>(), b.length));
            }
        }
    }
    set(qp, Payload::Inline(bytes));
}
