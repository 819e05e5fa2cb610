//! Many connections, all served by one thread.

use std::{fs, time::Instant};

use rpma::{
    Completion, ConnCfg, Connection, Cq, LocalRegion, LocalSlice, Memory, Signal, Srq, SrqCfg,
    Usage,
};

use super::{Host, Result, cfg, per_second, result};

const MESSAGE: u64 = 64;
/// What each queue of a connection holds.
const QUEUE: u32 = 16;
/// Messages over all connections.
const MESSAGES: usize = 2048;

pub fn separate(host: &Host, n: usize) -> Result<()> {
    let ends = cfg()
        .sq_size(QUEUE)
        .rq_size(QUEUE)
        .cq_size(QUEUE)
        .rcq_size(QUEUE);
    let memory = memory(host)?;
    let (pairs, held) = connect(host, n, &ends, &ends)?;
    print("separate CQs", n, &held);
    let inbox = memory.slice(..MESSAGE)?;
    let receive = |server: &Connection| server.recv(&inbox, 0);
    let arrivals: Vec<&Cq> = pairs
        .iter()
        .filter_map(|(_, server)| server.rcq())
        .collect();
    messages("separate CQs", &pairs, &memory, receive, &arrivals)
}

pub fn shared(host: &Host, n: usize) -> Result<()> {
    let room = u32::try_from(n)?.max(QUEUE);
    let srq = Srq::new(&host.peer, &SrqCfg::new().size(room).rcq_size(room))?;
    let client = cfg().sq_size(QUEUE).rq_size(1).cq_size(QUEUE);
    let server = cfg().sq_size(1).cq_size(1).srq(&srq);
    let memory = memory(host)?;
    let (pairs, held) = connect(host, n, &client, &server)?;
    print("one shared CQ", n, &held);
    let inbox = memory.slice(..MESSAGE)?;
    let receive = |_: &Connection| srq.recv(&inbox, 0);
    let arrivals = [srq.rcq().ok_or("the queue has no completion queue")?];
    messages("one shared CQ", &pairs, &memory, receive, &arrivals)
}

fn memory(host: &Host) -> rpma::Result<LocalRegion> {
    host.peer
        .register(Memory::anonymous(4096)?, Usage::SEND | Usage::RECV)
}

/// What an end of a connection holds, on average.
struct Held {
    kib: f64,
    fds: f64,
}

type Pairs = Vec<(Connection, Connection)>;

fn connect(host: &Host, n: usize, client: &ConnCfg, server: &ConnCfg) -> Result<(Pairs, Held)> {
    // What is allocated once and for all is there after the first.
    drop(host.connect(client, server)?);
    let (kib, fds) = (resident()?, open_fds()?);
    let pairs = (0..n)
        .map(|_| host.connect(client, server))
        .collect::<Result<Pairs>>()?;
    let ends = (2 * n) as f64;
    let held = Held {
        kib: (resident()? - kib) / ends,
        fds: (open_fds()? - fds) / ends,
    };
    Ok((pairs, held))
}

fn print(how: &str, n: usize, held: &Held) {
    let memory = format!("memory, {how} {n}");
    result("scale", &memory, "rpma", "KiB/end", held.kib.max(0.0));
    result(
        "scale",
        &format!("fds, {how} {n}"),
        "rpma",
        "fds/end",
        held.fds,
    );
}

/// Rounds in which each connection carries a message.
fn messages(
    how: &str,
    pairs: &Pairs,
    memory: &LocalRegion,
    receive: impl Fn(&Connection) -> rpma::Result<()>,
    arrivals: &[&Cq],
) -> Result<()> {
    let outbox = memory.slice(2048..2048 + MESSAGE)?;
    let rounds = (MESSAGES / pairs.len()).max(2);
    // One to get warm.
    round(pairs, &outbox, &receive, arrivals)?;
    let start = Instant::now();
    for _ in 0..rounds {
        round(pairs, &outbox, &receive, arrivals)?;
    }
    let rate = per_second(rounds * pairs.len(), start.elapsed());
    let case = format!("messages, {how} {}", pairs.len());
    result("scale", &case, "rpma", "messages/s", rate);
    Ok(())
}

fn round(
    pairs: &Pairs,
    outbox: &LocalSlice<'_>,
    receive: &impl Fn(&Connection) -> rpma::Result<()>,
    arrivals: &[&Cq],
) -> Result<()> {
    for (client, server) in pairs {
        receive(server)?;
        client.send(outbox, Signal::Always(0))?;
    }
    let mut left = pairs.len();
    let mut completions = [Completion::default(); 16];
    while left > 0 {
        let before = left;
        for cq in arrivals {
            left -= taken(cq, &mut completions)?;
        }
        if left == before {
            std::thread::yield_now();
        }
    }
    for (client, _) in pairs {
        while taken(client.cq(), &mut completions[..1])? == 0 {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// Takes what is there; all must be good.
pub fn taken(cq: &Cq, room: &mut [Completion]) -> Result<usize> {
    let taken = cq.poll(room)?;
    for completion in taken {
        completion
            .ok()
            .map_err(|status| format!("a completion says {status}"))?;
    }
    Ok(taken.len())
}

fn resident() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn open_fds() -> Result<f64> {
    Ok(fs::read_dir("/proc/self/fd")?.count() as f64)
}
