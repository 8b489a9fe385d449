//! CUDA engines, on a driver that is none: `tests/fake_cuda`.

#![cfg(feature = "cuda")]

mod absence;
mod bench;
mod devices;
mod digits;
mod errors;
mod kernels;
mod kit;
mod programs;
#[allow(dead_code, reason = "others use the rest")]
#[path = "../kit/random.rs"]
mod random;
mod segments;
mod sharing;
mod sources;
