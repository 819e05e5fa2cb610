//! A logger that panics or calls back, while things end and the device refuses to end them; on the
//! stand-in device of `ci/standin`.

use std::{
    any::Any,
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, Once, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

use log::{Level, LevelFilter, Log, Metadata, Record};
use rpma::{
    ConnCfg, ConnRequest, Connection, Endpoint, LocalRegion, Memory, Peer, RemoteRegion, Signal,
    Srq, SrqCfg, StableBytes, Usage,
};
use standin_control::{Exclusive, Knob, Personality, Standin};

const ADDR: &str = "192.168.77.1";
/// Against hangs only.
const LONG: Duration = Duration::from_secs(30);

/// What the logger does with a message.
type Behaviour = Arc<dyn Fn(Level) + Send + Sync>;

static BEHAVIOUR: Mutex<Option<Behaviour>> = Mutex::new(None);
static ERRORS: AtomicUsize = AtomicUsize::new(0);

struct Logger;

impl Log for Logger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let behaviour = behaviour().clone();
        if record.level() == Level::Error {
            ERRORS.fetch_add(1, Relaxed);
        }
        if let Some(behaviour) = behaviour {
            behaviour(record.level());
        }
    }

    fn flush(&self) {}
}

fn behaviour() -> std::sync::MutexGuard<'static, Option<Behaviour>> {
    BEHAVIOUR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A panic whose payload panics again when it is dropped.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        if !thread::panicking() {
            resume_unwind(Box::new("the payload"));
        }
    }
}

/// Lets the logger do that, until the guard is dropped.
fn logger_does(behaviour_now: impl Fn(Level) + Send + Sync + 'static) -> impl Drop {
    struct Off;
    impl Drop for Off {
        fn drop(&mut self) {
            *behaviour() = None;
        }
    }
    *behaviour() = Some(Arc::new(behaviour_now));
    Off
}

fn panics_at(level: Level) -> impl Drop {
    logger_does(move |this| {
        if this == level {
            // Without the message of the panic hook.
            resume_unwind(Box::new(Payload));
        }
    })
}

fn standin(test: &str) -> Option<Exclusive> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&Logger).unwrap();
        log::set_max_level(LevelFilter::Debug);
    });
    let standin = Standin::exclusive();
    if standin.is_none() {
        println!("SKIP: {test}: not on the stand-in: LD_LIBRARY_PATH=$(ci/standin)");
    }
    standin
}

/// Whether `run` unwinds.
fn unwinds<T>(run: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(run))
        .map_err(mem::forget)
        .is_err()
}

/// Memory of an owner that counts its drops.
fn counted_memory() -> (Memory, Arc<AtomicUsize>) {
    struct Owner(Vec<u8>, Arc<AtomicUsize>);
    // SAFETY: the content of a vector that nobody else has.
    unsafe impl StableBytes for Owner {
        fn as_mut_ptr(&mut self) -> *mut u8 {
            self.0.as_mut_ptr()
        }

        fn byte_len(&self) -> usize {
            self.0.len()
        }
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            self.1.fetch_add(1, Relaxed);
        }
    }
    let freed = Arc::default();
    let owner = Owner(vec![1; 4096], Arc::clone(&freed));
    (Memory::from_owner(owner).unwrap(), freed)
}

fn connect(peer: &Peer, server_cfg: &ConnCfg) -> (Endpoint, Connection, Connection) {
    let endpoint = Endpoint::listen(peer, ADDR, "0").unwrap();
    let port = endpoint.local_addr().unwrap().port().to_string();
    let request = ConnRequest::new(peer, ADDR, &port, &ConnCfg::new()).unwrap();
    let client = request.connect(None).unwrap();
    let request = endpoint.next_request(server_cfg).unwrap();
    let server = request.connect(None).unwrap();
    client.wait_established(LONG).unwrap();
    (endpoint, client, server)
}

