//! Raw bindings to libibverbs and librdmacm.
#![no_std]
#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    reason = "C's names"
)]

#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "made by a tool")]
mod bindings;
mod constants;
mod inline;

pub use bindings::*;
pub use constants::*;
pub use inline::*;
