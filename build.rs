//! Generates the functions that create kernels from `src/ops` and, with the feature `headers`, the headers in `include`
//! from `src/abi`, `src/ops` and `src/ffi` (`book`); compresses the modules of CUDA kernels.
//!
//! A header is written when it differs from the one that is there; with WEIR_HEADER_CHECK=1 (tests, packaging) a
//! difference is an error instead.

mod book;

#[cfg(any(feature = "cuda", feature = "headers"))]
use std::path::Path;
use std::path::PathBuf;
use std::{env, fs};

/// Whether a stale header is an error.
#[cfg(feature = "headers")]
fn checking() -> bool {
    env::var_os("WEIR_HEADER_CHECK").is_some_and(|v| v != "0")
}

/// How cargo is told of what is wrong with the headers.
#[cfg(feature = "headers")]
fn level() -> &'static str {
    if checking() { "error" } else { "warning" }
}

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    for source in ["build.rs", "book", "cbindgen.toml", "src/abi", "src/ops", "src/ffi", "testing/src"] {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rerun-if-env-changed=WEIR_HEADER_CHECK");
    let operators = book::operators::read(&root).expect("src/ops has operators");
    let work = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let creators = book::operators::creators(&operators);
    let left_out = book::left_out::write(&root, &creators).unwrap_or_default();
    for (file, text) in [("operators.rs", creators)].into_iter().chain(left_out) {
        fs::write(work.join(file), text).expect("OUT_DIR can be written");
    }
    #[cfg(feature = "headers")]
    if let Err(error) = headers(&root, &operators, &work) {
        // A syntax error in a source is rustc's to report.
        println!("cargo::{}=the headers were not generated: {error}", level());
    }
    #[cfg(feature = "cuda")]
    compress_modules(&root).expect("the modules of gpu/kernels can be read, and OUT_DIR written");
}

/// The text of the CUDA kernels is the larger part of what the library would carry for them.
#[cfg(feature = "cuda")]
fn compress_modules(root: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let folder = root.join("gpu/kernels");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    println!("cargo::rerun-if-changed={}", folder.display());
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "ptx") {
            let compressed = miniz_oxide::deflate::compress_to_vec(&fs::read(&path)?, 9);
            fs::write(out.join(path.file_name().ok_or("no name")?).with_extension("ptx.deflate"), compressed)?;
        }
    }
    Ok(())
}

/// Writes the headers and their kin where they are kept, if they differ from what is there.
#[cfg(feature = "headers")]
fn headers(root: &Path, operators: &[book::operators::Operator], work: &Path) -> book::Result<()> {
    let made = book::headers::make(root, operators, work)?;
    let shown = if checking() { made.complaints.len() } else { 3 };
    for complaint in made.complaints.iter().take(shown) {
        println!("cargo::{}={complaint}", level());
    }
    for (name, new) in made.files {
        println!("cargo::rerun-if-changed={name}");
        let kept = root.join(&name);
        if fs::read_to_string(&kept).ok().as_ref() != Some(&new) {
            if checking() {
                println!("cargo::error={name} is stale: build once without WEIR_HEADER_CHECK and commit it");
            } else if let Err(error) = fs::write(&kept, new) {
                println!("cargo::warning={name} is stale and cannot be written: {error}");
            }
        }
    }
    Ok(())
}
