//! Fails every call into libibverbs and librdmacm, and every system call, once, one at a time,
//! under programs of the C interface, on the stand-in of `ci/standin`.
//!
//! After each failure: the function of the C interface gave a number that fits and left the places
//! of its results alone; the log names the call; nothing panicked or hung; no object, fd, mapping
//! or byte of heap is left; the device saw no illegal use; and the same process does the whole
//! scenario again.

mod calls;
#[path = "../../../tests/standin_sweep/imports.rs"]
mod imports;
#[allow(dead_code, reason = "what is about errors of the Rust interface")]
#[path = "../../../tests/standin_sweep/outcome.rs"]
mod outcome;
mod run;
mod scenarios;
#[path = "../../../tests/standin_sweep/snapshot.rs"]
mod snapshot;
#[path = "../../../tests/standin_sweep/system.rs"]
mod system;
#[path = "../../../tests/standin_sweep/watchdog.rs"]
mod watchdog;

use std::{collections::BTreeSet, ffi::c_int, fs, path::Path};

use calls::{AGAIN, Handle, INVAL, NO_COMPLETION, NO_EVENT, NOMEM, NOSUPP, PROVIDER};
use rpma_capi as _;
use run::Run;
use scenarios::{SCENARIOS, Scenario};
use snapshot::Snapshot;
use standin_control::{Call, Knob, Personality, Standin};
use watchdog::Watchdog;

/// Errnos that calls are made to fail with; 0 is the one that fits the call.
const ERRNOS: [i32; 7] = [
    0,
    libc::ENOMEM,
    libc::EAGAIN,
    libc::EINTR,
    libc::EINVAL,
    libc::EOPNOTSUPP,
    libc::EIO,
];

const PERSONALITIES: [Personality; 3] = [Personality::Rxe, Personality::Siw, Personality::Mlx5];

/// What is wrong after `call` failed with `errno`, these functions gave these numbers, and this was
/// logged.
fn judge(call: &str, errno: i32, codes: &[(&str, c_int)], log: &[String]) -> Option<&'static str> {
    let Some((_, code)) = codes.first() else {
        return (!outcome::made_up_for(call, errno)).then_some("nobody was told");
    };
    if outcome::interrupted(call, errno) {
        return Some("the call was interrupted, and not made again");
    }
    if outcome::destroys(call) {
        // What stays because its end was refused may be in the way of something else.
        return None;
    }
    // Those that ENOMEM of is no lack of memory, or not told apart.
    let other = call.contains("_post_") || matches!(call, "ibv_wr_complete" | "getaddrinfo");
    let fits = match *code {
        NOMEM => matches!(errno, libc::ENOMEM | 0) && !other,
        PROVIDER => errno != libc::ENOMEM || other,
        AGAIN => errno == libc::EAGAIN,
        // There was something, but the call was interrupted: as good as nothing to who will ask
        // again.
        NO_COMPLETION | NO_EVENT => matches!(errno, libc::EAGAIN | libc::EINTR),
        NOSUPP => errno == libc::EOPNOTSUPP,
        INVAL => call == "ibv_advise_mr" && errno == libc::EINVAL,
        _ => false,
    };
    if !fits {
        return Some("the number does not fit");
    }
    let silent = matches!(*code, NO_COMPLETION | NO_EVENT | INVAL);
    let names = outcome::aliases(call);
    let named = log
        .iter()
        .any(|line| line.contains(call) || names.iter().any(|name| line.contains(name)));
    // Of a failed address the log says that there is no device, or that it could not be resolved.
    let address = ["no RDMA device", "cannot resolve"];
    let device = log
        .iter()
        .any(|line| address.iter().any(|text| line.contains(text)));
    (!silent && !named && !device && *code != NOSUPP).then_some("the log does not name the call")
}

#[derive(Default)]
struct Sweep {
    problems: Vec<String>,
    failed: BTreeSet<String>,
    failures: u64,
}

