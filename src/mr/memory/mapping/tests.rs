use super::*;

#[test]
#[cfg_attr(miri, ignore = "maps")]
fn pages_that_cannot_be_had_are_an_error_that_names_pool_and_cgroup() {
    let memory = Memory::anonymous(3 << 20).unwrap();
    let Backing::Anonymous(mapping) = &memory.backing else {
        panic!("{memory:?}");
    };
    memory.write_at(5, b"kept").unwrap();
    mapping.populate().unwrap();
    assert_eq!(memory.read_vec(4..10).unwrap(), b"\0kept\0");

    let error = not_populated(Errno::EFAULT);
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("hugepages") && text.contains("hugetlb."),
        "{text}"
    );
}
