//! Many connections in one thread, by epoll, with one fd for both completion queues of a
//! connection.
//!
//! For servers with a reactor of their own and very many connections. The shared channel's fd says
//! that there is news, and `Connection::try_wait` of which queue. `epoll_separate` has an fd for
//! each queue.
//!
//! ```text
//! epoll_shared server ADDR PORT [CLIENTS]
//! epoll_shared client ADDR PORT
//! ```
//!
//! The server ends when so many clients (1) have come and gone.

mod common;

use std::collections::HashMap;

use common::*;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use rpma::{
    ConnCfg, ConnEventKind, ConnRequest, Connection, LocalRegion, Memory, Peer, Signal, Usage,
};

/// What epoll says of an fd: the client's number times two, and one of these. The endpoint is
/// number 0.
const EVENTS: u64 = 0;
const COMPLETIONS: u64 = 1;

fn server(args: &Args) -> Outcome {
    let expected = args.extra.as_deref().unwrap_or("1").parse::<u64>()?;
    let peer = Peer::local(&args.addr)?;
    let endpoint = listen(&peer, args)?;
    let cfg = ConnCfg::new().rcq_size(10).shared_channel(true);
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(&endpoint, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;

    let mut clients = HashMap::new();
    let (mut come, mut gone) = (0, 0);
    while gone < expected {
        let mut ready = [EpollEvent::empty(); 16];
        let n = epoll.wait(&mut ready, EpollTimeout::try_from(TIMEOUT)?)?;
        check(n > 0, "nothing happened in time")?;
        for event in &ready[..n] {
            let (number, source) = (event.data() / 2, event.data() % 2);
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
            if source == COMPLETIONS {
                client.serve()?;
            } else if client.is_closed()? {
                // Closing its fds takes them out of epoll too.
                clients.remove(&number);
                gone += 1;
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
        let readable = |source| EpollEvent::new(EpollFlags::EPOLLIN, number * 2 + source);
        epoll.add(conn.event_fd(), readable(EVENTS))?;
        epoll.add(conn.completion_fd()?, readable(COMPLETIONS))?;
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

    /// Takes all events, which arms the queues again, and what has completed.
    fn serve(&self) -> Outcome {
        while let Some(fired) = self.conn.try_wait()? {
            while let Some(wc) = fired.cq.poll_one()? {
                // What had not completed when the client left comes back as failed: that it has
                // left, its event says.
                if wc.is_success() && fired.is_rcq {
                    self.answer()?;
                }
            }
        }
        Ok(())
    }

    fn answer(&self) -> Outcome {
        let number = number_in(&self.inbox, 0)?;
        self.conn.recv(&self.inbox.slice(..)?, 0)?;
        let answer = (number * number).to_le_bytes();
        Ok(self.conn.send_inline(&answer, Signal::Always(0))?)
    }
}

fn main() -> std::process::ExitCode {
    run(server, ask)
}
