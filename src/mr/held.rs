//! Memory and its registration, and the order in which they end.

use std::mem;

use super::Memory;
use crate::{error::Error, verbs::Mr};

/// What stands between a device and memory.
pub(super) trait Registration: Sized {
    /// Ends it. If the device refuses, it goes on, and comes back.
    fn deregister(self) -> Result<(), (Self, Error)>;
}

impl Registration for Mr {
    fn deregister(self) -> Result<(), (Self, Error)> {
        Mr::deregister(self)
    }
}

/// Registered memory: deregistered first, freed after. Memory that the device does not let go of is never freed.
pub(super) struct Held<R: Registration> {
    /// `None` only while it is taken apart.
    registration: Option<R>,
    memory: Memory,
}

impl<R: Registration> Held<R> {
    pub(super) fn new(registration: R, memory: Memory) -> Held<R> {
        Held {
            registration: Some(registration),
            memory,
        }
    }

    #[inline]
    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(super) fn registration(&self) -> Option<&R> {
        self.registration.as_ref()
    }

    /// Deregisters. Whatever happens, the memory is where it was.
    pub(super) fn deregister(&mut self) -> Result<(), Error> {
        let Some(registration) = self.registration.take() else {
            return Ok(());
        };
        registration.deregister().map_err(|(registration, error)| {
            self.registration = Some(registration);
            error
        })
    }

    /// The memory, once it is deregistered.
    pub(super) fn into_memory(mut self) -> Memory {
        // Dropping `self` would free nothing but what is left: but if it is still registered, what goes out here may not be freed either.
        let mut memory = self.memory.take();
        if self.deregister().is_err() {
            self.give_up(&mut memory);
        }
        memory
    }

    /// Forgets a registration that the device keeps, and with it the protection domain that it needs; the memory stays.
    fn give_up(&mut self, memory: &mut Memory) {
        mem::forget(self.registration.take());
        memory.leak();
    }
}

impl<R: Registration> Drop for Held<R> {
    fn drop(&mut self) {
        if let Err(error) = self.deregister() {
            log::error!(
                target: "rpma",
                "{error}: {} bytes of memory stay registered, and allocated, until the process ends",
                self.memory.len()
            );
            let mut memory = self.memory.take();
            self.give_up(&mut memory);
        }
    }
}

#[cfg(test)]
mod tests {
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
        fn deregister(mut self) -> Result<(), (Self, Error)> {
            assert_eq!(
                self.freed.load(Relaxed),
                0,
                "freed before it was deregistered"
            );
            if self.refusals > 0 {
                self.refusals -= 1;
                return Err((self, Error::provider(Call::IbvDeregMr, libc::EBUSY)));
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
        // SAFETY: it was not freed, which is what this test is about; under Miri this is where it would show.
        #[allow(unsafe_code)]
        let first = unsafe { ptr.read() };
        assert_eq!(first, 5);
    }

    #[test]
    fn a_refused_deregistration_can_be_retried() {
        let (mut held, deregistered, freed) = held(1);
        let error = held.deregister().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBUSY));
        assert!(held.registration().is_some());
        held.deregister().unwrap();
        held.deregister().unwrap();
        let memory = held.into_memory();
        assert_eq!((deregistered.load(Relaxed), freed.load(Relaxed)), (1, 0));
        let mut byte = [0];
        memory.read_at(63, &mut byte).unwrap();
        assert_eq!(byte, [5]);
        drop(memory);
        assert_eq!(freed.load(Relaxed), 1);
    }

    #[test]
    fn taking_memory_that_is_still_registered_leaves_nothing_to_free() {
        let (held, _, freed) = held(usize::MAX);
        drop(held.into_memory());
        assert_eq!(freed.load(Relaxed), 0);
    }
}
