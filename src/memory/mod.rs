//! Memory: the library's own heap with its reserve, aligned buffers, a stock of them, and views of tensors.

mod buffer;
mod flags;
pub mod heap;
mod stock;
mod view;

pub use buffer::{ALIGNMENT, Buffer};
pub use flags::Flags;
pub use stock::{Lease, Stock};
pub use view::{Element, Shards, View, overlaps};
