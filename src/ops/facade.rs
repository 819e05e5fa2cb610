//! The operations as methods, written once for [`Connection`](crate::Connection),
//! [`Batch`](crate::Batch) and [`Operations`](crate::Operations).

/// Calls the macro `$then` with `$args` and the list of all operations: documentation, name,
/// arguments, and the function that does it.
macro_rules! for_each_operation {
    ($then:ident! $($args:tt)*) => { $crate::ops::$then! { $($args)*;
        /// Writes `src` to the peer's memory `dst`, of the same length.
        ///
        /// A completion says that the peer's device has the data (on iWARP: only that they are on
        /// their way, so that the peer's refusal shows as the end of the connection); that they are
        /// visible or persistent there takes a [`flush`](Self::flush). `src` must be registered for
        /// [`Usage::WRITE_SRC`](crate::Usage::WRITE_SRC) and `dst` for
        /// [`Usage::WRITE_DST`](crate::Usage::WRITE_DST). The contents of `src` must not change
        /// until the completion: what the peer gets is then any mix.
        ///
        /// Source: `ibv_post_send(3)`, `IBV_WR_RDMA_WRITE`.
        #[doc(alias = "rpma_write")]
        #[doc(alias = "IBV_WR_RDMA_WRITE")]
        fn write(src: &impl AsLocalSlice, dst: &RemoteSlice)
            = transfer(Op::Write, src.as_local_slice(), dst);

        /// Writes several slices, one after the other, to `dst`, whose length is the sum of theirs;
        /// at most [`max_sge`](crate::Connection::max_sge) that are not empty.
        fn write_gather(src: &[LocalSlice<'_>], dst: &RemoteSlice)
            = operation(Op::Write, Near::Slices(src), Some(dst), Args::default());

        /// Writes plain bytes to `dst`: they need no registration, and may change as soon as this
        /// returns. At most [`max_inline`](crate::Connection::max_inline) bytes.
        #[doc(alias = "IBV_SEND_INLINE")]
        fn write_inline(src: &[u8], dst: &RemoteSlice)
            = operation(Op::Write, Near::Bytes(src), Some(dst), Args::default());

        /// Writes `src` to `dst` and completes a receive at the peer, which gets `imm`
        /// ([`Completion::imm_data`](crate::Completion::imm_data)). The peer must have a receive
        /// posted.
        ///
        /// # Errors
        /// [`NotSupported`](crate::Error::NotSupported) on iWARP.
        #[doc(alias = "rpma_write_with_imm")]
        #[doc(alias = "IBV_WR_RDMA_WRITE_WITH_IMM")]
        fn write_with_imm(src: &impl AsLocalSlice, dst: &RemoteSlice, imm: u32)
            = operation(Op::WriteImm, Near::Slices(from_ref(src.as_local_slice())), Some(dst), Args::imm(imm));

        /// Writes several slices, one after the other, with immediate data; see
        /// [`write_with_imm`](Self::write_with_imm) and [`write_gather`](Self::write_gather).
        #[doc(alias = "IBV_WR_RDMA_WRITE_WITH_IMM")]
        fn write_gather_with_imm(src: &[LocalSlice<'_>], dst: &RemoteSlice, imm: u32)
            = operation(Op::WriteImm, Near::Slices(src), Some(dst), Args::imm(imm));

        /// Writes plain bytes with immediate data; see [`write_with_imm`](Self::write_with_imm) and
        /// [`write_inline`](Self::write_inline).
        #[doc(alias = "IBV_WR_RDMA_WRITE_WITH_IMM")]
        fn write_inline_with_imm(src: &[u8], dst: &RemoteSlice, imm: u32)
            = operation(Op::WriteImm, Near::Bytes(src), Some(dst), Args::imm(imm));

        /// Reads the peer's memory `src` into `dst`, of the same length.
        ///
        /// `dst` must be registered for [`Usage::READ_DST`](crate::Usage::READ_DST) and `src` for
        /// [`Usage::READ_SRC`](crate::Usage::READ_SRC). The data are there once the completion is.
        ///
        /// Source: `ibv_post_send(3)`, `IBV_WR_RDMA_READ`.
        #[doc(alias = "rpma_read")]
        #[doc(alias = "IBV_WR_RDMA_READ")]
        fn read(dst: &impl AsLocalSlice, src: &RemoteSlice)
            = transfer(Op::Read, dst.as_local_slice(), src);

        /// Reads `src` into several slices, one after the other; at most
        /// [`max_sge`](crate::Connection::max_sge) that are not empty. iWARP takes one.
        fn read_scatter(dst: &[LocalSlice<'_>], src: &RemoteSlice)
            = operation(Op::Read, Near::Slices(dst), Some(src), Args::default());

        /// Sends `src` as a message, which takes a receive that the peer has posted. An empty slice
        /// sends a message of no bytes.
        ///
        /// `src` must be registered for [`Usage::SEND`](crate::Usage::SEND).
        ///
        /// Source: `ibv_post_send(3)`, `IBV_WR_SEND`.
        #[doc(alias = "rpma_send")]
        #[doc(alias = "IBV_WR_SEND")]
        fn send(src: &impl AsLocalSlice) = send(src.as_local_slice());

        /// Sends several slices as one message; at most [`max_sge`](crate::Connection::max_sge)
        /// that are not empty.
        fn send_gather(src: &[LocalSlice<'_>])
            = operation(Op::Send, Near::Slices(src), None, Args::default());

        /// Sends plain bytes as a message: they need no registration, and may change as soon as
        /// this returns. At most [`max_inline`](crate::Connection::max_inline) bytes.
        fn send_inline(src: &[u8]) = operation(Op::Send, Near::Bytes(src), None, Args::default());

        /// Sends `src` with immediate data.
        ///
        /// # Errors
        /// [`NotSupported`](crate::Error::NotSupported) on iWARP.
        #[doc(alias = "rpma_send_with_imm")]
        #[doc(alias = "IBV_WR_SEND_WITH_IMM")]
        fn send_with_imm(src: &impl AsLocalSlice, imm: u32)
            = operation(Op::SendImm, Near::Slices(from_ref(src.as_local_slice())), None, Args::imm(imm));

        /// Sends `src` and takes the peer's `region` away from this side: its key is invalid once
        /// the message is received, and the receive's completion names it
        /// ([`Completion::invalidated_key`](crate::Completion::invalidated_key)). The peer need not
        /// deregister to know that nobody writes there any more.
        ///
        /// # Errors
        /// [`NotSupported`](crate::Error::NotSupported) on InfiniBand and RoCE, where only keys of
        /// memory windows can be invalidated
        /// ([`Capabilities::region_invalidation`](crate::Capabilities::region_invalidation)).
        ///
        /// Source: `ibv_post_send(3)`, `IBV_WR_SEND_WITH_INV`; RFC 5040, section 5.3.
        #[doc(alias = "IBV_WR_SEND_WITH_INV")]
        #[doc(alias = "ibv_wr_send_inv")]
        fn send_with_invalidate(src: &impl AsLocalSlice, region: &RemoteRegion)
            = operation(Op::SendInvalidate, Near::Slices(from_ref(src.as_local_slice())), None, Args::key(region.rkey()));

        /// Flushes what was written to `range` by this connection before: its completion says that
        /// those data are visible to, or persistent at, the peer. All earlier writes to the range
        /// are covered, so one flush behind many writes will do.
        ///
        /// Done natively where device, queue pair and region have it, else by reading the first
        /// byte of the range; see [`ConnCfg::flush_method`](crate::ConnCfg::flush_method). Flushing
        /// [`RemoteRegion::whole`](crate::RemoteRegion::whole) natively flushes the region as a
        /// whole.
        ///
        /// # Errors
        /// [`NotSupported`](crate::Error::NotSupported) where the region was not registered for
        /// this kind, where persistence is asked for and the peer did not declare direct write to
        /// persistent memory ([`apply_peer_cfg`](crate::Connection::apply_peer_cfg)), or where the
        /// flush method cannot be had.
        ///
        /// Source: IBTA annex A19 (memory placement extensions); `ibv_wr_post(3)`.
        #[doc(alias = "rpma_flush")]
        #[doc(alias = "ibv_wr_flush")]
        fn flush(range: &RemoteSlice, kind: FlushKind) = flush(range, kind);

        /// Writes 8 bytes to the peer's memory `dst` at once: a reader there sees all of them or
        /// none. It takes effect after all earlier operations of the connection.
        ///
        /// Done by the device's atomic write where it has one, else by an inline write behind a
        /// fence, which devices do in one piece.
        ///
        /// # Errors
        /// [`Misaligned`](crate::Error::Misaligned) where the remote address is no multiple of 8.
        ///
        /// Source: IBTA annex A19; `ibv_wr_post(3)`.
        #[doc(alias = "rpma_atomic_write")]
        #[doc(alias = "rpma_write_atomic")]
        #[doc(alias = "ibv_wr_atomic_write")]
        fn atomic_write(dst: &RemoteSlice, value: [u8; 8]) = atomic_write(dst, value);

        /// Replaces the peer's 8-byte `word` by `new` if it is `expected`, in one step; what it was
        /// goes to `dst`, in the host's byte order.
        ///
        /// `dst` must be 8 bytes registered for [`Usage::READ_DST`](crate::Usage::READ_DST), `word`
        /// 8 aligned bytes registered for [`Usage::ATOMIC`](crate::Usage::ATOMIC).
        ///
        /// # Errors
        /// [`NotSupported`](crate::Error::NotSupported) where the device or its transport has no
        /// atomics.
        ///
        /// Source: `ibv_post_send(3)`, `IBV_WR_ATOMIC_CMP_AND_SWP`.
        #[doc(alias = "IBV_WR_ATOMIC_CMP_AND_SWP")]
        fn compare_and_swap(dst: &impl AsLocalSlice, word: &RemoteSlice, expected: u64, new: u64)
            = operation(
                Op::CompareSwap,
                Near::Slices(from_ref(dst.as_local_slice())),
                Some(word),
                Args::words([expected, new])
            );

        /// Adds `add` to the peer's 8-byte `word`, in one step; what it was goes to `dst`. See
        /// [`compare_and_swap`](Self::compare_and_swap).
        ///
        /// Source: `ibv_post_send(3)`, `IBV_WR_ATOMIC_FETCH_AND_ADD`.
        #[doc(alias = "IBV_WR_ATOMIC_FETCH_AND_ADD")]
        fn fetch_and_add(dst: &impl AsLocalSlice, word: &RemoteSlice, add: u64)
            = operation(
                Op::FetchAdd,
                Near::Slices(from_ref(dst.as_local_slice())),
                Some(word),
                Args::words([add, 0])
            );
    }};
}
pub(crate) use for_each_operation;

/// The operations as methods of a type: by which `self`, and with which sink.
macro_rules! operation_methods {
    ($self:tt, $sink:expr;
        $($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),*) = $call:ident($($value:expr),*);)*
    ) => {$(
        $crate::ops::operation_methods! {
            @one $self, $sink, $(#[$meta])* fn $name($($arg: $type),*) = $call($($value),*);
        }
    )*};
    (@one [$($self:tt)+], $sink:expr,
        $(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),*) = $call:ident($($value:expr),*);
    ) => {
        $(#[$meta])*
        #[inline(always)]
        pub fn $name($($self)+, $($arg: $type,)* post: impl Into<$crate::Post>) -> $crate::Result<()> {
            $crate::ops::$call($sink, $($value,)* post.into())
        }
    };
}
pub(crate) use operation_methods;

/// The trait that has all operations, and its two implementations.
macro_rules! operation_trait {
    (;
        $($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),*) = $call:ident($($value:expr),*);)*
    ) => {
        /// What [`Connection`] and [`Batch`] share, so that a function that posts operations can be
        /// written once.
        ///
        /// It is implemented for `&Connection`, which posts each operation at once, and for
        /// `Batch`.
        ///
        /// ```
        /// # use rpma::{FlushKind, LocalSlice, Operations, RemoteSlice, Result, Signal};
        /// fn write_visibly(ops: &mut impl Operations, src: &LocalSlice<'_>, dst: &RemoteSlice) -> Result<()> {
        ///     ops.write(src, dst, Signal::OnError(1))?;
        ///     ops.flush(dst, FlushKind::Visibility, Signal::Always(2))
        /// }
        /// ```
        pub trait Operations: sealed::Sealed {$(
            $(#[$meta])*
            fn $name(&mut self, $($arg: $type,)* post: impl Into<Post>) -> Result<()>;
        )*}

        impl Operations for &Connection {$(
            #[inline]
            fn $name(&mut self, $($arg: $type,)* post: impl Into<Post>) -> Result<()> {
                Connection::$name(self, $($arg,)* post)
            }
        )*}

        impl Operations for Batch<'_> {$(
            #[inline]
            fn $name(&mut self, $($arg: $type,)* post: impl Into<Post>) -> Result<()> {
                Batch::$name(self, $($arg,)* post)
            }
        )*}
    };
}
pub(crate) use operation_trait;
