//! Devices, endpoints, requests, connections.

use super::*;

pub fn device_by_name(run: &Run) -> Result<()> {
    let list = run.again(rpma::devices)?;
    let name = list.first().map_or("", |device| &device.name);
    let peer = run.again(|| Peer::device(name))?;
    let region = peer.register(Memory::anonymous(REGION)?, Usage::READ_SRC)?;
    assert!(region.len() == REGION as u64);
    Ok(())
}

/// The address in another notation, which is left to the resolver.
pub fn device_by_notation(run: &Run) -> Result<()> {
    run.again(|| Peer::local("192.168.19713")).map(|_| ())
}

pub fn device_by_route(run: &Run) -> Result<()> {
    run.again(|| Peer::remote(ADDR)).map(|_| ())
}

pub fn devices(run: &Run) -> Result<()> {
    assert_eq!(run.again(rpma::devices)?.len(), 1);
    Ok(())
}

pub fn max_inline(run: &Run) -> Result<()> {
    let peer = run.peer()?;
    run.again(|| peer.max_inline()).map(|_| ())
}

pub fn listen(run: &Run) -> Result<()> {
    let peer = run.peer()?;
    let cfg = EndpointCfg::new().backlog(3).type_of_service(8);
    let ep = run.again(|| Endpoint::listen_with(peer, ADDR, "0", &cfg))?;
    assert!(
        run.again(|| ep.try_next_request(&ConnCfg::new()))?
            .is_none()
    );
    ep.close()
}

pub fn connect(run: &Run) -> Result<()> {
    let peer = run.peer()?;
    let (ep, port) = endpoint(run)?;
    let cfg = ConnCfg::new().timeout(SOON);
    let marked = cfg.clone().type_of_service(16);
    let request = run.again(|| ConnRequest::new(peer, ADDR, &port, &marked))?;
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

pub fn open(run: &Run) -> Result<()> {
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

pub fn options(run: &Run) -> Result<()> {
    let cfg = ConnCfg::new()
        .rcq_size(7)
        .sq_size(33)
        .rq_size(5)
        .max_sge(3)
        .max_inline(40)
        .ack_timeout(12);
    let pair = connected(run, &cfg)?;
    assert!(pair.client.rcq().is_some());
    Ok(())
}

pub fn reject(run: &Run) -> Result<()> {
    let (ep, port) = endpoint(run)?;
    let cfg = ConnCfg::new().timeout(SOON);
    let client = ConnRequest::new(run.peer()?, ADDR, &port, &cfg)?.connect(None)?;
    request_at(run, &ep, &cfg)?.reject(Some(b"no"))?;
    rejected(run, &client)
}

pub fn drop_request(run: &Run) -> Result<()> {
    let (ep, port) = endpoint(run)?;
    let cfg = ConnCfg::new().timeout(SOON);
    drop(ConnRequest::new(run.peer()?, ADDR, &port, &cfg)?);
    let client = ConnRequest::new(run.peer()?, ADDR, &port, &cfg)?.connect(None)?;
    drop(request_at(run, &ep, &cfg)?);
    rejected(run, &client)
}

pub fn drop_endpoint(run: &Run) -> Result<()> {
    let (ep, port) = endpoint(run)?;
    let cfg = ConnCfg::new().timeout(SOON);
    let client = ConnRequest::new(run.peer()?, ADDR, &port, &cfg)?.connect(None)?;
    drop(ep);
    rejected(run, &client)
}

pub fn private_data_too_long(run: &Run) -> Result<()> {
    let (ep, port) = endpoint(run)?;
    let cfg = ConnCfg::new().timeout(SOON);
    let client = ConnRequest::new(run.peer()?, ADDR, &port, &cfg)?.connect(None)?;
    match request_at(run, &ep, &cfg)?.connect(Some(&[1; 256])) {
        Err(Error::TooLong { .. }) => {}
        other => panic!("{other:?}"),
    }
    rejected(run, &client)
}
