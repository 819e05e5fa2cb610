use super::*;
use crate::Signal;

#[test]
fn a_flag_is_a_signal() {
    assert_eq!(signaled_if(true, 7), Signal::Always(7).into());
    assert_eq!(signaled_if(false, 8), Signal::OnError(8).into());
}
