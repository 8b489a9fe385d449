//! The types that the library and C share: plain `#[repr(C)]` types, integer typedefs, callback types.
//!
//! No functions and no logic live here, so every room can name a C type without knowing the border (`ffi`).
#![allow(non_camel_case_types)]
#![allow(rustdoc::broken_intra_doc_links, reason = "the comments are for the C header: bias[N] is a shape, no link")]

pub mod comm;
pub mod conformance;
pub mod control;
pub mod cuda;
pub mod device;
pub mod dlpack;
pub mod gemm;
pub mod handles;
pub mod kernel;
pub mod kernel_cache;
pub mod memory;
pub mod notice;
pub mod packed;
pub mod program;
pub mod recipe;
pub mod recording;
pub mod region;
pub mod resource;
pub mod run;
pub mod runtime;
pub mod status;
pub mod stream;
pub mod tensor;
pub mod threadpool;
pub mod trace;

pub use comm::*;
pub use conformance::*;
pub use control::*;
pub use cuda::*;
pub use device::*;
pub use dlpack::*;
pub use gemm::*;
pub use handles::*;
pub use kernel::*;
pub use kernel_cache::*;
pub use memory::*;
pub use notice::*;
pub use packed::*;
pub use program::*;
pub use recipe::*;
pub use recording::*;
pub use region::*;
pub use resource::*;
pub use run::*;
pub use runtime::*;
pub use status::*;
pub use stream::*;
pub use tensor::*;
pub use threadpool::*;
pub use trace::*;
