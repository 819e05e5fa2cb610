//! Memory and its registration, and the order in which they end.

use super::Memory;
use crate::{
    error::Error,
    log_limit::log_error,
    verbs::{Mr, Refused},
};

/// What stands between a device and memory.
pub(super) trait Registration: Sized {
    /// Ends it. Where the device refuses, it goes on.
    fn deregister(self) -> Result<(), Refused<Self>>;
}

impl Registration for Mr {
    fn deregister(self) -> Result<(), Refused<Self>> {
        Mr::deregister(self)
    }
}

/// Registered memory: deregistered first, freed after. Memory that the device does not let go of is
/// never freed.
pub(super) struct Held<R: Registration> {
    /// `None` once the device has let go of the memory.
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

    /// Deregisters, and gives the memory. Where the device refuses, all is as it was, and can be
    /// tried again.
    pub(super) fn release(&mut self) -> Result<Memory, Error> {
        if let Some(registration) = self.registration.take() {
            registration.deregister().map_err(|refused| {
                let (registration, error) = refused.take_back();
                self.registration = Some(registration);
                error
            })?;
        }
        Ok(self.memory.take())
    }
}

impl<R: Registration> Drop for Held<R> {
    /// Deregisters, or leaks both registration and memory; only then logs.
    fn drop(&mut self) {
        let Some(registration) = self.registration.take() else {
            return;
        };
        if let Err(refused) = registration.deregister() {
            let len = self.memory.len();
            self.memory.leak();
            let error = refused.leak();
            log_error(format_args!(
                "{error}: {len} bytes of memory stay registered, and allocated, until the process ends"
            ));
        }
    }
}

#[cfg(test)]
mod tests;
