//! Options of a connection: each takes effect on the side that sets it, or is refused by name.

mod common;

use std::time::Duration;

use common::*;
use rdma_sys as ffi;
use rpma::{
    Completion, ConnCfg, ConnRequest, Connection, Endpoint, EndpointCfg, Error, FlushKind, Memory,
    PeerCfg, Signal, Srq, SrqCfg, Usage, Wait,
};

/// What the queue pair itself says.
fn attributes(conn: &Connection) -> ffi::ibv_qp_attr {
    let mut attr = ffi::ibv_qp_attr::default();
    let mut init = ffi::ibv_qp_init_attr::default();
    let mask = ffi::IBV_QP_TIMEOUT
        | ffi::IBV_QP_RETRY_CNT
        | ffi::IBV_QP_RNR_RETRY
        | ffi::IBV_QP_MIN_RNR_TIMER;
    // SAFETY: the queue pair lives as long as the connection; the structs are whole.
    let ret = unsafe { ffi::ibv_query_qp(conn.as_raw_qp(), &mut attr, mask as i32, &mut init) };
    assert_eq!(ret, 0);
    attr
}

#[test]
fn every_option_takes_effect_on_both_sides() {
    let peer = device!();
    let vector = u32::from(peer.capabilities().completion_vectors > 1);
    let options = |n: u8| {
        ConnCfg::new()
            .cq_size(30 + u32::from(n))
            .rcq_size(40 + u32::from(n))
            .sq_size(16 + u32::from(n))
            .rq_size(12 + u32::from(n))
            .shared_channel(true)
            .max_inline(24 + u32::from(n))
            .max_sge(2)
            .comp_vector(vector)
            .retry_count(2 + n)
            .rnr_retry_count(3 + n)
            .min_rnr_timer(Duration::from_millis(u64::from(n)))
            .responder_resources(4 + n)
            .initiator_depth(6 - n)
            .ack_timeout(14 + n)
    };
    let (client_cfg, server_cfg) = (options(1), options(2));
    let Pair { client, server } =
        pair_of(&peer, &client_cfg.type_of_service(32), &peer, &server_cfg);
    for (conn, n) in [(&client, 1), (&server, 2)] {
        assert!(conn.cq().entries() >= 30 + n);
        assert!(conn.rcq().unwrap().entries() >= 40 + n);
        assert!(conn.sq_size() >= 16 + n && conn.rq_size() >= 12 + n);
        assert!(conn.max_inline() >= 24 + n && conn.max_sge() >= 2);
        conn.completion_fd().unwrap();
    }
    if iwarp(&peer) {
        assert_eq!(
            (client.initiator_depth(), server.initiator_depth()),
            (None, None)
        );
        return;
    }
    // The least of what the one asked for and the other answers.
    assert_eq!(client.initiator_depth(), Some(5));
    assert_eq!(server.initiator_depth(), Some(4));
    let (ours, theirs) = (attributes(&client), attributes(&server));
    assert_eq!((ours.timeout, theirs.timeout), (15, 16));
    // The side that asks says how often either tries again.
    assert_eq!((ours.retry_cnt, theirs.retry_cnt), (3, 3));
    // Each side says it for the other.
    assert_eq!((ours.rnr_retry, theirs.rnr_retry), (5, 4));
    // 1.28 ms and 2.56 ms.
    assert_eq!((ours.min_rnr_timer, theirs.min_rnr_timer), (14, 16));
}

#[test]
fn receivers_that_are_late_are_tried_again_soon_by_default() {
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    for conn in [&client, &server] {
        if !iwarp(&peer) {
            assert!(conn.initiator_depth().is_some_and(|depth| depth > 0));
            // 10.24 ms.
            assert_eq!(attributes(conn).min_rnr_timer, 20);
        }
    }
}

