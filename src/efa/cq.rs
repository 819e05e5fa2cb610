use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use rdma_sys as ffi;

use super::{
    CqAttr, CqRing, Device, DeviceCaps, Poller,
    abi::{
        EFADV_CQ_INIT_FLAGS_EXT_MEM_DMABUF, EFADV_WC_EX_WITH_IS_UNSOLICITED, EFADV_WC_EX_WITH_SGID,
        efadv_cq, efadv_cq_init_attr, ext_mem_dmabuf,
    },
};
use crate::{
    Call, Error, Result, log_limit,
    verbs::{Acks, Completion, RawChannel, check, errno},
    wait::{Gate, Until, Waker},
};

/// What a completion queue shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CqOptions {
    /// The fewest entries, above 0. The device may give more.
    pub entries: u32,
    /// Whether there shall be events ([`Cq::arm`], [`Cq::wait`]).
    pub channel: bool,
    /// The interrupt that events come by, below the device's number of completion vectors.
    pub comp_vector: u32,
    /// Receives shall carry the GID of a sender that has no address handle here. Needs
    /// [`DeviceCaps::CQ_WITH_SGID`].
    #[doc(alias = "EFADV_WC_EX_WITH_SGID")]
    pub source_gids: bool,
    /// Completions shall say whether they are unsolicited. Needs
    /// [`DeviceCaps::UNSOLICITED_WRITE_RECV`].
    #[doc(alias = "EFADV_WC_EX_WITH_IS_UNSOLICITED")]
    pub unsolicited: bool,
}

impl CqOptions {
    /// A plain queue of at least `entries` entries without events.
    pub const fn new(entries: u32) -> Self {
        CqOptions {
            entries,
            channel: false,
            comp_vector: 0,
            source_gids: false,
            unsolicited: false,
        }
    }
}

/// Memory of the caller's for a completion queue: a piece of a dma-buf.
/// [`DeviceCaps::CQ_WITH_EXT_MEM_DMABUF`] says whether the device takes it.
#[derive(Debug, Clone, Copy)]
#[doc(alias = "EFADV_CQ_INIT_FLAGS_EXT_MEM_DMABUF")]
pub struct ExternalMemory<'fd> {
    /// Where the piece is mapped in this process; null where it is not, and then only others than
    /// this host's processors can read the queue.
    pub buffer: *mut u8,
    /// Its bytes.
    pub length: u64,
    /// Where it starts in the dma-buf, in bytes.
    pub offset: u64,
    /// The dma-buf.
    pub fd: BorrowedFd<'fd>,
}

/// A completion queue of an EFA device (`efadv_create_cq`), destroyed when dropped.
///
/// All methods take `&self`, and many threads may call them.
#[derive(Debug)]
pub struct Cq {
    raw: NonNull<ffi::ibv_cq_ex>,
    efa: NonNull<efadv_cq>,
    options: CqOptions,
    mapped: bool,
    /// All that were ever taken.
    events: AtomicU32,
    acks: Acks<64>,
    channel: Option<(RawChannel, Gate)>,
    device: Device,
}

// SAFETY: libibverbs is thread safe, and nothing of the structs is written by us.
unsafe impl Send for Cq {}
// SAFETY: as above; extended polls are locked by the provider from start to end.
unsafe impl Sync for Cq {}

impl Device {
    /// Creates a completion queue.
    ///
    /// # Errors
    /// [`Error::NotSupported`] where the device cannot do what the options ask for, and with
    /// rdma-core older than 43; [`Error::InvalidArgument`] for no entries; what the provider says
    /// (`EINVAL` for more entries than the device has).
    ///
    /// Source: `infiniband/efadv.h`, `ibv_create_cq_ex(3)`.
    #[doc(alias = "efadv_create_cq")]
    pub fn create_cq(&self, options: CqOptions) -> Result<Cq> {
        // SAFETY: no memory of the caller's.
        unsafe { Cq::create(self, options, None) }
    }

