//! What each call of the driver goes through before its body, and after it: the count, the log, faults that are asked
//! for, and the rules that hold for every function.

use crate::abi::Show;
use crate::capture;
use crate::settings::{Failure, SETTINGS};
use crate::status::{Code, Result};
use crate::world::{self, lock};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// A function of the driver.
pub struct Entry {
    pub name: &'static str,
    pub address: *const c_void,
}

// SAFETY: the address of a function, which is the same for all threads.
unsafe impl Sync for Entry {}

/// Defines entry points, and `ENTRIES`, a list of them. A body gives what is not a success by `?` or `return`.
#[macro_export]
macro_rules! entries {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, clippy::too_many_arguments)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> i32 {
                $crate::call::enter(
                    stringify!($name),
                    &[$(&$argument as &dyn $crate::abi::Show),*],
                    || -> $crate::status::Result { $body },
                )
            }
        )*

        pub(crate) static ENTRIES: &[$crate::call::Entry] =
            &[$($crate::call::Entry { name: stringify!($name), address: $name as *const std::ffi::c_void }),*];
    };
}

#[derive(Default)]
struct Calls {
    counts: BTreeMap<&'static str, u64>,
    /// With calls counted from the first.
    failures: Option<Vec<Failure>>,
    log: Option<File>,
}

static CALLS: LazyLock<Mutex<Calls>> = LazyLock::new(|| {
    let log = SETTINGS.log.as_ref().map(|path| {
        let file = File::options().create(true).append(true).open(path);
        file.unwrap_or_else(|error| stop(&format!("FAKE_CUDA_LOG: {path}: {error}")))
    });
    Mutex::new(Calls { counts: BTreeMap::new(), failures: Some(SETTINGS.failures.clone()), log })
});

static INITIALIZED: AtomicBool = AtomicBool::new(false);
static ENDED: AtomicBool = AtomicBool::new(false);
/// The process that called cuInit.
static PROCESS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Ends the process: the program has done what a driver does not bear, or what a test must not pass with.
pub fn stop(text: &str) -> ! {
    // What stands in the log until here is written: there is no buffer.
    eprintln!("fake CUDA driver: {text}");
    std::process::abort()
}

pub fn initialized() {
    if !INITIALIZED.swap(true, SeqCst) {
        PROCESS.store(std::process::id(), SeqCst);
        // SAFETY: the C library's function, with a function that stays.
        unsafe { libc::atexit(at_exit) };
    }
}

extern "C" fn at_exit() {
    if PROCESS.load(SeqCst) == std::process::id() {
        ENDED.store(true, SeqCst);
        crate::waited::drain();
        crate::report::report_leaks();
    }
}

/// Runs a function of the program's, which must not call the driver.
pub fn host_function(function: impl FnOnce()) {
    IN_HOST_FUNCTION.set(true);
    function();
    IN_HOST_FUNCTION.set(false);
}

fn calls() -> MutexGuard<'static, Calls> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn count(name: &str) -> u64 {
    calls().counts.get(name).copied().unwrap_or(0)
}

pub fn reset_counts() {
    calls().counts.clear();
}

/// The n-th call from now on fails; 0 = each one. With a code below 0 none of its calls fails any more.
pub fn fail(function: &str, call: u64, code: i32) {
    let mut calls = calls();
    if code < 0 {
        calls.failures.iter_mut().flatten().for_each(|failure| {
            if failure.function == function {
                failure.call = Some(0)
            }
        });
        return;
    }
    let before = calls.counts.get(function).copied().unwrap_or(0);
    let call = (call > 0).then_some(before + call);
    calls.failures.get_or_insert_default().push(Failure { function: function.to_owned(), call, code });
}

/// Counts something that is no function, and says what failure was asked for at this one.
pub fn injected(name: &'static str) -> Option<Code> {
    let mut calls = calls();
    let count = calls.counts.entry(name).or_default();
    *count += 1;
    let count = *count;
    let mut failures = calls.failures.iter().flatten().filter(|failure| failure.function == name);
    failures.find(|failure| failure.call.is_none_or(|n| n == count)).map(|failure| Code(failure.code))
}

