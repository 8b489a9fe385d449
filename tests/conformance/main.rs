//! The built-in kernels against references in f64: the shapes, the data and the rule of comparison that benchmarks of
//! other libraries use for theirs (`rule`, `data`), for every instruction set, without a pool and on pools of 1, 2, 3
//! and 7 threads.
//!
//! A family says its cases to a `Suite`: first all kernels are made, then the pools, then all cases run on each of
//! them, with the same bits everywhere. The instruction set is chosen once per process; so each test runs itself again,
//! once per level.
//!
//! `WEIR_CONFORMANCE` says how much: without it shapes that are quick in a build that is not optimised, with `all`
//! every shape, with `large` also those that take seconds.

mod binary;
mod blas;
mod data;
mod eltwise;
mod int8;
#[path = "../kit/mod.rs"]
mod kit;
mod matmul;
mod product;
mod reduction;
mod reorder;
mod rule;
mod softmax;
mod suite;
mod values;

use std::process::Command;
use suite::Suite;
use weir_core::kernel::vector::isa::Isa;

const LEVEL: &str = "WEIR_CONFORMANCE_LEVEL";

/// Runs a family in a process for each level of vectors.
fn at_each_level(test: &str, family: fn(&mut Suite)) {
    at_each(Isa::levels(), test, family);
}

/// Runs a family in a process for each instruction set: products of bytes have more than a level.
fn at_each_set(test: &str, family: fn(&mut Suite)) {
    at_each(Isa::available(), test, family);
}

fn at_each(all: impl Iterator<Item = Isa>, test: &str, family: fn(&mut Suite)) {
    if let Ok(level) = std::env::var(LEVEL) {
        assert_eq!(Isa::best().name(), Some(&*level));
        let mut suite = Suite::new();
        family(&mut suite);
        return suite.run();
    }
    for name in all.filter(|&isa| Isa::best().has(isa)).filter_map(Isa::name) {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args([test, "--exact", "--nocapture"]).env("WEIR_MAX_ISA", name).env(LEVEL, name);
        let output = again.output().unwrap();
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(output.status.success() && text.contains("1 passed"), "{test} with {name}:\n{text}");
        text.lines().filter(|line| line.starts_with("cases")).for_each(|line| println!("{name}: {line}"));
    }
}

#[test]
fn matmul_is_exact() {
    at_each_level("matmul_is_exact", matmul::cases);
}

#[test]
fn matmul_of_open_shapes_is_exact() {
    at_each_level("matmul_of_open_shapes_is_exact", matmul::open_cases);
}

#[test]
fn matmul_int8_is_exact() {
    at_each_set("matmul_int8_is_exact", int8::cases);
}

#[test]
fn sgemm_is_right() {
    at_each_level("sgemm_is_right", blas::f32_cases);
}

#[test]
fn gemm_of_bytes_is_exact() {
    at_each_set("gemm_of_bytes_is_exact", blas::byte_cases);
}

#[test]
fn eltwise_is_accurate() {
    at_each_level("eltwise_is_accurate", eltwise::cases);
}

#[test]
fn softmax_is_accurate() {
    at_each_level("softmax_is_accurate", softmax::cases);
}

#[test]
fn reduction_is_accurate() {
    at_each_level("reduction_is_accurate", reduction::cases);
}

#[test]
fn reorder_is_exact() {
    at_each_level("reorder_is_exact", reorder::cases);
}

#[test]
fn binary_is_accurate() {
    at_each_level("binary_is_accurate", binary::cases);
}
