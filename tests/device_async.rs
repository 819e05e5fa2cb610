//! The asynchronous events of a device, which librpma cannot show at all.

mod common;
#[path = "common/epoll.rs"]
#[allow(dead_code)]
mod epoll;

use std::time::Duration;

use common::*;
use epoll::readable;
use rpma::{
    AsyncEvent, AsyncEventKind, AsyncEvents, AsyncSubject, ConnCfg, LocalSlice, Signal, Srq, SrqCfg,
};
use standin_control::Standin;

const SHORT: Duration = Duration::from_millis(30);

/// The next event of this kind; others may come before.
fn event(events: &AsyncEvents, kind: AsyncEventKind) -> AsyncEvent {
    loop {
        let event = events.next_event_timeout(LONG).unwrap();
        let event = event.unwrap_or_else(|| panic!("no {kind:?} in time"));
        if event.kind() == kind {
            return event;
        }
        println!("{event:?} came before {kind:?}");
    }
}

fn none_left(events: &AsyncEvents) {
    while let Some(event) = events.next_event_timeout(SHORT).unwrap() {
        println!("left over: {event:?}");
    }
    assert!(!readable(events, Duration::ZERO));
    assert_eq!(events.try_next_event().unwrap(), None);
}

#[test]
fn a_device_tells_what_belongs_to_no_operation() {
    let _alone = alone();
    let peer = device!();
    let events = peer.async_events();
    none_left(&events);
    let srq = Srq::new(&peer, &SrqCfg::new()).unwrap();
    let cfg = ConnCfg::new().srq(&srq);
    let Pair { client, server } = pair_of(&peer, &ConnCfg::new(), &peer, &cfg);
    for n in 0..4 {
        srq.recv(&LocalSlice::EMPTY, n).unwrap();
    }
    srq.arm_limit(3).unwrap();
    for n in 0..3 {
        client.send_inline(&[], Signal::Always(n)).unwrap();
        success(client.cq(), n);
        success(server.rcq().unwrap(), n);
    }
    assert!(readable(&events, LONG));
    let low = event(&events, AsyncEventKind::SRQ_LIMIT_REACHED);
    assert_eq!(low.subject(), AsyncSubject::SharedReceiveQueue);
    assert!(!format!("{} {low:?}", low.kind()).is_empty());
    none_left(&events);
    // Acknowledged: the queue can go.
    drop((client, server));
    drop(cfg);
    drop(srq);
}

#[test]
fn a_waiting_thread_wakes_for_an_event() {
    let _alone = alone();
    let peer = device!();
    let events = peer.async_events();
    none_left(&events);
    let srq = Srq::new(&peer, &SrqCfg::new()).unwrap();
    let Pair { client, server } = pair_of(&peer, &ConnCfg::new(), &peer, &ConnCfg::new().srq(&srq));
    srq.recv(&LocalSlice::EMPTY, 1).unwrap();
    srq.recv(&LocalSlice::EMPTY, 2).unwrap();
    srq.arm_limit(2).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| event(&events, AsyncEventKind::SRQ_LIMIT_REACHED));
        std::thread::sleep(SHORT);
        client.send_inline(&[], Signal::Always(1)).unwrap();
        success(client.cq(), 1);
        waiter.join().unwrap();
    });
    success(server.rcq().unwrap(), 1);
}

#[test]
fn every_kind_has_its_subject() {
    let _alone = alone();
    let Some(standin) = Standin::exclusive() else {
        skip!("events at will need the stand-in");
    };
    let peer = device!();
    let events = peer.async_events();
    let srq = Srq::new(&peer, &SrqCfg::new()).unwrap();
    let Pair { client, server } = pair_of(&peer, &ConnCfg::new(), &peer, &ConnCfg::new().srq(&srq));
    let qp = client.as_raw_qp();
    // SAFETY: the connections are alive, and with them their queues.
    let (cq, srq_at) = unsafe { ((*qp).send_cq as usize, (*server.as_raw_qp()).srq as usize) };
    let of_qp = AsyncSubject::QueuePair(client.qp_num());
    for (kind, element, subject) in [
        (AsyncEventKind::CQ_ERR, cq, AsyncSubject::CompletionQueue),
        (AsyncEventKind::QP_FATAL, qp as usize, of_qp),
        (AsyncEventKind::QP_ACCESS_ERR, qp as usize, of_qp),
        (AsyncEventKind::COMM_EST, qp as usize, of_qp),
        (AsyncEventKind::QP_LAST_WQE_REACHED, qp as usize, of_qp),
        (
            AsyncEventKind::SRQ_ERR,
            srq_at,
            AsyncSubject::SharedReceiveQueue,
        ),
        (AsyncEventKind::PORT_ERR, 1, AsyncSubject::Port(1)),
        (AsyncEventKind::PORT_ACTIVE, 1, AsyncSubject::Port(1)),
        (AsyncEventKind::GID_CHANGE, 1, AsyncSubject::Port(1)),
        (AsyncEventKind::DEVICE_FATAL, 1, AsyncSubject::Device),
    ] {
        standin.async_event(kind.as_raw(), element);
        assert!(readable(&events, LONG), "{kind:?}");
        let got = event(&events, kind);
        assert_eq!(got.subject(), subject, "{got:?}");
    }
    // Taken and acknowledged, all of them: what they named can go.
    drop((client, server, srq));
    assert_eq!(standin.objects().async_events, 0);
    assert_eq!(standin.violations(), Vec::<String>::new());
}
