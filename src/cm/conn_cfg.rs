use std::{fmt, time::Duration};

use crate::{Call, Capabilities, Error, FlushMethod, Peer, Result, Srq};

/// The configuration of a connection.
///
/// It can be used for any number of connections. The defaults are librpma's.
///
/// ```
/// use std::time::Duration;
/// use rpma::ConnCfg;
///
/// let cfg = ConnCfg::new().timeout(Duration::from_secs(3)).sq_size(64).rq_size(0);
/// ```
#[derive(Clone)]
#[doc(alias = "rpma_conn_cfg")]
#[doc(alias = "rpma_conn_cfg_delete")]
pub struct ConnCfg {
    pub(crate) timeout: Duration,
    pub(crate) cq_size: u32,
    pub(crate) rcq_size: u32,
    pub(crate) sq_size: u32,
    pub(crate) rq_size: u32,
    pub(crate) shared_channel: bool,
    pub(crate) srq: Option<Srq>,
    pub(crate) max_inline: u32,
    pub(crate) max_sge: u32,
    pub(crate) comp_vector: u32,
    pub(crate) flush_method: FlushMethod,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry_count: u8,
    pub(crate) min_rnr_timer: u8,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) type_of_service: Option<u8>,
    pub(crate) ack_timeout: Option<u8>,
    pub(crate) device_workarounds: bool,
}

impl Default for ConnCfg {
    fn default() -> Self {
        ConnCfg {
            timeout: Duration::from_millis(1000),
            cq_size: 10,
            rcq_size: 0,
            sq_size: 10,
            rq_size: 10,
            shared_channel: false,
            srq: None,
            max_inline: 8,
            max_sge: 1,
            comp_vector: 0,
            flush_method: FlushMethod::Auto,
            retry_count: 7,
            rnr_retry_count: 7,
            min_rnr_timer: 20,
            responder_resources: u8::MAX,
            initiator_depth: u8::MAX,
            type_of_service: None,
            ack_timeout: None,
            device_workarounds: true,
        }
    }
}

impl ConnCfg {
    /// The defaults.
    #[doc(alias = "rpma_conn_cfg_new")]
    pub fn new() -> Self {
        ConnCfg::default()
    }

    /// How long making an outgoing request may take: name, addresses and route, all addresses of
    /// the name together. Default: 1 s.
    ///
    /// [`Connection::open`](crate::Connection::open) bounds the handshake by the same deadline too.
    #[doc(alias = "rpma_conn_cfg_set_timeout")]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The least number of entries of the main completion queue. Default: 10.
    ///
    /// The queue is made larger where it must be to hold everything that can be outstanding: it
    /// never overruns unless more than [`sq_size`](Self::sq_size) signalled operations are posted
    /// without completions being taken, which software devices let one do.
    #[doc(alias = "rpma_conn_cfg_set_cq_size")]
    pub fn cq_size(mut self, entries: u32) -> Self {
        self.cq_size = entries;
        self
    }

    /// The least number of entries of a completion queue for receives alone; 0 (the default) lets
    /// receives complete on the main one. Made larger where it must be, as the main one.
    #[doc(alias = "rpma_conn_cfg_set_rcq_size")]
    pub fn rcq_size(mut self, entries: u32) -> Self {
        self.rcq_size = entries;
        self
    }

    /// The number of entries of the send queue: operations that can be outstanding. Default: 10.
    #[doc(alias = "rpma_conn_cfg_set_sq_size")]
    pub fn sq_size(mut self, entries: u32) -> Self {
        self.sq_size = entries;
        self
    }

    /// The number of entries of the receive queue. Default: 10. Unused with a shared receive queue.
    #[doc(alias = "rpma_conn_cfg_set_rq_size")]
    pub fn rq_size(mut self, entries: u32) -> Self {
        self.rq_size = entries;
        self
    }

