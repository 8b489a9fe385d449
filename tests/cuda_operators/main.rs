//! The built-in operations of CUDA devices: their real PTX, run by an interpreter, against the processor's kernels,
//! through the descriptors of the interface in C; and the same by a CUDA engine.
#![cfg(feature = "cuda")]

mod cells;
mod control;
mod coverage;
mod create;
mod elements;
mod engine;
mod images;
mod kit;
mod movement;
mod products;
mod rows;
mod types;
mod windows;
