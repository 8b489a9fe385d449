//! Nodes of graphs.

use super::launch::pack;
use crate::abi::{
    ConditionalNodeParams, Copy3D, EdgeData, GraphNodeParams, Handle, HostNodeParams, In, KernelNodeParams,
    MemsetNodeParams, Out,
};
use crate::call;
use crate::graph::{Choice, Conditional, InUse, Setting, Work};
use crate::operation::{Copy, Fill, Host, Launch, Operation};
use crate::settings::SETTINGS;
use crate::status::{Code, Result};
use crate::world::{World, lock};
use std::sync::Arc;

/// From here on there are IF with else, and SWITCH.
const CHOICES: i32 = 12_080;

pub fn kernel(world: &World, params: &KernelNodeParams) -> Result<Work> {
    let function = world.functions.get(&params.function).ok_or(Code::INVALID_HANDLE)?;
    function.check(params.grid, params.block, params.shared)?;
    let packed = pack(function, params.params, params.extra)?;
    Ok(Work::Operation(Operation::Launch(Launch {
        function: Arc::clone(function),
        grid: params.grid,
        block: params.block,
        shared: params.shared,
        params: packed,
    })))
}

pub fn memcpy(copy: &Copy3D) -> Result<Work> {
    let copy = Copy::of_3d(copy)?;
    if copy.is_empty() {
        return Err(Code::INVALID_VALUE);
    }
    copy.check()?;
    Ok(Work::Operation(Operation::Copy(copy)))
}

pub fn memset(p: &MemsetNodeParams) -> Result<Work> {
    let (width, height) = (p.width as u64, p.height as u64);
    let fill = Fill::of_node(p.dst, p.pitch as u64, p.value, p.element_size, width, height)?;
    if width == 0 || height == 0 {
        return Err(Code::INVALID_VALUE);
    }
    fill.check()?;
    Ok(Work::Operation(Operation::Fill(fill)))
}

pub fn host(params: &HostNodeParams) -> Result<Work> {
    let host = Host::new(params.function, params.data)?;
    Ok(Work::Operation(Operation::Host(host)))
}

fn child(world: &mut World, graph: Handle, child: Handle) -> Result<Work> {
    if graph == child {
        return Err(Code::INVALID_VALUE);
    }
    world.clone_graph(child, Some(graph)).map(|(copy, _)| Work::Child(copy))
}

fn event(world: &World, event: Handle) -> Result<Handle> {
    if world.events.contains_key(&event) { Ok(event) } else { Err(Code::INVALID_HANDLE) }
}

fn conditional(world: &mut World, graph: Handle, params: &ConditionalNodeParams) -> Result<Work> {
    let root = world.root(graph);
    let setting = *world.graph(root)?.handles.get(&params.handle).ok_or(Code::INVALID_VALUE)?;
    if !world.is_inside(graph, setting.graph) || params.context != setting.context {
        return Err(Code::INVALID_VALUE);
    }
    if world.graph(graph)?.context.is_some_and(|context| context != params.context) {
        return Err(Code::INVALID_VALUE);
    }
    if world.is_decided(root, params.handle) {
        // A handle is for one node.
        return Err(Code::INVALID_VALUE);
    }
    let has_choices = SETTINGS.version >= CHOICES;
    let kind = match (params.kind, params.size) {
        (0, 1) => Choice::If,
        (0, 2) if has_choices => Choice::If,
        (1, 1) => Choice::While,
        (2, 1..) if has_choices => Choice::Switch,
        _ => return Err(Code::INVALID_VALUE),
    };
    let bodies: Vec<Handle> = (0..params.size).map(|_| world.new_graph(Some(graph), true)).collect();
    for body in &bodies {
        world.graph(*body)?.context = Some(params.context);
    }
    Ok(Work::Conditional(Conditional { handle: params.handle, kind, bodies }))
}