    /// One completion channel, and so one fd, for both completion queues: waiting is then
    /// [`Connection::wait`](crate::Connection::wait)'s. Default: each queue has its own.
    #[doc(alias = "rpma_conn_cfg_set_compl_channel")]
    pub fn shared_channel(mut self, shared: bool) -> Self {
        self.shared_channel = shared;
        self
    }

    /// Receives come from this shared receive queue. Default: from the connection's own.
    ///
    /// A shared receive queue that has a completion queue replaces the connection's receive CQ,
    /// whatever [`rcq_size`](Self::rcq_size) says. It must be of the connection's own
    /// [`Peer`](crate::Peer): a connection of another one is refused, since the device would look
    /// for its memory in the wrong protection domain.
    #[doc(alias = "rpma_conn_cfg_set_srq")]
    pub fn srq(mut self, srq: &Srq) -> Self {
        self.srq = Some(srq.clone());
        self
    }

    /// The inline data that one operation may carry, in bytes. Default: 8. The device may grant
    /// more; at least 8 are asked for, which an atomic write needs on devices that have none of
    /// their own.
    pub fn max_inline(mut self, bytes: u32) -> Self {
        self.max_inline = bytes;
        self
    }

    /// The number of slices that one operation may gather or scatter. Default: 1; at most 16.
    pub fn max_sge(mut self, elements: u32) -> Self {
        self.max_sge = elements;
        self
    }

    /// The completion vector, and so the interrupt and the CPU, that completion events come by;
    /// below [`Capabilities::completion_vectors`](crate::Capabilities::completion_vectors).
    /// Default: 0.
    pub fn comp_vector(mut self, vector: u32) -> Self {
        self.comp_vector = vector;
        self
    }

    /// How flushes are done. Default: [`FlushMethod::Auto`].
    pub fn flush_method(mut self, method: FlushMethod) -> Self {
        self.flush_method = method;
        self
    }

    /// How often the devices of both sides send again what was not acknowledged, 0 to 7. Default:
    /// 7. The side that asks for the connection decides. Ignored by iWARP, which is on TCP. On
    /// Soft-RoCE, which takes 7 for retries without end, 7 is 6.
    pub fn retry_count(mut self, count: u8) -> Self {
        self.retry_count = count;
        self
    }

    /// How often the *peer's* device tries again to send here while no receive is posted, 0 to 6; 7
    /// (the default) is for ever: an end that never posts a receive then holds its peer up without
    /// an error. The connection manager has each side say this for the other (`rdma_connect(3)`);
    /// ignored by iWARP, which ends the connection at once.
    pub fn rnr_retry_count(mut self, count: u8) -> Self {
        self.rnr_retry_count = count;
        self
    }

    /// How long the peer's device waits before it tries again to send here while no receive is
    /// posted. Default: 10.24 ms.
    ///
    /// It is rounded up to one of the times that InfiniBand has (IBTA volume 1, "Encoding for RNR
    /// NAK Timer Field"), in milliseconds: 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24,
    /// 0.32, 0.48, 0.64, 0.96, 1.28, 1.92, 2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72,
    /// 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52; and 655.36, which is the
    /// longest, what the connection manager sets, and what stays where the device refuses the
    /// change. iWARP has none.
    pub fn min_rnr_timer(mut self, time: Duration) -> Self {
        self.min_rnr_timer = rnr_timer_code(time);
        self
    }

    /// How many reads, atomics and flushes of the peer this side answers at once. Default: what the
    /// device can (255).
    pub fn responder_resources(mut self, count: u8) -> Self {
        self.responder_resources = count;
        self
    }

    /// How many reads, atomics and flushes this side may have in flight. Default: what the device
    /// can (255).
    pub fn initiator_depth(mut self, count: u8) -> Self {
        self.initiator_depth = count;
        self
    }

    /// The type of service of the connection's packets (`rdma_set_option(3)`,
    /// `RDMA_OPTION_ID_TOS`). Default: the system's. The side that asks for the connection decides;
    /// an incoming request with this is refused, since it would come too late
    /// ([`EndpointCfg::type_of_service`](crate::EndpointCfg::type_of_service) is in time).
    pub fn type_of_service(mut self, tos: u8) -> Self {
        self.type_of_service = Some(tos);
        self
    }

