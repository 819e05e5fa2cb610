//! The endpoint.

use std::{
    ffi::{c_char, c_int},
    os::fd::{AsFd, AsRawFd},
};

use rpma::{
    ConnRequest, Endpoint, Peer,
    capi_support::{make_fd_blocking, next_request},
    code,
};

use crate::{
    Failure, Out, OutHandle, Slot, c_api,
    conn_cfg::{self, Cfg},
    given, text,
};

c_api! {
    /// Listens.
    fn rpma_ep_listen(
        peer: Option<&Peer>,
        addr: *const c_char,
        port: *const c_char,
        ep_ptr: OutHandle<'_, Endpoint>,
    ) {
        let (peer, place) = (given(peer)?, given(ep_ptr)?);
        // SAFETY: the contract of C.
        let (node, service) = unsafe { (text(addr)?, text(port)?) };
        let endpoint = Endpoint::listen(peer, node, service)?;
        // From here on the mode of the fd is the program's.
        make_fd_blocking(endpoint.as_fd())?;
        place.write(Some(Box::new(endpoint)));
        Ok(())
    }

    /// Stops listening. The endpoint is gone whatever happens.
    fn rpma_ep_shutdown(ep_ptr: Slot<'_, Endpoint>) {
        match given(ep_ptr)?.take() {
            Some(endpoint) => Ok(endpoint.close()?),
            None => Ok(()),
        }
    }

    /// The fd that is readable when a request is there.
    fn rpma_ep_get_fd(ep: Option<&Endpoint>, fd: Out<'_, c_int>) {
        let (endpoint, place) = (given(ep)?, given(fd)?);
        place.write(endpoint.as_fd().as_raw_fd());
        Ok(())
    }

    /// Waits for the next request, or says that there is none, as the fd is set.
    fn rpma_ep_next_conn_req(
        ep: Option<&Endpoint>,
        cfg: Option<&Cfg>,
        req_ptr: OutHandle<'_, ConnRequest>,
    ) {
        let (endpoint, place) = (given(ep)?, given(req_ptr)?);
        match next_request(endpoint, &conn_cfg::chosen(cfg))? {
            Some(request) => {
                place.write(Some(Box::new(request)));
                Ok(())
            }
            None => Err(Failure::Code(code::NO_EVENT)),
        }
    }
}