#[test]
fn memory_whose_deregistration_is_refused_outlives_a_panicking_logger() {
    let Some(standin) =
        standin("memory_whose_deregistration_is_refused_outlives_a_panicking_logger")
    else {
        return;
    };
    for unwinding in [false, true] {
        standin.reset();
        let peer = Peer::local(ADDR).unwrap();
        let (_endpoint, client, _server) = connect(&peer, &ConnCfg::new());
        let (memory, freed) = counted_memory();
        let region = peer.register(memory, Usage::WRITE_DST).unwrap();
        let (first, descriptor) = (region.as_ptr(), region.descriptor());
        let (mrs, calls) = (standin.objects().mrs, standin.count("ibv_dereg_mr"));

        standin.set(Knob::FailedDestroysFree, 0);
        standin.fail_nth("ibv_dereg_mr", 1, libc::EBUSY);
        let loud = panics_at(Level::Error);
        let unwound = unwinds(|| {
            let _region = region;
            if unwinding {
                resume_unwind(Box::new(()));
            }
        });
        drop(loud);
        assert_eq!(
            unwound, unwinding,
            "the logger's panic came out of the drop"
        );
        assert_eq!(standin.count("ibv_dereg_mr"), calls + 1);
        assert_eq!(standin.objects().mrs, mrs);
        assert_eq!(freed.load(Relaxed), 0);

        // The peer can still write there, and does no harm.
        let source = peer.register(Memory::anonymous(8).unwrap(), Usage::WRITE_SRC);
        let source = source.unwrap();
        source.store_u64(0, 0x5a, Relaxed).unwrap();
        let target = RemoteRegion::from_descriptor(descriptor.as_bytes()).unwrap();
        let (from, to) = (source.slice(..).unwrap(), target.slice(0..8).unwrap());
        client.write(&from, &to, Signal::Always(1)).unwrap();
        client.cq().wait_timeout(LONG).unwrap();
        assert!(client.cq().poll_one().unwrap().unwrap().is_success());
        // SAFETY: the memory was not freed, and nobody writes to it now.
        assert_eq!(unsafe { first.read() }, 0x5a);
        assert_eq!(standin.violations(), Vec::<String>::new());
    }
}

/// Everything that a device can refuse to destroy.
fn everything() -> Vec<Box<dyn Any>> {
    let peer = Peer::local(ADDR).unwrap();
    let srq = Srq::new(&peer, &SrqCfg::new()).unwrap();
    let (endpoint, client, server) = connect(&peer, &ConnCfg::new().srq(&srq));
    let region: LocalRegion = peer
        .register(Memory::anonymous(4096).unwrap(), Usage::RECV)
        .unwrap();
    vec![
        Box::new(client),
        Box::new(server),
        Box::new(endpoint),
        Box::new(srq),
        Box::new(region),
        Box::new(peer),
    ]
}

/// The calls that `run` makes to end things.
fn ends(standin: &Standin, run: impl FnOnce()) -> Vec<String> {
    standin.start_trace();
    run();
    let calls = standin.trace().into_iter().map(|call| call.name);
    calls
        .filter(|name| name.contains("_destroy_") || name.contains("_de"))
        .collect()
}

