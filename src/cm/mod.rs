//! Endpoints, connection requests and connections.
//!
//! Every event is copied and acknowledged before it is handed on, so nobody waits for an
//! acknowledgement when an id is destroyed.

mod conn_cfg;
mod connection;
mod endpoint;
mod event;
mod granted;
mod operations;
mod parts;
pub(crate) mod raw;
mod request;

pub use conn_cfg::ConnCfg;
pub use connection::{Connection, Fired};
pub use endpoint::{Endpoint, EndpointCfg};
pub use event::{ConnEvent, ConnEventKind};
pub use operations::Operations;
pub use raw::Host;
pub use request::ConnRequest;

pub use crate::numbers::CmEventKind;
