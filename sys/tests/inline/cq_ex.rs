//! Polling an extended CQ.

use crate::fake::{at, call, calls, recorders};
use libc::{c_int, c_uint};
use rpma_sys::*;

type Cq = *mut ibv_cq_ex;

recorders! {
    fn start(cq: Cq, attr: *mut ibv_poll_cq_attr) -> c_int = 1;
    fn next(cq: Cq) -> c_int = 2;
    fn end(cq: Cq);
    fn opcode(cq: Cq) -> ibv_wc_opcode = 3;
    fn vendor_err(cq: Cq) -> u32 = 4;
    fn byte_len(cq: Cq) -> u32 = 5;
    fn imm_data(cq: Cq) -> u32 = 0x0102_0304_u32.to_be();
    fn qp_num(cq: Cq) -> u32 = 7;
    fn src_qp(cq: Cq) -> u32 = 8;
    fn wc_flags(cq: Cq) -> c_uint = 9;
    fn slid(cq: Cq) -> u32 = 10;
    fn sl(cq: Cq) -> u8 = 11;
    fn dlid_path_bits(cq: Cq) -> u8 = 12;
    fn completion_ts(cq: Cq) -> u64 = 13;
    fn wallclock(cq: Cq) -> u64 = 14;
    fn cvlan(cq: Cq) -> u16 = 15;
    fn flow_tag(cq: Cq) -> u32 = 16;
    fn tm_info(cq: Cq, info: *mut ibv_wc_tm_info);
}

#[test]
fn every_accessor_reaches_its_entry() {
    let mut cq = ibv_cq_ex {
        start_poll: Some(start),
        next_poll: Some(next),
        end_poll: Some(end),
        read_opcode: Some(opcode),
        read_vendor_err: Some(vendor_err),
        read_byte_len: Some(byte_len),
        read_imm_data: Some(imm_data),
        read_qp_num: Some(qp_num),
        read_src_qp: Some(src_qp),
        read_wc_flags: Some(wc_flags),
        read_slid: Some(slid),
        read_sl: Some(sl),
        read_dlid_path_bits: Some(dlid_path_bits),
        read_completion_ts: Some(completion_ts),
        read_completion_wallclock_ns: Some(wallclock),
        read_cvlan: Some(cvlan),
        read_flow_tag: Some(flow_tag),
        read_tm_info: Some(tm_info),
        ..Default::default()
    };
    let cq = &raw mut cq;
    let (attr, info) = (at::<ibv_poll_cq_attr>(0x10), at::<ibv_wc_tm_info>(0x20));
    // SAFETY: the entries only record.
    unsafe {
        assert_eq!(ibv_cq_ex_to_cq(cq), cq.cast());
        assert_eq!(ibv_start_poll(cq, attr), 1);
        assert_eq!(ibv_next_poll(cq), 2);
        ibv_end_poll(cq);
        assert_eq!(ibv_wc_read_opcode(cq), 3);
        assert_eq!(ibv_wc_read_vendor_err(cq), 4);
        assert_eq!(ibv_wc_read_byte_len(cq), 5);
        assert_eq!(ibv_wc_read_imm_data(cq), 0x0102_0304_u32.to_be());
        assert_eq!(ibv_wc_read_invalidated_rkey(cq), 0x0102_0304);
        assert_eq!(ibv_wc_read_qp_num(cq), 7);
        assert_eq!(ibv_wc_read_src_qp(cq), 8);
        assert_eq!(ibv_wc_read_wc_flags(cq), 9);
        assert_eq!(ibv_wc_read_slid(cq), 10);
        assert_eq!(ibv_wc_read_sl(cq), 11);
        assert_eq!(ibv_wc_read_dlid_path_bits(cq), 12);
        assert_eq!(ibv_wc_read_completion_ts(cq), 13);
        assert_eq!(ibv_wc_read_completion_wallclock_ns(cq), 14);
        assert_eq!(ibv_wc_read_cvlan(cq), 15);
        assert_eq!(ibv_wc_read_flow_tag(cq), 16);
        ibv_wc_read_tm_info(cq, info);
    }
    let calls = calls();
    assert_eq!(calls.len(), 19, "{calls:?}");
    assert_eq!(calls[0], call!(start(cq, attr)));
    assert_eq!(calls[1..3], [call!(next(cq)), call!(end(cq))]);
    assert_eq!(calls[18], call!(tm_info(cq, info)));
}
