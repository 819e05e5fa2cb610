use super::{access::*, *};

const IB: AccessEnv = AccessEnv {
    iwarp: false,
    native_visibility: false,
    native_persistent: false,
    on_demand: false,
};
const IWARP: AccessEnv = AccessEnv { iwarp: true, ..IB };
const NATIVE: AccessEnv = AccessEnv {
    native_visibility: true,
    native_persistent: true,
    ..IB
};

#[test]
fn each_usage_asks_for_what_it_needs() {
    let table = [
        (Usage::READ_SRC, REMOTE_READ, REMOTE_READ, REMOTE_READ),
        (
            Usage::READ_DST,
            LOCAL_WRITE,
            LOCAL_WRITE | REMOTE_WRITE,
            LOCAL_WRITE,
        ),
        (Usage::WRITE_SRC, 0, 0, 0),
        (
            Usage::WRITE_DST,
            LOCAL_WRITE | REMOTE_WRITE,
            LOCAL_WRITE | REMOTE_WRITE,
            LOCAL_WRITE | REMOTE_WRITE,
        ),
        (
            Usage::FLUSH_VISIBILITY,
            REMOTE_READ,
            REMOTE_READ,
            REMOTE_READ | FLUSH_GLOBAL,
        ),
        (
            Usage::FLUSH_PERSISTENT,
            REMOTE_READ,
            REMOTE_READ,
            REMOTE_READ | access::FLUSH_PERSISTENT,
        ),
        (Usage::SEND, 0, 0, 0),
        (Usage::RECV, LOCAL_WRITE, LOCAL_WRITE, LOCAL_WRITE),
        (
            Usage::ATOMIC,
            LOCAL_WRITE | REMOTE_ATOMIC,
            LOCAL_WRITE | REMOTE_ATOMIC,
            LOCAL_WRITE | REMOTE_ATOMIC,
        ),
        (
            Usage::RELAXED_ORDERING,
            access::RELAXED_ORDERING,
            access::RELAXED_ORDERING,
            access::RELAXED_ORDERING,
        ),
    ];
    for (usage, ib, iwarp, native) in table {
        assert_eq!(usage.access(IB), ib, "{usage:?} on InfiniBand");
        assert_eq!(usage.access(IWARP), iwarp, "{usage:?} on iWARP");
        assert_eq!(
            usage.access(NATIVE),
            native,
            "{usage:?} where flush is native"
        );
    }
}

#[test]
fn rights_of_a_combination_are_the_union() {
    for bits in 1..512u32 {
        let usage = Usage::from_bits_truncate(bits);
        for env in [IB, IWARP, NATIVE] {
            let union = usage.iter().fold(0, |sum, one| sum | one.access(env));
            assert_eq!(usage.access(env), union, "{usage:?} {env:?}");
            let on_demand = AccessEnv {
                on_demand: true,
                ..env
            };
            assert_eq!(usage.access(on_demand), union | ON_DEMAND);
            if union & (REMOTE_WRITE | REMOTE_ATOMIC) != 0 {
                assert_ne!(union & LOCAL_WRITE, 0, "the kernel refuses {usage:?}");
            }
        }
    }
}

#[test]
fn methods_follow_from_what_was_granted() {
    let both = Usage::FLUSH_VISIBILITY | Usage::FLUSH_PERSISTENT;
    assert_eq!(
        FlushMethods::from_access(both.access(NATIVE)),
        FlushMethods::all()
    );
    assert_eq!(
        FlushMethods::from_access(both.access(IB)),
        FlushMethods::empty()
    );
    let given_up = AccessEnv {
        native_persistent: false,
        ..NATIVE
    };
    assert_eq!(
        FlushMethods::from_access(both.access(given_up)),
        FlushMethods::NATIVE_VISIBILITY
    );
}

#[test]
fn a_missing_usage_is_named() {
    let have = Usage::READ_SRC | Usage::SEND;
    assert_eq!(have.first_missing(Usage::READ_SRC), None);
    assert_eq!(
        have.first_missing(Usage::READ_SRC | Usage::WRITE_SRC),
        Some("WRITE_SRC")
    );
    assert_eq!(
        have.first_missing(Usage::FLUSH_PERSISTENT),
        Some("FLUSH_PERSISTENT")
    );
}

#[test]
fn every_bit_has_a_name_and_the_wire_holds_the_lowest_eight() {
    assert_eq!(Usage::all().bits(), 0x1ff);
    assert_eq!(Usage::all().iter_names().count(), 9);
    assert_eq!(Usage::WIRE | Usage::ATOMIC, Usage::all());
}

#[test]
fn registering_for_nothing_is_refused() {
    let memory = Memory::anonymous(8).unwrap();
    assert!(Usage::empty().check_memory(&memory).is_err());
    assert!(
        Usage::from_bits_retain(1 << 20)
            .check_memory(&memory)
            .is_err()
    );
    let relaxed = Usage::RELAXED_ORDERING;
    assert!(relaxed.check_memory(&memory).is_err());
    assert!(Usage::all().check_memory(&memory).is_ok());
    assert!((Usage::RECV | relaxed).check_memory(&memory).is_ok());
    assert!(Usage::SEND.check_memory(&Memory::nothing()).is_err());
}

#[test]
fn relaxed_ordering_and_a_promise_to_flush_contradict() {
    let memory = Memory::anonymous(8).unwrap();
    for flush in [Usage::FLUSH_VISIBILITY, Usage::FLUSH_PERSISTENT] {
        let usage = Usage::WRITE_DST | Usage::RELAXED_ORDERING | flush;
        let err = usage.check_memory(&memory).unwrap_err();
        assert!(err.to_string().contains("RELAXED_ORDERING"), "{err}");
        assert!(usage.check_device_only(8, 0).is_err());
    }
}
