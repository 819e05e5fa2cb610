use super::*;

#[test]
fn a_flood_is_cut_and_counted() {
    let limit = Limit::new(3);
    let admitted: Vec<_> = (0..10).map(|_| limit.admit(5)).collect();
    assert_eq!(admitted[..3], [Some(0); 3]);
    assert_eq!(admitted[3..], [None; 7]);
    assert_eq!(limit.admit(6), Some(7));
    assert_eq!(limit.admit(6), Some(0));
}

#[test]
fn the_first_second_counts_too() {
    let limit = Limit::new(1);
    assert_eq!(limit.admit(0), Some(0));
    assert_eq!(limit.admit(0), None);
}
