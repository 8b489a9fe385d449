//! Parts of calls.
#![forbid(unsafe_code)]

use super::blas::Prepared;
use super::grid::{Arguments, LaunchGrid};

/// One part of a call.
pub(super) enum CallPart<'a> {
    Grid(&'a LaunchGrid, Arguments<'a>),
    /// A library's product, which the library itself puts into a stream, in an unknown form.
    Product(&'a Prepared<'a>),
}
