//! What exists for the C interface alone.
//!
//! Waits that block or not as the fd of a caller is set, and operations as it names them, by a
//! region and an offset, tried without a slice and without a way to panic. What they find
//! [`Undecided`](Attempt::Undecided) may be right: slicing the regions and the operation proper
//! decide.
#![allow(unsafe_code)]

use std::{
    borrow::Borrow,
    os::fd::{AsFd, BorrowedFd},
    ptr::NonNull,
    time::Duration,
};

use rdma_sys as ffi;

pub use crate::ops::Attempt;
use crate::{
    Call, Capabilities, ConnCfg, ConnEvent, ConnRequest, Connection, Cq, Endpoint, Error, Fired,
    FlushKind, LocalRegion, Memory, Post, RemoteRegion, RemoteSlice, Result, Srq, Usage,
    cm::raw::{Target as Host, bound_context, context_of, resolved_context},
    mr::{quick, range},
    ops::{Now, QuickFar, QuickNear, quick_flush, quick_send, quick_transfer, quick_word},
    verbs::{Context, Op, Target, poll_failed},
    wait::{Until, set_nonblocking},
};

/// No bytes of no region: the remote side of an operation without content.
pub const NOWHERE: RemoteSlice = RemoteSlice::NOWHERE;

/// `len` bytes of a region from `offset` on, not checked yet.
#[derive(Clone, Copy)]
pub struct Piece<'a, R> {
    /// The region.
    pub region: &'a R,
    /// Where it starts, in bytes.
    pub offset: u64,
    /// Its length, in bytes.
    pub len: u64,
}

impl QuickNear for Piece<'_, LocalRegion> {
    #[inline(always)]
    fn fits(&self, queue: impl FnOnce() -> u32, far: u32, usages: Usage) -> bool {
        let all = self.region.all();
        quick::short(self.len)
            && quick::fit_regions(queue(), all.quick, far, usages)
            && range::inside(self.offset, self.len, all.len)
    }

    #[inline(always)]
    fn len(&self) -> u64 {
        self.len
    }

    #[inline(always)]
    fn element(&self) -> impl Borrow<ffi::ibv_sge> {
        self.region.all().sge_at(self.offset, self.len)
    }
}

impl QuickFar for Piece<'_, RemoteRegion> {
    #[inline(always)]
    fn key(&self) -> u32 {
        self.region.all().quick
    }

    #[inline(always)]
    fn has(&self, len: u64) -> bool {
        self.len == len && range::inside(self.offset, len, self.region.all().len)
    }

    #[inline(always)]
    fn target(&self) -> Target {
        self.region.all().target.at(self.offset)
    }

    #[inline(always)]
    fn range(&self) -> Option<impl Borrow<RemoteSlice>> {
        self.region.all().quick_part(self.offset, self.len)
    }
}

/// [`Signal::Always`](crate::Signal::Always) or [`Signal::OnError`](crate::Signal::OnError), by
/// `yes`.
#[inline(always)]
pub fn signaled_if(yes: bool, wr_id: u64) -> Post {
    const SHIFT: u32 = ffi::IBV_SEND_SIGNALED.trailing_zeros();
    Post {
        wr_id,
        flags: u64::from(yes) << SHIFT,
    }
}

/// A write.
#[inline(always)]
pub fn write(
    conn: &Connection,
    src: Piece<'_, LocalRegion>,
    dst: Piece<'_, RemoteRegion>,
    post: Post,
) -> Attempt {
    quick_transfer(&mut Now(conn.qp()), Op::Write, src, dst, post)
}

/// A read.
#[inline(always)]
pub fn read(
    conn: &Connection,
    dst: Piece<'_, LocalRegion>,
    src: Piece<'_, RemoteRegion>,
    post: Post,
) -> Attempt {
    quick_transfer(&mut Now(conn.qp()), Op::Read, dst, src, post)
}

/// A flush.
#[inline(always)]
pub fn flush(
    conn: &Connection,
    range: Piece<'_, RemoteRegion>,
    kind: FlushKind,
    post: Post,
) -> Attempt {
    quick_flush(&mut Now(conn.qp()), range, kind, post)
}

/// An atomic write; the piece has 8 bytes.
#[inline(always)]
pub fn atomic_write(
    conn: &Connection,
    dst: Piece<'_, RemoteRegion>,
    value: &[u8; 8],
    post: Post,
) -> Attempt {
    quick_word(&mut Now(conn.qp()), dst, value, post)
}

/// A send.
#[inline(always)]
pub fn send(conn: &Connection, src: Piece<'_, LocalRegion>, post: Post) -> Attempt {
    quick_send(&mut Now(conn.qp()), src, post)
}

