//! The connection manager: addresses, handshake, private data, refusals, ends.

mod common;

use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use common::*;
use rdma_sys as ffi;
use standin_control::{Exclusive, Knob, Personality};

/// Runs on each device and finds everything back where it was.
fn on(devices: &[Personality], test: impl Fn(&Exclusive, Personality)) {
    for p in devices {
        let s = standin(*p);
        let before = s.objects();
        test(&s, *p);
        assert_eq!(s.objects(), before, "{p:?}");
        assert_eq!(s.violations(), Vec::<String>::new(), "{p:?}");
    }
}

const BOTH: &[Personality] = &[Personality::Rxe, Personality::Siw];

unsafe fn private(e: *mut ffi::rdma_cm_event) -> Vec<u8> {
    unsafe {
        let p = (*e).param.conn;
        if p.private_data.is_null() {
            return Vec::new();
        }
        std::slice::from_raw_parts(p.private_data.cast::<u8>(), usize::from(p.private_data_len))
            .to_vec()
    }
}

unsafe fn drop_id(id: *mut ffi::rdma_cm_id, channel: *mut ffi::rdma_event_channel) {
    unsafe {
        if !(*id).qp.is_null() {
            ffi::rdma_destroy_qp(id);
        }
        assert_eq!(ffi::rdma_destroy_id(id), 0);
        if !channel.is_null() {
            ffi::rdma_destroy_event_channel(channel);
        }
    }
}

/// The request of a fresh connection attempt: (listener, its channel, active id, its channel,
/// event).
struct Attempt {
    listener: *mut ffi::rdma_cm_id,
    lc: *mut ffi::rdma_event_channel,
    id: *mut ffi::rdma_cm_id,
    channel: *mut ffi::rdma_event_channel,
    child: *mut ffi::rdma_cm_id,
}

unsafe fn attempt(port: u16, data: &[u8]) -> (Attempt, Vec<u8>) {
    unsafe {
        let (listener, lc) = listen(port);
        let (id, channel) = resolve([192, 168, 77, 1], port);
        let mut p = param(7, data);
        p.qp_num = 77;
        assert_eq!(ffi::rdma_connect(id, &raw mut p), 0, "{}", errno());
        let e = event(lc);
        assert_eq!((*e).event, ffi::RDMA_CM_EVENT_CONNECT_REQUEST);
        assert_eq!((*e).listen_id, listener);
        assert_eq!((*e).param.conn.qp_num, 77);
        let child = (*e).id;
        let got = private(e);
        assert_eq!(ffi::rdma_ack_cm_event(e), 0);
        let a = Attempt {
            listener,
            lc,
            id,
            channel,
            child,
        };
        (a, got)
    }
}

impl Attempt {
    unsafe fn drop_all(self) {
        unsafe {
            drop_id(self.child, null_mut());
            drop_id(self.id, self.channel);
            drop_id(self.listener, self.lc);
        }
    }
}

#[test]
fn private_data_is_padded_on_infiniband_only() {
    on(BOTH, |_, p| unsafe {
        let iwarp = p == Personality::Siw;
        let (a, got) = attempt(7101, b"hello");
        assert_eq!(got.len(), if iwarp { 5 } else { 56 });
        assert_eq!(&got[..5], b"hello");
        let mut reply = param(7, b"welcome");
        reply.qp_num = 78;
        assert_eq!(ffi::rdma_accept(a.child, &raw mut reply), 0);
        let e = event(a.channel);
        let kind = if iwarp {
            ffi::RDMA_CM_EVENT_ESTABLISHED
        } else {
            // Without a queue pair on the id, the program finishes the handshake itself.
            ffi::RDMA_CM_EVENT_CONNECT_RESPONSE
        };
        assert_eq!((*e).event, kind);
        assert_eq!(private(e).len(), if iwarp { 7 } else { 196 });
        assert_eq!(&private(e)[..7], b"welcome");
        ffi::rdma_ack_cm_event(e);
        if !iwarp {
            assert_eq!(ffi::rdma_establish(a.id), 0);
        }
        // It lives on the listener's channel still.
        expect(a.lc, ffi::RDMA_CM_EVENT_ESTABLISHED);
        a.drop_all();
    });
}

