//! Buffers, and views of tensors.
#![allow(dead_code, unused_imports, reason = "libweir uses the rest")]

#[path = "../../src/memory/buffer.rs"]
mod buffer;
#[path = "../../src/memory/element.rs"]
mod element;
#[path = "../../src/memory/process.rs"]
mod process;
#[path = "../../src/memory/view.rs"]
mod view;

pub use buffer::{ALIGNMENT, AlignedBuffer};
pub use element::{Bf16, Bool, F16};
pub use view::{Element, View};
