//! Conversations with a C program on Debian's librpma, `tests/interop/peer.c`, whose head says how
//! they go.

mod common;

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use common::*;
use rpma::{
    ConnCfg, ConnRequest, Connection, FlushKind, FlushMethod, LocalRegion, Peer, PeerCfg,
    RemoteRegion, Signal, Usage, WcOpcode,
};

const TEXT: &[u8] = b"written by one end, read by the other";
const WORD: [u8; 8] = *b"8 bytes!";

/// The C program, compiled here; skips where it cannot be had or cannot work.
fn c_peer(peer: &Peer) -> Result<PathBuf, &'static str> {
    if standin_control::Standin::get().is_some() {
        return Err("the stand-in is one process");
    }
    if iwarp(peer) {
        return Err("librpma 1.3 cannot connect on iWARP");
    }
    if !Path::new("/usr/include/librpma.h").exists() {
        return Err("no header of librpma on this machine");
    }
    let program = std::env::temp_dir().join(format!("rpma-interop-{}", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/peer.c");
    let status = Command::new("gcc")
        .args(["-Wall", "-Werror", "-o"])
        .args([&program, &source])
        .args(["-lrpma", "-libverbs"])
        .status();
    match status {
        Ok(status) => assert!(status.success(), "the C program does not compile"),
        Err(_) => return Err("no C compiler on this machine"),
    }
    Ok(program)
}

fn start(program: &Path, role: &str, port: &str) -> Child {
    Command::new(program)
        .args([role, &addr(), port])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn ends_well(mut child: Child) {
    until("the end of the C program", || {
        child.try_wait().unwrap().is_some()
    });
    assert!(child.wait().unwrap().success());
}

/// What this end tells the other: two lengths, the descriptor, the configuration.
fn introduction(region: &LocalRegion) -> Vec<u8> {
    let descriptor = region.descriptor();
    let cfg = PeerCfg::new().with_direct_write_to_pmem(true).descriptor();
    let lengths = [descriptor.as_bytes().len() as u8, cfg.len() as u8];
    [&lengths, descriptor.as_bytes(), &cfg].concat()
}

/// What the C end tells: 21 bytes and one.
fn introduced(data: &[u8]) -> (RemoteRegion, PeerCfg) {
    let region = RemoteRegion::from_descriptor(&data[..21]).unwrap();
    // With what follows it is the same.
    assert_eq!(RemoteRegion::from_descriptor(data).unwrap(), region);
    assert_eq!(region.len(), 4096);
    assert_eq!(region.methods(), None);
    let cfg = PeerCfg::from_descriptor(&data[21..]).unwrap();
    assert!(cfg.direct_write_to_pmem());
    (region, cfg)
}

fn memory(peer: &Peer) -> (LocalRegion, LocalRegion) {
    let usage = remote_usage() | Usage::READ_DST | Usage::WRITE_SRC;
    let mail = region(peer, 64, Usage::SEND | Usage::RECV, |_| 0);
    (region(peer, 4096, usage, |_| 0), mail)
}

/// Rust asks, C answers.
fn ask_c(program: &Path, peer: &Peer, method: FlushMethod, port: &str) {
    let mut child = start(program, "server", port);
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "listening\n");

    let (log, mail) = memory(peer);
    let cfg = ConnCfg::new().flush_method(method).timeout(LONG);
    let request = ConnRequest::new(peer, &addr(), port, &cfg).unwrap();
    request.recv(&mail.slice(..8).unwrap(), 1).unwrap();
    let client = request.connect(Some(&introduction(&log))).unwrap();
    client.wait_established(LONG).unwrap();
    let (there, their_cfg) = introduced(client.private_data());
    client.apply_peer_cfg(&their_cfg);

    log.write_at(100, TEXT).unwrap();
    let range = 100..100 + TEXT.len() as u64;
    let text = there.slice(range.clone()).unwrap();
    let here = log.slice(range).unwrap();
    client.write(&here, &text, Signal::OnError(2)).unwrap();
    client
        .flush(&text, FlushKind::Visibility, Signal::Always(3))
        .unwrap();
    let opcode = success(client.cq(), 3).opcode();
    match method == FlushMethod::Native {
        true => assert_eq!(opcode, WcOpcode::FLUSH),
        // Soft-RoCE's own flush gets lost where packets are.
        false => assert_eq!(opcode, WcOpcode::RDMA_READ),
    }
    let word = there.slice(64..72).unwrap();
    client.atomic_write(&word, WORD, Signal::Always(4)).unwrap();
    success(client.cq(), 4);
    client
        .read(&log.slice(..).unwrap(), &there.whole(), Signal::Always(5))
        .unwrap();
    success(client.cq(), 5);
    let bytes = contents(&log);
    assert_eq!(
        (&bytes[100..100 + TEXT.len()], &bytes[64..72]),
        (TEXT, &WORD[..])
    );
    mail.write_at(8, b"ask").unwrap();
    client
        .send_with_imm(&mail.slice(8..11).unwrap(), 0x0102_0304, Signal::OnError(6))
        .unwrap();
    let wc = success(client.cq(), 1);
    assert_eq!((wc.byte_len(), wc.imm_data()), (3, Some(0x0506_0708)));
    assert_eq!(&contents(&mail)[..3], b"aye");
    client.disconnect().unwrap();
    ends_well(child);
}

/// C asks, Rust answers.
fn answer_c(program: &Path, peer: &Peer) {
    let (endpoint, port) = listen(peer);
    let child = start(program, "client", &port);
    let (log, mail) = memory(peer);
    let request = next(&endpoint, &ConnCfg::new());
    let (there, _) = introduced(request.private_data());
    request.recv(&mail.slice(..8).unwrap(), 1).unwrap();
    let server: Connection = request.connect(Some(&introduction(&log))).unwrap();
    server.wait_established(LONG).unwrap();
    let wc = success(server.cq(), 1);
    assert_eq!((wc.byte_len(), wc.imm_data()), (3, Some(0x0102_0304)));
    assert_eq!(&contents(&mail)[..3], b"ask");
    let bytes = contents(&log);
    assert_eq!(
        (&bytes[100..100 + TEXT.len()], &bytes[64..72]),
        (TEXT, &WORD[..])
    );
    // And the C end's memory can be read from here.
    server
        .read(
            &log.slice(1000..1008).unwrap(),
            &there.slice(64..72).unwrap(),
            Signal::Always(2),
        )
        .unwrap();
    success(server.cq(), 2);
    assert_eq!(contents(&log)[1000..1008], WORD);
    mail.write_at(8, b"aye").unwrap();
    server
        .send_with_imm(&mail.slice(8..11).unwrap(), 0x0506_0708, Signal::Always(3))
        .unwrap();
    success(server.cq(), 3);
    let event = server.next_event_timeout(LONG).unwrap().unwrap();
    assert_eq!(event.kind(), rpma::ConnEventKind::Closed);
    drop(server);
    ends_well(child);
}

#[test]
fn a_c_peer_and_this_one_understand_each_other_both_ways() {
    let peer = device!();
    let program = match c_peer(&peer) {
        Ok(program) => program,
        Err(why) => skip!("{why}"),
    };
    ask_c(&program, &peer, FlushMethod::Auto, "17204");
    ask_c(&program, &peer, FlushMethod::ReadAfterWrite, "17205");
    ask_c(&program, &peer, FlushMethod::Native, "17206");
    answer_c(&program, &peer);
    std::fs::remove_file(program).unwrap();
}
