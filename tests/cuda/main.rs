//! CUDA engines, on a driver that is none: `tests/fake_cuda`.

mod absence;
mod bench;
mod devices;
mod errors;
mod kernels;
mod kit;
mod segments;
mod sharing;
