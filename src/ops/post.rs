use rdma_sys as ffi;

/// Which completions an operation gives, and the number that they carry.
///
/// Operations complete in the order in which they were posted, so one signalled operation behind
/// many others says that all are done. An unsignalled operation keeps its place in the send queue
/// until a later signalled one completes: at least every [`sq_size`](crate::ConnCfg::sq_size)-th
/// operation must be signalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// A completion in any case, with this number as its [`wr_id`](crate::Completion::wr_id).
    #[doc(alias = "RPMA_F_COMPLETION_ALWAYS")]
    Always(u64),
    /// A completion only when the operation fails, with this number.
    #[doc(alias = "RPMA_F_COMPLETION_ON_ERROR")]
    OnError(u64),
}

impl Signal {
    /// The operation starts only when all earlier reads and atomics of the connection are done
    /// (`IBV_SEND_FENCE`).
    #[doc(alias = "IBV_SEND_FENCE")]
    pub fn fenced(self) -> Post {
        Post::from(self).fenced()
    }

    /// The receive that this operation completes at the peer is a solicited event
    /// (`IBV_SEND_SOLICITED`); for sends and writes with immediate data.
    #[doc(alias = "IBV_SEND_SOLICITED")]
    pub fn solicited(self) -> Post {
        Post::from(self).solicited()
    }
}

/// How an operation is posted: a [`Signal`], and more where one wants more. Every operation takes
/// either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub struct Post {
    pub(crate) wr_id: u64,
    /// In 64 bits, as they are written beside the immediate data.
    pub(crate) flags: u64,
}

impl Post {
    /// See [`Signal::fenced`].
    pub fn fenced(mut self) -> Self {
        self.flags |= u64::from(ffi::IBV_SEND_FENCE);
        self
    }

    /// See [`Signal::solicited`].
    pub fn solicited(mut self) -> Self {
        self.flags |= u64::from(ffi::IBV_SEND_SOLICITED);
        self
    }
}

impl From<Signal> for Post {
    #[inline]
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Always(wr_id) => Post {
                wr_id,
                flags: ffi::IBV_SEND_SIGNALED.into(),
            },
            Signal::OnError(wr_id) => Post { wr_id, flags: 0 },
        }
    }
}
