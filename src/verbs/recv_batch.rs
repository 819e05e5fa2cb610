//! Several receives, one call.

use rdma_sys as ffi;

use super::{outcome::list_result, qp::Qp, srq::RawSrq};
use crate::{Call, Error, Result, mr::LocalSlice};

/// Receives that go to the device in one call, in this order (`ibv_post_recv(3)`, `ibv_post_srq_recv(3)`).
///
/// As with a [`Batch`](crate::Batch), adding checks and [`submit`](Self::submit) posts; in steady state nothing is allocated.
#[must_use = "nothing is posted before `submit`"]
pub struct RecvBatch<'c> {
    queue: Queue<'c>,
    // Taken out only by drop.
    buffer: Option<Box<RecvBuffer>>,
}

#[derive(Clone, Copy)]
enum Queue<'c> {
    Qp(&'c Qp),
    Srq(&'c RawSrq),
}

/// The memory of a [`RecvBatch`].
#[derive(Default)]
pub(crate) struct RecvBuffer {
    wrs: Vec<ffi::ibv_recv_wr>,
    sges: Vec<ffi::ibv_sge>,
}

// SAFETY: the pointers inside are set by `submit`, for its own duration.
unsafe impl Send for RecvBuffer {}
// SAFETY: as above.
unsafe impl Sync for RecvBuffer {}

impl RecvBuffer {
    pub(super) fn with_capacity(entries: usize) -> Self {
        let entries = entries.min(64);
        RecvBuffer {
            wrs: Vec::with_capacity(entries),
            sges: Vec::with_capacity(entries),
        }
    }

    fn clear(&mut self) {
        self.wrs.clear();
        self.sges.clear();
    }
}

impl<'c> RecvBatch<'c> {
    pub(crate) fn on_qp(qp: &'c Qp) -> Result<Self> {
        qp.check_recv()?;
        Ok(RecvBatch {
            queue: Queue::Qp(qp),
            buffer: Some(qp.take_recv_buffer()),
        })
    }

    pub(crate) fn on_srq(srq: &'c RawSrq) -> Self {
        RecvBatch {
            queue: Queue::Srq(srq),
            buffer: Some(srq.take_recv_buffer()),
        }
    }

    #[inline]
    fn buffer(&mut self) -> &mut RecvBuffer {
        self.buffer.get_or_insert_with(Box::default)
    }

    /// The number of receives that wait for [`submit`](Self::submit).
    pub fn len(&self) -> usize {
        self.buffer.as_ref().map_or(0, |buffer| buffer.wrs.len())
    }

    /// Is there nothing to submit?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a receive into `dst`; see [`Connection::recv`](crate::Connection::recv).
    #[inline]
    pub fn recv(&mut self, dst: &LocalSlice<'_>, wr_id: u64) -> Result<()> {
        self.recv_scatter(std::slice::from_ref(dst), wr_id)
    }

    /// Adds a receive that is spread over several slices.
    pub fn recv_scatter(&mut self, dst: &[LocalSlice<'_>], wr_id: u64) -> Result<()> {
        let limits = match self.queue {
            Queue::Qp(qp) => qp.recv_limits(),
            Queue::Srq(srq) => srq.limits(),
        };
        let sges = limits.gather(dst)?;
        let buffer = self.buffer();
        buffer.sges.extend_from_slice(sges.as_slice());
        buffer.wrs.push(ffi::ibv_recv_wr {
            wr_id,
            next: std::ptr::null_mut(),
            sg_list: std::ptr::null_mut(),
            num_sge: sges.len() as i32,
        });
        Ok(())
    }

    /// Posts all receives in one call, and leaves the batch empty. An empty batch does nothing.
    ///
    /// # Errors
    /// [`Error::QueueFull`](crate::Error::QueueFull) or [`Error::PartlyPosted`](crate::Error::PartlyPosted) with the number that the device accepted. The others stay in the batch.
    pub fn submit(&mut self) -> Result<()> {
        let queue = self.queue;
        let buffer = self.buffer();
        let len = buffer.wrs.len();
        if len == 0 {
            return Ok(());
        }
        let mut sge = buffer.sges.as_mut_ptr();
        let wrs = buffer.wrs.as_mut_ptr();
        for i in 0..len {
            // SAFETY: `i` is below the length, and the sum of `num_sge` is the length of `sges`.
            unsafe {
                let wr = wrs.add(i);
                (*wr).sg_list = sge;
                sge = sge.add((*wr).num_sge as usize);
                (*wr).next = if i + 1 < len {
                    wrs.add(i + 1)
                } else {
                    std::ptr::null_mut()
                };
            }
        }
        let mut bad = std::ptr::null_mut();
        // SAFETY: the list was just linked, and lies in the buffer with all that it points at.
        let (call, ret) = unsafe {
            match queue {
                Queue::Qp(qp) => (Call::IbvPostRecv, qp.post_recv_list(wrs, &mut bad)),
                Queue::Srq(srq) => (Call::IbvPostSrqRecv, srq.post_recv_list(wrs, &mut bad)),
            }
        };
        let stride = std::mem::size_of::<ffi::ibv_recv_wr>();
        let (first, bad) = (wrs as usize, bad as usize);
        let result = list_result(call, ret, first, bad, stride, len, 0);
        let n = match &result {
            Ok(()) => {
                buffer.clear();
                return Ok(());
            }
            Err(Error::QueueFull { accepted, .. } | Error::PartlyPosted { accepted, .. }) => {
                *accepted
            }
            Err(_) => 0,
        };
        let sges: usize = buffer
            .wrs
            .iter()
            .take(n)
            .map(|wr| wr.num_sge as usize)
            .sum();
        buffer.wrs.drain(..n);
        buffer.sges.drain(..sges);
        result
    }
}

impl Drop for RecvBatch<'_> {
    fn drop(&mut self) {
        if let Some(mut buffer) = self.buffer.take() {
            buffer.clear();
            match self.queue {
                Queue::Qp(qp) => qp.give_recv_buffer(buffer),
                Queue::Srq(srq) => srq.give_recv_buffer(buffer),
            }
        }
    }
}

impl std::fmt::Debug for RecvBatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecvBatch")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
