//! Memory: the library's own heap with its reserve, aligned buffers, a stock of them, views of tensors, slots for
//! tensors whose shape a run decides, and addresses that nobody can touch.

mod buffer;
mod element;
mod flags;
pub mod heap;
mod reserve;
mod slot;
mod stock;
mod view;

pub use buffer::{ALIGNMENT, Buffer};
pub use element::{Bf16, Bool, F16};
pub use flags::Flags;
pub use reserve::{Reserve, copy_bytes, fill_bytes};
pub use slot::Slot;
pub use stock::{Lease, Stock};
pub use view::{Element, Shards, View, overlaps};