#[test]
fn a_side_that_answers_no_reads_is_known() {
    let peer = device!();
    if iwarp(&peer) {
        skip!("the connection manager of iWARP does not tell the depths");
    }
    let none = ConnCfg::new().responder_resources(0);
    let (endpoint, port) = listen(&peer);
    let client = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
    assert_eq!(client.initiator_depth(), None);
    let server = next(&endpoint, &none).connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    assert_eq!(client.initiator_depth(), Some(0));
    assert!(server.initiator_depth().is_some_and(|depth| depth > 0));
    let Pair { client, server } = pair_of(&peer, &none, &peer, &ConnCfg::new().initiator_depth(3));
    assert!(client.initiator_depth().is_some_and(|depth| depth > 0));
    assert_eq!(server.initiator_depth(), Some(0));

    // What would never complete is refused before it is posted; all else works.
    let log = region(&peer, 64, remote_usage() | local_usage(), |_| 0);
    let (near, far) = (log.slice(..8).unwrap(), remote(&log).slice(8..16).unwrap());
    let refused = |result: Result<(), Error>| {
        assert!(
            matches!(&result, Err(Error::NotSupported { capability }) if capability.contains("responder_resources")),
            "{result:?}"
        );
    };
    refused(server.read(&near, &far, Signal::Always(1)));
    refused(server.flush(&far, FlushKind::Visibility, Signal::Always(2)));
    let mut batch = server.batch();
    refused(batch.read(&near, &far, Signal::Always(3)));
    refused(batch.flush(&far, FlushKind::Visibility, Signal::Always(4)));
    batch.write(&near, &far, Signal::Always(5)).unwrap();
    batch.submit().unwrap();
    success(server.cq(), 5);
    server.apply_peer_cfg(&PeerCfg::new().with_direct_write_to_pmem(true));
    refused(server.flush(&far, FlushKind::Visibility, Signal::Always(6)));
    client.read(&near, &far, Signal::Always(7)).unwrap();
    success(client.cq(), 7);
}

#[test]
fn the_order_in_which_data_are_seen_can_be_asked_for() {
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new());
    for conn in [&client, &server] {
        let order = conn.data_in_order();
        assert!(order.aligned_128_bytes || !order.whole_message);
        if on_standin() {
            let adapter = std::env::var("STANDIN_DEVICE").is_ok_and(|name| name == "mlx5");
            assert_eq!(order.aligned_128_bytes, adapter);
        }
    }
}

#[test]
fn memory_of_relaxed_ordering_is_written_and_read() {
    let peer = device!();
    let usage = Usage::READ_SRC | Usage::WRITE_DST | Usage::RELAXED_ORDERING;
    let rig = Rig::of(&peer, &ConnCfg::new(), 4096, usage);
    assert_eq!(rig.log.usage(), usage);
    // Peers need not know.
    assert_eq!(rig.remote.usage(), usage - Usage::RELAXED_ORDERING);
    let (local, remote) = (rig.local.slice(..).unwrap(), rig.remote.slice(..).unwrap());
    rig.client
        .write(&local, &remote, Signal::Always(1))
        .unwrap();
    let mut wcs = [Completion::default(); 1];
    let wait = Wait::new().timeout(LONG);
    assert!(rig.client.cq().take(&mut wcs, wait).unwrap()[0].is_success());
    assert_eq!(contents(&rig.log), contents(&rig.local));
    let flushed = usage | Usage::FLUSH_VISIBILITY;
    let err = peer
        .register(Memory::anonymous(8).unwrap(), flushed)
        .unwrap_err();
    assert_eq!(err.code(), rpma::code::INVAL, "{err:?}");
}

/// The error must say that `argument` is above a limit.
fn is_above(err: &Error, argument: &str) {
    assert!(
        matches!(err, Error::AboveLimit { argument: named, .. } if *named == argument),
        "{argument}: {err:?}"
    );
    assert!(err.to_string().contains(argument), "{err}");
}

