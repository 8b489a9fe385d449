//! The host's objects: engines, and the streams, events, tensors and kernels that belong to them.
//!
//! An engine ties a device to settings and to an account of its queues. A `Stream` is a queue with an engine; its pool
//! is resolved at creation: the stream's own, else the engine's, else none. The engine's thread mode (`threads`)
//! decides where its pool comes from. `call` turns a kernel and its tensors into queue work, `launch` does so on an
//! accelerator, `transfer` copies and fills.

mod apart;
mod attr;
mod buffer;
mod call;
mod conformance;
mod device_conformance;
#[allow(clippy::module_inception, reason = "the room and its chief noun have the same name")]
mod engine;
mod enqueue;
mod event;
mod kernel;
mod later;
mod launch;
mod memory;
mod native;
mod on_host;
mod packed;
mod pinned;
mod prepared;
mod registered;
mod staged;
mod stream;
mod tensor;
mod threads;
mod transfer;
mod variable;

pub use apart::{Apart, TensorRange};
pub use attr::{EngineAttr, KernelOptions, MemoryMode, StreamAttr, ThreadMode};
pub use buffer::Buffer;
pub use call::{Borrowed, check_tensor, scratch_slots};
pub use conformance::examine;
pub use device_conformance::examine_device;
pub use engine::Engine;
pub use event::Event;
pub use kernel::{BoundKernel, KernelIdentity};
pub use launch::{LaunchKey, Tensors};
pub use packed::PackedWeights;
pub use prepared::PreparedCall;
pub use stream::Stream;
pub use tensor::Tensor;
pub use threads::checked_thread_count;
pub use variable::{device_sum, side_of};

pub use crate::device::{count, devices};
pub use crate::stream::{Domain, DomainId, Extent, Scope, Synced, sync_all, sync_each, time_ns};

use crate::abi::weir_engine_kind;
use crate::base::Result;
use crate::device::DeviceKind;

/// Checks an engine kind from C.
pub fn checked_kind(kind: weir_engine_kind) -> Result<DeviceKind> {
    DeviceKind::from_value(kind)
}
