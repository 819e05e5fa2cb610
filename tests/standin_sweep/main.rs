//! Fails every call into libibverbs and librdmacm, and every system call of the crate, once, one at
//! a time, in every scenario, on the stand-in device of `ci/standin`.
//!
//! After each failure: the error names the call that failed (or the call is one whose failure is
//! made up for); nothing panicked, nothing hung; no object, fd, mapping or byte of heap is left;
//! the device saw no illegal use; and the same peer does the whole scenario again. All of this with
//! a logger that panics at every error.

mod imports;
mod logger;
mod outcome;
mod scenarios;
mod snapshot;
mod system;
mod watchdog;

use std::{
    cell::{OnceCell, RefCell},
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use rpma::{Error, Peer, Result};
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

/// One run of a scenario.
pub struct Run {
    /// The device.
    pub standin: Standin,
    /// What it is like.
    pub personality: Personality,
    peer: OnceCell<Peer>,
    /// What went wrong where it could be done again, and was.
    errors: RefCell<Vec<Error>>,
    /// What could not be done again, though it should have been.
    twice: RefCell<Vec<Error>>,
}

impl Run {
    fn new(standin: Standin, personality: Personality) -> Self {
        Run {
            standin,
            personality,
            peer: OnceCell::new(),
            errors: RefCell::default(),
            twice: RefCell::default(),
        }
    }

    /// The peer, made when it is first asked for: so that the failures of its making are among the
    /// others.
    pub fn peer(&self) -> Result<&Peer> {
        if let Some(peer) = self.peer.get() {
            return Ok(peer);
        }
        let peer = Peer::local(scenarios::ADDR)?;
        Ok(self.peer.get_or_init(|| peer))
    }

    /// Does what can be done again where it fails: the second time it must work, on the same
    /// objects.
    pub fn again<T>(&self, mut call: impl FnMut() -> Result<T>) -> Result<T> {
        match call() {
            Ok(value) => return Ok(value),
            Err(err) => self.errors.borrow_mut().push(err),
        }
        call().inspect_err(|err| self.twice.borrow_mut().push(outcome::copy(err)))
    }

    /// Notes an error that the scenario went on after.
    pub fn note(&self, err: Error) {
        self.errors.borrow_mut().push(err);
    }

    /// Runs the scenario; the errors that it met, the one that ended it last.
    fn go(&self, scenario: &Scenario) -> Result<Vec<Error>, String> {
        let done = catch_unwind(AssertUnwindSafe(|| {
            system::counted(|| (scenario.run)(self))
        }));
        let mut errors = self.errors.take();
        match done {
            Err(_) => return Err("a panic".to_owned()),
            Ok(Err(err)) => errors.push(err),
            Ok(Ok(())) => {}
        }
        match self.twice.take().as_slice() {
            [] => Ok(errors),
            twice => Err(format!("failed again when it was tried again: {twice:?}")),
        }
    }
}

/// What the sweep counts.
#[derive(Default)]
struct Sweep {
    problems: Vec<String>,
    failed: BTreeSet<String>,
    failures: u64,
}

impl Sweep {
    /// The calls that the scenario makes when nothing fails, and its system calls.
    fn rehearse(
        &mut self,
        standin: &Standin,
        p: Personality,
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
            let run = Run::new(*standin, p);
            let found = match run.go(scenario) {
                Ok(errors) if errors.is_empty() => None,
                other => Some(format!("{other:?}")),
            };
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
        let _watched = Watchdog::watch(&label);
        reset(standin, p);
        standin.set(Knob::FailedDestroysFree, i64::from(!keep));
        let before = Snapshot::take(standin);
        match system {
            Some(call) => system::plan(Some(system::Plan { call, nth, errno })),
            None => standin.fail_call_index_with(nth, errno),
        }
        let mut run = Run::new(*standin, p);
        let errors = run.go(scenario);
        let fired = match system {
            Some(_) => u64::from(system::fired()),
            None => standin.faults_fired(),
        };
        system::plan(None);
        if standin.faults_fired() == 0 && system.is_none() {
            // It is one of those that the end of the peer makes.
            run = Run::new(*standin, p);
        }
        let mut found = match errors {
            // How often something polls may depend on the time.
            _ if fired == 0 && call == "poll" => None,
            _ if fired.max(standin.faults_fired()) != 1 => Some("the call was not made".to_owned()),
            Err(problem) => Some(problem),
            Ok(errors) => {
                outcome::judge(call, errno, &errors).map(|problem| format!("{problem}: {errors:?}"))
            }
        };
        self.failures += 1;
        self.failed.insert(call.to_owned());
        // The same peer, where there is one, and the same process.
        match run.go(scenario) {
            Ok(errors) if errors.is_empty() => {}
            other => found = found.or(Some(format!("then: {other:?}"))),
        }
        drop(run);
        system::plan(None);
        // What the device keeps keeps what it needs.
        let left = before.left(&Snapshot::take(standin)).filter(|_| !keep);
        self.judge(standin, &label, found.or(left));
    }

    /// Fails every call of the scenario.
    fn all(
        &mut self,
        standin: &Standin,
        p: Personality,
        number: usize,
        scenario: &Scenario,
        full: bool,
    ) {
        let (trace, system) = self.rehearse(standin, p, scenario);
        let start = Failure {
            standin,
            p,
            scenario,
            system: None,
            nth: 0,
            call: "",
            errno: 0,
            keep: false,
        };
        for (nth, call) in (1..).zip(&trace).filter(|(_, call)| call.can_fail) {
            let failure = Failure {
                nth,
                call: &call.name,
                ..start
            };
            if outcome::destroys(&call.name) {
                // Nobody who destroys looks at the errno.
                let failure = Failure {
                    errno: libc::EBUSY,
                    ..failure
                };
                // A region that the device lets go of in spite of what it says cannot be told from
                // one that it keeps.
                if call.name != "ibv_dereg_mr" {
                    self.fail(&failure);
                }
                self.fail(&Failure {
                    keep: true,
                    ..failure
                });
                continue;
            }
            let [usual, others @ ..] = ERRNOS;
            for errno in some(&[usual], &others, nth as usize + number, full) {
                self.fail(&Failure { errno, ..failure });
            }
        }
        // What sysfs does not say of a device is not known, and nobody is told.
        let facts = |call| call == "open" && scenario.name.starts_with("device");
        // The system calls are the same on all devices, almost.
        for (turn, &(call, nth)) in system
            .iter()
            .enumerate()
            .filter(|(_, (call, _))| !facts(*call))
        {
            let failure = Failure {
                system: Some(call),
                nth,
                call,
                ..start
            };
            for errno in some(&[libc::EINTR], &system::ERRNOS, turn + number, full) {
                self.fail(&Failure { errno, ..failure });
            }
        }
    }
}

/// The first errnos and all others, or the first ones and one that changes from call to call.
fn some(first: &[i32], others: &[i32], turn: usize, full: bool) -> Vec<i32> {
    let mut errnos = first.to_vec();
    match full {
        true => errnos.extend(others),
        false => errnos.push(others[turn % others.len()]),
    }
    errnos
}

/// One call to be made to fail.
#[derive(Clone, Copy)]
struct Failure<'a> {
    standin: &'a Standin,
    p: Personality,
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

/// Made only where another call has failed: with one failure at a time they are not reached. Tests
/// on a device reach them.
const ONLY_AFTER_A_FAILURE: [&str; 1] = ["rdma_init_qp_attr"];

#[test]
fn every_call_can_fail() {
    let Some(standin) = Standin::exclusive() else {
        println!("SKIP: every_call_can_fail: not on the stand-in: LD_LIBRARY_PATH=$(ci/standin)");
        return;
    };
    // The stand-in's threads come and go: arenas of theirs would look like mappings that are left.
    // SAFETY: a number.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    logger::install();
    let only = std::env::var("RPMA_SWEEP_ONLY").unwrap_or_default();
    // All errnos for each call, or two, of which one changes from call to call.
    let full = std::env::var_os("RPMA_SWEEP_FULL").is_some();
    let mut sweep = Sweep::default();
    for p in PERSONALITIES {
        let chosen = SCENARIOS.iter().enumerate();
        for (number, scenario) in chosen.filter(|(_, s)| s.name.contains(&only)) {
            let start = std::time::Instant::now();
            let failures = sweep.failures;
            sweep.all(&standin, p, number, scenario, full);
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
    let missing: Vec<_> = imports::used(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
        .into_iter()
        .chain(system::CALLS.iter().map(|name| (*name).to_owned()))
        .filter(|name| {
            !sweep.failed.contains(name) && !ONLY_AFTER_A_FAILURE.contains(&name.as_str())
        })
        .collect();
    let system = sweep
        .failed
        .iter()
        .filter(|name| system::CALLS.contains(&name.as_str()));
    println!(
        "{} calls failed, of {} functions of the two libraries and {} system calls, in {} scenarios on {} devices; {} problems",
        sweep.failures,
        sweep.failed.len() - system.clone().count(),
        system.count(),
        SCENARIOS.len(),
        PERSONALITIES.len(),
        sweep.problems.len()
    );
    println!("the logger panicked {} times", logger::panics());
    assert_eq!(sweep.problems.len(), 0);
    if only.is_empty() {
        assert!(logger::panics() > 0);
        assert_eq!(
            missing,
            Vec::<String>::new(),
            "no scenario makes these calls"
        );
    }
}
