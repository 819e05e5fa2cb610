//! Devices, endpoints, requests, connections, regions.

use super::*;

pub fn contexts(run: &Run) -> Result {
    for kind in [0, 1] {
        let context = get!(
            run,
            UNTOUCHED,
            rpma_utils_get_ibv_context(ADDR.as_ptr(), kind)
        )?;
        assert_eq!(context, run.context);
    }
    let capable = get!(run, -1, rpma_utils_ibv_context_is_odp_capable(run.context))?;
    // Where the query had to be the old one, it does not say so.
    assert!(capable == 0 || (capable == 1 && run.personality == Personality::Mlx5));
    Ok(())
}

pub fn peers(run: &Run) -> Result {
    let first = peer(run)?;
    let second = peer(run)?;
    drop(first);
    drop(second);
    Ok(())
}

pub fn listen(run: &Run) -> Result {
    let peer = peer(run)?;
    let ep = own!(
        run,
        rpma_ep_shutdown,
        rpma_ep_listen(peer.raw(), ADDR.as_ptr(), run.port())
    )?;
    let fd = get!(run, -1, rpma_ep_get_fd(ep.raw()))?;
    nonblocking(fd);
    let mut request = UNTOUCHED;
    // SAFETY: as in `again!`.
    let code = unsafe { rpma_ep_next_conn_req(ep.raw(), null_mut(), &mut request) };
    if request != UNTOUCHED {
        return Err(run.problem("a request that nobody made".to_owned()));
    }
    match code {
        NO_EVENT => Ok(()),
        code => run.once("rpma_ep_next_conn_req", code),
    }
}

pub fn connect(run: &Run) -> Result {
    let peer = peer(run)?;
    let ep = endpoint(run, &peer)?;
    let cfg = own!(run, rpma_conn_cfg_delete, rpma_conn_cfg_new())?;
    again!(run, rpma_conn_cfg_set_timeout(cfg.raw(), 400))?;
    let request = request(run, &peer, cfg.raw())?;
    let client = accept(run, request, b"question")?;
    let request = incoming(run, &ep, cfg.raw())?;
    let nothing = PrivateData {
        ptr: null_mut(),
        len: 0,
    };
    let asked = get!(run, nothing, rpma_conn_req_get_private_data(request.raw()))?;
    assert!(bytes(&asked).starts_with(b"question"));
    let server = accept(run, request, b"answer")?;
    for conn in [&client, &server] {
        event(run, conn, ESTABLISHED)?;
    }
    let answer = get!(run, nothing, rpma_conn_get_private_data(client.raw()))?;
    assert!(bytes(&answer).starts_with(b"answer"));
    again!(run, rpma_conn_disconnect(client.raw()))?;
    for conn in [&client, &server] {
        event(run, conn, CLOSED)?;
    }
    Ok(())
}

pub fn reject(run: &Run) -> Result {
    let peer = peer(run)?;
    let ep = endpoint(run, &peer)?;
    let client = accept(run, request(run, &peer, null_mut())?, b"")?;
    drop(incoming(run, &ep, null_mut())?);
    event(run, &client, REJECTED)
}

pub fn drop_request(run: &Run) -> Result {
    let peer = peer(run)?;
    let _ep = endpoint(run, &peer)?;
    drop(request(run, &peer, null_mut())?);
    Ok(())
}

pub fn shut_down(run: &Run) -> Result {
    let peer = peer(run)?;
    let ep = endpoint(run, &peer)?;
    let client = accept(run, request(run, &peer, null_mut())?, b"")?;
    drop(ep);
    event(run, &client, REJECTED)
}

pub fn data_too_long(run: &Run) -> Result {
    let peer = peer(run)?;
    let ep = endpoint(run, &peer)?;
    let client = accept(run, request(run, &peer, null_mut())?, b"")?;
    let mut request = incoming(run, &ep, null_mut())?;
    let (bytes, mut conn) = ([1u8; 255], UNTOUCHED);
    let data = PrivateData {
        ptr: bytes.as_ptr().cast_mut().cast(),
        len: 255,
    };
    // SAFETY: as in `again!`.
    let code = unsafe { rpma_conn_req_connect(request.place(), &data, &mut conn) };
    assert_eq!(
        (code, conn, request.raw()),
        (PROVIDER, UNTOUCHED, null_mut())
    );
    event(run, &client, REJECTED)
}

pub fn register(run: &Run) -> Result {
    let peer = peer(run)?;
    for usage in [USAGE_ALL, USAGE_READ_DST] {
        let region = region(run, &peer, usage)?;
        for flags in [0, 1] {
            run.again("rpma_mr_advise", || {
                // SAFETY: as in `again!`.
                let code = unsafe { rpma_mr_advise(region.mr.raw(), 0, 4096, 0, flags) };
                // The region is pinned: there is nothing to advise about.
                if matches!(code, NOSUPP | INVAL) {
                    0
                } else {
                    code
                }
            })?;
        }
        drop(remote(run, &region)?);
    }
    Ok(())
}
