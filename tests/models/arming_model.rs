//! A queue that completes while threads wait for it: none waits for ever.

use std::time::Duration;

use loom::sync::{Arc, Condvar, Mutex};

use crate::{
    arming::{Arming, Source},
    check,
    turns::{Turn, Turns},
};

/// What a device has of a queue, and the channel.
#[derive(Default)]
struct Device {
    completions: usize,
    armed: bool,
    events: usize,
    /// How many of the next requests to arm fail.
    refusals: usize,
}

struct Queue {
    device: Mutex<Device>,
    readable: Condvar,
    turns: Turns,
    arming: Arming,
    /// How often a thread has got what it wanted.
    content: Mutex<usize>,
    one_more: Condvar,
}

#[derive(Debug, PartialEq)]
struct Refused;

impl Queue {
    fn new() -> Arc<Self> {
        let queue = Arc::new(Queue {
            device: Mutex::new(Device::default()),
            readable: Condvar::new(),
            turns: Turns::new(),
            arming: Arming::new(),
            content: Mutex::new(0),
            one_more: Condvar::new(),
        });
        queue.arming.arm(&*queue, false).unwrap();
        queue
    }

    fn complete(&self) {
        let mut device = self.device.lock().unwrap();
        device.completions += 1;
        if std::mem::take(&mut device.armed) {
            device.events += 1;
            self.readable.notify_all();
        }
    }

    fn poll(&self) -> Result<usize, Refused> {
        let mut device = self.device.lock().unwrap();
        let n = device.completions.min(1);
        device.completions -= n;
        Ok(n)
    }

    fn refuse(&self, times: usize) {
        self.device.lock().unwrap().refusals = times;
    }

    /// One completion, by `take`.
    fn take(&self) {
        assert_eq!(self.arming.take(self, || self.poll()), Ok(1));
        self.has_what_it_wanted();
    }

    /// One completion or more, by waits, after each of which all is polled.
    fn wait(&self) {
        let mut got = 0;
        loop {
            while self.poll() == Ok(1) {
                got += 1;
            }
            if got > 0 {
                return self.has_what_it_wanted();
            }
            assert_eq!(self.arming.wait(self), Ok(true));
        }
    }

    /// One completion, with events taken and the queue armed by hand.
    fn by_hand(&self) {
        loop {
            self.arming.arm(self, false).unwrap();
            if self.poll() == Ok(1) {
                return self.has_what_it_wanted();
            }
            assert_eq!(self.arming.event(self), Ok(true));
            if self.poll() == Ok(1) {
                return self.has_what_it_wanted();
            }
        }
    }

    fn has_what_it_wanted(&self) {
        *self.content.lock().unwrap() += 1;
        self.one_more.notify_all();
    }

    fn until_content(&self, times: usize) {
        let mut content = self.content.lock().unwrap();
        while *content < times {
            content = self.one_more.wait(content).unwrap();
        }
    }
}

impl Source for Queue {
    type Error = Refused;
    type Turn<'t> = Turn<'t>;

    fn turn(&self, is_known: impl Fn() -> bool) -> Option<Turn<'_>> {
        self.turns.take(|| None, is_known)
    }

    fn tell(turn: &Turn<'_>) {
        turn.tell();
    }

    fn event(&self, _: &Turn<'_>) -> Result<bool, Refused> {
        let mut device = self.device.lock().unwrap();
        while device.events == 0 {
            device = self.readable.wait(device).unwrap();
        }
        device.events -= 1;
        Ok(true)
    }

    fn ask(&self, _: bool) -> Result<(), Refused> {
        let mut device = self.device.lock().unwrap();
        if device.refusals > 0 {
            device.refusals -= 1;
            return Err(Refused);
        }
        device.armed = true;
        Ok(())
    }
}

/// A queue to one who does not wait.
struct Now<'q>(&'q Queue);

impl Source for Now<'_> {
    type Error = Refused;
    type Turn<'t>
        = Turn<'t>
    where
        Self: 't;

    fn turn(&self, is_known: impl Fn() -> bool) -> Option<Turn<'_>> {
        self.0.turns.take(|| Some(Duration::ZERO), is_known)
    }

    fn tell(turn: &Turn<'_>) {
        turn.tell();
    }

    fn event(&self, _: &Turn<'_>) -> Result<bool, Refused> {
        let mut device = self.0.device.lock().unwrap();
        let is_there = device.events > 0;
        device.events -= usize::from(is_there);
        Ok(is_there)
    }

    fn ask(&self, solicited_only: bool) -> Result<(), Refused> {
        self.0.ask(solicited_only)
    }
}

/// A queue to one whose requests to arm fail.
struct Refusing<'q>(&'q Queue);

impl Source for Refusing<'_> {
    type Error = Refused;
    type Turn<'t>
        = Turn<'t>
    where
        Self: 't;

    fn turn(&self, is_known: impl Fn() -> bool) -> Option<Turn<'_>> {
        self.0.turn(is_known)
    }

    fn tell(turn: &Turn<'_>) {
        turn.tell();
    }

    fn event(&self, turn: &Turn<'_>) -> Result<bool, Refused> {
        self.0.event(turn)
    }

    fn ask(&self, _: bool) -> Result<(), Refused> {
        Err(Refused)
    }
}

