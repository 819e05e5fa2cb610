//! Addresses, ports, and their resolution.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::{c_int, sockaddr};
use rdma_sys as ffi;

use super::{State, sync};
use crate::calls::{Call, enter};
use crate::config::{Config, Personality};
use crate::ret::{minus, status};
use crate::table::allocate;
use crate::timers;
use crate::world::{World, world};

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// This device.
    Here,
    /// It resolves, and nobody answers (192.0.2.0/24, 2001:db8:1::/48).
    BlackHole,
    /// Its resolution is never answered (198.51.100.0/24).
    NoAddress,
    /// It resolves, its route does not (203.0.113.0/24).
    NoRoute,
    /// An address of this machine that no device has (169.254.0.0/16).
    NoDevice,
    /// No way leads there.
    Nowhere,
}

/// Where an address leads.
pub fn place(config: &Config, ip: IpAddr) -> Place {
    if config.addresses.contains(&ip) {
        return Place::Here;
    }
    match ip {
        IpAddr::V4(a) => match a.octets() {
            [192, 0, 2, _] => Place::BlackHole,
            [198, 51, 100, _] => Place::NoAddress,
            [203, 0, 113, _] => Place::NoRoute,
            [169, 254, _, _] => Place::NoDevice,
            _ => Place::Nowhere,
        },
        IpAddr::V6(a) => match a.segments() {
            [0x2001, 0xdb8, 1, ..] => Place::BlackHole,
            _ => Place::Nowhere,
        },
    }
}

fn leads_somewhere(config: &Config, ip: IpAddr) -> Result<(), c_int> {
    match place(config, ip) {
        Place::Nowhere if config.personality == Personality::None => Err(libc::ENODEV),
        Place::Nowhere => Err(libc::ENETUNREACH),
        Place::NoDevice => Err(libc::ENODEV),
        _ => Ok(()),
    }
}

/// Reads a C address.
///
/// # Safety
/// NULL, or a struct of the size that its family has.
pub unsafe fn read(addr: *const sockaddr) -> Option<SocketAddr> {
    if addr.is_null() {
        return None;
    }
    // SAFETY: as the caller promises. The caller's struct may be less aligned than its type.
    unsafe {
        match c_int::from((&raw const (*addr).sa_family).read_unaligned()) {
            libc::AF_INET => {
                let a = addr.cast::<libc::sockaddr_in>().read_unaligned();
                let ip = Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr));
                Some(SocketAddr::from((ip, u16::from_be(a.sin_port))))
            }
            libc::AF_INET6 => {
                let a = addr.cast::<libc::sockaddr_in6>().read_unaligned();
                let ip = Ipv6Addr::from(a.sin6_addr.s6_addr);
                Some(SocketAddr::from((ip, u16::from_be(a.sin6_port))))
            }
            _ => None,
        }
    }
}

