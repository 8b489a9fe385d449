//! Reads NVIDIA PTX and runs it on the CPU, so that kernels are tested where there is no GPU.
//!
//! [`Module::parse`] reads a text whole and refuses what it does not know; an [`Entry`] of it runs on a grid of blocks,
//! with global memory behind the trait [`Memory`] and functions from outside behind [`Calls`]. What a GPU would report
//! as an error of the launch is a [`Fault`] that names the kernel, block, thread, line and instruction.
//!
//! Stricter than a GPU on purpose: registers, shared and local memory begin with bits that are no numbers, each thread
//! runs ahead of the others as far as it may, and a barrier that can never be passed is found. A [`Schedule`] turns the
//! order of threads around: what a kernel computes must not change with it.
//!
//! ```
//! use weir_ptx::{Dim, Module, NoCalls, Slice};
//!
//! let module = Module::parse(
//!     ".version 7.0
//!      .target sm_75
//!      .address_size 64
//!      .visible .entry twice(.param .u64 data)
//!      {
//!          .reg .u32 %r<3>;
//!          .reg .u64 %rd<4>;
//!          ld.param.u64 %rd1, [data];
//!          mov.u32 %r1, %tid.x;
//!          mul.wide.u32 %rd2, %r1, 4;
//!          add.u64 %rd3, %rd1, %rd2;
//!          ld.global.u32 %r2, [%rd3];
//!          shl.b32 %r2, %r2, 1;
//!          st.global.u32 [%rd3], %r2;
//!          ret;
//!      }",
//! )?;
//! let mut data = [1u32, 2, 3, 4];
//! let mut memory = Slice::new();
//! memory.add(0x1000, &mut data);
//! let twice = module.entry("twice").unwrap();
//! let blocks: Dim = [1, 1, 1];
//! twice.run(blocks, [4, 1, 1], 0, &0x1000u64.to_le_bytes(), &mut memory, &mut NoCalls).unwrap();
//! assert_eq!(data, [2, 4, 6, 8]);
//! # Ok::<(), String>(())
//! ```

mod decode;
mod module;
mod number;
mod program;
mod run;
mod syntax;
mod types;

pub use module::{Dim, Done, Entry, Global, Module, SHARED_LIMIT};
pub use program::EntryParameter;
pub use run::block::Schedule;
pub use run::call::{Call, Calls, NoCalls};
pub use run::fault::{Fault, FaultKind};
pub use run::memory::{Access, Memory, Plain, Slice};
