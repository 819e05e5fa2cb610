//! One run of a scenario, and what it met.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    ffi::{CStr, CString, c_char, c_int, c_void},
    fmt::Debug,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::null_mut,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
};

use standin_control::{Personality, Standin};

use crate::{
    calls::{self, Delete, Handle, UNKNOWN},
    scenarios::Scenario,
    system,
};

/// The scenario cannot go on: a call failed.
#[derive(Debug)]
pub struct Stop;

pub type Result<T = ()> = std::result::Result<T, Stop>;

/// What a place holds before a call gives it something.
pub const UNTOUCHED: Handle = 0x5a5a_5a5a_usize as Handle;

/// Every entry point that was called.
static CALLED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
/// What the library logged.
static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The functions that failed, with their numbers, and what was logged.
pub type Met = (Vec<(&'static str, c_int)>, Vec<String>);

pub struct Run {
    pub standin: Standin,
    pub personality: Personality,
    pub context: Handle,
    /// To listen on: a new one each time, as an id that the device keeps keeps its port.
    port: RefCell<CString>,
    /// What calls gave that is not 0.
    codes: RefCell<Vec<(&'static str, c_int)>>,
    /// What should not be.
    problems: RefCell<Vec<String>>,
}

impl Run {
    pub fn new(standin: Standin, personality: Personality, context: Handle) -> Self {
        Run {
            standin,
            personality,
            context,
            port: RefCell::default(),
            codes: RefCell::default(),
            problems: RefCell::default(),
        }
    }

    /// Runs the scenario: the numbers of the calls that failed, the first one first, and what was
    /// logged.
    pub fn go(&self, scenario: &Scenario) -> std::result::Result<Met, String> {
        drop(take_log());
        *self.port.borrow_mut() = next_port();
        let done = catch_unwind(AssertUnwindSafe(|| {
            system::counted(|| (scenario.run)(self))
        }));
        let (codes, problems) = (self.codes.take(), self.problems.take());
        let log = take_log();
        if done.is_err() {
            return Err("a panic".to_owned());
        }
        if let Some((name, code)) = codes
            .iter()
            .find(|(_, code)| !(-100_009..UNKNOWN).contains(code))
        {
            return Err(format!("{name} gave {code}"));
        }
        match problems.as_slice() {
            [] if done.unwrap_or(Err(Stop)).is_err() && codes.is_empty() => {
                Err("it stopped, and no call had failed".to_owned())
            }
            [] => Ok((codes, log)),
            problems => Err(format!("{problems:?}; {codes:?}")),
        }
    }

    /// The port to listen on.
    pub fn port(&self) -> *const c_char {
        self.port.borrow().as_ptr()
    }

    pub fn problem(&self, text: String) -> Stop {
        self.problems.borrow_mut().push(text);
        Stop
    }

    fn note(&self, name: &'static str, code: c_int) {
        CALLED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name);
        if code != 0 {
            self.codes.borrow_mut().push((name, code));
        }
    }

    /// A call that cannot be done again.
    pub fn once(&self, name: &'static str, code: c_int) -> Result {
        self.note(name, code);
        if code == 0 { Ok(()) } else { Err(Stop) }
    }

    /// A call that must work the second time where it failed.
    pub fn again(&self, name: &'static str, mut call: impl FnMut() -> c_int) -> Result {
        let code = call();
        self.note(name, code);
        if code == 0 {
            return Ok(());
        }
        match call() {
            0 => Ok(()),
            code => Err(self.problem(format!(
                "{name} failed again when it was tried again: {code}"
            ))),
        }
    }

    /// A call that gives a value, and again where it failed: which must leave the value's place
    /// alone.
    pub fn get<T: Copy + PartialEq + Debug>(
        &self,
        name: &'static str,
        untouched: T,
        mut call: impl FnMut(*mut T) -> c_int,
    ) -> Result<T> {
        let mut place = untouched;
        self.again(name, || {
            let code = call(&mut place);
            if code != 0 && place != untouched {
                self.problem(format!("{name} failed and wrote {place:?}"));
            }
            code
        })?;
        if place == untouched {
            return Err(self.problem(format!("{name} gave nothing")));
        }
        Ok(place)
    }

    /// As [`get`](Self::get), once.
    pub fn get_once<T: Copy + PartialEq + Debug>(
        &self,
        name: &'static str,
        untouched: T,
        call: impl FnOnce(*mut T) -> c_int,
    ) -> Result<T> {
        let mut place = untouched;
        let code = call(&mut place);
        if (code == 0) == (place == untouched) {
            self.problem(format!("{name} gave {code} and wrote {place:?}"));
        }
        self.once(name, code)?;
        Ok(place)
    }

    /// A call that makes a handle.
    pub fn own(
        &self,
        name: &'static str,
        delete: Delete,
        call: impl FnMut(*mut Handle) -> c_int,
    ) -> Result<Own<'_>> {
        let handle = self.get(name, UNTOUCHED, call)?;
        Ok(Own {
            run: self,
            handle,
            delete,
        })
    }

    /// As [`own`](Self::own), once.
    pub fn own_once(
        &self,
        name: &'static str,
        delete: Delete,
        call: impl FnOnce(*mut Handle) -> c_int,
    ) -> Result<Own<'_>> {
        let handle = self.get_once(name, UNTOUCHED, call)?;
        Ok(Own {
            run: self,
            handle,
            delete,
        })
    }

    /// Something is there, or will not come.
    pub fn readable(&self, fd: c_int) -> Result {
        let mut p = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let limit = libc::timespec {
            tv_sec: 0,
            tv_nsec: 400_000_000,
        };
        // Not poll(2), which may be made to fail.
        // SAFETY: one entry.
        match unsafe { libc::ppoll(&mut p, 1, &limit, std::ptr::null()) } {
            1 => Ok(()),
            // An id that the device keeps keeps its requests too.
            _ if !self.codes.borrow().is_empty() => Err(Stop),
            _ => Err(self.problem("nothing came".to_owned())),
        }
    }
}

