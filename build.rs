//! Generates `include/weir.h` from `src/abi` and `src/ffi`, and gives the shared library its soname.
//!
//! The header is always written to OUT_DIR. It is copied to `include/` when it differs; with WEIR_HEADER_CHECK=1
//! (tests, packaging) a difference is an error instead.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The sources of the header, in header order. `cbindgen` reads this list and nothing else, so no constant of another module leaks.
const HEADER_SOURCES: &[&str] = &[
    "src/abi/status.rs",
    "src/abi/handles.rs",
    "src/abi/runtime.rs",
    "src/abi/threadpool.rs",
    "src/abi/stream.rs",
    "src/abi/tensor.rs",
    "src/abi/kernel.rs",
    "src/ffi/version.rs",
    "src/ffi/threadpool.rs",
    "src/ffi/engine.rs",
    "src/ffi/stream.rs",
    "src/ffi/event.rs",
    "src/ffi/sync.rs",
    "src/ffi/tensor.rs",
    "src/ffi/kernel.rs",
    "src/ffi/kernel_context.rs",
    "src/ffi/graph.rs",
    "src/ffi/program.rs",
    "src/ffi/run.rs",
];

/// The number in the soname: libweir.so.0.<ABI>. The same as WEIR_ABI_VERSION.
const SONAME: &str = "libweir.so.0.1";

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    for source in HEADER_SOURCES.iter().chain(&["build.rs", "cbindgen.toml", "include/weir.h"]) {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rerun-if-env-changed=WEIR_HEADER_CHECK");
    if let Err(error) = header(&root) {
        // A syntax error in a source is rustc's to report.
        println!("cargo::warning=weir.h was not generated: {error}");
    }
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
        // Threads may still be inside the library, and thread-local destructors point into it: it is never unloaded.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}

fn header(root: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml"))?;
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in HEADER_SOURCES {
        builder = builder.with_src(root.join(source));
    }
    let fresh = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?).join("weir.h");
    builder.generate()?.write_to_file(&fresh);
    let new = fs::read(&fresh)?;
    let kept = root.join("include/weir.h");
    if fs::read(&kept).ok().as_ref() != Some(&new) {
        if env::var_os("WEIR_HEADER_CHECK").is_some_and(|v| v != "0") {
            println!("cargo::error=include/weir.h is stale: build once without WEIR_HEADER_CHECK and commit it");
        } else if let Err(error) = fs::write(&kept, new) {
            println!("cargo::warning=include/weir.h is stale and cannot be written: {error}");
        }
    }
    Ok(())
}
