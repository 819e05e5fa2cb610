//! What librpma gets wrong in operations and memory, done right here (docs/librpma.md).

mod common;

use common::*;
use rpma::{
    Advice, ConnCfg, Error, FlushKind, FlushMethod, FlushMethods, Memory, RemoteRegion, Signal,
    StableBytes, Usage, WcOpcode,
};

#[test]
fn a_length_is_never_cut() {
    let peer = device!();
    let Pair {
        client,
        server: _server,
    } = pair(&peer, &ConnCfg::new());
    let most = client.max_message_size();
    assert!(most <= u64::from(u32::MAX));
    // As long as one wants, on paper: nothing is posted.
    let log = region(&peer, 4096, remote_usage(), |_| 0);
    let mut descriptor = log.descriptor().as_bytes().to_vec();
    descriptor[8..16].copy_from_slice(&((1u64 << 32) + 8).to_le_bytes());
    let long = RemoteRegion::from_descriptor(&descriptor).unwrap();
    let source = region(&peer, 8, Usage::WRITE_SRC | Usage::READ_DST, |_| 1);
    let source = source.slice(..).unwrap();
    let wrong = [
        client.write(&source, &long.whole(), Signal::Always(1)),
        client.read(&source, &long.whole(), Signal::Always(1)),
        client.write_inline(&[1; 8], &long.whole(), Signal::Always(1)),
    ];
    for refused in wrong {
        assert!(
            matches!(
                refused,
                Err(Error::LengthMismatch { .. } | Error::TooLong { .. })
            ),
            "{refused:?}"
        );
    }
    assert!(nothing(client.cq()));
    // `device_lengths` has regions of more than 4 GiB on both sides.
}

#[test]
fn what_the_peer_would_refuse_is_refused_before_posting() {
    let peer = device!();
    let Pair {
        client,
        server: _server,
    } = pair(&peer, &ConnCfg::new());
    let read_only = region(&peer, 64, Usage::READ_SRC, |_| 0);
    let log = region(&peer, 64, remote_usage(), |_| 0);
    let there = remote(&log);
    assert!(matches!(there.slice(60..68), Err(Error::OutOfRange { .. })));
    assert!(matches!(
        there.slice(u64::MAX - 7..=u64::MAX),
        Err(Error::OutOfRange { .. })
    ));
    let refused = client.write_inline(&[1], &remote(&read_only).slice(0..1).unwrap(), sure(1));
    assert!(
        matches!(refused, Err(Error::MissingUsage { .. })),
        "{refused:?}"
    );
    client
        .write_inline(&[1], &there.slice(63..64).unwrap(), sure(2))
        .unwrap();
    success(client.cq(), 2);
    assert_eq!(contents(&log)[63], 1);
}

fn sure(wr_id: u64) -> Signal {
    Signal::Always(wr_id)
}

#[test]
fn a_flush_reads_no_further_than_its_region() {
    let peer = device!();
    let Pair {
        client,
        server: _server,
    } = pair(
        &peer,
        &ConnCfg::new().flush_method(FlushMethod::ReadAfterWrite),
    );
    for len in [1, 3, 7, 8, 9, 4096] {
        let log = region(&peer, len, remote_usage(), |_| 0);
        let last = remote(&log).slice(len as u64 - 1..).unwrap();
        client
            .write_inline(&[7], &last, Signal::OnError(1))
            .unwrap();
        client.flush(&last, FlushKind::Persistent, sure(2)).unwrap();
        assert_eq!(success(client.cq(), 2).opcode(), WcOpcode::RDMA_READ);
        assert_eq!(contents(&log)[len - 1], 7);
    }
}

#[test]
fn there_are_two_kinds_of_flush() {
    // An exhaustive match of a foreign crate: there is no third that one could ask for. The C
    // interface gives INVAL.
    for kind in FLUSHES {
        match kind {
            FlushKind::Persistent | FlushKind::Visibility => {}
        }
    }
}

/// Memory that starts one byte behind a multiple of 8.
struct Skewed(Box<[u64; 16]>);

// SAFETY: the content of a box that nobody else has, less its first byte.
unsafe impl StableBytes for Skewed {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast::<u8>().wrapping_add(1)
    }

    fn byte_len(&self) -> usize {
        127
    }
}

#[test]
fn the_address_must_be_aligned_not_the_offset() {
    let peer = device!();
    let Pair {
        client,
        server: _server,
    } = pair(&peer, &ConnCfg::new());
    let memory = Memory::from_owner(Skewed(Box::new([0; 16]))).unwrap();
    let log = peer.register(memory, remote_usage()).unwrap();
    let there = remote(&log);
    for offset in 0..16 {
        let word = there.slice(offset..offset + 8).unwrap();
        let posted = client.atomic_write(&word, *b"8 bytes!", sure(offset));
        if offset % 8 == 7 {
            posted.unwrap();
            success(client.cq(), offset);
            assert_eq!(&contents(&log)[offset as usize..][..8], b"8 bytes!");
        } else {
            assert!(
                matches!(posted, Err(Error::Misaligned { .. })),
                "{posted:?}"
            );
        }
    }
    assert!(nothing(client.cq()));
}