    /// How long the device waits for an acknowledgement, as an exponent from 0 to 31: 4.096 us
    /// times 2 to the power of it (`rdma_set_option(3)`, `RDMA_OPTION_ID_ACK_TIMEOUT`). Default:
    /// the connection manager's.
    pub fn ack_timeout(mut self, exponent: u8) -> Self {
        self.ack_timeout = Some(exponent);
        self
    }

    /// The time that [`timeout`](Self::timeout) set.
    #[doc(alias = "rpma_conn_cfg_get_timeout")]
    pub fn timeout_value(&self) -> Duration {
        self.timeout
    }

    /// The number that [`cq_size`](Self::cq_size) set.
    #[doc(alias = "rpma_conn_cfg_get_cq_size")]
    pub fn cq_size_value(&self) -> u32 {
        self.cq_size
    }

    /// The number that [`rcq_size`](Self::rcq_size) set.
    #[doc(alias = "rpma_conn_cfg_get_rcq_size")]
    pub fn rcq_size_value(&self) -> u32 {
        self.rcq_size
    }

    /// The number that [`sq_size`](Self::sq_size) set.
    #[doc(alias = "rpma_conn_cfg_get_sq_size")]
    pub fn sq_size_value(&self) -> u32 {
        self.sq_size
    }

    /// The number that [`rq_size`](Self::rq_size) set.
    #[doc(alias = "rpma_conn_cfg_get_rq_size")]
    pub fn rq_size_value(&self) -> u32 {
        self.rq_size
    }

    /// What [`shared_channel`](Self::shared_channel) set.
    #[doc(alias = "rpma_conn_cfg_get_compl_channel")]
    pub fn shared_channel_value(&self) -> bool {
        self.shared_channel
    }

    /// The queue that [`srq`](Self::srq) set.
    #[doc(alias = "rpma_conn_cfg_get_srq")]
    pub fn srq_value(&self) -> Option<&Srq> {
        self.srq.as_ref()
    }

    /// Whether operations that a fault of the device's driver would spoil are done in another way.
    /// Default: yes.
    ///
    /// Soft-iWARP (siw, Linux 6.12 to 7.3) sends wrong bytes where 32 bytes or fewer cross a page.
    /// So there short writes and sends are posted inline, and a short read whose source crosses a
    /// page is two reads. In a batch the bytes of such a write are taken when it is added.
    ///
    /// Soft-RoCE (rxe, Linux 6.12 and 7.3) loses its way where packets are lost or late: a read
    /// longer than the path MTU can succeed with a buffer that is only partly filled, and native
    /// flushes, native atomic writes and fenced operations fail or never complete. So there a
    /// signalled read of more than 256 bytes is two reads, of which the second has the last 8
    /// bytes; [`FlushMethod::Auto`] flushes to visibility by reading; and an atomic write is an
    /// inline write without a fence, which is in order there. Flushes to persistence stay native
    /// where the region's are: reading writes no caches back. Avoid fences there.
    ///
    /// A read that is two takes two places of the send queue, which is made twice as long for it,
    /// and gives one completion, whose [`byte_len`](crate::Completion::byte_len) is that of the
    /// second.
    ///
    /// docs/reliability.md has the list of faults.
    pub fn device_workarounds(mut self, yes: bool) -> Self {
        self.device_workarounds = yes;
        self
    }

