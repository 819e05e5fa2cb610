//! Receives of no bytes: they take messages of no bytes, on every queue and by every way of
//! posting.

mod common;

use common::*;
use rpma::{ConnCfg, LocalSlice, Signal, Srq, SrqCfg, WcOpcode};

#[test]
fn receives_of_no_bytes_take_messages_of_no_bytes() {
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    server.recv(&LocalSlice::EMPTY, 1).unwrap();
    let mut batch = server.recv_batch().unwrap();
    batch.recv(&LocalSlice::EMPTY, 2).unwrap();
    batch.recv_scatter(&[], 3).unwrap();
    batch.submit().unwrap();
    for n in 1..=3 {
        client.send(&LocalSlice::EMPTY, Signal::Always(n)).unwrap();
        success(client.cq(), n);
        let wc = success(server.cq(), n);
        assert_eq!((wc.opcode(), wc.byte_len()), (WcOpcode::RECV, 0));
    }
}

#[test]
fn so_they_do_on_a_shared_queue() {
    let peer = device!();
    let srq = Srq::new(&peer, &SrqCfg::new().size(4)).unwrap();
    let cfg = ConnCfg::new();
    let Pair { client, server } = pair_of(&peer, &cfg, &peer, &cfg.clone().srq(&srq));
    srq.recv(&LocalSlice::EMPTY, 1).unwrap();
    let mut batch = srq.recv_batch();
    batch.recv(&LocalSlice::EMPTY, 2).unwrap();
    batch.submit().unwrap();
    for n in 1..=2 {
        client.send(&LocalSlice::EMPTY, Signal::Always(n)).unwrap();
        success(client.cq(), n);
        let wc = success(server.rcq().unwrap(), n);
        assert_eq!((wc.opcode(), wc.byte_len()), (WcOpcode::RECV, 0));
    }
}
