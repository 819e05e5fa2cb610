use std::{collections::HashSet, fs, path::Path};

use super::*;

fn os(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}

fn connection(event: CmEventKind) -> Error {
    Error::Connection {
        event,
        status: 0,
        private_data: Box::default(),
    }
}

fn completion(status: WcStatus) -> Error {
    Error::Completion {
        wr_id: 7,
        status,
        vendor_error: 0x1f,
    }
}

fn provider(call: Call, errno: i32) -> Error {
    Error::provider(call, errno)
}

/// One or more errors of each kind, and what each should be.
fn table() -> Vec<(Error, io::ErrorKind, bool)> {
    use io::ErrorKind::*;
    let (argument, call) = ("argument", Call::IbvPostSend);
    let text = String::new;
    vec![
        (
            provider(Call::RdmaAccept, libc::EINVAL),
            InvalidInput,
            false,
        ),
        (provider(call, libc::EIO), os(libc::EIO).kind(), true),
        (provider(call, libc::ENODEV), os(libc::ENODEV).kind(), true),
        (
            provider(Call::RdmaResolveAddr, libc::ENODEV),
            os(libc::ENODEV).kind(),
            false,
        ),
        (
            provider(Call::Fsync, libc::EIO),
            os(libc::EIO).kind(),
            false,
        ),
        (provider(Call::Open, libc::EACCES), PermissionDenied, false),
        (provider(Call::IbvRegMr, libc::ENOMEM), OutOfMemory, false),
        (Error::invalid(argument, ""), InvalidInput, false),
        (
            Error::OutOfRange {
                argument,
                start: 1,
                end: 2,
                size: 1,
            },
            InvalidInput,
            false,
        ),
        (
            Error::LengthMismatch {
                argument,
                expected: 1,
                actual: 2,
            },
            InvalidInput,
            false,
        ),
        (
            Error::TooLong {
                argument,
                length: 2,
                limit: 1,
                limited_by: "",
            },
            InvalidInput,
            false,
        ),
        (
            Error::AboveLimit {
                argument,
                value: 2,
                limit: 1,
                limited_by: "",
            },
            InvalidInput,
            false,
        ),
        (
            Error::Misaligned {
                argument,
                address: 1,
            },
            InvalidInput,
            false,
        ),
        (
            Error::MissingUsage {
                argument,
                missing: "",
            },
            InvalidInput,
            false,
        ),
        (Error::ForeignRegion { argument }, InvalidInput, false),
        (
            Error::BadDescriptor {
                what: "",
                problem: "",
            },
            InvalidData,
            false,
        ),
        (Error::not_supported(""), Unsupported, false),
        (
            Error::QueueFull {
                call,
                accepted: 0,
                source: os(libc::ENOMEM),
            },
            WouldBlock,
            false,
        ),
        (
            Error::PartlyPosted {
                call,
                accepted: 1,
                source: os(libc::EINVAL),
            },
            InvalidInput,
            false,
        ),
        (
            Error::Resolve {
                node: text(),
                service: text(),
                reason: text(),
            },
            NotFound,
            false,
        ),
        (
            Error::NoDevice {
                address: text(),
                source: os(libc::ENODEV),
            },
            NotFound,
            false,
        ),
        (
            Error::WrongDevice {
                expected: text(),
                actual: text(),
            },
            InvalidInput,
            false,
        ),
        (connection(CmEventKind::REJECTED), ConnectionRefused, true),
        (connection(CmEventKind::UNREACHABLE), HostUnreachable, true),
        (connection(CmEventKind::ROUTE_ERROR), HostUnreachable, true),
        (connection(CmEventKind::DISCONNECTED), ConnectionReset, true),
        (
            connection(CmEventKind::DEVICE_REMOVAL),
            ConnectionAborted,
            true,
        ),
        (connection(CmEventKind::ADDR_CHANGE), Other, false),
        (connection(CmEventKind::from_raw(77)), Other, false),
        (completion(WcStatus::RETRY_EXC_ERR), HostUnreachable, true),
        (completion(WcStatus::WR_FLUSH_ERR), ConnectionAborted, true),
        (completion(WcStatus::REM_ACCESS_ERR), PermissionDenied, true),
        (completion(WcStatus::from_raw(77)), Other, true),
        (
            Error::TimedOut {
                call: Call::Establishment,
                after: Duration::ZERO,
            },
            TimedOut,
            false,
        ),
        (Error::SharedChannel, InvalidInput, false),
        (Error::NotSharedChannel, InvalidInput, false),
        (Error::Again { call }, WouldBlock, false),
        (
            Error::InUse {
                what: "region",
                handles: 1,
            },
            ResourceBusy,
            false,
        ),
        (Error::Woken, Interrupted, false),
        (
            Error::Unusable {
                address: text(),
                reason: text(),
                source: os(libc::EACCES),
            },
            PermissionDenied,
            false,
        ),
    ]
}

