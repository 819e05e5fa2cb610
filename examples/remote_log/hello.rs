//! What server and client tell each other as private data of the connection's establishment, where
//! a request has room for 56 bytes and an answer for 196. Some transports pad it with zeros.

use rpma::{Descriptor, PeerCfg, RemoteRegion};

const MAGIC: &[u8; 4] = b"rlog";
const VERSION: u8 = 1;

/// The server's answer: where the log is, and where it goes on.
#[derive(Debug, PartialEq)]
pub struct Welcome {
    pub cfg: PeerCfg,
    pub log: RemoteRegion,
    pub id: u64,
    pub tail: u64,
    pub next: u64,
}

impl Welcome {
    pub fn encode(cfg: PeerCfg, log: &Descriptor, id: u64, tail: u64, next: u64) -> Vec<u8> {
        let mut bytes = start();
        bytes.extend_from_slice(&cfg.descriptor());
        bytes.extend_from_slice(log.as_bytes());
        for number in [id, tail, next] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Option<Welcome> {
        let bytes = after_start(bytes)?;
        let (cfg, bytes) = bytes.split_at_checked(PeerCfg::DESCRIPTOR_LEN)?;
        let (log, bytes) = bytes.split_at_checked(Descriptor::LEN)?;
        let (id, bytes) = bytes.split_first_chunk()?;
        let (tail, bytes) = bytes.split_first_chunk()?;
        let (next, _) = bytes.split_first_chunk()?;
        Some(Welcome {
            cfg: PeerCfg::from_descriptor(cfg).ok()?,
            log: RemoteRegion::from_descriptor(log).ok()?,
            id: u64::from_le_bytes(*id),
            tail: u64::from_le_bytes(*tail),
            next: u64::from_le_bytes(*next),
        })
    }
}

/// The client's request: the region that the server may feel the client's pulse by.
pub struct Request {
    pub pulse: RemoteRegion,
}

impl Request {
    pub fn encode(pulse: &Descriptor) -> Vec<u8> {
        let mut bytes = start();
        bytes.extend_from_slice(pulse.as_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Option<Request> {
        let pulse = RemoteRegion::from_descriptor(after_start(bytes)?).ok()?;
        Some(Request { pulse })
    }
}

fn start() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.push(VERSION);
    bytes
}

fn after_start(bytes: &[u8]) -> Option<&[u8]> {
    bytes.strip_prefix(MAGIC)?.strip_prefix(&[VERSION])
}
