//! Device contexts.

use std::{
    ffi::{c_char, c_int, c_uint},
    ptr::NonNull,
    sync::{Mutex, PoisonError},
};

use rdma_sys as ffi;
use rpma::capi_support::{RawContext, capabilities, uses_odp};

use crate::{INVAL, Out, c_api, given, log, text};

/// The contexts that were handed out, each once. A program has no way to give one back, so they
/// stay open until the process ends.
static HANDED_OUT: Mutex<Vec<RawContext>> = Mutex::new(Vec::new());

const LOCAL: c_uint = 0;
const REMOTE: c_uint = 1;

c_api! {
    /// The device of an address.
    fn rpma_utils_get_ibv_context(
        addr: *const c_char,
        kind: c_uint,
        ibv_ctx_ptr: Out<'_, *mut ffi::ibv_context>,
    ) {
        let place = given(ibv_ctx_ptr)?;
        // SAFETY: the contract of C.
        let address = unsafe { text(addr) }?;
        log::install();
        let context = match kind {
            LOCAL => RawContext::local(address)?,
            REMOTE => RawContext::remote(address)?,
            _ => return Err(INVAL),
        };
        place.write(context.as_ptr());
        let mut handed_out = HANDED_OUT.lock().unwrap_or_else(PoisonError::into_inner);
        if !handed_out.iter().any(|known| known.as_ptr() == context.as_ptr()) {
            handed_out.push(context);
        }
        Ok(())
    }

    /// Can regions on the device be paged on demand?
    fn rpma_utils_ibv_context_is_odp_capable(
        ibv_ctx: Option<NonNull<ffi::ibv_context>>,
        is_odp_capable: Out<'_, c_int>,
    ) {
        let (context, place) = (given(ibv_ctx)?, given(is_odp_capable)?);
        // SAFETY: the contract of C.
        let caps = unsafe { capabilities(context) }?;
        place.write(c_int::from(uses_odp(&caps)));
        Ok(())
    }
}
