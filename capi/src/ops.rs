//! The operations of a connection.

use std::ffi::{c_int, c_uint, c_void};

use rpma::{
    Connection, FlushKind, LocalSlice, Post, RemoteRegion, RemoteSlice,
    capi_support::{self as quick, Attempt, Piece},
};

use crate::{
    INVAL, Outcome, c_api, done, given,
    mr::{self, Local, range},
};

/// The bit that `RPMA_F_COMPLETION_ALWAYS` has and `RPMA_F_COMPLETION_ON_ERROR` has not.
const ALWAYS: c_int = 1 << 1;

const PERSISTENT: c_uint = 0;
const VISIBILITY: c_uint = 1;

#[inline(always)]
fn post(flags: c_int, op_context: *const c_void) -> Post {
    quick::signaled_if(flags & ALWAYS != 0, op_context as u64)
}

#[inline(always)]
fn piece(region: &RemoteRegion, offset: usize, len: usize) -> Piece<'_, RemoteRegion> {
    Piece {
        region,
        offset: offset as u64,
        len: len as u64,
    }
}

pub(crate) fn signal(flags: c_int, op_context: *const c_void) -> Outcome<Post> {
    match flags {
        0 => Err(INVAL),
        _ => Ok(post(flags, op_context)),
    }
}

/// Both sides of a transfer: both regions, or none at all for no bytes.
fn sides<'a>(
    local: (Option<&'a Local>, usize),
    remote: (Option<&RemoteRegion>, usize),
    len: usize,
) -> Outcome<(LocalSlice<'a>, RemoteSlice)> {
    match (local, remote) {
        ((Some(local), at), (Some(remote), to)) => {
            Ok((local.slice(at, len)?, remote_slice(remote, to, len)?))
        }
        ((None, 0), (None, 0)) if len == 0 => Ok((LocalSlice::EMPTY, quick::NOWHERE)),
        _ => Err(INVAL),
    }
}

pub(crate) fn remote_slice(mr: &RemoteRegion, offset: usize, len: usize) -> Outcome<RemoteSlice> {
    let (start, end) = range(offset, len)?;
    Ok(mr.slice(start..end)?)
}

