//! Fails every call into libibverbs and librdmacm once, one at a time, in every scenario, on the stand-in device of `ci/standin`.
//!
//! After each failure: the error names the call that failed (or the call is one whose failure is made up for); nothing panicked, nothing
//! hung; no object, fd, mapping or byte of heap is left; the device saw no illegal use; and the same peer does the whole scenario again.

mod imports;
mod outcome;
mod scenarios;
mod snapshot;
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

    /// The peer, made when it is first asked for: so that the failures of its making are among the others.
    pub fn peer(&self) -> Result<&Peer> {
        if let Some(peer) = self.peer.get() {
            return Ok(peer);
        }
        let peer = Peer::local(scenarios::ADDR)?;
        Ok(self.peer.get_or_init(|| peer))
    }

    /// Does what can be done again where it fails: the second time it must work, on the same objects.
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
        let done = catch_unwind(AssertUnwindSafe(|| (scenario.run)(self)));
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
    /// The calls that the scenario makes when nothing fails.
    fn rehearse(&mut self, standin: &Standin, p: Personality, scenario: &Scenario) -> Vec<Call> {
        let mut trace = Vec::new();
        // The first rounds fill what is allocated once a process.
        for round in 0..4 {
            let label = format!("{p:?} {}: without a failure", scenario.name);
            let _watched = Watchdog::watch(&label);
            reset(standin, p);
            standin.start_trace();
            let before = Snapshot::take(standin);
            let run = Run::new(*standin, p);
            let found = match run.go(scenario) {
                Ok(errors) if errors.is_empty() => None,
                other => Some(format!("{other:?}")),
            };
            drop(run);
            let left = before.left(&Snapshot::take(standin));
            trace = standin.trace();
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

    /// Fails the `nth` call of the scenario. What is left is a leak only if it is left again the next time: some things are allocated
    /// once a process.
    fn fail(
        &mut self,
        standin: &Standin,
        p: Personality,
        scenario: &Scenario,
        call: (u64, &Call),
        errno: i32,
        keep: bool,
    ) {
        let known = self.problems.len();
        self.fail_once(standin, p, scenario, call, errno, keep);
        if self.problems.len() > known {
            self.problems.truncate(known);
            self.fail_once(standin, p, scenario, call, errno, keep);
        }
    }

    fn fail_once(
        &mut self,
        standin: &Standin,
        p: Personality,
        scenario: &Scenario,
        (nth, call): (u64, &Call),
        errno: i32,
        keep: bool,
    ) {
        let kept = if keep { ", kept" } else { "" };
        let (name, function) = (scenario.name, &call.name);
        let label = format!("{p:?} {name}: call {nth}, {function}, errno {errno}{kept}");
        self.failures += 1;
        self.failed.insert(call.name.clone());
        let _watched = Watchdog::watch(&label);
        reset(standin, p);
        standin.set(Knob::FailedDestroysFree, i64::from(!keep));
        let before = Snapshot::take(standin);
        standin.fail_call_index_with(nth, errno);
        let mut run = Run::new(*standin, p);
        let errors = run.go(scenario);
        if standin.faults_fired() == 0 {
            // It is one of those that the end of the peer makes.
            run = Run::new(*standin, p);
        }
        let mut found = match errors {
            _ if standin.faults_fired() != 1 => Some("the call was not made".to_owned()),
            Err(problem) => Some(problem),
            Ok(errors) => outcome::judge(&call.name, errno, &errors)
                .map(|problem| format!("{problem}: {errors:?}")),
        };
        // The same peer, where there is one, and the same process.
        match run.go(scenario) {
            Ok(errors) if errors.is_empty() => {}
            other => found = found.or(Some(format!("then: {other:?}"))),
        }
        drop(run);
        // What the device keeps keeps what it needs.
        let left = before.left(&Snapshot::take(standin)).filter(|_| !keep);
        self.judge(standin, &label, found.or(left));
    }
}

fn reset(standin: &Standin, p: Personality) {
    standin.reset();
    standin.personality(p);
    standin.set(Knob::TimewaitMs, 1);
}

/// Made only where another call has failed: with one failure at a time they are not reached. Tests on a device reach them.
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
    let only = std::env::var("RPMA_SWEEP_ONLY").unwrap_or_default();
    // All errnos for each call, or two, of which one changes from call to call.
    let full = std::env::var_os("RPMA_SWEEP_FULL").is_some();
    let mut sweep = Sweep::default();
    for p in PERSONALITIES {
        let chosen = SCENARIOS.iter().enumerate();
        for (number, scenario) in chosen.filter(|(_, s)| s.name.contains(&only)) {
            let start = std::time::Instant::now();
            let failures = sweep.failures;
            let trace = sweep.rehearse(&standin, p, scenario);
            for (nth, call) in (1..).zip(&trace).filter(|(_, call)| call.can_fail) {
                if outcome::destroys(&call.name) {
                    // Nobody who destroys looks at the errno.
                    // A region that the device lets go of in spite of what it says cannot be told from one that it keeps.
                    if call.name != "ibv_dereg_mr" {
                        sweep.fail(&standin, p, scenario, (nth, call), libc::EBUSY, false);
                    }
                    sweep.fail(&standin, p, scenario, (nth, call), libc::EBUSY, true);
                    continue;
                }
                let [usual, others @ ..] = ERRNOS;
                let mut errnos = vec![usual];
                match full {
                    true => errnos.extend(others),
                    false => errnos.push(others[(nth as usize + number) % others.len()]),
                }
                for errno in errnos {
                    sweep.fail(&standin, p, scenario, (nth, call), errno, false);
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
    let missing: Vec<_> = imports::used(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
        .into_iter()
        .filter(|name| {
            !sweep.failed.contains(name) && !ONLY_AFTER_A_FAILURE.contains(&name.as_str())
        })
        .collect();
    println!(
        "{} calls failed, of {} functions, in {} scenarios on {} devices; {} problems",
        sweep.failures,
        sweep.failed.len(),
        SCENARIOS.len(),
        PERSONALITIES.len(),
        sweep.problems.len()
    );
    assert_eq!(sweep.problems.len(), 0);
    if only.is_empty() {
        assert_eq!(
            missing,
            Vec::<String>::new(),
            "no scenario makes these calls"
        );
    }
}
