//! The shared receive queue.

use std::sync::Arc;

use crate::{
    Cq, Peer, RecvBatch, Result, cq::CompletionChannel, mr::LocalSlice, ops::ReceiveQueue,
    verbs::RawSrq,
};

/// The configuration of a shared receive queue. The defaults are librpma's.
#[derive(Debug, Clone)]
#[doc(alias = "rpma_srq_cfg")]
#[doc(alias = "rpma_srq_cfg_delete")]
pub struct SrqCfg {
    size: u32,
    rcq_size: u32,
    max_sge: u32,
    comp_vector: u32,
}

impl Default for SrqCfg {
    fn default() -> Self {
        SrqCfg {
            size: 20,
            rcq_size: 20,
            max_sge: 1,
            comp_vector: 0,
        }
    }
}

impl SrqCfg {
    /// The defaults.
    #[doc(alias = "rpma_srq_cfg_new")]
    pub fn new() -> Self {
        SrqCfg::default()
    }

    /// The number of receives that the queue can hold. Default: 20.
    #[doc(alias = "rpma_srq_cfg_set_rq_size")]
    pub fn size(mut self, entries: u32) -> Self {
        self.size = entries;
        self
    }

    /// The least number of entries of the queue's completion queue; 0 for none: each connection's
    /// receives then complete on that connection's own. Default: 20. It is made larger where it
    /// must be to hold all receives of the queue.
    #[doc(alias = "rpma_srq_cfg_set_rcq_size")]
    pub fn rcq_size(mut self, entries: u32) -> Self {
        self.rcq_size = entries;
        self
    }

    /// The number of slices that one receive may be spread over. Default: 1; at most 16.
    pub fn max_sge(mut self, elements: u32) -> Self {
        self.max_sge = elements;
        self
    }

    /// The completion vector of the queue's completion queue. Default: 0.
    pub fn comp_vector(mut self, vector: u32) -> Self {
        self.comp_vector = vector;
        self
    }

    /// The number that [`size`](Self::size) set.
    #[doc(alias = "rpma_srq_cfg_get_rq_size")]
    pub fn size_value(&self) -> u32 {
        self.size
    }

    /// The number that [`rcq_size`](Self::rcq_size) set.
    #[doc(alias = "rpma_srq_cfg_get_rcq_size")]
    pub fn rcq_size_value(&self) -> u32 {
        self.rcq_size
    }
}

/// A shared receive queue: receives posted here are taken by whichever of its connections a message
/// comes in on.
///
/// Connections get it by [`ConnCfg::srq`](crate::ConnCfg::srq) and keep it alive. This is a handle:
/// clones are the same queue. Its methods may be called by several threads at once.
#[derive(Debug, Clone)]
#[doc(alias = "rpma_srq")]
#[doc(alias = "rpma_srq_delete")]
pub struct Srq {
    inner: Arc<Inner>,
}

// The order of the fields is the order in which they go.
#[derive(Debug)]
struct Inner {
    raw: RawSrq,
    receives: ReceiveQueue,
    rcq: Option<Cq>,
    peer: Peer,
}

impl Srq {
    /// A shared receive queue of `peer`.
    ///
    /// # Errors
    /// [`Error::NotSupported`](crate::Error::NotSupported) where the device has none,
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a size of 0,
    /// [`Error::AboveLimit`](crate::Error::AboveLimit), and what `ibv_create_srq(3)` says.
    #[doc(alias = "rpma_srq_new")]
    pub fn new(peer: &Peer, cfg: &SrqCfg) -> Result<Self> {
        if cfg.size == 0 {
            return Err(crate::Error::invalid(
                "size",
                "a shared receive queue needs an entry",
            ));
        }
        if cfg.max_sge == 0 || cfg.max_sge > crate::ops::MAX_SGE as u32 {
            return Err(crate::Error::invalid("max_sge", "not within 1..=16"));
        }
        let caps = peer.capabilities();
        for (argument, value, limit) in [
            ("size", cfg.size, caps.max_srq_depth),
            ("rcq_size", cfg.rcq_size, caps.max_cq_entries),
            (
                "comp_vector",
                cfg.comp_vector,
                caps.completion_vectors.saturating_sub(1),
            ),
        ] {
            crate::Error::above_limit(argument, value, limit)?;
        }
        let raw = RawSrq::create(peer.pd(), cfg.size, cfg.max_sge)?;
        let (depth, max_sge) = raw.granted();
        let receives = ReceiveQueue::new(
            peer.tag(),
            max_sge,
            caps.max_message_size,
            caps.transport.is_iwarp(),
            depth,
        );
        let rcq = match cfg.rcq_size {
            0 => None,
            size => {
                let context = peer.pd().context();
                let channel = CompletionChannel::create(context)?;
                let entries = size.max(depth);
                Some(Cq::create(
                    context,
                    entries,
                    channel,
                    false,
                    cfg.comp_vector,
                    false,
                )?)
            }
        };
        Ok(Srq {
            inner: Arc::new(Inner {
                raw,
                receives,
                rcq,
                peer: peer.clone(),
            }),
        })
    }

    pub(crate) fn raw(&self) -> &RawSrq {
        &self.inner.raw
    }

    /// The peer that it belongs to.
    pub fn peer(&self) -> &Peer {
        &self.inner.peer
    }

    /// The completion queue of its receives, where it has one.
    #[doc(alias = "rpma_srq_get_rcq")]
    pub fn rcq(&self) -> Option<&Cq> {
        self.inner.rcq.as_ref()
    }

    /// The number of receives that it can hold.
    pub fn depth(&self) -> u32 {
        self.inner.receives.depth()
    }

    /// Posts a receive into `dst`, which must be registered for
    /// [`Usage::RECV`](crate::Usage::RECV); an empty slice takes messages of no bytes. The
    /// completion carries `wr_id`.
    ///
    /// # Errors
    /// As [`Connection::recv`](crate::Connection::recv).
    ///
    /// Source: `ibv_post_srq_recv(3)`.
    #[doc(alias = "rpma_srq_recv")]
    #[inline]
    pub fn recv(&self, dst: &LocalSlice<'_>, wr_id: u64) -> Result<()> {
        let inner = &*self.inner;
        inner.receives.recv_one(&inner.raw, dst, wr_id)
    }

    /// The queue, for quick receives of the C interface.
    #[inline(always)]
    pub(crate) fn queue(&self) -> (&RawSrq, &ReceiveQueue) {
        (&self.inner.raw, &self.inner.receives)
    }

    /// Posts a receive that is spread over several slices.
    pub fn recv_scatter(&self, dst: &[LocalSlice<'_>], wr_id: u64) -> Result<()> {
        let inner = &*self.inner;
        inner.receives.recv(&inner.raw, dst, wr_id)
    }

    /// Receives to be posted in one call.
    pub fn recv_batch(&self) -> RecvBatch<'_> {
        RecvBatch::new(&self.inner.raw, &self.inner.receives)
    }

    /// Asks for the asynchronous event
    /// [`AsyncEventKind::SRQ_LIMIT_REACHED`](crate::AsyncEventKind::SRQ_LIMIT_REACHED) once fewer
    /// than `limit` receives are left (`ibv_modify_srq(3)`); 0 takes the request back.
    pub fn arm_limit(&self, limit: u32) -> Result<()> {
        self.inner.raw.arm_limit(limit)
    }
}
