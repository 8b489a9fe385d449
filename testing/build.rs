//! Gives the shared library its soname.

/// The same number as that of libweir.so.
const SONAME: &str = "libweir_testing.so.0.1";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
        // Threads may still be inside the library.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
        let stand_in = stand_in();
        println!("cargo::rustc-cdylib-link-arg=-Wl,--no-as-needed,{stand_in},--as-needed");
    }
}

/// An empty library with libweir's soname. Linking with it makes the loader look for libweir itself, whichever way this
/// library is opened, although cargo may build the two in any order.
fn stand_in() -> String {
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let (source, library) = (format!("{folder}/empty.c"), format!("{folder}/libweir.so"));
    std::fs::write(&source, "").expect("OUT_DIR can be written");
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let made = std::process::Command::new(&linker)
        .args(["-shared", "-nostdlib", "-Wl,-soname,libweir.so.0.1", "-o", &library, &source])
        .status();
    assert!(made.is_ok_and(|status| status.success()), "{linker} cannot link an empty library");
    library
}