impl Sweep {
    /// The calls that the scenario makes when nothing fails.
    fn rehearse(
        &mut self,
        standin: &Standin,
        p: Personality,
        context: Handle,
        scenario: &Scenario,
    ) -> (Vec<Call>, Vec<(&'static str, u64)>) {
        let mut trace = (Vec::new(), Vec::new());
        // The first rounds fill what is allocated once a process.
        for round in 0..4 {
            let label = format!("{p:?} {}: without a failure", scenario.name);
            let _watched = Watchdog::watch(&label);
            reset(standin, p);
            standin.start_trace();
            let before = Snapshot::take(standin);
            system::plan(None);
            let run = Run::new(*standin, p, context);
            let found = clean(&run, scenario);
            drop(run);
            let left = before.left(&Snapshot::take(standin));
            trace = (standin.trace(), system::trace());
            if round == 3 {
                self.judge(standin, &label, found.or(left));
            }
        }
        trace
    }

    fn judge(&mut self, standin: &Standin, label: &str, found: Option<String>) {
        if let Some(found) = found {
            self.problems.push(format!("{label}: {found}"));
        }
        let violations = standin.violations();
        if !violations.is_empty() {
            self.problems.push(format!("{label}: {violations:?}"));
        }
    }

    /// Fails one call. What is left is a leak only if it is left again the next time: some things
    /// are allocated once a process.
    fn fail(&mut self, failure: &Failure<'_>) {
        let known = self.problems.len();
        self.fail_once(failure);
        if self.problems.len() > known {
            self.problems.truncate(known);
            self.fail_once(failure);
        }
    }

    fn fail_once(&mut self, failure: &Failure<'_>) {
        let Failure {
            standin,
            p,
            context,
            scenario,
            system,
            nth,
            call,
            errno,
            keep,
        } = *failure;
        let kept = if keep { ", kept" } else { "" };
        let label = format!(
            "{p:?} {}: call {nth}, {call}, errno {errno}{kept}",
            scenario.name
        );
        self.failures += 1;
        self.failed.insert(call.to_owned());
        let _watched = Watchdog::watch(&label);
        reset(standin, p);
        standin.set(Knob::FailedDestroysFree, i64::from(!keep));
        let before = Snapshot::take(standin);
        match system {
            Some(call) => system::plan(Some(system::Plan { call, nth, errno })),
            None => standin.fail_call_index_with(nth, errno),
        }
        let run = Run::new(*standin, p, context);
        let met = run.go(scenario);
        let fired = standin.faults_fired() + u64::from(system::fired());
        system::plan(None);
        let found = match met {
            // How often something polls may depend on the time.
            _ if fired == 0 && call == "poll" => None,
            _ if fired != 1 => Some("the call was not made".to_owned()),
            Err(problem) => Some(problem),
            Ok((codes, log)) => judge(call, errno, &codes, &log)
                .map(|problem| format!("{problem}: {codes:?} {log:?}")),
        };
        // The same process.
        let found = found.or(clean(&run, scenario).map(|then| format!("then: {then}")));
        drop(run);
        // What the device keeps keeps what it needs.
        let left = before.left(&Snapshot::take(standin)).filter(|_| !keep);
        self.judge(standin, &label, found.or(left));
    }
}

/// Runs the scenario: nothing may fail.
fn clean(run: &Run, scenario: &Scenario) -> Option<String> {
    match run.go(scenario) {
        Ok((codes, _)) if codes.is_empty() => None,
        other => Some(format!("{other:?}")),
    }
}

/// One call to be made to fail.
#[derive(Clone, Copy)]
struct Failure<'a> {
    standin: &'a Standin,
    p: Personality,
    context: Handle,
    scenario: &'a Scenario,
    /// The system call, where it is none into the two libraries.
    system: Option<&'static str>,
    nth: u64,
    call: &'a str,
    errno: i32,
    /// Whether the device keeps what should have been destroyed.
    keep: bool,
}

fn reset(standin: &Standin, p: Personality) {
    standin.reset();
    standin.personality(p);
    standin.set(Knob::TimewaitMs, 1);
}

/// Functions that the C interface has no way to (probes of limits, asynchronous events, options,
/// memory of other devices), and one that only another failure leads to. The sweep of the Rust
/// interface fails them.
const NOT_IN_C: [&str; 17] = [
    "ibv_create_qp",
    "ibv_destroy_qp",
    "ibv_get_async_event",
    "ibv_modify_srq",
    "ibv_reg_dmabuf_mr",
    "rdma_init_qp_attr",
    "rdma_set_option",
    "_ibv_query_gid_table",
    // Addresses need no resolver.
    "getaddrinfo",
    // Waits of C programs block in their reads, and the stand-in resolves routes at once.
    "poll",
    // Files are the program's own.
    "msync",
    "open",
    "fstat",
    "fstatfs",
    "fsync",
    "posix_fallocate",
    "fallocate",
];

/// Entry points that make no foreign call: they read and set what is in memory.
fn without_calls(name: &str) -> bool {
    let getter = name.contains("_cfg_get_")
        || name.contains("_cfg_set_")
        || name.ends_with("_size")
        || name.contains("_log_");
    getter
        || name.ends_with("_2str")
        || matches!(
            name,
            "rpma_conn_get_qp_num"
                | "rpma_mr_get_ptr"
                | "rpma_mr_remote_get_flush_type"
                | "rpma_peer_cfg_from_descriptor"
                | "rpma_peer_cfg_get_descriptor"
                | "rpma_log"
        )
}

