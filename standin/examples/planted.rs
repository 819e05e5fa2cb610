//! Mistakes made on purpose, for the steps of ci/test.d that look for such: each must find its own.
//! Usage: planted leak|freed|freed_in_the_device|uninitialised|race

use std::{cell::UnsafeCell, hint::black_box, sync::Barrier, thread};

use rdma_sys as ffi;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("leak") => leak(),
        Some("freed") => freed(),
        Some("freed_in_the_device") => freed_in_the_device(),
        Some("uninitialised") => uninitialised(),
        Some("race") => race(),
        _ => {
            eprintln!("usage: planted leak|freed|freed_in_the_device|uninitialised|race");
            std::process::exit(2);
        }
    }
}

/// Memory that nothing points to at the end. More than one block: a register may still hold the
/// address of the last.
fn leak() {
    for _ in 0..8 {
        black_box(Box::into_raw(Box::new([1u8; 64])));
    }
}

fn freed() {
    let byte = black_box(Box::into_raw(Box::new(1u8)));
    // SAFETY: none for the read, which is the mistake.
    unsafe {
        drop(Box::from_raw(byte));
        black_box(byte.read_volatile());
    }
}

/// The device of ci/standin writes to memory that was freed.
fn freed_in_the_device() {
    let count = black_box(Box::into_raw(Box::new(0)));
    // SAFETY: none for the second call, which is the mistake.
    unsafe {
        drop(Box::from_raw(count));
        ffi::ibv_free_device_list(ffi::ibv_get_device_list(count));
    }
}

fn uninitialised() {
    let byte = Box::<u8>::new_uninit();
    // SAFETY: none, which is the mistake.
    if black_box(unsafe { byte.as_ptr().read_volatile() }) == 7 {
        println!("seven");
    }
}

struct Shared(UnsafeCell<u64>);

// SAFETY: none, which is the mistake.
unsafe impl Sync for Shared {}

fn race() {
    static SUM: Shared = Shared(UnsafeCell::new(0));
    let start = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                start.wait();
                for _ in 0..1000 {
                    // SAFETY: as above.
                    unsafe { *black_box(SUM.0.get()) += 1 };
                }
            });
        }
    });
    // SAFETY: the threads are gone.
    println!("{}", unsafe { *SUM.0.get() });
}