#[test]
fn too_much_private_data_is_refused() {
    on(&[Personality::Rxe], |_, _| unsafe {
        let (listener, lc) = listen(7102);
        let (id, channel) = resolve([192, 168, 77, 1], 7102);
        let mut p = param(7, &[1; 57]);
        assert_eq!(
            (ffi::rdma_connect(id, &raw mut p), errno()),
            (-1, libc::EINVAL)
        );
        drop_id(id, channel);
        drop_id(listener, lc);
    });
}

#[test]
fn a_rejection_says_why() {
    on(BOTH, |_, p| unsafe {
        let (a, _) = attempt(7103, b"");
        assert_eq!(ffi::rdma_reject(a.child, b"no".as_ptr().cast(), 2), 0);
        assert_eq!(
            (ffi::rdma_accept(a.child, null_mut()), errno()),
            (-1, libc::EINVAL)
        );
        let e = event(a.channel);
        assert_eq!((*e).event, ffi::RDMA_CM_EVENT_REJECTED);
        let (status, len) = if p == Personality::Siw {
            (-libc::ECONNRESET, 2)
        } else {
            (28, 148)
        };
        assert_eq!(((*e).status, private(e).len()), (status, len));
        assert_eq!(&private(e)[..2], b"no");
        ffi::rdma_ack_cm_event(e);
        a.drop_all();
    });
}

#[test]
fn a_dropped_request_is_a_rejection() {
    on(BOTH, |_, _| unsafe {
        let (a, _) = attempt(7104, b"");
        drop_id(a.child, null_mut());
        expect(a.channel, ffi::RDMA_CM_EVENT_REJECTED);
        drop_id(a.id, a.channel);
        drop_id(a.listener, a.lc);
    });
}

#[test]
fn a_request_that_nobody_read_goes_with_its_listener() {
    on(BOTH, |_, _| unsafe {
        let (listener, lc) = listen(7105);
        let (id, channel) = resolve([192, 168, 77, 1], 7105);
        let mut p = param(7, b"");
        p.qp_num = 1;
        assert_eq!(ffi::rdma_connect(id, &raw mut p), 0);
        drop_id(listener, lc);
        expect(channel, ffi::RDMA_CM_EVENT_REJECTED);
        drop_id(id, channel);
    });
}

#[test]
fn nobody_listens() {
    on(BOTH, |_, p| unsafe {
        let (id, channel) = resolve([192, 168, 77, 1], 7106);
        let mut c = param(7, b"");
        let r = ffi::rdma_connect(id, &raw mut c);
        if p == Personality::Siw {
            assert_eq!(
                (r, errno()),
                (-1, libc::ECONNREFUSED),
                "TCP says so at once"
            );
        } else {
            let e = event(channel);
            assert_eq!((*e).event, ffi::RDMA_CM_EVENT_REJECTED);
            assert_eq!(((*e).status, private(e).len()), (8, 148));
            ffi::rdma_ack_cm_event(e);
            assert_eq!(ffi::rdma_disconnect(id), 0);
        }
        drop_id(id, channel);
    });
}

#[test]
fn a_black_hole_is_unreachable_in_time() {
    on(BOTH, |s, _| unsafe {
        s.set(Knob::ConnectTimeoutMs, 50);
        let (id, channel) = resolve([192, 0, 2, 1], 7107);
        let mut c = param(7, b"");
        let start = Instant::now();
        assert_eq!(ffi::rdma_connect(id, &raw mut c), 0);
        let e = event(channel);
        assert!(start.elapsed() >= Duration::from_millis(50));
        assert_eq!(
            ((*e).event, (*e).status),
            (ffi::RDMA_CM_EVENT_UNREACHABLE, -libc::ETIMEDOUT)
        );
        ffi::rdma_ack_cm_event(e);
        drop_id(id, channel);
    });
}

#[test]
fn an_address_that_never_answers() {
    on(&[Personality::Rxe], |_, _| unsafe {
        let channel = ffi::rdma_create_event_channel();
        let mut id = null_mut();
        ffi::rdma_create_id(channel, &raw mut id, null_mut(), ffi::RDMA_PS_TCP);
        let mut a = address([198, 51, 100, 1], 1);
        assert_eq!(
            ffi::rdma_resolve_addr(id, null_mut(), (&raw mut a).cast(), 20),
            0
        );
        let e = event(channel);
        assert_eq!(
            ((*e).event, (*e).status),
            (ffi::RDMA_CM_EVENT_ADDR_ERROR, -libc::ETIMEDOUT)
        );
        ffi::rdma_ack_cm_event(e);
        drop_id(id, channel);
    });
}

