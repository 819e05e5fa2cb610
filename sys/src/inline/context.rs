//! The extended table of a context, and the queries that go through it.

use crate::*;
use core::ffi::{c_int, c_void};
use core::mem::{offset_of, size_of};
use core::ptr;

/// What `ibv_context.abi_compat` holds when a [`verbs_context`] lies in front of the context: all
/// bits set, at the width of a pointer.
#[allow(non_snake_case)] // C's name
pub const fn __VERBS_ABI_IS_EXTENDED() -> *mut c_void {
    ptr::without_provenance_mut(usize::MAX)
}

/// The extended table that encloses a context, or null when the context has none.
///
/// The table has grown at its front from release to release, so the pointer may lie before the
/// memory that the library allocated. Only fields that `sz` covers may be touched: an entry at
/// offset `o` is there when `sz >= size_of::<verbs_context>() - o`, and `sz` itself always is.
///
/// # Safety
/// `context` points to a context that libibverbs opened.
#[inline]
pub unsafe fn verbs_get_ctx(context: *mut ibv_context) -> *mut verbs_context {
    // SAFETY: the caller's contract.
    if unsafe { (*context).abi_compat } != __VERBS_ABI_IS_EXTENDED() {
        return ptr::null_mut();
    }
    context
        .wrapping_byte_sub(offset_of!(verbs_context, context))
        .cast()
}

/// An entry of the extended table: `None` without a table, with one too small to have the entry, or
/// when it is null.
macro_rules! ctx_op {
    ($context:expr, $op:ident) => {
        // SAFETY: the caller's contract; the offset is that of the field that the witness names.
        unsafe {
            $crate::inline::context::read_entry(
                $context,
                core::mem::offset_of!($crate::verbs_context, $op),
                |table| &table.$op,
            )
        }
    };
}
pub(super) use ctx_op;

/// Reads the entry at `offset`, whose type is that of the field which `_witness` picks.
///
/// # Safety
/// `context` points to a context that libibverbs opened; `offset` is the offset of the witness's
/// field.
#[inline]
pub(super) unsafe fn read_entry<F: Copy>(
    context: *mut ibv_context,
    offset: usize,
    _witness: fn(&verbs_context) -> &Option<F>,
) -> Option<F> {
    // SAFETY: the caller's contract.
    let table = unsafe { verbs_get_ctx(context) };
    if table.is_null() {
        return None;
    }
    // Wrapping arithmetic, and no place expression through `table`: it may point outside the
    // allocation (see above).
    let size = table
        .wrapping_byte_add(offset_of!(verbs_context, sz))
        .cast::<usize>();
    // SAFETY: `sz` lies right before the context in every release that has the table.
    if unsafe { size.read() } < size_of::<verbs_context>() - offset {
        return None;
    }
    // SAFETY: inside the part that `sz` covers; a nullable function pointer is an `Option`.
    unsafe { table.wrapping_byte_add(offset).cast::<Option<F>>().read() }
}

unsafe extern "C" {
    /// The exported symbol knows only the first fields of the attributes.
    #[link_name = "ibv_query_port"]
    fn compat_query_port(
        context: *mut ibv_context,
        port_num: u8,
        port_attr: *mut _compat_ibv_port_attr,
    ) -> c_int;
}

/// Fills the attributes of a port; fields that the running rdma-core does not know are zero. 0, or
/// an errno.
///
/// `man 3 ibv_query_port`. `active_speed_ex` is zero on v44, which does not have it.
///
/// # Safety
/// `context` is an open context, `port_attr` valid for writes of the whole struct.
#[inline]
pub unsafe fn ibv_query_port(
    context: *mut ibv_context,
    port_num: u8,
    port_attr: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: zero is a value of every field, and the caller vouches for the memory.
    unsafe { port_attr.write_bytes(0, 1) };
    match ctx_op!(context, query_port) {
        // SAFETY: the caller's contract; the length is that of the caller's struct.
        Some(query) => unsafe { query(context, port_num, port_attr, size_of::<ibv_port_attr>()) },
        // SAFETY: the symbol writes a prefix of the struct.
        None => unsafe { compat_query_port(context, port_num, port_attr.cast()) },
    }
}

/// Fills the extended attributes of a device. 0, or an errno (`EINVAL` when `input` has a
/// `comp_mask`).
///
/// A provider without the call, or whose call says `EOPNOTSUPP` or `ENOSYS`, gives the basic
/// attributes in `orig_attr` and zeros elsewhere. `man 3 ibv_query_device_ex`.
///
/// # Safety
/// `context` is an open context, `input` null or valid, `attr` valid for writes of the whole
/// struct.
#[inline]
pub unsafe fn ibv_query_device_ex(
    context: *mut ibv_context,
    input: *const ibv_query_device_ex_input,
    attr: *mut ibv_device_attr_ex,
) -> c_int {
    // SAFETY: `input` is null or valid.
    if !input.is_null() && unsafe { (*input).comp_mask } != 0 {
        return libc::EINVAL;
    }
    if let Some(query) = ctx_op!(context, query_device_ex) {
        // SAFETY: the caller's contract; the length is that of the caller's struct.
        let ret = unsafe { query(context, input, attr, size_of::<ibv_device_attr_ex>()) };
        if ret != libc::EOPNOTSUPP && ret != libc::ENOSYS {
            return ret;
        }
    }
    // SAFETY: zero is a value of every field, and the caller vouches for the memory.
    unsafe {
        attr.write_bytes(0, 1);
        ibv_query_device(context, &raw mut (*attr).orig_attr)
    }
}

/// One entry of a port's GID table. 0, or an errno (`ENODATA` for an empty entry).
/// `man 3 ibv_query_gid_ex`.
///
/// # Safety
/// `context` is an open context, `entry` valid for writes.
#[inline]
pub unsafe fn ibv_query_gid_ex(
    context: *mut ibv_context,
    port_num: u32,
    gid_index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
) -> c_int {
    let size = size_of::<ibv_gid_entry>();
    // SAFETY: the caller's contract; the size is that of the caller's struct.
    unsafe { _ibv_query_gid_ex(context, port_num, gid_index, entry, flags, size) }
}

/// Up to `max_entries` valid GIDs of all ports: how many were written, or a negative errno.
/// `man 3 ibv_query_gid_table`.
///
/// # Safety
/// `context` is an open context, `entries` valid for writes of `max_entries` structs.
#[inline]
pub unsafe fn ibv_query_gid_table(
    context: *mut ibv_context,
    entries: *mut ibv_gid_entry,
    max_entries: usize,
    flags: u32,
) -> isize {
    let size = size_of::<ibv_gid_entry>();
    // SAFETY: the caller's contract; the size is that of the caller's struct.
    unsafe { _ibv_query_gid_table(context, entries, max_entries, flags, size) }
}

/// Reads the device's clock. 0, or an errno (`EOPNOTSUPP` without the call).
/// `man 3 ibv_query_rt_values_ex`.
///
/// # Safety
/// `context` is an open context, `values` valid, its `comp_mask` set by the caller.
#[inline]
pub unsafe fn ibv_query_rt_values_ex(
    context: *mut ibv_context,
    values: *mut ibv_values_ex,
) -> c_int {
    match ctx_op!(context, query_rt_values) {
        // SAFETY: the caller's contract.
        Some(query) => unsafe { query(context, values) },
        None => libc::EOPNOTSUPP,
    }
}
