//! The trace that the environment asks for (`request`): of the whole process, from its first call to its end.
//!
//! It takes one of the places for traces and is no object of the host's, so it is not counted as one. The log has a
//! line for each thing that was done or has failed, `began`, `wrote PATH`, `failed PATH`; processes share it. By that
//! the program weir_trace knows of all the processes that its command started.
#![forbid(unsafe_code)]

use super::format::TraceFormat;
use super::handle::Trace;
use super::request::TraceRequest;
use crate::base::{Code, Error, Result};
use crate::sync::environment;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const VARIABLE: &str = "WEIR_TRACE";

/// A trace of this process, and what shall be written at its end.
pub struct ProcessTrace {
    trace: Trace,
    request: TraceRequest,
    process: u32,
}

impl ProcessTrace {
    /// Begins what the environment asks for, if it does.
    pub fn begin() -> Result<Option<ProcessTrace>> {
        let Some(text) = environment::trusted(VARIABLE) else { return Ok(None) };
        let within = |error: Error| {
            error.within(format_args!("the environment variable {VARIABLE} is '{}'", text.to_string_lossy()))
        };
        let process = std::process::id();
        let plain = text.to_str().ok_or_else(|| Error::invalid("this is not UTF-8"));
        let request = plain.and_then(|plain| TraceRequest::parse(plain, process)).map_err(within)?;
        let Some(request) = request else { return Ok(None) };
        let begun = Trace::begin(request.settings());
        log(&request.log, if begun.is_ok() { "began" } else { "failed" }, "");
        Ok(Some(ProcessTrace { trace: begun.map_err(within)?, request, process }))
    }

    /// Whether this process has begun it: not a child that came into being unseen.
    pub fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// Ends it and writes all files. Each failure is passed to `complain`.
    pub fn save(&self, complain: &dyn Fn(&Error)) {
        self.trace.stop();
        for (format, path) in &self.request.files {
            let saved = self.save_one(*format, path.as_deref());
            let name = path.as_ref().map_or("standard error".into(), |path| path.to_string_lossy());
            log(&self.request.log, if saved.is_ok() { "wrote" } else { "failed" }, &name);
            if let Err(error) = saved {
                complain(&error.within(format_args!("no trace in '{name}'")));
            }
        }
    }

    fn save_one(&self, format: TraceFormat, path: Option<&Path>) -> Result<()> {
        let Some(path) = path else {
            return self.trace.write(format, &mut |bytes| {
                io::stderr().write_all(bytes).map_err(|error| Error::new(Code::Unknown, error.to_string()))
            });
        };
        self.trace.save(path, format)
    }
}

/// Adds a line to the log, in one piece: others write there too. A log that cannot be written is done without.
fn log(path: &Option<PathBuf>, what: &str, name: &str) {
    let Some(path) = path else { return };
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
        let _ = file.write_all(format!("{what} {name}\n").as_bytes());
    }
}
