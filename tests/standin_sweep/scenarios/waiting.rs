//! Completion queues, shared receives, events.

use super::*;

pub fn shared_receives(run: &Run) -> Result<()> {
    shared(run, &SrqCfg::new().size(8).rcq_size(0))
}

pub fn shared_receives_with_cq(run: &Run) -> Result<()> {
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

pub fn shared_channel(run: &Run) -> Result<()> {
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

pub fn own_channels(run: &Run) -> Result<()> {
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

pub fn waits(run: &Run) -> Result<()> {
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
    write(2)?;
    run.again(|| cq.wait().map(|_| ()))?;
    assert_eq!(run.again(|| cq.poll(&mut buf).map(<[_]>::len))?, 1);
    // For those who arm themselves.
    write(3)?;
    assert!(run.again(|| cq.wait_event_timeout(SOON))?);
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

pub fn async_events(run: &Run) -> Result<()> {
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
