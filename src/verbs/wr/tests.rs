use super::*;

#[test]
fn a_target_lies_as_in_a_work_request() {
    let target = Target::new(0x1122, 0x33, 0x44);
    assert_eq!(
        (target.addr(), target.rkey(), target.tag()),
        (0x1122, 0x33, 0x44)
    );
    assert_eq!(target.keys.to_ne_bytes()[..4], 0x33u32.to_ne_bytes());
    assert_eq!(target.at(2).addr(), 0x1124);
}

#[test]
fn a_request_is_read_as_it_was_written() {
    let mut wr = std::mem::MaybeUninit::<Wr>::zeroed();
    for op in [
        Op::Write,
        Op::SendImm,
        Op::FetchAdd,
        Op::Flush,
        Op::AtomicWrite,
    ] {
        let request = Request {
            op,
            wr_id: 7,
            flags: ffi::IBV_SEND_SIGNALED.into(),
            imm: 8,
            target: Target::new(9, 10, 11),
            args: [12, 13],
        };
        let wr = wr.as_mut_ptr();
        // SAFETY: written first, and asked for what the operation has.
        unsafe {
            request.write_to(wr, 3);
            let wr = wr.cast_const();
            assert_eq!(super::op(wr), op);
            assert!(is_one(wr, op, 3) && !is_one(wr, op, 1));
            assert_eq!(
                ((*wr).wr_id, (*wr).num_sge, u64::from((*wr).send_flags)),
                (7, 3, request.flags)
            );
            assert_eq!(wr.imm(), 8);
            match op {
                Op::SendImm => {}
                Op::FetchAdd => assert_eq!(wr.atomic(), (9, 10, 12, 13)),
                _ => assert_eq!(wr.target(), (9, 10)),
            }
            if op.is_extended() {
                assert_eq!(wr.value(), 12);
            }
        }
    }
}
