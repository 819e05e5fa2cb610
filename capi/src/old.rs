//! Functions that librpma had before 1.0, for programs that were never moved.

use std::{
    ffi::{c_int, c_uint, c_void},
    os::fd::{AsFd, AsRawFd},
};

use rpma::{Connection, Cq, RemoteRegion, WcOpcode};

use crate::{
    INVAL, Out, Outcome, c_api,
    cq::{NO_COMPLETION, news},
    given,
    mr::Local,
    ops::{remote_slice, signal},
};

/// `struct rpma_completion`.
#[repr(C)]
pub(crate) struct OldCompletion {
    op_context: *mut c_void,
    op: c_uint,
    byte_len: u32,
    op_status: c_uint,
    flags: c_uint,
    imm: u32,
}

/// `IBV_WC_WITH_IMM`.
const WITH_IMM: c_uint = 2;

fn take(cq: &Cq, place: Out<'_, OldCompletion>) -> Outcome {
    let place = given(place)?;
    let Some(wc) = cq.poll_one()? else {
        return Err(NO_COMPLETION);
    };
    let op = match wc.opcode() {
        WcOpcode::RDMA_READ => 0,
        WcOpcode::RDMA_WRITE | WcOpcode::ATOMIC_WRITE => 1,
        WcOpcode::FLUSH => 2,
        WcOpcode::SEND => 3,
        WcOpcode::RECV => 4,
        WcOpcode::RECV_RDMA_WITH_IMM => 5,
        // Nothing that this interface posts.
        _ => c_uint::MAX,
    };
    let imm = wc.imm_data();
    place.write(OldCompletion {
        op_context: wc.wr_id() as *mut c_void,
        op,
        byte_len: wc.byte_len(),
        op_status: wc.status().as_raw(),
        flags: if imm.is_some() { WITH_IMM } else { 0 },
        imm: imm.unwrap_or(0),
    });
    Ok(())
}

c_api! {
    /// The fd of the main CQ's completion channel.
    fn rpma_conn_get_completion_fd(conn: Option<&Connection>, fd: Out<'_, c_int>) {
        let (connection, place) = (given(conn)?, given(fd)?);
        place.write(connection.cq().as_fd().as_raw_fd());
        Ok(())
    }

    /// Waits for news of the main CQ, or says that there is none, as the fd is set.
    fn rpma_conn_completion_wait(conn: Option<&Connection>) {
        news(rpma::capi_support::wait_cq(given(conn)?.cq()).map(|news| news.then_some(())))
    }

    /// Takes one completion of the main CQ.
    fn rpma_conn_completion_get(conn: Option<&Connection>, cmpl: Out<'_, OldCompletion>) {
        take(given(conn)?.cq(), cmpl)
    }

    /// Takes one completion.
    fn rpma_cq_get_completion(cq: Option<&Cq>, cmpl: Out<'_, OldCompletion>) {
        take(given(cq)?, cmpl)
    }

    /// Writes 8 bytes of a region at once.
    fn rpma_write_atomic(
        conn: Option<&Connection>,
        dst: Option<&RemoteRegion>,
        dst_offset: usize,
        src: Option<&Local>,
        src_offset: usize,
        flags: c_int,
        op_context: *const c_void,
    ) {
        let (connection, dst, src) = (given(conn)?, given(dst)?, given(src)?);
        let signal = signal(flags, op_context)?;
        let dst = remote_slice(dst, dst_offset, 8)?;
        if dst.address() % 8 != 0 {
            return Err(INVAL);
        }
        Ok(connection.write(&src.slice(src_offset, 8)?, &dst, signal.fenced())?)
    }
}
