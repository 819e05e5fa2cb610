//! What C programs do, each from beginning to end in one thread. Whatever fails ends the scenario there, except what can be done again.

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

const USAGE_READ_DST: c_int = 2;
const USAGE_ALL: c_int = 0xff;
const FLUSH_PERSISTENT: c_int = 0;
const FLUSH_VISIBILITY: c_int = 1;

pub struct Scenario {
    pub name: &'static str,
    pub run: fn(&Run) -> Result,
}

macro_rules! scenarios {
    ($($name:ident)*) => {
        pub const SCENARIOS: &[Scenario] = &[$(Scenario { name: stringify!($name), run: $name }),*];
    };
}

scenarios! {
    contexts peers listen connect reject drop_request shut_down data_too_long
    register write_and_read messages immediate flushes atomic_write old_names
    shared_receives shared_receives_with_cq
    shared_channel own_channels waits
    delete_in_flight delete_peer_first
}

/// A call that must work the second time where it failed.
macro_rules! again {
    ($run:expr, $name:ident($($arg:expr),* $(,)?)) => {
        // SAFETY: handles are null or alive and of their kinds; what is pointed at lives until the call returns, and memory of regions
        // until they are deregistered.
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

fn contexts(run: &Run) -> Result {
    for kind in [0, 1] {
        let context = get!(
            run,
            UNTOUCHED,
            rpma_utils_get_ibv_context(ADDR.as_ptr(), kind)
        )?;
        assert_eq!(context, run.context);
    }
    let capable = get!(run, -1, rpma_utils_ibv_context_is_odp_capable(run.context))?;
    // Where the query had to be the old one, it does not say so.
    assert!(capable == 0 || (capable == 1 && run.personality == Personality::Mlx5));
    Ok(())
}

fn peers(run: &Run) -> Result {
    let first = peer(run)?;
    let second = peer(run)?;
    drop(first);
    drop(second);
    Ok(())
}

fn listen(run: &Run) -> Result {
    let peer = peer(run)?;
    let ep = own!(
        run,
        rpma_ep_shutdown,
        rpma_ep_listen(peer.raw(), ADDR.as_ptr(), run.port())
    )?;
    let fd = get!(run, -1, rpma_ep_get_fd(ep.raw()))?;
    nonblocking(fd);
    let mut request = UNTOUCHED;
    // SAFETY: as in `again!`.
    let code = unsafe { rpma_ep_next_conn_req(ep.raw(), null_mut(), &mut request) };
    if request != UNTOUCHED {
        return Err(run.problem("a request that nobody made".to_owned()));
    }
    match code {
        NO_EVENT => Ok(()),
        code => run.once("rpma_ep_next_conn_req", code),
    }
}

fn connect(run: &Run) -> Result {
    let peer = peer(run)?;
    let ep = endpoint(run, &peer)?;
    let cfg = own!(run, rpma_conn_cfg_delete, rpma_conn_cfg_new())?;
    again!(run, rpma_conn_cfg_set_timeout(cfg.raw(), 400))?;
    let request = request(run, &peer, cfg.raw())?;
    let client = accept(run, request, b"question")?;
    let request = incoming(run, &ep, cfg.raw())?;
    let nothing = PrivateData {
        ptr: null_mut(),
        len: 0,
    };
    let asked = get!(run, nothing, rpma_conn_req_get_private_data(request.raw()))?;
    assert!(bytes(&asked).starts_with(b"question"));
    let server = accept(run, request, b"answer")?;
    for conn in [&client, &server] {
        event(run, conn, ESTABLISHED)?;
    }
    let answer = get!(run, nothing, rpma_conn_get_private_data(client.raw()))?;
    assert!(bytes(&answer).starts_with(b"answer"));
    again!(run, rpma_conn_disconnect(client.raw()))?;
    for conn in [&client, &server] {
        event(run, conn, CLOSED)?;
    }
    Ok(())
}

fn reject(run: &Run) -> Result {
    let peer = peer(run)?;
    let ep = endpoint(run, &peer)?;
    let client = accept(run, request(run, &peer, null_mut())?, b"")?;
    drop(incoming(run, &ep, null_mut())?);
    event(run, &client, REJECTED)
}

fn drop_request(run: &Run) -> Result {
    let peer = peer(run)?;
    let _ep = endpoint(run, &peer)?;
    drop(request(run, &peer, null_mut())?);
    Ok(())
}

fn shut_down(run: &Run) -> Result {
    let peer = peer(run)?;
    let ep = endpoint(run, &peer)?;
    let client = accept(run, request(run, &peer, null_mut())?, b"")?;
    drop(ep);
    event(run, &client, REJECTED)
}

fn data_too_long(run: &Run) -> Result {
    let peer = peer(run)?;
    let ep = endpoint(run, &peer)?;
    let client = accept(run, request(run, &peer, null_mut())?, b"")?;
    let mut request = incoming(run, &ep, null_mut())?;
    let (bytes, mut conn) = ([1u8; 255], UNTOUCHED);
    let data = PrivateData {
        ptr: bytes.as_ptr().cast_mut().cast(),
        len: 255,
    };
    // SAFETY: as in `again!`.
    let code = unsafe { rpma_conn_req_connect(request.place(), &data, &mut conn) };
    assert_eq!(
        (code, conn, request.raw()),
        (PROVIDER, UNTOUCHED, null_mut())
    );
    event(run, &client, REJECTED)
}

fn register(run: &Run) -> Result {
    let peer = peer(run)?;
    for usage in [USAGE_ALL, USAGE_READ_DST] {
        let region = region(run, &peer, usage)?;
        for flags in [0, 1] {
            run.again("rpma_mr_advise", || {
                // SAFETY: as in `again!`.
                let code = unsafe { rpma_mr_advise(region.mr.raw(), 0, 4096, 0, flags) };
                // The region is pinned: there is nothing to advise about.
                if matches!(code, NOSUPP | INVAL) {
                    0
                } else {
                    code
                }
            })?;
        }
        drop(remote(run, &region)?);
    }
    Ok(())
}

fn write_and_read(run: &Run) -> Result {
    let rig = rig(run, null_mut())?;
    let (conn, here, there) = (rig.client.raw(), rig.local.mr.raw(), rig.remote.raw());
    again!(run, rpma_write(conn, there, 8, here, 0, 64, ALWAYS, id(1)))?;
    done(run, rig.cq, 1)?;
    again!(
        run,
        rpma_write(conn, there, 100, here, 0, 9, ON_ERROR, id(2))
    )?;
    again!(
        run,
        rpma_write(conn, null_mut(), 0, null_mut(), 0, 0, ALWAYS, id(3))
    )?;
    done(run, rig.cq, 3)?;
    again!(run, rpma_read(conn, here, 200, there, 8, 64, ALWAYS, id(4)))?;
    done(run, rig.cq, 4)?;
    again!(
        run,
        rpma_read(conn, null_mut(), 0, null_mut(), 0, 0, ALWAYS, id(5))
    )?;
    done(run, rig.cq, 5)
}

fn messages(run: &Run) -> Result {
    let peer = peer(run)?;
    let (local, log) = (
        region(run, &peer, USAGE_ALL)?,
        region(run, &peer, USAGE_ALL)?,
    );
    let ep = endpoint(run, &peer)?;
    let client = accept(run, request(run, &peer, null_mut())?, b"")?;
    let request = incoming(run, &ep, null_mut())?;
    again!(
        run,
        rpma_conn_req_recv(request.raw(), log.mr.raw(), 0, 100, id(10))
    )?;
    let server = accept(run, request, b"")?;
    for conn in [&client, &server] {
        event(run, conn, ESTABLISHED)?;
    }
    again!(run, rpma_recv(server.raw(), log.mr.raw(), 100, 100, id(11)))?;
    again!(run, rpma_recv(server.raw(), null_mut(), 0, 0, id(12)))?;
    let (ours, theirs) = (cq(run, &client)?, cq(run, &server)?);
    again!(
        run,
        rpma_send(client.raw(), local.mr.raw(), 0, 50, ALWAYS, id(0))
    )?;
    again!(
        run,
        rpma_send(client.raw(), local.mr.raw(), 50, 50, ALWAYS, id(1))
    )?;
    again!(
        run,
        rpma_send(client.raw(), null_mut(), 0, 0, ALWAYS, id(2))
    )?;
    for n in 0..3 {
        done(run, ours, n)?;
        done(run, theirs, 10 + n)?;
    }
    Ok(())
}

fn immediate(run: &Run) -> Result {
    if run.personality == Personality::Siw {
        return Ok(());
    }
    let rig = rig(run, null_mut())?;
    let (conn, here) = (rig.client.raw(), rig.local.mr.raw());
    for n in [10, 11] {
        again!(
            run,
            rpma_recv(rig.server.raw(), rig.log.mr.raw(), 0, 100, id(n))
        )?;
    }
    again!(run, rpma_send_with_imm(conn, here, 0, 9, ALWAYS, 7, id(0)))?;
    again!(
        run,
        rpma_write_with_imm(conn, rig.remote.raw(), 0, here, 0, 9, ALWAYS, 8, id(1))
    )?;
    let theirs = cq(run, &rig.server)?;
    for n in [0, 1] {
        done(run, rig.cq, n)?;
        done(run, theirs, 10 + n)?;
    }
    Ok(())
}

fn flushes(run: &Run) -> Result {
    let rig = rig(run, null_mut())?;
    let cfg = own!(run, rpma_peer_cfg_delete, rpma_peer_cfg_new())?;
    again!(run, rpma_peer_cfg_set_direct_write_to_pmem(cfg.raw(), true))?;
    again!(
        run,
        rpma_conn_apply_remote_peer_cfg(rig.client.raw(), cfg.raw())
    )?;
    let (conn, there) = (rig.client.raw(), rig.remote.raw());
    again!(
        run,
        rpma_write(conn, there, 0, rig.local.mr.raw(), 0, 64, ON_ERROR, id(0))
    )?;
    again!(
        run,
        rpma_flush(conn, there, 0, 64, FLUSH_VISIBILITY, ALWAYS, id(1))
    )?;
    done(run, rig.cq, 1)?;
    // The memory is not persistent, as a device with native flush sees it.
    if run.personality != Personality::Rxe {
        again!(
            run,
            rpma_flush(conn, there, 0, 64, FLUSH_PERSISTENT, ALWAYS, id(2))
        )?;
        done(run, rig.cq, 2)?;
    }
    Ok(())
}

fn atomic_write(run: &Run) -> Result {
    let rig = rig(run, null_mut())?;
    let word = [5u8; 8];
    again!(
        run,
        rpma_atomic_write(
            rig.client.raw(),
            rig.remote.raw(),
            8,
            word.as_ptr(),
            ALWAYS,
            id(1)
        )
    )?;
    done(run, rig.cq, 1)?;
    assert_eq!(rig.log.memory[1].to_ne_bytes(), word);
    Ok(())
}

fn old_names(run: &Run) -> Result {
    let rig = rig(run, null_mut())?;
    let (conn, here, there) = (rig.client.raw(), rig.local.mr.raw(), rig.remote.raw());
    let none = Completion {
        op_context: null_mut(),
        op: -1,
        byte_len: 0,
        op_status: -1,
        flags: 0,
        imm: 0,
    };
    get!(run, -1, rpma_conn_get_completion_fd(conn))?;
    again!(
        run,
        rpma_write_atomic(conn, there, 0, here, 0, ALWAYS, id(1))
    )?;
    again!(run, rpma_conn_completion_wait(conn))?;
    let wc = get!(run, none, rpma_conn_completion_get(conn))?;
    assert_eq!((wc.op, wc.op_status, wc.op_context as usize), (1, 0, 1));
    again!(run, rpma_read(conn, here, 0, there, 0, 8, ALWAYS, id(2)))?;
    let wc = get!(run, none, rpma_cq_get_completion(rig.cq))?;
    assert_eq!((wc.op, wc.op_status, wc.op_context as usize), (0, 0, 2));
    Ok(())
}

fn shared_receives(run: &Run) -> Result {
    shared(run, 0)
}

fn shared_receives_with_cq(run: &Run) -> Result {
    shared(run, 8)
}

fn shared(run: &Run, rcq_size: u32) -> Result {
    let peer = peer(run)?;
    let log = region(run, &peer, USAGE_ALL)?;
    let queues = own!(run, rpma_srq_cfg_delete, rpma_srq_cfg_new())?;
    again!(run, rpma_srq_cfg_set_rcq_size(queues.raw(), rcq_size))?;
    let srq = own!(run, rpma_srq_delete, rpma_srq_new(peer.raw(), queues.raw()))?;
    let cfg = own!(run, rpma_conn_cfg_delete, rpma_conn_cfg_new())?;
    again!(run, rpma_conn_cfg_set_srq(cfg.raw(), srq.raw()))?;
    for n in 10..13 {
        again!(run, rpma_srq_recv(srq.raw(), log.mr.raw(), 0, 100, id(n)))?;
    }
    let pair = pair(run, &peer, cfg.raw())?;
    let ours = cq(run, &pair.client)?;
    let theirs = match rcq_size {
        0 => cq(run, &pair.server)?,
        _ => get!(run, UNTOUCHED, rpma_srq_get_rcq(srq.raw()))?,
    };
    for n in 0..3 {
        again!(
            run,
            rpma_send(pair.client.raw(), null_mut(), 0, 0, ALWAYS, id(n))
        )?;
        done(run, ours, n)?;
        done(run, theirs, 10 + n)?;
    }
    drop(cfg);
    Ok(())
}

fn shared_channel(run: &Run) -> Result {
    let cfg = own!(run, rpma_conn_cfg_delete, rpma_conn_cfg_new())?;
    again!(run, rpma_conn_cfg_set_compl_channel(cfg.raw(), true))?;
    again!(run, rpma_conn_cfg_set_rcq_size(cfg.raw(), 4))?;
    let rig = rig(run, cfg.raw())?;
    for n in 0..3 {
        again!(
            run,
            rpma_recv(rig.server.raw(), rig.log.mr.raw(), 0, 100, id(n))
        )?;
        again!(
            run,
            rpma_send(rig.client.raw(), rig.local.mr.raw(), 0, 9, ALWAYS, id(n))
        )?;
        for (conn, receives) in [(&rig.client, false), (&rig.server, true)] {
            let mut is_rcq = !receives;
            let cq = get!(
                run,
                UNTOUCHED,
                rpma_conn_wait_which(conn.raw(), &mut is_rcq)
            )?;
            assert_eq!(is_rcq, receives);
            done(run, cq, n)?;
        }
    }
    let fd = get!(run, -1, rpma_conn_get_compl_fd(rig.client.raw()))?;
    nonblocking(fd);
    let (mut cq, mut is_rcq) = (UNTOUCHED, false);
    // SAFETY: as in `again!`.
    match unsafe { rpma_conn_wait(rig.client.raw(), 0, &mut cq, &mut is_rcq) } {
        NO_COMPLETION => assert_eq!(cq, UNTOUCHED),
        code => return run.once("rpma_conn_wait", code),
    }
    Ok(())
}

/// [`rpma_conn_wait`] with its result at the end.
///
/// # Safety
/// That of C.
unsafe fn rpma_conn_wait_which(conn: Handle, is_rcq: *mut bool, cq: *mut Handle) -> c_int {
    // SAFETY: the caller's word.
    unsafe { rpma_conn_wait(conn, 0, cq, is_rcq) }
}

fn own_channels(run: &Run) -> Result {
    let cfg = own!(run, rpma_conn_cfg_delete, rpma_conn_cfg_new())?;
    again!(run, rpma_conn_cfg_set_rcq_size(cfg.raw(), 4))?;
    let rig = rig(run, cfg.raw())?;
    let receives = get!(run, UNTOUCHED, rpma_conn_get_rcq(rig.server.raw()))?;
    for n in 0..3 {
        again!(
            run,
            rpma_recv(rig.server.raw(), rig.log.mr.raw(), 0, 100, id(n))
        )?;
        again!(
            run,
            rpma_send(rig.client.raw(), rig.local.mr.raw(), 0, 9, ALWAYS, id(n))
        )?;
        for cq in [rig.cq, receives] {
            again!(run, rpma_cq_wait(cq))?;
            done(run, cq, n)?;
        }
    }
    Ok(())
}

fn waits(run: &Run) -> Result {
    let rig = rig(run, null_mut())?;
    let fd = get!(run, -1, rpma_cq_get_fd(rig.cq))?;
    for n in 0..4 {
        let (conn, here, there) = (rig.client.raw(), rig.local.mr.raw(), rig.remote.raw());
        again!(run, rpma_write(conn, there, 0, here, 0, 9, ALWAYS, id(n)))?;
        // A wait that failed after it took the event: the next one must not wait for another.
        again!(run, rpma_cq_wait(rig.cq))?;
        done(run, rig.cq, n)?;
        if n == 1 {
            nonblocking(fd);
        }
    }
    // SAFETY: as in `again!`.
    match unsafe { rpma_cq_wait(rig.cq) } {
        NO_COMPLETION => Ok(()),
        code => run.once("rpma_cq_wait", code),
    }
}

/// Transfers, receives, completions and events that nobody took.
fn delete_in_flight(run: &Run) -> Result {
    let rig = rig(run, null_mut())?;
    let (conn, here, there) = (rig.client.raw(), rig.local.mr.raw(), rig.remote.raw());
    again!(
        run,
        rpma_recv(rig.server.raw(), rig.log.mr.raw(), 0, 100, id(1))
    )?;
    again!(run, rpma_send(conn, here, 0, 9, ALWAYS, id(1)))?;
    run.standin.hold();
    again!(run, rpma_write(conn, there, 0, here, 0, 9, ALWAYS, id(2)))?;
    again!(run, rpma_read(conn, here, 0, there, 0, 9, ALWAYS, id(3)))?;
    let Rig {
        client,
        server,
        log,
        local,
        ..
    } = rig;
    drop(log);
    drop(server);
    drop(client);
    drop(local);
    Ok(())
}

fn delete_peer_first(run: &Run) -> Result {
    let peer = peer(run)?;
    let region = region(run, &peer, USAGE_ALL)?;
    let srq = own!(run, rpma_srq_delete, rpma_srq_new(peer.raw(), null_mut()))?;
    let pair = pair(run, &peer, null_mut())?;
    drop(peer);
    again!(run, rpma_srq_recv(srq.raw(), region.mr.raw(), 0, 9, id(1)))?;
    again!(
        run,
        rpma_recv(pair.server.raw(), region.mr.raw(), 0, 9, id(1))
    )?;
    drop(region);
    drop(srq);
    drop(pair);
    Ok(())
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
    _peer: Own<'r>,
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
        _peer: peer,
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
    // SAFETY: numbers.
    unsafe {
        libc::fcntl(
            fd,
            libc::F_SETFL,
            libc::fcntl(fd, libc::F_GETFL) | libc::O_NONBLOCK,
        )
    };
}
