//! The tools that are told of runs by markers in their own format: those that the host names, or the variable
//! WEIR_TRACE_MARKERS of the environment ("nvtx", "itt", or both with a comma between them).
#![forbid(unsafe_code)]

use super::hooks::{HooksOf, set};
#[cfg(target_os = "linux")]
use super::{itt, nvtx};
use crate::base::{Error, Result};
use crate::sync::environment;

const VARIABLE: &str = "WEIR_TRACE_MARKERS";

/// From here on these are told, and no others. On an error nothing has changed.
pub fn use_markers(has_nvtx: bool, has_itt: bool) -> Result<()> {
    let nvtx = has_nvtx.then(nvtx::hooks).transpose()?;
    let itt = has_itt.then(itt::hooks).transpose()?;
    set([(HooksOf::Nvtx, nvtx), (HooksOf::Itt, itt)])
}

/// The same for those that the environment asks for, if it does.
pub fn use_markers_of_environment() -> Result<()> {
    let Some(text) = environment::trusted(VARIABLE).filter(|text| !text.is_empty()) else { return Ok(()) };
    let text = text.to_string_lossy();
    let used = parse(&text).and_then(|[has_nvtx, has_itt]| use_markers(has_nvtx, has_itt));
    used.map_err(|error| error.within(format_args!("the environment variable {VARIABLE} is '{text}'")))
}

/// Whether the text names NVTX, and whether it names ITT.
fn parse(text: &str) -> Result<[bool; 2]> {
    let mut has = [false; 2];
    for tool in text.split(',') {
        match ["nvtx", "itt"].iter().position(|known| *known == tool) {
            Some(at) => has[at] = true,
            None => return Err(Error::invalid(format!("'{tool}' is unknown, expected nvtx, itt or nvtx,itt"))),
        }
    }
    Ok(has)
}

/// How tools are found elsewhere is not known here.
#[cfg(not(target_os = "linux"))]
mod absent {
    use super::super::hooks::BoxedHooks;
    use crate::base::{Code, Error, Result};

    pub fn hooks() -> Result<BoxedHooks> {
        Err(Error::new(Code::Unimplemented, "markers are for Linux"))
    }
}

#[cfg(not(target_os = "linux"))]
use {absent as itt, absent as nvtx};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_tool_has_a_word() {
        assert_eq!(parse("nvtx").unwrap(), [true, false]);
        assert_eq!(parse("itt").unwrap(), [false, true]);
        assert_eq!(parse("itt,nvtx").unwrap(), [true, true]);
        for (text, named) in [("NVTX", "'NVTX' is unknown"), ("nvtx,", "'' is unknown"), ("nvtx itt", "'nvtx itt' is")]
        {
            assert!(parse(text).unwrap_err().message().contains(named), "{text}");
        }
    }
}