#[test]
fn foreign_addresses_lead_nowhere() {
    let all = [Personality::Rxe, Personality::Siw, Personality::None];
    on(&all, |s, p| unsafe {
        let channel = ffi::rdma_create_event_channel();
        let mut id = null_mut();
        ffi::rdma_create_id(channel, &raw mut id, null_mut(), ffi::RDMA_PS_TCP);
        let try_both = |ip: [u8; 4]| {
            let mut a = address(ip, 0);
            assert_eq!(ffi::rdma_bind_addr(id, (&raw mut a).cast()), -1);
            let bind = errno();
            let r = ffi::rdma_resolve_addr(id, null_mut(), (&raw mut a).cast(), 20);
            assert_eq!(r, -1);
            (bind, errno())
        };
        assert_eq!(try_both([169, 254, 0, 1]), (libc::ENODEV, libc::ENODEV));
        if p == Personality::None {
            assert_eq!(try_both([192, 168, 77, 1]), (libc::ENODEV, libc::ENODEV));
        } else {
            assert_eq!(
                try_both([10, 9, 8, 7]),
                (libc::EADDRNOTAVAIL, libc::ENETUNREACH)
            );
            s.add_address("10.9.8.7");
            let mut a = address([10, 9, 8, 7], 0);
            assert_eq!(ffi::rdma_bind_addr(id, (&raw mut a).cast()), 0);
            assert!(!(*id).verbs.is_null());
            assert_ne!(ffi::rdma_get_src_port(id), 0);
        }
        drop_id(id, channel);
    });
}

#[test]
fn ports_are_taken_and_given_back() {
    on(&[Personality::Rxe], |_, _| unsafe {
        let (listener, lc) = listen(7110);
        let bind = |ip: [u8; 4], reuse: i32| {
            let mut id = null_mut();
            ffi::rdma_create_id(lc, &raw mut id, null_mut(), ffi::RDMA_PS_TCP);
            let mut on = reuse;
            let level = ffi::RDMA_OPTION_ID as i32;
            let name = ffi::RDMA_OPTION_ID_REUSEADDR as i32;
            assert_eq!(
                ffi::rdma_set_option(id, level, name, (&raw mut on).cast(), 4),
                0
            );
            let mut a = address(ip, 7110);
            let r = ffi::rdma_bind_addr(id, (&raw mut a).cast());
            let e = if r == 0 { 0 } else { errno() };
            assert_eq!(ffi::rdma_destroy_id(id), 0);
            e
        };
        assert_eq!(bind([192, 168, 77, 1], 0), libc::EADDRINUSE);
        assert_eq!(bind([192, 168, 77, 1], 1), libc::EADDRINUSE);
        assert_eq!(bind([0, 0, 0, 0], 0), libc::EADDRNOTAVAIL);
        assert_eq!(bind([127, 0, 0, 1], 0), 0);
        drop_id(listener, null_mut());
        assert_eq!(bind([192, 168, 77, 1], 0), 0);
        ffi::rdma_destroy_event_channel(lc);
    });
}

#[test]
fn the_backlog_bounds_what_waits() {
    on(&[Personality::Rxe], |_, _| unsafe {
        let channel = ffi::rdma_create_event_channel();
        let mut listener = null_mut();
        ffi::rdma_create_id(channel, &raw mut listener, null_mut(), ffi::RDMA_PS_TCP);
        let mut any = address([0, 0, 0, 0], 7111);
        assert_eq!(ffi::rdma_bind_addr(listener, (&raw mut any).cast()), 0);
        assert!((*listener).verbs.is_null(), "a wildcard has no device");
        assert_eq!(ffi::rdma_listen(listener, 1), 0);
        let mut p = param(7, b"");
        p.qp_num = 1;
        let (a, ac) = resolve([127, 0, 0, 1], 7111);
        let (b, bc) = resolve([192, 168, 77, 1], 7111);
        assert_eq!(ffi::rdma_connect(a, &raw mut p), 0);
        assert_eq!(ffi::rdma_connect(b, &raw mut p), 0);
        expect(bc, ffi::RDMA_CM_EVENT_REJECTED);
        let e = event(channel);
        let child = (*e).id;
        assert!(!(*child).verbs.is_null());
        ffi::rdma_ack_cm_event(e);
        drop_id(child, null_mut());
        drop_id(listener, channel);
        expect(ac, ffi::RDMA_CM_EVENT_REJECTED);
        drop_id(a, ac);
        drop_id(b, bc);
    });
}

