use super::*;

#[test]
fn nothing_is_declared_by_default() {
    assert!(!PeerCfg::new().direct_write_to_pmem());
    assert_eq!(PeerCfg::new(), PeerCfg::default());
    assert_eq!(PeerCfg::new().descriptor(), [0]);
}

#[test]
fn the_declaration_can_be_taken_back() {
    let cfg = PeerCfg::new().with_direct_write_to_pmem(true);
    assert!(cfg.direct_write_to_pmem());
    assert_eq!(cfg.descriptor(), [1]);
    assert_eq!(cfg.with_direct_write_to_pmem(false), PeerCfg::new());
}

#[test]
fn any_byte_but_zero_means_yes() {
    for byte in 0..=255u8 {
        let cfg = PeerCfg::from_descriptor(&[byte, 0, 1]).unwrap();
        assert_eq!(cfg.direct_write_to_pmem(), byte != 0);
        assert_eq!(PeerCfg::from_descriptor(&cfg.descriptor()).unwrap(), cfg);
    }
}

#[test]
fn no_bytes_are_no_descriptor() {
    assert!(matches!(
        PeerCfg::from_descriptor(&[]),
        Err(Error::BadDescriptor {
            what: "peer configuration",
            ..
        })
    ));
}
