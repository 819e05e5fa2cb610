//! Completion queues.

use std::{
    ffi::c_int,
    os::fd::{AsFd, AsRawFd},
};

use rdma_sys as ffi;
use rpma::{Completion, Cq, code};

use crate::{Failure, INVAL, Out, c_api, given};

pub(crate) const NO_COMPLETION: Failure = Failure::Code(code::NO_COMPLETION);

c_api! {
    /// The fd of the completion channel.
    fn rpma_cq_get_fd(cq: Option<&Cq>, fd: Out<'_, c_int>) {
        let (cq, place) = (given(cq)?, given(fd)?);
        place.write(cq.as_fd().as_raw_fd());
        Ok(())
    }

    /// Waits for news, or says that there is none, as the fd is set.
    fn rpma_cq_wait(cq: Option<&Cq>) {
        match given(cq)?.wait_as_fd_is_set()? {
            true => Ok(()),
            false => Err(NO_COMPLETION),
        }
    }

    /// Takes completions.
    fn rpma_cq_get_wc(
        cq: Option<&Cq>,
        num_entries: c_int,
        wc: *mut ffi::ibv_wc,
        num_entries_got: Option<&mut c_int>,
    ) {
        let cq = given(cq)?;
        let room = usize::try_from(num_entries).map_err(|_| INVAL)?;
        if room < 1 || wc.is_null() || (room > 1 && num_entries_got.is_none()) {
            return Err(INVAL);
        }
        // SAFETY: the contract of C: room for so many. The struct is made of plain numbers, and the crate only writes to it.
        let list = unsafe { std::slice::from_raw_parts_mut(wc, room) };
        let got = cq.poll(Completion::from_raw_mut(list))?.len();
        if got == 0 {
            return Err(NO_COMPLETION);
        }
        if let Some(place) = num_entries_got {
            *place = got as c_int;
        }
        Ok(())
    }
}
