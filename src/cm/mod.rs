//! The only code that calls librdmacm: addresses, event channels, cm ids; and what is made of them: endpoints, connection requests and
//! connections.
//!
//! # Safety
//! An `Id` owns one cm id and, once it has one, its queue pair; it keeps its event channel, its protection domain and its CQs
//! alive, and gives all back in the one right order. Every event is copied and acknowledged before it is handed on, so nobody
//! waits for an acknowledgement when an id is destroyed.
#![allow(unsafe_code)]

mod addr;
mod channel;
mod conn_cfg;
mod connection;
mod devices;
mod endpoint;
mod event;
mod host;
pub(crate) mod id;
mod ops;
mod ops_try;
mod parts;
mod request;

pub(crate) use addr::{Address, bound_context, resolved_context};
pub use conn_cfg::{ConnCfg, FlushMethod};
pub use connection::{Connection, Fired};
pub use devices::RawContext;
pub(crate) use devices::{context_by_name, context_of, contexts};
pub use endpoint::{Endpoint, EndpointCfg};
pub use event::{CmEventKind, ConnEvent, ConnEventKind};
pub use host::Host;
pub(crate) use host::Target;
pub use request::ConnRequest;
