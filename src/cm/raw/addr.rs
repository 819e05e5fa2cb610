//! Names and addresses.

use std::{
    ffi::{CStr, CString},
    fmt,
    net::{SocketAddr, SocketAddrV4, SocketAddrV6},
    ptr::NonNull,
    time::Duration,
};

use super::{Id, Target, signals::HeldSignals};
use crate::{
    Call, Error, Result,
    verbs::{Context, no_device},
    wait::Until,
};

/// A socket address as the C interfaces take it.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    storage: libc::sockaddr_storage,
}

impl From<SocketAddr> for Address {
    fn from(addr: SocketAddr) -> Self {
        // SAFETY: the storage is larger than both kinds, aligned for them, and valid when zeroed.
        unsafe {
            let mut storage: libc::sockaddr_storage = std::mem::zeroed();
            match addr {
                SocketAddr::V4(addr) => {
                    (&raw mut storage)
                        .cast::<libc::sockaddr_in>()
                        .write(libc::sockaddr_in {
                            sin_family: libc::AF_INET as libc::sa_family_t,
                            sin_port: addr.port().to_be(),
                            sin_addr: libc::in_addr {
                                s_addr: u32::from(*addr.ip()).to_be(),
                            },
                            sin_zero: [0; 8],
                        });
                }
                SocketAddr::V6(addr) => {
                    (&raw mut storage)
                        .cast::<libc::sockaddr_in6>()
                        .write(libc::sockaddr_in6 {
                            sin6_family: libc::AF_INET6 as libc::sa_family_t,
                            sin6_port: addr.port().to_be(),
                            sin6_flowinfo: addr.flowinfo(),
                            sin6_addr: libc::in6_addr {
                                s6_addr: addr.ip().octets(),
                            },
                            sin6_scope_id: addr.scope_id(),
                        });
                }
            }
            Address { storage }
        }
    }
}