/// A handle, deleted when it is dropped.
pub struct Own<'r> {
    run: &'r Run,
    handle: Handle,
    delete: Delete,
}

impl Own<'_> {
    pub fn raw(&self) -> Handle {
        self.handle
    }

    /// The place of the handle, for calls that use it up.
    pub fn place(&mut self) -> *mut Handle {
        &mut self.handle
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        let alias = self.handle;
        // SAFETY: the handle is null or alive, and of the kind that the function deletes.
        let code = unsafe { (self.delete)(&mut self.handle) };
        self.run.note("delete", code);
        if !self.handle.is_null() {
            if self.handle != alias {
                self.run
                    .problem("a failed delete moved the handle".to_owned());
            }
            // A region that the device keeps. It will let go of it now.
            // SAFETY: as above.
            let again = unsafe { (self.delete)(&mut self.handle) };
            if code == 0 || again != 0 || !self.handle.is_null() {
                self.run
                    .problem(format!("a handle stayed: {code}, then {again}"));
            }
        }
    }
}

/// Lets the library's messages come here.
pub fn capture_log() {
    // SAFETY: a function that takes what the library gives: the variable arguments are one string,
    // as the only format is "%s".
    unsafe {
        calls::rpma_log_set_function(logged as *const c_void);
        calls::rpma_log_set_threshold(0, 2);
    }
}

/// `rpma_log_function`, but for the dots: Rust cannot define a function with them.
unsafe extern "C" fn logged(
    _: c_int,
    _: *const c_char,
    _: c_int,
    _: *const c_char,
    format: *const c_char,
    text: *const c_char,
) {
    // SAFETY: C strings, as the library promises.
    let (format, text) = unsafe { (CStr::from_ptr(format), CStr::from_ptr(text)) };
    assert_eq!(format, c"%s");
    lock().push(text.to_string_lossy().into_owned());
}

fn next_port() -> CString {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let port = 7300 + NEXT.fetch_add(1, Ordering::Relaxed) % 50_000;
    CString::new(port.to_string()).expect("digits")
}

fn lock() -> MutexGuard<'static, Vec<String>> {
    LOGGED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_log() -> Vec<String> {
    std::mem::take(&mut *lock())
}

/// The entry points that were called.
pub fn called() -> BTreeSet<&'static str> {
    CALLED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// The device's context, which stays open.
pub fn context() -> Handle {
    let mut context = null_mut();
    // SAFETY: a string and a place.
    let code = unsafe {
        calls::rpma_utils_get_ibv_context(crate::scenarios::ADDR.as_ptr(), 0, &mut context)
    };
    assert_eq!(code, 0);
    context
}
