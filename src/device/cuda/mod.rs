//! CUDA devices.
//!
//! - `table`, `driver`, `status`: the driver's functions, found when somebody first asks; what its answers mean.
//! - `context`: whose context is current, calls, and what happens when a device is lost.
//! - `stream`, `event`, `memory`, `host`: what their names say; `host` is the host's memory, pinned.
//! - `capture`: what the host captures from a stream of its own.
//! - `kernel`, `ready`, `custom`, `module`, `nvrtc`, `compiled`, `disk`: kernels and their launches, also such as are
//!   kept; those of the host's, from source to image.
//! - `builtin`, `operators`, `plan`, `walk`, `images`: the built-in operations; what each launches, and the modules
//!   that ship with the library.
//! - `product`, `blas`: matrix products by cuBLASLt.
//! - `graph`, `conditional`: recordings, as graphs of the driver's; their branches and loops.
//! - `facts`, `device`, `downcast`: the device behind the traits of the room `device`.
//!
//! The bindings (cudarc) open the driver's library and give types and constants. Their safe layer is not used: it makes
//! calls of its own around each launch, and keeps errors for whoever calls next. Nor are their functions: those panic
//! where a library lacks one.

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
pub use device::{CudaDevice, Devices};
pub use facts::Facts;
pub use operators::operator;
