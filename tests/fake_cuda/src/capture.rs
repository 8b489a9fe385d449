//! Stream capture: work that is submitted becomes nodes of a graph.

use crate::abi::Handle;
use crate::graph::Work;
use crate::settings::SETTINGS;
use crate::status::{Code, Result};
use crate::world::{NON_BLOCKING, World};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::thread::ThreadId;

pub const GLOBAL: i32 = 0;
pub const THREAD_LOCAL: i32 = 1;
pub const RELAXED: i32 = 2;

#[derive(Debug, Default)]
pub struct Captures {
    last: u64,
    live: BTreeMap<u64, Capture>,
}

#[derive(Debug)]
struct Capture {
    graph: Handle,
    /// The stream in which it began and must end.
    origin: Handle,
    mode: i32,
    thread: ThreadId,
    is_invalid: bool,
    /// The graph is the program's; else it is made by the capture.
    is_given: bool,
}

/// A stream's part in a capture.
#[derive(Clone, Debug)]
pub struct Joined {
    pub capture: u64,
    /// What its next node comes behind.
    pub after: Vec<Handle>,
}

thread_local! {
    static MODE: Cell<i32> = const { Cell::new(GLOBAL) };
}

pub fn exchange_mode(mode: i32) -> i32 {
    MODE.replace(mode)
}

/// Functions that may use or wait for the default stream behind the scenes.
fn is_unsafe(name: &str) -> bool {
    matches!(
        name,
        "cuMemAlloc_v2"
            | "cuMemFree_v2"
            | "cuMemHostAlloc"
            | "cuMemFreeHost"
            | "cuMemHostRegister_v2"
            | "cuMemHostUnregister"
            | "cuModuleLoadData"
            | "cuModuleLoadDataEx"
            | "cuModuleUnload"
            | "cuCtxSynchronize"
            | "cuStreamSynchronize"
            | "cuStreamQuery"
            | "cuEventSynchronize"
            | "cuEventQuery"
            | "cuMemcpyHtoD_v2"
            | "cuMemcpyDtoH_v2"
            | "cuMemcpyDtoD_v2"
            | "cuMemcpy"
            | "cuMemsetD8_v2"
            | "cuMemPoolTrimTo"
    )
}

/// Functions that put work into a stream, and others that a driver never forbids.
fn is_safe(name: &str) -> bool {
    name.ends_with("Async")
        || name.ends_with("Async_v2")
        || name.starts_with("cuLaunch")
        || name.starts_with("cuGraphExec") && name.contains("Set")
        || matches!(
            name,
            "cuEventRecord"
                | "cuEventRecordWithFlags"
                | "cuStreamWaitEvent"
                | "cuStreamIsCapturing"
                | "cuStreamEndCapture"
                | "cuGraphLaunch"
                | "cuThreadExchangeStreamCaptureMode"
        )
}

/// Whether the thread may call this while captures go on; if not, they are spoilt.
pub fn check_call(world: &mut World, name: &str) -> Result {
    if SETTINGS.others_capture && MODE.get() != RELAXED && !is_safe(name) {
        crate::call::stop(&format!("{name} is called by a thread that is not relaxed while another one captures"));
    }
    if world.captures.live.is_empty() || !is_unsafe(name) {
        return Ok(());
    }
    let (me, mode) = (std::thread::current().id(), MODE.get());
    let mut is_forbidden = false;
    for capture in world.captures.live.values_mut() {
        let is_mine = capture.thread == me && capture.mode != RELAXED;
        let forbids = match mode {
            RELAXED => false,
            THREAD_LOCAL => is_mine,
            _ => is_mine || capture.mode == GLOBAL,
        };
        capture.is_invalid |= forbids;
        is_forbidden |= forbids;
    }
    if is_forbidden { Err(Code::STREAM_CAPTURE_UNSUPPORTED) } else { Ok(()) }
}

impl World {
    pub fn joined(&self, stream: Handle) -> Option<&Joined> {
        self.streams.get(&stream)?.joined.as_ref()
    }

    /// Work for a stream that captures goes into the graph. None: the stream does not.
    pub fn capture(&mut self, stream: Handle, work: Work) -> Result<Option<Handle>> {
        let Some(joined) = self.joined(stream).cloned() else {
            return self.check_legacy(stream).map(|()| None);
        };
        let graph = self.captured_graph(joined.capture)?;
        let node = self.add_node(graph, &joined.after, work).inspect_err(|_| self.spoil(joined.capture))?;
        if let Some(joined) = self.streams.get_mut(&stream).and_then(|stream| stream.joined.as_mut()) {
            joined.after = vec![node];
        }
        Ok(Some(node))
    }

    /// The legacy stream cannot be used while a blocking stream captures: it would wait for that one.
    pub fn check_legacy(&mut self, stream: Handle) -> Result {
        let is_legacy = self.contexts.values().any(|context| context.legacy == stream);
        if !is_legacy {
            return Ok(());
        }
        let spoilt: Vec<u64> = self
            .streams
            .values()
            .filter(|other| other.flags & NON_BLOCKING == 0)
            .filter_map(|other| other.joined.as_ref().map(|joined| joined.capture))
            .collect();
        spoilt.iter().for_each(|capture| self.spoil(*capture));
        if spoilt.is_empty() { Ok(()) } else { Err(Code::STREAM_CAPTURE_IMPLICIT) }
    }

    pub fn spoil(&mut self, capture: u64) {
        if let Some(capture) = self.captures.live.get_mut(&capture) {
            capture.is_invalid = true;
        }
    }

