//! Gives the shared library its soname.

/// The number in the soname: libweir.so.0.<ABI>. The same as WEIR_ABI_VERSION.
const SONAME: &str = "libweir.so.0.1";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
        // Threads may still be inside the library, and thread-local destructors point into it: it is never unloaded.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