/// A completion for each of the threads that wait in the ways given, and, since one may take those
/// of another, one more whenever a thread has got what it wanted. Each thread must come to its end.
fn each_ends(ways: &'static [fn(&Queue)]) {
    check(2, move || {
        let queue = Queue::new();
        let waiting: Vec<_> = ways
            .iter()
            .map(|way| {
                let queue = queue.clone();
                loom::thread::spawn(move || way(&queue))
            })
            .collect();
        for _ in ways {
            queue.complete();
        }
        for content in 1..ways.len() {
            queue.until_content(content);
            queue.complete();
        }
        for thread in waiting {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_wait() {
    each_ends(&[Queue::wait]);
}

#[test]
fn a_take() {
    each_ends(&[Queue::take]);
}

#[test]
fn takes_beside_each_other() {
    each_ends(&[Queue::take, Queue::take]);
}

#[test]
fn a_wait_beside_a_take() {
    each_ends(&[Queue::wait, Queue::take]);
}

#[test]
fn a_wait_beside_one_that_arms_by_hand() {
    each_ends(&[Queue::wait, Queue::by_hand]);
}

/// Whoever takes an event by hand and does not arm has the queue fired, which the wait is told,
/// though another who takes events comes before it and would keep the turn for ever.
#[test]
fn a_wait_behind_those_who_never_arm() {
    check(2, || {
        let queue = Queue::new();
        let by_hand = [(); 2].map(|()| {
            let queue = queue.clone();
            loom::thread::spawn(move || assert_eq!(queue.arming.event(&*queue), Ok(true)))
        });
        let wait = {
            let queue = queue.clone();
            loom::thread::spawn(move || assert_eq!(queue.arming.wait(&*queue), Ok(true)))
        };
        queue.complete();
        wait.join().unwrap();
        for _ in 0..2 {
            queue.arming.arm(&*queue, false).unwrap();
            queue.complete();
        }
        for thread in by_hand {
            thread.join().unwrap();
        }
    });
}

/// Where the mark says armed, the device is, or the event is there: `take` relies on it. `work` is
/// done beside a completion whose event another thread takes.
fn what_is_marked_as_armed_is(work: fn(&Queue), other: fn(&Queue)) {
    check(3, move || {
        let queue = Queue::new();
        queue.complete();
        let thread = {
            let queue = queue.clone();
            loom::thread::spawn(move || {
                queue.complete();
                queue.arming.event(&Now(&queue)).unwrap();
                other(&queue);
            })
        };
        work(&queue);
        thread.join().unwrap();
        let device = queue.device.lock().unwrap();
        assert!(!queue.arming.is_armed() || device.armed || device.events > 0);
    });
}

#[test]
fn the_mark_is_right_after_a_wait() {
    let wait = |queue: &Queue| assert!(queue.arming.wait(&Now(queue)).is_ok());
    what_is_marked_as_armed_is(wait, |_| ());
}

#[test]
fn the_mark_is_right_after_arming_by_hand() {
    let arm = |queue: &Queue| {
        queue.arming.event(&Now(queue)).unwrap();
        queue.arming.arm(queue, false).unwrap();
    };
    what_is_marked_as_armed_is(arm, |_| ());
    what_is_marked_as_armed_is(arm, |queue| {
        let _ = queue.arming.arm(&Refusing(queue), false);
    });
}

/// A thread whose request to arm fails does not make others rely on it.
fn an_arming_fails_beside(way: fn(&Queue)) {
    check(2, move || {
        let queue = Queue::new();
        queue.complete();
        assert_eq!(queue.arming.event(&*queue), Ok(true));
        assert_eq!(queue.poll(), Ok(1));
        let other = {
            let queue = queue.clone();
            loom::thread::spawn(move || {
                assert!(queue.arming.arm(&Refusing(&queue), false).is_err());
            })
        };
        completes_while(&queue, way);
        other.join().unwrap();
    });
}

#[test]
fn an_arming_that_fails_beside_a_take() {
    an_arming_fails_beside(Queue::take);
}

#[test]
fn an_arming_that_fails_beside_a_wait() {
    an_arming_fails_beside(Queue::wait);
}

#[test]
fn waits_beside_each_other() {
    each_ends(&[Queue::wait, Queue::wait]);
}

#[test]
fn a_wait_after_one_that_could_not_arm() {
    check(3, || {
        let queue = Queue::new();
        queue.complete();
        queue.refuse(1);
        assert_eq!(queue.arming.wait(&*queue), Err(Refused));
        queue.wait();
        completes_while(&queue, Queue::wait);
    });
}

#[test]
fn a_wait_after_a_take_that_could_not_arm() {
    check(3, || {
        let queue = Queue::new();
        queue.complete();
        assert_eq!(queue.poll(), Ok(1));
        assert_eq!(queue.arming.event(&*queue), Ok(true));
        queue.refuse(1);
        assert_eq!(queue.arming.take(&*queue, || queue.poll()), Err(Refused));
        completes_while(&queue, Queue::wait);
    });
}

/// A completion comes while `way` waits for it.
fn completes_while(queue: &Arc<Queue>, way: fn(&Queue)) {
    let device = {
        let queue = queue.clone();
        loom::thread::spawn(move || queue.complete())
    };
    way(queue);
    device.join().unwrap();
}
