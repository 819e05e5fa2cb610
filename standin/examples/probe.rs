//! Asks a device how it behaves where the stand-in could differ, one fact a line: run it on both
//! and compare. Usage: probe ADDRESS

#[path = "../tests/common/mod.rs"]
mod common;

use std::fmt::Debug;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use common::{End, Options, Pair, errno, param};
use rdma_sys as ffi;

fn fact(name: &str, value: impl Debug) {
    println!("{name}: {value:?}");
    // What crashes the next step must not take this with it.
    let _ = std::io::Write::flush(&mut std::io::stdout());
}

fn ip() -> [u8; 4] {
    let a = std::env::args().nth(1).expect("an address");
    a.parse::<std::net::Ipv4Addr>()
        .expect("an IPv4 address")
        .octets()
}

fn name(kind: u32) -> String {
    unsafe { std::ffi::CStr::from_ptr(ffi::rdma_event_str(kind)) }
        .to_string_lossy()
        .replace("RDMA_CM_EVENT_", "")
}

/// The next event within the time, as text; acknowledged.
unsafe fn next(
    channel: *mut ffi::rdma_event_channel,
    limit: Duration,
) -> Option<(String, i32, u8)> {
    unsafe {
        let mut p = libc::pollfd {
            fd: (*channel).fd,
            events: libc::POLLIN,
            revents: 0,
        };
        if libc::poll(&raw mut p, 1, limit.as_millis() as i32) != 1 {
            return None;
        }
        let e = common::event(channel);
        let got = (
            name((*e).event),
            (*e).status,
            (*e).param.conn.private_data_len,
        );
        ffi::rdma_ack_cm_event(e);
        Some(got)
    }
}

const SOON: Duration = Duration::from_secs(3);

