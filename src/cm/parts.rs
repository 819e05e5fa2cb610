//! What a connection is made of, and how it is made: the completion queues, then the queue pair
//! that completes on them.

use std::sync::OnceLock;

use rdma_sys as ffi;

use super::{
    conn_cfg::ConnCfg,
    raw::{Id, QpRequest},
};
use crate::{
    Call, Cq, Error, LocalRegion, Peer, Result, Srq,
    cq::CompletionChannel,
    ops::{Features, Qp, QpParts},
    verbs::{RawQp, SHORT, Workarounds},
};

/// What a request and the connection that it becomes hold. The order of the fields is the order in
/// which they go: the queue pair (with its id) before the queues that it completes on and the
/// memory that it reads into.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) qp: Qp,
    pub(super) id: Id,
    pub(super) rcq: Option<Cq>,
    pub(super) cq: Cq,
    pub(super) srq: Option<Srq>,
    pub(super) private_data: OnceLock<Box<[u8]>>,
    _scratch: LocalRegion,
    pub(super) peer: Peer,
}

impl Parts {
    /// The queues of a connection on `id`; on failure gives the id back.
    #[allow(clippy::result_large_err)]
    pub(super) fn create(
        peer: &Peer,
        mut id: Id,
        cfg: &ConnCfg,
        private_data: Option<Box<[u8]>>,
    ) -> std::result::Result<Self, (Id, Error)> {
        let made = (|| {
            if cfg
                .srq
                .as_ref()
                .is_some_and(|srq| srq.peer().tag() != peer.tag())
            {
                return Err(Error::invalid(
                    "srq",
                    "belongs to another Peer than the connection",
                ));
            }
            let scratch = peer.scratch()?;
            let slice = scratch.slice(0..1)?.sge;
            let context = peer.pd().context();
            let max_message = context.max_message_size(id.port().max(1))?;
            let queues = Queues::create(peer, &mut id, cfg)?;
            Ok((scratch, slice, max_message, queues))
        })();
        let (scratch, slice, max_message, queues) = match made {
            Ok(made) => made,
            Err(err) => return Err((id, err)),
        };
        let parts = QpParts {
            qp: queues.qp,
            cap: queues.cap,
            features: queues.features,
            flush_method: cfg.flush_method,
            pd_tag: peer.tag(),
            max_message,
            scratch: slice,
            workarounds: workarounds(peer, cfg),
            has_srq: cfg.srq.is_some(),
            iwarp: peer.capabilities().transport.is_iwarp(),
        };
        let data = OnceLock::new();
        if let Some(private_data) = private_data {
            let _ = data.set(private_data);
        }
        Ok(Parts {
            qp: Qp::new(parts),
            id,
            rcq: queues.rcq,
            cq: queues.cq,
            srq: cfg.srq.clone(),
            private_data: data,
            _scratch: scratch,
            peer: peer.clone(),
        })
    }

    pub(super) fn iwarp(&self) -> bool {
        self.peer.capabilities().transport.is_iwarp()
    }

    /// Gives everything back and reports what was refused.
    pub(super) fn close(self) -> Result<()> {
        let Parts {
            qp,
            id,
            rcq,
            cq,
            srq,
            private_data: _,
            _scratch,
            peer: _,
        } = self;
        drop(qp);
        let result = id.destroy();
        drop((rcq, cq, srq));
        result
    }
}

/// A queue pair with the queues that it completes on.
struct Queues {
    qp: RawQp,
    cap: ffi::ibv_qp_cap,
    features: Features,
    rcq: Option<Cq>,
    cq: Cq,
}

impl Queues {
    fn create(peer: &Peer, id: &mut Id, cfg: &ConnCfg) -> Result<Self> {
        let own_srq_cq = cfg.srq.as_ref().is_some_and(|srq| srq.rcq().is_some());
        let receives = cfg.srq.as_ref().map_or(cfg.rq_size, Srq::depth);
        let separate = cfg.rcq_size > 0 && !own_srq_cq;
        // What can be outstanding; at first as asked for, then, where the device granted longer
        // queues, as granted.
        let mut sends = send_queue(peer, cfg);
        let mut receives = receives;
        for last in [false, true] {
            let on_cq = sends.saturating_add(if separate || own_srq_cq { 0 } else { receives });
            let cq_size = cfg.cq_size.max(on_cq);
            let rcq_size = separate.then(|| cfg.rcq_size.max(receives));
            let (cq, rcq) = create_cqs(peer, cfg, cq_size, rcq_size)?;
            let (qp, cap, features) = create_qp(peer, id, cfg, &cq, rcq.as_ref())?;
            let granted = match cfg.srq {
                Some(_) => receives,
                None => cap.max_recv_wr.max(receives),
            };
            let full = cap.max_send_wr.max(sends);
            let fits = if separate || own_srq_cq {
                cq.entries() >= full && rcq.as_ref().is_none_or(|rcq| rcq.entries() >= granted)
            } else {
                cq.entries() >= full.saturating_add(granted)
            };
            if fits || last {
                return Ok(Queues {
                    qp,
                    cap,
                    features,
                    rcq,
                    cq,
                });
            }
            id.destroy_qp();
            (sends, receives) = (full, granted);
        }
        Err(Error::provider(Call::RdmaCreateQpEx, libc::EIO))
    }
}