/// A receive of a connection.
#[inline(always)]
pub fn recv(conn: &Connection, dst: Piece<'_, LocalRegion>, wr_id: u64) -> Attempt {
    conn.qp().quick_recv(dst, wr_id)
}

/// A receive of a shared receive queue.
#[inline(always)]
pub fn srq_recv(srq: &Srq, dst: Piece<'_, LocalRegion>, wr_id: u64) -> Attempt {
    let (raw, queue) = srq.queue();
    queue.quick_recv(raw, dst, wr_id)
}

/// `ibv_poll_cq(3)`; [`poll_error`] tells what a negative number means.
///
/// # Safety
/// There must be room for `room` completions.
#[inline(always)]
pub unsafe fn poll_raw(cq: &Cq, room: i32, completions: *mut ffi::ibv_wc) -> i32 {
    // SAFETY: the same contract.
    unsafe { cq.raw().poll_raw(room, completions) }
}

/// The error of a poll that gave `ret`.
pub fn poll_error(ret: i32) -> Error {
    poll_failed(ret)
}

/// [`Cq::wait`] that blocks or not as the fd is set.
pub fn wait_cq(cq: &Cq) -> Result<bool> {
    cq.wait_until(Until::as_fd_is_set(cq.as_fd())?)
}

/// [`Connection::wait`] that blocks or not as the fd is set.
pub fn wait(conn: &Connection) -> Result<Option<Fired<'_>>> {
    conn.fired(Until::as_fd_is_set(conn.completion_fd()?)?, true)
}

/// [`Connection::next_event`] that blocks or not as the fd is set.
pub fn next_event(conn: &Connection) -> Result<Option<ConnEvent>> {
    conn.event(Until::as_fd_is_set(conn.event_fd())?)
}

/// [`Endpoint::next_request`] that blocks or not as the fd is set.
pub fn next_request(endpoint: &Endpoint, cfg: &ConnCfg) -> Result<Option<ConnRequest>> {
    endpoint.request(cfg, Until::as_fd_is_set(endpoint.as_fd())?)
}

/// Puts an fd of this crate into blocking mode: from here on its mode is the C program's.
pub fn make_fd_blocking(fd: BorrowedFd<'_>) -> Result<()> {
    set_nonblocking(fd, false)
}

/// [`make_fd_blocking`] for all fds of a connection but those of a shared receive queue.
pub fn make_fds_blocking(conn: &Connection) -> Result<()> {
    make_fd_blocking(conn.event_fd())?;
    conn.own_cqs()
        .try_for_each(|cq| make_fd_blocking(cq.as_fd()))
}

/// [`LocalRegion::close`] for handles that stay in place where a call fails. After success all that
/// the region is good for is to be dropped.
pub fn close_in_place(region: &mut LocalRegion) -> Result<Memory> {
    region.close_in_place()
}

/// A device context of librdmacm's own, open as long as this lives.
pub struct RawContext(Context);

impl RawContext {
    /// The device that owns the local address `address`; see [`Peer::local`](crate::Peer::local).
    pub fn local(address: &str) -> Result<Self> {
        RawContext::anchored(bound_context(Host::Name(address, None))?.0)
    }

    /// The device over which the remote address `address` is reached; see
    /// [`Peer::remote`](crate::Peer::remote).
    pub fn remote(address: &str) -> Result<Self> {
        let address = Host::Name(address, None);
        RawContext::anchored(resolved_context(address, Duration::from_millis(1000))?.0)
    }

    /// What the id of `context` keeps open now is kept by a list after, which takes neither an fd
    /// nor anything of the kernel's.
    fn anchored(context: Context) -> Result<Self> {
        let listed = context_of(context.as_ptr())?;
        let no_device = || Error::provider(Call::RdmaGetDevices, libc::ENODEV);
        Ok(RawContext(listed.ok_or_else(no_device)?))
    }

    /// The C context.
    pub fn as_ptr(&self) -> *mut ffi::ibv_context {
        self.0.as_ptr()
    }
}

/// Does this crate register memory for on-demand paging on the device, to be read and written?
pub fn uses_odp(caps: &Capabilities) -> bool {
    caps.trusts_odp() && caps.odp.read && caps.odp.write
}

/// What a device can do that others have opened, by its first port.
///
/// # Safety
/// `context` must be an open device context.
pub unsafe fn capabilities(context: NonNull<ffi::ibv_context>) -> Result<Capabilities> {
    // SAFETY: the caller's contract; the context is used within this call only.
    Capabilities::of(&unsafe { Context::new(context, Box::new(())) }, 1)
}

#[cfg(test)]
mod tests;
