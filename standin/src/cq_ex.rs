//! The extended way to poll: `start_poll`, readers, `next_poll`, `end_poll`.

use libc::c_int;
use rdma_sys as ffi;

use crate::calls::{Call, enter};
use crate::ret::pointer;
use crate::violations::violation;
use crate::world::world;

/// What the readers can tell of.
const WC_FLAGS: u64 = ffi::IBV_WC_STANDARD_FLAGS as u64;

/// `verbs_context.create_cq_ex`.
pub unsafe extern "C" fn create_cq_ex(
    ctx: *mut ffi::ibv_context,
    init: *mut ffi::ibv_cq_init_attr_ex,
) -> *mut ffi::ibv_cq_ex {
    if let Some(e) = enter(Call::ibv_create_cq_ex) {
        return pointer(Err(e));
    }
    // SAFETY: the caller's struct.
    let asked = unsafe { &*init };
    if asked.wc_flags & !WC_FLAGS != 0 || asked.comp_mask != 0 {
        return pointer(Err(libc::EOPNOTSUPP));
    }
    let mut w = world();
    let (vector, cqe) = (asked.comp_vector as c_int, asked.cqe as c_int);
    let made = w
        .check_cq(ctx, asked.channel, vector, Call::ibv_create_cq_ex)
        .and_then(|()| w.new_cq(ctx, cqe, asked.cq_context, asked.channel))
        .map(|cq| cq.cast::<ffi::ibv_cq_ex>());
    if let Ok(cq) = made {
        // SAFETY: a queue made just now; its memory holds the extended struct.
        unsafe { fill(&mut *cq) };
    }
    pointer(made)
}

fn fill(cq: &mut ffi::ibv_cq_ex) {
    cq.start_poll = Some(start_poll);
    cq.next_poll = Some(next_poll);
    cq.end_poll = Some(end_poll);
    cq.read_opcode = Some(read_opcode);
    cq.read_vendor_err = Some(read_vendor_err);
    cq.read_byte_len = Some(read_byte_len);
    cq.read_imm_data = Some(read_imm_data);
    cq.read_qp_num = Some(read_qp_num);
    cq.read_src_qp = Some(read_src_qp);
    cq.read_wc_flags = Some(read_wc_flags);
    cq.read_slid = Some(read_slid);
    cq.read_sl = Some(read_sl);
    cq.read_dlid_path_bits = Some(read_dlid_path_bits);
}

/// Takes one completion; ENOENT if there is none.
unsafe fn advance(cq: *mut ffi::ibv_cq_ex, call: Call) -> c_int {
    if let Some(e) = enter(call) {
        return e;
    }
    let mut w = world();
    let taken = match w.poll(cq.cast(), 1, call) {
        Ok(t) => t.first().copied(),
        Err(e) => return e,
    };
    let Some(wc) = taken else {
        return libc::ENOENT;
    };
    if let Some(c) = w.cqs.at_mut(cq as usize) {
        c.current = Some(wc);
    }
    // SAFETY: found alive just now.
    unsafe {
        (*cq).wr_id = wc.wr_id;
        (*cq).status = wc.status;
    }
    0
}

unsafe extern "C" fn start_poll(cq: *mut ffi::ibv_cq_ex, _: *mut ffi::ibv_poll_cq_attr) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { advance(cq, Call::ibv_start_poll) }
}

unsafe extern "C" fn next_poll(cq: *mut ffi::ibv_cq_ex) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { advance(cq, Call::ibv_next_poll) }
}

unsafe extern "C" fn end_poll(cq: *mut ffi::ibv_cq_ex) {
    enter(Call::ibv_end_poll);
    if let Ok(c) = world().cqs.get(cq.cast(), Call::ibv_end_poll) {
        if c.current.take().is_none() {
            violation("ibv_end_poll: without a successful ibv_start_poll");
        }
    }
}

/// The completion at hand.
fn current(cq: *mut ffi::ibv_cq_ex) -> ffi::ibv_wc {
    let mut w = world();
    let wc = match w.cqs.get(cq.cast(), Call::ibv_start_poll) {
        Ok(c) => c.current,
        Err(_) => return ffi::ibv_wc::default(),
    };
    wc.unwrap_or_else(|| {
        violation("a completion is read outside ibv_start_poll … ibv_end_poll");
        ffi::ibv_wc::default()
    })
}

macro_rules! readers {
    ($($name:ident -> $ty:ty: $wc:ident => $value:expr;)*) => { $(
        unsafe extern "C" fn $name(cq: *mut ffi::ibv_cq_ex) -> $ty {
            let $wc = current(cq);
            $value
        }
    )* };
}

readers! {
    read_opcode -> ffi::ibv_wc_opcode: wc => wc.opcode;
    read_vendor_err -> u32: wc => wc.vendor_err;
    read_byte_len -> u32: wc => wc.byte_len;
    // SAFETY: both parts of the union are plain numbers of the same size.
    read_imm_data -> u32: wc => unsafe { wc.__bindgen_anon_1.imm_data };
    read_qp_num -> u32: wc => wc.qp_num;
    read_src_qp -> u32: wc => wc.src_qp;
    read_wc_flags -> u32: wc => wc.wc_flags;
    read_slid -> u32: wc => u32::from(wc.slid);
    read_sl -> u8: wc => wc.sl;
    read_dlid_path_bits -> u8: wc => wc.dlid_path_bits;
}
