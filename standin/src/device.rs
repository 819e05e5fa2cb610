//! Devices, contexts and what they say about themselves.

use std::ffi::c_char;
use std::ptr;

use libc::c_int;
use rdma_sys as ffi;

use crate::calls::{Call, destroying, enter};
use crate::config::Personality;
use crate::doorbell::Doorbell;
use crate::ops;
use crate::ret::{null, pointer, status};
use crate::table::{Object, allocate};
use crate::violations::{still_in_use, violation};
use crate::world::{World, world};

/// A device. It stays for the life of the process, as a device file would.
pub struct Device {
    pub ffi: *mut ffi::ibv_device,
    pub personality: Personality,
    /// The context that librdmacm keeps open, and the protection domain that it gives to ids. 0:
    /// not yet.
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

    fn close(&mut self, ctx: *mut ffi::ibv_context) -> Result<(), c_int> {
        if self.contexts.get(ctx, Call::ibv_close_device)?.by_cm {
            violation("ibv_close_device: the context belongs to librdmacm");
            return Err(libc::EINVAL);
        }
        let key = ctx as usize;
        let users = self.pds.iter().filter(|(_, o)| o.context == key).count()
            + self.cqs.iter().filter(|(_, o)| o.context == key).count()
            + self
                .channels
                .iter()
                .filter(|(_, o)| o.context == key)
                .count();
        if users > 0 {
            still_in_use(&format!(
                "ibv_close_device: {users} objects still live on the context"
            ));
            return Err(libc::EBUSY);
        }
        self.contexts.remove(key);
        Ok(())
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
pub fn text(to: &mut [c_char], from: &str) {
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

/// The GUID of the device at this place.
pub fn guid(at: u64) -> u64 {
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
    status(destroying(Call::ibv_close_device, || world().close(ctx)))
}
