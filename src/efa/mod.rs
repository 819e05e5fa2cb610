//! Completion queues of AWS's EFA, looked at directly (feature `efa`).
//!
//! EFA has no reliable connections and no connection manager: connections of this crate cannot run
//! on it. This module is a room of its own for programs that use EFA's datagram queue pairs (UD and
//! SRD) with libibverbs and libefa, and want to see their completion queues as the device writes
//! them:
//!
//! - [`Device`]: the proof that a device is EFA, its [limits and capabilities](DeviceAttr), the
//!   greatest depth of a work queue, the layout of a queue pair's work queues, the interconnects to
//!   a region.
//! - [`Cq`]: completion queues with events or without, with source GIDs, in memory of the caller's.
//! - [`CqRing`]: a safe look at a queue's entries that consumes nothing. [`Entry`] is one of them,
//!   decoded.
//! - [`Poller`]: an `unsafe` consumer of the entries in place of libibverbs, with the doorbell.
//!
//! Creating queue pairs is not in it.
//!
//! # The library
//! Nothing of libefa is needed to build, link or start a program with this feature: `libefa.so.1`
//! is loaded when the first [`Device`] is asked for, and stays loaded. What it lacks is reported
//! where it is called, as [`Error::NotSupported`](crate::Error::NotSupported) with the rdma-core
//! release that has it.
//!
//! | what | since rdma-core | Debian, Ubuntu that have it |
//! |---|---|---|
//! | [`Device`] | 26 | all |
//! | [`Device::create_cq`] | 43 | Debian 12, Ubuntu 24.04 |
//! | [`Device::query_mr`] | 50 | Debian 13, Ubuntu 24.04 |
//! | [`Cq::attr`], [`Cq::ring`], [`Device::query_raw_qp`] | 59 | testing |
//! | the doorbell of [`CqAttr`] and [`Poller`] | 60 | testing |
//! | [`Device::max_sq_depth`], [`Device::max_rq_depth`] | 63 | testing |
//!
//! # Example
//! Create a queue, wait for completions with libibverbs' means, and look at the entries meanwhile:
//!
//! ```no_run
//! use rpma::efa::{CqOptions, Device, DeviceCaps};
//! use std::time::Duration;
//!
//! # fn main() -> rpma::Result<()> {
//! let device = Device::open("rdmap0s6")?;
//! println!("{:?}", device.attr());
//! let options = CqOptions {
//!     channel: true,
//!     source_gids: device.attr().capabilities.contains(DeviceCaps::CQ_WITH_SGID),
//!     ..CqOptions::new(512)
//! };
//! let cq = device.create_cq(options)?;
//!
//! // Create protection domain, regions and SRD queue pairs on device.as_raw() and cq.as_raw(), connect them, post to them.
//!
//! let ring = cq.ring()?;
//! let mut cursor = ring.start();
//! let mut completions = vec![Default::default(); 64];
//! loop {
//!     cq.arm()?;
//!     // What is new, as the device wrote it. Nobody misses it for being looked at.
//!     while let Some(entry) = ring.ready(&cursor) {
//!         println!("{}: {} of queue pair {}", entry.operation(), entry.status(), entry.qp_num());
//!         cursor.advance();
//!     }
//!     let n = cq.poll_ex(&mut completions)?;
//!     for wc in &completions[..n] {
//!         println!("{}: {}, from {:?}", wc.wr_id, wc.status, wc.source_gid);
//!     }
//!     if !cq.wait(Some(Duration::from_secs(1)))? {
//!         break;
//!     }
//! }
//! # Ok(())
//! # }
//! ```
#![allow(unsafe_code)]

mod abi;
mod attr;
mod cq;
mod decode;
mod device;
mod library;
mod poll_ex;
mod poller;
mod ring;

#[doc(hidden)]
pub use abi::efadv_cq_init_attr;
pub use attr::{CqAttr, DeviceAttr, DeviceCaps, MrAttr, QpWqs, SqShape, WqAttr, WqCaps};
pub use cq::{Cq, CqOptions, ExternalMemory};
pub use decode::{Cursor, Entry, Operation, Phase, Queue, Status};
pub use device::Device;
#[doc(hidden)]
pub use library::Library;
pub use poll_ex::CompletionEx;
pub use poller::Poller;
pub use ring::CqRing;
