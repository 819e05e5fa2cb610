//! Memory regions: bytes that a device may reach, of this machine and of peers.
//!
//! `memory/` is where all memory access happens, and the only place here with unsafe code. The rest
//! is arithmetic, and can be tested without a device.
//!
//! - [`Memory`] owns bytes, a [`LocalRegion`] is memory that a device has, a [`LocalSlice`] or an
//!   [`OwnedSlice`] is a part of it to be posted;
//! - a [`Descriptor`] makes a region known to a peer, which makes a [`RemoteRegion`] of it and
//!   posts [`RemoteSlice`]s;
//! - [`Usage`] says what a region is registered for, [`FlushKind`] and [`FlushMethods`] how it can
//!   be flushed.

mod advice;
mod descriptor;
mod flush;
mod held;
mod local;
mod memory;
mod owned;
pub(crate) mod quick;
mod remote;
mod usage;

pub use advice::Advice;
pub use descriptor::Descriptor;
pub(crate) use flush::FlushPlan;
pub use flush::{FlushKind, FlushMethod, FlushMethods};
pub use local::{AsLocalSlice, LocalRegion, LocalSlice};
pub(crate) use memory::range;
pub use memory::{HugePage, Memory, StableBytes};
pub use owned::OwnedSlice;
pub use remote::{RemoteRegion, RemoteSlice};
pub use usage::Usage;

pub(crate) use usage::AccessEnv;
