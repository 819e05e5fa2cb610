use super::*;

#[test]
fn numeric_addresses_resolve_to_themselves() {
    let list = resolve("192.168.77.1", Some("7204"), false).unwrap();
    let list: Vec<_> = list.iter().filter_map(|address| address.to_std()).collect();
    assert_eq!(list, ["192.168.77.1:7204".parse().unwrap()]);
    let list = resolve("fd77::1", Some("80"), true).unwrap();
    assert_eq!(list[0].to_std(), Some("[fd77::1]:80".parse().unwrap()));
    assert_eq!(
        list[0].without_port().to_std(),
        Some("[fd77::1]:0".parse().unwrap())
    );
}

#[test]
fn names_that_are_none_say_so() {
    for node in ["no such host", "1.2.3.4\0"] {
        let err = resolve(node, Some("1"), false).unwrap_err();
        assert!(
            matches!(&err, Error::Resolve { node: named, .. } if named == node),
            "{err:?}"
        );
    }
}

#[test]
fn any_address_is_seen() {
    assert!(resolve("0.0.0.0", None, true).unwrap()[0].is_unspecified());
    assert!(resolve("::", None, true).unwrap()[0].is_unspecified());
    assert!(!resolve("::1", None, true).unwrap()[0].is_unspecified());
}
