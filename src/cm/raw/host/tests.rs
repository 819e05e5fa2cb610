use super::*;

fn addresses(target: Target<'_>) -> Result<Vec<SocketAddr>> {
    let time = Duration::from_secs(60);
    let list = target.addresses(false, Until::after(time), time)?;
    Ok(list.iter().filter_map(|address| address.to_std()).collect())
}

#[test]
fn addresses_are_themselves_and_names_are_resolved_by_another_thread() {
    for text in ["192.168.77.1:7204", "[fd77::1]:7204", "[fe80::1%3]:7204"] {
        let addr: SocketAddr = text.parse().unwrap();
        assert_eq!(addresses(Target::Addr(addr)).unwrap(), [addr]);
    }
    for (node, service) in [("192.168.77.1", "7204"), ("192.168.19713", "7204")] {
        let list = addresses(Target::Name(node, Some(service))).unwrap();
        assert_eq!(list, ["192.168.77.1:7204".parse().unwrap()]);
    }
    let err = addresses(Target::Name("no such host", None)).unwrap_err();
    assert!(matches!(err, Error::Resolve { .. }), "{err:?}");
}

#[test]
fn no_time_is_not_enough_for_a_name() {
    let target = Target::Name("no such host", Some("7204"));
    let err = target.addresses(false, Until::Now, Duration::ZERO);
    assert!(matches!(err, Err(Error::TimedOut { .. })), "{err:?}");
    // Nothing is looked up here.
    let target = Target::Name("192.168.77.1", Some("7204"));
    target.addresses(false, Until::Now, Duration::ZERO).unwrap();
}

#[test]
fn a_resolver_that_hangs_holds_nobody() {
    let (end, hang) = std::sync::mpsc::channel::<()>();
    let time = Duration::from_millis(20);
    let found = within(Until::after(time), time, move || {
        let _ = hang.recv();
        Ok(Vec::new())
    });
    assert!(matches!(found, Err(Error::TimedOut { after, .. }) if after == time));
    drop(end);
}

#[test]
fn services_are_names_or_numbers_of_16_bits() {
    assert_eq!(port_number("0").unwrap(), Some(0));
    assert_eq!(port_number("65535").unwrap(), Some(65535));
    assert_eq!(port_number("http").unwrap(), None);
    assert_eq!(port_number("3com-tsmux").unwrap(), None);
    for service in [
        "",
        " ",
        "65536",
        "70000",
        "-1",
        "+80",
        " 80",
        "99999999999999999999",
        "80 ",
        "0x50",
        "no such service",
        "8\0",
    ] {
        let err = addresses(Target::Name("192.168.77.1", Some(service))).unwrap_err();
        assert!(
            matches!(
                err,
                Error::InvalidArgument {
                    argument: "service",
                    ..
                }
            ),
            "{service:?}: {err:?}"
        );
    }
}
