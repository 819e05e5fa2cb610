//! What a test drives the stand-in with: `standin_…`, wrapped by the package `standin-control`.

use std::ffi::{CStr, c_char, c_int};

use crate::calls::{self, Call};
use crate::config::{Config, Personality};
use crate::violations;
use crate::world::{Transfers, World, changed, world};
use crate::{cq, timers};

/// How many there are of each. `standin-control` has the same struct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    contexts: u64,
    pds: u64,
    mrs: u64,
    comp_channels: u64,
    cqs: u64,
    qps: u64,
    srqs: u64,
    event_channels: u64,
    ids: u64,
    cm_events: u64,
    cq_events: u64,
    async_events: u64,
    lists: u64,
}

impl World {
    fn counts(&self) -> Counts {
        let async_qp: i64 = self.qps.iter().map(|(_, q)| q.async_unacked).sum();
        let async_srq: i64 = self.srqs.iter().map(|(_, s)| s.async_unacked).sum();
        Counts {
            contexts: self.contexts.iter().filter(|(_, c)| !c.by_cm).count() as u64,
            pds: self.pds.iter().filter(|(_, p)| !p.by_cm).count() as u64,
            mrs: self.mrs.len() as u64,
            comp_channels: self.channels.len() as u64,
            cqs: self.cqs.len() as u64,
            qps: self.qps.len() as u64,
            srqs: self.srqs.len() as u64,
            event_channels: self
                .event_channels
                .iter()
                .filter(|(_, c)| !c.private)
                .count() as u64,
            ids: self.ids.iter().filter(|(_, i)| i.visible).count() as u64,
            cm_events: self.cm_events.len() as u64,
            cq_events: cq::unacked(self),
            async_events: (async_qp + async_srq).max(0) as u64,
            lists: self.lists.len() as u64,
        }
    }
}

/// The caller's string, or nothing.
unsafe fn text<'a>(s: *const c_char) -> &'a str {
    if s.is_null() {
        return "";
    }
    // SAFETY: a C string, as the caller promises.
    unsafe { CStr::from_ptr(s) }.to_str().unwrap_or("")
}

/// Copies text to the caller's buffer, cut to fit, without NUL; gives its whole length.
unsafe fn give(s: &str, buf: *mut c_char, len: usize) -> usize {
    // SAFETY: `len` bytes at `buf`, as the caller promises.
    unsafe { std::ptr::copy_nonoverlapping(s.as_ptr(), buf.cast(), s.len().min(len)) };
    s.len()
}

/// The version of this interface.
#[unsafe(no_mangle)]
extern "C" fn standin_version() -> u32 {
    1
}

/// Another device, for those who look for one from now on. -1: no such name.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_personality(name: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    match Personality::by_name(unsafe { text(name) }) {
        Some(p) => {
            world().config.personality = p;
            0
        }
        None => -1,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn standin_fail_nth(name: *const c_char, nth: u64, errno: c_int) -> c_int {
    // SAFETY: as the caller promises.
    match Call::by_name(unsafe { text(name) }) {
        Some(call) if call.can_fail() => {
            calls::fail_nth(call, nth, errno);
            0
        }
        _ => -1,
    }
}

#[unsafe(no_mangle)]
extern "C" fn standin_fail_index(nth: u64, errno: c_int) {
    calls::fail_index(nth, errno);
}

#[unsafe(no_mangle)]
extern "C" fn standin_faults_fired() -> u64 {
    calls::fired()
}

#[unsafe(no_mangle)]
extern "C" fn standin_calls_made() -> u64 {
    calls::made()
}

/// The name of the `at`th function, its count and whether it can fail. 0: there are no more.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_call(
    at: usize,
    buf: *mut c_char,
    len: usize,
    count: *mut u64,
    can_fail: *mut c_int,
) -> usize {
    let Some(call) = calls::NAMES.get(at).and_then(|n| Call::by_name(n)) else {
        return 0;
    };
    // SAFETY: the caller's variables.
    unsafe {
        *count = calls::count(call);
        *can_fail = c_int::from(call.can_fail());
        give(call.name(), buf, len)
    }
}

#[unsafe(no_mangle)]
extern "C" fn standin_trace_start() {
    calls::start_trace();
}

/// The calls since then, by the position that `standin_call` takes. Gives how many there are.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_trace(buf: *mut u16, len: usize) -> usize {
    let trace = calls::trace();
    for (i, call) in trace.iter().take(len).enumerate() {
        // SAFETY: the caller has room for `len`.
        unsafe { *buf.add(i) = *call as u16 };
    }
    trace.len()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn standin_objects(counts: *mut Counts) {
    // SAFETY: the caller's struct.
    unsafe { *counts = world().counts() };
}