impl Address {
    /// # Safety
    /// `raw` must be null or a valid socket address of the length that its family has.
    pub(crate) unsafe fn read(raw: *const libc::sockaddr) -> Option<Self> {
        // SAFETY: the caller's word; the storage is larger than both kinds and valid when zeroed.
        unsafe {
            let raw = NonNull::new(raw.cast_mut())?;
            let len = match i32::from((*raw.as_ptr()).sa_family) {
                libc::AF_INET => size_of::<libc::sockaddr_in>(),
                libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
                _ => return None,
            };
            let mut storage: libc::sockaddr_storage = std::mem::zeroed();
            std::ptr::copy_nonoverlapping(
                raw.as_ptr().cast::<u8>(),
                (&raw mut storage).cast::<u8>(),
                len,
            );
            Some(Address { storage })
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut libc::sockaddr {
        (&raw const self.storage).cast_mut().cast()
    }

    pub(crate) fn family(&self) -> i32 {
        i32::from(self.storage.ss_family)
    }

    pub(crate) fn to_std(self) -> Option<SocketAddr> {
        match self.family() {
            libc::AF_INET => {
                // SAFETY: the family says what the storage holds.
                let sin = unsafe { *(&raw const self.storage).cast::<libc::sockaddr_in>() };
                let ip = u32::from_be(sin.sin_addr.s_addr).into();
                Some(SocketAddrV4::new(ip, u16::from_be(sin.sin_port)).into())
            }
            libc::AF_INET6 => {
                // SAFETY: the family says what the storage holds.
                let sin6 = unsafe { *(&raw const self.storage).cast::<libc::sockaddr_in6>() };
                Some(
                    SocketAddrV6::new(
                        sin6.sin6_addr.s6_addr.into(),
                        u16::from_be(sin6.sin6_port),
                        sin6.sin6_flowinfo,
                        sin6.sin6_scope_id,
                    )
                    .into(),
                )
            }
            _ => None,
        }
    }

    /// The same address with port 0.
    pub(crate) fn without_port(mut self) -> Self {
        match self.family() {
            libc::AF_INET => {
                // SAFETY: the family says what the storage holds.
                unsafe { (*(&raw mut self.storage).cast::<libc::sockaddr_in>()).sin_port = 0 }
            }
            libc::AF_INET6 => {
                // SAFETY: the family says what the storage holds.
                unsafe { (*(&raw mut self.storage).cast::<libc::sockaddr_in6>()).sin6_port = 0 }
            }
            _ => {}
        }
        self
    }

    /// Is it one of "any address", which names no device?
    pub(crate) fn is_unspecified(&self) -> bool {
        self.to_std().is_some_and(|addr| addr.ip().is_unspecified())
    }

    /// Refuses a link-local IPv6 address that does not say of which interface.
    pub(crate) fn check_zone(&self) -> Result<()> {
        match self.to_std() {
            Some(SocketAddr::V6(addr))
                if addr.scope_id() == 0 && addr.ip().is_unicast_link_local() =>
            {
                Err(Error::invalid(
                    "address",
                    "the zone is missing: a link-local IPv6 address is one of an interface, as in fe80::1%eth0",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what no route can lead to. The kernel would look for a loopback address on the
    /// network, until its time is over.
    pub(crate) fn check_remote(&self) -> Result<()> {
        self.check_zone()?;
        match self.to_std().map(|addr| addr.ip().to_canonical()) {
            Some(ip) if ip.is_loopback() => {
                let id = Id::create_synchronous()?;
                // The kernel binds to one without a device, too.
                let bound = id.bind(&self.without_port());
                let with_device = bound.and_then(|()| id.into_context().map(drop));
                with_device.map_err(|err| match err {
                    Error::Provider { source, .. } => no_device(ip.to_string(), source),
                    err => err,
                })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_std() {
            Some(addr) => addr.fmt(f),
            None => write!(f, "address of family {}", self.family()),
        }
    }
}

/// All addresses of a name, in the resolver's order (`getaddrinfo(3)`), each once.
pub(crate) fn resolve(node: &str, service: Option<&str>, passive: bool) -> Result<Vec<Address>> {
    let failed = |reason: String| Error::Resolve {
        node: node.to_owned(),
        service: service.unwrap_or("").to_owned(),
        reason,
    };
    let c_node = CString::new(node).map_err(|_| failed("the name has a NUL byte".to_owned()))?;
    let c_service = service.map(CString::new).transpose();
    let c_service = c_service.map_err(|_| no_service())?;
    // SAFETY: all-zero hints are valid: null pointers and "any".
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_socktype = libc::SOCK_STREAM;
    if passive {
        hints.ai_flags = libc::AI_PASSIVE;
    }
    let mut list = std::ptr::null_mut();
    // SAFETY: the strings are NUL-terminated and live through the call; a null service is allowed.
    let ret = unsafe {
        libc::getaddrinfo(
            c_node.as_ptr(),
            c_service
                .as_ref()
                .map_or(std::ptr::null(), |service| service.as_ptr()),
            &hints,
            &mut list,
        )
    };
    if ret == libc::EAI_SERVICE {
        return Err(no_service());
    }
    if ret == libc::EAI_SYSTEM {
        return Err(failed(std::io::Error::last_os_error().to_string()));
    }
    if ret != 0 {
        // SAFETY: the function gives a static string for any number.
        let text = unsafe { CStr::from_ptr(libc::gai_strerror(ret)) };
        return Err(failed(text.to_string_lossy().into_owned()));
    }
    let mut addresses: Vec<Address> = Vec::new();
    let mut next = list;
    // SAFETY: the list is the resolver's, and freed once, after the last look at it.
    unsafe {
        while let Some(info) = next.as_ref() {
            if let Some(address) = Address::read(info.ai_addr) {
                if !addresses
                    .iter()
                    .any(|known| known.to_std() == address.to_std())
                {
                    addresses.push(address);
                }
            }
            next = info.ai_next;
        }
        libc::freeaddrinfo(list);
    }
    if addresses.is_empty() {
        return Err(failed("the name has no IPv4 or IPv6 address".to_owned()));
    }
    Ok(addresses)
}

pub(crate) fn no_service() -> Error {
    Error::invalid(
        "service",
        "neither the name of a service nor a port number from 0 to 65535",
    )
}

/// The device that owns the local address `host`, kept open by an id bound to it; with the address
/// and the port number.
pub(crate) fn bound_context(host: Target<'_>) -> Result<(Context, u8, Address)> {
    let addresses = host.addresses(true, Until::Forever, Duration::ZERO)?;
    first_context(host, &addresses, |id, address, _| {
        if address.is_unspecified() {
            return Err(Error::invalid(
                "address",
                "the unspecified address belongs to no device",
            ));
        }
        address.check_zone()?;
        id.bind(address)
    })
}

/// The device over which the remote address `host` is reached, kept open by an id that is resolved
/// to it.
pub(crate) fn resolved_context(
    host: Target<'_>,
    timeout: Duration,
) -> Result<(Context, u8, Address)> {
    let deadline = Until::after(timeout);
    let addresses = host.addresses(false, deadline, timeout)?;
    first_context(host, &addresses, |id, address, of| {
        address.check_remote()?;
        // The library waits in read(2) for the kernel.
        let _held = HeldSignals::hold();
        match id.resolve_addr(None, address, deadline.share(of).left_or(timeout)) {
            Err(err) if err.raw_os_error() == Some(libc::ETIMEDOUT) => Err(Error::TimedOut {
                call: Call::AddressResolution,
                after: timeout,
            }),
            other => other,
        }
    })
}

/// The device of the first of `addresses` that `lead` leads to one; it is told how many are left.
fn first_context(
    host: Target<'_>,
    addresses: &[Address],
    lead: impl Fn(&Id, &Address, usize) -> Result<()>,
) -> Result<(Context, u8, Address)> {
    let mut last = None;
    for (n, address) in addresses.iter().enumerate() {
        let attempt = Id::create_synchronous().and_then(|id| {
            lead(&id, address, addresses.len() - n)?;
            id.into_context()
                .map(|(context, port)| (context, port, address.without_port()))
        });
        match attempt {
            Ok(found) => return Ok(found),
            Err(err) => last = Some(err),
        }
    }
    let no_device = |source| no_device(host.to_string(), source);
    Err(match last {
        Some(Error::Provider {
            call: Call::RdmaBindAddr | Call::RdmaResolveAddr,
            source,
        }) => no_device(source),
        // The address has no device, or the library finds none at all on this machine.
        Some(Error::Provider {
            call: Call::RdmaCreateId,
            source,
        }) if matches!(source.raw_os_error(), Some(libc::ENODEV | libc::ENOENT)) => {
            no_device(source)
        }
        Some(err) => err,
        None => Error::invalid("address", "resolves to nothing"),
    })
}

#[cfg(test)]
mod tests;
