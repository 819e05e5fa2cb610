//! What a failed call should lead to.

use rpma::Error;

/// Does the call end an object?
pub fn destroys(call: &str) -> bool {
    call.contains("_destroy_")
        || matches!(call, "ibv_dealloc_pd" | "ibv_dereg_mr" | "ibv_close_device")
}

/// What is wrong with `errors` after `call` failed with `errno`; `None` when nothing is.
pub fn judge(call: &str, errno: i32, errors: &[Error]) -> Option<&'static str> {
    match errors {
        [] if made_up_for(call, errno) => None,
        [] => Some("nobody was told"),
        _ if interrupted(call, errno) => Some("the call was interrupted, and not made again"),
        // What stays because its end was refused may be in the way of something else.
        _ if destroys(call) => None,
        [err, ..] if !names(err, call, errno) => Some("the error does not name the call"),
        _ => None,
    }
}

/// Is it a failure that the crate makes up for, or can tell by its log only?
pub fn made_up_for(call: &str, errno: i32) -> bool {
    let refused = matches!(errno, libc::EINVAL | libc::EOPNOTSUPP);
    match call {
        // In a drop: an acknowledgement or a rejection that fails leaves nobody to tell.
        "rdma_ack_cm_event" | "rdma_reject" => true,
        "rdma_get_cm_event" | "ibv_get_cq_event" | "ibv_get_async_event" => {
            matches!(errno, libc::EAGAIN | libc::EINTR)
        }
        // Fewer rights, or on-demand paging, are tried.
        "ibv_reg_mr" | "ibv_reg_mr_iova2" | "ibv_reg_dmabuf_mr" => refused,
        // C's own fallback; and advice that nobody has to follow.
        "ibv_query_device_ex" => errno == libc::EOPNOTSUPP,
        "ibv_advise_mr" => refused,
        // The list of GIDs is empty.
        "_ibv_query_gid_table" => true,
        // The receiver's timer stays as the connection manager has set it.
        "ibv_modify_qp" => true,
        // A queue pair with fewer operations is tried; less inline data is.
        "rdma_create_qp_ex" | "ibv_create_qp" => refused,
        "poll" | "open" | "fsync" | "fallocate" | "posix_fallocate" => interrupted(call, errno),
        // Files without MAP_SYNC are mapped without.
        "mmap" => refused,
        // In a drop: for the log only.
        "munmap" => true,
        _ => destroys(call),
    }
}

/// Is it a system call that a signal has ended? That is no failure: it is made again.
pub fn interrupted(call: &str, errno: i32) -> bool {
    matches!(
        call,
        "poll" | "open" | "fsync" | "fallocate" | "posix_fallocate"
    ) && errno == libc::EINTR
}

/// Does the error say which call it was, and what it said?
fn names(err: &Error, call: &str, errno: i32) -> bool {
    let said = err.raw_os_error();
    let right_errno = errno == 0 || said == Some(errno) || said.is_none();
    right_errno
        && match err {
            Error::Provider { call: named, .. }
            | Error::OutOfMemory { call: named, .. }
            | Error::QueueFull { call: named, .. }
            | Error::PartlyPosted { call: named, .. }
            | Error::Again { call: named } => {
                named.as_str() == call || aliases(call).contains(&named.as_str())
            }
            Error::NoDevice { .. } => matches!(
                call,
                "rdma_bind_addr" | "rdma_resolve_addr" | "rdma_get_devices"
            ),
            Error::Resolve { .. } => call == "getaddrinfo",
            // It was not there, says the device.
            Error::NotSupported { .. } => {
                errno == libc::EOPNOTSUPP && matches!(call, "ibv_advise_mr" | "ibv_reg_dmabuf_mr")
            }
            _ => false,
        }
}

/// Other names that the crate has for a call: C's macros choose between the first and the second.
pub fn aliases(call: &str) -> &'static [&'static str] {
    match call {
        "ibv_reg_mr_iova2" | "ibv_reg_mr_iova" => &["ibv_reg_mr"],
        // The crate names the operation.
        "ibv_wr_complete" => &["ibv_wr_flush", "ibv_wr_atomic_write"],
        "ibv_query_device" => &["ibv_query_device_ex"],
        _ => &[],
    }
}

/// An error that says the same.
pub fn copy(err: &Error) -> Error {
    Error::Resolve {
        node: err.to_string(),
        service: String::new(),
        reason: String::new(),
    }
}
