//! Memory: the library's own heap with its reserve, aligned buffers, a stock of scratch buffers, an engine's memory
//! pool, views of tensors and their checked bytes, and slots for tensors whose shape is known only at run time.

mod buffer;
mod classes;
mod element;
mod flags;
pub mod heap;
mod pool;
#[cfg(all(test, not(loom)))]
mod pool_tests;
mod pool_text;
mod process;
mod slot;
mod source;
mod space;
mod stock;
mod stream_cache;
mod tag;
mod view;

pub use buffer::{ALIGNMENT, AlignedBuffer};
pub use element::{Bf16, Bool, F16};
pub use flags::Flags;
pub use pool::{MemoryBlock, Pool, PoolAttr, StreamCache, Usage};
pub use slot::ValueSlot;
pub use source::{HostAllocator, ProcessMemory, Source};
pub use stock::{Lease, ScratchStock};
pub use stream_cache::Progress;
pub use tag::Tag;
pub use view::{Bytes, BytesMut, Element, Parts, Shards, View, overlaps};
