//! libweir_testing: what only tests of programs with weir need.
//!
//! - An emulated device: streams, events, memory of its own, recordings, faults and a checker, without a device
//!   (`emulated`). It is a plug-in like any other: it is registered with libweir through `weir_device_register`.
//! - A pool with a seeded order (`seeded`), which is a host's pool like any other.
//!
//! This library calls libweir by its C interface only. It shares no Rust items with it at run time: the C types and the
//! small basics (errors, clocks, locks) are the same sources, compiled a second time as this library's own.
#![allow(clippy::missing_safety_doc, reason = "the C documentation above each function is its contract")]
#![allow(rustdoc::broken_intra_doc_links, reason = "the comments are for the C header: i[d] is an index, no link")]

#[allow(dead_code, reason = "libweir uses the rest")]
#[path = "../../src/ffi/argument.rs"]
mod argument;
#[allow(dead_code, unused_imports, clippy::wrong_self_convention, reason = "libweir uses the rest")]
#[path = "../../src/base/mod.rs"]
mod base;
#[allow(dead_code, unused_imports, reason = "libweir uses the rest")]
#[path = "../../src/device/predicate.rs"]
mod predicate;
#[allow(dead_code, unused_imports, reason = "libweir uses the rest")]
#[path = "../../src/sync/mod.rs"]
mod sync;
#[allow(dead_code, unused_imports, reason = "libweir uses the rest")]
#[path = "../../src/ffi/versioned.rs"]
mod versioned;

#[allow(dead_code, unused_imports, reason = "libweir uses the rest")]
mod abi;
mod diagnostics;
mod emulated;
pub mod emulation;
mod library;
mod memory;
mod seeded;

pub use diagnostics::*;
pub use emulated::{Emulated, Emulation, Party, Race, RaceKind, VTABLE};
pub use seeded::{start as start_seeded, weir_threadpool_create_seeded};