#[test]
fn a_panicking_logger_skips_nothing_of_an_end_and_repeats_nothing() {
    let Some(standin) = standin("a_panicking_logger_skips_nothing_of_an_end_and_repeats_nothing")
    else {
        return;
    };
    let made = everything();
    let expected = ends(&standin, || drop(made));
    let kinds: Vec<_> = {
        let mut kinds = expected.clone();
        kinds.sort();
        kinds.dedup();
        // These two give nothing.
        kinds.retain(|name| !name.ends_with("_channel") || name.starts_with("ibv"));
        kinds.retain(|name| name != "rdma_destroy_qp");
        kinds
    };
    assert!(kinds.len() >= 6, "{kinds:?}");
    for (n, name) in kinds.iter().enumerate() {
        // The log is limited to so many a second: again, until it was written to.
        loop {
            let (made, before) = (everything(), ERRORS.load(Relaxed));
            standin.fail_nth(name, 1, libc::EBUSY);
            let loud = panics_at(Level::Error);
            let unwinding = n % 2 == 1;
            let found = ends(&standin, || {
                let unwound = unwinds(|| {
                    let _made = made;
                    if unwinding {
                        resume_unwind(Box::new(()));
                    }
                });
                assert_eq!(unwound, unwinding, "{name}");
            });
            drop(loud);
            // Memory that stays registered keeps its protection domain, and with it the device.
            let left = if name == "ibv_dereg_mr" { 2 } else { 0 };
            assert_eq!(found, expected[..expected.len() - left], "{name}");
            if ERRORS.load(Relaxed) > before {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        standin.reset();
    }
}

#[test]
fn a_logger_that_panics_at_other_messages_breaks_nothing() {
    let Some(standin) = standin("a_logger_that_panics_at_other_messages_breaks_nothing") else {
        return;
    };
    let before = standin.objects();
    let loud = panics_at(Level::Debug);
    assert!(unwinds(|| Peer::local(ADDR)));
    drop(loud);
    assert_eq!(standin.objects(), before);

    standin.personality(Personality::Mlx5);
    let peer = Peer::local(ADDR).unwrap();
    let endpoint = Endpoint::listen(&peer, ADDR, "0").unwrap();
    let port = endpoint.local_addr().unwrap().port().to_string();
    let ask = || ConnRequest::new(&peer, ADDR, &port, &ConnCfg::new());
    // On the way to the region that reading flushes need.
    standin.fail_nth("ibv_reg_mr", 1, libc::EOPNOTSUPP);
    standin.fail_nth("ibv_reg_mr_iova2", 1, libc::EOPNOTSUPP);
    let loud = panics_at(Level::Debug);
    assert!(unwinds(ask));
    drop(loud);
    let client = ask().unwrap().connect(None).unwrap();
    let request = endpoint.next_request(&ConnCfg::new()).unwrap();
    let server = request.connect(None).unwrap();
    // The event is lost with the panic, but not what it told.
    let loud = panics_at(Level::Debug);
    assert!(unwinds(|| client.wait_established(LONG)));
    drop(loud);
    client.wait_established(LONG).unwrap();
    drop((client, server, endpoint, peer));
    assert_eq!(standin.objects(), before);
}

/// Runs it on a thread of its own: a deadlock ends the test.
fn in_time(run: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || {
        run();
        done.send(()).unwrap();
    });
    wait.recv_timeout(LONG).expect("a panic or a deadlock");
}

#[test]
fn a_logger_may_use_the_peer_that_it_is_told_about() {
    let Some(standin) = standin("a_logger_may_use_the_peer_that_it_is_told_about") else {
        return;
    };
    standin.personality(Personality::Mlx5);
    let peer = Peer::local(ADDR).unwrap();
    let endpoint = Endpoint::listen(&peer, ADDR, "0").unwrap();
    let port = endpoint.local_addr().unwrap().port().to_string();
    let called_back = Arc::new(AtomicUsize::new(0));
    let (at_log, port_at_log, count) = (peer.clone(), port.clone(), called_back.clone());
    let inside = Mutex::new(());
    let _calling = logger_does(move |_| {
        // Not for what is logged meanwhile.
        let Ok(_inside) = inside.try_lock() else {
            return;
        };
        at_log.max_inline().unwrap();
        drop(ConnRequest::new(&at_log, ADDR, &port_at_log, &ConnCfg::new()).unwrap());
        count.fetch_add(1, Relaxed);
    });
    // While the limit of inline data is being found.
    standin.fail_nth("ibv_destroy_qp", 1, libc::EBUSY);
    let probed = peer.clone();
    in_time(move || {
        probed.max_inline().unwrap();
    });
    // While the region that reading flushes need is being registered.
    let other = Peer::local(ADDR).unwrap();
    let before = called_back.load(Relaxed);
    standin.fail_nth("ibv_reg_mr", 1, libc::EOPNOTSUPP);
    standin.fail_nth("ibv_reg_mr_iova2", 1, libc::EOPNOTSUPP);
    in_time(move || {
        drop(ConnRequest::new(&other, ADDR, &port, &ConnCfg::new()).unwrap());
    });
    assert!(called_back.load(Relaxed) > before);
}
