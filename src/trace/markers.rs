//! The tools that are told of runs by markers in their own format.
#![forbid(unsafe_code)]

use super::hooks::{HooksOf, set};
#[cfg(target_os = "linux")]
use super::{itt, nvtx};
use crate::base::Result;

/// From here on these are told, and no others. On an error nothing has changed.
pub fn use_markers(has_nvtx: bool, has_itt: bool) -> Result<()> {
    let nvtx = has_nvtx.then(nvtx::hooks).transpose()?;
    let itt = has_itt.then(itt::hooks).transpose()?;
    set([(HooksOf::Nvtx, nvtx), (HooksOf::Itt, itt)])
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
