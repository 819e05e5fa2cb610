//! Private data of any length and content, in all three places, on the stand-in device.
#![no_main]

use std::{cell::OnceCell, time::Duration};

use libfuzzer_sys::fuzz_target;
use rpma::{ConnCfg, ConnRequest, Endpoint, Error, Peer};

const ADDR: &str = "192.168.77.1";
/// Nothing takes as long, on the busiest machine.
const SOON: Duration = Duration::from_secs(30);

thread_local! {
    static SIDES: OnceCell<(Peer, Endpoint, String)> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    SIDES.with(|sides| {
        let (peer, endpoint, port) = sides.get_or_init(|| {
            let peer = Peer::local(ADDR).expect("run with LD_LIBRARY_PATH=$(ci/standin)");
            let endpoint = Endpoint::listen(&peer, ADDR, "0").unwrap();
            let port = endpoint.local_addr().unwrap().port().to_string();
            (peer, endpoint, port)
        });
        once(peer, endpoint, port, data);
    });
});

fn once(peer: &Peer, endpoint: &Endpoint, port: &str, data: &[u8]) {
    let [first, second, rest @ ..] = data else { return };
    let (asked, answer) = rest.split_at(rest.len().min(usize::from(*first)));
    let cfg = ConnCfg::new().timeout(SOON);
    let request = ConnRequest::new(peer, ADDR, port, &cfg).unwrap();
    let client = match request.connect(Some(asked)) {
        Ok(client) if asked.len() <= 56 => client,
        Err(Error::TooLong { .. }) if asked.len() > 56 => return,
        other => panic!("{} bytes: {other:?}", asked.len()),
    };
    let request = endpoint.next_request_timeout(&cfg, SOON).unwrap().unwrap();
    check(asked, request.private_data());
    if second & 1 == 1 {
        match request.reject(Some(answer)) {
            Ok(()) if answer.len() <= 148 => {}
            Err(Error::TooLong { .. }) if answer.len() > 148 => {}
            other => panic!("{} bytes: {other:?}", answer.len()),
        }
        match client.wait_established(SOON) {
            Err(Error::Connection { private_data, .. }) => {
                check(if answer.len() <= 148 { answer } else { &[] }, &private_data);
            }
            other => panic!("{other:?}"),
        }
        return;
    }
    let server = match request.connect(Some(answer)) {
        Ok(server) if answer.len() <= 196 => server,
        Err(Error::TooLong { .. }) if answer.len() > 196 => return,
        other => panic!("{} bytes: {other:?}", answer.len()),
    };
    client.wait_established(SOON).unwrap();
    check(asked, server.private_data());
    check(answer, client.private_data());
}

/// What arrives is what was sent, and zeros.
fn check(sent: &[u8], arrived: &[u8]) {
    assert!(arrived.starts_with(sent), "{sent:?} became {arrived:?}");
    assert!(arrived[sent.len()..].iter().all(|byte| *byte == 0));
}
