//! Transfers, messages, flushes, batches.

use super::*;

pub fn write_and_read(run: &Run) -> Result<()> {
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

pub fn messages(run: &Run) -> Result<()> {
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

pub fn immediate(run: &Run) -> Result<()> {
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

pub fn flush_native(run: &Run) -> Result<()> {
    // A device that has only the old query does not say that it has it.
    if !run.peer()?.capabilities().native_flush_visibility {
        return Ok(());
    }
    // The memory is not persistent, as the device sees it.
    let cfg = ConnCfg::new().flush_method(FlushMethod::Native);
    flush(run, &cfg, &[FlushKind::Visibility])
}

pub fn flush_by_read(run: &Run) -> Result<()> {
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

pub fn atomics(run: &Run) -> Result<()> {
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

pub fn batch(run: &Run) -> Result<()> {
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

pub fn receive_batch(run: &Run) -> Result<()> {
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