#[test]
fn both_sides_learn_of_the_end() {
    on(BOTH, |_, p| unsafe {
        let pair = Pair::new(7112, Options::default());
        let (a, b) = (&pair.active, &pair.passive);
        assert_eq!(ffi::rdma_disconnect(b.id), 0);
        for end in [a, b] {
            expect(end.channel, ffi::RDMA_CM_EVENT_DISCONNECTED);
            if p == Personality::Rxe {
                expect(end.channel, ffi::RDMA_CM_EVENT_TIMEWAIT_EXIT);
            }
        }
        assert_eq!(ffi::rdma_disconnect(a.id), 0);
        pair.active.close();
        pair.passive.close();
    });
}

#[test]
fn events_follow_an_id_to_its_new_channel() {
    on(&[Personality::Rxe], |_, _| unsafe {
        let pair = Pair::new(7113, Options::default());
        assert_eq!(ffi::rdma_disconnect(pair.active.id), 0);
        let other = ffi::rdma_create_event_channel();
        assert_eq!(ffi::rdma_migrate_id(pair.passive.id, other), 0);
        let mut none = null_mut();
        libc::fcntl((*pair.passive.channel).fd, libc::F_SETFL, libc::O_NONBLOCK);
        let r = ffi::rdma_get_cm_event(pair.passive.channel, &raw mut none);
        assert_eq!((r, errno()), (-1, libc::EAGAIN));
        expect(other, ffi::RDMA_CM_EVENT_DISCONNECTED);
        let old = pair.passive.channel;
        pair.active.close();
        let passive = End {
            channel: other,
            ..pair.passive
        };
        passive.close();
        ffi::rdma_destroy_event_channel(old);
    });
}

#[test]
fn an_unacknowledged_event_blocks_the_end_of_its_id() {
    let s = standin(Personality::Rxe);
    s.set(Knob::BlockLimitMs, 20);
    unsafe {
        let (listener, lc) = listen(7114);
        let (id, channel) = resolve([192, 168, 77, 1], 7114);
        let mut p = param(7, b"");
        p.qp_num = 1;
        assert_eq!(ffi::rdma_connect(id, &raw mut p), 0);
        let e = event(lc);
        assert_eq!((ffi::rdma_destroy_id(listener), errno()), (-1, libc::EBUSY));
        assert_eq!(s.violations().len(), 1, "{:?}", s.violations());
        // In time, from another thread, it is no violation.
        s.set(Knob::BlockLimitMs, 5000);
        let late = e as usize;
        let child = (*e).id;
        let acker = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            ffi::rdma_ack_cm_event(late as *mut ffi::rdma_cm_event)
        });
        assert_eq!(ffi::rdma_destroy_id(listener), 0);
        assert_eq!(acker.join().unwrap(), 0);
        assert_eq!(s.violations().len(), 1);
        // The same event again, the same id again.
        assert_eq!(ffi::rdma_ack_cm_event(e), -1);
        assert_eq!(ffi::rdma_destroy_id(listener), -1);
        assert_eq!(s.violations().len(), 3);
        ffi::rdma_destroy_event_channel(lc);
        assert_eq!(s.violations().len(), 4, "an id is still on it");
        drop_id(child, null_mut());
        ffi::rdma_destroy_event_channel(lc);
        drop_id(id, channel);
        assert_eq!(s.violations().len(), 4);
    }
}

