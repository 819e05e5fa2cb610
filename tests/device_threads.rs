//! Many threads on one connection.

mod common;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use common::*;
use rpma::{
    Batch, CmEventKind, Completion, ConnCfg, ConnRequest, Connection, Cq, Endpoint, Error,
    FlushKind, LocalRegion, Memory, Peer, RemoteRegion, Signal, Srq, Usage, Wait,
};

const THREADS: u64 = 8;
const EACH: u64 = 200;

/// Takes completions for a moment, and counts them.
fn take(cq: &Cq, done: &AtomicU64) {
    let mut buf = [Completion::default(); 4];
    let wait = Wait::new().timeout(Duration::from_millis(20));
    for wc in cq.take(&mut buf, wait).unwrap() {
        assert!(wc.is_success(), "{wc:?}");
        done.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn eight_threads_post_and_poll_on_one_connection() {
    let peer = device!();
    let Pair { client, server } = pair(&peer, &ConnCfg::new().sq_size(16).max_inline(16));
    let log = region(&peer, (THREADS * 64) as usize, remote_usage(), |_| 0);
    let scratch = region(
        &peer,
        (THREADS * 64) as usize,
        Usage::READ_DST | Usage::WRITE_SRC,
        |_| 0,
    );
    let (there, done) = (remote(&log), AtomicU64::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for t in 0..THREADS {
            let (client, scratch, there, done) = (&client, &scratch, &there, &done);
            scope.spawn(move || {
                let slot = there.slice(t * 64..t * 64 + 8).unwrap();
                let word = there.slice(t * 64 + 8..t * 64 + 16).unwrap();
                let mine = scratch.slice(t * 64..t * 64 + 8).unwrap();
                for n in 0..EACH {
                    loop {
                        let id = Signal::Always(t * EACH + n);
                        let posted = match n % 5 {
                            0 => client.write_inline(&n.to_le_bytes(), &slot, id),
                            1 => client.read(&mine, &slot, id),
                            2 => client.flush(&slot, FlushKind::Visibility, id),
                            3 => client.atomic_write(&word, n.to_le_bytes(), id),
                            _ => {
                                let mut batch = client.batch();
                                batch
                                    .write_inline(&n.to_le_bytes(), &slot, Signal::OnError(n))
                                    .unwrap();
                                batch.flush(&slot, FlushKind::Persistent, id).unwrap();
                                match batch.submit() {
                                    // The first of two went out: the second must follow.
                                    Err(Error::QueueFull { accepted: 1, .. }) => loop {
                                        take(client.cq(), done);
                                        match batch.submit() {
                                            Err(Error::QueueFull { .. }) => {}
                                            other => break other,
                                        }
                                    },
                                    other => other,
                                }
                            }
                        };
                        match posted {
                            Ok(()) => break,
                            Err(Error::QueueFull { accepted, .. }) => {
                                assert_eq!(accepted, 0);
                                take(client.cq(), done);
                            }
                            Err(other) => panic!("{other}"),
                        }
                        assert!(start.elapsed() < 2 * LONG);
                    }
                    if n % 3 == 0 {
                        take(client.cq(), done);
                    }
                }
            });
        }
    });
    until("the rest", || {
        take(client.cq(), &done);
        done.load(Ordering::SeqCst) == THREADS * EACH
    });
    assert!(nothing(client.cq()));
    let bytes = contents(&log);
    for t in 0..THREADS as usize {
        assert_eq!(bytes[t * 64..][..8], (EACH - 1).to_le_bytes());
        assert_eq!(bytes[t * 64 + 8..][..8], (EACH - 2).to_le_bytes());
    }
    drop(server);
}

#[test]
fn threads_may_register_connect_and_drop_at_once() {
    let _alone = alone();
    let peer = device!();
    let (endpoint, port) = listen(&peer);
    let rounds = 5;
    std::thread::scope(|scope| {
        let endpoint = &endpoint;
        scope.spawn(move || {
            for _ in 0..THREADS * rounds {
                let server = next(endpoint, &ConnCfg::new()).connect(None).unwrap();
                scope.spawn(move || {
                    match server.wait_established(LONG) {
                        Ok(()) => {
                            let event = server.next_event_timeout(LONG).unwrap().unwrap();
                            assert_eq!(event.kind(), rpma::ConnEventKind::Closed);
                        }
                        // The client's last message of the handshake can come after its first of
                        // the end.
                        Err(err) => assert!(
                            matches!(err, Error::Connection { event, .. } if event == CmEventKind::DISCONNECTED),
                            "{err:?}"
                        ),
                    }
                });
            }
        });
        for _ in 0..THREADS {
            let (peer, port) = (&peer, &port);
            scope.spawn(move || {
                for _ in 0..rounds {
                    let log = region(peer, 64, remote_usage(), |_| 0);
                    let client = ask(peer, port, &ConnCfg::new()).connect(None).unwrap();
                    client.wait_established(LONG).unwrap();
                    let word = remote(&log).slice(0..8).unwrap();
                    // The passive end must know the region's domain: it is the same peer's.
                    // soft-iWARP completes a write that TCP has taken, and may leave the first one
                    // in its socket until another comes.
                    until("the word is there", || {
                        client
                            .write_inline(&[1; 8], &word, Signal::Always(1))
                            .unwrap();
                        success(client.cq(), 1);
                        contents(&log)[..8] == [1; 8]
                    });
                }
            });
        }
    });
}

#[test]
fn types_go_where_they_are_said_to_go() {
    fn both<T: Send + Sync>() {}
    both::<Peer>();
    both::<Endpoint>();
    both::<ConnRequest>();
    both::<Connection>();
    both::<Cq>();
    both::<Srq>();
    both::<Memory>();
    both::<LocalRegion>();
    both::<RemoteRegion>();
    both::<rpma::LocalSlice<'_>>();
    both::<rpma::AsyncEvents>();
    both::<Error>();
    both::<Completion>();
    fn send<T: Send>() {}
    send::<Batch<'_>>();
}