impl World {
    /// Whether a node of the graph, or of those in it, decides by this handle.
    pub fn is_decided(&self, graph: Handle, handle: u64) -> bool {
        self.graphs.get(&graph).is_some_and(|graph| {
            graph.nodes.iter().any(|node| match &node.work {
                Work::Conditional(conditional) => {
                    conditional.handle == handle || conditional.bodies.iter().any(|body| self.is_decided(*body, handle))
                }
                Work::Child(child) => self.is_decided(*child, handle),
                _ => false,
            })
        })
    }
}

fn add(
    node: Out<Handle>,
    graph: Handle,
    before: In<Handle>,
    count: usize,
    work: impl FnOnce(&mut World) -> Result<Work>,
) -> Result {
    node.check()?;
    let _use = InUse::new(graph);
    let mut before = before.list(count)?;
    before.retain(|_| call::injected("edge") != Some(Code(0)));
    let mut world = lock();
    world.graph(graph)?;
    let work = work(&mut world)?;
    let new = world.add_node(graph, &before, work)?;
    node.set(new)
}

fn add_any(node: Out<Handle>, graph: Handle, before: In<Handle>, count: usize, params: Out<GraphNodeParams>) -> Result {
    let given = params.get()?;
    // SAFETY: `kind` says which of the members the program has filled.
    let of = unsafe {
        match given.kind {
            0 => Given::Kernel(given.of.kernel),
            1 => Given::Copy(given.of.memcpy.copy),
            2 => Given::Set(given.of.memset),
            3 => Given::Host(given.of.host),
            4 => Given::Child(given.of.handle),
            5 => Given::Empty,
            6 => Given::Wait(given.of.handle),
            7 => Given::Record(given.of.handle),
            // What has no meaning must be zero.
            13 if given.of.reserved[4..].iter().any(|word| *word != 0) => return Err(Code::INVALID_VALUE),
            13 => Given::Conditional(given.of.conditional),
            _ => return Err(Code::NOT_SUPPORTED),
        }
    };
    let mut made = Vec::new();
    add(node, graph, before, count, |world| {
        let work = match &of {
            Given::Kernel(params) => kernel(world, params),
            Given::Copy(copy) => memcpy(copy),
            Given::Set(params) => memset(params),
            Given::Host(params) => host(params),
            Given::Child(graph_in) => child(world, graph, *graph_in),
            Given::Empty => Ok(Work::Operation(Operation::Nothing)),
            Given::Wait(of) => event(world, *of).map(Work::Wait),
            Given::Record(of) => event(world, *of).map(Work::Record),
            Given::Conditional(params) => conditional(world, graph, params),
        }?;
        if let Work::Conditional(conditional) = &work {
            made.clone_from(&conditional.bodies);
        }
        Ok(work)
    })?;
    if let Given::Conditional(mut filled) = of {
        // The bodies, in memory that the driver keeps; the program fills them.
        filled.bodies = Box::leak(made.into_boxed_slice()).as_mut_ptr();
        let mut back = given;
        back.of.conditional = filled;
        params.set(back)?;
    }
    Ok(())
}

enum Given {
    Kernel(KernelNodeParams),
    Copy(Copy3D),
    Set(MemsetNodeParams),
    Host(HostNodeParams),
    Child(Handle),
    Empty,
    Wait(Handle),
    Record(Handle),
    Conditional(ConditionalNodeParams),
}

/// Another work of the same sort for a node of a graph.
fn set(node: Handle, work: impl FnOnce(&World) -> Result<Work>) -> Result {
    let mut world = lock();
    let _use = InUse::new(world.graph_of(node)?);
    let work = work(&world)?;
    let found = world.node(node)?;
    if found.work.kind() != work.kind() {
        return Err(Code::INVALID_VALUE);
    }
    found.work = work;
    Ok(())
}

