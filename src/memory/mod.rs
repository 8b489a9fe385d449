//! Memory: the library's own heap with its reserve, aligned buffers, and views of tensors.

mod buffer;
pub mod heap;
mod view;

pub use buffer::{ALIGNMENT, Buffer};
pub use view::{Element, Shards, View, overlaps};