#[unsafe(no_mangle)]
extern "C" fn standin_violations() -> usize {
    violations::count()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn standin_violation(at: usize, buf: *mut c_char, len: usize) -> usize {
    match violations::get(at) {
        // SAFETY: as the caller promises.
        Some(s) => unsafe { give(&s, buf, len) },
        None => 0,
    }
}

/// From now on transfers wait for `standin_release`.
#[unsafe(no_mangle)]
extern "C" fn standin_hold() {
    world().transfers.budget = Some(0);
}

/// Lets `n` work requests pass; `u64::MAX`: all, and no more holding.
#[unsafe(no_mangle)]
extern "C" fn standin_release(n: u64) {
    let mut w = world();
    w.transfers.budget = if n == u64::MAX {
        None
    } else {
        Some(w.transfers.budget.unwrap_or(0).saturating_add(n))
    };
    w.pump();
}

#[unsafe(no_mangle)]
extern "C" fn standin_executed() -> u64 {
    world().transfers.executed
}

/// The `nth` work request executed from now on completes with this status.
#[unsafe(no_mangle)]
extern "C" fn standin_inject_status(nth: u64, status: u32) {
    world().transfers.injected.push((nth.max(1), status));
}

/// An asynchronous event on every open context of librdmacm and the program: of the element with
/// this address, or of the port with this number.
#[unsafe(no_mangle)]
extern "C" fn standin_async_event(kind: u32, element: usize) {
    let mut w = world();
    let context = [
        w.qps.at(element).map(|q| q.context),
        w.cqs.at(element).map(|c| c.context),
        w.srqs.at(element).map(|s| s.context),
    ]
    .into_iter()
    .flatten()
    .next();
    let contexts = context.map_or_else(|| w.contexts.keys(), |c| vec![c]);
    for c in contexts {
        w.async_event(c, kind, element);
    }
}

/// An event of the connection manager on every id that has a device.
#[unsafe(no_mangle)]
extern "C" fn standin_cm_event(kind: u32, status: c_int) {
    let mut w = world();
    for key in w.ids.keys() {
        let has_device = w.ids.at(key).is_some_and(|i| i.visible && i.context != 0);
        if has_device {
            w.post_event(key, kind, status);
        }
    }
}

/// Null mode on or off. Nothing may be in flight.
#[unsafe(no_mangle)]
extern "C" fn standin_null(on: c_int) {
    let mut w = world();
    w.config.null = on != 0;
    w.refill_ops();
    w.refill_qps();
}

/// Memory that counts as persistent.
#[unsafe(no_mangle)]
extern "C" fn standin_persistent(addr: usize, len: usize) {
    world().config.persistent.push((addr, len));
}

/// One more address of the device. -1: not an address.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_address(addr: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    match unsafe { text(addr) }.parse() {
        Ok(ip) => {
            world().config.addresses.push(ip);
            0
        }
        Err(_) => -1,
    }
}

/// Turns a knob. -1: no such name.
#[unsafe(no_mangle)]
unsafe extern "C" fn standin_option(name: *const c_char, value: i64) -> c_int {
    let mut w = world();
    let ms = value.max(0) as u64;
    // SAFETY: as the caller promises.
    match unsafe { text(name) } {
        "odp" => w.config.odp = (value >= 0).then_some(value > 0),
        "pinned_errno" => w.config.pinned_errno = value as c_int,
        "timewait_ms" => w.config.timewait_ms = ms,
        "connect_timeout_ms" => w.config.connect_timeout_ms = ms,
        "block_limit_ms" => w.config.block_limit_ms = ms,
        "failed_destroys_free" => calls::set_failed_destroys_free(value != 0),
        "cut" => {
            w.config.cut = value != 0;
            w.pump();
        }
        _ => return -1,
    }
    0
}

/// Forgets faults, counts, trace, violations, held and injected transfers, and puts every knob
/// back. Objects stay.
#[unsafe(no_mangle)]
extern "C" fn standin_reset() {
    calls::reset();
    violations::reset();
    let mut w = world();
    let null = w.config.null;
    w.config = Config::from_env();
    w.transfers = Transfers::default();
    if w.config.null != null {
        w.refill_ops();
        w.refill_qps();
    }
    w.pump();
    drop(w);
    changed();
}

/// Does what `standin_option("cut", on)` does, in `ms` milliseconds.
#[unsafe(no_mangle)]
extern "C" fn standin_cut_later(on: c_int, ms: u64) {
    let mut w = world();
    timers::after(&mut w, ms.max(1), move |w| {
        w.config.cut = on != 0;
        w.pump();
    });
}

/// How a process ends that did something illegal, or left objects behind, under STANDIN_STRICT.
const STRICT_STATUS: c_int = 97;

/// Run by the loader when the process ends.
extern "C" fn at_end() {
    let w = world();
    w.check_regions();
    let (counts, violations) = (w.counts(), violations::count());
    let strict = std::env::var_os("STANDIN_STRICT").is_some();
    let clean = violations == 0 && counts == Counts::default();
    if std::env::var_os("STANDIN_REPORT").is_some() || (strict && !clean) {
        eprintln!("standin: {} calls, left: {counts:?}", calls::made());
        eprintln!("standin: {violations} violations");
    }
    if strict && !clean {
        // SAFETY: ends the process. Whatever would come after us gave its status before.
        unsafe { libc::_exit(STRICT_STATUS) };
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;
