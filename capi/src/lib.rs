//! libweir.so and libweir.a: the functions that `weir_core::ffi` has for C, and nothing else.

extern crate weir_core;
