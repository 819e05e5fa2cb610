//! Drives the stand-in RDMA device from a test: which device it is, what fails, what waits, what
//! was called, what is left.
//!
//! ```no_run
//! let standin = standin_control::Standin::get().expect("run with LD_LIBRARY_PATH=$(ci/standin)");
//! standin.reset();
//! let before = standin.objects();
//! standin.fail_nth("ibv_create_cq", 1, libc::ENOMEM);
//! // … the code under test …
//! assert_eq!(standin.objects(), before);
//! assert_eq!(standin.violations(), Vec::<String>::new());
//! ```
//!
//! There is one stand-in per process: tests that drive it must not run side by side.
//! [`Standin::exclusive`] sees to it.

mod symbols;

use std::ffi::{CString, c_int};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use symbols::Symbols;

/// The stand-in that this process runs on.
#[derive(Clone, Copy, Debug)]
pub struct Standin(&'static Symbols);

/// The stand-in, for one test at a time. It was reset when this was taken, and is again when it is
/// dropped.
#[derive(Debug)]
pub struct Exclusive {
    standin: Standin,
    _turn: MutexGuard<'static, ()>,
}

/// Which device there is. The environment variable STANDIN_DEVICE chooses the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Personality {
    /// Soft-RoCE: InfiniBand transport, extended queue pairs, native flush, atomic write, no
    /// on-demand paging.
    Rxe,
    /// Soft-iWARP: nothing extended, no immediate data, no atomics, negative errnos, private data
    /// of true length.
    Siw,
    /// Mellanox-like: InfiniBand transport, extended queue pairs, on-demand paging, no native
    /// flush.
    Mlx5,
    /// No device.
    None,
}

/// How many of each object the program holds. What librdmacm keeps for itself is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Objects {
    /// Contexts from `ibv_open_device`.
    pub contexts: u64,
    /// Protection domains.
    pub pds: u64,
    /// Memory regions.
    pub mrs: u64,
    /// Completion channels.
    pub comp_channels: u64,
    /// Completion queues.
    pub cqs: u64,
    /// Queue pairs.
    pub qps: u64,
    /// Shared receive queues.
    pub srqs: u64,
    /// Event channels.
    pub event_channels: u64,
    /// Connection manager ids.
    pub ids: u64,
    /// Connection manager events read and not acknowledged.
    pub cm_events: u64,
    /// Completion events read and not acknowledged.
    pub cq_events: u64,
    /// Asynchronous events of queue pairs and SRQs, read and not acknowledged.
    pub async_events: u64,
    /// Lists of devices or addresses not given back.
    pub lists: u64,
}

/// A function of libibverbs or librdmacm, or an entry of their operations tables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// C's name.
    pub name: String,
    /// Whether it can report an error: only those can be made to fail.
    pub can_fail: bool,
}

/// What a knob is called, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knob {
    /// Whether the device has on-demand paging (1, 0; -1: as the personality has it).
    OnDemandPaging,
    /// What a registration for more than local use fails with unless it asks for on-demand paging
    /// (0: it does not).
    PinnedErrno,
    /// Milliseconds from DISCONNECTED to TIMEWAIT_EXIT (20).
    TimewaitMs,
    /// Milliseconds until a connection attempt into a black hole is UNREACHABLE (200).
    ConnectTimeoutMs,
    /// Milliseconds that a call blocks for events to be acknowledged before it is a violation
    /// (1000).
    BlockLimitMs,
    /// An object goes although its destruction is made to fail (1), or stays, as the kernel has it
    /// (0). While one has stayed, what it uses can be refused its end without a violation.
    FailedDestroysFree,
    /// The link is cut (1) or not (0): transfers end with RETRY_EXC_ERR, connection attempts are
    /// UNREACHABLE.
    Cut,
}

static TURN: Mutex<()> = Mutex::new(());

impl Standin {
    /// The stand-in, or `None` on the real libraries.
    pub fn get() -> Option<Self> {
        static FOUND: OnceLock<Option<Symbols>> = OnceLock::new();
        FOUND.get_or_init(symbols::find).as_ref().map(Standin)
    }

