//! Receives: one at a time, or several in one call.

use std::{borrow::Borrow, sync::atomic::AtomicPtr};

use rdma_sys as ffi;

use super::{
    MAX_SGE, Qp,
    check::too_long,
    outcome::{Attempt, accepted, attempted, post_failed, taken},
    quick::QuickNear,
    sges::Sges,
    spare::{free_spare, give_spare, take_spare},
};
use crate::{
    Error, Result, Usage,
    mr::{LocalSlice, quick},
    verbs::PostReceives,
};

/// What is known of a queue that receives are posted to.
#[derive(Debug)]
pub(crate) struct ReceiveQueue {
    /// For the quick check.
    key: u32,
    /// The protection domain's number in the upper half.
    tag: u64,
    max_sge: u32,
    max_message: u64,
    /// A list without an element is refused: siw does so, in its library, although it takes one of
    /// no bytes.
    needs_element: bool,
    depth: u32,
    spare: AtomicPtr<RecvMemory>,
}

impl ReceiveQueue {
    pub(crate) fn new(
        pd_tag: u32,
        max_sge: u32,
        max_message: u64,
        needs_element: bool,
        depth: u32,
    ) -> Self {
        ReceiveQueue {
            key: quick::queue_pair(pd_tag, max_message),
            tag: u64::from(pd_tag) << 32,
            max_sge: max_sge.min(MAX_SGE as u32),
            max_message: max_message.min(u64::from(u32::MAX)),
            needs_element,
            depth,
            spare: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// The number of receives that it can hold.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Posts one receive into `dst`.
    #[inline]
    pub(crate) fn recv_one(
        &self,
        raw: &impl PostReceives,
        dst: &LocalSlice<'_>,
        wr_id: u64,
    ) -> Result<()> {
        match self.quick_recv(raw, dst, wr_id) {
            Attempt::Undecided => self.recv(raw, std::slice::from_ref(dst), wr_id),
            attempt => attempt.check(),
        }
    }

    #[inline(always)]
    pub(crate) fn quick_recv(
        &self,
        raw: &impl PostReceives,
        near: impl QuickNear,
        wr_id: u64,
    ) -> Attempt {
        match near.fits(|| self.key, 0, Usage::RECV) {
            true => post_one(raw, std::slice::from_ref(near.element().borrow()), wr_id),
            false => Attempt::Undecided,
        }
    }

    /// Posts one receive into slices.
    #[inline(never)]
    pub(crate) fn recv(
        &self,
        raw: &impl PostReceives,
        list: &[LocalSlice<'_>],
        wr_id: u64,
    ) -> Result<()> {
        let sges = self.gather(list)?;
        post_one(raw, sges.as_slice(), wr_id).check()
    }

    fn gather(&self, list: &[LocalSlice<'_>]) -> Result<Sges> {
        let mut sges = Sges::new();
        let len = sges.gather(self.tag, Usage::RECV, "dst", list, self.max_sge)?;
        if len > self.max_message {
            return Err(too_long("dst", len, self.max_message));
        }
        if self.needs_element {
            sges.fill_empty();
        }
        Ok(sges)
    }
}

impl Drop for ReceiveQueue {
    fn drop(&mut self) {
        free_spare(*self.spare.get_mut());
    }
}

#[inline(always)]
fn post_one(raw: &impl PostReceives, list: &[ffi::ibv_sge], wr_id: u64) -> Attempt {
    let mut wr = ffi::ibv_recv_wr {
        wr_id,
        next: std::ptr::null_mut(),
        sg_list: list.as_ptr().cast_mut(),
        num_sge: list.len() as i32,
    };
    let mut bad = std::ptr::null_mut();
    // SAFETY: the request and its list live until the call returns.
    let ret = unsafe { raw.post_receives(&mut wr, &mut bad) };
    attempted(raw.call(), ret, bad)
}

impl Qp {
    /// Posts one receive into `dst`.
    #[inline]
    pub(crate) fn recv_one(&self, dst: &LocalSlice<'_>, wr_id: u64) -> Result<()> {
        match self.quick_recv(dst, wr_id) {
            Attempt::Undecided => self.recv(std::slice::from_ref(dst), wr_id),
            attempt => attempt.check(),
        }
    }

    #[inline(always)]
    pub(crate) fn quick_recv(&self, near: impl QuickNear, wr_id: u64) -> Attempt {
        self.receives.quick_recv(&self.raw, near, wr_id)
    }

    #[inline(never)]
    pub(crate) fn recv(&self, list: &[LocalSlice<'_>], wr_id: u64) -> Result<()> {
        self.check_recv()?;
        self.receives.recv(&self.raw, list, wr_id)
    }

    /// Several receives.
    pub(crate) fn recv_batch(&self) -> Result<RecvBatch<'_>> {
        self.check_recv()?;
        Ok(RecvBatch::new(&self.raw, &self.receives))
    }

    fn check_recv(&self) -> Result<()> {
        if self.has_srq {
            return Err(Error::invalid(
                "connection",
                "receives of a connection with a shared receive queue are posted to that queue",
            ));
        }
        Ok(())
    }
}

/// Receives that go to the device in one call, in this order (`ibv_post_recv(3)`,
/// `ibv_post_srq_recv(3)`).
///
/// As with a [`Batch`](crate::Batch), adding checks and [`submit`](Self::submit) posts; in steady
/// state nothing is allocated.
#[must_use = "nothing is posted before `submit`"]
pub struct RecvBatch<'c> {
    raw: &'c dyn PostReceives,
    queue: &'c ReceiveQueue,
    // Taken out only by drop.
    memory: Option<Box<RecvMemory>>,
}

/// The memory of a [`RecvBatch`].
#[derive(Default)]
struct RecvMemory {
    wrs: Vec<ffi::ibv_recv_wr>,
    sges: Vec<ffi::ibv_sge>,
}

// SAFETY: the pointers inside are set by `submit`, for its own duration.
unsafe impl Send for RecvMemory {}
// SAFETY: as above.
unsafe impl Sync for RecvMemory {}

impl RecvMemory {
    fn with_capacity(entries: usize) -> Self {
        let entries = entries.min(64);
        RecvMemory {
            wrs: Vec::with_capacity(entries),
            sges: Vec::with_capacity(entries),
        }
    }

    fn clear(&mut self) {
        self.wrs.clear();
        self.sges.clear();
    }

    /// Links each receive to the next one and to its elements; gives the first.
    fn link(&mut self) -> *mut ffi::ibv_recv_wr {
        let (first, len) = (self.wrs.as_mut_ptr(), self.wrs.len());
        let mut sge = self.sges.as_mut_ptr();
        for n in 0..len {
            // SAFETY: `n` is below the length, and the sum of `num_sge` is the number of elements.
            unsafe {
                let wr = first.add(n);
                (*wr).sg_list = sge;
                sge = sge.add((*wr).num_sge as usize);
                (*wr).next = match n + 1 < len {
                    true => first.add(n + 1),
                    false => std::ptr::null_mut(),
                };
            }
        }
        first
    }

    /// Forgets the first `n` receives.
    fn remove(&mut self, n: usize) {
        let removed = self.wrs.drain(..n);
        let sges: usize = removed.map(|wr| wr.num_sge as usize).sum();
        self.sges.drain(..sges);
    }
}

impl<'c> RecvBatch<'c> {
    pub(crate) fn new(raw: &'c dyn PostReceives, queue: &'c ReceiveQueue) -> Self {
        let memory = take_spare(&queue.spare, || {
            RecvMemory::with_capacity(queue.depth as usize)
        });
        RecvBatch {
            raw,
            queue,
            memory: Some(memory),
        }
    }

    #[inline]
    fn memory(&mut self) -> &mut RecvMemory {
        self.memory.get_or_insert_with(Box::default)
    }

    /// The number of receives that wait for [`submit`](Self::submit).
    pub fn len(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.wrs.len())
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
        let sges = self.queue.gather(dst)?;
        let memory = self.memory();
        memory.sges.extend_from_slice(sges.as_slice());
        memory.wrs.push(ffi::ibv_recv_wr {
            wr_id,
            next: std::ptr::null_mut(),
            sg_list: std::ptr::null_mut(),
            num_sge: sges.as_slice().len() as i32,
        });
        Ok(())
    }

    /// Posts all receives in one call, and leaves the batch empty. An empty batch does nothing.
    ///
    /// # Errors
    /// [`Error::QueueFull`](crate::Error::QueueFull) or
    /// [`Error::PartlyPosted`](crate::Error::PartlyPosted) with the number that the device
    /// accepted. The others stay in the batch.
    pub fn submit(&mut self) -> Result<()> {
        let raw = self.raw;
        let memory = self.memory();
        let len = memory.wrs.len();
        if len == 0 {
            return Ok(());
        }
        let first = memory.link();
        let mut bad = std::ptr::null_mut();
        // SAFETY: the list was just linked, and lies in the memory with all that it points at.
        let ret = unsafe { raw.post_receives(first, &mut bad) };
        let refused = match taken(ret, bad) {
            true => None,
            false => accepted(
                ret,
                first.addr(),
                bad.addr(),
                size_of::<ffi::ibv_recv_wr>(),
                len,
            ),
        };
        match refused {
            None => {
                memory.clear();
                Ok(())
            }
            Some((ret, n)) => {
                memory.remove(n);
                Err(post_failed(raw.call(), ret, n))
            }
        }
    }
}

impl Drop for RecvBatch<'_> {
    fn drop(&mut self) {
        if let Some(mut memory) = self.memory.take() {
            memory.clear();
            give_spare(&self.queue.spare, memory);
        }
    }
}

impl std::fmt::Debug for RecvBatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RecvBatch {{ len: {} }}", self.len())
    }
}
