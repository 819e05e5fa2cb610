//! The operations of a connection, and what it shares with a batch.

use std::slice::from_ref;

use super::connection::Connection;
use crate::{
    AsLocalSlice, Batch, FlushKind, LocalSlice, Post, RecvBatch, RemoteRegion, RemoteSlice, Result,
    ops::{Args, Near, Now, for_each_operation},
    verbs::Op,
};

/// # Operations
///
/// Each posts one work request and does not block. All arguments are checked first: what is refused
/// by [`Error::LengthMismatch`](crate::Error::LengthMismatch), [`TooLong`](crate::Error::TooLong),
/// [`Misaligned`](crate::Error::Misaligned), [`MissingUsage`](crate::Error::MissingUsage),
/// [`ForeignRegion`](crate::Error::ForeignRegion),
/// [`InvalidArgument`](crate::Error::InvalidArgument) or
/// [`NotSupported`](crate::Error::NotSupported) was not posted, and the connection goes on.
/// [`QueueFull`](crate::Error::QueueFull) means: take completions, then try again.
///
/// The last argument is a [`Signal`](crate::Signal), or a [`Post`] made of one.
impl Connection {
    for_each_operation!(operation_methods![&self], &mut Now(self.qp()));

    /// Posts a receive into `dst`: the next message that no earlier receive takes goes there. An
    /// empty slice takes messages of no bytes, and immediate data. The completion carries `wr_id`,
    /// and comes on [`rcq`](Self::rcq) where there is one.
    ///
    /// `dst` must be registered for [`Usage::RECV`](crate::Usage::RECV).
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::Error::InvalidArgument) where the connection has a shared receive
    /// queue: post to that.
    ///
    /// Source: `ibv_post_recv(3)`.
    #[inline]
    #[doc(alias = "rpma_recv")]
    #[doc(alias = "ibv_post_recv")]
    pub fn recv(&self, dst: &impl AsLocalSlice, wr_id: u64) -> Result<()> {
        self.qp().recv_one(dst.as_local_slice(), wr_id)
    }

    /// Posts a receive that is spread over several slices.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_scatter(&self, dst: &[LocalSlice<'_>], wr_id: u64) -> Result<()> {
        self.qp().recv(dst, wr_id)
    }

    /// Operations to be posted with one doorbell.
    #[inline]
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self.qp())
    }

    /// Receives to be posted in one call.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_batch(&self) -> Result<RecvBatch<'_>> {
        self.qp().recv_batch()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for &super::Connection {}
    impl Sealed for super::Batch<'_> {}
}

for_each_operation!(operation_trait!);
