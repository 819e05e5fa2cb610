use super::*;

#[test]
fn codes_of_ports_are_bytes_and_rates() {
    assert_eq!((mtu_bytes(1), mtu_bytes(5)), (256, 4096));
    assert_eq!((mtu_bytes(0), mtu_bytes(9)), (0, 0));
    let port = ffi::ibv_port_attr {
        active_speed: 64,
        active_width: 2,
        ..Default::default()
    };
    let info = PortInfo::of(1, &port, &[], &[], Transport::IB);
    assert_eq!(info.gbps(), Some(200.0));
    let port = ffi::ibv_port_attr {
        active_speed: 128,
        active_speed_ex: 256,
        active_width: 3,
        ..Default::default()
    };
    let info = PortInfo::of(1, &port, &[], &[], Transport::IB);
    assert_eq!((info.lane_mbps, info.gbps()), (Some(200_000), None));
}

#[test]
fn addresses_are_those_of_the_gids_and_their_interfaces() {
    let interface = Interface {
        name: "eth7".to_owned(),
        index: 7,
        hardware: Some([2, 0, 0, 0, 0, 7]),
        addresses: vec!["10.0.0.7".parse().unwrap(), "fe80::7".parse().unwrap()],
    };
    let mut entry = GidEntry {
        gid: "::ffff:10.0.0.8".parse::<Ipv6Addr>().unwrap().octets(),
        kind: ffi::IBV_GID_TYPE_ROCE_V2,
        ..Default::default()
    };
    let of = |entry: &GidEntry, transport| {
        let port = ffi::ibv_port_attr::default();
        PortInfo::of(
            1,
            &port,
            &[entry],
            std::slice::from_ref(&interface),
            transport,
        )
        .addresses
    };
    let (seven, eight): (IpAddr, IpAddr) =
        ("10.0.0.7".parse().unwrap(), "10.0.0.8".parse().unwrap());
    assert_eq!(of(&entry, Transport::IB), [eight]);
    entry.interface = 7;
    assert_eq!(of(&entry, Transport::IB), [eight, seven]);
    entry = GidEntry {
        gid: [2, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ..Default::default()
    };
    assert_eq!(of(&entry, Transport::IWARP), [seven]);
    assert!(of(&entry, Transport::IB).is_empty());
}