#[test]
fn every_call_can_fail_under_the_c_interface() {
    every_entry_point_is_in_a_scenario();
    let Some(standin) = Standin::exclusive() else {
        println!(
            "SKIP: every_call_can_fail_under_the_c_interface: not on the stand-in: LD_LIBRARY_PATH=$(ci/standin)"
        );
        return;
    };
    // The stand-in's threads come and go: arenas of theirs would look like mappings that are left.
    // SAFETY: a number.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    run::capture_log();
    let only = std::env::var("RPMA_SWEEP_ONLY").unwrap_or_default();
    // All errnos for each call, or two, of which one changes from call to call.
    let full = std::env::var_os("RPMA_SWEEP_FULL").is_some();
    let mut sweep = Sweep::default();
    for p in PERSONALITIES {
        reset(&standin, p);
        let context = run::context();
        let chosen = SCENARIOS.iter().enumerate();
        for (number, scenario) in chosen.filter(|(_, s)| s.name.contains(&only)) {
            let start = std::time::Instant::now();
            let failures = sweep.failures;
            let (trace, system_trace) = sweep.rehearse(&standin, p, context, scenario);
            let start_with = Failure {
                standin: &standin,
                p,
                context,
                scenario,
                system: None,
                nth: 0,
                call: "",
                errno: libc::EBUSY,
                keep: false,
            };
            for (nth, call) in (1..).zip(&trace).filter(|(_, call)| call.can_fail) {
                let failure = Failure {
                    nth,
                    call: &call.name,
                    ..start_with
                };
                if outcome::destroys(&call.name) {
                    // Nobody who destroys looks at the errno. A region that the device lets go of
                    // in spite of what it says cannot be told from one that it keeps.
                    if call.name != "ibv_dereg_mr" {
                        sweep.fail(&failure);
                    }
                    sweep.fail(&Failure {
                        keep: true,
                        ..failure
                    });
                    continue;
                }
                let [usual, others @ ..] = ERRNOS;
                let mut errnos = vec![usual];
                match full {
                    true => errnos.extend(others),
                    false => errnos.push(others[(nth as usize + number) % others.len()]),
                }
                for errno in errnos {
                    sweep.fail(&Failure { errno, ..failure });
                }
            }
            for (turn, &(call, nth)) in system_trace.iter().enumerate() {
                let failure = Failure {
                    system: Some(call),
                    nth,
                    call,
                    ..start_with
                };
                for errno in [libc::EINTR, system::ERRNOS[turn % system::ERRNOS.len()]] {
                    sweep.fail(&Failure { errno, ..failure });
                }
            }
            let failures = sweep.failures - failures;
            println!(
                "{p:?} {}: {failures} failures, {:?}",
                scenario.name,
                start.elapsed()
            );
        }
    }
    for problem in &sweep.problems {
        println!("{problem}");
    }
    let system = sweep
        .failed
        .iter()
        .filter(|name| system::CALLS.contains(&name.as_str()));
    println!(
        "{} calls failed, of {} functions of the two libraries and {} system calls, under {} functions of the C interface, in {} scenarios on {} \
         devices; {} problems",
        sweep.failures,
        sweep.failed.len() - system.clone().count(),
        system.count(),
        run::called().len(),
        SCENARIOS.len(),
        PERSONALITIES.len(),
        sweep.problems.len()
    );
    assert_eq!(sweep.problems.len(), 0);
    if only.is_empty() {
        let missing: Vec<_> = imports::used(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../src"))
            .into_iter()
            .chain(system::CALLS.iter().map(|name| (*name).to_owned()))
            .filter(|name| !sweep.failed.contains(name) && !NOT_IN_C.contains(&name.as_str()))
            .collect();
        assert_eq!(
            missing,
            Vec::<String>::new(),
            "no scenario makes these calls"
        );
    }
}

/// Every entry point that makes foreign calls is in some scenario's source.
fn every_entry_point_is_in_a_scenario() {
    let here = env!("CARGO_MANIFEST_DIR");
    let read = |path: &str| fs::read_to_string(format!("{here}/{path}")).unwrap();
    let map = read("librpma.map");
    let mut scenarios = read("tests/standin_capi_sweep/run.rs");
    for entry in fs::read_dir(format!("{here}/tests/standin_capi_sweep/scenarios")).unwrap() {
        scenarios += &fs::read_to_string(entry.unwrap().path()).unwrap();
    }
    let names: Vec<_> = map
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("rpma_"))
        .collect();
    assert!(names.len() > 80, "{names:?}");
    let missing: Vec<_> = names
        .into_iter()
        .filter(|name| {
            !without_calls(name)
                && !scenarios.contains(&format!("{name}("))
                && !scenarios.contains(&format!("{name},"))
        })
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}
