use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use super::*;
use crate::{error::Call, mr::StableBytes};

/// Counts deregistrations, and refuses the first few.
struct Fake {
    refusals: usize,
    deregistered: Arc<AtomicUsize>,
    freed: Arc<AtomicUsize>,
}

impl Registration for Fake {
    fn deregister(mut self) -> Result<(), Refused<Self>> {
        assert_eq!(
            self.freed.load(Relaxed),
            0,
            "freed before it was deregistered"
        );
        if self.refusals > 0 {
            self.refusals -= 1;
            let error = Error::provider(Call::IbvDeregMr, libc::EBUSY);
            return Err(Refused::new(self, error));
        }
        self.deregistered.fetch_add(1, Relaxed);
        Ok(())
    }
}

struct Owner(Box<[u8]>, Arc<AtomicUsize>);

// SAFETY: a box that nobody else has.
#[allow(unsafe_code)]
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

fn held(refusals: usize) -> (Held<Fake>, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (deregistered, freed) = (Arc::default(), Arc::default());
    let fake = Fake {
        refusals,
        deregistered: Arc::clone(&deregistered),
        freed: Arc::clone(&freed),
    };
    let memory = Memory::from_owner(Owner(vec![5; 64].into(), Arc::clone(&freed))).unwrap();
    (Held::new(fake, memory), deregistered, freed)
}

#[test]
fn a_drop_deregisters_and_then_frees() {
    let (held, deregistered, freed) = held(0);
    drop(held);
    assert_eq!((deregistered.load(Relaxed), freed.load(Relaxed)), (1, 1));
}

#[test]
fn memory_that_the_device_keeps_is_never_freed() {
    let (held, deregistered, freed) = held(usize::MAX);
    let ptr = held.memory().as_ptr();
    drop(held);
    assert_eq!((deregistered.load(Relaxed), freed.load(Relaxed)), (0, 0));
    // SAFETY: it was not freed, which is what this test is about; under Miri this is where it would
    // show.
    #[allow(unsafe_code)]
    let first = unsafe { ptr.read() };
    assert_eq!(first, 5);
}

#[test]
fn a_refused_deregistration_can_be_retried() {
    let (mut held, deregistered, freed) = held(1);
    let error = held.release().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EBUSY));
    assert!(held.registration().is_some());
    let memory = held.release().unwrap();
    drop(held);
    assert_eq!((deregistered.load(Relaxed), freed.load(Relaxed)), (1, 0));
    let mut byte = [0];
    memory.read_at(63, &mut byte).unwrap();
    assert_eq!(byte, [5]);
    drop(memory);
    assert_eq!(freed.load(Relaxed), 1);
}
