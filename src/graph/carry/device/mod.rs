//! Devices carry a part of a run: by streams, by recordings, or driven by the host on their data.

pub(in crate::graph) mod control;
pub(in crate::graph) mod device_frame;
pub(in crate::graph) mod direct;
pub(in crate::graph) mod direct_tape;
pub(in crate::graph) mod driven;
pub(in crate::graph) mod frame_stream;
pub(in crate::graph) mod frames;
pub(in crate::graph) mod kernels;
pub(in crate::graph) mod part;
pub(in crate::graph) mod pick;
pub(in crate::graph) mod replays;
pub(in crate::graph) mod segment;
pub(in crate::graph) mod timing;
pub(in crate::graph) mod to_host;

use crate::base::Ref;
use crate::engine::Engine;
use direct::Direct;
use frames::DeviceFrames;
use std::sync::Arc;

/// A program's accelerators.
#[derive(Default)]
pub(in crate::graph) struct ProgramDevices {
    pub engines: Vec<Ref<Engine>>,
    /// The frames of its runs.
    pub frames: Option<Arc<DeviceFrames>>,
    /// Set if runs can be issued to a stream of the caller's.
    pub direct: Option<Arc<Direct>>,
}
