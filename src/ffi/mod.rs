//! The C border: the only `extern "C"` functions that the library exports.
//!
//! Generic pointer code exists once (`guard`, `handle`, `argument`, `versioned`, `text`, `last_error`, `failure`); the
//! noun files check their arguments, make one call into a room, and convert the answer. Every body runs inside `guard`,
//! so no panic and no error leaves as anything but a status.
#![allow(non_camel_case_types)]
#![allow(clippy::missing_safety_doc, reason = "the C documentation above each function is its contract")]

mod argument;
mod failure;
mod frames;
mod guard;
mod handle;
mod last_error;
mod text;
mod versioned;

mod buffer;
mod conformance;
mod context;
mod control;
mod cuda;
mod device;
mod dlpack;
mod dlpack_device;
mod dlpack_layout;
mod domain;
mod dynamic;
mod emulation;
mod engine;
mod event;
mod gemm;
mod graph;
mod kernel;
mod kernel_cache;
mod kernel_context;
mod kernel_named;
mod kernel_options;
mod memory;
mod native;
mod notice;
mod operators;
mod packed;
mod pinned;
mod placement;
mod program;
mod program_stats;
mod resource;
mod run;
mod source;
mod stream;
mod sync;
mod table;
mod task;
mod task_group;
mod tensor;
mod threadpool;
mod transfer;
mod variable;
mod version;