#[test]
fn the_flush_method_is_agreed_or_overridden() {
    let peer = device!();
    let log = region(&peer, 64, remote_usage(), |_| 0);
    let native = log.methods().contains(FlushMethods::NATIVE_VISIBILITY);
    assert_eq!(remote(&log).methods(), Some(log.methods()));
    // The same region, of an owner whose device can only be read from.
    let mut descriptor = log.descriptor().as_bytes().to_vec();
    descriptor[21] = 0xA0;
    let plain = RemoteRegion::from_descriptor(&descriptor).unwrap();
    assert_eq!(plain.methods(), Some(FlushMethods::empty()));

    let flush = |method, region: &RemoteRegion| {
        let Pair {
            client,
            server: _server,
        } = pair(&peer, &ConnCfg::new().flush_method(method));
        client.flush(&region.whole(), FlushKind::Visibility, sure(1))?;
        Ok::<_, Error>(success(client.cq(), 1).opcode())
    };
    let (own, read) = match native {
        true => (WcOpcode::FLUSH, WcOpcode::RDMA_READ),
        false => (WcOpcode::RDMA_READ, WcOpcode::RDMA_READ),
    };
    let auto = if is_soft_roce(&peer) { read } else { own };
    assert_eq!(flush(FlushMethod::Auto, &remote(&log)).unwrap(), auto);
    assert_eq!(flush(FlushMethod::Auto, &plain).unwrap(), read);
    assert_eq!(
        flush(FlushMethod::ReadAfterWrite, &remote(&log)).unwrap(),
        read
    );
    if native {
        assert_eq!(flush(FlushMethod::Native, &remote(&log)).unwrap(), own);
    }
    let refused = flush(FlushMethod::Native, &plain);
    assert!(
        matches!(refused, Err(Error::NotSupported { .. })),
        "{refused:?}"
    );
}

#[test]
fn plain_memory_is_registered_for_persistent_flush() {
    let peer = device!();
    let Pair {
        client,
        server: _server,
    } = pair(&peer, &ConnCfg::new());
    let log = region(&peer, 4096, remote_usage(), |_| 0);
    let there = remote(&log).whole();
    client
        .flush(&there, FlushKind::Persistent, sure(1))
        .unwrap();
    let opcode = success(client.cq(), 1).opcode();
    let native = log.methods().contains(FlushMethods::NATIVE_PERSISTENT);
    assert_eq!(opcode == WcOpcode::FLUSH, native, "{opcode:?} {log:?}");
}

#[test]
fn memory_that_cannot_be_written_can_be_written_from() {
    let peer = device!();
    let path = std::env::temp_dir().join(format!("rpma-row-20-{}", std::process::id()));
    std::fs::write(&path, b"read-only").unwrap();
    let memory = Memory::map_file_read_only(&path).unwrap();
    assert!(!memory.is_writable());
    let source = peer.register(memory, Usage::WRITE_SRC | Usage::SEND);
    std::fs::remove_file(&path).unwrap();
    let source = source.unwrap();
    let Pair {
        client,
        server: _server,
    } = pair(&peer, &ConnCfg::new());
    let log = region(&peer, 9, remote_usage(), |_| 0);
    client
        .write(&source.slice(..9).unwrap(), &remote(&log).whole(), sure(1))
        .unwrap();
    success(client.cq(), 1);
    assert_eq!(contents(&log), b"read-only");
}

#[test]
fn advice_is_refused_or_taken_and_never_crashes() {
    let peer = device!();
    let log = region(&peer, 8192, remote_usage(), |_| 0);
    let outside = log.advise(..=8192, Advice::PREFETCH, true);
    assert!(
        matches!(outside, Err(Error::OutOfRange { .. })),
        "{outside:?}"
    );
    for advice in [
        Advice::PREFETCH,
        Advice::PREFETCH_WRITE,
        Advice::PREFETCH_NO_FAULT,
    ] {
        for wait in [true, false] {
            match log.advise(.., advice, wait) {
                Ok(()) => assert!(peer.capabilities().odp.supported),
                Err(err) => println!("{advice:?}, wait {wait}: {err}"),
            }
        }
    }
    assert!(log.advise(.., Advice::from_raw(77), true).is_err());
}

#[test]
fn a_region_is_described_as_it_is() {
    let peer = device!();
    let log = region(&peer, 4096, remote_usage(), |_| 0);
    let there = remote(&log);
    assert_eq!(there.address(), log.as_ptr() as u64);
    assert_eq!(there.len(), 4096);
    assert_eq!(there.usage(), remote_usage());
    // In words too: the numbers of the host, not those of the wire.
    let said = format!("{there:?}");
    let address = there.address();
    assert!(
        said.contains(&format!("{address:#x}")) || said.contains(&address.to_string()),
        "{said}"
    );
}
