//! What a device says of itself, its port, its tables and its memory.

use std::ptr;

use libc::{c_int, c_uint};
use rdma_sys as ffi;

use crate::calls::{Call, enter};
use crate::config::Personality;
use crate::device::{guid, text};
use crate::ret::{code, minus};
use crate::world::world;

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_device(
    ctx: *mut ffi::ibv_context,
    attr: *mut ffi::ibv_device_attr,
) -> c_int {
    if let Some(e) = enter(Call::ibv_query_device) {
        return e;
    }
    let mut w = world();
    let personality = match w.contexts.get(ctx, Call::ibv_query_device) {
        Ok(c) => c.personality,
        Err(e) => return e,
    };
    // SAFETY: the caller's struct.
    unsafe { attr.write(device_attr(personality)) };
    0
}

fn device_attr(personality: Personality) -> ffi::ibv_device_attr {
    let mut a = ffi::ibv_device_attr {
        node_guid: guid(0).to_be(),
        sys_image_guid: guid(0).to_be(),
        max_mr_size: 1 << 40,
        page_size_cap: 4096,
        max_qp: 4096,
        max_qp_wr: 16384,
        max_sge: 30,
        max_sge_rd: 30,
        max_cq: 4096,
        max_cqe: 65535,
        max_mr: 65535,
        max_pd: 4096,
        max_qp_rd_atom: 128,
        max_res_rd_atom: 4096,
        max_qp_init_rd_atom: 128,
        max_srq: 1024,
        max_srq_wr: 16384,
        max_srq_sge: 27,
        max_pkeys: 1,
        phys_port_cnt: 1,
        ..Default::default()
    };
    text(&mut a.fw_ver, "1.0.0");
    if !personality.is_iwarp() {
        a.atomic_cap = ffi::IBV_ATOMIC_HCA;
    }
    // As the kernel's drivers have it, which rpma knows them by.
    match personality {
        Personality::Rxe => a.vendor_id = 0xff_ffff,
        Personality::Siw => {
            a.vendor_id = 0x62_6d74;
            a.device_cap_flags = ffi::IBV_DEVICE_MEM_MGT_EXTENSIONS;
            // The driver counts its devices from 1.
            a.vendor_part_id = 1;
        }
        Personality::Mlx5 | Personality::None => {}
    }
    a
}

/// `verbs_context.query_device_ex`.
pub unsafe extern "C" fn query_device_ex(
    ctx: *mut ffi::ibv_context,
    _input: *const ffi::ibv_query_device_ex_input,
    attr: *mut ffi::ibv_device_attr_ex,
    size: usize,
) -> c_int {
    if let Some(e) = enter(Call::ibv_query_device_ex) {
        return e;
    }
    let mut w = world();
    let personality = match w.contexts.get(ctx, Call::ibv_query_device_ex) {
        Ok(c) => c.personality,
        Err(e) => return e,
    };
    let mut a = ffi::ibv_device_attr_ex {
        orig_attr: device_attr(personality),
        phys_port_cnt_ex: 1,
        ..Default::default()
    };
    if personality.has_flush() {
        a.device_cap_flags_ex |= ffi::IBV_DEVICE_FLUSH_GLOBAL
            | ffi::IBV_DEVICE_FLUSH_PERSISTENT
            | ffi::IBV_DEVICE_ATOMIC_WRITE;
    }
    if w.config.has_odp() {
        a.odp_caps.general_caps = u64::from(ffi::IBV_ODP_SUPPORT);
        let mut rc = ffi::IBV_ODP_SUPPORT_SEND
            | ffi::IBV_ODP_SUPPORT_RECV
            | ffi::IBV_ODP_SUPPORT_WRITE
            | ffi::IBV_ODP_SUPPORT_READ
            | ffi::IBV_ODP_SUPPORT_ATOMIC
            | ffi::IBV_ODP_SUPPORT_SRQ_RECV;
        if personality.has_flush() {
            rc |= ffi::IBV_ODP_SUPPORT_FLUSH | ffi::IBV_ODP_SUPPORT_ATOMIC_WRITE;
        }
        a.odp_caps.per_transport_caps.rc_odp_caps = rc;
    }
    let len = size.min(size_of::<ffi::ibv_device_attr_ex>());
    // SAFETY: the caller says how large its struct is.
    unsafe { ptr::copy_nonoverlapping((&raw const a).cast::<u8>(), attr.cast::<u8>(), len) };
    0
}

/// `verbs_context.query_port`.
pub unsafe extern "C" fn query_port(
    ctx: *mut ffi::ibv_context,
    port: u8,
    attr: *mut ffi::ibv_port_attr,
    size: usize,
) -> c_int {
    if let Some(e) = enter(Call::ibv_query_port) {
        return e;
    }
    // SAFETY: as the caller promises.
    unsafe { port_attr(ctx, port, attr, size) }
}

/// How much of `ibv_port_attr` programs from before `flags` know.
const OLD_PORT_ATTR: usize = 48;

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_port(
    ctx: *mut ffi::ibv_context,
    port: u8,
    attr: *mut ffi::ibv_port_attr,
) -> c_int {
    if let Some(e) = enter(Call::ibv_query_port) {
        return e;
    }
    // SAFETY: as the caller promises.
    unsafe { port_attr(ctx, port, attr, OLD_PORT_ATTR) }
}

