//! The forms in which a trace is saved.
#![forbid(unsafe_code)]

use super::handle::Trace;
use super::output::{TraceOutput, to_file};
use super::{chrome, page, perfetto, report, stacks};
use crate::base::Result;
use std::path::Path;

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    Perfetto,
    Chrome,
    Folded,
    Pprof,
    Report,
    Html,
    Json,
}

impl TraceFormat {
    /// The names of all formats, as the environment has them.
    pub const NAMES: [(&str, TraceFormat); 7] = [
        ("perfetto", TraceFormat::Perfetto),
        ("chrome", TraceFormat::Chrome),
        ("folded", TraceFormat::Folded),
        ("pprof", TraceFormat::Pprof),
        ("report", TraceFormat::Report),
        ("html", TraceFormat::Html),
        ("json", TraceFormat::Json),
    ];

    pub fn from_name(name: &str) -> Option<TraceFormat> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }
}

impl Trace {
    /// Passes what the trace holds now to `pass_on`, in pieces. Nothing is taken out of the trace.
    pub fn write(&self, format: TraceFormat, pass_on: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let timeline = self.timeline()?;
        let mut output = TraceOutput::new(pass_on)?;
        match format {
            TraceFormat::Perfetto => perfetto::write(&timeline, &mut output)?,
            TraceFormat::Chrome => chrome::write(&timeline, &mut output)?,
            TraceFormat::Folded => stacks::write_folded(&timeline, &mut output)?,
            TraceFormat::Pprof => stacks::write_pprof(&timeline, &mut output)?,
            TraceFormat::Report => report::write(&timeline, &mut output)?,
            TraceFormat::Html => page::write(&timeline, &mut output)?,
            TraceFormat::Json => page::write_json(&timeline, &mut output)?,
        }
        output.finish()
    }

    /// The same into a file, which is there whole or not at all.
    pub fn save(&self, path: &Path, format: TraceFormat) -> Result<()> {
        to_file(path, |pass_on| self.write(format, pass_on))
    }
}
