//! Operations and their completions.

use super::*;

pub fn write_and_read(run: &Run) -> Result {
    let rig = rig(run, null_mut())?;
    let (conn, here, there) = (rig.client.raw(), rig.local.mr.raw(), rig.remote.raw());
    again!(run, rpma_write(conn, there, 8, here, 0, 64, ALWAYS, id(1)))?;
    done(run, rig.cq, 1)?;
    again!(
        run,
        rpma_write(conn, there, 100, here, 0, 9, ON_ERROR, id(2))
    )?;
    again!(
        run,
        rpma_write(conn, null_mut(), 0, null_mut(), 0, 0, ALWAYS, id(3))
    )?;
    done(run, rig.cq, 3)?;
    again!(run, rpma_read(conn, here, 200, there, 8, 64, ALWAYS, id(4)))?;
    done(run, rig.cq, 4)?;
    again!(
        run,
        rpma_read(conn, null_mut(), 0, null_mut(), 0, 0, ALWAYS, id(5))
    )?;
    done(run, rig.cq, 5)
}

pub fn messages(run: &Run) -> Result {
    let peer = peer(run)?;
    let (local, log) = (
        region(run, &peer, USAGE_ALL)?,
        region(run, &peer, USAGE_ALL)?,
    );
    let ep = endpoint(run, &peer)?;
    let client = accept(run, request(run, &peer, null_mut())?, b"")?;
    let request = incoming(run, &ep, null_mut())?;
    again!(
        run,
        rpma_conn_req_recv(request.raw(), log.mr.raw(), 0, 100, id(10))
    )?;
    let server = accept(run, request, b"")?;
    for conn in [&client, &server] {
        event(run, conn, ESTABLISHED)?;
    }
    again!(run, rpma_recv(server.raw(), log.mr.raw(), 100, 100, id(11)))?;
    again!(run, rpma_recv(server.raw(), null_mut(), 0, 0, id(12)))?;
    let (ours, theirs) = (cq(run, &client)?, cq(run, &server)?);
    again!(
        run,
        rpma_send(client.raw(), local.mr.raw(), 0, 50, ALWAYS, id(0))
    )?;
    again!(
        run,
        rpma_send(client.raw(), local.mr.raw(), 50, 50, ALWAYS, id(1))
    )?;
    again!(
        run,
        rpma_send(client.raw(), null_mut(), 0, 0, ALWAYS, id(2))
    )?;
    for n in 0..3 {
        done(run, ours, n)?;
        done(run, theirs, 10 + n)?;
    }
    Ok(())
}

pub fn immediate(run: &Run) -> Result {
    if run.personality == Personality::Siw {
        return Ok(());
    }
    let rig = rig(run, null_mut())?;
    let (conn, here) = (rig.client.raw(), rig.local.mr.raw());
    for n in [10, 11] {
        again!(
            run,
            rpma_recv(rig.server.raw(), rig.log.mr.raw(), 0, 100, id(n))
        )?;
    }
    again!(run, rpma_send_with_imm(conn, here, 0, 9, ALWAYS, 7, id(0)))?;
    again!(
        run,
        rpma_write_with_imm(conn, rig.remote.raw(), 0, here, 0, 9, ALWAYS, 8, id(1))
    )?;
    let theirs = cq(run, &rig.server)?;
    for n in [0, 1] {
        done(run, rig.cq, n)?;
        done(run, theirs, 10 + n)?;
    }
    Ok(())
}

pub fn flushes(run: &Run) -> Result {
    let rig = rig(run, null_mut())?;
    let cfg = own!(run, rpma_peer_cfg_delete, rpma_peer_cfg_new())?;
    again!(run, rpma_peer_cfg_set_direct_write_to_pmem(cfg.raw(), true))?;
    again!(
        run,
        rpma_conn_apply_remote_peer_cfg(rig.client.raw(), cfg.raw())
    )?;
    let (conn, there) = (rig.client.raw(), rig.remote.raw());
    again!(
        run,
        rpma_write(conn, there, 0, rig.local.mr.raw(), 0, 64, ON_ERROR, id(0))
    )?;
    again!(
        run,
        rpma_flush(conn, there, 0, 64, FLUSH_VISIBILITY, ALWAYS, id(1))
    )?;
    done(run, rig.cq, 1)?;
    // What is not registered for reading is flushed natively on Soft-RoCE.
    let unread = region(run, &rig.peer, USAGE_ALL - USAGE_READ_SRC)?;
    let there_unread = remote(run, &unread)?;
    again!(
        run,
        rpma_flush(
            conn,
            there_unread.raw(),
            0,
            64,
            FLUSH_VISIBILITY,
            ALWAYS,
            id(3)
        )
    )?;
    done(run, rig.cq, 3)?;
    // The memory is not persistent, as a device with native flush sees it.
    if run.personality != Personality::Rxe {
        again!(
            run,
            rpma_flush(conn, there, 0, 64, FLUSH_PERSISTENT, ALWAYS, id(2))
        )?;
        done(run, rig.cq, 2)?;
    }
    Ok(())
}

pub fn atomic_write(run: &Run) -> Result {
    let rig = rig(run, null_mut())?;
    let word = [5u8; 8];
    again!(
        run,
        rpma_atomic_write(
            rig.client.raw(),
            rig.remote.raw(),
            8,
            word.as_ptr(),
            ALWAYS,
            id(1)
        )
    )?;
    done(run, rig.cq, 1)?;
    assert_eq!(rig.log.memory[1].to_ne_bytes(), word);
    Ok(())
}

pub fn old_names(run: &Run) -> Result {
    let rig = rig(run, null_mut())?;
    let (conn, here, there) = (rig.client.raw(), rig.local.mr.raw(), rig.remote.raw());
    let none = Completion {
        op_context: null_mut(),
        op: -1,
        byte_len: 0,
        op_status: -1,
        flags: 0,
        imm: 0,
    };
    get!(run, -1, rpma_conn_get_completion_fd(conn))?;
    again!(
        run,
        rpma_write_atomic(conn, there, 0, here, 0, ALWAYS, id(1))
    )?;
    again!(run, rpma_conn_completion_wait(conn))?;
    let wc = get!(run, none, rpma_conn_completion_get(conn))?;
    assert_eq!((wc.op, wc.op_status, wc.op_context as usize), (1, 0, 1));
    again!(run, rpma_read(conn, here, 0, there, 0, 8, ALWAYS, id(2)))?;
    let wc = get!(run, none, rpma_cq_get_completion(rig.cq))?;
    assert_eq!((wc.op, wc.op_status, wc.op_context as usize), (0, 0, 2));
    Ok(())
}
