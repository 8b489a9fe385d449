//! A cuBLASLt for tests: the functions of libcublasLt that weir uses, with their numbers, on the driver of
//! `tests/fake_cuda`, which runs what is asked for here as a kernel in the caller's stream. So the order of streams,
//! captures and graphs, and the checker, hold for it as for any kernel.
//!
//! It is stricter than the real one where that only documents a rule: objects that were given back, addresses that are
//! less aligned than was promised, an algorithm for another shape, another context than the handle's end the process.
//!
//! FAKE_BLAS_VERSION is the version that it says it is of, else 130000. FAKE_BLAS_FAIL has calls fail,
//! function:n:status with commas between them; * = each one. `fakeBlasCount`, `fakeBlasFail` and `fakeBlasLive` are for
//! tests, by dlsym.
//!
//! SAFETY, everywhere in here: the program passes what the library's header asks for.
#![cfg(target_os = "linux")]
#![allow(non_snake_case, clippy::undocumented_unsafe_blocks, clippy::too_many_arguments)]

mod api;
mod driver;
mod multiply;
mod objects;
mod state;

/// What cargo calls the library that it builds, for `fake_cuda::testing::Driver::library`.
pub const BUILT_AS: &str = "libfake_blas.so";