    /// The stand-in, reset, for this test alone: others that ask wait until it is dropped.
    pub fn exclusive() -> Option<Exclusive> {
        let standin = Self::get()?;
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        standin.reset();
        Some(Exclusive {
            standin,
            _turn: turn,
        })
    }

    /// Another device, for those who look for one from now on. Objects on the old one live on.
    pub fn personality(&self, personality: Personality) {
        let name = match personality {
            Personality::Rxe => c"rxe",
            Personality::Siw => c"siw",
            Personality::Mlx5 => c"mlx5",
            Personality::None => c"none",
        };
        // SAFETY: a C string.
        unsafe { (self.0.personality)(name.as_ptr()) };
    }

    /// The `nth` call (from 1) of this function from now on fails with `errno`; 0 takes one that
    /// fits the function.
    ///
    /// # Panics
    /// On a name that the stand-in does not count or that cannot fail: a mistake in the test.
    pub fn fail_nth(&self, name: &str, nth: u64, errno: c_int) {
        let c = CString::new(name).expect("a C name");
        // SAFETY: a C string.
        let r = unsafe { (self.0.fail_nth)(c.as_ptr(), nth, errno) };
        assert_eq!(r, 0, "{name}: unknown, or cannot fail");
    }

    /// The `nth` call (from 1) of any function from now on fails with an errno that fits it, if it
    /// can fail.
    pub fn fail_call_index(&self, nth: u64) {
        self.fail_call_index_with(nth, 0);
    }

    /// The same with this errno.
    pub fn fail_call_index_with(&self, nth: u64, errno: c_int) {
        // SAFETY: no pointers.
        unsafe { (self.0.fail_index)(nth, errno) };
    }

    /// How many planned failures have happened since the last reset.
    pub fn faults_fired(&self) -> u64 {
        // SAFETY: no pointers.
        unsafe { (self.0.faults_fired)() }
    }

    /// How many calls were made since the last reset.
    pub fn calls_made(&self) -> u64 {
        // SAFETY: no pointers.
        unsafe { (self.0.calls_made)() }
    }

    /// Every function that the stand-in counts.
    pub fn functions(&self) -> Vec<Call> {
        self.table().into_iter().map(|(call, _)| call).collect()
    }

    /// The functions that were called since the last reset, and how often.
    pub fn calls(&self) -> Vec<(String, u64)> {
        let all = self.table().into_iter();
        all.filter(|(_, n)| *n > 0)
            .map(|(c, n)| (c.name, n))
            .collect()
    }

    /// How often this function was called since the last reset.
    pub fn count(&self, name: &str) -> u64 {
        let all = self.table();
        all.iter()
            .find(|(c, _)| c.name == name)
            .map_or(0, |(_, n)| *n)
    }

    /// Begins to note the order of calls.
    pub fn start_trace(&self) {
        // SAFETY: no pointers.
        unsafe { (self.0.trace_start)() };
    }

    /// The calls since [`start_trace`](Self::start_trace), in order: the `n`th (from 1) is the one
    /// that [`fail_call_index`](Self::fail_call_index)`(n)` makes fail when the same is done again.
    pub fn trace(&self) -> Vec<Call> {
        let functions = self.functions();
        let mut ids = Vec::new();
        loop {
            // SAFETY: a buffer of the length that is given.
            let len = unsafe { (self.0.trace)(ids.as_mut_ptr(), ids.len()) };
            if len <= ids.len() {
                ids.truncate(len);
                break;
            }
            ids.resize(len, 0u16);
        }
        ids.iter()
            .filter_map(|i| functions.get(usize::from(*i)).cloned())
            .collect()
    }

    /// What the program holds.
    pub fn objects(&self) -> Objects {
        let mut o = Objects::default();
        // SAFETY: the struct that the stand-in fills.
        unsafe { (self.0.objects)(&raw mut o) };
        o
    }

    /// Illegal uses since the last reset.
    pub fn violations(&self) -> Vec<String> {
        // SAFETY: no pointers.
        let n = unsafe { (self.0.violations)() };
        (0..n)
            .map(|i| {
                // SAFETY: a buffer of the length that is given.
                symbols::text(|buf, len| unsafe { (self.0.violation)(i, buf, len) })
            })
            .collect()
    }

