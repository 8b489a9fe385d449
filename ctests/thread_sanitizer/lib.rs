//! The functions of libweir and of libweir_testing for C, in one archive: two would each bring Rust's own library.

extern crate weir_core;
extern crate weir_testing;
