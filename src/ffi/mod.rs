//! The C border: the only `extern "C"` functions that the library exports. Rust calls them by the same names.
//!
//! Generic pointer code exists once (`guard`, `handle`, `argument`, `versioned`, `text`, `last_error`, `failure`); the
//! noun files check their arguments, make one call into a room, and convert the answer. Every body runs inside `guard`,
//! so no panic and no error leaves as anything but a status.
#![cfg_attr(not(feature = "engines"), allow(dead_code, reason = "what engines need besides"))]
#![allow(non_camel_case_types)]
#![allow(clippy::missing_safety_doc, reason = "the C documentation above each function is its contract")]
#![allow(rustdoc::broken_intra_doc_links, reason = "the comments are for the C header: i[d] is an index, no link")]

mod argument;
mod environment;
mod failure;
#[cfg(feature = "graph")]
mod frames;
mod guard;
mod handle;
mod last_error;
mod left_out;
mod text;
mod versioned;

#[cfg(feature = "engines")]
mod buffer;
#[cfg(feature = "graph")]
mod comm;
#[cfg(feature = "engines")]
mod conformance;
#[cfg(feature = "graph")]
mod conformance_comm;
mod context;
#[cfg(feature = "graph")]
mod control;
#[cfg(feature = "engines")]
mod cuda;
#[cfg(feature = "engines")]
mod device;
#[cfg(feature = "engines")]
mod dlpack;
#[cfg(feature = "engines")]
mod dlpack_device;
#[cfg(feature = "engines")]
mod dlpack_layout;
#[cfg(feature = "engines")]
mod domain;
#[cfg(feature = "engines")]
mod dynamic;
#[cfg(feature = "engines")]
mod engine;
#[cfg(feature = "engines")]
mod event;
mod gemm;
#[cfg(feature = "graph")]
mod graph;
#[cfg(feature = "engines")]
mod kernel;
#[cfg(feature = "engines")]
mod kernel_cache;
#[cfg(feature = "engines")]
mod kernel_context;
#[cfg(feature = "engines")]
mod kernel_named;
#[cfg(feature = "engines")]
mod kernel_options;
#[cfg(feature = "engines")]
mod memory;
#[cfg(feature = "engines")]
mod native;
mod notice;
#[cfg(feature = "kernels")]
mod operators;
#[cfg(feature = "engines")]
mod packed;
#[cfg(feature = "engines")]
mod pinned;
#[cfg(feature = "graph")]
mod placement;
#[cfg(feature = "graph")]
mod program;
#[cfg(feature = "graph")]
mod program_stats;
#[cfg(feature = "graph")]
mod progress;
#[cfg(feature = "engines")]
mod resource;
#[cfg(feature = "graph")]
mod run;
#[cfg(feature = "engines")]
mod source;
#[cfg(feature = "engines")]
mod stream;
mod structs;
#[cfg(feature = "engines")]
mod sync;
#[cfg(feature = "engines")]
mod table;
mod task;
mod task_group;
#[cfg(feature = "engines")]
mod tensor;
mod threadpool;
#[cfg(feature = "graph")]
mod trace;
#[cfg(feature = "engines")]
mod transfer;
#[cfg(feature = "engines")]
mod variable;
mod version;

#[cfg(feature = "engines")]
pub use self::{
    buffer::*, conformance::*, cuda::*, device::*, dlpack::*, domain::*, dynamic::*, engine::*, event::*, kernel::*,
    kernel_cache::*, kernel_context::*, kernel_named::*, memory::*, native::*, packed::*, pinned::*, resource::*,
    stream::*, sync::*, table::*, tensor::*, transfer::*, variable::*,
};
#[cfg(feature = "graph")]
pub use self::{
    comm::*, conformance_comm::*, control::*, frames::*, graph::*, placement::*, program::*, program_stats::*, run::*,
    trace::*,
};
pub use self::{failure::*, gemm::*, task_group::*, threadpool::*, version::*};
#[cfg(feature = "kernels")]
pub use operators::*;
