//! Makes the C headers, and what other languages read instead of them, from `src/abi`, `src/ops`, `src/ffi` and
//! `testing/src`.
//!
//! `book.md` has the headers, their chapters and the prose; each source says which chapter it belongs to. From these
//! come `include/weir.h` and `include/weir/*.h` (declared by cbindgen), `weir_api.json`, `weir_cdef.h`, and the
//! operators of the crate `weir`.

mod api;
mod c;
mod cdef;
mod checks;
mod contract;
mod header;
mod json;
mod layout;
mod rust;
mod source;

use super::{Result, operators};
use std::path::Path;

pub struct Made {
    /// The files that the sources make, each with its path in the repository.
    pub files: Vec<(String, String)>,
    /// The mistakes in the descriptions.
    pub complaints: Vec<String>,
}

/// `work` is a folder for what lies between.
pub fn make(root: &Path, operators: &[operators::Operator], work: &Path) -> Result<Made> {
    let creators = operators::creators(operators);
    let book = source::Book::read(root, &creators)?;
    let checks = checks::Checks::read(root, &creators)?;
    let mut files = header::write(&book, &root.join("cbindgen.toml"), work)?;
    let cdefs = cdef::write(&book, &files)?;
    files.push(("include/weir/weir_api.json".to_owned(), api::write(root, &book, &checks, operators)?));
    files.extend(cdefs.map(|(path, text)| (path.to_owned(), text)));
    files.extend(operators::lists(operators).map(|(path, text)| (path.to_owned(), text)));
    files.extend(rust::write(root, operators)?);
    let mut complaints = contract::needless(&book);
    complaints.extend(contract::Errors::of(&book, &checks).complaints());
    complaints.extend(api::contradictions(&book, &checks));
    Ok(Made { files, complaints })
}
