//! Many connections in one thread, by epoll: each connection has an fd for its events and one for
//! each of its completion queues.
//!
//! For servers with a reactor of their own. Which fd is readable says what has happened, so sends
//! and receives need not be told apart. It takes three fds a connection; `epoll_shared` does with
//! two.
//!
//! ```text
//! epoll_separate server ADDR PORT [CLIENTS]
//! epoll_separate client ADDR PORT
//! ```
//!
//! The server ends when so many clients (1) have come and gone.

mod common;

use std::collections::HashMap;

use common::*;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use rpma::{
    ConnCfg, ConnEventKind, ConnRequest, Connection, Cq, LocalRegion, Memory, Peer, Signal, Usage,
};

/// What epoll says of an fd: the client's number times four, and one of these. The endpoint is
/// number 0.
const EVENTS: u64 = 0;
const SENDS: u64 = 1;
const RECEIVES: u64 = 2;

fn server(args: &Args) -> Outcome {
    let expected = args.extra.as_deref().unwrap_or("1").parse::<u64>()?;
    let peer = Peer::local(&args.addr)?;
    let endpoint = listen(&peer, args)?;
    let cfg = ConnCfg::new().rcq_size(10);
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(&endpoint, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;

    let mut clients = HashMap::new();
    let (mut come, mut gone) = (0, 0);
    while gone < expected {
        let mut ready = [EpollEvent::empty(); 16];
        let n = epoll.wait(&mut ready, EpollTimeout::try_from(TIMEOUT)?)?;
        check(n > 0, "nothing happened in time")?;
        for event in &ready[..n] {
            let (number, source) = (event.data() / 4, event.data() % 4);
            if number == 0 {
                while let Some(request) = endpoint.try_next_request(&cfg)? {
                    come += 1;
                    clients.insert(come, Client::accept(&peer, request, &epoll, come)?);
                }
                continue;
            }
            let Some(client) = clients.get(&number) else {
                continue; // Gone by an earlier event of this turn.
            };
            match source {
                EVENTS if client.is_closed()? => {
                    // Closing its fds takes them out of epoll too.
                    clients.remove(&number);
                    gone += 1;
                }
                RECEIVES => client.answer()?,
                SENDS => client.sent()?,
                _ => {}
            }
        }
    }
    println!("{gone} clients were served");
    Ok(())
}

struct Client {
    conn: Connection,
    inbox: LocalRegion,
}

impl Client {
    fn accept(peer: &Peer, request: ConnRequest, epoll: &Epoll, number: u64) -> Outcome<Self> {
        let inbox = peer.register(Memory::anonymous(8)?, Usage::RECV)?;
        request.recv(&inbox.slice(..)?, 0)?;
        let conn = request.connect(None)?;
        let readable = |source| EpollEvent::new(EpollFlags::EPOLLIN, number * 4 + source);
        epoll.add(conn.event_fd(), readable(EVENTS))?;
        epoll.add(conn.cq(), readable(SENDS))?;
        epoll.add(conn.rcq().ok_or("no receive CQ")?, readable(RECEIVES))?;
        Ok(Client { conn, inbox })
    }

    fn is_closed(&self) -> Outcome<bool> {
        while let Some(event) = self.conn.try_next_event()? {
            match event.kind() {
                ConnEventKind::Established => {}
                ConnEventKind::Closed => return Ok(true),
                _ => return Err(format!("the connection {}", event.cm_kind()).into()),
            }
        }
        Ok(false)
    }

    fn answer(&self) -> Outcome {
        let Some(receives) = self.conn.rcq() else {
            return Ok(());
        };
        each_completion(receives, || {
            let number = number_in(&self.inbox, 0)?;
            self.conn.recv(&self.inbox.slice(..)?, 0)?;
            let answer = (number * number).to_le_bytes();
            Ok(self.conn.send_inline(&answer, Signal::Always(0))?)
        })
    }

    fn sent(&self) -> Outcome {
        each_completion(self.conn.cq(), || Ok(()))
    }
}

/// Takes the event of `cq`, which arms it again, and then everything that has completed.
fn each_completion(cq: &Cq, done: impl Fn() -> Outcome) -> Outcome {
    while cq.try_wait()? {}
    while let Some(wc) = cq.poll_one()? {
        // What had not completed when the client left comes back as failed: that the client has
        // left, its event says.
        if wc.is_success() {
            done()?;
        }
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    run(server, ask)
}
