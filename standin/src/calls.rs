//! Every call that a program makes into the stand-in: counted, named, and made to fail on demand.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use libc::c_int;

use crate::lock::{Guard, Lock};

/// How many calls the trace keeps at most.
const TRACE_LIMIT: usize = 1 << 20;

macro_rules! calls {
    ($($name:ident $errno:expr;)*) => {
        /// One per function and per entry of the operations tables, under C's name.
        #[allow(non_camel_case_types, missing_docs, reason = "C's names")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Call { $($name,)* }

        /// The names, in the order of [`Call`].
        pub const NAMES: &[&str] = &[$(stringify!($name),)*];
        /// What a failure gives when the test names no errno; 0: the call cannot fail.
        const ERRNO: &[c_int] = &[$($errno,)*];
        const ALL: &[Call] = &[$(Call::$name,)*];
    };
}

calls! {
    ibv_get_device_list libc::ENOMEM;
    ibv_free_device_list 0;
    ibv_get_device_name 0;
    ibv_get_device_index 0;
    ibv_get_device_guid 0;
    ibv_open_device libc::ENODEV;
    ibv_close_device libc::EBUSY;
    ibv_get_async_event libc::EIO;
    ibv_ack_async_event 0;
    ibv_query_device libc::EIO;
    ibv_query_device_ex libc::EIO;
    ibv_query_port libc::EIO;
    ibv_query_gid libc::EIO;
    _ibv_query_gid_ex libc::EIO;
    _ibv_query_gid_table libc::EIO;
    ibv_query_pkey libc::EIO;
    ibv_alloc_pd libc::ENOMEM;
    ibv_dealloc_pd libc::EBUSY;
    ibv_reg_mr libc::ENOMEM;
    ibv_reg_mr_iova libc::ENOMEM;
    ibv_reg_mr_iova2 libc::ENOMEM;
    ibv_reg_dmabuf_mr libc::ENOMEM;
    ibv_dereg_mr libc::EBUSY;
    ibv_advise_mr libc::EIO;
    ibv_create_comp_channel libc::EMFILE;
    ibv_destroy_comp_channel libc::EBUSY;
    ibv_create_cq libc::ENOMEM;
    ibv_create_cq_ex libc::ENOMEM;
    ibv_start_poll libc::EIO;
    ibv_next_poll libc::EIO;
    ibv_end_poll 0;
    ibv_resize_cq libc::ENOMEM;
    ibv_destroy_cq libc::EBUSY;
    ibv_get_cq_event libc::EIO;
    ibv_ack_cq_events 0;
    ibv_poll_cq libc::EIO;
    ibv_req_notify_cq libc::EIO;
    ibv_create_srq libc::ENOMEM;
    ibv_modify_srq libc::EIO;
    ibv_query_srq libc::EIO;
    ibv_destroy_srq libc::EBUSY;
    ibv_post_srq_recv libc::ENOMEM;
    ibv_create_qp libc::ENOMEM;
    ibv_create_qp_ex libc::ENOMEM;
    ibv_modify_qp libc::EIO;
    ibv_query_qp libc::EIO;
    ibv_destroy_qp libc::EBUSY;
    ibv_post_send libc::ENOMEM;
    ibv_post_recv libc::ENOMEM;
    ibv_wr_start 0;
    ibv_wr_complete libc::ENOMEM;
    ibv_wr_abort 0;
    ibv_qp_to_qp_ex 0;
    ibv_fork_init libc::ENOMEM;
    ibv_is_fork_initialized 0;
    ibv_wc_status_str 0;
    ibv_event_type_str 0;
    ibv_node_type_str 0;
    ibv_port_state_str 0;
    rdma_create_event_channel libc::EMFILE;
    rdma_destroy_event_channel 0;
    rdma_create_id libc::ENOMEM;
    rdma_create_ep libc::ENOMEM;
    rdma_destroy_ep 0;
    rdma_destroy_id libc::EBUSY;
    rdma_bind_addr libc::EADDRNOTAVAIL;
    rdma_resolve_addr libc::ENODEV;
    rdma_resolve_route libc::EIO;
    rdma_create_qp libc::ENOMEM;
    rdma_create_qp_ex libc::ENOMEM;
    rdma_destroy_qp 0;
    rdma_create_srq libc::ENOMEM;
    rdma_create_srq_ex libc::ENOMEM;
    rdma_destroy_srq 0;
    rdma_connect libc::EIO;
    rdma_establish libc::EIO;
    rdma_listen libc::EADDRINUSE;
    rdma_get_request libc::EIO;
    rdma_accept libc::EIO;
    rdma_reject libc::EIO;
    rdma_notify libc::EIO;
    rdma_disconnect libc::EIO;
    rdma_get_cm_event libc::EIO;
    rdma_ack_cm_event libc::EINVAL;
    rdma_get_src_port 0;
    rdma_get_dst_port 0;
    rdma_get_devices libc::ENOMEM;
    rdma_free_devices 0;
    rdma_event_str 0;
    rdma_set_option libc::EIO;
    rdma_migrate_id libc::ENOMEM;
    rdma_getaddrinfo libc::ENOMEM;
    rdma_freeaddrinfo 0;
    rdma_init_qp_attr libc::EIO;
}

