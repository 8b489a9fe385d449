//! Stream capture.

use crate::abi::{EdgeData, Handle, In, Out};
use crate::capture::{RELAXED, exchange_mode};
use crate::status::{Code, Result};
use crate::world::lock;

fn info(
    stream: Handle,
    status: Out<i32>,
    id: Out<u64>,
    graph: Out<Handle>,
    nodes: Out<*const Handle>,
    count: Out<usize>,
) -> Result {
    status.check()?;
    let mut world = lock();
    let stream = world.stream(stream)?;
    world.check_legacy(stream)?;
    let (state, number, of) = world.capture_status(stream);
    if state == 1 {
        id.set_if_wanted(number);
        graph.set_if_wanted(of);
        let after = world.joined(stream).map(|joined| joined.after.clone()).unwrap_or_default();
        count.set_if_wanted(after.len());
        if !nodes.is_null() {
            // The program may read it until the stream's next call: the driver keeps it for good.
            nodes.set(Box::leak(after.into_boxed_slice()).as_ptr())?;
        }
    }
    status.set(state)
}

fn update(stream: Handle, nodes: In<Handle>, count: usize, flags: u32) -> Result {
    let nodes = nodes.list(count)?;
    let mut world = lock();
    let stream = world.stream(stream)?;
    if flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    world.update_capture(stream, &nodes, flags == 1)
}

crate::entries! {
    fn cuStreamBeginCapture_v2(stream: Handle, mode: i32) {
        let mut world = lock();
        let stream = world.stream(stream)?;
        world.begin_capture(stream, mode, None)
    }

    fn cuStreamBeginCaptureToGraph(
        stream: Handle, graph: Handle, before: In<Handle>, edges: In<EdgeData>, count: usize, mode: i32,
    ) {
        let _ = edges;
        let before = before.list(count)?;
        let mut world = lock();
        let stream = world.stream(stream)?;
        world.begin_capture(stream, mode, Some((graph, before)))
    }

    fn cuStreamEndCapture(stream: Handle, graph: Out<Handle>) {
        graph.check()?;
        let mut world = lock();
        let stream = world.stream(stream)?;
        graph.set(Handle::NULL)?;
        graph.set(world.end_capture(stream)?)
    }

    fn cuStreamIsCapturing(stream: Handle, status: Out<i32>) {
        let mut world = lock();
        let stream = world.stream(stream)?;
        world.check_legacy(stream)?;
        status.set(world.capture_status(stream).0)
    }

    fn cuStreamGetCaptureInfo_v2(
        stream: Handle, status: Out<i32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<*const Handle>,
        count: Out<usize>,
    ) {
        info(stream, status, id, graph, nodes, count)
    }

    fn cuStreamGetCaptureInfo_v3(
        stream: Handle, status: Out<i32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<*const Handle>,
        edges: Out<*const EdgeData>, count: Out<usize>,
    ) {
        edges.set_if_wanted(std::ptr::null());
        info(stream, status, id, graph, nodes, count)
    }

    fn cuStreamUpdateCaptureDependencies(stream: Handle, nodes: In<Handle>, count: usize, flags: u32) {
        update(stream, nodes, count, flags)
    }

    fn cuStreamUpdateCaptureDependencies_v2(
        stream: Handle, nodes: In<Handle>, edges: In<EdgeData>, count: usize, flags: u32,
    ) {
        let _ = edges;
        update(stream, nodes, count, flags)
    }

    fn cuThreadExchangeStreamCaptureMode(mode: Out<i32>) {
        let new = mode.get()?;
        if !(0..=RELAXED).contains(&new) {
            return Err(Code::INVALID_VALUE);
        }
        mode.set(exchange_mode(new))
    }
}
