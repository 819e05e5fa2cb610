//! The only code that calls librdmacm, but for the list of devices: ids, event channels, events,
//! addresses.
//!
//! # Safety
//! An `Id` owns one cm id and, once it has one, its queue pair; it keeps its event channel alive, and
//! gives all back in the one right order. An event is acknowledged when it is dropped, and owns what
//! it came with until then.
#![allow(unsafe_code)]

mod addr;
mod channel;
mod event;
mod id;

pub(crate) use addr::{
    Address, block_signals, bound_context, no_service, resolve, resolved_context,
};
pub(crate) use channel::EventChannel;
pub(crate) use event::RawEvent;
pub(crate) use id::{ConnParam, Id};
