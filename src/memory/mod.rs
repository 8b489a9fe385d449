//! Memory: the library's own heap with its reserve, aligned buffers, a stock of them, an engine's memory cut into
//! blocks, views of tensors and what may be read and written of them, slots for tensors whose shape a run decides, and
//! addresses that nobody can touch.

mod buffer;
mod classes;
mod element;
mod flags;
pub mod heap;
mod pool;
#[cfg(test)]
mod pool_tests;
mod pool_text;
mod reserve;
mod slot;
mod source;
mod space;
mod stock;
mod stream_cache;
mod tag;
mod view;

pub use buffer::{ALIGNMENT, Buffer};
pub use element::{Bf16, Bool, F16};
pub use flags::Flags;
pub use pool::{Block, Pool, PoolAttr, StreamCache, Usage};
pub use reserve::Reserve;
pub use slot::Slot;
pub use source::{HostAllocator, HostMemory, Source};
pub use stock::{Lease, Stock};
pub use stream_cache::Progress;
pub use tag::Tag;
pub use view::{Bytes, BytesMut, Element, Parts, Shards, View, overlaps};
