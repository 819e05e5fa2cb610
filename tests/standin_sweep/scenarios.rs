//! What programs do, each from beginning to end in one thread. Whatever fails ends the scenario there, except what can be done again.

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
    ($($name:ident)*) => {
        pub const SCENARIOS: &[Scenario] = &[$(Scenario { name: stringify!($name), run: $name }),*];
    };
}

scenarios! {
    device_by_name device_by_route devices max_inline
    listen connect open options reject drop_request drop_endpoint private_data_too_long
    register register_file dmabuf
    write_and_read messages immediate flush_native flush_by_read atomics batch receive_batch
    shared_receives shared_receives_with_cq
    shared_channel own_channels waits async_events
    drop_connection_first drop_connection_last drop_peer_first close_everything
}

fn device_by_name(run: &Run) -> Result<()> {
    let list = run.again(rpma::devices)?;
    let name = list.first().map_or("", |device| &device.name);
    let peer = run.again(|| Peer::device(name))?;
    let region = peer.register(Memory::anonymous(REGION)?, Usage::READ_SRC)?;
    assert!(region.len() == REGION as u64);
    Ok(())
}

fn device_by_route(run: &Run) -> Result<()> {
    run.again(|| Peer::remote(ADDR)).map(|_| ())
}

fn devices(run: &Run) -> Result<()> {
    assert_eq!(run.again(rpma::devices)?.len(), 1);
    Ok(())
}

fn max_inline(run: &Run) -> Result<()> {
    let peer = run.peer()?;
    run.again(|| peer.max_inline()).map(|_| ())
}

fn listen(run: &Run) -> Result<()> {
    let peer = run.peer()?;
    let cfg = EndpointCfg::new().backlog(3).type_of_service(8);
    let ep = run.again(|| Endpoint::listen_with(peer, ADDR, "0", &cfg))?;
    assert!(
        run.again(|| ep.try_next_request(&ConnCfg::new()))?
            .is_none()
    );
    ep.set_nonblocking(false)?;
    assert!(
        run.again(|| ep.try_next_request(&ConnCfg::new()))?
            .is_none()
    );
    ep.close()
}

fn connect(run: &Run) -> Result<()> {
    let peer = run.peer()?;
    let (ep, port) = endpoint(run)?;
    let cfg = ConnCfg::new().timeout(SOON);
    let request = run.again(|| ConnRequest::new(peer, ADDR, &port, &cfg))?;
    let client = request.connect(Some(b"question"))?;
    let request = request_at(run, &ep, &cfg)?;
    assert!(request.private_data().starts_with(b"question"));
    let server = request.connect(Some(b"answer"))?;
    run.again(|| client.wait_established(SOON))?;
    run.again(|| server.wait_established(SOON))?;
    assert!(client.private_data().starts_with(b"answer"));
    run.again(|| client.disconnect())?;
    for conn in [&client, &server] {
        let event = run.again(|| conn.next_event_timeout(SOON))?;
        assert_eq!(event.map(|event| event.kind()), Some(ConnEventKind::Closed));
    }
    client.close()?;
    server.close()
}

fn open(run: &Run) -> Result<()> {
    let (ep, port) = endpoint(run)?;
    let cfg = ConnCfg::new().timeout(Duration::from_millis(3));
    // Nobody accepts in time.
    let client = Connection::open(run.peer()?, ADDR, &port, &cfg, None);
    match client {
        Err(Error::TimedOut { .. }) => {}
        Err(err) => return Err(err),
        Ok(_) => panic!("nobody accepted"),
    }
    drop(ep);
    // Nobody listens.
    match Connection::open(run.peer()?, ADDR, &port, &cfg, None) {
        Err(Error::Connection { .. }) => Ok(()),
        // iWARP says so at once, in the call itself.
        Err(err) if err.raw_os_error() == Some(libc::ECONNREFUSED) => Ok(()),
        Err(err) => Err(err),
        Ok(_) => panic!("nobody listens"),
    }
}

