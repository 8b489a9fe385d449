//! CUDA engines, on a driver that is none: `tests/fake_cuda`.

#![cfg(feature = "cuda")]

mod absence;
mod again;
mod bench;
mod captured;
mod captures;
mod control;
mod devices;
mod digits;
mod direct;
mod errors;
mod faults;
mod gather;
mod kernels;
mod kit;
mod loops;
#[allow(dead_code, reason = "others use the rest")]
#[path = "../kit/pools.rs"]
mod pools;
mod products;
mod programs;
#[allow(dead_code, reason = "others use the rest")]
#[path = "../kit/random.rs"]
mod random;
#[allow(dead_code, reason = "others use the rest")]
#[path = "../kit/recordings.rs"]
mod recordings;
mod seeds;
mod segments;
mod sharing;
mod sources;
mod steps;
mod waited;
mod waiting;
mod ways;
