//! The peer.

use rdma_sys as ffi;
use rpma::Peer;

use crate::{INVAL, OutHandle, Slot, c_api, given, log};

c_api! {
    /// Makes a peer on a device.
    fn rpma_peer_new(ibv_ctx: *mut ffi::ibv_context, peer_ptr: OutHandle<'_, Peer>) {
        let place = given(peer_ptr)?;
        if ibv_ctx.is_null() {
            return Err(INVAL);
        }
        log::install();
        place.write(Some(Box::new(Peer::from_raw_context(ibv_ctx)?)));
        Ok(())
    }

    /// Deletes a peer; what was made on it keeps what it needs.
    fn rpma_peer_delete(peer_ptr: Slot<'_, Peer>) {
        given(peer_ptr)?.take();
        Ok(())
    }
}
