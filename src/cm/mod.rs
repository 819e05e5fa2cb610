//! Endpoints, connection requests and connections.
//!
//! Every event is copied and acknowledged before it is handed on, so nobody waits for an
//! acknowledgement when an id is destroyed.

mod conn_cfg;
mod connection;
#[allow(unsafe_code)]
mod devices;
mod endpoint;
mod event;
mod granted;
mod host;
mod operations;
#[allow(unsafe_code)]
mod parts;
pub(crate) mod raw;
#[allow(unsafe_code)]
mod request;

pub use conn_cfg::ConnCfg;
pub use connection::{Connection, Fired};
pub use devices::RawContext;
pub(crate) use devices::{context_by_name, context_of, contexts};
pub use endpoint::{Endpoint, EndpointCfg};
pub use event::{ConnEvent, ConnEventKind};
pub use host::Host;
pub(crate) use host::Target;
pub use operations::Operations;
pub(crate) use raw::{Address, bound_context, resolved_context};
pub use request::ConnRequest;

pub use crate::numbers::CmEventKind;
