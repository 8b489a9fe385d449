//! The library is found under the driver's name, so that is what it says it is. Its own functions are not looked up by
//! name: a test can take the names of some away.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
