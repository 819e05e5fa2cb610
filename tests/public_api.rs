//! What needs no device: types, configurations, descriptors; and what a machine without RDMA is
//! told.

use std::time::Duration;

use rpma::{
    AsyncEvents, Batch, CmEventKind, Completion, ConnCfg, ConnEvent, ConnRequest, Connection, Cq,
    Descriptor, Endpoint, EndpointCfg, Error, FlushKind, FlushMethods, LocalRegion, LocalSlice,
    Memory, Peer, PeerCfg, Post, RecvBatch, RemoteRegion, RemoteSlice, Signal, Srq, SrqCfg, Usage,
    Waker, WcOpcode, WcStatus, code,
};

#[test]
fn handles_may_be_used_by_any_thread() {
    fn send_sync<T: Send + Sync>() {}
    send_sync::<Peer>();
    send_sync::<Memory>();
    send_sync::<LocalRegion>();
    send_sync::<LocalSlice<'_>>();
    send_sync::<RemoteRegion>();
    send_sync::<RemoteSlice>();
    send_sync::<Descriptor>();
    send_sync::<Endpoint>();
    send_sync::<ConnRequest>();
    send_sync::<Connection>();
    send_sync::<Cq>();
    send_sync::<Srq>();
    send_sync::<Batch<'_>>();
    send_sync::<RecvBatch<'_>>();
    send_sync::<AsyncEvents>();
    send_sync::<Waker>();
    send_sync::<Completion>();
    send_sync::<ConnEvent>();
    send_sync::<ConnCfg>();
    send_sync::<EndpointCfg>();
    send_sync::<SrqCfg>();
    send_sync::<PeerCfg>();
    send_sync::<Post>();
    // An error goes into a boxed one, as `?` in a `main` needs it.
    fn error<T: std::error::Error + Send + Sync + 'static>() {}
    error::<Error>();
    error::<WcStatus>();
}

