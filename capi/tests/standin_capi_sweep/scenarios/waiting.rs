//! Shared receives, channels, and ends in several orders.

use super::*;

pub fn shared_receives(run: &Run) -> Result {
    shared(run, 0)
}

pub fn shared_receives_with_cq(run: &Run) -> Result {
    shared(run, 8)
}

fn shared(run: &Run, rcq_size: u32) -> Result {
    let peer = peer(run)?;
    let log = region(run, &peer, USAGE_ALL)?;
    let queues = own!(run, rpma_srq_cfg_delete, rpma_srq_cfg_new())?;
    again!(run, rpma_srq_cfg_set_rcq_size(queues.raw(), rcq_size))?;
    let srq = own!(run, rpma_srq_delete, rpma_srq_new(peer.raw(), queues.raw()))?;
    let cfg = own!(run, rpma_conn_cfg_delete, rpma_conn_cfg_new())?;
    again!(run, rpma_conn_cfg_set_srq(cfg.raw(), srq.raw()))?;
    for n in 10..13 {
        again!(run, rpma_srq_recv(srq.raw(), log.mr.raw(), 0, 100, id(n)))?;
    }
    let pair = pair(run, &peer, cfg.raw())?;
    let ours = cq(run, &pair.client)?;
    let theirs = match rcq_size {
        0 => cq(run, &pair.server)?,
        _ => get!(run, UNTOUCHED, rpma_srq_get_rcq(srq.raw()))?,
    };
    for n in 0..3 {
        again!(
            run,
            rpma_send(pair.client.raw(), null_mut(), 0, 0, ALWAYS, id(n))
        )?;
        done(run, ours, n)?;
        done(run, theirs, 10 + n)?;
    }
    drop(cfg);
    Ok(())
}

pub fn shared_channel(run: &Run) -> Result {
    let cfg = own!(run, rpma_conn_cfg_delete, rpma_conn_cfg_new())?;
    again!(run, rpma_conn_cfg_set_compl_channel(cfg.raw(), true))?;
    again!(run, rpma_conn_cfg_set_rcq_size(cfg.raw(), 4))?;
    let rig = rig(run, cfg.raw())?;
    for n in 0..3 {
        again!(
            run,
            rpma_recv(rig.server.raw(), rig.log.mr.raw(), 0, 100, id(n))
        )?;
        again!(
            run,
            rpma_send(rig.client.raw(), rig.local.mr.raw(), 0, 9, ALWAYS, id(n))
        )?;
        for (conn, receives) in [(&rig.client, false), (&rig.server, true)] {
            let mut is_rcq = !receives;
            let cq = get!(
                run,
                UNTOUCHED,
                rpma_conn_wait_which(conn.raw(), &mut is_rcq)
            )?;
            assert_eq!(is_rcq, receives);
            done(run, cq, n)?;
        }
    }
    let fd = get!(run, -1, rpma_conn_get_compl_fd(rig.client.raw()))?;
    nonblocking(fd);
    let (mut cq, mut is_rcq) = (UNTOUCHED, false);
    // SAFETY: as in `again!`.
    match unsafe { rpma_conn_wait(rig.client.raw(), 0, &mut cq, &mut is_rcq) } {
        NO_COMPLETION => assert_eq!(cq, UNTOUCHED),
        code => return run.once("rpma_conn_wait", code),
    }
    Ok(())
}

/// [`rpma_conn_wait`] with its result at the end.
///
/// # Safety
/// That of C.
unsafe fn rpma_conn_wait_which(conn: Handle, is_rcq: *mut bool, cq: *mut Handle) -> c_int {
    // SAFETY: the caller's word.
    unsafe { rpma_conn_wait(conn, 0, cq, is_rcq) }
}

pub fn own_channels(run: &Run) -> Result {
    let cfg = own!(run, rpma_conn_cfg_delete, rpma_conn_cfg_new())?;
    again!(run, rpma_conn_cfg_set_rcq_size(cfg.raw(), 4))?;
    let rig = rig(run, cfg.raw())?;
    let receives = get!(run, UNTOUCHED, rpma_conn_get_rcq(rig.server.raw()))?;
    for n in 0..3 {
        again!(
            run,
            rpma_recv(rig.server.raw(), rig.log.mr.raw(), 0, 100, id(n))
        )?;
        again!(
            run,
            rpma_send(rig.client.raw(), rig.local.mr.raw(), 0, 9, ALWAYS, id(n))
        )?;
        for cq in [rig.cq, receives] {
            again!(run, rpma_cq_wait(cq))?;
            done(run, cq, n)?;
        }
    }
    Ok(())
}

pub fn waits(run: &Run) -> Result {
    let rig = rig(run, null_mut())?;
    let fd = get!(run, -1, rpma_cq_get_fd(rig.cq))?;
    for n in 0..4 {
        let (conn, here, there) = (rig.client.raw(), rig.local.mr.raw(), rig.remote.raw());
        again!(run, rpma_write(conn, there, 0, here, 0, 9, ALWAYS, id(n)))?;
        // A wait that failed after it took the event: the next one must not wait for another.
        again!(run, rpma_cq_wait(rig.cq))?;
        done(run, rig.cq, n)?;
        if n == 1 {
            nonblocking(fd);
        }
    }
    // SAFETY: as in `again!`.
    match unsafe { rpma_cq_wait(rig.cq) } {
        NO_COMPLETION => Ok(()),
        code => run.once("rpma_cq_wait", code),
    }
}

/// Transfers, receives, completions and events that nobody took.
pub fn delete_in_flight(run: &Run) -> Result {
    let rig = rig(run, null_mut())?;
    let (conn, here, there) = (rig.client.raw(), rig.local.mr.raw(), rig.remote.raw());
    again!(
        run,
        rpma_recv(rig.server.raw(), rig.log.mr.raw(), 0, 100, id(1))
    )?;
    again!(run, rpma_send(conn, here, 0, 9, ALWAYS, id(1)))?;
    run.standin.hold();
    again!(run, rpma_write(conn, there, 0, here, 0, 9, ALWAYS, id(2)))?;
    again!(run, rpma_read(conn, here, 0, there, 0, 9, ALWAYS, id(3)))?;
    let Rig {
        client,
        server,
        log,
        local,
        ..
    } = rig;
    drop(log);
    drop(server);
    drop(client);
    drop(local);
    Ok(())
}

pub fn delete_peer_first(run: &Run) -> Result {
    let peer = peer(run)?;
    let region = region(run, &peer, USAGE_ALL)?;
    let srq = own!(run, rpma_srq_delete, rpma_srq_new(peer.raw(), null_mut()))?;
    let pair = pair(run, &peer, null_mut())?;
    drop(peer);
    again!(run, rpma_srq_recv(srq.raw(), region.mr.raw(), 0, 9, id(1)))?;
    again!(
        run,
        rpma_recv(pair.server.raw(), region.mr.raw(), 0, 9, id(1))
    )?;
    drop(region);
    drop(srq);
    drop(pair);
    Ok(())
}
