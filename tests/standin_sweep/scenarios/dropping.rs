//! The ends of things, in several orders.

use super::*;

pub fn drop_connection_first(run: &Run) -> Result<()> {
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

pub fn drop_connection_last(run: &Run) -> Result<()> {
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

pub fn drop_peer_first(_run: &Run) -> Result<()> {
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

pub fn close_everything(run: &Run) -> Result<()> {
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
