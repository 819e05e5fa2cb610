//! Verbs that go through the extended table, and the exported functions that some fall back to.

use crate::fake::{at, call, calls, recorders, with, without};
use libc::{EINVAL, ENOSYS, EOPNOTSUPP, c_int, c_uint, c_void};
use rpma_sys::*;
use std::mem::{offset_of, size_of};
use std::ptr::null_mut;

/// Stand in for the symbols of libibverbs: an executable's own definitions come first.
mod exported {
    use super::*;

    recorders! {
        #[unsafe(no_mangle)]
        fn ibv_query_port(context: *mut ibv_context, port_num: u8, attr: *mut c_void) -> c_int = 1;
        #[unsafe(no_mangle)]
        fn ibv_query_device(context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int = 2;
        #[unsafe(no_mangle)]
        fn ibv_create_qp(pd: *mut ibv_pd, attr: *mut ibv_qp_init_attr) -> *mut ibv_qp = at(3);
        #[unsafe(no_mangle)]
        fn ibv_create_srq(pd: *mut ibv_pd, attr: *mut ibv_srq_init_attr) -> *mut ibv_srq = at(4);
        #[unsafe(no_mangle)]
        fn ibv_reg_mr(pd: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr = at(5);
        #[unsafe(no_mangle)]
        fn ibv_reg_mr_iova(pd: *mut ibv_pd, addr: *mut c_void, length: usize, iova: u64, access: c_int) -> *mut ibv_mr = at(6);
        #[unsafe(no_mangle)]
        fn ibv_reg_mr_iova2(pd: *mut ibv_pd, addr: *mut c_void, length: usize, iova: u64, access: c_uint) -> *mut ibv_mr = at(7);
        #[unsafe(no_mangle)]
        fn _ibv_query_gid_ex(context: *mut ibv_context, port: u32, index: u32, entry: *mut ibv_gid_entry, flags: u32, size: usize) -> c_int = 8;
        #[unsafe(no_mangle)]
        fn _ibv_query_gid_table(context: *mut ibv_context, entries: *mut ibv_gid_entry, max: usize, flags: u32, size: usize) -> isize = 9;
    }
}

recorders! {
    fn query_port(context: *mut ibv_context, port_num: u8, attr: *mut ibv_port_attr, len: usize) -> c_int = 11;
    fn query_device(context: *mut ibv_context, input: *const ibv_query_device_ex_input, attr: *mut ibv_device_attr_ex, len: usize) -> c_int = 12;
    fn query_device_unsupported(context: *mut ibv_context, input: *const ibv_query_device_ex_input, attr: *mut ibv_device_attr_ex, len: usize) -> c_int = EOPNOTSUPP;
    fn query_device_unknown(context: *mut ibv_context, input: *const ibv_query_device_ex_input, attr: *mut ibv_device_attr_ex, len: usize) -> c_int = ENOSYS;
    fn query_rt_values(context: *mut ibv_context, values: *mut ibv_values_ex) -> c_int = 13;
    fn create_cq(context: *mut ibv_context, attr: *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex = at(14);
    fn create_qp(context: *mut ibv_context, attr: *mut ibv_qp_init_attr_ex) -> *mut ibv_qp = at(15);
    fn create_srq(context: *mut ibv_context, attr: *mut ibv_srq_init_attr_ex) -> *mut ibv_srq = at(16);
    fn modify_cq(cq: *mut ibv_cq, attr: *mut ibv_modify_cq_attr) -> c_int = 17;
    fn alloc_td(context: *mut ibv_context, attr: *mut ibv_td_init_attr) -> *mut ibv_td = at(18);
    fn dealloc_td(td: *mut ibv_td) -> c_int = 19;
    fn alloc_parent_domain(context: *mut ibv_context, attr: *mut ibv_parent_domain_init_attr) -> *mut ibv_pd = at(20);
    fn advise(pd: *mut ibv_pd, advice: ib_uverbs_advise_mr_advice, flags: u32, list: *mut ibv_sge, num: u32) -> c_int = 21;
    fn alloc_null_mr(pd: *mut ibv_pd) -> *mut ibv_mr = at(22);
}

/// `with` and `without` for one entry.
macro_rules! both {
    ($field:ident = $recorder:ident, $with:expr, $without:expr) => {
        let offset = offset_of!(verbs_context, $field);
        let fill = |table: &mut verbs_context| table.$field = Some($recorder);
        with(offset, fill, $with);
        without(offset, fill, $without);
    };
}

fn take_errno() -> c_int {
    // SAFETY: this thread's errno.
    unsafe { std::mem::replace(&mut *libc::__errno_location(), 0) }
}

fn pd_of(context: *mut ibv_context) -> ibv_pd {
    ibv_pd { context, handle: 0 }
}

/// Attributes full of ones, to see what is cleared.
fn dirty<T>() -> T {
    let mut value = std::mem::MaybeUninit::<T>::uninit();
    // SAFETY: used for structs of plain numbers only.
    unsafe {
        value.as_mut_ptr().write_bytes(0xff, 1);
        value.assume_init()
    }
}

#[test]
fn the_marker_is_as_wide_as_a_pointer() {
    assert_eq!(__VERBS_ABI_IS_EXTENDED().addr(), usize::MAX);
    let mut table = crate::fake::Table::new(|_| {});
    let context = table.context();
    // SAFETY: the made-up context has its table.
    let found = unsafe { verbs_get_ctx(context) };
    assert_eq!(
        found.addr() + offset_of!(verbs_context, context),
        context.addr()
    );
}

#[test]
fn query_port_passes_the_length_or_clears_what_the_symbol_does_not_know() {
    both!(
        query_port = query_port,
        |context| {
            let mut attr: ibv_port_attr = dirty();
            let p = &raw mut attr;
            // SAFETY: made-up context, recording entry.
            assert_eq!(unsafe { ibv_query_port(context, 3, p) }, 11);
            assert_eq!(
                calls(),
                [call!(query_port(context, 3, p, size_of::<ibv_port_attr>()))]
            );
        },
        |why, context| {
            let mut attr: ibv_port_attr = dirty();
            let p = &raw mut attr;
            // SAFETY: made-up context, recording symbol.
            assert_eq!(unsafe { ibv_query_port(context, 3, p) }, 1, "{why}");
            assert_eq!(calls(), [call!(ibv_query_port(context, 3, p))], "{why}");
            assert_eq!(
                (attr.lid, attr.link_layer, attr.active_speed_ex),
                (0, 0, 0),
                "{why}"
            );
        }
    );
}

#[test]
fn query_device_ex_falls_back_to_the_basic_query() {
    both!(
        query_device_ex = query_device,
        |context| {
            let input = ibv_query_device_ex_input { comp_mask: 0 };
            let mut attr = ibv_device_attr_ex::default();
            let p = &raw mut attr;
            // SAFETY: made-up context, recording entry.
            assert_eq!(unsafe { ibv_query_device_ex(context, &input, p) }, 12);
            let size = size_of::<ibv_device_attr_ex>();
            assert_eq!(
                calls(),
                [call!(query_device(context, &raw const input, p, size))]
            );
        },
        |why, context| {
            let mut attr: ibv_device_attr_ex = dirty();
            let p = &raw mut attr;
            // SAFETY: made-up context, recording symbol.
            assert_eq!(
                unsafe { ibv_query_device_ex(context, null_mut(), p) },
                2,
                "{why}"
            );
            // The basic attributes are the first field.
            assert_eq!(calls(), [call!(ibv_query_device(context, p))], "{why}");
            assert_eq!((attr.comp_mask, attr.device_cap_flags_ex), (0, 0), "{why}");
        }
    );
}

#[test]
fn query_device_ex_falls_back_when_the_provider_says_so() {
    for (entry, name) in [
        (
            query_device_unsupported as unsafe extern "C" fn(_, _, _, _) -> _,
            "query_device_unsupported",
        ),
        (query_device_unknown, "query_device_unknown"),
    ] {
        let mut table = crate::fake::Table::new(|table| table.query_device_ex = Some(entry));
        let mut attr: ibv_device_attr_ex = dirty();
        // SAFETY: made-up context, recording entry and symbol.
        assert_eq!(
            unsafe { ibv_query_device_ex(table.context(), null_mut(), &mut attr) },
            2
        );
        let calls = calls();
        assert!(
            calls[0].starts_with(name) && calls[1].starts_with("ibv_query_device("),
            "{calls:?}"
        );
        assert_eq!(attr.device_cap_flags_ex, 0);
    }
}

#[test]
fn query_device_ex_refuses_an_input_mask() {
    let mut table = crate::fake::Table::new(|table| table.query_device_ex = Some(query_device));
    let input = ibv_query_device_ex_input { comp_mask: 1 };
    let mut attr = ibv_device_attr_ex::default();
    // SAFETY: made-up context, recording entry.
    assert_eq!(
        unsafe { ibv_query_device_ex(table.context(), &input, &mut attr) },
        EINVAL
    );
    assert!(calls().is_empty());
}

#[test]
fn gid_queries_pass_the_size_of_an_entry() {
    let size = size_of::<ibv_gid_entry>();
    // SAFETY: the symbols only record.
    unsafe {
        assert_eq!(ibv_query_gid_ex(at(1), 2, 3, at(4), 5), 8);
        assert_eq!(ibv_query_gid_table(at(1), at(2), 3, 4), 9);
    }
    let (context, first, second) = (
        at::<ibv_context>(1),
        at::<ibv_gid_entry>(4),
        at::<ibv_gid_entry>(2),
    );
    assert_eq!(
        calls(),
        [
            call!(_ibv_query_gid_ex(context, 2, 3, first, 5, size)),
            call!(_ibv_query_gid_table(context, second, 3, 4, size)),
        ]
    );
}

#[test]
fn create_cq_ex_needs_the_entry_and_known_flags() {
    both!(
        create_cq_ex = create_cq,
        |context| {
            let mut attr = ibv_cq_init_attr_ex {
                wc_flags: IBV_CREATE_CQ_SUP_WC_FLAGS.into(),
                ..Default::default()
            };
            let p = &raw mut attr;
            // SAFETY: made-up context, recording entry.
            unsafe {
                assert_eq!(ibv_create_cq_ex(context, p), at(14));
                assert_eq!(calls(), [call!(create_cq(context, p))]);
                (*p).wc_flags += 1;
                take_errno();
                assert!(ibv_create_cq_ex(context, p).is_null());
            }
            assert_eq!((take_errno(), calls().len()), (EOPNOTSUPP, 0));
        },
        |why, context| {
            take_errno();
            // SAFETY: made-up context.
            let cq = unsafe { ibv_create_cq_ex(context, &mut Default::default()) };
            assert!(
                cq.is_null() && take_errno() == EOPNOTSUPP && calls().is_empty(),
                "{why}"
            );
        }
    );
}

#[test]
fn create_qp_ex_falls_back_only_with_a_pd_alone() {
    let attr = |comp_mask| ibv_qp_init_attr_ex {
        comp_mask,
        pd: at(0x40),
        ..Default::default()
    };
    let plain = |context| {
        let mut attr = attr(IBV_QP_INIT_ATTR_PD);
        let p = &raw mut attr;
        // SAFETY: made-up context, recording symbol.
        assert_eq!(unsafe { ibv_create_qp_ex(context, p) }, at(3));
        assert_eq!(calls(), [call!(ibv_create_qp(at::<ibv_pd>(0x40), p))]);
    };
    both!(
        create_qp_ex = create_qp,
        |context| {
            plain(context);
            for mask in [0, IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS] {
                let mut attr = attr(mask);
                let p = &raw mut attr;
                // SAFETY: made-up context, recording entry.
                assert_eq!(unsafe { ibv_create_qp_ex(context, p) }, at(15));
                assert_eq!(calls(), [call!(create_qp(context, p))]);
            }
        },
        |why, context| {
            plain(context);
            take_errno();
            let mut attr = attr(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
            // SAFETY: made-up context.
            let qp = unsafe { ibv_create_qp_ex(context, &mut attr) };
            assert!(
                qp.is_null() && take_errno() == EOPNOTSUPP && calls().is_empty(),
                "{why}"
            );
        }
    );
}

#[test]
fn create_srq_ex_falls_back_for_a_basic_srq() {
    let (pd, typed) = (IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_TYPE);
    let attr = |comp_mask, srq_type| ibv_srq_init_attr_ex {
        comp_mask,
        srq_type,
        pd: at(0x40),
        ..Default::default()
    };
    let plain = |context| {
        // Without the type bit the type field means nothing.
        for (mask, kind) in [(pd, IBV_SRQT_XRC), (pd | typed, IBV_SRQT_BASIC)] {
            let mut attr = attr(mask, kind);
            let p = &raw mut attr;
            // SAFETY: made-up context, recording symbol.
            assert_eq!(unsafe { ibv_create_srq_ex(context, p) }, at(4));
            assert_eq!(calls(), [call!(ibv_create_srq(at::<ibv_pd>(0x40), p))]);
        }
    };
    let special = [
        (0, IBV_SRQT_BASIC),
        (typed, IBV_SRQT_BASIC),
        (pd | typed, IBV_SRQT_XRC),
        (pd | typed | IBV_SRQ_INIT_ATTR_CQ, IBV_SRQT_BASIC),
    ];
    both!(
        create_srq_ex = create_srq,
        |context| {
            plain(context);
            for (mask, kind) in special {
                let mut attr = attr(mask, kind);
                let p = &raw mut attr;
                // SAFETY: made-up context, recording entry.
                assert_eq!(unsafe { ibv_create_srq_ex(context, p) }, at(16));
                assert_eq!(calls(), [call!(create_srq(context, p))]);
            }
        },
        |why, context| {
            plain(context);
            for (mask, kind) in special {
                take_errno();
                // SAFETY: made-up context.
                let srq = unsafe { ibv_create_srq_ex(context, &mut attr(mask, kind)) };
                assert!(
                    srq.is_null() && take_errno() == EOPNOTSUPP && calls().is_empty(),
                    "{why}"
                );
            }
        }
    );
}

#[test]
fn optional_rights_take_the_registration_that_can_drop_them() {
    let (pd, addr) = (at::<ibv_pd>(0x10), at::<c_void>(0x2000));
    let must = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    let may = must | IBV_ACCESS_RELAXED_ORDERING;
    // SAFETY: the symbols only record.
    unsafe {
        assert_eq!(ibv_reg_mr(pd, addr, 64, must as c_int), at(5));
        assert_eq!(ibv_reg_mr(pd, addr, 64, may as c_int), at(7));
        assert_eq!(ibv_reg_mr_iova(pd, addr, 64, 9, must as c_int), at(6));
        assert_eq!(ibv_reg_mr_iova(pd, addr, 64, 9, may as c_int), at(7));
    }
    assert_eq!(
        calls(),
        [
            call!(ibv_reg_mr(pd, addr, 64, must)),
            call!(ibv_reg_mr_iova2(pd, addr, 64, 0x2000, may)),
            call!(ibv_reg_mr_iova(pd, addr, 64, 9, must)),
            call!(ibv_reg_mr_iova2(pd, addr, 64, 9, may)),
        ]
    );
}

/// Verbs with an entry of their own, no fallback, and an errno as their value.
#[test]
fn verbs_that_return_a_number_say_eopnotsupp() {
    let (list, values) = (at::<ibv_sge>(0x50), at::<ibv_values_ex>(0x60));
    both!(
        advise_mr = advise,
        |context| {
            let mut pd = pd_of(context);
            let pd = &raw mut pd;
            // SAFETY: made-up objects, recording entry.
            assert_eq!(unsafe { ibv_advise_mr(pd, 1, 2, list, 3) }, 21);
            assert_eq!(calls(), [call!(advise(pd, 1, 2, list, 3))]);
        },
        |why, context| {
            // SAFETY: made-up objects.
            let ret = unsafe { ibv_advise_mr(&mut pd_of(context), 1, 2, list, 3) };
            assert!(ret == EOPNOTSUPP && calls().is_empty(), "{why}");
        }
    );
    both!(
        query_rt_values = query_rt_values,
        |context| {
            // SAFETY: made-up objects, recording entry.
            assert_eq!(unsafe { ibv_query_rt_values_ex(context, values) }, 13);
            assert_eq!(calls(), [call!(query_rt_values(context, values))]);
        },
        |why, context| {
            // SAFETY: made-up objects.
            let ret = unsafe { ibv_query_rt_values_ex(context, values) };
            assert!(ret == EOPNOTSUPP && calls().is_empty(), "{why}");
        }
    );
    both!(
        modify_cq = modify_cq,
        |context| {
            let mut cq = ibv_cq {
                context,
                ..Default::default()
            };
            let (cq, attr) = (&raw mut cq, at::<ibv_modify_cq_attr>(0x70));
            // SAFETY: made-up objects, recording entry.
            assert_eq!(unsafe { ibv_modify_cq(cq, attr) }, 17);
            assert_eq!(calls(), [call!(modify_cq(cq, attr))]);
        },
        |why, context| {
            let mut cq = ibv_cq {
                context,
                ..Default::default()
            };
            // SAFETY: made-up objects.
            let ret = unsafe { ibv_modify_cq(&mut cq, at(0x70)) };
            assert!(ret == EOPNOTSUPP && calls().is_empty(), "{why}");
        }
    );
    both!(
        dealloc_td = dealloc_td,
        |context| {
            let mut td = ibv_td { context };
            let td = &raw mut td;
            // SAFETY: made-up objects, recording entry.
            assert_eq!(unsafe { ibv_dealloc_td(td) }, 19);
            assert_eq!(calls(), [call!(dealloc_td(td))]);
        },
        |why, context| {
            // SAFETY: made-up objects.
            let ret = unsafe { ibv_dealloc_td(&mut ibv_td { context }) };
            assert!(ret == EOPNOTSUPP && calls().is_empty(), "{why}");
        }
    );
}

/// Verbs with an entry of their own, no fallback, and a pointer as their value.
#[test]
fn verbs_that_return_a_pointer_set_errno() {
    let unsupported = |why: &str, null: bool| {
        assert!(
            null && take_errno() == EOPNOTSUPP && calls().is_empty(),
            "{why}"
        );
    };
    let (init, domain) = (
        at::<ibv_td_init_attr>(0x50),
        at::<ibv_parent_domain_init_attr>(0x60),
    );
    both!(
        alloc_td = alloc_td,
        |context| {
            // SAFETY: made-up objects, recording entry.
            assert_eq!(unsafe { ibv_alloc_td(context, init) }, at(18));
            assert_eq!(calls(), [call!(alloc_td(context, init))]);
        },
        // SAFETY: made-up objects.
        |why, context| unsupported(why, unsafe { ibv_alloc_td(context, init) }.is_null())
    );
    both!(
        alloc_parent_domain = alloc_parent_domain,
        |context| {
            // SAFETY: made-up objects, recording entry.
            assert_eq!(unsafe { ibv_alloc_parent_domain(context, domain) }, at(20));
            assert_eq!(calls(), [call!(alloc_parent_domain(context, domain))]);
        },
        // SAFETY: made-up objects.
        |why, context| unsupported(
            why,
            unsafe { ibv_alloc_parent_domain(context, domain) }.is_null()
        )
    );
    both!(
        alloc_null_mr = alloc_null_mr,
        |context| {
            let mut pd = pd_of(context);
            let pd = &raw mut pd;
            // SAFETY: made-up objects, recording entry.
            assert_eq!(unsafe { ibv_alloc_null_mr(pd) }, at(22));
            assert_eq!(calls(), [call!(alloc_null_mr(pd))]);
        },
        // SAFETY: made-up objects.
        |why, context| unsupported(
            why,
            unsafe { ibv_alloc_null_mr(&mut pd_of(context)) }.is_null()
        )
    );
}
