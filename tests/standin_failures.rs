//! Failures that once had worse consequences than an error; on the stand-in device of `ci/standin`.

use std::time::{Duration, Instant};

use rpma::{
    AsyncEventKind, Completion, ConnCfg, ConnRequest, Connection, Endpoint, LocalRegion, Memory,
    Peer, RemoteRegion, Signal, Usage, Wait,
};
use standin_control::{Exclusive, Standin};

const ADDR: &str = "192.168.77.1";
const SOON: Duration = Duration::from_secs(10);

fn standin(test: &str) -> Option<Exclusive> {
    let standin = Standin::exclusive();
    if standin.is_none() {
        println!("SKIP: {test}: not on the stand-in: LD_LIBRARY_PATH=$(ci/standin)");
    }
    standin
}

struct Rig {
    client: Connection,
    _server: Connection,
    local: LocalRegion,
    remote: RemoteRegion,
    _log: LocalRegion,
}

fn rig(cfg: &ConnCfg) -> Rig {
    let peer = Peer::local(ADDR).unwrap();
    let endpoint = Endpoint::listen(&peer, ADDR, "0").unwrap();
    let port = endpoint.local_addr().unwrap().port().to_string();
    let request = ConnRequest::new(&peer, ADDR, &port, cfg).unwrap();
    let client = request.connect(None).unwrap();
    let server = endpoint.next_request(cfg).unwrap().connect(None).unwrap();
    client.wait_established(SOON).unwrap();
    let region = |usage| {
        peer.register(Memory::anonymous(4096).unwrap(), usage)
            .unwrap()
    };
    let log = region(Usage::WRITE_DST);
    Rig {
        client,
        _server: server,
        local: region(Usage::WRITE_SRC),
        remote: RemoteRegion::from_descriptor(log.descriptor().as_bytes()).unwrap(),
        _log: log,
    }
}

impl Rig {
    fn write(&self) {
        let (from, to) = (
            self.local.slice(0..8).unwrap(),
            self.remote.slice(0..8).unwrap(),
        );
        self.client.write(&from, &to, Signal::Always(1)).unwrap();
    }
}

/// The take found the queue unarmed and could not arm it: what came then gave no event, and the
/// next wait never ended.
#[test]
fn a_wait_after_a_take_that_could_not_arm_does_not_hang() {
    let Some(standin) = standin("a_wait_after_a_take_that_could_not_arm_does_not_hang") else {
        return;
    };
    let rig = rig(&ConnCfg::new());
    let cq = rig.client.cq();
    rig.write();
    assert!(cq.wait_event_timeout(SOON).unwrap());
    assert!(cq.poll_one().unwrap().is_some());
    standin.fail_nth("ibv_req_notify_cq", 1, libc::EIO);
    let mut buf = [Completion::default()];
    let err = cq.take(&mut buf, Wait::block().timeout(SOON)).unwrap_err();
    assert_eq!(err.raw_os_error(), Some(libc::EIO));
    rig.write();
    assert!(cq.wait_timeout(SOON).unwrap().is_ready());
    assert!(cq.poll_one().unwrap().is_some());
}

/// The wait took the event and could not arm the queue again: with no event left and none to come,
/// the next wait never ended.
#[test]
fn a_wait_after_one_that_could_not_arm_does_not_hang() {
    let Some(standin) = standin("a_wait_after_one_that_could_not_arm_does_not_hang") else {
        return;
    };
    let rig = rig(&ConnCfg::new());
    rig.write();
    standin.fail_nth("ibv_req_notify_cq", 1, libc::EIO);
    let err = rig.client.cq().wait_timeout(SOON).unwrap_err();
    assert_eq!(err.raw_os_error(), Some(libc::EIO));
    assert!(rig.client.cq().wait_timeout(SOON).unwrap().is_ready());
    assert!(rig.client.cq().poll_one().unwrap().is_some());
    // Armed again: one event for one completion.
    rig.write();
    assert!(rig.client.cq().wait_timeout(SOON).unwrap().is_ready());
    assert!(rig.client.cq().poll_one().unwrap().is_some());
    assert!(!rig.client.cq().try_wait().unwrap());
}