/// Waits for completions until none comes for a while.
unsafe fn completions(end: &End) -> Vec<(u64, u32)> {
    let mut all = Vec::new();
    let mut last = Instant::now();
    while last.elapsed() < Duration::from_millis(700) {
        match unsafe { end.poll() } {
            Some(wc) => {
                all.push((wc.wr_id, wc.status));
                last = Instant::now();
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    all
}

unsafe fn async_events(end: &End) -> Vec<u32> {
    unsafe {
        let ctx = (*end.id).verbs;
        let mut all = Vec::new();
        loop {
            let mut p = libc::pollfd {
                fd: (*ctx).async_fd,
                events: libc::POLLIN,
                revents: 0,
            };
            if libc::poll(&raw mut p, 1, 200) != 1 {
                return all;
            }
            let mut e = ffi::ibv_async_event::default();
            ffi::ibv_get_async_event(ctx, &raw mut e);
            all.push(e.event_type);
            ffi::ibv_ack_async_event(&raw mut e);
        }
    }
}

unsafe fn accept(id: *mut ffi::rdma_cm_id) -> Option<i32> {
    let mut p = param(7, b"");
    p.qp_num = 1;
    unsafe { (ffi::rdma_accept(id, &raw mut p) != 0).then(errno) }
}

struct Asked {
    listener: *mut ffi::rdma_cm_id,
    lc: *mut ffi::rdma_event_channel,
    active: End,
}

/// A connection request, sent.
unsafe fn ask(port: u16, data: &[u8]) -> Asked {
    unsafe {
        let (listener, lc) = common::listen_at(ip(), port);
        let (id, channel) = common::resolve(ip(), port);
        let active = End::new(id, channel, Options::default());
        let mut p = param(7, data);
        assert_eq!(ffi::rdma_connect(id, &raw mut p), 0);
        Asked {
            listener,
            lc,
            active,
        }
    }
}

fn handshake() {
    unsafe {
        let (id, channel) = common::resolve(ip(), 7601);
        let end = End::new(id, channel, Options::default());
        let mut p = param(7, b"");
        let r = (ffi::rdma_connect(id, &raw mut p) != 0).then(errno);
        fact("connect, nobody listens", (r, next(channel, SOON)));
        fact(
            "disconnect after that",
            (ffi::rdma_disconnect(id) != 0).then(errno),
        );
        end.close();

        let a = ask(7602, b"hello");
        let e = common::event(a.lc);
        let child = (*e).id;
        fact("request's private data", (*e).param.conn.private_data_len);
        ffi::rdma_ack_cm_event(e);
        assert_eq!(ffi::rdma_reject(child, b"no".as_ptr().cast(), 2), 0);
        fact("rejected", next(a.active.channel, SOON));
        fact("accept after reject", accept(child));
        ffi::rdma_destroy_id(child);
        ffi::rdma_destroy_id(a.listener);
        a.active.close();

        let a = ask(7603, b"");
        let e = common::event(a.lc);
        let child = (*e).id;
        fact(
            "request's private data, none sent",
            (*e).param.conn.private_data_len,
        );
        ffi::rdma_ack_cm_event(e);
        ffi::rdma_destroy_id(child);
        fact("request dropped", next(a.active.channel, SOON));
        ffi::rdma_destroy_id(a.listener);
        a.active.close();

        let a = ask(7604, b"");
        std::thread::sleep(Duration::from_millis(300));
        ffi::rdma_destroy_id(a.listener);
        fact(
            "listener dropped with a request unread",
            next(a.active.channel, SOON),
        );
        a.active.close();

        let a = ask(7605, b"");
        let e = common::event(a.lc);
        let child = (*e).id;
        ffi::rdma_ack_cm_event(e);
        let passive = End::new(child, a.lc, Options::default());
        let mut p = param(7, b"welcome");
        assert_eq!(ffi::rdma_accept(child, &raw mut p), 0);
        fact("established, active", next(a.active.channel, SOON));
        fact("established, passive", next(a.lc, SOON));
        fact("disconnect", ffi::rdma_disconnect(child));
        fact("disconnected, other side", next(a.active.channel, SOON));
        fact(
            "other side disconnects",
            (ffi::rdma_disconnect(a.active.id) != 0).then(errno),
        );
        fact("disconnected, this side", next(a.lc, SOON));
        fact("again", (ffi::rdma_disconnect(child) != 0).then(errno));
        ffi::rdma_destroy_id(a.listener);
        ffi::rdma_destroy_qp(passive.id);
        ffi::rdma_destroy_id(passive.id);
        a.active.close();
    }
}

fn addresses() {
    unsafe {
        let channel = ffi::rdma_create_event_channel();
        let mut id = null_mut();
        ffi::rdma_create_id(channel, &raw mut id, null_mut(), ffi::RDMA_PS_TCP);
        let mut a = common::address([10, 99, 98, 97], 0);
        let r = ffi::rdma_bind_addr(id, (&raw mut a).cast());
        fact("bind, foreign address", (r != 0).then(errno));
        fact(
            "disconnect, idle",
            (ffi::rdma_disconnect(id) != 0).then(errno),
        );
        let r = ffi::rdma_resolve_addr(id, null_mut(), (&raw mut a).cast(), 500);
        fact("resolve, foreign address", (r != 0).then(errno));
        ffi::rdma_destroy_id(id);
        let (l, lc) = common::listen_at(ip(), 7610);
        ffi::rdma_create_id(channel, &raw mut id, null_mut(), ffi::RDMA_PS_TCP);
        let mut a = common::address(ip(), 7610);
        let r = ffi::rdma_bind_addr(id, (&raw mut a).cast());
        fact("bind, port taken", (r != 0).then(errno));
        let mut a = common::address([0, 0, 0, 0], 7610);
        let r = ffi::rdma_bind_addr(id, (&raw mut a).cast());
        fact("bind, port taken, wildcard", (r != 0).then(errno));
        fact("listen twice", (ffi::rdma_listen(l, 1) != 0).then(errno));
        ffi::rdma_destroy_id(id);
        ffi::rdma_destroy_id(l);
        ffi::rdma_destroy_event_channel(lc);
        ffi::rdma_destroy_event_channel(channel);
    }
}

fn with(port: u16, o: Options, test: impl FnOnce(&mut Pair)) {
    unsafe {
        let mut pair = Pair::at(ip(), port, o);
        test(&mut pair);
        for end in [pair.active, pair.passive] {
            ffi::rdma_disconnect(end.id);
            end.close();
        }
    }
}

const SIGNALLED: u32 = ffi::IBV_SEND_SIGNALED;

fn transfers() {
    let write = ffi::IBV_WR_RDMA_WRITE;
    let read = ffi::IBV_WR_RDMA_READ;
    type Bad = (
        &'static str,
        u32,
        fn(&End) -> ffi::ibv_sge,
        fn(&End) -> (u64, u32),
    );
    let cases: [Bad; 6] = [
        (
            "write past the end",
            write,
            |a| a.sge(0, 8),
            |b| (b.at(4090), b.rkey()),
        ),
        (
            "read past the end",
            read,
            |a| a.sge(0, 8),
            |b| (b.at(4090), b.rkey()),
        ),
        (
            "write, unknown rkey",
            write,
            |a| a.sge(0, 8),
            |b| (b.at(0), b.rkey() ^ 0x5500),
        ),
        (
            "write, source past the end",
            write,
            |a| a.sge(4090, 8),
            |b| (b.at(0), b.rkey()),
        ),
        (
            "read, sink past the end",
            read,
            |a| a.sge(4090, 8),
            |b| (b.at(0), b.rkey()),
        ),
        ("nothing, no key", write, |a| a.sge(0, 0), |_| (0, 0)),
    ];
    for (i, (what, op, sge, to)) in cases.into_iter().enumerate() {
        with(7620 + i as u16, Options::default(), |pair| unsafe {
            let (a, b) = (&pair.active, &pair.passive);
            b.post_recv(77, b.sge(0, 8));
            let posted = a.post_id(1, op, SIGNALLED, sge(a), to(b));
            fact(what, (posted, completions(a), completions(b)));
            fact("  events", (async_events(a), async_events(b)));
            fact(
                "  and then",
                (
                    a.post_id(2, op, 0, a.sge(0, 8), (b.at(0), b.rkey())),
                    completions(a),
                ),
            );
        });
    }
    with(
        7630,
        Options {
            rnr_retry: 0,
            ..Options::default()
        },
        |pair| unsafe {
            let (a, b) = (&pair.active, &pair.passive);
            a.post_id(1, ffi::IBV_WR_SEND, SIGNALLED, a.sge(0, 8), (0, 0));
            fact(
                "send, no receive, no retry",
                (completions(a), completions(b)),
            );
        },
    );
    with(7631, Options::default(), |pair| unsafe {
        let (a, b) = (&pair.active, &pair.passive);
        b.post_recv(77, b.sge(0, 4));
        b.post_recv(78, b.sge(0, 4));
        a.post_id(1, ffi::IBV_WR_SEND, SIGNALLED, a.sge(0, 8), (0, 0));
        fact("send, receive too short", (completions(a), completions(b)));
        fact("  events", (async_events(a), async_events(b)));
    });
    with(
        7632,
        Options {
            send_wr: 4,
            recv_wr: 4,
            ..Options::default()
        },
        |pair| unsafe {
            let (a, b) = (&pair.active, &pair.passive);
            let mut last = 0;
            for _ in 0..100_000 {
                last = b.post_recv(1, b.sge(0, 8));
                if last != 0 {
                    break;
                }
            }
            fact("receive queue full", last);
            let big = ffi::ibv_sge {
                length: 2048,
                ..a.sge(0, 8)
            };
            fact(
                "inline too large",
                a.post(write, ffi::IBV_SEND_INLINE, big, b.at(0), b.rkey()) != 0,
            );
            fact(
                "unknown opcode",
                a.post(99, SIGNALLED, a.sge(0, 8), b.at(0), b.rkey()) != 0,
            );
        },
    );
}

/// The last: what it leaves behind is the process's end to clean up.
fn peer_gone() {
    unsafe {
        let pair = Pair::at(ip(), 7633, Options::default());
        let (a, b) = (&pair.active, &pair.passive);
        ffi::rdma_destroy_qp(b.id);
        a.post_id(
            1,
            ffi::IBV_WR_RDMA_WRITE,
            0,
            a.sge(0, 8),
            (b.at(0), b.rkey()),
        );
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            if let Some(wc) = a.poll() {
                fact("write, peer's queue pair destroyed", wc.status);
                return;
            }
        }
        fact("write, peer's queue pair destroyed", "nothing in 10 s");
    }
}

fn memory() {
    unsafe {
        let (id, channel) = common::resolve(ip(), 7640);
        let end = End::new(id, channel, Options::default());
        fact(
            "post before the connection",
            end.post(ffi::IBV_WR_SEND, 0, end.sge(0, 8), 0, 0) != 0,
        );
        fact(
            "receive before the connection",
            end.post_recv(1, end.sge(0, 8)),
        );
        let map = |p| {
            libc::mmap(
                null_mut(),
                4096,
                p,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let rw = map(libc::PROT_READ | libc::PROT_WRITE);
        let ro = map(libc::PROT_READ);
        let gone = map(libc::PROT_READ);
        libc::munmap(gone, 4096);
        let local = ffi::IBV_ACCESS_LOCAL_WRITE;
        let remote = local | ffi::IBV_ACCESS_REMOTE_WRITE;
        let cases = [
            ("plain", rw, 4096, remote),
            ("nothing", rw, 0, remote),
            ("remote write alone", rw, 4096, ffi::IBV_ACCESS_REMOTE_WRITE),
            ("read-only, local write", ro, 4096, local),
            (
                "read-only, remote read",
                ro,
                4096,
                ffi::IBV_ACCESS_REMOTE_READ,
            ),
            ("unmapped", gone, 4096, 0),
            (
                "flush global",
                rw,
                4096,
                remote | ffi::IBV_ACCESS_FLUSH_GLOBAL,
            ),
            (
                "flush persistent",
                rw,
                4096,
                remote | ffi::IBV_ACCESS_FLUSH_PERSISTENT,
            ),
            ("on demand", rw, 4096, remote | ffi::IBV_ACCESS_ON_DEMAND),
        ];
        for (what, p, len, access) in cases {
            let mr = ffi::ibv_reg_mr(end.pd, p, len, access as i32);
            fact(&format!("register, {what}"), mr.is_null().then(errno));
            if !mr.is_null() {
                fact("  rkey is lkey", (*mr).rkey == (*mr).lkey);
                ffi::ibv_dereg_mr(mr);
            }
        }
        fact("pd in use", ffi::ibv_dealloc_pd(end.pd));
        fact("cq in use", ffi::ibv_destroy_cq(end.cq));
        end.close();
    }
}

fn main() {
    handshake();
    addresses();
    memory();
    transfers();
    peer_gone();
}
