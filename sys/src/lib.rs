//! Raw bindings to libibverbs and librdmacm.

#[allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    clippy::all,
    clippy::pedantic
)]
mod bindings;

pub use bindings::*;