    fn captured_graph(&self, capture: u64) -> Result<Handle> {
        match self.captures.live.get(&capture) {
            Some(capture) if capture.is_invalid => Err(Code::STREAM_CAPTURE_INVALIDATED),
            Some(capture) => Ok(capture.graph),
            None => Err(Code::ILLEGAL_STATE),
        }
    }

    /// A call that a stream cannot take while it captures.
    pub fn refuse_captured(&mut self, stream: Handle) -> Result {
        match self.joined(stream).map(|joined| joined.capture) {
            Some(capture) => {
                self.spoil(capture);
                Err(Code::STREAM_CAPTURE_UNSUPPORTED)
            }
            None => self.check_legacy(stream),
        }
    }

    pub fn begin_capture(&mut self, stream: Handle, mode: i32, to: Option<(Handle, Vec<Handle>)>) -> Result {
        if !(GLOBAL..=RELAXED).contains(&mode) {
            return Err(Code::INVALID_VALUE);
        }
        if self.contexts.values().any(|context| context.legacy == stream) {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        if self.joined(stream).is_some() {
            return Err(Code::ILLEGAL_STATE);
        }
        let is_given = to.is_some();
        let (graph, after) = match to {
            Some((graph, after)) => {
                let found = self.graph(graph)?;
                if after.iter().any(|node| found.node(*node).is_none()) {
                    return Err(Code::INVALID_VALUE);
                }
                (graph, after)
            }
            None => (self.new_graph(None, false), Vec::new()),
        };
        self.captures.last += 1;
        let id = self.captures.last;
        let thread = std::thread::current().id();
        self.captures.live.insert(id, Capture { graph, origin: stream, mode, thread, is_invalid: false, is_given });
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.joined = Some(Joined { capture: id, after });
        }
        Ok(())
    }

    pub fn end_capture(&mut self, stream: Handle) -> Result<Handle> {
        let joined = self.joined(stream).cloned().ok_or(Code::ILLEGAL_STATE)?;
        let capture = self.captures.live.get(&joined.capture).ok_or(Code::ILLEGAL_STATE)?;
        if capture.origin != stream {
            return Err(Code::STREAM_CAPTURE_UNMATCHED);
        }
        if capture.mode != RELAXED && capture.thread != std::thread::current().id() {
            return Err(Code::STREAM_CAPTURE_WRONG_THREAD);
        }
        let (graph, is_given, mut is_invalid) = (capture.graph, capture.is_given, capture.is_invalid);
        let mut failure = Code::STREAM_CAPTURE_INVALIDATED;
        // What other streams did must lead to what the first one ends with.
        let others: Vec<Handle> = self
            .streams
            .values()
            .filter_map(|other| other.joined.as_ref().filter(|other| other.capture == joined.capture))
            .flat_map(|other| other.after.iter().copied())
            .collect();
        let found = self.graph(graph)?;
        let is_joined = |node: &Handle| joined.after.iter().any(|end| found.leads(*node, *end));
        if !is_invalid && !others.iter().all(is_joined) {
            (is_invalid, failure) = (true, Code::STREAM_CAPTURE_UNJOINED);
        }
        self.captures.live.remove(&joined.capture);
        for other in self.streams.values_mut() {
            if other.joined.as_ref().is_some_and(|other| other.capture == joined.capture) {
                other.joined = None;
            }
        }
        if is_invalid {
            if !is_given {
                self.destroy_graph(graph)?;
            }
            return Err(failure);
        }
        Ok(graph)
    }

    /// CUstreamCaptureStatus, and if it is not 0 the capture's number and graph.
    pub fn capture_status(&self, stream: Handle) -> (i32, u64, Handle) {
        let capture =
            self.joined(stream).and_then(|joined| Some((joined.capture, self.captures.live.get(&joined.capture)?)));
        match capture {
            None => (0, 0, Handle::NULL),
            Some((id, capture)) if capture.is_invalid => (2, id, Handle::NULL),
            Some((id, capture)) => (1, id, capture.graph),
        }
    }

    /// A stream waits for an event that was recorded in a capture: it takes part in that from here on.
    pub fn wait_captured(&mut self, stream: Handle, capture: u64, nodes: &[Handle]) -> Result {
        self.captured_graph(capture)?;
        let found = self.streams.get_mut(&stream).ok_or(Code::INVALID_HANDLE)?;
        match &mut found.joined {
            None => found.joined = Some(Joined { capture, after: nodes.to_vec() }),
            Some(joined) if joined.capture == capture => {
                joined.after.extend(nodes);
                joined.after.sort();
                joined.after.dedup();
            }
            Some(joined) => {
                let other = joined.capture;
                self.spoil(other);
                self.spoil(capture);
                return Err(Code::STREAM_CAPTURE_MERGE);
            }
        }
        Ok(())
    }

    /// Sets or extends what the stream's next node comes behind.
    pub fn update_capture(&mut self, stream: Handle, nodes: &[Handle], is_set: bool) -> Result {
        let capture = self.joined(stream).ok_or(Code::ILLEGAL_STATE)?.capture;
        let graph = self.captured_graph(capture)?;
        let found = self.graph(graph)?;
        if nodes.iter().any(|node| found.node(*node).is_none()) {
            return Err(Code::INVALID_VALUE);
        }
        if let Some(joined) = self.streams.get_mut(&stream).and_then(|stream| stream.joined.as_mut()) {
            if is_set {
                joined.after.clear();
            }
            joined.after.extend(nodes);
            joined.after.sort();
            joined.after.dedup();
        }
        Ok(())
    }
}
