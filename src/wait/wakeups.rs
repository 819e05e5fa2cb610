use crate::sync::{Mutex, MutexGuard, PoisonError};

/// What ends the waits of one gate from outside: made when it is first needed. `W` is a handle of
/// an eventfd, or of a model of one.
#[derive(Debug)]
pub(crate) struct Wakeups<W>(Mutex<Option<Held<W>>>);

#[derive(Debug)]
struct Held<W> {
    wake: W,
    /// Somebody outside has it. It then stays as long as the gate, since a wake-up that no wait has
    /// used yet is for the next one.
    given: bool,
}

impl<W: Clone> Wakeups<W> {
    pub(crate) fn new() -> Self {
        Wakeups(Mutex::new(None))
    }

    /// For somebody outside.
    pub(crate) fn give<E>(&self, make: impl FnOnce() -> Result<W, E>) -> Result<W, E> {
        self.get(true, make)
    }

    /// For a wait, to be given back with [`take_back`](Self::take_back) at its end.
    pub(crate) fn lend<E>(&self, make: impl FnOnce() -> Result<W, E>) -> Result<W, E> {
        self.get(false, make)
    }

    fn get<E>(&self, give: bool, make: impl FnOnce() -> Result<W, E>) -> Result<W, E> {
        let mut held = self.held();
        if let Some(held) = &mut *held {
            held.given |= give;
            return Ok(held.wake.clone());
        }
        let wake = make()?;
        *held = Some(Held {
            wake: wake.clone(),
            given: give,
        });
        Ok(wake)
    }

    /// What somebody outside has, or what a wait was lent.
    pub(crate) fn current(&self) -> Option<W> {
        self.held().as_ref().map(|held| held.wake.clone())
    }

    /// Lets go of what was lent to a wait, so that no fd stays for one long wait.
    pub(crate) fn take_back(&self) {
        let mut held = self.held();
        if held.as_ref().is_some_and(|held| !held.given) {
            *held = None;
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Held<W>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
