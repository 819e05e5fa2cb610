//! Devices, contexts and what they say about themselves.

use std::ffi::c_char;
use std::ptr;

use libc::{c_int, c_uint};
use rdma_sys as ffi;

use crate::calls::{Call, enter};
use crate::config::Personality;
use crate::doorbell::Doorbell;
use crate::ops;
use crate::ret::{code, minus, null, pointer, set_errno};
use crate::table::{Object, allocate};
use crate::violations::violation;
use crate::world::{World, world};

/// A device. It stays for the life of the process, as a device file would.
pub struct Device {
    pub ffi: *mut ffi::ibv_device,
    pub personality: Personality,
    /// The context that librdmacm keeps open, and the protection domain that it gives to ids. 0: not yet.
    pub cm_context: usize,
    pub cm_pd: usize,
}

// SAFETY: the pointer is only followed under the world's lock, or by the program.
unsafe impl Send for Device {}

/// An open device.
pub struct Context {
    ffi: *mut ffi::verbs_context,
    pub personality: Personality,
    pub bell: Doorbell,
    pub async_events: std::collections::VecDeque<crate::async_event::AsyncEvent>,
    /// Opened by librdmacm: never closed by the program.
    pub by_cm: bool,
}

// SAFETY: as for Device.
unsafe impl Send for Context {}

impl Object for Context {
    type Ffi = ffi::ibv_context;
    const KIND: &'static str = "context";
    fn ffi(&self) -> *mut ffi::ibv_context {
        // SAFETY: a field of our own allocation.
        unsafe { &raw mut (*self.ffi).context }
    }
}

impl World {
    /// The device of the present personality, made when first asked for.
    pub fn device(&mut self) -> Option<usize> {
        let personality = self.config.personality;
        if personality == Personality::None {
            return None;
        }
        if let Some(at) = self
            .devices
            .iter()
            .position(|d| d.personality == personality)
        {
            return Some(at);
        }
        let dev = allocate::<ffi::ibv_device>();
        let iwarp = personality.is_iwarp();
        // SAFETY: a fresh, zeroed struct.
        unsafe {
            (*dev).node_type = if iwarp {
                ffi::IBV_NODE_RNIC
            } else {
                ffi::IBV_NODE_CA
            };
            (*dev).transport_type = if iwarp {
                ffi::IBV_TRANSPORT_IWARP
            } else {
                ffi::IBV_TRANSPORT_IB
            };
            text(&mut (*dev).name, personality.device_name());
            text(&mut (*dev).dev_name, "uverbs0");
            text(&mut (*dev).dev_path, "/sys/class/infiniband_verbs/uverbs0");
        }
        self.devices.push(Device {
            ffi: dev,
            personality,
            cm_context: 0,
            cm_pd: 0,
        });
        Some(self.devices.len() - 1)
    }

    /// Opens a device.
    pub fn open(&mut self, device: usize, by_cm: bool) -> Result<*mut ffi::ibv_context, c_int> {
        let device = self.devices.get(device).ok_or(libc::ENODEV)?;
        let bell = Doorbell::new()?;
        let ctx = allocate::<ffi::verbs_context>();
        // SAFETY: a fresh, zeroed struct.
        unsafe {
            ops::fill(&mut *ctx, device.personality, self.config.null);
            (*ctx).context.device = device.ffi;
            (*ctx).context.cmd_fd = -1;
            (*ctx).context.async_fd = bell.fd();
            (*ctx).context.num_comp_vectors = 2;
        }
        let personality = device.personality;
        Ok(self.contexts.insert(Context {
            ffi: ctx,
            personality,
            bell,
            async_events: std::collections::VecDeque::new(),
            by_cm,
        }))
    }

    /// The context that librdmacm has of the present device.
    pub fn cm_context(&mut self) -> Result<*mut ffi::ibv_context, c_int> {
        let at = self.device().ok_or(libc::ENODEV)?;
        let known = self.devices.get(at).map_or(0, |d| d.cm_context);
        if known != 0 {
            return Ok(known as *mut ffi::ibv_context);
        }
        let ctx = self.open(at, true)?;
        if let Some(d) = self.devices.get_mut(at) {
            d.cm_context = ctx as usize;
        }
        Ok(ctx)
    }

    /// The personality of the device behind a context.
    pub fn personality_of(&self, context: usize) -> Personality {
        self.contexts
            .at(context)
            .map_or(Personality::None, |c| c.personality)
    }

    /// Puts the operations of every context in place again, after null mode was switched.
    pub fn refill_ops(&mut self) {
        for (_, c) in self.contexts.iter() {
            // SAFETY: our own allocation; whoever switches null mode has no call in flight.
            unsafe { ops::fill(&mut *c.ffi, c.personality, self.config.null) };
        }
    }
}