static COUNTS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];
static INDEX: AtomicU64 = AtomicU64::new(0);
/// Set while there is a plan or a trace, so that the usual call pays one load.
static WATCHED: AtomicBool = AtomicBool::new(false);
static PLAN: Lock<Plan> = Lock::new(|| Plan::EMPTY);
/// Whether an object goes although its destruction is made to fail.
static FAILED_DESTROYS_FREE: AtomicBool = AtomicBool::new(false);
/// A destruction was made to fail, and its object stayed: what it uses cannot go either, by no
/// fault of the program.
static KEPT: AtomicBool = AtomicBool::new(false);

struct Plan {
    /// (call, its count at which to fail, errno)
    nth: Vec<(Call, u64, c_int)>,
    /// (global index at which to fail, errno)
    index: Vec<(u64, c_int)>,
    fired: u64,
    trace: Option<Vec<Call>>,
}

impl Plan {
    const EMPTY: Self = Self {
        nth: Vec::new(),
        index: Vec::new(),
        fired: 0,
        trace: None,
    };
}

impl Call {
    /// C's name.
    pub fn name(self) -> &'static str {
        NAMES.get(self as usize).copied().unwrap_or("?")
    }

    /// The call of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        let at = NAMES.iter().position(|n| *n == name)?;
        ALL.get(at).copied()
    }

    /// Whether this call has a way to report an error.
    pub fn can_fail(self) -> bool {
        ERRNO.get(self as usize).is_some_and(|e| *e != 0)
    }
}

/// Counts the call. `Some(errno)`: the test wants it to fail.
pub fn enter(call: Call) -> Option<c_int> {
    let count = match COUNTS.get(call as usize) {
        Some(c) => c.fetch_add(1, Ordering::Relaxed) + 1,
        None => return None,
    };
    let index = INDEX.fetch_add(1, Ordering::Relaxed) + 1;
    if !WATCHED.load(Ordering::Acquire) {
        return None;
    }
    let mut plan = plan();
    if let Some(trace) = &mut plan.trace {
        if trace.len() < TRACE_LIMIT {
            trace.push(call);
        }
    }
    if !call.can_fail() {
        return None;
    }
    let by_name = plan
        .nth
        .iter()
        .position(|(c, n, _)| *c == call && *n == count);
    let by_index = plan.index.iter().position(|(n, _)| *n == index);
    let mut errno = None;
    if let Some(at) = by_name {
        errno = Some(plan.nth.swap_remove(at).2);
    }
    if let Some(at) = by_index {
        errno = Some(plan.index.swap_remove(at).1);
    }
    let errno = errno?;
    plan.fired += 1;
    Some(if errno == 0 {
        ERRNO.get(call as usize).copied().unwrap_or(libc::EIO)
    } else {
        errno
    })
}

/// Counts a call that destroys something, and does it unless the test wants it to fail.
pub fn destroying(call: Call, destroy: impl FnOnce() -> Result<(), c_int>) -> Result<(), c_int> {
    let Some(errno) = enter(call) else {
        return destroy();
    };
    if FAILED_DESTROYS_FREE.load(Ordering::Relaxed) {
        destroy()?;
    } else {
        KEPT.store(true, Ordering::Relaxed);
    }
    Err(errno)
}

/// Whether an object may be there because its destruction was made to fail.
pub fn object_kept() -> bool {
    KEPT.load(Ordering::Relaxed)
}

/// Whether objects go although their destruction is made to fail.
pub fn set_failed_destroys_free(on: bool) {
    FAILED_DESTROYS_FREE.store(on, Ordering::Relaxed);
}

/// The `nth` call of `call` from now on fails with `errno` (0: one that fits the call).
pub fn fail_nth(call: Call, nth: u64, errno: c_int) {
    let at = count(call) + nth;
    let mut plan = plan();
    plan.nth.push((call, at, errno));
    WATCHED.store(true, Ordering::Release);
}

/// The `nth` call of any function from now on fails with `errno`, if it can fail.
pub fn fail_index(nth: u64, errno: c_int) {
    let at = made() + nth;
    let mut plan = plan();
    plan.index.push((at, errno));
    WATCHED.store(true, Ordering::Release);
}

/// How many planned failures have happened.
pub fn fired() -> u64 {
    plan().fired
}

/// Begins to note every call.
pub fn start_trace() {
    plan().trace = Some(Vec::new());
    WATCHED.store(true, Ordering::Release);
}

/// The calls since [`start_trace`].
pub fn trace() -> Vec<Call> {
    plan().trace.clone().unwrap_or_default()
}

/// How often `call` was made.
pub fn count(call: Call) -> u64 {
    COUNTS
        .get(call as usize)
        .map_or(0, |c| c.load(Ordering::Relaxed))
}

/// How many calls were made in all.
pub fn made() -> u64 {
    INDEX.load(Ordering::Relaxed)
}

/// Forgets counts, plans and trace.
pub fn reset() {
    let mut plan = plan();
    *plan = Plan::EMPTY;
    WATCHED.store(false, Ordering::Release);
    KEPT.store(false, Ordering::Relaxed);
    set_failed_destroys_free(false);
    for c in &COUNTS {
        c.store(0, Ordering::Relaxed);
    }
    INDEX.store(0, Ordering::Relaxed);
}

fn plan() -> Guard<Plan> {
    PLAN.lock()
}
