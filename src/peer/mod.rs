//! A local device with a protection domain, on which everything else is made.

mod capabilities;
mod devices;
mod events;
mod info;

use std::{
    fmt,
    os::fd::BorrowedFd,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use crate::{
    Error, Host, LocalRegion, Memory, Result, Usage,
    cm::raw::{Address, bound_context, context_by_name, resolved_context},
    mr::{AccessEnv, FlushMethods},
    verbs::{self, Context, Mr, Pd},
};

pub use capabilities::{Capabilities, OdpCapabilities};
pub use devices::devices;
pub use events::AsyncEvents;
pub use info::{DeviceInfo, Gid, PortInfo};

/// A local RDMA device with a protection domain on it: regions, connections, endpoints and shared
/// receive queues are made on it, and go together only when they are of the same one.
///
/// This is a handle: clones are the same peer, and everything made on it keeps it alive.
#[derive(Clone)]
#[doc(alias = "rpma_peer")]
#[doc(alias = "rpma_peer_delete")]
pub struct Peer {
    inner: Arc<Inner>,
}

// The order of the fields is the order in which they go.
struct Inner {
    scratch: OnceLock<LocalRegion>,
    pd: Arc<Pd>,
    capabilities: Capabilities,
    max_inline: OnceLock<u32>,
    tag: u32,
    port: u8,
    source: Option<Address>,
}

impl Peer {
    /// The device that owns the local address `address`: a name or an address as text, an
    /// [`IpAddr`](std::net::IpAddr) or a [`SocketAddr`](std::net::SocketAddr).
    ///
    /// # Errors
    /// [`Error::NoDevice`] where no RDMA device has the address, as seldom one has 127.0.0.1;
    /// [`Error::Resolve`] for a name that is none.
    ///
    /// Source: `rdma_bind_addr(3)`.
    #[doc(alias = "rpma_peer_new")]
    #[doc(alias = "rpma_utils_get_ibv_context")]
    #[doc(alias = "RPMA_UTIL_IBV_CONTEXT_LOCAL")]
    pub fn local<H: Host>(address: H) -> Result<Self> {
        let (context, port, source) = bound_context(address.target())?;
        Peer::on(context, port, Some(source))
    }

    /// The device over which the remote address `address` is reached; as
    /// [`remote_timeout`](Self::remote_timeout) within 1 s.
    #[doc(alias = "RPMA_UTIL_IBV_CONTEXT_REMOTE")]
    pub fn remote<H: Host>(address: H) -> Result<Self> {
        Peer::remote_timeout(address, Duration::from_secs(1))
    }

    /// The device over which the remote address `address` is reached.
    ///
    /// This blocks until the name and its addresses are resolved, for `timeout` at most. Signals to
    /// the thread wait meanwhile, but for SIGHUP, SIGINT, SIGQUIT and SIGTERM.
    ///
    /// # Errors
    /// As [`local`](Self::local), and [`Error::TimedOut`].
    ///
    /// Source: `rdma_resolve_addr(3)`.
    pub fn remote_timeout<H: Host>(address: H, timeout: Duration) -> Result<Self> {
        let (context, port, _) = resolved_context(address.target(), timeout)?;
        Peer::on(context, port, None)
    }

    /// The device called `name`, such as "mlx5_0"; see [`devices`](crate::devices). Limits are
    /// those of its first port.
    ///
    /// # Errors
    /// [`Error::NoDevice`] where no device that librdmacm has is called so.
    ///
    /// Source: `rdma_get_devices(3)`.
    pub fn device(name: &str) -> Result<Self> {
        Peer::on(context_by_name(name)?, 1, None)
    }

    pub(crate) fn on(context: Context, port: u8, source: Option<Address>) -> Result<Self> {
        let capabilities = Capabilities::of(&context, port)?;
        let pd = Arc::new(Pd::alloc(Arc::new(context))?);
        let peer = Peer {
            inner: Arc::new(Inner {
                scratch: OnceLock::new(),
                pd,
                capabilities,
                max_inline: OnceLock::new(),
                tag: NEXT_TAG.fetch_add(1, Ordering::Relaxed),
                port,
                source,
            }),
        };
        log::debug!(target: "rpma", "peer on {peer:?}");
        Ok(peer)
    }

    /// What the device can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.inner.capabilities
    }

    /// What the device and its ports say of themselves now.
    ///
    /// # Errors
    /// What `ibv_query_device_ex(3)` and `ibv_query_port(3)` say.
    pub fn device_info(&self) -> Result<DeviceInfo> {
        DeviceInfo::of(self.inner.pd.context())
    }

    /// The device's name, such as "mlx5_0".
    pub fn device_name(&self) -> String {
        self.inner.pd.context().device_name()
    }

    /// The number of the device's port that the peer's address is on.
    pub fn port(&self) -> u8 {
        self.inner.port
    }

    /// The most inline data, in bytes, that a small queue pair gets on this device; found by trying
    /// on the first call, and remembered.
    ///
    /// # Errors
    /// What `ibv_create_cq(3)` says.
    pub fn max_inline(&self) -> Result<u32> {
        if let Some(bytes) = self.inner.max_inline.get() {
            return Ok(*bytes);
        }
        let bytes = verbs::max_inline(&self.inner.pd)?;
        Ok(*self.inner.max_inline.get_or_init(|| bytes))
    }

    /// Registers memory for what `usage` says: from then on the device, and with the region's
    /// descriptor a remote peer, can reach it. The region owns the memory.
    ///
    /// Memory that cannot be pinned (a DAX file system's, a writable shared mapping of an ordinary
    /// file) is registered for on-demand paging where the device has it. Memory for which the
    /// device refuses native persistent flush is registered without it, and flushed by reading.
    ///
    /// This blocks while the kernel pins the pages. It may be called by several threads at once.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an empty usage or memory that cannot be written to where the
    /// usage needs it; [`Error::OutOfMemory`] where the limit of locked memory is too low
    /// (`ulimit -l`); what `ibv_reg_mr(3)` says.
    #[doc(alias = "rpma_mr_reg")]
    #[doc(alias = "ibv_reg_mr")]
    pub fn register(&self, memory: Memory, usage: Usage) -> Result<LocalRegion> {
        self.try_register(memory, usage).map_err(|(_, err)| err)
    }

    /// As [`register`](Self::register), but gives the memory back where it fails.
    #[allow(clippy::result_large_err)]
    pub fn try_register(
        &self,
        memory: Memory,
        usage: Usage,
    ) -> std::result::Result<LocalRegion, (Memory, Error)> {
        if let Err(err) = usage.check_memory(&memory) {
            return Err((memory, err));
        }
        match self.register_ladder(usage, |access| {
            Mr::of_memory(&self.inner.pd, &memory, access)
        }) {
            Ok((mr, access)) => Ok(LocalRegion::new(mr, memory, usage, self.inner.tag, access)),
            Err(err) => Err((memory, err)),
        }
    }

    /// Registers `len` bytes at `offset` of a dma-buf, such as memory of a GPU
    /// (`ibv_reg_dmabuf_mr(3)`). Remote peers see the region at the address `iova`.
    ///
    /// The bytes cannot be reached by the CPU through the region.
    ///
    /// # Errors
    /// [`Error::NotSupported`] where the device or its driver has no dma-buf registration.
    #[doc(alias = "ibv_reg_dmabuf_mr")]
    pub fn register_dmabuf(
        &self,
        fd: BorrowedFd<'_>,
        offset: u64,
        len: usize,
        iova: u64,
        usage: Usage,
    ) -> Result<LocalRegion> {
        usage.check_device_only(len, iova)?;
        // Its driver has none, and short messages from what only a device reaches could not be
        // copied (see `Workarounds`).
        if self.inner.capabilities.is_soft_iwarp() {
            return Err(Error::not_supported("dma-buf registration on soft-iWARP"));
        }
        let pd = &self.inner.pd;
        let (mr, access) = self
            .register_ladder(usage, |access| {
                Mr::register_dmabuf(pd, offset, len, iova, fd, access)
            })
            .map_err(|err| match err.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EPROTONOSUPPORT) => {
                    Error::not_supported("dma-buf registration on this device")
                }
                _ => err,
            })?;
        Ok(LocalRegion::at(
            (iova, len as u64),
            mr,
            Memory::nothing(),
            usage,
            self.inner.tag,
            access,
        ))
    }

    /// Tries the rights that `usage` needs, then fewer, as the device answers; gives those that it
    /// granted.
    fn register_ladder(
        &self,
        usage: Usage,
        register: impl Fn(u32) -> Result<Mr>,
    ) -> Result<(Mr, u32)> {
        let caps = &self.inner.capabilities;
        let mut env = AccessEnv {
            iwarp: caps.transport.is_iwarp(),
            native_visibility: caps.native_flush_visibility,
            native_persistent: caps.native_flush_persistent,
            on_demand: false,
        };
        loop {
            let access = usage.access(env);
            let methods = FlushMethods::from_access(access);
            let err = match register(access) {
                Ok(mr) => {
                    if env.on_demand {
                        log::warn!(target: "rpma", "memory that cannot be pinned is registered for on-demand paging");
                    }
                    return Ok((mr, access));
                }
                Err(err) => err,
            };
            let persistent = methods.contains(FlushMethods::NATIVE_PERSISTENT);
            match err.raw_os_error() {
                // The memory is not persistent, as the device sees it.
                Some(libc::EINVAL) if persistent => env.native_persistent = false,
                // The pages cannot be pinned.
                Some(libc::EOPNOTSUPP | libc::EFAULT) if caps.trusts_odp() && !env.on_demand => {
                    env.on_demand = true;
                    env.native_persistent = caps.native_flush_persistent;
                }
                Some(libc::EOPNOTSUPP | libc::EFAULT) if caps.odp.supported && !env.on_demand => {
                    return Err(Error::not_supported(
                        "memory that cannot be pinned, on Soft-RoCE: its driver misplaces data in memory that is registered for on-demand paging",
                    ));
                }
                _ => return Err(err),
            }
            log::debug!(target: "rpma", "{err}; trying again with {env:?}");
        }
    }

    /// The asynchronous events of the device.
    pub fn async_events(&self) -> AsyncEvents {
        AsyncEvents::new(self.inner.pd.context().clone())
    }

    pub(crate) fn pd(&self) -> &Arc<Pd> {
        &self.inner.pd
    }

    /// The number that the peer's regions and connections recognise each other by.
    pub(crate) fn tag(&self) -> u32 {
        self.inner.tag
    }

    /// The local address that the peer was made for, without a port.
    pub(crate) fn source(&self) -> Option<&Address> {
        self.inner.source.as_ref()
    }

    /// Where flushes by read put what they read: one region for all connections, since nobody looks
    /// at it.
    pub(crate) fn scratch(&self) -> Result<LocalRegion> {
        if let Some(region) = self.inner.scratch.get() {
            return Ok(region.clone());
        }
        // Two threads may both register one; the loser's is dropped when the cell is no longer
        // borrowed.
        let region = self.register(Memory::anonymous(1)?, Usage::READ_DST)?;
        Ok(self.inner.scratch.get_or_init(|| region).clone())
    }
}

/// Tags are never given twice within a process, or only after four billion peers.
static NEXT_TAG: AtomicU32 = AtomicU32::new(1);

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peer({} port {})", self.device_name(), self.port())
    }
}
