//! What librpma gets wrong when a call fails, done right here. It takes failures at will, so it
//! runs on the stand-in only.

mod common;

use common::*;
use rdma_sys as ffi;
use rpma::{
    Call, CmEventKind, ConnCfg, Error, FlushKind, FlushMethod, Memory, Peer, Signal, Usage,
    WcStatus,
};
use standin_control::{Exclusive, Knob, Standin};

/// The stand-in for this test alone; skips on real libraries.
macro_rules! standin {
    () => {
        match Standin::exclusive() {
            Some(standin) => standin,
            None => skip!("failures at will need the stand-in"),
        }
    };
}

fn clean(standin: &Exclusive) {
    assert_eq!(standin.violations(), Vec::<String>::new());
}

#[test]
fn a_failed_accept_rejects_and_gives_back() {
    let standin = standin!();
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    drop(pair(&peer, &ConnCfg::new()));
    let before = standin.objects();
    for _ in 0..3 {
        let client = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
        let request = next(&endpoint, &ConnCfg::new());
        standin.fail_nth("rdma_accept", 1, libc::EIO);
        let refused = request.connect(None);
        assert!(
            matches!(
                &refused,
                Err(Error::Provider {
                    call: Call::RdmaAccept,
                    ..
                })
            ),
            "{refused:?}"
        );
        assert_eq!(refusal(&client).0, CmEventKind::REJECTED);
    }
    assert_eq!(standin.objects(), before);
    clean(&standin);
}

#[test]
fn whatever_fails_while_a_request_is_taken_it_is_rejected() {
    let standin = standin!();
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    drop(pair(&peer, &ConnCfg::new()));
    let before = standin.objects();
    let cfg = ConnCfg::new().rcq_size(4);
    for call in [
        "rdma_create_event_channel",
        "rdma_migrate_id",
        "ibv_create_comp_channel",
        "ibv_create_cq",
        "ibv_req_notify_cq",
        "rdma_create_qp_ex",
    ] {
        let client = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
        standin.fail_nth(call, 1, libc::EIO);
        let refused = endpoint.next_request_timeout(&cfg, LONG);
        assert!(refused.is_err(), "{call}: {refused:?}");
        assert_eq!(refusal(&client).0, CmEventKind::REJECTED, "{call}");
    }
    assert_eq!(standin.objects(), before);
    clean(&standin);
}

#[test]
fn only_eagain_means_no_completion() {
    let standin = standin!();
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    for (errno, nothing) in [
        (libc::EAGAIN, true),
        (libc::EIO, false),
        (libc::EBADF, false),
    ] {
        server.recv(&rpma::LocalSlice::EMPTY, 1).unwrap();
        client.send_inline(&[], Signal::OnError(1)).unwrap();
        standin.fail_nth("ibv_get_cq_event", 1, errno);
        match server.cq().try_wait() {
            Ok(got) => assert!(nothing && !got),
            Err(err) => assert!(!nothing && err.raw_os_error() == Some(errno), "{err}"),
        }
        // The event is there still.
        assert!(server.cq().wait_timeout(LONG).unwrap().is_ready());
        success(server.cq(), 1);
    }
    clean(&standin);
}

#[test]
fn an_event_of_an_unknown_queue_is_acknowledged() {
    let standin = standin!();
    let peer = device!();
    if iwarp(&peer) {
        skip!("iWARP takes no receives of a queue pair that was never connected");
    }
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    // SAFETY: queues of the connection's device and domain, used and destroyed here.
    unsafe {
        let qp = client.as_raw_qp();
        let channel = (*(*qp).send_cq).channel;
        let stranger = ffi::ibv_create_cq((*qp).context, 4, std::ptr::null_mut(), channel, 0);
        assert!(!stranger.is_null());
        let mut init = ffi::ibv_qp_init_attr {
            send_cq: stranger,
            recv_cq: stranger,
            qp_type: ffi::IBV_QPT_RC,
            cap: ffi::ibv_qp_cap {
                max_send_wr: 1,
                max_recv_wr: 1,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 0,
            },
            ..std::mem::zeroed()
        };
        let lone = ffi::ibv_create_qp((*qp).pd, &mut init);
        assert!(!lone.is_null());
        assert_eq!(ffi::ibv_req_notify_cq(stranger, 0), 0);
        let mut attr: ffi::ibv_qp_attr = std::mem::zeroed();
        attr.qp_state = ffi::IBV_QPS_ERR;
        assert_eq!(
            ffi::ibv_modify_qp(lone, &mut attr, ffi::IBV_QP_STATE as i32),
            0
        );
        let mut wr: ffi::ibv_recv_wr = std::mem::zeroed();
        let mut bad = std::ptr::null_mut();
        assert_eq!(ffi::ibv_post_recv(lone, &mut wr, &mut bad), 0);

        // Nothing for this connection, and nothing that is left unacknowledged.
        let ready = client
            .cq()
            .wait_timeout(std::time::Duration::from_millis(50));
        assert!(!ready.unwrap().is_ready());
        assert_eq!(standin.objects().cq_events, 0);
        assert_eq!(ffi::ibv_destroy_qp(lone), 0);
        assert_eq!(ffi::ibv_destroy_cq(stranger), 0);
    }
    client.recv(&rpma::LocalSlice::EMPTY, 1).unwrap();
    server.send_inline(&[], Signal::OnError(1)).unwrap();
    assert!(client.cq().wait_timeout(LONG).unwrap().is_ready());
    success(client.cq(), 1);
    clean(&standin);
}

