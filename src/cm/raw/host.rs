//! Hosts, by name or by address, and the addresses that they have.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::mpsc::{RecvTimeoutError, sync_channel},
    time::Duration,
};

use super::{self as raw, Address};
use crate::{Call, Error, Result, wait::Until};

/// A host: its name or address as text, an [`IpAddr`], or a [`SocketAddr`], whose port is not used.
/// Only text is ever resolved by name. The link-local addresses of IPv6 need a zone: "fe80::1%eth0"
/// as text, or a `SocketAddrV6` with its scope.
pub trait Host: sealed::Host {}

impl<H: sealed::Host> Host for H {}

mod sealed {
    pub trait Host {
        fn target(&self) -> super::Target<'_>;
    }
}

/// What is to be reached or listened on.
#[derive(Clone, Copy)]
pub enum Target<'a> {
    Name(&'a str, Option<&'a str>),
    Addr(SocketAddr),
}

impl sealed::Host for &str {
    fn target(&self) -> Target<'_> {
        Target::Name(self, None)
    }
}

impl sealed::Host for &String {
    fn target(&self) -> Target<'_> {
        Target::Name(self, None)
    }
}

impl sealed::Host for IpAddr {
    fn target(&self) -> Target<'_> {
        Target::Addr(SocketAddr::new(*self, 0))
    }
}

impl sealed::Host for SocketAddr {
    fn target(&self) -> Target<'_> {
        let mut addr = *self;
        addr.set_port(0);
        Target::Addr(addr)
    }
}

/// The host as an error names it.
impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Name(node, _) => f.write_str(node),
            Target::Addr(addr) => write!(f, "{}", addr.ip()),
        }
    }
}

impl Target<'_> {
    /// All addresses of the target, within the time given, of which errors say that it was `time`.
    pub(crate) fn addresses(
        self,
        passive: bool,
        until: Until,
        time: Duration,
    ) -> Result<Vec<Address>> {
        let (node, service) = match self {
            Target::Addr(addr) => return Ok(vec![addr.into()]),
            Target::Name(node, service) => (node, service),
        };
        let port = service.map_or(Ok(Some(0)), port_number)?;
        if let (Ok(ip), Some(port)) = (node.parse::<IpAddr>(), port) {
            return Ok(vec![SocketAddr::new(ip, port).into()]);
        }
        if matches!(until, Until::Forever) {
            return raw::resolve(node, service, passive);
        }
        let (node, service) = (node.to_owned(), service.map(str::to_owned));
        within(until, time, move || {
            raw::resolve(&node, service.as_deref(), passive)
        })
    }
}

/// What `resolve` finds within the time given. It has no time limit of its own, so it runs on a
/// thread, which owns all that it needs and outlives a caller that gives up.
fn within(
    until: Until,
    time: Duration,
    resolve: impl FnOnce() -> Result<Vec<Address>> + Send + 'static,
) -> Result<Vec<Address>> {
    let timed_out = Error::TimedOut {
        call: Call::NameResolution,
        after: time,
    };
    if until.is_over() {
        return Err(timed_out);
    }
    let (answer, wait) = sync_channel(1);
    std::thread::Builder::new()
        .name("rpma-resolve".to_owned())
        .spawn(move || {
            raw::block_signals();
            let _ = answer.send(resolve());
        })
        .map_err(|err| Error::provider(Call::PthreadCreate, err.raw_os_error().unwrap_or(0)))?;
    wait.recv_timeout(until.left_or(time))
        .unwrap_or_else(|err| match err {
            RecvTimeoutError::Timeout => Err(timed_out),
            RecvTimeoutError::Disconnected => Err(Error::provider(Call::Getaddrinfo, libc::EIO)),
        })
}

/// An address for people to read.
pub(crate) struct OrUnknown(pub(crate) Option<SocketAddr>);

impl fmt::Display for OrUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(addr) => addr.fmt(f),
            None => f.write_str("unknown"),
        }
    }
}

/// The port that `service` is the number of; `None` where it may be a name.
///
/// `getaddrinfo(3)` cuts numbers to 16 bits, takes signs and blanks before them, and nothing at all
/// as 0.
fn port_number(service: &str) -> Result<Option<u16>> {
    if let (Ok(port), false) = (service.parse(), service.starts_with('+')) {
        return Ok(Some(port));
    }
    let digits = service.trim_start().trim_start_matches(['+', '-']);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(raw::no_service());
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