#[test]
fn what_the_device_does_not_have_is_refused_by_name() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let plain = ConnCfg::new();
    let caps = peer.capabilities().clone();
    let over = |limit: u32| limit.saturating_add(1);
    let mut refused = vec![
        ("sq_size", plain.clone().sq_size(over(caps.max_queue_depth))),
        ("rq_size", plain.clone().rq_size(over(caps.max_queue_depth))),
        ("cq_size", plain.clone().cq_size(over(caps.max_cq_entries))),
        (
            "rcq_size",
            plain.clone().rcq_size(over(caps.max_cq_entries)),
        ),
        (
            "comp_vector",
            plain.clone().comp_vector(caps.completion_vectors),
        ),
        ("max_inline", plain.clone().max_inline(1 << 24)),
    ];
    if caps.max_sge < 16 {
        refused.push(("max_sge", plain.clone().max_sge(16)));
    }
    if caps.max_responder_resources < 200 {
        refused.push((
            "responder_resources",
            plain.clone().responder_resources(200),
        ));
    }
    if caps.max_initiator_depth < 200 {
        refused.push(("initiator_depth", plain.clone().initiator_depth(200)));
    }
    for (argument, cfg) in refused {
        let cfg = cfg.timeout(LONG);
        is_above(
            &ConnRequest::new(&peer, &addr(), &port, &cfg).unwrap_err(),
            argument,
        );
        let client = ask(&peer, &port, &plain).connect(None).unwrap();
        is_above(
            &endpoint.next_request_timeout(&cfg, LONG).unwrap_err(),
            argument,
        );
        client.wait_established(LONG).unwrap_err();
    }
    for (argument, cfg) in [
        ("size", SrqCfg::new().size(over(caps.max_srq_depth))),
        (
            "rcq_size",
            SrqCfg::new().rcq_size(over(caps.max_cq_entries)),
        ),
        (
            "comp_vector",
            SrqCfg::new().comp_vector(caps.completion_vectors),
        ),
    ] {
        is_above(&Srq::new(&peer, &cfg).unwrap_err(), argument);
    }
    takes_the_next(&peer, &endpoint, &port);
}

#[test]
fn a_type_of_service_that_comes_too_late_is_refused() {
    let peer = device!();
    let cfg = EndpointCfg::new().type_of_service(32);
    let endpoint = Endpoint::listen_with(&peer, &addr(), "0", &cfg).unwrap();
    let port = endpoint.local_addr().unwrap().port().to_string();
    let client = ask(&peer, &port, &ConnCfg::new()).connect(None).unwrap();
    let late = ConnCfg::new().type_of_service(32);
    let err = endpoint.next_request_timeout(&late, LONG).unwrap_err();
    assert!(
        matches!(
            err,
            Error::InvalidArgument {
                argument: "type_of_service",
                ..
            }
        ),
        "{err:?}"
    );
    client.wait_established(LONG).unwrap_err();
    takes_the_next(&peer, &endpoint, &port);
}

#[test]
fn debug_output_is_one_line_with_what_people_look_for() {
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let cfg = ConnCfg::new().sq_size(17).ack_timeout(15);
    let request = ask(&peer, &port, &cfg);
    let at = format!("{}:{port}", addr());
    let (name, asked) = (peer.device_name(), format!("{request:?}"));
    let client = request.connect(None).unwrap();
    let taken = next(&endpoint, &cfg);
    let qp = format!("qp {}", client.qp_num());
    for (text, parts) in [
        (format!("{peer:#?}"), vec![&*name]),
        (
            format!("{:?}", peer.device_info().unwrap()),
            vec![&*name, "ACTIVE", "MTU"],
        ),
        (format!("{:?}", peer.capabilities()), vec!["queue", "cq"]),
        (format!("{cfg:#?}"), vec!["1s", "sq 17", "ack timeout 15"]),
        (format!("{endpoint:#?}"), vec![&*at, &*name]),
        (asked, vec!["to ", &*at, &*name, &*qp]),
        (format!("{taken:?}"), vec!["from ", &*name]),
        (format!("{client:#?}"), vec![&*at, &*name, &*qp]),
    ] {
        assert!(!text.contains('\n') && text.len() < 400, "{text}");
        for part in parts {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        println!("{text}");
    }
}
