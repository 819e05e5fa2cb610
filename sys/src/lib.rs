//! Raw bindings to libibverbs and librdmacm: the types, constants and functions of
//! `infiniband/verbs.h` and `rdma/rdma_cma.h`.
//!
//! Item names, argument order and return values are C's, and the man pages of rdma-core are their
//! reference. Nothing here is safe, and nothing interprets what a verb returns: see the `rpma`
//! crate for that.
//!
//! - Enums are integer aliases with constants (`IBV_WC_SUCCESS: ibv_wc_status`), so a value that
//!   this crate does not know is only a number.
//! - Structs and unions are `Default`: all zeros. Unions without a name in C are fields named
//!   `__bindgen_anon_1`, `_2` in order.
//! - The verbs that are inline functions or macros in C (posting, polling, the extended verbs) are
//!   functions here, `#[inline]`.
//! - Types of the C library (`sockaddr`, `pthread_mutex_t`) are those of the `libc` crate.
//!
//! # Which rdma-core
//!
//! The bindings are made from v65 and serve every release from v44 (Debian 12) on, without looking
//! at the version. This is why one layout serves all, and what it asks of a caller:
//!
//! - **Functions** that v44 does not export are left out, so a program links and loads everywhere.
//!   (`ibv_query_port_speed`, `ibv_reg_mr_ex`, `ibv_wr_opcode_str`, the calls for DMA handles,
//!   buffers and completion counters, `rdma_resolve_addrinfo`, `rdma_query_addrinfo`,
//!   `rdma_write_cm_event`.)
//! - **[`ibv_qp_ex`]** grew by one entry at its end in v45, `wr_flush`: call [`ibv_wr_flush`] only
//!   on a QP that was created with [`IBV_QP_EX_WITH_FLUSH`], which an older library refuses. The QP
//!   is made by the library: never copy or move one.
//! - **[`ibv_port_attr`]** is the caller's, and grew from 52 to 56 bytes after v44
//!   (`active_speed_ex`): [`ibv_query_port`] clears it and passes its size.
//! - **[`verbs_context`]**, the table in front of a context, grows at its front: never touch its
//!   fields directly. The verbs that use it check `verbs_context.sz` first, and whether the context
//!   has a table at all.
//! - **Constants** may be younger than the library or the kernel, which then refuse them. Flush
//!   (`IBV_ACCESS_FLUSH_*`, `IBV_WR_FLUSH`, `IBV_WC_FLUSH`) came with v45 and Linux 6.2; atomic
//!   write with v44 and Linux 6.2.
//!
//! All other structs are the same, byte for byte: the test `layouts` compares every size, offset
//! and constant with C, and `ci/layouts` does so for the headers of several releases.
//!
//! # Linking
//!
//! pkg-config finds `libibverbs` and `librdmacm`, or else the linker's own search path. The
//! variable `RPMA_SYS_LIB_DIR` names a folder to search instead. Documentation (`DOCS_RS` set)
//! builds without the libraries.
//!
//! # Regenerating
//!
//! `sys/regenerate` in the repository, for maintainers; the README beside it says what to look at
//! afterwards.
#![no_std]
#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    reason = "C's names"
)]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("rpma-sys: only 64-bit Linux; the layouts have been compared there");

#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "made by a tool")]
mod bindings;
mod constants;
mod inline;

pub use bindings::*;
pub use constants::*;
pub use inline::*;