    /// From now on transfers stay in flight.
    pub fn hold(&self) {
        // SAFETY: no pointers.
        unsafe { (self.0.hold)() };
    }

    /// Executes the next `n` work requests, in the order of posting; those still to come count too.
    pub fn release(&self, n: u64) {
        // SAFETY: no pointers.
        unsafe { (self.0.release)(n) };
    }

    /// Executes all that is in flight, and ends [`hold`](Self::hold).
    pub fn release_all(&self) {
        self.release(u64::MAX);
    }

    /// How many work requests of send queues were executed since the last reset.
    pub fn executed(&self) -> u64 {
        // SAFETY: no pointers.
        unsafe { (self.0.executed)() }
    }

    /// The `nth` work request (from 1) executed from now on completes with this `ibv_wc_status`,
    /// even if it is unsignalled; its queue pair fails as it would.
    pub fn inject_status(&self, nth: u64, status: u32) {
        // SAFETY: no pointers.
        unsafe { (self.0.inject_status)(nth, status) };
    }

    /// An asynchronous event (`ibv_event_type`) of the queue pair, completion queue or SRQ at this
    /// address, or else, on all contexts, of the port with this number.
    pub fn async_event(&self, kind: u32, element: usize) {
        // SAFETY: the address is only compared.
        unsafe { (self.0.async_event)(kind, element) };
    }

    /// A connection manager event (`rdma_cm_event_type`) on every id that has a device:
    /// DEVICE_REMOVAL, say.
    pub fn cm_event(&self, kind: u32, status: c_int) {
        // SAFETY: no pointers.
        unsafe { (self.0.cm_event)(kind, status) };
    }

    /// Null mode: post and poll do the least, check nothing and move nothing. Only while nothing is
    /// in flight.
    pub fn null(&self, on: bool) {
        // SAFETY: no pointers.
        unsafe { (self.0.null)(c_int::from(on)) };
    }

    /// Memory that counts as persistent: the rxe-like device registers it for native persistent
    /// flush.
    pub fn declare_persistent(&self, addr: *const u8, len: usize) {
        // SAFETY: the address is only compared.
        unsafe { (self.0.persistent)(addr as usize, len) };
    }

    /// One more address of the device.
    ///
    /// # Panics
    /// If it is none: a mistake in the test.
    pub fn add_address(&self, addr: &str) {
        let c = CString::new(addr).expect("an address");
        // SAFETY: a C string.
        let r = unsafe { (self.0.address)(c.as_ptr()) };
        assert_eq!(r, 0, "{addr}: not an address");
    }

    /// Turns a knob.
    pub fn set(&self, knob: Knob, value: i64) {
        let name = match knob {
            Knob::OnDemandPaging => c"odp",
            Knob::PinnedErrno => c"pinned_errno",
            Knob::TimewaitMs => c"timewait_ms",
            Knob::ConnectTimeoutMs => c"connect_timeout_ms",
            Knob::BlockLimitMs => c"block_limit_ms",
            Knob::FailedDestroysFree => c"failed_destroys_free",
            Knob::Cut => c"cut",
        };
        // SAFETY: a C string.
        unsafe { (self.0.option)(name.as_ptr(), value) };
    }

    /// Forgets faults, counts, trace, violations, held and injected transfers, and puts device and
    /// knobs back. Objects stay.
    pub fn reset(&self) {
        // SAFETY: no pointers.
        unsafe { (self.0.reset)() };
    }

    fn table(&self) -> Vec<(Call, u64)> {
        let mut all = Vec::new();
        loop {
            let (mut count, mut can_fail) = (0, 0);
            let at = all.len();
            // SAFETY: a buffer of the length that is given, and two variables.
            let name = symbols::text(|buf, len| unsafe {
                (self.0.call)(at, buf, len, &raw mut count, &raw mut can_fail)
            });
            if name.is_empty() {
                return all;
            }
            all.push((
                Call {
                    name,
                    can_fail: can_fail != 0,
                },
                count,
            ));
        }
    }
}

impl std::ops::Deref for Exclusive {
    type Target = Standin;
    fn deref(&self) -> &Standin {
        &self.standin
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        self.standin.reset();
    }
}