unsafe fn port_attr(
    ctx: *mut ffi::ibv_context,
    port: u8,
    attr: *mut ffi::ibv_port_attr,
    size: usize,
) -> c_int {
    let mut w = world();
    let personality = match w.contexts.get(ctx, Call::ibv_query_port) {
        Ok(c) => c.personality,
        Err(e) => return e,
    };
    if port != 1 {
        return libc::EINVAL;
    }
    let a = ffi::ibv_port_attr {
        state: if w.config.cut {
            ffi::IBV_PORT_DOWN
        } else {
            ffi::IBV_PORT_ACTIVE
        },
        max_mtu: ffi::IBV_MTU_4096,
        active_mtu: ffi::IBV_MTU_1024,
        gid_tbl_len: 1,
        max_msg_sz: personality.max_msg_sz(),
        pkey_tbl_len: 1,
        max_vl_num: 1,
        active_width: 1,
        active_speed: 1,
        phys_state: 5,
        link_layer: ffi::IBV_LINK_LAYER_ETHERNET as u8,
        ..Default::default()
    };
    let len = size.min(size_of::<ffi::ibv_port_attr>());
    // SAFETY: the caller says how large its struct is.
    unsafe { ptr::copy_nonoverlapping((&raw const a).cast::<u8>(), attr.cast::<u8>(), len) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_gid(
    ctx: *mut ffi::ibv_context,
    port: u8,
    index: c_int,
    gid: *mut ffi::ibv_gid,
) -> c_int {
    if let Some(e) = enter(Call::ibv_query_gid) {
        return minus(e);
    }
    if world().contexts.get(ctx, Call::ibv_query_gid).is_err() || port != 1 || index != 0 {
        return minus(libc::EINVAL);
    }
    // SAFETY: the caller's struct.
    unsafe { *gid = our_gid() };
    0
}

/// The one entry of the table: 192.168.77.1, mapped.
fn our_gid() -> ffi::ibv_gid {
    let mut raw = [0u8; 16];
    raw[10..].copy_from_slice(&[0xff, 0xff, 192, 168, 77, 1]);
    ffi::ibv_gid { raw }
}

/// Writes the one entry, as large as the caller knows it.
unsafe fn gid_entry(to: *mut ffi::ibv_gid_entry, size: usize, personality: Personality) {
    let entry = ffi::ibv_gid_entry {
        gid: our_gid(),
        port_num: 1,
        gid_type: if personality.is_iwarp() {
            ffi::IBV_GID_TYPE_IB
        } else {
            ffi::IBV_GID_TYPE_ROCE_V2
        },
        ..Default::default()
    };
    let len = size.min(size_of::<ffi::ibv_gid_entry>());
    // SAFETY: `size` bytes at `to`, as the caller promises.
    unsafe { ptr::copy_nonoverlapping((&raw const entry).cast::<u8>(), to.cast::<u8>(), len) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _ibv_query_gid_ex(
    ctx: *mut ffi::ibv_context,
    port: u32,
    index: u32,
    entry: *mut ffi::ibv_gid_entry,
    flags: u32,
    size: usize,
) -> c_int {
    if let Some(e) = enter(Call::_ibv_query_gid_ex) {
        return e;
    }
    let personality = match world().contexts.get(ctx, Call::_ibv_query_gid_ex) {
        Ok(c) => c.personality,
        Err(e) => return e,
    };
    if port != 1 || index != 0 || flags != 0 {
        return libc::EINVAL;
    }
    // SAFETY: as the caller promises.
    unsafe { gid_entry(entry, size, personality) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _ibv_query_gid_table(
    ctx: *mut ffi::ibv_context,
    entries: *mut ffi::ibv_gid_entry,
    max: usize,
    flags: u32,
    size: usize,
) -> isize {
    if let Some(e) = enter(Call::_ibv_query_gid_table) {
        return -(e as isize);
    }
    let personality = match world().contexts.get(ctx, Call::_ibv_query_gid_table) {
        Ok(c) => c.personality,
        Err(e) => return -(e as isize),
    };
    if max == 0 || flags != 0 {
        return -(libc::EINVAL as isize);
    }
    // SAFETY: as the caller promises.
    unsafe { gid_entry(entries, size, personality) };
    1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_pkey(
    ctx: *mut ffi::ibv_context,
    port: u8,
    index: c_int,
    pkey: *mut u16,
) -> c_int {
    if let Some(e) = enter(Call::ibv_query_pkey) {
        return minus(e);
    }
    if world().contexts.get(ctx, Call::ibv_query_pkey).is_err() || port != 1 || index != 0 {
        return minus(libc::EINVAL);
    }
    // SAFETY: the caller's variable.
    unsafe { *pkey = 0xffff };
    0
}

/// `verbs_context.advise_mr`.
pub unsafe extern "C" fn advise_mr(
    pd: *mut ffi::ibv_pd,
    advice: ffi::ib_uverbs_advise_mr_advice,
    _flags: u32,
    list: *mut ffi::ibv_sge,
    count: u32,
) -> c_int {
    if let Some(e) = enter(Call::ibv_advise_mr) {
        return e;
    }
    let mut w = world();
    // SAFETY: the caller's list of `count` entries.
    let sges = unsafe { crate::post::sges(list, count as c_int) };
    code(w.advise(pd, advice as c_uint, &sges))
}
