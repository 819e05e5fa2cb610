//! A stand-in RDMA device: `libibverbs.so.1` and `librdmacm.so.1` in one process, without kernel,
//! device or network.
//!
//! A program linked with the real libraries runs on it with `LD_LIBRARY_PATH` at the folder that
//! `ci/standin` prints. Both ends of a connection are in the same process. See README.md beside
//! this package.
//!
//! # Safety
//! The exported functions are C's: what their man pages ask of a caller they ask here. Beyond that,
//! an object that was destroyed, or never existed, is recognised by its address and refused; the
//! memory of destroyed objects is kept for a while, so that a late use is not executed.

#![allow(
    missing_docs,
    clippy::missing_safety_doc,
    reason = "the functions are C's, and documented there"
)]

mod async_event;
mod calls;
mod cm;
mod config;
mod control;
mod cq;
mod cq_ex;
mod device;
mod doorbell;
mod engine;
mod lock;
mod memory;
mod misc;
mod mr;
mod null;
mod ops;
mod post;
mod qp;
mod qp_ex;
mod query;
mod respond;
mod ret;
mod siw_fault;
mod srq;
mod table;
mod timers;
mod violations;
mod world;
mod wqe;
