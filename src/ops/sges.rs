//! Scatter/gather lists.

use std::mem::MaybeUninit;

use rdma_sys as ffi;

use super::check::check_local;
use crate::{Error, Result, Usage, mr::LocalSlice};

/// The most scatter/gather elements of one request that this crate passes on.
pub(crate) const MAX_SGE: usize = 16;

/// A scatter/gather list on the stack.
pub(super) struct Sges {
    list: [MaybeUninit<ffi::ibv_sge>; MAX_SGE],
    len: usize,
}

impl Sges {
    #[inline]
    pub(super) fn new() -> Self {
        Sges {
            list: [const { MaybeUninit::uninit() }; MAX_SGE],
            len: 0,
        }
    }

    /// Checks the slices and takes those that are not empty; gives their length in total.
    #[inline]
    pub(super) fn gather(
        &mut self,
        tag: u64,
        usage: Usage,
        argument: &'static str,
        slices: &[LocalSlice<'_>],
        max_sge: u32,
    ) -> Result<u64> {
        let mut total = 0u64;
        for slice in slices {
            check_local(tag, slice, usage, argument)?;
            total = total.saturating_add(slice.len());
            if slice.is_empty() {
                continue;
            }
            if self.len >= max_sge as usize || self.len >= MAX_SGE {
                return Err(too_many_sges(argument, slices.len(), max_sge));
            }
            self.list[self.len].write(slice.sge);
            self.len += 1;
        }
        Ok(total)
    }

    /// One element of no bytes, where there is none.
    pub(super) fn fill_empty(&mut self) {
        if self.len == 0 {
            self.list[0].write(LocalSlice::EMPTY.sge);
            self.len = 1;
        }
    }

    /// What was gathered.
    #[inline]
    pub(super) fn as_slice(&self) -> &[ffi::ibv_sge] {
        // SAFETY: the first `len` elements were written.
        unsafe { std::slice::from_raw_parts(self.list.as_ptr().cast(), self.len) }
    }
}

#[cold]
fn too_many_sges(argument: &'static str, length: usize, limit: u32) -> Error {
    Error::TooLong {
        argument,
        length: length as u64,
        limit: u64::from(limit),
        limited_by: "the scatter/gather list of the queue (ConnCfg::max_sge)",
    }
}
