//! Devices carry a part of a run: their streams, their recordings, or the host by their data.

pub(in crate::graph) mod control;
pub(in crate::graph) mod device_frame;
pub(in crate::graph) mod direct;
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

/// What a program has of engines that work on their own.
#[derive(Default)]
pub(in crate::graph) struct Devices {
    pub engines: Vec<Ref<Engine>>,
    /// What runs have there.
    pub frames: Option<Arc<DeviceFrames>>,
    /// If runs can be issued to a stream of the caller's.
    pub direct: Option<Arc<Direct>>,
}