fn options(run: &Run) -> Result<()> {
    let cfg = ConnCfg::new()
        .rcq_size(7)
        .sq_size(33)
        .rq_size(5)
        .max_sge(3)
        .max_inline(40)
        .type_of_service(16)
        .ack_timeout(12);
    let pair = connected(run, &cfg)?;
    assert!(pair.client.rcq().is_some());
    Ok(())
}

fn reject(run: &Run) -> Result<()> {
    let (ep, port) = endpoint(run)?;
    let cfg = ConnCfg::new().timeout(SOON);
    let client = ConnRequest::new(run.peer()?, ADDR, &port, &cfg)?.connect(None)?;
    request_at(run, &ep, &cfg)?.reject(Some(b"no"))?;
    rejected(run, &client)
}

fn drop_request(run: &Run) -> Result<()> {
    let (ep, port) = endpoint(run)?;
    let cfg = ConnCfg::new().timeout(SOON);
    drop(ConnRequest::new(run.peer()?, ADDR, &port, &cfg)?);
    let client = ConnRequest::new(run.peer()?, ADDR, &port, &cfg)?.connect(None)?;
    drop(request_at(run, &ep, &cfg)?);
    rejected(run, &client)
}

fn drop_endpoint(run: &Run) -> Result<()> {
    let (ep, port) = endpoint(run)?;
    let cfg = ConnCfg::new().timeout(SOON);
    let client = ConnRequest::new(run.peer()?, ADDR, &port, &cfg)?.connect(None)?;
    drop(ep);
    rejected(run, &client)
}

fn private_data_too_long(run: &Run) -> Result<()> {
    let (ep, port) = endpoint(run)?;
    let cfg = ConnCfg::new().timeout(SOON);
    let client = ConnRequest::new(run.peer()?, ADDR, &port, &cfg)?.connect(None)?;
    match request_at(run, &ep, &cfg)?.connect(Some(&[1; 256])) {
        Err(Error::TooLong { .. }) => {}
        other => panic!("{other:?}"),
    }
    rejected(run, &client)
}

fn register(run: &Run) -> Result<()> {
    let peer = run.peer()?;
    for usage in [
        Usage::all(),
        Usage::READ_DST,
        Usage::FLUSH_PERSISTENT | Usage::WRITE_DST,
    ] {
        let mut memory = Some(Memory::anonymous(REGION)?);
        // A failed registration gives the memory back.
        let region = run.again(|| {
            let given = memory.take().expect("the memory that came back");
            peer.try_register(given, usage).map_err(|(back, err)| {
                memory = Some(back);
                err
            })
        })?;
        for advice in [Advice::PREFETCH, Advice::PREFETCH_WRITE] {
            match region.advise(0..4096, advice, true) {
                Ok(()) | Err(Error::NotSupported { .. }) => {}
                // The region is not registered for on-demand paging.
                Err(err) if err.raw_os_error() == Some(libc::EINVAL) => {}
                Err(err) => return Err(err),
            }
        }
        let mut region = Some(region);
        let memory = run.again(|| {
            let given = region.take().expect("the region that came back");
            given.close().map_err(|(back, err)| {
                region = Some(back);
                err
            })
        })?;
        assert_eq!(memory.len(), REGION);
    }
    let owned = peer.register(Memory::from_owner(vec![1u8; 4096])?, Usage::SEND)?;
    drop(owned);
    Ok(())
}

fn register_file(run: &Run) -> Result<()> {
    let path = std::env::temp_dir().join(format!("rpma-sweep-{}", std::process::id()));
    let memory = Memory::create_file(&path, REGION)?;
    std::fs::remove_file(&path).expect("the file that was just made");
    let region = run
        .peer()?
        .register(memory, Usage::WRITE_DST | Usage::FLUSH_PERSISTENT);
    drop(region?);
    Ok(())
}

