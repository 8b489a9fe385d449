//! Parts of calls.
#![forbid(unsafe_code)]

use super::blas::Prepared;
use super::grid::{Arguments, Grid};

/// A part of what a call takes.
pub(super) enum Piece<'a> {
    Grid(&'a Grid, Arguments<'a>),
    /// Of a library, which puts it into a stream itself: nobody knows as what.
    Product(&'a Prepared<'a>),
}
