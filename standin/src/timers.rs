//! Things that happen later, in one thread that ends when nothing is left to wait for.

use std::time::{Duration, Instant};

use crate::lock::Lock;
use crate::world::{World, changed, world};

type What = Box<dyn FnOnce(&mut World) + Send>;

#[derive(Default)]
struct Timers {
    list: Vec<(Instant, What)>,
    running: bool,
}

static TIMERS: Lock<Timers> = Lock::new(Timers::default);

/// Does `what` to the world in `ms` milliseconds; 0: now.
pub fn after(w: &mut World, ms: u64, what: impl FnOnce(&mut World) + Send + 'static) {
    if ms == 0 {
        what(w);
        return;
    }
    let mut t = TIMERS.lock();
    let when = Instant::now() + Duration::from_millis(ms);
    t.list.push((when, Box::new(what)));
    if t.running {
        TIMERS.notify();
        return;
    }
    let thread = std::thread::Builder::new().name("standin-timers".to_owned());
    t.running = thread.spawn(run).is_ok();
    if !t.running {
        eprintln!("standin: no thread for what happens later: it happens with the next that does");
    }
}

fn run() {
    loop {
        let mut t = TIMERS.lock();
        let now = Instant::now();
        let first = t.list.iter().enumerate().min_by_key(|(_, e)| e.0);
        let Some((at, when)) = first.map(|(at, e)| (at, e.0)) else {
            t.running = false;
            return;
        };
        if when > now {
            t.wait(when - now);
            continue;
        }
        let (_, what) = t.list.remove(at);
        drop(t);
        what(&mut world());
        changed();
    }
}
