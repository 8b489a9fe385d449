//! Plug-in libraries: each is opened once, asked once to register its devices, and never closed, because its
//! registrations point into it.

use crate::base::time::Deadline;
use crate::base::{Code, Error, Result};
use crate::sync::{EventCount, Global, thread};
use std::ffi::{CStr, CString, c_void};

/// An open library.
struct Library {
    handle: usize,
    state: LoadState,
}

#[derive(Clone, Copy, PartialEq)]
enum LoadState {
    /// Being asked by the thread with this number.
    Asking(u64),
    /// It has registered its devices.
    Loaded,
}

static LIBRARIES: Global<Vec<Library>> = Global::new(Vec::new);
/// Advances when a library has answered.
static ANSWERED: EventCount = EventCount::new();

/// The state in which the caller finds a library that it wants to load.
enum LoadTurn {
    Mine,
    Done,
    Wait(u64),
}

/// Opens the library and calls `init` with its symbol `symbol`, unless it was loaded before. True if this call loaded
/// it.
pub fn load(path: &CStr, symbol: &CStr, init: impl FnOnce(*mut c_void) -> Result<()>) -> Result<bool> {
    let handle = open(path)?;
    loop {
        match turn(handle) {
            LoadTurn::Mine => break,
            LoadTurn::Done => {
                // SAFETY: opened above, and not used any more.
                unsafe { close(handle) };
                return Ok(false);
            }
            LoadTurn::Wait(0) => {
                // SAFETY: as above.
                unsafe { close(handle) };
                return Err(Error::precondition("the library is being loaded by this thread"));
            }
            LoadTurn::Wait(target) => drop(ANSWERED.wait(target, 0, Deadline::NEVER)),
        }
    }
    // SAFETY: opened above.
    let found = unsafe { find(handle, symbol) };
    let never_called = found.is_err();
    let answer = found.and_then(init);
    let mut libraries = LIBRARIES.lock();
    match &answer {
        Ok(()) => {
            libraries.iter_mut().filter(|l| l.handle == handle as usize).for_each(|l| l.state = LoadState::Loaded)
        }
        Err(_) => libraries.retain(|library| library.handle != handle as usize),
    }
    drop(libraries);
    ANSWERED.advance(1);
    if never_called {
        // SAFETY: opened above, and not used any more.
        unsafe { close(handle) };
    }
    answer.map(|()| true)
}

fn turn(handle: *mut c_void) -> LoadTurn {
    let me = thread::me();
    let mut libraries = LIBRARIES.lock();
    match libraries.iter().find(|library| library.handle == handle as usize).map(|library| library.state) {
        None => {
            libraries.push(Library { handle: handle as usize, state: LoadState::Asking(me) });
            LoadTurn::Mine
        }
        Some(LoadState::Loaded) => LoadTurn::Done,
        Some(LoadState::Asking(thread)) if thread == me => LoadTurn::Wait(0),
        Some(LoadState::Asking(_)) => LoadTurn::Wait(ANSWERED.reached() + 1),
    }
}

#[cfg(unix)]
fn open(path: &CStr) -> Result<*mut c_void> {
    // SAFETY: a NUL-terminated path; the loader takes care of the rest, and the library's constructors are its own
    // affair.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(Error::new(Code::NotFound, loader_text()));
    }
    Ok(handle)
}

/// # Safety
/// The library is open.
#[cfg(unix)]
unsafe fn find(handle: *mut c_void, symbol: &CStr) -> Result<*mut c_void> {
    // SAFETY: an open library, as demanded of the caller, and a NUL-terminated name.
    let found = unsafe { libc::dlsym(handle, symbol.as_ptr()) };
    if found.is_null() {
        return Err(Error::invalid(format!("it is no plug-in: {}", loader_text())));
    }
    Ok(found)
}

/// Drops one reference. A library that others have opened, or that has registered something, stays loaded.
///
/// # Safety
/// A handle that `open` gave, for the first time.
#[cfg(unix)]
unsafe fn close(handle: *mut c_void) {
    // SAFETY: as demanded of the caller.
    unsafe { libc::dlclose(handle) };
}

/// The loader's own text for its refusal.
#[cfg(unix)]
fn loader_text() -> String {
    // SAFETY: the text belongs to this thread and lives until its next call of the loader.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { CString::default() } else { CStr::from_ptr(text).to_owned() }
    };
    match text.to_string_lossy() {
        text if text.is_empty() => "the loader gives no reason".to_owned(),
        text => text.into_owned(),
    }
}

#[cfg(not(unix))]
fn open(_path: &CStr) -> Result<*mut c_void> {
    Err(Error::new(Code::Unimplemented, "this build cannot open libraries; link the plug-in and register its vtable"))
}

/// # Safety
/// As of the other.
#[cfg(not(unix))]
unsafe fn find(_handle: *mut c_void, _symbol: &CStr) -> Result<*mut c_void> {
    Err(Error::new(Code::Unimplemented, "this build cannot open libraries"))
}

/// # Safety
/// As of the other.
#[cfg(not(unix))]
unsafe fn close(_handle: *mut c_void) {}