/// Functions that can be called in any state.
fn is_free(name: &str) -> bool {
    matches!(name, "cuGetErrorName" | "cuGetErrorString" | "cuDriverGetVersion" | "cuGetProcAddress_v2" | "cuInit")
}

/// Functions that a lost context does not keep from answering.
fn is_of_no_context(name: &str) -> bool {
    is_free(name)
        || name.starts_with("cuDevice")
        || matches!(
            name,
            "cuCtxGetCurrent" | "cuCtxSetCurrent" | "cuCtxPushCurrent_v2" | "cuCtxPopCurrent_v2" | "cuCtxGetDevice"
        )
}

/// Whether the body is to run.
fn before(name: &'static str) -> Result<bool> {
    if IN_HOST_FUNCTION.get() && !name.starts_with("cuGetError") {
        stop(&format!("a host function calls {name}: what a stream calls must not call the driver"));
    }
    if !SETTINGS.has(name) {
        stop(&format!("{name} is called, which this driver (FAKE_CUDA_VERSION={}) does not have", SETTINGS.version));
    }
    world::called();
    let injected = injected(name);
    if let Some(code) = injected {
        if code.is_sticky() {
            lock().lose_current(code);
        }
        // 0: the call is left out, and has succeeded.
        return if code.0 == 0 { Ok(false) } else { Err(code) };
    }
    if is_free(name) {
        return Ok(true);
    }
    if ENDED.load(SeqCst) {
        return Err(Code::DEINITIALIZED);
    }
    if !INITIALIZED.load(SeqCst) {
        return Err(Code::NOT_INITIALIZED);
    }
    if !is_of_no_context(name) {
        let mut world = lock();
        if let Some(code) = world.lost_current() {
            return Err(code);
        }
        capture::check_call(&mut world, name)?;
    }
    Ok(true)
}

struct Line<'a>(&'a str, &'a [&'a dyn Show], i32);

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.0)?;
        for (index, argument) in self.1.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            argument.show(f)?;
        }
        write!(f, ") = {}", self.2)
    }
}

pub fn enter(name: &'static str, arguments: &[&dyn Show], body: impl FnOnce() -> Result) -> i32 {
    // The child of a fork has no threads, and perhaps the locks of those that it had: it gets an answer and nothing
    // else.
    if INITIALIZED.load(SeqCst) && PROCESS.load(SeqCst) != std::process::id() {
        return Code::NOT_INITIALIZED.0;
    }
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| -> Result {
        if before(name)? { body() } else { Ok(()) }
    }));
    let Ok(result) = result else { stop(&format!("{name} panicked")) };
    let status = result.err().map_or(0, |code| code.0);
    if SETTINGS.log.is_some() {
        log(&Line(name, arguments, status));
    }
    status
}

fn log(line: &dyn Display) {
    if let Some(file) = &mut calls().log {
        // One write each, so that lines of threads and of processes do not mix.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

/// All functions of the driver.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    crate::api::ENTRIES.iter().flat_map(|entries| entries.iter())
}

/// The function of this name without version, as CUDA of a version means it.
pub fn find(base: &str, version: i32) -> std::result::Result<*const c_void, bool> {
    let mut is_known = false;
    if ["_v2", "_v3", "_v4"].iter().any(|suffix| base.ends_with(suffix)) {
        return Err(false);
    }
    for suffix in ["_v4", "_v3", "_v2", ""] {
        let name = format!("{base}{suffix}");
        let Some(entry) = entries().find(|entry| entry.name == name) else { continue };
        if !SETTINGS.has(&name) {
            continue;
        }
        is_known = true;
        if crate::settings::since(&name) <= version {
            return Ok(entry.address);
        }
    }
    Err(is_known)
}
