//! The structs and flags of `infiniband/efadv.h`, as rdma-core 65 has them.
//!
//! They only grow at their end. An older library knows a shorter struct: it leaves the rest as it
//! was, so all of them start zeroed.
#![allow(non_camel_case_types)]

use rdma_sys as ffi;

pub(super) const EFADV_WC_EX_WITH_SGID: u64 = 1 << 0;
pub(super) const EFADV_WC_EX_WITH_IS_UNSOLICITED: u64 = 1 << 1;
pub(super) const EFADV_CQ_INIT_FLAGS_EXT_MEM_DMABUF: u64 = 1 << 0;
pub(super) const EFADV_SQ_DEPTH_ATTR_INLINE_WRITE: u32 = 1 << 0;
pub(super) const EFADV_MR_ATTR_VALIDITY_RECV_IC_ID: u16 = 1 << 0;
pub(super) const EFADV_MR_ATTR_VALIDITY_RDMA_READ_IC_ID: u16 = 1 << 1;
pub(super) const EFADV_MR_ATTR_VALIDITY_RDMA_RECV_IC_ID: u16 = 1 << 2;

/// A struct that is handed to libefa with its length.
pub(super) trait Attr: Sized {
    /// The struct's length for an `inlen` argument.
    // The structs have a few dozen bytes.
    const LEN: u32 = size_of::<Self>() as u32;
}

macro_rules! attrs {
    ($($(#[$doc:meta])* $name:ident $size:literal { $($field:ident: $type:ty = $offset:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            #[repr(C)]
            pub struct $name {
                $(pub(super) $field: $type,)*
            }

            impl Attr for $name {}

            impl Default for $name {
                /// Zeros.
                fn default() -> Self {
                    // SAFETY: numbers and raw pointers only.
                    unsafe { std::mem::zeroed() }
                }
            }

            #[cfg(target_pointer_width = "64")]
            const _: () = {
                assert!(size_of::<$name>() == $size);
                $(assert!(std::mem::offset_of!($name, $field) == $offset);)*
            };
        )*

        /// Every struct with its fields: name, offset, width.
        #[cfg(test)]
        #[allow(clippy::type_complexity)]
        const STRUCTS: &[(&str, usize, &[(&str, usize, usize)])] = &[
            $((stringify!($name), size_of::<$name>(), &[
                $((stringify!($field), std::mem::offset_of!($name, $field), size_of::<$type>()),)*
            ]),)*
        ];
    };
}

attrs! {
    /// `struct efadv_device_attr`
    efadv_device_attr 32 {
        comp_mask: u64 = 0,
        max_sq_wr: u32 = 8,
        max_rq_wr: u32 = 12,
        max_sq_sge: u16 = 16,
        max_rq_sge: u16 = 18,
        inline_buf_size: u16 = 20,
        inline_buf_size_ex: u16 = 22,
        device_caps: u32 = 24,
        max_rdma_size: u32 = 28,
    }
    /// `struct efadv_sq_depth_attr`
    efadv_sq_depth_attr 24 {
        comp_mask: u64 = 0,
        flags: u32 = 8,
        max_send_sge: u32 = 12,
        max_rdma_sge: u32 = 16,
        max_inline_data: u32 = 20,
    }
    /// `struct efadv_rq_depth_attr`
    efadv_rq_depth_attr 16 {
        comp_mask: u64 = 0,
        max_recv_sge: u32 = 8,
    }
    /// `struct efadv_cq_init_attr`; its last member is an unnamed struct in C.
    efadv_cq_init_attr 56 {
        comp_mask: u64 = 0,
        wc_flags: u64 = 8,
        flags: u64 = 16,
        ext_mem_dmabuf: ext_mem_dmabuf = 24,
    }
    /// `struct efadv_cq_attr`; `doorbell` since rdma-core 60.
    efadv_cq_attr 32 {
        comp_mask: u64 = 0,
        buffer: *mut u8 = 8,
        entry_size: u32 = 16,
        num_entries: u32 = 20,
        doorbell: *mut u32 = 24,
    }
    /// `struct efadv_wq_attr`
    efadv_wq_attr 40 {
        comp_mask: u64 = 0,
        buffer: *mut u8 = 8,
        entry_size: u32 = 16,
        num_entries: u32 = 20,
        doorbell: *mut u32 = 24,
        max_batch: u32 = 32,
        caps: u16 = 36,
        reserved: [u8; 2] = 38,
    }
    /// `struct efadv_mr_attr`
    efadv_mr_attr 16 {
        comp_mask: u64 = 0,
        ic_id_validity: u16 = 8,
        recv_ic_id: u16 = 10,
        rdma_read_ic_id: u16 = 12,
        rdma_recv_ic_id: u16 = 14,
    }
}

/// `ext_mem_dmabuf` of `struct efadv_cq_init_attr`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ext_mem_dmabuf {
    pub(super) buffer: *mut u8,
    pub(super) length: u64,
    pub(super) offset: u64,
    pub(super) fd: i32,
    pub(super) reserved: [u8; 4],
}

/// The part of `struct efadv_cq_init_attr` that every library with `efadv_create_cq` knows: all
/// before `flags`.
pub(super) const CQ_INIT_ATTR_FIRST_LEN: u32 =
    std::mem::offset_of!(efadv_cq_init_attr, flags) as u32;

/// `struct efadv_cq`: lies in the CQ, written by libefa only.
#[repr(C)]
pub struct efadv_cq {
    pub(super) comp_mask: u64,
    pub(super) wc_read_sgid:
        Option<unsafe extern "C" fn(*mut efadv_cq, *mut ffi::ibv_gid) -> std::ffi::c_int>,
    pub(super) wc_is_unsolicited: Option<unsafe extern "C" fn(*mut efadv_cq) -> bool>,
}

#[cfg(test)]
mod tests;
