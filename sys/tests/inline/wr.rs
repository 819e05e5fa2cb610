//! Work requests on an extended QP.

use crate::fake::{at, call, calls, recorders, words_of};
use libc::{c_int, c_void};
use rpma_sys::*;
use std::mem::offset_of;

type Qp = *mut ibv_qp_ex;

recorders! {
    fn start(qp: Qp);
    fn complete(qp: Qp) -> c_int = 12;
    fn abort(qp: Qp);
    fn write(qp: Qp, rkey: u32, addr: u64);
    fn write_imm(qp: Qp, rkey: u32, addr: u64, imm: u32);
    fn read(qp: Qp, rkey: u32, addr: u64);
    fn send(qp: Qp);
    fn send_imm(qp: Qp, imm: u32);
    fn send_inv(qp: Qp, rkey: u32);
    fn send_tso(qp: Qp, hdr: *mut c_void, size: u16, mss: u16);
    fn cmp_swp(qp: Qp, rkey: u32, addr: u64, compare: u64, swap: u64);
    fn fetch_add(qp: Qp, rkey: u32, addr: u64, add: u64);
    fn atomic_write(qp: Qp, rkey: u32, addr: u64, value: *const c_void);
    fn flush(qp: Qp, rkey: u32, addr: u64, len: usize, kind: u8, level: u8);
    fn local_inv(qp: Qp, rkey: u32);
    fn bind_mw(qp: Qp, mw: *mut ibv_mw, rkey: u32, info: *const ibv_mw_bind_info);
    fn sge(qp: Qp, lkey: u32, addr: u64, len: u32);
    fn sge_list(qp: Qp, num: usize, list: *const ibv_sge);
    fn inline_data(qp: Qp, addr: *mut c_void, len: usize);
    fn inline_data_list(qp: Qp, num: usize, list: *const ibv_data_buf);
    fn ud_addr(qp: Qp, ah: *mut ibv_ah, qpn: u32, qkey: u32);
    fn xrc_srqn(qp: Qp, srqn: u32);
}

fn recording_qp() -> ibv_qp_ex {
    ibv_qp_ex {
        wr_start: Some(start),
        wr_complete: Some(complete),
        wr_abort: Some(abort),
        wr_rdma_write: Some(write),
        wr_rdma_write_imm: Some(write_imm),
        wr_rdma_read: Some(read),
        wr_send: Some(send),
        wr_send_imm: Some(send_imm),
        wr_send_inv: Some(send_inv),
        wr_send_tso: Some(send_tso),
        wr_atomic_cmp_swp: Some(cmp_swp),
        wr_atomic_fetch_add: Some(fetch_add),
        wr_atomic_write: Some(atomic_write),
        wr_flush: Some(flush),
        wr_local_inv: Some(local_inv),
        wr_bind_mw: Some(bind_mw),
        wr_set_sge: Some(sge),
        wr_set_sge_list: Some(sge_list),
        wr_set_inline_data: Some(inline_data),
        wr_set_inline_data_list: Some(inline_data_list),
        wr_set_ud_addr: Some(ud_addr),
        wr_set_xrc_srqn: Some(xrc_srqn),
        ..Default::default()
    }
}

#[test]
fn every_call_reaches_its_entry() {
    let mut qp = recording_qp();
    let qp = &raw mut qp;
    let (bytes, list, bufs) = (
        at::<c_void>(0x10),
        at::<ibv_sge>(0x20),
        at::<ibv_data_buf>(0x30),
    );
    let (mw, info, ah) = (
        at::<ibv_mw>(0x40),
        at::<ibv_mw_bind_info>(0x50),
        at::<ibv_ah>(0x60),
    );
    // SAFETY: the entries only record.
    unsafe {
        ibv_wr_start(qp);
        ibv_wr_rdma_write(qp, 1, 2);
        ibv_wr_rdma_write_imm(qp, 1, 2, 3);
        ibv_wr_rdma_read(qp, 1, 2);
        ibv_wr_send(qp);
        ibv_wr_send_imm(qp, 1);
        ibv_wr_send_inv(qp, 1);
        ibv_wr_send_tso(qp, bytes, 1, 2);
        ibv_wr_atomic_cmp_swp(qp, 1, 2, 3, 4);
        ibv_wr_atomic_fetch_add(qp, 1, 2, 3);
        ibv_wr_atomic_write(qp, 1, 2, bytes);
        ibv_wr_flush(qp, 1, 2, 3, 4, 5);
        ibv_wr_local_inv(qp, 1);
        ibv_wr_bind_mw(qp, mw, 1, info);
        ibv_wr_set_sge(qp, 1, 2, 3);
        ibv_wr_set_sge_list(qp, 1, list);
        ibv_wr_set_inline_data(qp, bytes, 1);
        ibv_wr_set_inline_data_list(qp, 1, bufs);
        ibv_wr_set_ud_addr(qp, ah, 1, 2);
        ibv_wr_set_xrc_srqn(qp, 1);
        ibv_wr_abort(qp);
        assert_eq!(ibv_wr_complete(qp), 12);
    }
    assert_eq!(
        calls(),
        [
            call!(start(qp)),
            call!(write(qp, 1, 2)),
            call!(write_imm(qp, 1, 2, 3)),
            call!(read(qp, 1, 2)),
            call!(send(qp)),
            call!(send_imm(qp, 1)),
            call!(send_inv(qp, 1)),
            call!(send_tso(qp, bytes, 1, 2)),
            call!(cmp_swp(qp, 1, 2, 3, 4)),
            call!(fetch_add(qp, 1, 2, 3)),
            call!(atomic_write(qp, 1, 2, bytes)),
            call!(flush(qp, 1, 2, 3, 4, 5)),
            call!(local_inv(qp, 1)),
            call!(bind_mw(qp, mw, 1, info)),
            call!(sge(qp, 1, 2, 3)),
            call!(sge_list(qp, 1, list)),
            call!(inline_data(qp, bytes, 1)),
            call!(inline_data_list(qp, 1, bufs)),
            call!(ud_addr(qp, ah, 1, 2)),
            call!(xrc_srqn(qp, 1)),
            call!(abort(qp)),
            call!(complete(qp)),
        ]
    );
}

#[test]
fn the_qp_of_v44_serves_all_but_flush() {
    // Memory of the older struct's size: an access past it is an error that a sanitizer sees.
    let whole = recording_qp();
    let older = offset_of!(ibv_qp_ex, wr_flush) / 8;
    let mut memory: Box<[_]> = words_of(&whole)[..older].into();
    let qp = memory.as_mut_ptr().cast::<ibv_qp_ex>();
    // SAFETY: entries within the memory, which only record.
    unsafe {
        ibv_wr_start(qp);
        ibv_wr_atomic_write(qp, 1, 2, at(3));
        assert_eq!(ibv_wr_complete(qp), 12);
    }
    let value = at::<c_void>(3);
    assert_eq!(
        calls(),
        [
            call!(start(qp)),
            call!(atomic_write(qp, 1, 2, value)),
            call!(complete(qp))
        ]
    );
}
