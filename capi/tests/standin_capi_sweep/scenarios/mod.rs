//! What C programs do, each from beginning to end in one thread. Whatever fails ends the scenario
//! there, except what can be done again.

use std::{
    ffi::{CStr, c_int, c_void},
    ptr::{null, null_mut},
};

use standin_control::Personality;

use crate::{
    calls::*,
    run::{Own, Result, Run, UNTOUCHED},
};

pub const ADDR: &CStr = c"192.168.77.1";

/// More than the heap grows by, so that memory that is left shows.
const REGION: usize = 1 << 20;

const USAGE_READ_SRC: c_int = 1;
const USAGE_READ_DST: c_int = 2;
const USAGE_ALL: c_int = 0xff;
const FLUSH_PERSISTENT: c_int = 0;
const FLUSH_VISIBILITY: c_int = 1;

pub struct Scenario {
    pub name: &'static str,
    pub run: fn(&Run) -> Result,
}

/// A call that must work the second time where it failed.
macro_rules! again {
    ($run:expr, $name:ident($($arg:expr),* $(,)?)) => {
        // SAFETY: handles are null or alive and of their kinds; what is pointed at lives until the
        // call returns, and memory of regions until they are deregistered.
        $run.again(stringify!($name), || unsafe { $name($($arg),*) })
    };
}

/// A call that gives a value at its end, `untouched` until then.
macro_rules! get {
    ($run:expr, $untouched:expr, $name:ident($($arg:expr),* $(,)?)) => {
        // SAFETY: as in `again!`.
        $run.get(stringify!($name), $untouched, |place| unsafe { $name($($arg,)* place) })
    };
}

/// A call that gives a handle at its end, which `delete` ends.
macro_rules! own {
    ($run:expr, $delete:ident, $name:ident($($arg:expr),* $(,)?)) => {
        // SAFETY: as in `again!`.
        $run.own(stringify!($name), $delete, |place| unsafe { $name($($arg,)* place) })
    };
}

mod connecting;
mod transfers;
mod waiting;

macro_rules! scenarios {
    ($($module:ident: $($name:ident)*;)*) => {
        pub const SCENARIOS: &[Scenario] = &[$($(Scenario { name: stringify!($name), run: $module::$name }),*),*];
    };
}

scenarios! {
    connecting: contexts peers listen connect reject drop_request shut_down data_too_long register;
    transfers: write_and_read messages immediate flushes atomic_write old_names;
    waiting:
        shared_receives shared_receives_with_cq shared_channel own_channels waits
        delete_in_flight delete_peer_first;
}

/// Registered memory. The registration ends first.
struct Region<'r> {
    mr: Own<'r>,
    memory: Vec<u64>,
}

struct Pair<'r> {
    client: Own<'r>,
    server: Own<'r>,
    _ep: Own<'r>,
}

struct Rig<'r> {
    cq: Handle,
    client: Own<'r>,
    server: Own<'r>,
    _ep: Own<'r>,
    remote: Own<'r>,
    log: Region<'r>,
    local: Region<'r>,
    peer: Own<'r>,
}

fn peer(run: &Run) -> Result<Own<'_>> {
    own!(run, rpma_peer_delete, rpma_peer_new(run.context))
}

fn endpoint<'r>(run: &'r Run, peer: &Own<'r>) -> Result<Own<'r>> {
    own!(
        run,
        rpma_ep_shutdown,
        rpma_ep_listen(peer.raw(), ADDR.as_ptr(), run.port())
    )
}

fn request<'r>(run: &'r Run, peer: &Own<'r>, cfg: Handle) -> Result<Own<'r>> {
    own!(
        run,
        rpma_conn_req_delete,
        rpma_conn_req_new(peer.raw(), ADDR.as_ptr(), run.port(), cfg)
    )
}

/// The next request. One that fails is gone: it was rejected.
fn incoming<'r>(run: &'r Run, ep: &Own<'r>, cfg: Handle) -> Result<Own<'r>> {
    run.readable(get!(run, -1, rpma_ep_get_fd(ep.raw()))?)?;
    // SAFETY: as in `again!`.
    run.own_once(
        "rpma_ep_next_conn_req",
        rpma_conn_req_delete,
        |place| unsafe { rpma_ep_next_conn_req(ep.raw(), cfg, place) },
    )
}

