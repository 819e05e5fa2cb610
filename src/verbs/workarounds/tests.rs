use super::*;

#[test]
fn short_ranges_end_at_a_page() {
    assert_eq!(page_end(4090, 24), Some(6));
    assert_eq!(page_end(4095, 2), Some(1));
    assert_eq!(page_end(8192 - 31, 32), Some(31));
    assert_eq!(page_end(4096, 32), None);
    assert_eq!(page_end(4090, 6), None);
    assert_eq!(page_end(4090, 33), None);
    assert_eq!(page_end(u64::MAX - 31, 32), None);
}

#[test]
fn each_fault_has_its_reads() {
    let (siw, rxe) = (
        Workarounds::SPLIT_SHORT_READS,
        Workarounds::SPLIT_LONG_READS,
    );
    assert_eq!(siw.split(4090, 24, false), Some(6));
    assert_eq!(siw.split(4090, 33, true), None);
    assert_eq!(siw.split(0, 1 << 40, true), None);
    assert_eq!(rxe.split(4090, 256, true), None);
    assert_eq!(rxe.split(0, 257, true), Some(249));
    assert_eq!(rxe.split(0, 1 << 40, true), Some((1 << 40) - 8));
    // Nobody hears of its success.
    assert_eq!(rxe.split(0, 257, false), None);
    assert_eq!(Workarounds::empty().split(4090, 1 << 40, true), None);
}

#[test]
fn the_second_part_fails_as_the_first_one_did() {
    let failed = Failed::default();
    let wc = |wr_id, status, opcode| ffi::ibv_wc {
        wr_id,
        status,
        opcode,
        qp_num: 7,
        ..Default::default()
    };
    let (denied, flushed) = (ffi::IBV_WC_REM_ACCESS_ERR, ffi::IBV_WC_WR_FLUSH_ERR);
    assert!(!failed.hides(&mut wc(1, ffi::IBV_WC_SUCCESS, ffi::IBV_WC_RDMA_READ)));
    assert!(failed.hides(&mut wc(FIRST_PART, denied, ffi::IBV_WC_RDMA_READ)));
    let mut received = wc(2, flushed, ffi::IBV_WC_RECV);
    let mut second = wc(3, flushed, ffi::IBV_WC_RDMA_READ);
    let mut next = wc(4, flushed, ffi::IBV_WC_RDMA_READ);
    for wc in [&mut received, &mut second, &mut next] {
        assert!(!failed.hides(wc));
    }
    assert_eq!(
        [received.status, second.status, next.status],
        [flushed, denied, flushed]
    );
}