#[test]
fn nor_does_one_on_a_shared_channel() {
    let Some(standin) = standin("nor_does_one_on_a_shared_channel") else {
        return;
    };
    let rig = rig(&ConnCfg::new().shared_channel(true).rcq_size(4));
    rig.write();
    standin.fail_nth("ibv_req_notify_cq", 1, libc::EIO);
    rig.client.wait_timeout(SOON).unwrap_err();
    let fired = rig.client.wait_timeout(SOON).unwrap().expect("the event");
    assert!(!fired.is_rcq);
    assert!(fired.cq.poll_one().unwrap().is_some());
    assert!(rig.client.try_wait().unwrap().is_none());
}

/// A moment without memory was taken for the device's answer, and remembered.
#[test]
fn a_failed_probe_is_not_remembered_as_a_limit() {
    let Some(standin) = standin("a_failed_probe_is_not_remembered_as_a_limit") else {
        return;
    };
    let known = Peer::local(ADDR).unwrap().max_inline().unwrap();
    for errno in [libc::ENOMEM, libc::EAGAIN, libc::EIO] {
        let peer = Peer::local(ADDR).unwrap();
        standin.fail_nth("ibv_create_qp", 4, errno);
        assert_eq!(peer.max_inline().unwrap_err().raw_os_error(), Some(errno));
        assert_eq!(peer.max_inline().unwrap(), known);
    }
}

/// The answer was thrown away when a queue that it had been found with could not be destroyed.
#[test]
fn a_refused_destruction_does_not_hide_the_limit() {
    let Some(standin) = standin("a_refused_destruction_does_not_hide_the_limit") else {
        return;
    };
    let known = Peer::local(ADDR).unwrap().max_inline().unwrap();
    standin.fail_nth("ibv_destroy_cq", 1, libc::EBUSY);
    assert_eq!(Peer::local(ADDR).unwrap().max_inline().unwrap(), known);
}

/// Each handle had a gate of its own before the one fd of the device: two saw that it is readable,
/// one read, and the other one stayed in the read for ever, its timeout past.
#[test]
fn two_handles_wait_for_one_async_event() {
    let Some(standin) = standin("two_handles_wait_for_one_async_event") else {
        return;
    };
    let peers = [Peer::local(ADDR).unwrap(), Peer::local(ADDR).unwrap()];
    while peers[0].async_events().try_next_event().unwrap().is_some() {}
    for _ in 0..50 {
        let start = Instant::now();
        let wait = |peer: &Peer| {
            let events = peer.async_events();
            let timeout = Duration::from_millis(20);
            events.next_event_timeout(timeout).unwrap()
        };
        let got = std::thread::scope(|scope| {
            let wait = &wait;
            let waits = [0, 1, 0].map(|n| {
                let peer = &peers[n];
                scope.spawn(move || wait(peer))
            });
            std::thread::sleep(Duration::from_millis(2));
            standin.async_event(AsyncEventKind::PORT_ERR.as_raw(), 1);
            waits.map(|wait| wait.join().unwrap())
        });
        // On a busy machine it may come after all three have given up.
        let left = peers[0].async_events().try_next_event().unwrap();
        assert_eq!(got.iter().chain([&left]).flatten().count(), 1);
        assert!(start.elapsed() < SOON);
    }
}

/// The call that C's header falls back on where the provider has no extended query.
#[test]
fn an_old_provider_can_fail_too() {
    let Some(standin) = standin("an_old_provider_can_fail_too") else {
        return;
    };
    let before = standin.objects();
    standin.fail_nth("ibv_query_device_ex", 1, libc::EOPNOTSUPP);
    standin.fail_nth("ibv_query_device", 1, libc::EIO);
    let err = Peer::local(ADDR).unwrap_err();
    assert!(err.to_string().contains("ibv_query_device"), "{err}");
    assert_eq!(standin.objects(), before);
    standin.fail_nth("ibv_query_device_ex", 1, libc::EOPNOTSUPP);
    Peer::local(ADDR).unwrap();
}
