//! Requests for connections.

use std::ffi::{c_char, c_void};

use rpma::{ConnRequest, Connection, Error, Peer, code};

use crate::{
    Failure, INVAL, Out, OutHandle, Slot, c_api,
    conn::PrivateData,
    conn_cfg::{self, Cfg},
    given, log,
    mr::{self, Local},
    text,
};

c_api! {
    /// Makes an outgoing request.
    fn rpma_conn_req_new(
        peer: Option<&Peer>,
        addr: *const c_char,
        port: *const c_char,
        cfg: Option<&Cfg>,
        req_ptr: OutHandle<'_, ConnRequest>,
    ) {
        let (peer, place) = (given(peer)?, given(req_ptr)?);
        // SAFETY: the contract of C.
        let (node, service) = unsafe { (text(addr)?, text(port)?) };
        let request = ConnRequest::new(peer, node, service, &conn_cfg::chosen(cfg))?;
        place.write(Some(Box::new(request)));
        Ok(())
    }

    /// Deletes a request; an incoming one is rejected.
    fn rpma_conn_req_delete(req_ptr: Slot<'_, ConnRequest>) {
        match given(req_ptr)?.take() {
            Some(request) => Ok(request.reject(None)?),
            None => Ok(()),
        }
    }

    /// Asks for the connection, or accepts it. The request is used up whatever happens.
    fn rpma_conn_req_connect(
        req_ptr: Slot<'_, ConnRequest>,
        pdata: Option<&PrivateData>,
        conn_ptr: OutHandle<'_, Connection>,
    ) {
        let request = given(given(req_ptr)?.take())?;
        let place = given(conn_ptr)?;
        let data = match pdata {
            None => None,
            // SAFETY: the contract of C.
            Some(data) => Some(unsafe { data.bytes() }.ok_or(INVAL)?),
        };
        let connection = request.connect(data).map_err(|err| match err {
            // librpma lets the provider say so.
            Error::TooLong { .. } => {
                log::emit(log::ERROR, file!(), line!(), "rpma_conn_req_connect", format_args!("{err}"));
                Failure::Code(code::PROVIDER)
            }
            err => err.into(),
        })?;
        // From here on the modes of the fds are the program's.
        rpma::capi_support::make_fds_blocking(&connection)?;
        place.write(Some(Box::new(connection)));
        Ok(())
    }

    /// The private data of an incoming request.
    fn rpma_conn_req_get_private_data(req: Option<&ConnRequest>, pdata: Out<'_, PrivateData>) {
        let (request, place) = (given(req)?, given(pdata)?);
        place.write(PrivateData::of(request.private_data()));
        Ok(())
    }

    /// Posts a receive.
    fn rpma_conn_req_recv(
        req: Option<&ConnRequest>,
        dst: Option<&Local>,
        offset: usize,
        len: usize,
        op_context: *const c_void,
    ) {
        let request = given(req)?;
        Ok(request.recv(&mr::buffer(dst, offset, len)?, op_context as u64)?)
    }
}
