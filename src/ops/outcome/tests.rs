use super::*;

#[test]
fn a_request_that_is_named_as_bad_was_not_taken() {
    let of = |ret, bad| accepted(ret, 1000, bad, 100, 3);
    for bad in [0, 999, 1300] {
        assert_eq!(of(0, bad), None);
        assert_eq!(of(libc::EINVAL, bad), Some((libc::EINVAL, 0)));
    }
    assert_eq!(of(0, 1100), Some((libc::ENOMEM, 1)));
    assert_eq!(of(libc::EINVAL, 1200), Some((libc::EINVAL, 2)));
    assert_eq!(of(libc::EINVAL, 1000), Some((libc::EINVAL, 0)));
}

#[test]
fn a_full_queue_is_told_apart() {
    assert!(matches!(
        post_failed(Call::IbvPostSend, libc::ENOMEM, 0),
        Error::QueueFull { accepted: 0, .. }
    ));
    assert!(matches!(
        post_failed(Call::IbvPostSend, -libc::ENOMEM, 3),
        Error::QueueFull { accepted: 3, .. }
    ));
    assert!(matches!(
        post_failed(Call::IbvWrComplete, libc::ENOSPC, 0),
        Error::QueueFull { accepted: 0, .. }
    ));
    assert!(matches!(
        post_failed(Call::IbvPostSend, libc::EINVAL, 0),
        Error::Provider { .. }
    ));
    assert!(matches!(
        post_failed(Call::IbvPostSend, libc::EINVAL, 2),
        Error::PartlyPosted { accepted: 2, .. }
    ));
}