/// An address in C's form, and its length.
pub fn to_c(addr: SocketAddr) -> (libc::sockaddr_storage, usize) {
    // SAFETY: all zeros is a valid address storage; both forms fit into it.
    unsafe {
        let mut s: libc::sockaddr_storage = std::mem::zeroed();
        let len = match addr {
            SocketAddr::V4(a) => {
                let to = (&raw mut s).cast::<libc::sockaddr_in>();
                (*to).sin_family = libc::AF_INET as u16;
                (*to).sin_port = a.port().to_be();
                (*to).sin_addr.s_addr = u32::from(*a.ip()).to_be();
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(a) => {
                let to = (&raw mut s).cast::<libc::sockaddr_in6>();
                (*to).sin6_family = libc::AF_INET6 as u16;
                (*to).sin6_port = a.port().to_be();
                (*to).sin6_addr.s6_addr = a.ip().octets();
                size_of::<libc::sockaddr_in6>()
            }
        };
        (s, len)
    }
}

impl World {
    /// Gives an id its local address; its device too unless it is a wildcard.
    pub fn bind(&mut self, key: usize, addr: SocketAddr) -> Result<(), c_int> {
        let wildcard = addr.ip().is_unspecified();
        if !wildcard {
            match place(&self.config, addr.ip()) {
                Place::Here => {}
                Place::NoDevice => return Err(libc::ENODEV),
                _ => return Err(libc::EADDRNOTAVAIL),
            }
        }
        let context = if wildcard {
            0
        } else {
            self.cm_context()? as usize
        };
        let addr = if addr.port() == 0 {
            SocketAddr::from((addr.ip(), self.free_port()?))
        } else {
            addr
        };
        if self.port_is_taken(key, addr) {
            return Err(if wildcard {
                libc::EADDRNOTAVAIL
            } else {
                libc::EADDRINUSE
            });
        }
        self.place_id(key, context, addr, None);
        if let Some(i) = self.ids.at_mut(key) {
            i.owns_port = true;
            i.state = State::AddrBound;
        }
        Ok(())
    }

    fn port_is_taken(&self, key: usize, addr: SocketAddr) -> bool {
        let me = self.ids.at(key);
        let (reuse, af_only) = me.map_or((false, false), |i| (i.reuse, i.af_only));
        self.ids.iter().any(|(k, o)| {
            let Some(l) = o.local.filter(|_| o.owns_port && k != key) else {
                return false;
            };
            let same_family = l.is_ipv4() == addr.is_ipv4();
            let only = if l.is_ipv6() { o.af_only } else { af_only };
            let overlap = if same_family {
                l.ip() == addr.ip() || l.ip().is_unspecified() || addr.ip().is_unspecified()
            } else {
                l.ip().is_unspecified() && addr.ip().is_unspecified() && !only
            };
            let both_reuse = reuse && o.reuse && o.state != State::Listening;
            l.port() == addr.port() && overlap && !both_reuse
        })
    }

    fn free_port(&mut self) -> Result<u16, c_int> {
        for _ in 0..16384 {
            let port = self.next_port;
            self.next_port = if port == u16::MAX { 49152 } else { port + 1 };
            let taken = self
                .ids
                .iter()
                .any(|(_, i)| i.owns_port && i.local.is_some_and(|l| l.port() == port));
            if !taken {
                return Ok(port);
            }
        }
        Err(libc::EADDRNOTAVAIL)
    }

    /// Writes addresses and device into an id.
    pub fn place_id(
        &mut self,
        key: usize,
        context: usize,
        local: SocketAddr,
        remote: Option<SocketAddr>,
    ) {
        let pd = if context == 0 { 0 } else { self.cm_pd(context) };
        let Some(i) = self.ids.at_mut(key) else {
            return;
        };
        i.local = Some(local);
        i.context = context;
        if remote.is_some() {
            i.remote_addr = remote;
        }
        // SAFETY: our own allocation.
        unsafe {
            let p = i.ffi;
            (*p).route.addr.__bindgen_anon_1.src_storage = to_c(local).0;
            if let Some(r) = remote {
                (*p).route.addr.__bindgen_anon_2.dst_storage = to_c(r).0;
            }
            if context != 0 {
                (*p).verbs = context as *mut ffi::ibv_context;
                (*p).pd = pd as *mut ffi::ibv_pd;
                (*p).port_num = 1;
            }
        }
    }

    /// The protection domain that librdmacm keeps for a device.
    fn cm_pd(&mut self, context: usize) -> usize {
        let Some(at) = self.devices.iter().position(|d| d.cm_context == context) else {
            return 0;
        };
        let known = self.devices.get(at).map_or(0, |d| d.cm_pd);
        if known != 0 {
            return known;
        }
        let pd = self.alloc_pd(context as *mut ffi::ibv_context, true) as usize;
        if let Some(d) = self.devices.get_mut(at) {
            d.cm_pd = pd;
        }
        pd
    }

    fn resolve_addr(
        &mut self,
        id: *mut ffi::rdma_cm_id,
        from: Option<SocketAddr>,
        to: Option<SocketAddr>,
        timeout: u64,
    ) -> Result<(), c_int> {
        let key = id as usize;
        let i = self.ids.get(id, Call::rdma_resolve_addr)?;
        let to = to.ok_or(libc::EINVAL)?;
        let serial = i.serial;
        match i.state {
            State::Idle => {
                leads_somewhere(&self.config, to.ip())?;
                let from = match from.filter(|f| !f.ip().is_unspecified()) {
                    Some(f) => f,
                    None => {
                        SocketAddr::from((self.source_for(to.ip())?, from.map_or(0, |f| f.port())))
                    }
                };
                self.bind(key, from)?;
            }
            State::AddrBound => {
                leads_somewhere(&self.config, to.ip())?;
            }
            _ => return Err(libc::EINVAL),
        }
        let local = self.ids.at(key).and_then(|i| i.local).ok_or(libc::EINVAL)?;
        let local = if local.ip().is_unspecified() {
            SocketAddr::from((self.source_for(to.ip())?, local.port()))
        } else {
            local
        };
        if local.is_ipv4() != to.is_ipv4() {
            return Err(libc::EINVAL);
        }
        let context = self.cm_context()? as usize;
        if place(&self.config, to.ip()) == Place::NoAddress {
            timers::after(self, timeout, move |w| {
                if w.ids.at(key).is_some_and(|i| i.serial == serial) {
                    w.post_event(key, ffi::RDMA_CM_EVENT_ADDR_ERROR, -libc::ETIMEDOUT);
                }
            });
            return Ok(());
        }
        self.place_id(key, context, local, Some(to));
        if let Some(i) = self.ids.at_mut(key) {
            i.state = State::AddrResolved;
        }
        self.post_event(key, ffi::RDMA_CM_EVENT_ADDR_RESOLVED, 0);
        Ok(())
    }

    /// Which of our addresses a connection to this one comes from.
    fn source_for(&self, to: IpAddr) -> Result<IpAddr, c_int> {
        if self.config.addresses.contains(&to) {
            return Ok(to);
        }
        self.config
            .addresses
            .iter()
            .find(|a| a.is_ipv4() == to.is_ipv4() && !a.is_loopback())
            .copied()
            .ok_or(libc::ENODEV)
    }

    fn resolve_route(&mut self, id: *mut ffi::rdma_cm_id, timeout: u64) -> Result<(), c_int> {
        let key = id as usize;
        let i = self.ids.get(id, Call::rdma_resolve_route)?;
        if i.state != State::AddrResolved {
            return Err(libc::EINVAL);
        }
        let (serial, to) = (i.serial, i.remote_addr.ok_or(libc::EINVAL)?);
        if place(&self.config, to.ip()) == Place::NoRoute {
            timers::after(self, timeout, move |w| {
                if w.ids.at(key).is_some_and(|i| i.serial == serial) {
                    w.post_event(key, ffi::RDMA_CM_EVENT_ROUTE_ERROR, -libc::ETIMEDOUT);
                }
            });
            return Ok(());
        }
        let iwarp = self.id_is_iwarp(key);
        if let Some(i) = self.ids.at_mut(key) {
            i.state = State::RouteResolved;
            if !iwarp && i.path.is_null() {
                i.path = allocate::<ffi::ibv_sa_path_rec>();
                // SAFETY: our own allocations.
                unsafe {
                    (*i.ffi).route.path_rec = i.path;
                    (*i.ffi).route.num_paths = 1;
                }
            }
        }
        self.post_event(key, ffi::RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
        Ok(())
    }
}

#[unsafe(export_name = "standin_rdma_bind_addr")]
unsafe extern "C" fn rdma_bind_addr(id: *mut ffi::rdma_cm_id, addr: *mut sockaddr) -> c_int {
    if let Some(e) = enter(Call::rdma_bind_addr) {
        return minus(e);
    }
    // SAFETY: as the caller promises.
    let addr = unsafe { read(addr) };
    let mut w = world();
    let r = w.ids.get(id, Call::rdma_bind_addr).map(|i| i.state);
    status(r.and_then(|state| match addr {
        Some(a) if state == State::Idle => w.bind(id as usize, a),
        _ => Err(libc::EINVAL),
    }))
}

#[unsafe(export_name = "standin_rdma_resolve_addr")]
unsafe extern "C" fn rdma_resolve_addr(
    id: *mut ffi::rdma_cm_id,
    src: *mut sockaddr,
    dst: *mut sockaddr,
    timeout_ms: c_int,
) -> c_int {
    if let Some(e) = enter(Call::rdma_resolve_addr) {
        return minus(e);
    }
    // SAFETY: as the caller promises.
    let (from, to) = unsafe { (read(src), read(dst)) };
    let timeout = u64::try_from(timeout_ms).unwrap_or(0).max(1);
    let r = world().resolve_addr(id, from, to, timeout);
    status(r.and_then(|()| sync::complete(id, Call::rdma_resolve_addr)))
}

#[unsafe(export_name = "standin_rdma_resolve_route")]
unsafe extern "C" fn rdma_resolve_route(id: *mut ffi::rdma_cm_id, timeout_ms: c_int) -> c_int {
    if let Some(e) = enter(Call::rdma_resolve_route) {
        return minus(e);
    }
    let timeout = u64::try_from(timeout_ms).unwrap_or(0).max(1);
    let r = world().resolve_route(id, timeout);
    status(r.and_then(|()| sync::complete(id, Call::rdma_resolve_route)))
}

/// The port of an address of an id, in network order.
fn port(id: *mut ffi::rdma_cm_id, call: Call, local: bool) -> u16 {
    enter(call);
    let mut w = world();
    let addr = w
        .ids
        .get(id, call)
        .map(|i| if local { i.local } else { i.remote_addr });
    addr.ok().flatten().map_or(0, |a| a.port().to_be())
}

#[unsafe(export_name = "standin_rdma_get_src_port")]
unsafe extern "C" fn rdma_get_src_port(id: *mut ffi::rdma_cm_id) -> u16 {
    port(id, Call::rdma_get_src_port, true)
}

#[unsafe(export_name = "standin_rdma_get_dst_port")]
unsafe extern "C" fn rdma_get_dst_port(id: *mut ffi::rdma_cm_id) -> u16 {
    port(id, Call::rdma_get_dst_port, false)
}
