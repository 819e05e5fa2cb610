use super::*;

#[test]
fn minus_one_reads_errno() {
    nix::errno::Errno::set_raw(libc::EBUSY);
    assert_eq!(errno(-1), libc::EBUSY);
    nix::errno::Errno::set_raw(0);
    assert_eq!(errno(-1), libc::EIO);
}

#[test]
fn other_negatives_and_positives_are_the_errno() {
    nix::errno::Errno::set_raw(libc::EBUSY);
    assert_eq!(errno(-libc::ENOMEM), libc::ENOMEM);
    assert_eq!(errno(libc::EINVAL), libc::EINVAL);
    assert_eq!(errno(c_int::MIN), libc::EIO);
}

#[test]
fn errors_name_the_call() {
    let err = check(Call::RdmaAccept, -libc::EACCES).unwrap_err();
    assert_eq!(err.raw_os_error(), Some(libc::EACCES));
    assert!(err.to_string().starts_with("rdma_accept failed: "), "{err}");
    assert!(matches!(
        check(Call::IbvRegMr, libc::ENOMEM),
        Err(Error::OutOfMemory {
            call: Call::IbvRegMr,
            ..
        })
    ));
}