crate::entries! {
    fn cuGraphAddKernelNode_v2(
        node: Out<Handle>, graph: Handle, before: In<Handle>, count: usize, params: In<KernelNodeParams>,
    ) {
        let params = params.get()?;
        add(node, graph, before, count, |world| kernel(world, &params))
    }

    fn cuGraphAddMemcpyNode(
        node: Out<Handle>, graph: Handle, before: In<Handle>, count: usize, copy: In<Copy3D>, context: Handle,
    ) {
        let copy = copy.get()?;
        add(node, graph, before, count, |world| {
            if !world.contexts.contains_key(&context) {
                return Err(Code::INVALID_VALUE);
            }
            memcpy(&copy)
        })
    }

    fn cuGraphAddMemsetNode(
        node: Out<Handle>, graph: Handle, before: In<Handle>, count: usize, params: In<MemsetNodeParams>,
        context: Handle,
    ) {
        let params = params.get()?;
        add(node, graph, before, count, |world| {
            if !world.contexts.contains_key(&context) {
                return Err(Code::INVALID_VALUE);
            }
            memset(&params)
        })
    }

    fn cuGraphAddHostNode(
        node: Out<Handle>, graph: Handle, before: In<Handle>, count: usize, params: In<HostNodeParams>,
    ) {
        let params = params.get()?;
        add(node, graph, before, count, |_| host(&params))
    }

    fn cuGraphAddEmptyNode(node: Out<Handle>, graph: Handle, before: In<Handle>, count: usize) {
        add(node, graph, before, count, |_| Ok(Work::Operation(Operation::Nothing)))
    }

    fn cuGraphAddChildGraphNode(
        node: Out<Handle>, graph: Handle, before: In<Handle>, count: usize, inner: Handle,
    ) {
        add(node, graph, before, count, |world| child(world, graph, inner))
    }

    fn cuGraphAddEventRecordNode(
        node: Out<Handle>, graph: Handle, before: In<Handle>, count: usize, of: Handle,
    ) {
        add(node, graph, before, count, |world| event(world, of).map(Work::Record))
    }

    fn cuGraphAddEventWaitNode(
        node: Out<Handle>, graph: Handle, before: In<Handle>, count: usize, of: Handle,
    ) {
        add(node, graph, before, count, |world| event(world, of).map(Work::Wait))
    }

    fn cuGraphAddNode(
        node: Out<Handle>, graph: Handle, before: In<Handle>, count: usize, params: Out<GraphNodeParams>,
    ) {
        add_any(node, graph, before, count, params)
    }

    fn cuGraphAddNode_v2(
        node: Out<Handle>, graph: Handle, before: In<Handle>, edges: In<EdgeData>, count: usize,
        params: Out<GraphNodeParams>,
    ) {
        // Only whole nodes wait for whole nodes.
        if !edges.is_null() && edges.list(count)?.iter().any(|edge| *edge != EdgeData::default()) {
            return Err(Code::NOT_SUPPORTED);
        }
        add_any(node, graph, before, count, params)
    }

    fn cuGraphKernelNodeSetParams_v2(node: Handle, params: In<KernelNodeParams>) {
        let params = params.get()?;
        set(node, |world| kernel(world, &params))
    }

    fn cuGraphMemcpyNodeSetParams(node: Handle, copy: In<Copy3D>) {
        let copy = copy.get()?;
        set(node, |_| memcpy(&copy))
    }

    fn cuGraphMemsetNodeSetParams(node: Handle, params: In<MemsetNodeParams>) {
        let params = params.get()?;
        set(node, |_| memset(&params))
    }

    fn cuGraphConditionalHandleCreate(handle: Out<u64>, graph: Handle, context: Handle, value: u32, flags: u32) {
        handle.check()?;
        let _use = InUse::new(graph);
        let mut world = lock();
        world.graph(graph)?;
        let root = world.root(graph);
        if flags > 1 || !world.contexts.contains_key(&context) {
            return Err(Code::INVALID_VALUE);
        }
        let handles = &mut world.graph(root)?.handles;
        let new = 0xc0de_0000_0000 | (root.number() as u64) << 16 | (handles.len() as u64 + 1);
        // Without the flag it has no value until a kernel sets one.
        handles.insert(new, Setting { graph, context, value: (flags == 1).then_some(value) });
        handle.set(new)
    }
}