    /// Creates a completion queue in memory of the caller's.
    ///
    /// # Errors
    /// As [`create_cq`](Self::create_cq); [`Error::NotSupported`] where the device does not take
    /// external memory.
    ///
    /// # Safety
    /// `memory.buffer`, unless null, must be the mapping of that piece of the dma-buf, stay mapped
    /// until the queue is destroyed, and nobody but the device may write there.
    pub unsafe fn create_cq_in(
        &self,
        options: CqOptions,
        memory: ExternalMemory<'_>,
    ) -> Result<Cq> {
        if !self
            .attr()
            .capabilities
            .contains(DeviceCaps::CQ_WITH_EXT_MEM_DMABUF)
        {
            return Err(Error::not_supported(
                "completion queues in a dma-buf of the caller's (EFA device capability CQ_WITH_EXT_MEM_DMABUF)",
            ));
        }
        // SAFETY: the caller's word.
        unsafe { Cq::create(self, options, Some(memory)) }
    }
}

impl Cq {
    /// # Safety
    /// As for [`Device::create_cq_in`].
    unsafe fn create(
        device: &Device,
        options: CqOptions,
        memory: Option<ExternalMemory<'_>>,
    ) -> Result<Self> {
        if options.entries == 0 {
            return Err(Error::invalid(
                "entries",
                "a completion queue needs at least one",
            ));
        }
        let caps = device.attr().capabilities;
        let mut efa = efadv_cq_init_attr::default();
        if options.source_gids {
            if !caps.contains(DeviceCaps::CQ_WITH_SGID) {
                return Err(Error::not_supported(
                    "source GIDs in completions (EFA device capability CQ_WITH_SGID)",
                ));
            }
            efa.wc_flags |= EFADV_WC_EX_WITH_SGID;
        }
        if options.unsolicited {
            if !caps.contains(DeviceCaps::UNSOLICITED_WRITE_RECV) {
                return Err(Error::not_supported(
                    "unsolicited receives (EFA device capability UNSOLICITED_WRITE_RECV)",
                ));
            }
            efa.wc_flags |= EFADV_WC_EX_WITH_IS_UNSOLICITED;
        }
        if let Some(memory) = &memory {
            efa.flags |= EFADV_CQ_INIT_FLAGS_EXT_MEM_DMABUF;
            efa.ext_mem_dmabuf = ext_mem_dmabuf {
                buffer: memory.buffer,
                length: memory.length,
                offset: memory.offset,
                fd: memory.fd.as_raw_fd(),
                reserved: [0; 4],
            };
        }
        let channel = options.channel.then(|| channel(device)).transpose()?;
        let mut attr = ffi::ibv_cq_init_attr_ex {
            cqe: options.entries,
            channel: channel
                .as_ref()
                .map_or(std::ptr::null_mut(), |(channel, _)| channel.as_ptr()),
            comp_vector: options.comp_vector,
            wc_flags: u64::from(
                ffi::IBV_WC_EX_WITH_BYTE_LEN
                    | ffi::IBV_WC_EX_WITH_IMM
                    | ffi::IBV_WC_EX_WITH_QP_NUM
                    | ffi::IBV_WC_EX_WITH_SRC_QP,
            ),
            ..Default::default()
        };
        let library = device.library();
        // SAFETY: context and channel are open, the caller answers for the memory.
        let raw = unsafe { library.create_cq(device.as_raw(), &mut attr, &mut efa)? };
        // SAFETY: the library has just made this queue, on a device that is EFA.
        let efa = match unsafe { library.efa_cq(raw) } {
            Ok(efa) => efa,
            Err(err) => {
                // SAFETY: nobody else knows the queue.
                unsafe { ffi::ibv_destroy_cq(ffi::ibv_cq_ex_to_cq(raw.as_ptr())) };
                return Err(err);
            }
        };
        Ok(Cq {
            raw,
            efa,
            options,
            mapped: memory.is_none_or(|memory| !memory.buffer.is_null()),
            events: AtomicU32::new(0),
            acks: Acks::new(),
            channel,
            device: device.clone(),
        })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The options that the queue was created with.
    pub fn options(&self) -> &CqOptions {
        &self.options
    }

    /// Where the queue lies and how it is laid out.
    ///
    /// # Errors
    /// [`Error::NotSupported`] with rdma-core older than 59.
    ///
    /// Source: `efadv_query_cq(3)`.
    #[doc(alias = "efadv_query_cq")]
    pub fn attr(&self) -> Result<CqAttr> {
        // SAFETY: the queue is alive.
        unsafe { self.device.query_raw_cq(self.as_cq()) }
    }

    /// A look at the queue's entries in memory; it consumes nothing.
    ///
    /// # Errors
    /// [`Error::NotSupported`] on device 0xefa0, for a queue whose memory is not mapped, for
    /// entries of a form that is not known, and with rdma-core older than 59.
    pub fn ring(&self) -> Result<CqRing<'_>> {
        let attr = self.attr()?;
        // SAFETY: libefa's answer for this queue, which is borrowed as long as the view.
        unsafe { CqRing::from_attr(&attr, self.device.attr().vendor_part_id) }
    }

