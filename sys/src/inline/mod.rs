//! The verbs that are not exported symbols: in C they are inline functions and macros of the
//! headers.
//!
//! Names, argument order and return values are C's. How the calls find their way:
//!
//! | file | reaches the provider through |
//! |---|---|
//! | `context` | the extended table in front of `ibv_context` (`verbs_context`), with a fallback where C has one |
//! | `create` | the same table, for objects |
//! | `memory` | the same table, and the choice between two exported registration calls |
//! | `data_path` | `ibv_context.ops` |
//! | `wr` | the entries of `ibv_qp_ex` |
//! | `cq_ex` | the entries of `ibv_cq_ex` |
//! | `cm` | nothing: field addresses of `rdma_cm_id` |

mod cm;
mod context;
mod cq_ex;
mod create;
mod data_path;
mod memory;
mod wr;

pub use cm::*;
pub use context::*;
pub use cq_ex::*;
pub use create::*;
pub use data_path::*;
pub use memory::*;
pub use wr::*;

use core::ptr;
use libc::c_int;

/// What a verb that returns a pointer says when the provider has no such call: null, and `errno` is
/// `EOPNOTSUPP`.
fn null_unsupported<T>() -> *mut T {
    set_errno(libc::EOPNOTSUPP);
    ptr::null_mut()
}

fn set_errno(value: c_int) {
    // SAFETY: the C library returns the address of this thread's errno, always valid.
    unsafe { *libc::__errno_location() = value }
}