/// Connects, or accepts. The request is used up whatever happens.
fn accept<'r>(run: &'r Run, mut request: Own<'r>, bytes: &[u8]) -> Result<Own<'r>> {
    let data = PrivateData {
        ptr: bytes.as_ptr().cast_mut().cast(),
        len: bytes.len() as u8,
    };
    let data = if bytes.is_empty() {
        null()
    } else {
        &raw const data
    };
    let place = request.place();
    // SAFETY: as in `again!`.
    let made = run.own_once("rpma_conn_req_connect", rpma_conn_delete, |conn| unsafe {
        rpma_conn_req_connect(place, data, conn)
    });
    if !request.raw().is_null() {
        run.problem("the request was not used up".to_owned());
    }
    made
}

fn event(run: &Run, conn: &Own<'_>, expected: c_int) -> Result {
    run.readable(get!(run, -1, rpma_conn_get_event_fd(conn.raw()))?)?;
    let event = get!(run, -7, rpma_conn_next_event(conn.raw()))?;
    assert_eq!(event, expected);
    Ok(())
}

fn pair<'r>(run: &'r Run, peer: &Own<'r>, cfg: Handle) -> Result<Pair<'r>> {
    let ep = endpoint(run, peer)?;
    let client = accept(run, request(run, peer, cfg)?, b"")?;
    let server = accept(run, incoming(run, &ep, cfg)?, b"")?;
    for conn in [&client, &server] {
        event(run, conn, ESTABLISHED)?;
    }
    Ok(Pair {
        client,
        server,
        _ep: ep,
    })
}

fn region<'r>(run: &'r Run, peer: &Own<'r>, usage: c_int) -> Result<Region<'r>> {
    let mut memory = vec![0u64; REGION / 8];
    let ptr: *mut c_void = memory.as_mut_ptr().cast();
    let mr = own!(
        run,
        rpma_mr_dereg,
        rpma_mr_reg(peer.raw(), ptr, REGION, usage)
    )?;
    Ok(Region { mr, memory })
}

fn remote<'r>(run: &'r Run, region: &Region<'r>) -> Result<Own<'r>> {
    let mut bytes = [0u8; 21];
    again!(
        run,
        rpma_mr_get_descriptor(region.mr.raw(), bytes.as_mut_ptr())
    )?;
    own!(
        run,
        rpma_mr_remote_delete,
        rpma_mr_remote_from_descriptor(bytes.as_ptr(), bytes.len())
    )
}

fn rig(run: &Run, cfg: Handle) -> Result<Rig<'_>> {
    run.standin.release_all();
    let peer = peer(run)?;
    let Pair {
        client,
        server,
        _ep,
    } = pair(run, &peer, cfg)?;
    let (local, log) = (
        region(run, &peer, USAGE_ALL)?,
        region(run, &peer, USAGE_ALL)?,
    );
    let remote = remote(run, &log)?;
    let cq = cq(run, &client)?;
    Ok(Rig {
        cq,
        client,
        server,
        _ep,
        remote,
        log,
        local,
        peer,
    })
}

fn cq(run: &Run, conn: &Own<'_>) -> Result<Handle> {
    get!(run, UNTOUCHED, rpma_conn_get_cq(conn.raw()))
}

/// Takes the next completion, which must be this one, and a success.
fn done(run: &Run, cq: Handle, expected: u64) -> Result {
    // SAFETY: plain numbers.
    let mut wc: rdma_sys::ibv_wc = unsafe { std::mem::zeroed() };
    let got = get!(run, -1, one_completion(cq, &mut wc))?;
    assert_eq!((got, wc.status, wc.wr_id), (1, 0, expected));
    Ok(())
}

/// [`rpma_cq_get_wc`] with its result at the end.
///
/// # Safety
/// That of C.
unsafe fn one_completion(cq: Handle, wc: *mut rdma_sys::ibv_wc, got: *mut c_int) -> c_int {
    // SAFETY: the caller's word.
    unsafe { rpma_cq_get_wc(cq, 1, wc, got) }
}

fn id(n: u64) -> *const c_void {
    n as usize as *const c_void
}

fn bytes(data: &PrivateData) -> &[u8] {
    // SAFETY: as the function that gave it promises.
    unsafe { std::slice::from_raw_parts(data.ptr.cast(), data.len.into()) }
}

fn nonblocking(fd: c_int) {
    let yes: c_int = 1;
    // Not fcntl(2), which may be made to fail.
    // SAFETY: a number, and the place of one.
    unsafe { libc::ioctl(fd, libc::FIONBIO, &yes) };
}