#[test]
fn data_path_values_are_small_and_plain() {
    fn copy<T: Copy>() {}
    copy::<LocalSlice<'_>>();
    copy::<RemoteSlice>();
    copy::<RemoteRegion>();
    copy::<Signal>();
    copy::<Completion>();
    assert!(size_of::<LocalSlice<'_>>() <= 40);
    assert!(size_of::<RemoteSlice>() <= 32);
    assert!(size_of::<Result<(), Error>>() <= 80);
}

#[test]
fn a_connection_configuration_keeps_what_it_is_told() {
    let cfg = ConnCfg::new()
        .timeout(Duration::from_millis(1234))
        .cq_size(11)
        .rcq_size(12)
        .sq_size(13)
        .rq_size(14)
        .shared_channel(true);
    for cfg in [&cfg, &cfg.clone().max_inline(100).max_sge(4).retry_count(3)] {
        assert_eq!(cfg.timeout_value(), Duration::from_millis(1234));
        assert_eq!((cfg.cq_size_value(), cfg.rcq_size_value()), (11, 12));
        assert_eq!((cfg.sq_size_value(), cfg.rq_size_value()), (13, 14));
        assert!(cfg.shared_channel_value());
        assert!(cfg.srq_value().is_none());
    }
    let srq = SrqCfg::new();
    assert_eq!((srq.size_value(), srq.rcq_size_value()), (20, 20));
    let srq = srq.size(5).rcq_size(0);
    assert_eq!((srq.size_value(), srq.rcq_size_value()), (5, 0));
}

#[test]
fn a_descriptor_of_librpma_makes_a_region() {
    let mut bytes = Vec::new();
    bytes.extend(0x7f00_0000_1000u64.to_le_bytes());
    bytes.extend(4096u64.to_le_bytes());
    bytes.extend(0x1234u32.to_le_bytes());
    bytes.push((Usage::READ_SRC | Usage::FLUSH_VISIBILITY).bits() as u8);
    let region = RemoteRegion::from_descriptor(&bytes).unwrap();
    assert_eq!((region.address(), region.len()), (0x7f00_0000_1000, 4096));
    assert_eq!(region.rkey(), 0x1234);
    assert_eq!(region.usage(), Usage::READ_SRC | Usage::FLUSH_VISIBILITY);
    assert_eq!(region.methods(), None);
    assert!(region.can_flush(FlushKind::Visibility));
    assert!(!region.can_flush(FlushKind::Persistent));
    let slice = region.slice(4090..).unwrap();
    assert_eq!((slice.address(), slice.len()), (0x7f00_0000_1ffa, 6));

    bytes.push(0xA1);
    let region = RemoteRegion::from_descriptor(&bytes).unwrap();
    assert_eq!(region.methods(), Some(FlushMethods::NATIVE_VISIBILITY));

    let err = RemoteRegion::from_descriptor(&bytes[..20]).unwrap_err();
    assert_eq!(err.code(), code::INVAL);
    assert_eq!(err.raw_os_error(), None);
    assert!(
        err.to_string().contains("memory region descriptor"),
        "{err}"
    );
    assert_eq!(Descriptor::LEN, 22);
}

#[test]
fn a_peer_configuration_is_one_byte() {
    let cfg = PeerCfg::new().with_direct_write_to_pmem(true);
    assert_eq!(cfg.descriptor(), [1]);
    assert_eq!(PeerCfg::from_descriptor(&[1, 2, 3]).unwrap(), cfg);
    assert_eq!(PeerCfg::from_descriptor(&[0]).unwrap(), PeerCfg::new());
    let err = PeerCfg::from_descriptor(&[]).unwrap_err();
    assert!(err.to_string().contains("peer configuration"), "{err}");
}

#[test]
fn numbers_of_the_device_are_never_unknown_to_the_point_of_failing() {
    for raw in [0, 1, 9, 10, 13, 22, 1000, u32::MAX] {
        let (status, opcode) = (WcStatus::from_raw(raw), WcOpcode::from_raw(raw));
        assert_eq!((status.as_raw(), opcode.as_raw()), (raw, raw));
        assert!(!status.to_string().is_empty());
        assert!(!format!("{status:?} {opcode:?}").is_empty());
        assert!(!CmEventKind::from_raw(raw).to_string().is_empty());
    }
    assert_eq!(WcStatus::from_raw(5), WcStatus::WR_FLUSH_ERR);
    assert_eq!(format!("{:?}", WcStatus::REM_ACCESS_ERR), "REM_ACCESS_ERR");
    assert_eq!(format!("{:?}", WcOpcode::from_raw(77)), "WcOpcode(77)");
    let wc = Completion::default();
    assert!(wc.is_success() && wc.ok().is_ok() && wc.imm_data().is_none());
}

#[test]
fn the_loopback_address_is_on_no_device() {
    // Neither where there is RDMA nor where there is none.
    let err = match Peer::local("127.0.0.1") {
        Err(err) => err,
        // The stand-in for tests owns it.
        Ok(peer) => panic!("{peer:?} owns 127.0.0.1"),
    };
    assert!(
        matches!(&err, Error::NoDevice { address, .. } if address == "127.0.0.1"),
        "{err:?}"
    );
    assert_eq!(err.code(), code::PROVIDER);
    assert!(err.raw_os_error().is_some_and(|errno| errno > 0));
    let said = err.to_string();
    assert!(
        said.contains("127.0.0.1") && said.contains("rdma link"),
        "{said}"
    );
    println!("{said}");
}

#[test]
fn devices_that_are_not_there_are_said_so() {
    let err = Peer::device("no_such_device7").unwrap_err();
    assert!(
        matches!(&err, Error::NoDevice { address, .. } if address == "no_such_device7"),
        "{err:?}"
    );
    let err = Peer::remote("127.0.0.1").unwrap_err();
    assert!(matches!(&err, Error::NoDevice { .. }), "{err:?}");
    for err in [
        Peer::local("no such host").unwrap_err(),
        Peer::remote("no such host").unwrap_err(),
        Peer::local("").unwrap_err(),
    ] {
        assert!(matches!(&err, Error::Resolve { .. }), "{err:?}");
    }
    match rpma::devices() {
        Ok(list) => assert!(list.iter().all(|device| !device.name.is_empty())),
        Err(err) => {
            println!("{err}");
            assert_eq!(err.code(), code::PROVIDER);
        }
    }
}
