//! The only code that calls libibverbs.
//!
//! # Safety
//! The types of this folder wrap one verbs object each and keep alive what the object hangs on.
//! Three facts make their methods safe to call from several threads: libibverbs and its providers
//! lock their own queues (`ibv_post_send(3)` and its kin are thread safe), every object is
//! destroyed exactly once by its owner's drop, and memory that a device may still reach is freed
//! only after its registration is gone. Raw verbs pointers are used by the other rooms with unsafe
//! code only; the rest hands them on.
#![allow(unsafe_code)]

mod acks;
mod async_event;
mod check;
mod context;
mod cq;
mod mr;
mod pd;
mod presence;
mod probe;
mod qp;
mod qp_attr;
mod srq;
mod wc;
mod workarounds;
mod wr;

#[cfg(feature = "efa")]
pub(crate) use acks::Acks;
pub use async_event::{AsyncEvent, AsyncSubject};
pub(crate) use check::{check, check_ptr, errno, last_errno, nothing_yet};
pub(crate) use context::{Context, GidEntry, device_name};
pub(crate) use cq::{CqId, RawChannel, RawCq, poll_failed};
pub(crate) use mr::{Mr, Refused};
pub(crate) use pd::Pd;
pub(crate) use presence::{explained, no_device};
pub(crate) use probe::max_inline;
pub(crate) use qp::{PostReceives, RawQp};
pub use qp_attr::DataInOrder;
pub(crate) use srq::RawSrq;
pub use wc::Completion;
pub(crate) use workarounds::{FIRST_PART, SHORT, Workarounds};
pub(crate) use wr::{Op, Request, Target, flush_arg, is_one, op, start, start_with_elements};