#[test]
fn what_a_failed_close_was_for_can_be_closed_again() {
    let standin = standin!();
    let peer = device!();
    let before = standin.objects();
    let memory = Memory::from_owner(vec![7u8; 100]).unwrap();
    let at = memory.as_ptr();
    let region = peer.register(memory, remote_usage()).unwrap();
    standin.fail_nth("ibv_dereg_mr", 1, libc::EBUSY);
    let (region, err) = region.close().unwrap_err();
    assert_eq!(err.raw_os_error(), Some(libc::EBUSY));
    // As good as before.
    assert_eq!(contents(&region), [7; 100]);
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    client
        .write_inline(
            &[8],
            &remote(&region).slice(0..1).unwrap(),
            Signal::Always(1),
        )
        .unwrap();
    success(client.cq(), 1);
    drop((client, server));
    let memory = region.close().map_err(|(_, err)| err).unwrap();
    assert_eq!(memory.as_ptr(), at);
    drop(memory);
    assert_eq!(standin.objects().mrs, before.mrs + 1, "the flush buffer");
    clean(&standin);
}

#[test]
fn the_flush_buffer_goes_after_its_queue_pair() {
    let standin = standin!();
    let peer = device!();
    drop(peer);
    let Ok(peer) = Peer::local(&addr()) else {
        return;
    };
    let cfg = ConnCfg::new().flush_method(FlushMethod::ReadAfterWrite);
    let Pair { client, server } = pair(&peer, &cfg);
    let log = region(&peer, 64, remote_usage(), |_| 0);
    client
        .flush(
            &remote(&log).whole(),
            FlushKind::Visibility,
            Signal::Always(1),
        )
        .unwrap();
    success(client.cq(), 1);
    drop(log);
    drop(peer);
    standin.start_trace();
    drop((client, server));
    let calls: Vec<String> = standin.trace().into_iter().map(|call| call.name).collect();
    let last_qp = calls.iter().rposition(|name| name == "rdma_destroy_qp");
    let first_mr = calls.iter().position(|name| name == "ibv_dereg_mr");
    assert!(first_mr.is_some() && last_qp.is_some(), "{calls:?}");
    assert!(first_mr > last_qp, "{calls:?}");
    clean(&standin);
}

#[test]
fn a_completion_of_any_status_is_told_and_the_rest_is_flushed() {
    let standin = standin!();
    let peer = device!();
    for status in [
        WcStatus::LOC_PROT_ERR,
        WcStatus::REM_OP_ERR,
        WcStatus::RETRY_EXC_ERR,
        WcStatus::FATAL_ERR,
        WcStatus::from_raw(77),
    ] {
        let Pair { client, server } = pair(&peer, &ConnCfg::new());
        let log = region(&peer, 64, remote_usage(), |_| 0);
        let word = remote(&log).slice(0..8).unwrap();
        standin.inject_status(2, status.as_raw());
        for n in 0..4 {
            let posted = client.write_inline(&[1; 8], &word, Signal::OnError(n));
            assert!(posted.is_ok() || n > 1);
        }
        assert_eq!(completion(client.cq()).status(), status);
        while let Some(wc) = client.cq().poll_one().unwrap() {
            assert_eq!(wc.status(), WcStatus::WR_FLUSH_ERR);
        }
        assert!(!format!("{status} {status:?}").is_empty());
        drop(server);
    }
    clean(&standin);
}

#[test]
fn a_cut_link_ends_what_is_in_flight() {
    let standin = standin!();
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    let source = region(&peer, 64, Usage::WRITE_SRC, |_| 1);
    let log = region(&peer, 64, remote_usage(), |_| 0);
    standin.set(Knob::Cut, 1);
    let post = Signal::OnError(5);
    client
        .write(&source.slice(..).unwrap(), &remote(&log).whole(), post)
        .unwrap();
    let wc = completion(client.cq());
    assert!(!wc.is_success() && wc.wr_id() == 5, "{wc:?}");
    standin.set(Knob::Cut, 0);
    drop((client, server));
    drop(pair(&peer, &ConnCfg::new()));
    clean(&standin);
}

#[test]
fn memory_that_cannot_be_pinned_is_fetched_on_demand_but_for_soft_roce() {
    let standin = standin!();
    let peer = device!();
    if iwarp(&peer) {
        skip!("soft-iWARP has no on-demand paging");
    }
    standin.set(Knob::OnDemandPaging, 1);
    // What a peer knows of its device, it knows from when it was made.
    let peer = Peer::local(addr().as_str()).unwrap();
    let register = || peer.register(Memory::anonymous(4096).unwrap(), remote_usage());
    assert!(!register().unwrap().is_on_demand());
    for errno in [libc::EOPNOTSUPP, libc::EFAULT] {
        standin.set(Knob::PinnedErrno, errno.into());
        if is_soft_roce(&peer) {
            let refused = register().unwrap_err();
            assert!(refused.to_string().contains("Soft-RoCE"), "{refused}");
            assert!(matches!(refused, Error::NotSupported { .. }), "{refused:?}");
        } else {
            assert!(register().unwrap().is_on_demand());
        }
    }
    standin.reset();
    clean(&standin);
}
