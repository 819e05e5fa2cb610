//! Where messages go: a function of the program's, or by default syslog and stderr.
//!
//! The crate's messages come through the `log` facade. The library links its own copy of it, so the
//! logger set here is seen by nobody else; it is set when the first peer is made or the log is
//! first spoken to, never at load.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint},
    fmt,
    io::Write as _,
    mem::MaybeUninit,
    path::Path,
    sync::{
        Once,
        atomic::{AtomicI32, AtomicPtr, Ordering},
    },
};

use log::{Level, LevelFilter, Metadata, Record};

use crate::{INVAL, Out, c_api, given};

const DISABLED: c_int = -1;
pub(crate) const FATAL: c_int = 0;
pub(crate) const ERROR: c_int = 1;
const WARNING: c_int = 2;
const NOTICE: c_int = 3;
const INFO: c_int = 4;
const DEBUG: c_int = 5;

/// The main threshold and the auxiliary one.
static THRESHOLDS: [AtomicI32; 2] = [AtomicI32::new(WARNING), AtomicI32::new(DISABLED)];
const MAIN: usize = 0;
const AUX: usize = 1;

/// The program's function; null for the default.
static FUNCTION: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// `rpma_log_function` of librpma.h.
type Function =
    unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char, *const c_char, ...);

c_api! {
    /// Sets what is logged.
    fn rpma_log_set_threshold(threshold: c_uint, level: c_int) {
        let place = given(THRESHOLDS.get(threshold as usize))?;
        if !(DISABLED..=DEBUG).contains(&level) {
            return Err(INVAL);
        }
        place.store(level, Ordering::Relaxed);
        install();
        set_max_level();
        Ok(())
    }

    /// Says what is logged.
    fn rpma_log_get_threshold(threshold: c_uint, level: Out<'_, c_int>) {
        let place = given(THRESHOLDS.get(threshold as usize))?;
        given(level)?.write(place.load(Ordering::Relaxed));
        Ok(())
    }

    /// Sets who logs.
    fn rpma_log_set_function(function: Option<Function>) {
        let raw = function.map_or(std::ptr::null_mut(), |function| function as *mut ());
        FUNCTION.store(raw, Ordering::Release);
        install();
        Ok(())
    }
}

/// Lets the crate's messages come here.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // It fails where the static library is part of a Rust program that has a logger: then that
        // one is right.
        if log::set_logger(&Bridge).is_ok() {
            set_max_level();
        }
    });
}

fn set_max_level() {
    log::set_max_level(match THRESHOLDS[MAIN].load(Ordering::Relaxed) {
        ERROR => LevelFilter::Error,
        WARNING => LevelFilter::Warn,
        NOTICE | INFO => LevelFilter::Info,
        DEBUG => LevelFilter::Trace,
        _ => LevelFilter::Off,
    });
}

struct Bridge;

impl log::Log for Bridge {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        level_of(metadata.level()) <= THRESHOLDS[MAIN].load(Ordering::Relaxed)
    }

    fn log(&self, record: &Record<'_>) {
        emit(
            level_of(record.level()),
            record.file().unwrap_or("rpma"),
            record.line().unwrap_or(0),
            record.module_path().unwrap_or("rpma"),
            *record.args(),
        );
    }

    fn flush(&self) {}
}

fn level_of(level: Level) -> c_int {
    match level {
        Level::Error => ERROR,
        Level::Warn => WARNING,
        Level::Info => NOTICE,
        Level::Debug | Level::Trace => DEBUG,
    }
}

/// Logs one message, where the threshold allows it.
#[cold]
pub(crate) fn emit(
    level: c_int,
    file: &str,
    line: u32,
    function: &str,
    message: fmt::Arguments<'_>,
) {
    if level > THRESHOLDS[MAIN].load(Ordering::Relaxed) {
        return;
    }
    let file = Path::new(file)
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or(file);
    let raw = FUNCTION.load(Ordering::Acquire);
    if raw.is_null() {
        return by_default(level, file, line, function, message);
    }
    // SAFETY: only `rpma_log_set_function` stores here, and it stores functions of this type.
    let log = unsafe { std::mem::transmute::<*mut (), Function>(raw) };
    let (file, function, message) = (c_string(file), c_string(function), c_string(message));
    // SAFETY: all strings live until the function returns; its own contract is the program's.
    unsafe {
        log(
            level,
            file.as_ptr(),
            line as c_int,
            function.as_ptr(),
            c"%s".as_ptr(),
            message.as_ptr(),
        );
    }
}

/// Syslog, and stderr as far as the auxiliary threshold goes. Neither is opened or set up: both are
/// the program's.
fn by_default(level: c_int, file: &str, line: u32, function: &str, message: fmt::Arguments<'_>) {
    let (priority, name) = match level {
        FATAL => (libc::LOG_CRIT, "*FATAL* "),
        ERROR => (libc::LOG_ERR, "*ERROR* "),
        WARNING => (libc::LOG_WARNING, "*WARN*  "),
        NOTICE => (libc::LOG_NOTICE, "*NOTICE*"),
        INFO => (libc::LOG_INFO, "*INFO*  "),
        _ => (libc::LOG_DEBUG, "*DEBUG* "),
    };
    let text = format!("{name} {file}: {line}: {function}: {message}");
    if level <= THRESHOLDS[AUX].load(Ordering::Relaxed) {
        let (time, micros) = now();
        // SAFETY: the call takes nothing.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        let _ = writeln!(
            std::io::stderr(),
            "{}.{micros:06} [{thread}] {text}",
            time.to_string_lossy()
        );
    }
    let text = c_string(text);
    // SAFETY: the format takes one string, which lives until the call returns.
    unsafe { libc::syslog(priority, c"%s".as_ptr(), text.as_ptr()) }
}

/// The local time to the second, and the microseconds.
fn now() -> (CString, i64) {
    let mut buffer = [0u8; 32];
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut parts = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: all places are ours and large enough; an all-zero `tm` is a valid one, should the
    // conversion fail.
    unsafe {
        libc::clock_gettime(libc::CLOCK_REALTIME, &mut time);
        libc::localtime_r(&time.tv_sec, parts.as_mut_ptr());
        libc::strftime(
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            c"%b %d %H:%M:%S".as_ptr(),
            parts.as_ptr(),
        );
    }
    let text = CStr::from_bytes_until_nul(&buffer).unwrap_or_default();
    (text.to_owned(), time.tv_nsec / 1000)
}

fn c_string(text: impl fmt::Display) -> CString {
    let mut bytes = text.to_string().into_bytes();
    bytes.retain(|byte| *byte != 0);
    CString::new(bytes).unwrap_or_default()
}
