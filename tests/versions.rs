//! The version is the same in Cargo.toml, in the header and in the build script.

use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

fn define(header: &str, name: &str) -> String {
    let line = header.lines().find(|line| line.starts_with(&format!("#define {name} "))).expect(name);
    line.split_whitespace().nth(2).unwrap().to_owned()
}

#[test]
fn header_and_crate_have_the_same_version() {
    let header = read("include/weir.h");
    let version = ["MAJOR", "MINOR", "PATCH"].map(|part| define(&header, &format!("WEIR_VERSION_{part}"))).join(".");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_soname_carries_the_abi_number() {
    let abi = define(&read("include/weir.h"), "WEIR_ABI_VERSION");
    assert!(read("capi/build.rs").contains(&format!("\"libweir.so.0.{abi}\"")));
}
