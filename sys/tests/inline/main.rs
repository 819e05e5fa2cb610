//! The inline verbs on made-up objects, without a device: each must reach the entry it is for with
//! its arguments in order, and do what C does when the entry is not there.

mod cq_ex;
mod data_path;
mod extended;
mod fake;
mod wr;
