//! weir: a device layer with a C ABI that runs on the host's own threads.
//!
//! The products are the shared library with the headers in `include`, and the crate `weir`, which is the interface for
//! Rust. The items here are for these, and for tests and benches; they are not a stable API. Rooms, in the order data
//! flows; each imports only rooms to its left (`tests/layering.rs`):
//!
//! `abi -> base -> {ops, sync} -> trace -> {threadpool, memory} -> device -> kernel -> stream -> resource -> engine`
//! `-> graph -> comm -> ffi`

#[doc(hidden)]
pub mod abi;
#[doc(hidden)]
pub mod base;
#[doc(hidden)]
pub mod sync;
#[doc(hidden)]
pub mod trace;

#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub mod threadpool;

#[cfg(feature = "graph")]
#[doc(hidden)]
pub mod comm;
#[doc(hidden)]
pub mod device;
#[doc(hidden)]
pub mod engine;
#[cfg(feature = "graph")]
#[doc(hidden)]
pub mod graph;
#[doc(hidden)]
pub mod kernel;
#[doc(hidden)]
pub mod ops;
#[doc(hidden)]
pub mod resource;
#[doc(hidden)]
pub mod stream;

#[cfg(not(loom))]
#[doc(hidden)]
pub mod ffi;
