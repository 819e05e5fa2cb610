use super::*;

#[test]
fn defaults_are_librpmas() {
    let cfg = ConnCfg::new();
    assert_eq!(cfg.timeout_value(), Duration::from_millis(1000));
    assert_eq!(
        (
            cfg.cq_size_value(),
            cfg.rcq_size_value(),
            cfg.sq_size_value(),
            cfg.rq_size_value()
        ),
        (10, 0, 10, 10)
    );
    assert!(!cfg.shared_channel_value());
    assert!(cfg.srq_value().is_none());
    cfg.check().unwrap();
}

#[test]
fn rnr_times_are_rounded_up_to_a_code() {
    for (micros, code) in [
        (0, 1),
        (10, 1),
        (11, 2),
        (640, 12),
        (641, 13),
        (10_240, 20),
        (12_000, 21),
        (491_520, 31),
        (491_521, 0),
        (655_360, 0),
        (9_999_999, 0),
    ] {
        assert_eq!(
            rnr_timer_code(Duration::from_micros(micros)),
            code,
            "{micros} us"
        );
    }
    assert_eq!(
        ConnCfg::new().min_rnr_timer,
        rnr_timer_code(Duration::from_millis(10))
    );
}

#[test]
fn what_no_device_can_do_is_refused_by_name() {
    for (cfg, name) in [
        (ConnCfg::new().max_sge(0), "max_sge"),
        (ConnCfg::new().max_sge(17), "max_sge"),
        (ConnCfg::new().retry_count(8), "retry_count"),
        (ConnCfg::new().rnr_retry_count(8), "rnr_retry_count"),
        (ConnCfg::new().ack_timeout(32), "ack_timeout"),
    ] {
        let err = cfg.check().unwrap_err();
        assert!(
            matches!(err, Error::InvalidArgument { argument, .. } if argument == name),
            "{err}"
        );
    }
}