#[test]
fn ids_without_a_channel_wait() {
    on(BOTH, |_, _| unsafe {
        let mut listener = null_mut();
        let mut a = sockaddr(7115);
        assert_eq!(
            ffi::rdma_create_id(null_mut(), &raw mut listener, null_mut(), ffi::RDMA_PS_TCP),
            0
        );
        assert_eq!(ffi::rdma_bind_addr(listener, (&raw mut a).cast()), 0);
        assert_eq!(ffi::rdma_listen(listener, 4), 0);
        let client = std::thread::spawn(|| {
            let mut hints = ffi::rdma_addrinfo {
                ai_port_space: ffi::RDMA_PS_TCP as i32,
                ..Default::default()
            };
            let mut res = null_mut();
            let r = ffi::rdma_getaddrinfo(
                c"192.168.77.1".as_ptr(),
                c"7115".as_ptr(),
                &raw mut hints,
                &raw mut res,
            );
            assert_eq!(r, 0);
            let mut init = ffi::ibv_qp_init_attr {
                qp_type: ffi::IBV_QPT_RC,
                ..Default::default()
            };
            init.cap.max_send_wr = 4;
            init.cap.max_recv_wr = 4;
            let mut id = null_mut();
            assert_eq!(
                ffi::rdma_create_ep(&raw mut id, res, null_mut(), &raw mut init),
                0,
                "{}",
                errno()
            );
            ffi::rdma_freeaddrinfo(res);
            let mut p = param(7, b"");
            let r = ffi::rdma_connect(id, &raw mut p);
            assert!(!(*id).qp.is_null() && !(*id).send_cq.is_null());
            let e = if r == 0 { 0 } else { errno() };
            ffi::rdma_destroy_ep(id);
            e
        });
        let mut id = null_mut();
        assert_eq!(
            ffi::rdma_get_request(listener, &raw mut id),
            0,
            "{}",
            errno()
        );
        assert_eq!(ffi::rdma_reject(id, null(), 0), 0);
        assert_eq!(ffi::rdma_destroy_id(id), 0);
        let refused = client.join().unwrap();
        assert!(
            [libc::ECONNREFUSED, libc::ECONNRESET].contains(&refused),
            "{refused}"
        );
        assert_eq!(ffi::rdma_destroy_id(listener), 0);
    });
}

#[test]
fn devices_are_listed_and_stay_open() {
    on(&[Personality::Rxe, Personality::None], |_, p| unsafe {
        let mut n = -1;
        let list = ffi::rdma_get_devices(&raw mut n);
        assert!(!list.is_null());
        assert_eq!(n, i32::from(p != Personality::None));
        let first = *list;
        ffi::rdma_free_devices(list);
        if n == 1 {
            let mut attr = ffi::ibv_device_attr::default();
            assert_eq!(ffi::ibv_query_device(first, &raw mut attr), 0);
        }
    });
}

#[test]
fn six_is_an_address_family_too() {
    on(BOTH, |_, _| unsafe {
        let mut hints = ffi::rdma_addrinfo {
            ai_flags: ffi::RAI_PASSIVE as i32,
            ai_port_space: ffi::RDMA_PS_TCP as i32,
            ..Default::default()
        };
        let mut res = null_mut();
        let r = ffi::rdma_getaddrinfo(
            c"fd77::1".as_ptr(),
            c"7116".as_ptr(),
            &raw mut hints,
            &raw mut res,
        );
        assert_eq!(r, 0);
        let channel = ffi::rdma_create_event_channel();
        let mut id = null_mut();
        ffi::rdma_create_id(channel, &raw mut id, null_mut(), ffi::RDMA_PS_TCP);
        assert_eq!(ffi::rdma_bind_addr(id, (*res).ai_src_addr), 0);
        assert_eq!(ffi::rdma_get_src_port(id), 7116u16.to_be());
        ffi::rdma_freeaddrinfo(res);
        drop_id(id, channel);
    });
}

#[test]
fn the_device_goes() {
    on(&[Personality::Rxe], |s, _| unsafe {
        let pair = Pair::new(7117, Options::default());
        s.cm_event(ffi::RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
        expect(pair.active.channel, ffi::RDMA_CM_EVENT_DEVICE_REMOVAL);
        expect(pair.passive.channel, ffi::RDMA_CM_EVENT_DEVICE_REMOVAL);
        pair.close();
    });
}

#[test]
fn a_cut_link() {
    on(&[Personality::Rxe], |s, _| unsafe {
        let pair = Pair::new(7118, Options::default());
        let (a, b) = (&pair.active, &pair.passive);
        s.set(Knob::Cut, 1);
        a.post_id(
            1,
            ffi::IBV_WR_RDMA_WRITE,
            0,
            a.sge(0, 1),
            (b.at(0), b.rkey()),
        );
        assert_eq!(a.statuses(), [(1, ffi::IBV_WC_RETRY_EXC_ERR)]);
        s.set(Knob::Cut, 0);
        pair.close();
    });
}
