//! CUDA devices.
//!
//! - `table`, `driver`, `status`: the driver's functions, found on first use; the meaning of its statuses.
//! - `context`: the current context, calls, and lost devices.
//! - `stream`, `event`, `memory`; `host`: pinned host memory.
//! - `capture`: captures by the host of streams of its own.
//! - `kernel`, `ready`, `custom`, `module`, `nvrtc`, `compiled`, `disk`: kernels and their launches, also prepared
//!   ones; the host's kernels, from source to image.
//! - `builtin`, `operators`, `plan`, `walk`, `images`: the built-in operations: their launches, and the modules that
//!   ship with the library.
//! - `product`, `blas`: matrix products by cuBLASLt.
//! - `graph`, `conditional`: recordings, as graphs of the driver's; their branches and loops.
//! - `facts`, `device`, `downcast`: the device behind the traits of the room `device`.
//!
//! The bindings (cudarc) open the driver's library and give types and constants. Their safe layer is not used: it makes
//! extra calls around each launch, and defers errors to the next call. Nor are their functions: those panic where a
//! library lacks one.

mod blas;
mod builtin;
mod capture;
mod compiled;
mod conditional;
mod context;
mod custom;
mod device;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(not(target_os = "linux"))]
#[path = "disk/nowhere.rs"]
mod disk;
mod downcast;
mod driver;
mod event;
mod facts;
mod filler;
mod graph;
mod grid;
mod host;
mod images;
mod inbox;
mod kernel;
mod memory;
mod module;
mod node;
mod nvrtc;
mod operators;
mod pages;
mod piece;
pub mod plan;
mod product;
mod ready;
mod status;
mod stream;
mod submit;
mod table;
mod walk;

pub use capture::sweep;
pub use device::{CudaDevice, CudaDevices};
pub use facts::CudaFacts;
pub use operators::operator;
