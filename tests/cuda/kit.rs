//! Each test runs in a process of its own, which finds the fake driver of `tests/fake_cuda` where libraries are looked
//! for: a process has one driver for its life, and the settings of the fake one are in the environment.

use fake_cuda::testing::Driver;
use std::ffi::{CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::time::{Duration, Instant};

/// Says that tests run on the driver that the loader finds, a real one, one after the other in one process or in one
/// each, as gpu/test.sh does.
const REAL: &str = "WEIR_TEST_CUDA";
/// Says that the process is of one test.
const ALONE: &str = "WEIR_TEST_ALONE";
const NO_DRIVER: &str = "WEIR_TEST_NO_DRIVER";
/// Longer than anything takes that is to come.
const LONG: Duration = Duration::from_secs(30);

fn this_test() -> String {
    std::thread::current().name().unwrap().to_owned()
}

/// What a test that is skipped unwinds with, so that it gives back what it has.
struct Skipped;

/// With a real driver: runs `body` here, or in a process of its own if it loses the device or has settings for weir,
/// which reads them once.
fn with_real_driver(settings: &[(&str, &str)], body: impl FnOnce()) {
    // It is of its own version, takes what order it likes, does not look for leaks, and has its own library of
    // products.
    let is_any = |name: &str| {
        name.starts_with("WEIR_") || matches!(name, "VERSION" | "SEED" | "LEAKS" | "BLAS" | "FAKE_STREAMS" | "ALONE")
    };
    if settings.iter().any(|(name, _)| !is_any(name)) {
        return say_skipped();
    }
    let has = |wanted: &str| settings.iter().any(|(name, _)| *name == wanted);
    let is_of_weir = |name: &str| name.starts_with("WEIR_") || name == "FAKE_STREAMS";
    let is_for_one = has("LEAKS") || has("BLAS") || has("ALONE") || settings.iter().any(|(name, _)| is_of_weir(name));
    if is_for_one && std::env::var_os(ALONE).is_none() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([&this_test(), "--exact", "--nocapture", "--test-threads=1"]).env(ALONE, "1");
        let output = command.output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        // Whoever reads what this process prints takes no line of that one's for one of this.
        let text = text.replace('\n', "\n    ");
        assert!(output.status.success() && text.contains("1 passed"), "{}:\n    {text}", output.status);
        text.lines()
            .filter_map(|line| line.find("SKIPPED: ").map(|at| &line[at..]))
            .for_each(|line| println!("{line}"));
        return;
    }
    // The processor's bits are those of the built-in kernels.
    let products = [("WEIR_CUDA_BLAS", if has("BLAS") { "" } else { "0" })];
    for (name, value) in products.iter().chain(settings.iter().filter(|(name, _)| is_of_weir(name))) {
        if std::env::var_os(name).is_none_or(|is| is != *value) {
            // SAFETY: the first test of the process, which has no other thread that asks for variables.
            unsafe { std::env::set_var(name, value) };
        }
    }
    match catch_unwind(AssertUnwindSafe(body)) {
        Err(payload) if !payload.is::<Skipped>() => resume_unwind(payload),
        _ => {}
    }
}

/// Runs `body` in a process of its own with the fake driver of these settings: "VERSION", "SEED", ..., or other
/// variables in full; "ALONE" for a process of its own with a real driver, too. What the process has written is given
/// back; in that process, nothing.
pub fn with_driver(settings: &[(&str, &str)], body: impl FnOnce()) -> Option<String> {
    if !is_fake() {
        with_real_driver(settings, body);
        return None;
    }
    let mut driver = Driver::new().set("LEAKS", "abort").set("RACES", "abort").set("OTHERS", "capture");
    for (name, value) in settings {
        driver = match *name {
            "VERSION" => driver.version(value.parse().unwrap()),
            "WITHOUT" => driver.without(value),
            // A library of products, of this version; one that lacks a function.
            "BLAS" => driver.library(fake_blas::BUILT_AS, &format!("libcublasLt.so.{value}"), &[]),
            "ALONE" => driver,
            "BLAS_WITHOUT" => driver.library(fake_blas::BUILT_AS, "libcublasLt.so.13", &[value]),
            // A folder of other libraries.
            "PATH" => {
                let driver_folder = driver.install().unwrap();
                driver.variable("LD_LIBRARY_PATH", format!("{}:{value}", driver_folder.display()))
            }
            name if name.starts_with("WEIR_") || name.starts_with("FAKE_") => driver.variable(name, value),
            name => driver.set(name, value),
        };
    }
    match driver.child(&this_test()) {
        Some(run) => Some(run.succeeds().output.clone()),
        None => {
            body();
            if !settings.contains(&("LEAKS", "off")) {
                // A thread that has told somebody may hold the last of it for a moment longer.
                eventually("something is not given back", || {
                    // What graphs of the host's have let go of.
                    weir_core::device::cuda::sweep();
                    fake::live(None) == 0
                });
            }
            None
        }
    }
}

