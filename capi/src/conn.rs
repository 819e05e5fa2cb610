//! Connections, but for their operations.

use std::{
    ffi::{c_int, c_void},
    os::fd::AsRawFd,
    ptr::NonNull,
};

use rpma::{ConnEventKind, Connection, Cq, code};

use crate::{Failure, Out, Slot, c_api, cq::news, given, peer_cfg, text};

/// `struct rpma_conn_private_data`.
#[repr(C)]
pub(crate) struct PrivateData {
    ptr: *mut c_void,
    len: u8,
}

impl PrivateData {
    /// Points at `bytes`, or at nothing where there are none.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let len = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
        let ptr = match len {
            0 => std::ptr::null_mut(),
            _ => bytes.as_ptr().cast_mut().cast(),
        };
        PrivateData { ptr, len }
    }

    /// The bytes; `None` where there are none.
    ///
    /// # Safety
    /// The pointer must be null or to that many bytes.
    pub(crate) unsafe fn bytes(&self) -> Option<&[u8]> {
        if self.ptr.is_null() || self.len == 0 {
            return None;
        }
        // SAFETY: the caller's word.
        Some(unsafe { std::slice::from_raw_parts(self.ptr.cast(), self.len.into()) })
    }
}

c_api! {
    /// The fd that is readable when an event is there.
    fn rpma_conn_get_event_fd(conn: Option<&Connection>, fd: Out<'_, c_int>) {
        let (connection, place) = (given(conn)?, given(fd)?);
        place.write(connection.event_fd().as_raw_fd());
        Ok(())
    }

    /// Waits for the next event, or says that there is none, as the fd is set.
    fn rpma_conn_next_event(conn: Option<&Connection>, event: Out<'_, c_int>) {
        let (connection, place) = (given(conn)?, given(event)?);
        let Some(event) = rpma::capi_support::next_event(connection)? else {
            return Err(Failure::Code(code::NO_EVENT));
        };
        place.write(match event.kind() {
            ConnEventKind::Established => text::ESTABLISHED,
            ConnEventKind::Closed => text::CLOSED,
            ConnEventKind::Lost => text::LOST,
            ConnEventKind::Rejected => text::REJECTED,
            ConnEventKind::Unreachable => text::UNREACHABLE,
            _ => {
                log::warn!(target: "rpma", "the connection {}", event.cm_kind());
                return Err(Failure::Code(code::UNKNOWN));
            }
        });
        Ok(())
    }

    /// The private data of the other side.
    fn rpma_conn_get_private_data(conn: Option<&Connection>, pdata: Out<'_, PrivateData>) {
        let (connection, place) = (given(conn)?, given(pdata)?);
        place.write(PrivateData::of(connection.private_data()));
        Ok(())
    }

    /// Takes note of what the other side declares.
    fn rpma_conn_apply_remote_peer_cfg(
        conn: Option<&Connection>,
        pcfg: Option<&peer_cfg::Cfg>,
    ) {
        let (connection, cfg) = (given(conn)?, given(pcfg)?);
        connection.apply_peer_cfg(&cfg.get());
        Ok(())
    }

    /// The number of the queue pair.
    fn rpma_conn_get_qp_num(conn: Option<&Connection>, qp_num: Out<'_, u32>) {
        let (connection, place) = (given(conn)?, given(qp_num)?);
        place.write(connection.qp_num());
        Ok(())
    }

    /// The main CQ.
    fn rpma_conn_get_cq(conn: Option<&Connection>, cq_ptr: Out<'_, NonNull<Cq>>) {
        let (connection, place) = (given(conn)?, given(cq_ptr)?);
        place.write(NonNull::from(connection.cq()));
        Ok(())
    }

    /// The connection's own receive CQ, or null.
    fn rpma_conn_get_rcq(conn: Option<&Connection>, rcq_ptr: Out<'_, Option<NonNull<Cq>>>) {
        let (connection, place) = (given(conn)?, given(rcq_ptr)?);
        let of_srq = connection.srq().is_some_and(|srq| srq.rcq().is_some());
        let own = connection.rcq().filter(|_| !of_srq);
        place.write(own.map(NonNull::from));
        Ok(())
    }

    /// The fd of the completion channel that both CQs share.
    fn rpma_conn_get_compl_fd(conn: Option<&Connection>, fd: Out<'_, c_int>) {
        let (connection, place) = (given(conn)?, given(fd)?);
        place.write(connection.completion_fd()?.as_raw_fd());
        Ok(())
    }

    /// Waits for news of one of the CQs, or says that there is none, as the fd is set.
    fn rpma_conn_wait(
        conn: Option<&Connection>,
        _flags: c_int,
        cq: Out<'_, NonNull<Cq>>,
        is_rcq: Out<'_, bool>,
    ) {
        let (connection, place) = (given(conn)?, given(cq)?);
        let fired = news(rpma::capi_support::wait(connection))?;
        place.write(NonNull::from(fired.cq));
        if let Some(place) = is_rcq {
            place.write(fired.is_rcq);
        }
        Ok(())
    }

    /// Asks for the end of the connection.
    fn rpma_conn_disconnect(conn: Option<&Connection>) {
        Ok(given(conn)?.disconnect()?)
    }

    /// Deletes a connection. It is gone whatever happens.
    fn rpma_conn_delete(conn_ptr: Slot<'_, Connection>) {
        match given(conn_ptr)?.take() {
            Some(connection) => Ok(connection.close()?),
            None => Ok(()),
        }
    }
}
