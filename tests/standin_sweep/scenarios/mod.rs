//! What programs do, each from beginning to end in one thread. Whatever fails ends the scenario
//! there, except what can be done again.

use std::{
    io,
    os::fd::{AsFd, FromRawFd, OwnedFd},
    time::Duration,
};

use rpma::{
    Advice, AsyncEventKind, Completion, ConnCfg, ConnEventKind, ConnRequest, Connection, Cq,
    Endpoint, EndpointCfg, Error, FlushKind, FlushMethod, LocalRegion, LocalSlice, Memory, Peer,
    PeerCfg, RemoteRegion, Result, Signal, Srq, SrqCfg, Usage, Wait, WcStatus,
};
use standin_control::Personality;

use crate::Run;

mod connecting;
mod dropping;
mod memory;
mod operations;
mod waiting;

pub const ADDR: &str = "192.168.77.1";

/// What should come comes at once; what does not ends the scenario, and that fails the test.
const SOON: Duration = Duration::from_millis(400);

/// More than the heap grows by, so that memory that is left shows.
const REGION: usize = 1 << 20;

pub struct Scenario {
    pub name: &'static str,
    pub run: fn(&Run) -> Result<()>,
}

macro_rules! scenarios {
    ($($module:ident: $($name:ident)*;)*) => {
        pub const SCENARIOS: &[Scenario] = &[$($(Scenario { name: stringify!($name), run: $module::$name }),*),*];
    };
}

scenarios! {
    connecting:
        device_by_name device_by_notation device_by_route devices max_inline
        listen connect open options reject drop_request drop_endpoint private_data_too_long;
    memory: register files dmabuf;
    operations: write_and_read messages immediate flush_native flush_by_read atomics batch receive_batch;
    waiting: shared_receives shared_receives_with_cq shared_channel own_channels waits async_events;
    dropping: drop_connection_first drop_connection_last drop_peer_first close_everything;
}

struct Pair {
    client: Connection,
    server: Connection,
    ep: Endpoint,
}

struct Rig {
    pair: Pair,
    local: LocalRegion,
    log: LocalRegion,
    remote: RemoteRegion,
}

fn endpoint(run: &Run) -> Result<(Endpoint, String)> {
    let peer = run.peer()?;
    let ep = run.again(|| Endpoint::listen(peer, ADDR, "0"))?;
    let port = ep.local_addr().expect("an address").port().to_string();
    Ok((ep, port))
}

fn request_at(run: &Run, ep: &Endpoint, cfg: &ConnCfg) -> Result<ConnRequest> {
    let _ = run;
    Ok(ep
        .next_request_timeout(cfg, SOON)?
        .expect("a request in time"))
}

/// The client must learn that it was rejected.
fn rejected(run: &Run, client: &Connection) -> Result<()> {
    let event = run.again(|| client.next_event_timeout(SOON))?;
    let event = event.ok_or(Error::TimedOut {
        call: rpma::Call::RdmaGetCmEvent,
        after: SOON,
    })?;
    assert_eq!(event.kind(), ConnEventKind::Rejected);
    Ok(())
}

fn connected(run: &Run, cfg: &ConnCfg) -> Result<Pair> {
    let (ep, port) = endpoint(run)?;
    let cfg = cfg.clone().timeout(SOON);
    let peer = run.peer()?;
    let request = run.again(|| ConnRequest::new(peer, ADDR, &port, &cfg))?;
    let client = request.connect(None)?;
    let server = request_at(run, &ep, &cfg)?.connect(None)?;
    run.again(|| client.wait_established(SOON))?;
    run.again(|| server.wait_established(SOON))?;
    Ok(Pair { client, server, ep })
}

fn rig(run: &Run, cfg: &ConnCfg) -> Result<Rig> {
    run.standin.release_all();
    let pair = connected(run, cfg)?;
    let peer = run.peer()?;
    let all = if run.personality == Personality::Siw {
        Usage::all() - Usage::ATOMIC
    } else {
        Usage::all()
    };
    let local = run.again(|| peer.register(Memory::anonymous(REGION)?, all))?;
    let log = run.again(|| peer.register(Memory::anonymous(REGION)?, all))?;
    let remote = RemoteRegion::from_descriptor(log.descriptor().as_bytes())?;
    Ok(Rig {
        pair,
        local,
        log,
        remote,
    })
}

/// A rig with transfers, receives, completions and events that nobody took.
fn busy(run: &Run) -> Result<Rig> {
    let rig = rig(run, &ConnCfg::new())?;
    for id in 0..3 {
        rig.pair.server.recv(&rig.log.slice(0..9)?, id)?;
    }
    rig.pair
        .client
        .send(&rig.local.slice(0..9)?, Signal::Always(1))?;
    rig.pair.client.cq().try_wait()?;
    run.standin.hold();
    let held = rig.pair.client.write(
        &rig.local.slice(0..9)?,
        &rig.remote.slice(0..9)?,
        Signal::Always(2),
    );
    held?;
    rig.pair.client.read(
        &rig.local.slice(0..9)?,
        &rig.remote.slice(0..9)?,
        Signal::Always(3),
    )?;
    Ok(rig)
}

/// Takes the next completion, which must be this one, and a success.
fn done(run: &Run, cq: &Cq, wr_id: u64) -> Result<Completion> {
    let mut buf = [Completion::default()];
    let wc = run.again(|| {
        let taken = cq.take(&mut buf, Wait::new().timeout(SOON))?;
        Ok(*taken.first().expect("a completion in time"))
    })?;
    assert_eq!((wc.status(), wc.wr_id()), (WcStatus::SUCCESS, wr_id));
    Ok(wc)
}
