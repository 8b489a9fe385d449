//! A CUDA driver for tests: a `libcuda.so.1` whose devices are threads of this process. It runs kernels (PTX, by an
//! interpreter), streams, events, graphs and memory pools as the real one orders them, no better: what a program does
//! not order, runs in any order. And it looks: a checker finds pairs of operations that use the same bytes and that
//! nothing orders, and use of memory that has ended.
//!
//! It is for tests of weir's CUDA engine on machines without a GPU, and is never shipped. It is stricter than the real
//! driver where that only documents a rule: a handle that was given back, a host function that calls the driver, a
//! graph that two threads use.
//!
//! - `api` has the entry points, by the driver's names; `call` is what each call goes through.
//! - `schedule` orders and runs tasks; `operation` and `execute` are what they do; `modules`, `ptx`, `builtin` and
//!   `gemm` the kernels.
//! - `space` is memory; `access`, `clock` and `checker` find what is not ordered, `guard` what the host does meanwhile;
//!   `report` tells. `waited` is what the host has not waited for.
//! - `graph`, `exec` and `capture` are graphs. `settings` is what the environment asks for.
//! - `testing` is for the side of the tests: it puts the library where a program finds it, and runs programs with it.

#![cfg(target_os = "linux")]

pub mod abi;
mod access;
pub mod api;
mod builtin;
pub mod call;
mod capture;
mod checker;
mod clock;
mod exec;
mod execute;
mod gemm;
mod graph;
mod guard;
mod modules;
mod operation;
mod ptx;
mod report;
mod schedule;
pub mod settings;
mod space;
pub mod status;
pub mod testing;
mod waited;
mod world;
