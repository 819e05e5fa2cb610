//! Several operations, one doorbell.

use std::{ptr::NonNull, sync::atomic::Ordering};

use rdma_sys as ffi;

use super::{
    Qp,
    check::{Args, Near},
    entry::{self, Entry},
    facade::for_each_operation,
    memory::BatchMemory,
    outcome::{Attempt, post_failed},
    sink::{Data, Sink},
};
use std::slice::from_ref;

use crate::{
    AsLocalSlice, Call, FlushKind, LocalSlice, Post, RemoteRegion, RemoteSlice, Result,
    mr::FlushPlan,
    verbs::{Op, Request},
};

/// Operations that go to the device in one call, in this order.
///
/// Adding an operation checks it as posting it would, and does nothing else;
/// [`submit`](Self::submit) rings the doorbell. An operation that is refused leaves the batch as it
/// was. Dropping a batch drops what was not submitted. In steady state a batch allocates nothing:
/// its memory is the connection's and goes back to it.
///
/// The bytes of an operation's source must not change from when it is added until its completion.
///
/// Where a batch holds both native flushes or atomic writes and operations that gather slices of
/// different lengths, it goes out in several calls, one after the other.
///
/// Several threads may each have a batch of the same connection; the operations of one batch are
/// never mixed with others when they go out in one call.
///
/// ```compile_fail,E0505
/// # fn f(conn: rpma::Connection) -> rpma::Result<()> {
/// let mut batch = conn.batch();
/// drop(conn);
/// batch.submit()
/// # }
/// ```
#[must_use = "nothing is posted before `submit`"]
pub struct Batch<'c> {
    at: Cursor<'c>,
}

/// The memory of a batch, which owns it, and where the next operation goes.
#[derive(Clone, Copy)]
struct Cursor<'c> {
    qp: &'c Qp,
    memory: NonNull<BatchMemory>,
    next: *mut Entry,
}

// SAFETY: the pointers are to memory that the batch owns.
unsafe impl Send for Batch<'_> {}
// SAFETY: as above; nothing is changed through a shared batch.
unsafe impl Sync for Batch<'_> {}

impl<'c> Batch<'c> {
    #[inline]
    pub(crate) fn new(qp: &'c Qp) -> Self {
        let memory = NonNull::from(Box::leak(qp.take_memory()));
        let mut at = Cursor {
            qp,
            memory,
            next: std::ptr::null_mut(),
        };
        at.next = at.memory().first;
        Batch { at }
    }

    /// The number of operations that wait for [`submit`](Self::submit).
    pub fn len(&self) -> usize {
        self.memory().len(self.at.next)
    }

    /// Is there nothing to submit?
    pub fn is_empty(&self) -> bool {
        self.at.next == self.memory().first
    }

    fn memory(&self) -> &BatchMemory {
        // SAFETY: the batch owns it; several threads may look at a shared batch, and none of them
        // changes it.
        unsafe { self.at.memory.as_ref() }
    }

    /// Forgets the operations that were added.
    pub fn clear(&mut self) {
        self.at.next = self.at.memory().clear();
    }

    /// Posts all operations with one doorbell, and leaves the batch empty. An empty batch does
    /// nothing.
    ///
    /// # Errors
    /// [`Error::QueueFull`](crate::Error::QueueFull) or
    /// [`Error::PartlyPosted`](crate::Error::PartlyPosted) with the number that the device
    /// accepted: those will complete. The others stay in the batch, in order, and may be submitted
    /// again. [`Error::AboveLimit`](crate::Error::AboveLimit) for more operations than the send
    /// queue has places where it would stay full for ever: none of those that fill it is signalled,
    /// or some are native flushes or atomic writes, of which one doorbell takes all or nothing.
    #[inline(always)]
    pub fn submit(&mut self) -> Result<()> {
        let (qp, next) = (self.at.qp, self.at.next);
        let memory = self.at.memory();
        if next <= memory.list {
            return self.submit_other();
        }
        // SAFETY: just compared.
        match unsafe { memory.post_list(qp, next) } {
            None => {
                self.at.next = memory.list;
                Ok(())
            }
            Some(ret) => self.at.settle(|memory| memory.refused(next, ret)),
        }
    }

    #[inline(always)]
    fn submit_other(&mut self) -> Result<()> {
        let (qp, next) = (self.at.qp, self.at.next);
        match self.at.memory().post_chain(qp, next) {
            Some(0) => {
                self.at.next = self.at.memory().list;
                Ok(())
            }
            Some(ret) => Err(post_failed(Call::IbvWrComplete, ret, 0)),
            None => self.at.settle(|memory| memory.submit(qp, next)),
        }
    }
}

impl Cursor<'_> {
    /// What `work` did, which gives the next place, too.
    #[inline(always)]
    fn settle(
        &mut self,
        work: impl FnOnce(&mut BatchMemory) -> (Result<()>, *mut Entry),
    ) -> Result<()> {
        let (result, next) = work(self.memory());
        self.next = next;
        result
    }

    #[inline(always)]
    fn memory(&mut self) -> &mut BatchMemory {
        // SAFETY: the batch owns it, and whoever has a cursor has borrowed the batch.
        unsafe { self.memory.as_mut() }
    }
}

impl<'c> Sink<'c> for Cursor<'c> {
    const AT_ONCE: bool = false;

    #[inline(always)]
    fn apart<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let mut copy = *self;
        let result = work(&mut copy);
        self.next = copy.next;
        result
    }

    #[inline(always)]
    fn qp(&self) -> &'c Qp {
        self.qp
    }

    #[inline(always)]
    fn key(&self) -> u32 {
        // SAFETY: a place or the mark, and both have a key.
        unsafe { (*self.next).key }
    }

    #[inline(always)]
    fn read_key(&self) -> u32 {
        self.key() | self.qp.read_key.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn flushes(&self) -> FlushPlan {
        // SAFETY: as above.
        self.qp.quick_plan() & unsafe { (*self.next).flushes }
    }

    #[inline(always)]
    unsafe fn put(&mut self, request: Request, sge: &ffi::ibv_sge) -> Attempt {
        // SAFETY: the caller knows that there is room.
        self.next = unsafe { entry::put(self.next, request, 1, sge) };
        Attempt::Posted
    }

    #[inline(always)]
    unsafe fn put_extended(
        &mut self,
        _: Op,
        _: Post,
        request: impl FnOnce() -> Request,
    ) -> Attempt {
        let next = self.next;
        // SAFETY: as above.
        self.next = unsafe { self.memory().put_extended(next, request()) };
        Attempt::Posted
    }

    fn put_checked(&mut self, request: Request, data: Data<'_>) -> Result<()> {
        let next = self.next;
        self.next = self.memory().add(next, request, data);
        Ok(())
    }
}

/// # Operations
///
/// Each adds one operation; see those of [`Connection`](crate::Connection#operations).
impl Batch<'_> {
    for_each_operation!(operation_methods![&mut self], &mut self.at);
}

impl Drop for Batch<'_> {
    // Inlined, so that a batch has no address and stays in registers.
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the memory came from a box, and the batch that owns it is gone with this.
        let memory = unsafe { Box::from_raw(self.at.memory.as_ptr()) };
        self.at.qp.give_memory(memory);
    }
}

impl std::fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch {{ len: {} }}", self.len())
    }
}