    /// Refuses what the device cannot do.
    pub(crate) fn check_limits(&self, caps: &Capabilities) -> Result<()> {
        let receives = self.srq.as_ref().map_or(self.rq_size, Srq::depth);
        let own_rcq = self.rcq_size > 0 || self.srq.as_ref().is_some_and(|srq| srq.rcq().is_some());
        let completions = self
            .sq_size
            .saturating_add(if own_rcq { 0 } else { receives });
        let depth = |asked: u8| if asked == u8::MAX { 0 } else { asked.into() };
        for (argument, value, limit) in [
            ("sq_size", self.sq_size, caps.max_queue_depth),
            ("rq_size", self.rq_size, caps.max_queue_depth),
            ("cq_size", self.cq_size, caps.max_cq_entries),
            ("rcq_size", self.rcq_size, caps.max_cq_entries),
            (
                "sq_size with rq_size, on one completion queue",
                completions,
                caps.max_cq_entries,
            ),
            ("max_sge", self.max_sge, caps.max_sge),
            (
                "comp_vector",
                self.comp_vector,
                caps.completion_vectors.saturating_sub(1),
            ),
            (
                "responder_resources",
                depth(self.responder_resources),
                caps.max_responder_resources,
            ),
            (
                "initiator_depth",
                depth(self.initiator_depth),
                caps.max_initiator_depth,
            ),
        ] {
            Error::above_limit(argument, value, limit)?;
        }
        Ok(())
    }

    /// Names `max_inline` where it is why a queue pair was refused: no query tells its limit
    /// beforehand.
    pub(crate) fn explain(&self, peer: &Peer, err: Error) -> Error {
        let refused = matches!(
            &err,
            Error::Provider {
                call: Call::RdmaCreateQpEx,
                ..
            }
        );
        if refused && self.max_inline > 8 {
            if let Ok(limit) = peer.max_inline() {
                return Error::above_limit("max_inline", self.max_inline, limit.max(8))
                    .map_or_else(|above| above, |()| err);
            }
        }
        err
    }

    /// Refuses what no device could do.
    pub(crate) fn check(&self) -> Result<()> {
        if self.shared_channel && self.srq.as_ref().is_some_and(|srq| srq.rcq().is_some()) {
            return Err(Error::invalid(
                "shared_channel",
                "cannot be had with a shared receive queue that has a completion queue of its own",
            ));
        }
        if self.max_sge == 0 || self.max_sge > crate::ops::MAX_SGE as u32 {
            return Err(Error::invalid("max_sge", "not within 1..=16"));
        }
        if self.retry_count > 7 {
            return Err(Error::invalid("retry_count", "above 7"));
        }
        if self.rnr_retry_count > 7 {
            return Err(Error::invalid("rnr_retry_count", "above 7"));
        }
        if self.ack_timeout.is_some_and(|exponent| exponent > 31) {
            return Err(Error::invalid("ack_timeout", "above 31"));
        }
        Ok(())
    }
}

impl fmt::Debug for ConnCfg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ConnCfg({:?}, cq {}, rcq {}, sq {}, rq {}, sge {}, inline {}, vector {}, {:?}, retry {}, rnr {}, rnr timer {}, depths {}/{}{}{}",
            self.timeout,
            self.cq_size,
            self.rcq_size,
            self.sq_size,
            self.rq_size,
            self.max_sge,
            self.max_inline,
            self.comp_vector,
            self.flush_method,
            self.retry_count,
            self.rnr_retry_count,
            self.min_rnr_timer,
            self.responder_resources,
            self.initiator_depth,
            if self.shared_channel {
                ", shared channel"
            } else {
                ""
            },
            if self.srq.is_some() { ", srq" } else { "" },
        )?;
        for (name, value) in [
            ("tos", self.type_of_service),
            ("ack timeout", self.ack_timeout),
        ] {
            if let Some(value) = value {
                write!(f, ", {name} {value}")?;
            }
        }
        f.write_str(")")
    }
}

/// InfiniBand's code for the shortest of its times that is not below `time`.
fn rnr_timer_code(time: Duration) -> u8 {
    // Of codes 1 to 31, in units of 10 us. Code 0 is 655.36 ms.
    const TIMES: [u32; 31] = [
        1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
        2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    ];
    let code = TIMES
        .iter()
        .position(|units| time <= Duration::from_micros(10) * *units);
    code.map_or(0, |at| at as u8 + 1)
}

#[cfg(test)]
mod tests;
