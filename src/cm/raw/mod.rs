//! The only code that calls librdmacm: ids, event channels, events, addresses, devices.
//!
//! # Safety
//! An `Id` owns one cm id and, once it has one, its queue pair; it keeps its event channel alive,
//! and gives all back in the one right order. An event is acknowledged when it is dropped, and owns
//! what it came with until then.
#![allow(unsafe_code)]

mod addr;
mod channel;
mod devices;
mod event;
mod host;
mod id;
mod signals;

pub(crate) use addr::{Address, bound_context, no_service, resolve, resolved_context};
pub(crate) use channel::EventChannel;
pub(crate) use devices::{context_by_name, context_of, contexts};
pub(crate) use event::RawEvent;
pub use host::Host;
pub(crate) use host::{OrUnknown, Target};
pub(crate) use id::{ConnParam, Id, QpRequest};
pub(crate) use signals::block_signals;
