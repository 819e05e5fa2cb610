//! What null mode costs: `valgrind --tool=callgrind` on this with two loop lengths, the difference
//! divided by theirs. Usage: LD_LIBRARY_PATH=$(ci/standin) STANDIN_NULL=1 null_mode LOOPS

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Options, Pair};
use rdma_sys as ffi;

fn main() {
    let loops: u64 = std::env::args().nth(1).map_or(1000, |a| a.parse().unwrap());
    unsafe {
        let pair = Pair::new(7501, Options::default());
        let (a, b) = (&pair.active, &pair.passive);
        let mut sge = a.sge(0, 8);
        let mut bad = std::ptr::null_mut();
        let mut wr = ffi::ibv_send_wr {
            sg_list: &raw mut sge,
            num_sge: 1,
            opcode: ffi::IBV_WR_RDMA_WRITE,
            send_flags: ffi::IBV_SEND_SIGNALED,
            ..Default::default()
        };
        wr.wr.rdma.remote_addr = b.at(0);
        wr.wr.rdma.rkey = b.rkey();
        let qp = (*a.id).qp;
        let mut wc = ffi::ibv_wc::default();
        for _ in 0..loops {
            assert_eq!(ffi::ibv_post_send(qp, &raw mut wr, &raw mut bad), 0);
            assert_eq!(ffi::ibv_poll_cq(a.cq, 1, &raw mut wc), 1);
        }
        pair.close();
    }
}