/// The place of a variant among all. A new one does not compile until it is here, and must then be
/// in the table.
fn place(err: &Error) -> usize {
    match err {
        Error::Provider { .. } => 0,
        Error::InvalidArgument { .. } => 1,
        Error::OutOfRange { .. } => 2,
        Error::LengthMismatch { .. } => 3,
        Error::TooLong { .. } => 4,
        Error::Misaligned { .. } => 5,
        Error::MissingUsage { .. } => 6,
        Error::ForeignRegion { .. } => 7,
        Error::BadDescriptor { .. } => 8,
        Error::NotSupported { .. } => 9,
        Error::OutOfMemory { .. } => 10,
        Error::QueueFull { .. } => 11,
        Error::PartlyPosted { .. } => 12,
        Error::Resolve { .. } => 13,
        Error::NoDevice { .. } => 14,
        Error::WrongDevice { .. } => 15,
        Error::Connection { .. } => 16,
        Error::Completion { .. } => 17,
        Error::TimedOut { .. } => 18,
        Error::SharedChannel => 19,
        Error::NotSharedChannel => 20,
        Error::Again { .. } => 21,
        Error::InUse { .. } => 22,
        Error::Woken => 23,
        Error::AboveLimit { .. } => 24,
        Error::Unusable { .. } => 25,
    }
}

#[test]
fn every_kind_is_classified() {
    let table = table();
    let places: HashSet<usize> = table.iter().map(|(err, ..)| place(err)).collect();
    assert_eq!(places, (0..26).collect());
    for (err, _, fatal) in table {
        assert_eq!(err.is_fatal(), fatal, "{err:?}");
        assert_eq!(err.is_timeout(), matches!(err, Error::TimedOut { .. }));
        assert!(!(err.is_fatal() && err.is_timeout()), "{err:?}");
    }
}

#[test]
fn io_errors_keep_the_error_and_get_a_fitting_kind() {
    for (err, kind, _) in table() {
        let (text, errno, debug) = (err.to_string(), err.raw_os_error(), format!("{err:?}"));
        let converted = io::Error::from(err);
        assert_eq!(converted.kind(), kind, "{debug}");
        assert_eq!(converted.to_string(), text);
        let back = converted.downcast::<Error>().expect("the error itself");
        assert_eq!(back.raw_os_error(), errno, "{debug}");
    }
}

#[test]
fn calls_are_small_and_have_distinct_names() {
    assert_eq!(size_of::<Call>(), 1);
    let names: HashSet<&str> = Call::ALL.iter().map(|(call, _)| call.as_str()).collect();
    assert_eq!(names.len(), Call::ALL.len());
    assert_eq!(Call::IbvCreateSrq.to_string(), "ibv_create_srq");
}

#[test]
fn every_call_is_made_somewhere() {
    fn read(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path.ends_with("error") => {}
                true => read(&path, text),
                false => text.push_str(&fs::read_to_string(path).unwrap()),
            }
        }
    }
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    // The test may run where the sources are not.
    if !src.is_dir() {
        return;
    }
    let mut text = String::new();
    read(&src, &mut text);
    let words: HashSet<&str> = text
        .split(|c: char| !(c.is_alphanumeric() || c == ':'))
        .collect();
    for (call, variant) in Call::ALL {
        let made = words.contains(format!("Call::{variant}").as_str());
        assert!(made, "nothing calls {call}");
    }
}

#[test]
fn hints_are_those_of_the_failed_call() {
    let srq = provider(Call::IbvCreateSrq, libc::ENOMEM).to_string();
    assert!(srq.contains("ulimit -l"), "{srq}");
    let srq = provider(Call::IbvCreateSrq, libc::EINVAL).to_string();
    assert!(srq.contains("SrqCfg::size"), "{srq}");
    let plain = provider(Call::IbvDeallocPd, libc::ENOMEM).to_string();
    assert_eq!(plain, "ibv_dealloc_pd: out of memory");
    let files = provider(Call::RdmaCreateEventChannel, libc::EMFILE).to_string();
    assert!(files.contains("ulimit -n"), "{files}");
    let locked = provider(Call::IbvRegMr, libc::EPERM).to_string();
    assert!(locked.contains("ulimit -l"), "{locked}");
    let objects = provider(Call::IbvCreateCq, libc::EAGAIN).to_string();
    assert!(objects.contains("rdma.max"), "{objects}");
}

#[test]
fn a_failed_completion_converts() {
    fn handle(raw: crate::sys::ibv_wc) -> Result<u64> {
        let mut list = [raw];
        let wc = &crate::Completion::from_raw_mut(&mut list)[0];
        Ok(wc.ok()?.wr_id())
    }
    let mut raw = crate::sys::ibv_wc {
        wr_id: 7,
        ..Default::default()
    };
    assert_eq!(handle(raw).unwrap(), 7);
    raw.status = WcStatus::WR_FLUSH_ERR.as_raw();
    raw.vendor_err = 0x1f;
    let err = handle(raw).unwrap_err();
    assert!(
        matches!(
            err,
            Error::Completion {
                wr_id: 7,
                status: WcStatus::WR_FLUSH_ERR,
                ..
            }
        ),
        "{err:?}"
    );
    let text = err.to_string();
    assert!(text.starts_with("operation 7 failed: "), "{text}");
    assert!(
        text.ends_with("(WR_FLUSH_ERR, vendor error 0x1f)"),
        "{text}"
    );
}