fn create_cqs(
    peer: &Peer,
    cfg: &ConnCfg,
    cq_size: u32,
    rcq_size: Option<u32>,
) -> Result<(Cq, Option<Cq>)> {
    let context = peer.pd().context();
    let channel = CompletionChannel::create(context)?;
    let rcq_channel = match rcq_size {
        Some(_) if cfg.shared_channel => Some(channel.clone()),
        Some(_) => Some(CompletionChannel::create(context)?),
        None => None,
    };
    let splits = workarounds(peer, cfg).intersects(Workarounds::SPLIT_READS);
    let create = |size, channel| {
        let (shared, vector) = (cfg.shared_channel, cfg.comp_vector);
        Cq::create(context, size, channel, shared, vector, splits)
    };
    let cq = create(cq_size, channel)?;
    let rcq = match (rcq_size, rcq_channel) {
        (Some(size), Some(channel)) => Some(create(size, channel)?),
        _ => None,
    };
    Ok((cq, rcq))
}

/// The send operations that this crate posts, as a queue pair with extended operations must be
/// asked for them.
const COMMON_OPS: ffi::ibv_qp_create_send_ops_flags = ffi::IBV_QP_EX_WITH_RDMA_WRITE
    | ffi::IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
    | ffi::IBV_QP_EX_WITH_SEND
    | ffi::IBV_QP_EX_WITH_SEND_WITH_IMM
    | ffi::IBV_QP_EX_WITH_RDMA_READ
    | ffi::IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
    | ffi::IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

/// Those that a device may lack.
fn optional_ops(features: &Features) -> ffi::ibv_qp_create_send_ops_flags {
    match features.invalidation {
        true => ffi::IBV_QP_EX_WITH_SEND_WITH_INV,
        false => 0,
    }
}

/// Creates the queue pair of `id`, with as much of native flush and atomic write as device and
/// library have together.
fn create_qp(
    peer: &Peer,
    id: &mut Id,
    cfg: &ConnCfg,
    cq: &Cq,
    rcq: Option<&Cq>,
) -> Result<(RawQp, ffi::ibv_qp_cap, Features)> {
    let caps = peer.capabilities();
    let base = Features {
        atomics: caps.atomics,
        immediate: caps.immediate_data,
        invalidation: caps.region_invalidation,
        ..Features::default()
    };
    let flush = caps.native_flush_visibility || caps.native_flush_persistent;
    let with_flush = Features {
        flush_visibility: caps.native_flush_visibility,
        flush_persistent: caps.native_flush_persistent,
        ..base
    };
    let atomic_write = caps.native_atomic_write;
    // An older library than the kernel may know the one and not the other.
    let candidates = [
        (
            flush && atomic_write,
            Features {
                atomic_write,
                ..with_flush
            },
        ),
        (flush, with_flush),
        (
            atomic_write,
            Features {
                atomic_write,
                ..base
            },
        ),
        (true, base),
    ];
    let mut result = Err(Error::not_supported("queue pairs on this device"));
    for (_, features) in candidates.into_iter().filter(|(possible, _)| *possible) {
        let mut wanted = qp_request(peer, cfg, cq, rcq);
        if features.flush_visibility || features.flush_persistent {
            wanted.send_ops |= COMMON_OPS | optional_ops(&features) | ffi::IBV_QP_EX_WITH_FLUSH;
        }
        if features.atomic_write {
            wanted.send_ops |=
                COMMON_OPS | optional_ops(&features) | ffi::IBV_QP_EX_WITH_ATOMIC_WRITE;
        }
        // `Parts` keeps domain, CQs and SRQ until the id, and with it the queue pair, is gone.
        match id.create_qp(&wanted) {
            Ok((qp, cap)) => return Ok((qp, cap, features)),
            Err(err) => {
                let again = wanted.send_ops != 0
                    && matches!(
                        err.raw_os_error(),
                        Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ENOSYS)
                    );
                result = Err(err);
                if !again {
                    break;
                }
            }
        }
    }
    result
}

fn workarounds(peer: &Peer, cfg: &ConnCfg) -> Workarounds {
    match cfg.device_workarounds {
        true => peer.capabilities().workarounds(),
        false => Workarounds::empty(),
    }
}

/// The length of the send queue: what was asked for, and as much again where each operation may be
/// split.
fn send_queue(peer: &Peer, cfg: &ConnCfg) -> u32 {
    let parts = match workarounds(peer, cfg).intersects(Workarounds::SPLIT_READS) {
        true => 2,
        false => 1,
    };
    let most = peer.capabilities().max_queue_depth.max(cfg.sq_size);
    cfg.sq_size.saturating_mul(parts).min(most)
}

fn qp_request<'a>(
    peer: &'a Peer,
    cfg: &'a ConnCfg,
    cq: &'a Cq,
    rcq: Option<&'a Cq>,
) -> QpRequest<'a> {
    let srq = cfg.srq.as_ref();
    let recv_cq = srq.and_then(Srq::rcq).or(rcq).unwrap_or(cq);
    QpRequest {
        pd: peer.pd(),
        send_cq: cq.raw(),
        recv_cq: recv_cq.raw(),
        srq: srq.map(Srq::raw),
        cap: ffi::ibv_qp_cap {
            max_send_wr: send_queue(peer, cfg),
            max_recv_wr: if srq.is_some() { 0 } else { cfg.rq_size },
            // A message that must not be inline is cut into two elements to go around the fault.
            max_send_sge: cfg.max_sge.max(match peer.capabilities().is_soft_iwarp() {
                true => 2,
                false => 1,
            }),
            max_recv_sge: if srq.is_some() { 0 } else { cfg.max_sge },
            // Eight bytes for atomic writes; what goes around a fault takes more.
            max_inline_data: cfg
                .max_inline
                .max(match peer.capabilities().is_soft_iwarp() {
                    true => SHORT,
                    false => 8,
                }),
        },
        send_ops: 0,
    }
}