pub fn is_fake() -> bool {
    std::env::var_os(REAL).is_none()
}

/// Whether what follows can be tested, which is about drivers of other versions than the one that is there; says so if
/// not.
#[must_use]
pub fn only_with_the_fake() -> bool {
    if !is_fake() {
        say_skipped();
    }
    is_fake()
}

const SKIPPED: &str = "SKIPPED: about the fake driver alone";

fn say_skipped() {
    println!("{SKIPPED}");
}

/// Ends a test that needs what is not there.
pub fn skip_without(what: &str) -> ! {
    println!("SKIPPED: there is no {what}");
    resume_unwind(Box::new(Skipped))
}

/// Ends a test that asks a fake library for what a real one does not have.
pub fn only_the_fakes() -> ! {
    assert!(!is_fake(), "no function of a fake library's");
    skip()
}

/// Ends a test that is about the fake driver. No panic: nobody is told of it but `with_real_driver`.
fn skip() -> ! {
    say_skipped();
    resume_unwind(Box::new(Skipped))
}

/// Runs `body` in a process of its own without the fake driver.
pub fn without_driver(body: impl FnOnce()) {
    if !only_with_the_fake() {
        return;
    }
    if std::env::var_os(NO_DRIVER).is_some() {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&this_test(), "--exact", "--nocapture"]).env(NO_DRIVER, "1").env_remove("LD_LIBRARY_PATH");
    let output = command.output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{}:\n{text}", output.status);
}

/// A function of the driver that this process has loaded, or of the fake one alone.
pub fn symbol(name: &str) -> *mut c_void {
    if name.starts_with("fakeCuda") && !is_fake() {
        skip();
    }
    let name = CString::new(name).unwrap();
    // The names that weir looks for, in its order. SAFETY: the library is loaded already, or opened now.
    unsafe {
        let open = |name: &std::ffi::CStr| libc::dlopen(name.as_ptr(), libc::RTLD_NOW);
        let mut found = [c"libcuda.so", c"libcuda.so.1"].into_iter().map(open);
        let library = found.find(|library| !library.is_null()).expect("libcuda");
        let found = libc::dlsym(library, name.as_ptr());
        assert!(!found.is_null(), "no {name:?}");
        found
    }
}

/// Until this is dropped, captures in other threads do not forbid this one anything.
pub struct Relaxed(i32);

impl Relaxed {
    pub fn new() -> Relaxed {
        Relaxed(exchange(2))
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        exchange(self.0);
    }
}

/// Another mode of captures for this thread; gives that of before.
pub fn exchange(mut mode: i32) -> i32 {
    // SAFETY: the driver's function with this name has this type.
    let function: unsafe extern "C" fn(*mut i32) -> i32 =
        unsafe { std::mem::transmute(symbol("cuThreadExchangeStreamCaptureMode")) };
    // SAFETY: a place for the mode, with the new one. Before cuInit nobody captures.
    unsafe { function(&raw mut mode) };
    mode
}