c_api! {
    /// Reads.
    fn rpma_read(
        conn: Option<&Connection>,
        dst: Option<&Local>,
        dst_offset: usize,
        src: Option<&RemoteRegion>,
        src_offset: usize,
        len: usize,
        flags: c_int,
        op_context: *const c_void,
    ) quick {
        match (conn, dst, src) {
            (Some(conn), Some(dst), Some(src)) if flags != 0 => {
                done(quick::read(conn, dst.piece(dst_offset, len), piece(src, src_offset, len), post(flags, op_context)))
            }
            _ => Err(Attempt::Undecided),
        }
    } else {
        let (connection, signal) = (given(conn)?, signal(flags, op_context)?);
        let (dst, src) = sides((dst, dst_offset), (src, src_offset), len)?;
        Ok(connection.read(&dst, &src, signal)?)
    }

    /// Writes.
    fn rpma_write(
        conn: Option<&Connection>,
        dst: Option<&RemoteRegion>,
        dst_offset: usize,
        src: Option<&Local>,
        src_offset: usize,
        len: usize,
        flags: c_int,
        op_context: *const c_void,
    ) quick {
        match (conn, src, dst) {
            (Some(conn), Some(src), Some(dst)) if flags != 0 => {
                done(quick::write(conn, src.piece(src_offset, len), piece(dst, dst_offset, len), post(flags, op_context)))
            }
            _ => Err(Attempt::Undecided),
        }
    } else {
        let (connection, signal) = (given(conn)?, signal(flags, op_context)?);
        let (src, dst) = sides((src, src_offset), (dst, dst_offset), len)?;
        Ok(connection.write(&src, &dst, signal)?)
    }

    /// Writes with immediate data.
    fn rpma_write_with_imm(
        conn: Option<&Connection>,
        dst: Option<&RemoteRegion>,
        dst_offset: usize,
        src: Option<&Local>,
        src_offset: usize,
        len: usize,
        flags: c_int,
        imm: u32,
        op_context: *const c_void,
    ) {
        let (connection, signal) = (given(conn)?, signal(flags, op_context)?);
        let (src, dst) = sides((src, src_offset), (dst, dst_offset), len)?;
        Ok(connection.write_with_imm(&src, &dst, imm, signal)?)
    }

    /// Writes 8 bytes at once.
    fn rpma_atomic_write(
        conn: Option<&Connection>,
        dst: Option<&RemoteRegion>,
        dst_offset: usize,
        src: Option<&[u8; 8]>,
        flags: c_int,
        op_context: *const c_void,
    ) quick {
        match (conn, dst, src) {
            (Some(conn), Some(dst), Some(src)) if flags != 0 => {
                done(quick::atomic_write(conn, piece(dst, dst_offset, 8), src, post(flags, op_context)))
            }
            _ => Err(Attempt::Undecided),
        }
    } else {
        let (connection, dst, src) = (given(conn)?, given(dst)?, given(src)?);
        let signal = signal(flags, op_context)?;
        let dst = remote_slice(dst, dst_offset, 8)?;
        Ok(connection.atomic_write(&dst, *src, signal)?)
    }

    /// Flushes.
    fn rpma_flush(
        conn: Option<&Connection>,
        dst: Option<&RemoteRegion>,
        dst_offset: usize,
        len: usize,
        kind: c_uint,
        flags: c_int,
        op_context: *const c_void,
    ) quick {
        match (conn, dst) {
            (Some(conn), Some(dst)) if flags != 0 => {
                let range = piece(dst, dst_offset, len);
                let post = post(flags, op_context);
                match kind {
                    PERSISTENT => done(quick::flush(conn, range, FlushKind::Persistent, post)),
                    VISIBILITY => done(quick::flush(conn, range, FlushKind::Visibility, post)),
                    _ => Err(Attempt::Undecided),
                }
            }
            _ => Err(Attempt::Undecided),
        }
    } else {
        let (connection, region, signal) = (given(conn)?, given(dst)?, signal(flags, op_context)?);
        let kind = match kind {
            PERSISTENT => FlushKind::Persistent,
            VISIBILITY => FlushKind::Visibility,
            _ => return Err(INVAL),
        };
        let range = match len {
            // librpma reads 8 bytes whatever the length is: so a flush of none is one of what
            // follows.
            0 => {
                let rest = region.len().saturating_sub(dst_offset as u64).min(8);
                remote_slice(region, dst_offset, rest as usize)?
            }
            _ => remote_slice(region, dst_offset, len)?,
        };
        Ok(connection.flush(&range, kind, signal)?)
    }

    /// Sends.
    fn rpma_send(
        conn: Option<&Connection>,
        src: Option<&Local>,
        offset: usize,
        len: usize,
        flags: c_int,
        op_context: *const c_void,
    ) quick {
        match (conn, src) {
            (Some(conn), Some(src)) if flags != 0 => {
                done(quick::send(conn, src.piece(offset, len), post(flags, op_context)))
            }
            _ => Err(Attempt::Undecided),
        }
    } else {
        let (connection, signal) = (given(conn)?, signal(flags, op_context)?);
        Ok(connection.send(&mr::buffer(src, offset, len)?, signal)?)
    }

    /// Sends with immediate data.
    fn rpma_send_with_imm(
        conn: Option<&Connection>,
        src: Option<&Local>,
        offset: usize,
        len: usize,
        flags: c_int,
        imm: u32,
        op_context: *const c_void,
    ) {
        let (connection, signal) = (given(conn)?, signal(flags, op_context)?);
        Ok(connection.send_with_imm(&mr::buffer(src, offset, len)?, imm, signal)?)
    }

    /// Posts a receive.
    fn rpma_recv(
        conn: Option<&Connection>,
        dst: Option<&Local>,
        offset: usize,
        len: usize,
        op_context: *const c_void,
    ) quick {
        match (conn, dst) {
            (Some(conn), Some(dst)) => {
                done(quick::recv(conn, dst.piece(offset, len), op_context as u64))
            }
            _ => Err(Attempt::Undecided),
        }
    } else {
        let connection = given(conn)?;
        Ok(connection.recv(&mr::buffer(dst, offset, len)?, op_context as u64)?)
    }
}
