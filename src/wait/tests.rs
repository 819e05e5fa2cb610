use std::{
    io::{Read, Write},
    os::fd::AsFd,
    os::unix::net::UnixStream,
    thread,
};

use super::*;

fn read_one(mut reader: &UnixStream) -> Result<Option<u8>> {
    let mut byte = [0];
    match reader.read(&mut byte) {
        Ok(_) => Ok(Some(byte[0])),
        Err(err) if err.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
        Err(err) => Err(Error::provider(
            crate::Call::Poll,
            err.raw_os_error().unwrap_or(0),
        )),
    }
}

/// A socket in non-blocking mode with its gate, and the other end.
fn gated() -> (Arc<(Gate, UnixStream)>, UnixStream) {
    let (reader, writer) = UnixStream::pair().unwrap();
    set_nonblocking(reader.as_fd(), true).unwrap();
    (Arc::new((Gate::new(), reader)), writer)
}

fn run(shared: &(Gate, UnixStream), until: Until) -> Result<Option<u8>> {
    shared
        .0
        .run(shared.1.as_fd(), until, || read_one(&shared.1))
}

#[test]
fn nothing_there_is_none() {
    let (shared, mut writer) = gated();
    assert_eq!(run(&shared, Until::Now).unwrap(), None);
    let soon = Until::after(Duration::from_millis(5));
    assert_eq!(run(&shared, soon).unwrap(), None);
    writer.write_all(&[7, 8, 9]).unwrap();
    let later = Until::after(Duration::from_secs(60));
    for (until, byte) in [(Until::Now, 7), (later, 8), (Until::Forever, 9)] {
        assert_eq!(run(&shared, until).unwrap(), Some(byte));
    }
}

#[test]
fn a_c_program_sets_how_its_fd_blocks() {
    let (shared, mut writer) = gated();
    let as_set = || Until::as_fd_is_set(shared.1.as_fd()).unwrap();
    assert!(matches!(as_set(), Until::Now));
    set_nonblocking(shared.1.as_fd(), false).unwrap();
    assert!(matches!(as_set(), Until::InRead));
    writer.write_all(&[7]).unwrap();
    assert_eq!(run(&shared, as_set()).unwrap(), Some(7));
}

#[test]
fn each_wake_up_ends_one_wait() {
    let (shared, mut writer) = gated();
    let waiter = |until| {
        let shared = shared.clone();
        thread::spawn(move || run(&shared, until))
    };
    let woken = |result| matches!(result, Err(Error::Woken));
    // Made before the wait blocks, while its sleep is short, and while it is long.
    for pause in [0, 5, 50] {
        let threads = [Until::Forever, Until::after(Duration::from_secs(600))].map(waiter);
        thread::sleep(Duration::from_millis(pause));
        let waker = shared.0.waker().unwrap();
        waker.wake();
        waker.clone().wake();
        for thread in threads {
            assert!(woken(thread.join().unwrap()));
        }
    }
    // One that nobody has used is for the next wait that would block.
    shared.0.waker().unwrap().wake();
    writer.write_all(&[7]).unwrap();
    assert_eq!(run(&shared, Until::Forever).unwrap(), Some(7));
    assert_eq!(run(&shared, Until::Now).unwrap(), None);
    assert!(woken(run(&shared, Until::Forever)));
    let soon = Until::after(Duration::from_millis(5));
    assert_eq!(run(&shared, soon).unwrap(), None);
}

#[test]
fn a_long_wait_leaves_no_fd_behind() {
    let (shared, _writer) = gated();
    let long = Until::after(SHORT * 2);
    assert_eq!(run(&shared, long).unwrap(), None);
    assert!(shared.0.wakeups.current().is_none());
    drop(shared.0.waker().unwrap());
    assert_eq!(run(&shared, Until::after(SHORT * 2)).unwrap(), None);
    assert!(shared.0.wakeups.current().is_some());
}

#[test]
fn a_timed_wait_keeps_its_time_behind_an_endless_one() {
    let (shared, mut writer) = gated();
    let endless = {
        let shared = shared.clone();
        thread::spawn(move || run(&shared, Until::Forever).unwrap())
    };
    while !shared.0.turns.is_taken() {
        thread::yield_now();
    }
    let timed = Until::after(Duration::from_millis(20));
    assert_eq!(run(&shared, timed).unwrap(), None);
    assert_eq!(run(&shared, Until::Now).unwrap(), None);
    writer.write_all(&[1]).unwrap();
    assert_eq!(endless.join().unwrap(), Some(1));
}

#[test]
fn shares_of_a_time_leave_something_for_the_others() {
    let whole = Until::after(Duration::from_secs(60));
    let share = whole.share(3).left_or(Duration::MAX);
    assert!(share > Duration::from_secs(18) && share <= Duration::from_secs(20));
    assert!(whole.share(1).left_or(Duration::MAX) > Duration::from_secs(50));
    assert!(matches!(Until::Forever.share(2), Until::Forever));
    assert!(matches!(Until::Now.share(2), Until::Now));
}

#[test]
fn an_endless_time_does_not_overflow() {
    assert!(matches!(Until::after(Duration::MAX), Until::Forever));
    assert!(matches!(Until::after(Duration::ZERO), Until::Now));
}