/// Copies text into a C array, cut to fit.
fn text(to: &mut [c_char], from: &str) {
    let room = to.len().saturating_sub(1);
    for (t, f) in to.iter_mut().zip(from.bytes().take(room)) {
        *t = f as c_char;
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_list(num: *mut c_int) -> *mut *mut ffi::ibv_device {
    if let Some(e) = enter(Call::ibv_get_device_list) {
        return null(e);
    }
    let mut w = world();
    let mut list = Vec::new();
    if let Some(at) = w.device() {
        list.extend(w.devices.get(at).map(|d| d.ffi));
    }
    if !num.is_null() {
        // SAFETY: the caller's counter.
        unsafe { *num = list.len() as c_int };
    }
    list.push(ptr::null_mut());
    w.hand_out(list, "ibv_get_device_list")
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_free_device_list(list: *mut *mut ffi::ibv_device) {
    enter(Call::ibv_free_device_list);
    world().take_back(list, Call::ibv_free_device_list);
}

impl World {
    /// Gives a NULL-terminated list to the program.
    pub fn hand_out<T>(&mut self, list: Vec<*mut T>, what: &'static str) -> *mut *mut T {
        let p = Box::into_raw(list.into_boxed_slice()).cast::<*mut T>();
        self.lists.insert(p as usize, what);
        p
    }

    /// Takes it back.
    pub fn take_back<T>(&mut self, list: *mut *mut T, call: Call) {
        if self.lists.remove(&(list as usize)).is_none() {
            violation(&format!("{}: {list:p} is no list of ours", call.name()));
            return;
        }
        let mut len = 1;
        // SAFETY: a list from `hand_out`, which ends with NULL; given back once.
        unsafe {
            while !(*list.add(len - 1)).is_null() {
                len += 1;
            }
            drop(Box::from_raw(ptr::slice_from_raw_parts_mut(list, len)));
        }
    }

    fn known_device(&self, dev: *mut ffi::ibv_device, call: Call) -> Option<usize> {
        let at = self.devices.iter().position(|d| d.ffi == dev);
        if at.is_none() {
            violation(&format!("{}: {dev:p} is no device", call.name()));
        }
        at
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_name(dev: *mut ffi::ibv_device) -> *const c_char {
    enter(Call::ibv_get_device_name);
    if world()
        .known_device(dev, Call::ibv_get_device_name)
        .is_none()
    {
        return ptr::null();
    }
    // SAFETY: a device of ours; its name ends with NUL.
    unsafe { (&raw const (*dev).name).cast() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_index(dev: *mut ffi::ibv_device) -> c_int {
    enter(Call::ibv_get_device_index);
    let at = world().known_device(dev, Call::ibv_get_device_index);
    at.map_or(-1, |i| i as c_int)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_guid(dev: *mut ffi::ibv_device) -> u64 {
    enter(Call::ibv_get_device_guid);
    match world().known_device(dev, Call::ibv_get_device_guid) {
        Some(at) => guid(at as u64).to_be(),
        None => 0,
    }
}

fn guid(at: u64) -> u64 {
    0x0250_56ff_fe00_0000 | (at + 1)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_open_device(dev: *mut ffi::ibv_device) -> *mut ffi::ibv_context {
    if let Some(e) = enter(Call::ibv_open_device) {
        return null(e);
    }
    let mut w = world();
    match w.known_device(dev, Call::ibv_open_device) {
        Some(at) => pointer(w.open(at, false)),
        None => null(libc::ENODEV),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_close_device(ctx: *mut ffi::ibv_context) -> c_int {
    if let Some(e) = enter(Call::ibv_close_device) {
        set_errno(e);
        return minus(e);
    }
    let mut w = world();
    let by_cm = match w.contexts.get(ctx, Call::ibv_close_device) {
        Ok(c) => c.by_cm,
        Err(e) => return minus(e),
    };
    if by_cm {
        violation("ibv_close_device: the context belongs to librdmacm");
        return minus(libc::EINVAL);
    }
    let key = ctx as usize;
    let users = w.pds.iter().filter(|(_, o)| o.context == key).count()
        + w.cqs.iter().filter(|(_, o)| o.context == key).count()
        + w.channels.iter().filter(|(_, o)| o.context == key).count();
    if users > 0 {
        violation(&format!(
            "ibv_close_device: {users} objects still live on the context"
        ));
        return minus(libc::EBUSY);
    }
    w.contexts.remove(key);
    0
}

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
