//! Signals end the waits of C programs, whose fds block unless the program says otherwise.

#[path = "standin_capi_sweep/calls.rs"]
#[allow(dead_code, reason = "the sweep uses the rest")]
mod calls;

use std::{
    ffi::{CStr, c_int},
    ptr::null_mut,
    sync::atomic::{AtomicI32, Ordering},
    time::Duration,
};

use calls::*;
use rpma_capi as _;
use standin_control::Standin;

const ADDR: &CStr = c"192.168.77.1";

static HANDLED: AtomicI32 = AtomicI32::new(0);

extern "C" fn handle(_: c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// What `wait` gives when signals come, with a handler that asks for no restart.
fn interrupted(wait: impl FnOnce() -> c_int + Send) -> c_int {
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let waiter = scope.spawn(move || {
            // SAFETY: the function needs nothing.
            sender.send(unsafe { libc::pthread_self() }).unwrap();
            wait()
        });
        let thread = receiver.recv().unwrap();
        while !waiter.is_finished() {
            // SAFETY: the thread is joined only later.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            std::thread::sleep(Duration::from_millis(5));
        }
        waiter.join().unwrap()
    })
}

/// A pointer that goes to the waiting thread. The functions may be called from any.
#[derive(Clone, Copy)]
struct Shared(Handle);
// SAFETY: librpma's handles may be used by several threads.
unsafe impl Send for Shared {}

impl Shared {
    fn raw(self) -> Handle {
        self.0
    }
}

fn is_blocking(fd: c_int) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_NONBLOCK == 0 }
}

#[test]
fn a_signal_ends_the_waits_of_c_programs() {
    if Standin::get().is_none() {
        assert!(std::env::var_os("STANDIN_STRICT").is_none());
        println!("SKIPPED: needs the stand-in");
        return;
    }
    // SAFETY: the contract of the C interface: handles are alive and of their kinds, and what is
    // pointed at lives until the call returns. The handler only counts.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        assert_eq!(
            libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()),
            0
        );
        let [mut context, mut peer, mut ep, mut cfg] = [null_mut(); 4];
        assert_eq!(
            rpma_utils_get_ibv_context(ADDR.as_ptr(), 0, &mut context),
            0
        );
        assert_eq!(rpma_peer_new(context, &mut peer), 0);
        let port = c"7391";
        assert_eq!(
            rpma_ep_listen(peer, ADDR.as_ptr(), port.as_ptr(), &mut ep),
            0
        );
        let endpoint = Shared(ep);
        let ret = interrupted(move || {
            let mut request = null_mut();
            rpma_ep_next_conn_req(endpoint.raw(), null_mut(), &mut request)
        });
        assert_eq!(ret, PROVIDER);

        assert_eq!(rpma_conn_cfg_new(&mut cfg), 0);
        assert_eq!(rpma_conn_cfg_set_rcq_size(cfg, 4), 0);
        assert_eq!(rpma_conn_cfg_set_compl_channel(cfg, true), 0);
        let [mut asking, mut asked, mut client, mut server] = [null_mut(); 4];
        assert_eq!(
            rpma_conn_req_new(peer, ADDR.as_ptr(), port.as_ptr(), null_mut(), &mut asking),
            0
        );
        assert_eq!(
            rpma_conn_req_connect(&mut asking, std::ptr::null(), &mut client),
            0
        );
        assert_eq!(rpma_ep_next_conn_req(ep, cfg, &mut asked), 0);
        assert_eq!(
            rpma_conn_req_connect(&mut asked, std::ptr::null(), &mut server),
            0
        );
        for conn in [client, server] {
            let mut event = -1;
            assert_eq!(rpma_conn_next_event(conn, &mut event), 0);
            assert_eq!(event, ESTABLISHED);
        }
        let mut cq = null_mut();
        assert_eq!(rpma_conn_get_cq(client, &mut cq), 0);
        let mut fds = [-1; 4];
        assert_eq!(rpma_ep_get_fd(ep, &mut fds[0]), 0);
        assert_eq!(rpma_conn_get_event_fd(client, &mut fds[1]), 0);
        assert_eq!(rpma_cq_get_fd(cq, &mut fds[2]), 0);
        assert_eq!(rpma_conn_get_compl_fd(server, &mut fds[3]), 0);
        assert!(fds.into_iter().all(is_blocking));

        let (cq, one, other) = (Shared(cq), Shared(client), Shared(server));
        assert_eq!(interrupted(move || rpma_cq_wait(cq.raw())), NO_COMPLETION);
        let ret = interrupted(move || rpma_conn_next_event(one.raw(), &mut -1));
        assert_eq!(ret, PROVIDER);
        let ret = interrupted(move || {
            let (mut cq, mut is_rcq) = (null_mut(), false);
            rpma_conn_wait(other.raw(), 0, &mut cq, &mut is_rcq)
        });
        assert_eq!(ret, NO_COMPLETION);
        assert!(HANDLED.load(Ordering::Relaxed) >= 4);

        // Where the program wants it, nothing blocks, and nothing there is said at once.
        for fd in fds {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            assert_eq!(libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK), 0);
        }
        assert_eq!(rpma_cq_wait(cq.raw()), NO_COMPLETION);
        assert_eq!(rpma_conn_next_event(client, &mut -1), NO_EVENT);
        let mut request = null_mut();
        assert_eq!(
            rpma_ep_next_conn_req(ep, null_mut(), &mut request),
            NO_EVENT
        );

        assert_eq!(rpma_conn_delete(&mut client), 0);
        assert_eq!(rpma_conn_delete(&mut server), 0);
        assert_eq!(rpma_conn_cfg_delete(&mut cfg), 0);
        assert_eq!(rpma_ep_shutdown(&mut ep), 0);
        assert_eq!(rpma_peer_delete(&mut peer), 0);
    }
}