fn dmabuf(run: &Run) -> Result<()> {
    // SAFETY: a string; the descriptor is owned below.
    let fd = unsafe { libc::memfd_create(c"sweep".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(fd >= 0, "{}", io::Error::last_os_error());
    // SAFETY: it was just made and belongs to nobody else.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the descriptor is open.
    assert_eq!(
        unsafe { libc::ftruncate(std::os::fd::AsRawFd::as_raw_fd(&fd), REGION as i64) },
        0
    );
    let peer = run.peer()?;
    let register = || peer.register_dmabuf(fd.as_fd(), 0, REGION, 0, Usage::READ_SRC);
    if run.personality == Personality::Mlx5 {
        return run.again(register).map(|_| ());
    }
    match register() {
        Err(Error::NotSupported { .. }) => Ok(()),
        other => other.map(|_| ()),
    }
}

fn write_and_read(run: &Run) -> Result<()> {
    let rig = rig(run, &ConnCfg::new().max_inline(32).max_sge(2))?;
    let (local, remote, conn) = (&rig.local, &rig.remote, &rig.pair.client);
    run.again(|| {
        conn.write(
            &local.slice(0..100)?,
            &remote.slice(5..105)?,
            Signal::Always(1),
        )
    })?;
    done(run, conn.cq(), 1)?;
    run.again(|| conn.write_inline(b"inline", &remote.slice(0..6)?, Signal::Always(2)))?;
    done(run, conn.cq(), 2)?;
    let two = [local.slice(0..8)?, local.slice(100..108)?];
    run.again(|| conn.write_gather(&two, &remote.slice(200..216)?, Signal::OnError(3)))?;
    run.again(|| conn.read(&local.slice(0..6)?, &remote.slice(0..6)?, Signal::Always(4)))?;
    done(run, conn.cq(), 4)?;
    let mut bytes = [0; 6];
    local.read_at(0, &mut bytes)?;
    assert_eq!(&bytes, b"inline");
    Ok(())
}

fn messages(run: &Run) -> Result<()> {
    let rig = rig(run, &ConnCfg::new().max_inline(32))?;
    let (client, server) = (&rig.pair.client, &rig.pair.server);
    for id in 0..3 {
        run.again(|| server.recv(&rig.log.slice(id * 100..id * 100 + 100)?, id))?;
    }
    run.again(|| client.send(&rig.local.slice(0..50)?, Signal::Always(1)))?;
    run.again(|| client.send_inline(b"short", Signal::Always(2)))?;
    run.again(|| client.send(&LocalSlice::EMPTY, Signal::Always(3)))?;
    for id in 1..4 {
        done(run, client.cq(), id)?;
        done(run, server.cq(), id - 1)?;
    }
    Ok(())
}

fn immediate(run: &Run) -> Result<()> {
    if run.personality == Personality::Siw {
        return Ok(());
    }
    let rig = rig(run, &ConnCfg::new())?;
    let (client, server) = (&rig.pair.client, &rig.pair.server);
    for id in 0..2 {
        run.again(|| server.recv(&rig.log.slice(0..100)?, id))?;
    }
    let here = rig.local.slice(0..10)?;
    run.again(|| client.send_with_imm(&here, 7, Signal::Always(1)))?;
    run.again(|| client.write_with_imm(&here, &rig.remote.slice(0..10)?, 8, Signal::Always(2)))?;
    for id in 0..2 {
        done(run, client.cq(), id + 1)?;
        let wc = done(run, server.cq(), id)?;
        assert_eq!(wc.imm_data(), Some(7 + id as u32));
    }
    Ok(())
}

fn flush_native(run: &Run) -> Result<()> {
    if run.personality != Personality::Rxe {
        return Ok(());
    }
    // The memory is not persistent, as the device sees it.
    let cfg = ConnCfg::new().flush_method(FlushMethod::Native);
    flush(run, &cfg, &[FlushKind::Visibility])
}

fn flush_by_read(run: &Run) -> Result<()> {
    let cfg = ConnCfg::new().flush_method(FlushMethod::ReadAfterWrite);
    flush(run, &cfg, &[FlushKind::Visibility, FlushKind::Persistent])
}

fn flush(run: &Run, cfg: &ConnCfg, kinds: &[FlushKind]) -> Result<()> {
    let rig = rig(run, cfg)?;
    let conn = &rig.pair.client;
    conn.apply_peer_cfg(&PeerCfg::new().with_direct_write_to_pmem(true));
    let (from, to) = (rig.local.slice(0..9)?, rig.remote.slice(0..9)?);
    run.again(|| conn.write(&from, &to, Signal::OnError(0)))?;
    for (id, kind) in (1..).zip(kinds) {
        run.again(|| conn.flush(&to, *kind, Signal::Always(id)))?;
        done(run, conn.cq(), id)?;
    }
    Ok(())
}

fn atomics(run: &Run) -> Result<()> {
    let rig = rig(run, &ConnCfg::new())?;
    let conn = &rig.pair.client;
    let word = rig.remote.slice(8..16)?;
    run.again(|| conn.atomic_write(&word, 5u64.to_ne_bytes(), Signal::Always(1)))?;
    done(run, conn.cq(), 1)?;
    if run.personality == Personality::Siw {
        return Ok(());
    }
    let was = rig.local.slice(0..8)?;
    run.again(|| conn.compare_and_swap(&was, &word, 5, 6, Signal::Always(2)))?;
    done(run, conn.cq(), 2)?;
    run.again(|| conn.fetch_and_add(&was, &word, 3, Signal::Always(3)))?;
    done(run, conn.cq(), 3)?;
    let mut now = [0; 8];
    rig.log.read_at(8, &mut now)?;
    assert_eq!(u64::from_ne_bytes(now), 9);
    Ok(())
}

fn batch(run: &Run) -> Result<()> {
    let rig = rig(run, &ConnCfg::new().max_inline(32).max_sge(2).sq_size(16))?;
    let conn = &rig.pair.client;
    conn.apply_peer_cfg(&PeerCfg::new().with_direct_write_to_pmem(true));
    // One after the other on the same connection: the buffer of the batch is used again.
    for round in 0..2u64 {
        let mut batch = conn.batch();
        batch.write(
            &rig.local.slice(0..64)?,
            &rig.remote.slice(64..128)?,
            Signal::OnError(0),
        )?;
        batch.write_inline(b"inline", &rig.remote.slice(128..134)?, Signal::OnError(0))?;
        let uneven = [rig.local.slice(0..3)?, rig.local.slice(9..20)?];
        batch.write_gather(&uneven, &rig.remote.slice(300..314)?, Signal::OnError(0))?;
        batch.flush(
            &rig.remote.slice(64..128)?,
            FlushKind::Visibility,
            Signal::OnError(0),
        )?;
        batch.atomic_write(
            &rig.remote.slice(0..8)?,
            [round as u8 + 1; 8],
            Signal::OnError(0),
        )?;
        batch.read(
            &rig.local.slice(0..8)?,
            &rig.remote.slice(0..8)?,
            Signal::Always(round),
        )?;
        if let Err(err) = batch.submit() {
            run.note(err);
            // What was refused is still in it.
            batch.submit()?;
        }
        assert!(batch.is_empty());
        done(run, conn.cq(), round)?;
        let mut bytes = [0; 8];
        rig.local.read_at(0, &mut bytes)?;
        assert_eq!(bytes, [round as u8 + 1; 8]);
    }
    Ok(())
}

fn receive_batch(run: &Run) -> Result<()> {
    let rig = rig(run, &ConnCfg::new())?;
    for round in 0..2 {
        let mut batch = rig.pair.server.recv_batch()?;
        for id in 0..3 {
            batch.recv(&rig.log.slice(0..10)?, round * 3 + id)?;
        }
        if let Err(err) = batch.submit() {
            run.note(err);
            batch.submit()?;
        }
        for id in 0..3 {
            let here = rig.local.slice(0..10)?;
            run.again(|| rig.pair.client.send(&here, Signal::Always(id)))?;
            done(run, rig.pair.client.cq(), id)?;
            done(run, rig.pair.server.cq(), round * 3 + id)?;
        }
    }
    Ok(())
}

fn shared_receives(run: &Run) -> Result<()> {
    shared(run, &SrqCfg::new().size(8).rcq_size(0))
}

fn shared_receives_with_cq(run: &Run) -> Result<()> {
    shared(run, &SrqCfg::new().size(8).rcq_size(8))
}

fn shared(run: &Run, cfg: &SrqCfg) -> Result<()> {
    let peer = run.peer()?;
    let srq = run.again(|| Srq::new(peer, cfg))?;
    run.again(|| srq.arm_limit(1))?;
    let rig = rig(run, &ConnCfg::new().srq(&srq))?;
    let (client, server) = (&rig.pair.client, &rig.pair.server);
    run.again(|| srq.recv(&rig.log.slice(0..100)?, 10))?;
    let mut batch = srq.recv_batch();
    batch.recv(&rig.log.slice(0..100)?, 11)?;
    batch.recv(&rig.log.slice(0..100)?, 12)?;
    if let Err(err) = batch.submit() {
        run.note(err);
        batch.submit()?;
    }
    drop(batch);
    let cq = server.rcq().unwrap_or(server.cq());
    for id in 0..3 {
        run.again(|| client.send(&rig.local.slice(0..7)?, Signal::Always(id)))?;
        done(run, client.cq(), id)?;
        done(run, cq, 10 + id)?;
    }
    Ok(())
}

fn shared_channel(run: &Run) -> Result<()> {
    let rig = rig(run, &ConnCfg::new().shared_channel(true).rcq_size(4))?;
    let (client, server) = (&rig.pair.client, &rig.pair.server);
    for id in 0..3 {
        run.again(|| server.recv(&rig.log.slice(0..100)?, id))?;
        run.again(|| client.send(&rig.local.slice(0..7)?, Signal::Always(id)))?;
        for conn in [client, server] {
            let fired = run.again(|| conn.wait_timeout(SOON))?.expect("an event");
            let cq = fired.cq;
            let wc = run.again(|| cq.poll_one())?.or(conn.cq().poll_one()?);
            let wc = match (wc, conn.rcq()) {
                (None, Some(rcq)) => rcq.poll_one()?,
                (wc, _) => wc,
            };
            assert_eq!(wc.map(|wc| wc.wr_id()), Some(id));
        }
    }
    assert!(run.again(|| client.try_wait())?.is_none());
    Ok(())
}

fn own_channels(run: &Run) -> Result<()> {
    let rig = rig(run, &ConnCfg::new().rcq_size(4))?;
    let (client, server) = (&rig.pair.client, &rig.pair.server);
    let rcq = server.rcq().expect("asked for");
    for id in 0..3 {
        run.again(|| server.recv(&rig.log.slice(0..100)?, id))?;
        run.again(|| client.send(&rig.local.slice(0..7)?, Signal::Always(id)))?;
        for cq in [client.cq(), rcq] {
            assert!(run.again(|| cq.wait_timeout(SOON))?.is_ready());
            let wc = run.again(|| cq.poll_one())?;
            assert_eq!(wc.map(|wc| wc.wr_id()), Some(id));
        }
    }
    Ok(())
}

fn waits(run: &Run) -> Result<()> {
    let rig = rig(run, &ConnCfg::new())?;
    let conn = &rig.pair.client;
    let cq = conn.cq();
    let write = |id| {
        let (from, to) = (rig.local.slice(0..9)?, rig.remote.slice(0..9)?);
        run.again(|| conn.write(&from, &to, Signal::Always(id)))
    };
    let mut buf = [Completion::default(); 4];
    // A wait that failed after it took the event: the next one must not wait for another.
    write(1)?;
    run.again(|| cq.wait().map(|_| ()))?;
    assert_eq!(run.again(|| cq.poll(&mut buf).map(<[_]>::len))?, 1);
    cq.set_nonblocking(true)?;
    write(2)?;
    run.again(|| cq.wait().map(|_| ()))?;
    assert_eq!(run.again(|| cq.poll(&mut buf).map(<[_]>::len))?, 1);
    // For those who arm themselves.
    write(3)?;
    assert!(run.again(|| cq.wait_event(Some(SOON)))?);
    run.again(|| cq.arm(false))?;
    assert_eq!(run.again(|| cq.poll(&mut buf).map(<[_]>::len))?, 1);
    // The budget of polls, then the channel.
    write(4)?;
    done(run, cq, 4)?;
    let none = run.again(|| {
        cq.take(&mut buf, Wait::block().timeout(Duration::from_millis(1)))
            .map(<[_]>::len)
    });
    assert_eq!(none?, 0);
    write(5)?;
    let one = run.again(|| {
        cq.take(&mut buf, Wait::block().timeout(SOON))
            .map(<[_]>::len)
    });
    assert_eq!(one?, 1);
    Ok(())
}

fn async_events(run: &Run) -> Result<()> {
    let events = run.peer()?.async_events();
    // Those of earlier scenarios.
    while run.again(|| events.try_next_event())?.is_some() {}
    for kind in [AsyncEventKind::PORT_ERR, AsyncEventKind::PORT_ACTIVE] {
        run.standin.async_event(kind.as_raw(), 1);
        let event = run.again(|| events.next_event_timeout(SOON))?;
        assert_eq!(event.map(|event| event.kind()), Some(kind));
    }
    let pair = connected(run, &ConnCfg::new())?;
    run.standin.async_event(
        AsyncEventKind::QP_FATAL.as_raw(),
        pair.client.as_raw_qp() as usize,
    );
    let event = run.again(|| events.next_event_timeout(SOON))?;
    assert_eq!(
        event.map(|event| event.kind()),
        Some(AsyncEventKind::QP_FATAL)
    );
    Ok(())
}

fn drop_connection_first(run: &Run) -> Result<()> {
    let Rig {
        pair,
        local,
        log,
        remote: _,
    } = busy(run)?;
    drop(pair);
    drop((local, log));
    Ok(())
}

fn drop_connection_last(run: &Run) -> Result<()> {
    let Rig {
        pair,
        local,
        log,
        remote: _,
    } = busy(run)?;
    drop((log, local));
    let Pair { client, server, ep } = pair;
    drop(ep);
    drop((server, client));
    Ok(())
}

fn drop_peer_first(_run: &Run) -> Result<()> {
    let peer = Peer::local(ADDR)?;
    let (region, ep, srq) = (
        peer.register(Memory::anonymous(REGION)?, Usage::RECV)?,
        Endpoint::listen(&peer, ADDR, "0")?,
        Srq::new(&peer, &SrqCfg::new())?,
    );
    let events = peer.async_events();
    drop(peer);
    srq.recv(&region.slice(0..9)?, 1)?;
    drop(events);
    drop(ep);
    drop(region);
    drop(srq);
    Ok(())
}

fn close_everything(run: &Run) -> Result<()> {
    let Rig {
        pair,
        local,
        log,
        remote: _,
    } = busy(run)?;
    let Pair { client, server, ep } = pair;
    let mut results = vec![client.close(), ep.close(), server.close()];
    for region in [local, log] {
        results.push(region.close().map(|_| ()).map_err(|(_, err)| err));
    }
    results.into_iter().find(Result::is_err).unwrap_or(Ok(()))
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
        call: "the rejection",
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