    /// A consumer of the ring in place of libibverbs. `passed` completions of this queue were
    /// consumed before by another such poller ([`Cursor::passed`](super::Cursor::passed)): 0 at
    /// first.
    ///
    /// # Errors
    /// As [`ring`](Self::ring).
    ///
    /// # Safety
    /// libibverbs keeps books about the queue and about the queue pairs that complete here: how far
    /// the queue was read, and which places of the work queues are in use. A consumer of one's own
    /// goes past these books, and libibverbs trusts them without looking: an index that it finds in
    /// an entry, it uses. So, from the creation of the first poller until the queue is destroyed:
    ///
    /// - Nothing else consumes this queue: not [`Cq::poll`], not [`Cq::poll_ex`], no `ibv_poll_cq`
    ///   or `ibv_start_poll`, no second poller, and nothing had consumed from it before. No queue
    ///   pair on it is destroyed or modified while requests of it are outstanding: libibverbs would
    ///   clean up the queue.
    /// - Who consumes also posts: requests to the queue pairs that complete here are written to
    ///   their work queues by the caller ([`Device::query_raw_qp`]), with request ids of its own
    ///   choice, never by `ibv_post_send`, `ibv_post_recv` or `ibv_wr_start`.
    /// - The queue's size is respected: no more requests are outstanding than the queue has
    ///   entries, for nothing else keeps the device from overwriting entries that were not read.
    /// - `passed` is right.
    /// - Events are asked for by [`Poller::arm`] only, not by [`Cq::arm`].
    pub unsafe fn poller(&self, passed: u64) -> Result<Poller<'_>> {
        // SAFETY: the caller's word.
        unsafe { Poller::new(self, passed) }
    }

    /// Takes completions into `buf`, and says how many; does not block.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a queue whose memory is not mapped; what the provider says.
    ///
    /// Source: `ibv_poll_cq(3)`.
    #[doc(alias = "ibv_poll_cq")]
    pub fn poll(&self, buf: &mut [Completion]) -> Result<usize> {
        self.must_be_mapped()?;
        let len = buf.len().min(i32::MAX as usize) as i32;
        // SAFETY: queue and context are alive.
        let Some(poll_cq) = (unsafe { (*(*self.as_cq()).context).ops.poll_cq }) else {
            return Err(Error::not_supported(
                "polling completion queues on this device",
            ));
        };
        // SAFETY: the queue is alive and `buf` has room for `len` completions.
        let n = unsafe { poll_cq(self.as_cq(), len, Completion::as_mut_ptr(buf)) };
        usize::try_from(n).map_err(|_| Error::provider(Call::IbvPollCq, errno(n)))
    }

    pub(super) fn must_be_mapped(&self) -> Result<()> {
        if self.mapped {
            return Ok(());
        }
        Err(Error::not_supported(
            "reading a completion queue whose memory is not mapped here",
        ))
    }

    /// Asks for an event at the next completion. Poll once more before waiting: a completion may
    /// have come in between.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a queue without completion channel; what the provider says.
    ///
    /// Source: `ibv_req_notify_cq(3)`.
    #[doc(alias = "ibv_req_notify_cq")]
    pub fn arm(&self) -> Result<()> {
        self.channel()?;
        // SAFETY: the queue is alive.
        check(Call::IbvReqNotifyCq, unsafe {
            ffi::ibv_req_notify_cq(self.as_cq(), 0)
        })
    }

    /// Takes one event if there is one; does not block. `false` where there is none.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a queue without completion channel; what `ibv_get_cq_event(3)`
    /// says.
    pub fn take_event(&self) -> Result<bool> {
        self.take_event_until(Until::Now)
    }

    /// Waits for an event and takes it. `false` when the time is over first; `None` waits for ever.
    ///
    /// # Errors
    /// As [`take_event`](Self::take_event).
    ///
    /// Source: `ibv_get_cq_event(3)`.
    #[doc(alias = "ibv_get_cq_event")]
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        self.take_event_until(timeout.map_or(Until::Forever, Until::after))
    }

    /// What ends [`wait`](Self::wait) from another thread, with [`Error::Woken`].
    ///
    /// # Errors
    /// As [`take_event`](Self::take_event).
    pub fn waker(&self) -> Result<Waker> {
        self.channel()?.1.waker()
    }

    /// The fd that is readable when an event can be taken; it is in non-blocking mode. `None` for a
    /// queue without completion channel.
    pub fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.channel.as_ref().map(|(channel, _)| channel.as_fd())
    }

    /// The queue, to create queue pairs on (`ibv_cq_ex_to_cq`). It is alive as long as this.
    pub fn as_raw(&self) -> *mut ffi::ibv_cq_ex {
        self.raw.as_ptr()
    }

    pub(super) fn as_efa(&self) -> *mut efadv_cq {
        self.efa.as_ptr()
    }

    /// How many events were ever taken, as the device counts them: from 0, wrapping.
    pub(super) fn events_taken(&self) -> u32 {
        self.events.load(Ordering::Relaxed)
    }

    fn as_cq(&self) -> *mut ffi::ibv_cq {
        // SAFETY: a cast.
        unsafe { ffi::ibv_cq_ex_to_cq(self.raw.as_ptr()) }
    }

    fn channel(&self) -> Result<&(RawChannel, Gate)> {
        self.channel.as_ref().ok_or_else(|| {
            Error::not_supported("events of a queue created without a completion channel")
        })
    }

    fn take_event_until(&self, until: Until) -> Result<bool> {
        let (channel, gate) = self.channel()?;
        let event = gate.run(channel.as_fd(), until, || {
            let event = channel.take_event()?;
            // Within the turn: whoever has the next one must know of this.
            if event.is_some() {
                self.events.fetch_add(1, Ordering::Relaxed);
            }
            Ok(event)
        })?;
        // The channel is this queue's own, so is the event.
        if event.is_some() {
            self.acks.count(|n| self.acknowledge(n));
        }
        Ok(event.is_some())
    }

    fn acknowledge(&self, n: u32) {
        // SAFETY: the queue is alive, and `n` of its events were taken and not acknowledged: each
        // was counted once.
        unsafe { ffi::ibv_ack_cq_events(self.as_cq(), n) }
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        // Destroying waits for the events that were taken; all must be acknowledged first.
        self.acks.give_back(|n| self.acknowledge(n));
        // SAFETY: this is the owner. A queue pair that still uses the queue makes the kernel refuse
        // (EBUSY): then it stays.
        let ret = unsafe { ffi::ibv_destroy_cq(self.as_cq()) };
        log_limit::log_failure(check(Call::IbvDestroyCq, ret));
    }
}

/// A completion channel of the queue's own, never blocking.
fn channel(device: &Device) -> Result<(RawChannel, Gate)> {
    Ok((RawChannel::create(device.context())?, Gate::new()))
}
