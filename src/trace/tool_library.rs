//! The library of a tool, which the tool names in the environment. It is opened once, and stays.

use crate::base::{Code, Error, Result};
use crate::sync::environment;
use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStringExt;

/// An open library.
pub struct ToolLibrary {
    handle: *mut c_void,
    path: CString,
}

impl ToolLibrary {
    /// Opens the library that the variable names. A set-user-ID process reads no such variables.
    pub fn open(variable: &str, tool: &str) -> Result<ToolLibrary> {
        let path = environment::trusted(variable);
        let Some(path) = path.and_then(|path| CString::new(path.into_vec()).ok()).filter(|path| !path.is_empty())
        else {
            let text = format!("{variable} is not set: {tool} names there the library that takes its markers");
            return Err(Error::new(Code::NotFound, text));
        };
        // SAFETY: a NUL-terminated path. The library's constructors are an affair of the tool, whose user has asked for
        // it.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        if handle.is_null() {
            let text = format!("{variable}: {}", loader_text());
            return Err(Error::new(Code::NotFound, text));
        }
        Ok(ToolLibrary { handle, path })
    }

    /// The address of a function.
    pub fn function(&self, name: &CStr) -> Result<*mut c_void> {
        // SAFETY: an open library, and a NUL-terminated name.
        let found = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if found.is_null() {
            return Err(self.refuses(&format!("has no {}", name.to_string_lossy())));
        }
        Ok(found)
    }

    pub fn handle(&self) -> *mut c_void {
        self.handle
    }

    pub fn refuses(&self, why: &str) -> Error {
        Error::new(Code::Unavailable, format!("{} {why}", self.path.to_string_lossy()))
    }
}

fn loader_text() -> String {
    // SAFETY: the text belongs to this thread and lives until its next call of the loader.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { CString::default() } else { CStr::from_ptr(text).to_owned() }
    };
    text.to_string_lossy().into_owned()
}