/// Calls a function of the driver: `raw!(cuCtxGetCurrent(&raw mut context): *mut Pointer)`.
macro_rules! raw {
    ($name:ident($($argument:expr),*): $($type:ty),*) => {{
        let _relaxed = $crate::kit::Relaxed::new();
        // SAFETY: the driver's function with this name has this type.
        let function: unsafe extern "C" fn($($type),*) -> i32 = unsafe { std::mem::transmute($crate::kit::symbol(stringify!($name))) };
        // SAFETY: as the test says.
        let status = unsafe { function($($argument),*) };
        assert_eq!(status, 0, "{}", stringify!($name));
    }};
}
pub(crate) use raw;

pub mod fake {
    use super::*;

    fn text(text: &str) -> CString {
        CString::new(text).unwrap()
    }

    /// How often a function was called.
    pub fn count(name: &str) -> u64 {
        // SAFETY: the fake driver's function of this type.
        let function: unsafe extern "C" fn(*const c_char) -> u64 =
            unsafe { std::mem::transmute(symbol("fakeCudaCount")) };
        // SAFETY: a text that lives during the call.
        unsafe { function(text(name).as_ptr()) }
    }

    /// The same; 0 with a real driver, of which nothing is to be asserted then.
    pub fn counted(name: &str) -> u64 {
        if is_fake() { count(name) } else { 0 }
    }

    /// How often each function was called that was.
    pub fn counts() -> Vec<(String, u64)> {
        // SAFETY: the fake driver's function of this type.
        let function: unsafe extern "C" fn(u64, *mut c_char, usize) -> usize =
            unsafe { std::mem::transmute(symbol("fakeCudaFunction")) };
        let name = |index| {
            let mut name = [0u8; 64];
            // SAFETY: so many bytes.
            let bytes = unsafe { function(index, name.as_mut_ptr().cast(), name.len()) };
            (bytes > 0).then(|| String::from_utf8(name[..bytes].to_vec()).unwrap())
        };
        let counted = (0..).map_while(name).map(|name| (name.clone(), count(&name)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// What is drawn from now on is what follows this seed. A real driver takes what order it likes.
    pub fn reseed(seed: u64) {
        if !is_fake() {
            return;
        }
        // SAFETY: the fake driver's function of this type.
        let function: unsafe extern "C" fn(u64) = unsafe { std::mem::transmute(symbol("fakeCudaSeed")) };
        // SAFETY: takes any number.
        unsafe { function(seed) }
    }

    /// Races that were found, with RACES=report.
    pub fn races() -> u64 {
        // SAFETY: the fake driver's function of this type.
        let function: unsafe extern "C" fn() -> u64 = unsafe { std::mem::transmute(symbol("fakeCudaRaceCount")) };
        // SAFETY: takes nothing.
        unsafe { function() }
    }

    /// The n-th call from now on fails; 0 = each one. With a code below 0, none any more.
    pub fn fail(name: &str, call: u64, code: i32) {
        // SAFETY: the fake driver's function of this type.
        let function: unsafe extern "C" fn(*const c_char, u64, i32) =
            unsafe { std::mem::transmute(symbol("fakeCudaFail")) };
        // SAFETY: a text that lives during the call.
        unsafe { function(text(name).as_ptr(), call, code) }
    }

    /// Lines of the log so far.
    pub fn log() -> Vec<String> {
        let Some(path) = std::env::var_os("FAKE_CUDA_LOG") else { skip() };
        std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
    }

    /// Work that the host does not know to be over.
    pub fn unwaited() -> u64 {
        // SAFETY: the fake driver's function of this type.
        let function: extern "C" fn() -> u64 = unsafe { std::mem::transmute(symbol("fakeCudaUnwaited")) };
        function()
    }

    /// Things that the program has not given back: "stream", "event", ..., or all. None before the driver was asked
    /// for.
    pub fn live(kind: Option<&str>) -> u64 {
        // SAFETY: the fake driver's function of this type.
        let function: unsafe extern "C" fn(*const c_char) -> u64 =
            unsafe { std::mem::transmute(symbol("fakeCudaLive")) };
        let kind = kind.map(text);
        // SAFETY: NULL, or a text that lives during the call.
        unsafe { function(kind.as_ref().map_or(std::ptr::null(), |kind| kind.as_ptr())) }
    }
}

/// Waits for something that another thread does.
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}
