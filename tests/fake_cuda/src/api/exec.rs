//! Executable graphs.

use super::node::{host, kernel, memcpy, memset};
use crate::abi::{Copy3D, ExecUpdateResult, Handle, HostNodeParams, In, KernelNodeParams, MemsetNodeParams, Out};
use crate::exec::{Act, Body, Step};
use crate::graph::{InUse, Work};
use crate::operation::Operation;
use crate::status::{Code, Result};
use crate::world::{World, lock};
use std::sync::Arc;
use std::time::Duration;

/// The result codes of an update that is refused.
const TOPOLOGY_CHANGED: i32 = 2;
const NODE_TYPE_CHANGED: i32 = 3;
const PARAMETERS_CHANGED: i32 = 5;
const NOT_SUPPORTED: i32 = 6;

fn step(world: &mut World, exec: Handle, node: Handle) -> Result<&mut Step> {
    let exec = world.execs.get_mut(&exec).ok_or(Code::INVALID_HANDLE)?;
    Arc::make_mut(&mut exec.body).find(node).ok_or(Code::INVALID_VALUE)
}

/// Another work of the same sort for a node, from the next launch on.
fn set(exec: Handle, node: Handle, work: impl FnOnce(&World) -> Result<Work>) -> Result {
    let _use = InUse::new(exec);
    let mut world = lock();
    let Work::Operation(operation) = work(&world)? else { return Err(Code::INVALID_VALUE) };
    let step = step(&mut world, exec, node)?;
    match &step.act {
        Act::Operation(old) if step.act.kind() == work_kind(&operation) && old.can_become(&operation) => {
            step.act = Act::Operation(operation);
            Ok(())
        }
        _ => Err(Code::INVALID_VALUE),
    }
}

fn work_kind(operation: &Operation) -> i32 {
    Act::Operation(operation.clone()).kind()
}

/// Why a body cannot become another one, with the node.
fn refusal(old: &Body, new: &Body) -> Option<(i32, Handle)> {
    if old.steps.len() != new.steps.len() {
        let node = new.steps.last().or(old.steps.last()).map_or(Handle::NULL, |step| step.node);
        return Some((TOPOLOGY_CHANGED, node));
    }
    old.steps.iter().zip(&new.steps).find_map(|(old, new)| {
        if old.act.kind() != new.act.kind() {
            return Some((NODE_TYPE_CHANGED, new.node));
        }
        if old.after != new.after {
            return Some((TOPOLOGY_CHANGED, new.node));
        }
        match (&old.act, &new.act) {
            (Act::Child(old), Act::Child(new)) => refusal(old, new),
            (Act::Operation(old), Act::Operation(of)) if !old.can_become(of) => Some((PARAMETERS_CHANGED, new.node)),
            (Act::Conditional { handle: old_handle, .. }, Act::Conditional { handle, .. }) if old_handle != handle => {
                Some((NOT_SUPPORTED, new.node))
            }
            (Act::Conditional { bodies: old, .. }, Act::Conditional { bodies: new, .. }) => {
                old.iter().zip(new).find_map(|(old, new)| refusal(old, new))
            }
            _ => None,
        }
    })
}

/// The new work under the old nodes' handles.
fn update(old: &mut Body, new: &Body) {
    for (old, new) in old.steps.iter_mut().zip(&new.steps) {
        match (&mut old.act, &new.act) {
            (Act::Child(old), Act::Child(new)) => update(Arc::make_mut(old), new),
            (Act::Conditional { bodies: old, .. }, Act::Conditional { bodies: new, .. }) => {
                old.iter_mut().zip(new).for_each(|(old, new)| update(Arc::make_mut(old), new));
            }
            (old, new) => *old = new.clone(),
        }
    }
}

fn instantiate(exec: Out<Handle>, graph: Handle) -> Result {
    exec.check()?;
    let _use = InUse::new(graph);
    let new = lock().instantiate(graph)?;
    exec.set(new)
}

crate::entries! {
    fn cuGraphInstantiateWithFlags(exec: Out<Handle>, graph: Handle, flags: u64) {
        // 1 frees memory of nodes, 2 uploads, 4 is for launches by devices, 8 takes over priorities of nodes.
        if flags & !0b1011 != 0 {
            return Err(Code::INVALID_VALUE);
        }
        instantiate(exec, graph)
    }

    fn cuGraphExecDestroy(exec: Handle) {
        let _use = InUse::new(exec);
        let mut world = lock();
        let mut found = world.execs.remove(&exec).ok_or(Code::INVALID_HANDLE)?;
        let (objects, tail) = (std::mem::take(&mut found.objects), found.tail.clone());
        if !objects.is_empty() {
            // A launch that is under way keeps them until it is over.
            std::thread::spawn(move || {
                while tail.as_ref().is_some_and(|tail| !tail.is_done()) {
                    std::thread::sleep(Duration::from_micros(100));
                }
                drop(objects);
            });
        }
        if found.tail.is_none_or(|tail| tail.is_done()) {
            world.values.retain(|(of, _), _| *of != exec);
        }
        Ok(())
    }

    fn cuGraphUpload(exec: Handle, stream: Handle) {
        let mut world = lock();
        let stream = world.stream(stream)?;
        world.refuse_captured(stream)?;
        world.execs.get(&exec).map(|_| ()).ok_or(Code::INVALID_HANDLE)
    }

    fn cuGraphLaunch(exec: Handle, stream: Handle) {
        let _use = InUse::new(exec);
        let mut world = lock();
        let stream = world.stream(stream)?;
        let found = world.execs.get(&exec).ok_or(Code::INVALID_HANDLE)?;
        if world.joined(stream).is_some() {
            if !found.handles.is_empty() {
                return Err(Code::NOT_SUPPORTED);
            }
            let body = Arc::clone(&found.body);
            return world.capture(stream, Work::Launched(body)).map(|_| ());
        }
        world.check_legacy(stream)?;
        world.launch(exec, stream)
    }

    fn cuGraphExecKernelNodeSetParams_v2(exec: Handle, node: Handle, params: In<KernelNodeParams>) {
        let params = params.get()?;
        set(exec, node, |world| kernel(world, &params))
    }

    fn cuGraphExecMemcpyNodeSetParams(exec: Handle, node: Handle, copy: In<Copy3D>, context: Handle) {
        let (_, copy) = (context, copy.get()?);
        set(exec, node, |_| memcpy(&copy))
    }

    fn cuGraphExecMemsetNodeSetParams(exec: Handle, node: Handle, params: In<MemsetNodeParams>, context: Handle) {
        let (_, params) = (context, params.get()?);
        set(exec, node, |_| memset(&params))
    }

    fn cuGraphExecHostNodeSetParams(exec: Handle, node: Handle, params: In<HostNodeParams>) {
        let params = params.get()?;
        set(exec, node, |_| host(&params))
    }

    fn cuGraphExecChildGraphNodeSetParams(exec: Handle, node: Handle, graph: Handle) {
        let _use = InUse::new(exec);
        let mut world = lock();
        let new = world.body(world.graphs.get(&graph).ok_or(Code::INVALID_HANDLE)?)?;
        let step = step(&mut world, exec, node)?;
        let Act::Child(old) = &mut step.act else { return Err(Code::INVALID_VALUE) };
        if refusal(old, &new).is_some() {
            return Err(Code::GRAPH_EXEC_UPDATE_FAILURE);
        }
        update(Arc::make_mut(old), &new);
        Ok(())
    }

    fn cuGraphExecEventRecordNodeSetEvent(exec: Handle, node: Handle, event: Handle) {
        let _use = InUse::new(exec);
        let mut world = lock();
        world.event(event)?;
        let step = step(&mut world, exec, node)?;
        let Act::Record(old) = &mut step.act else { return Err(Code::INVALID_VALUE) };
        *old = event;
        Ok(())
    }

    fn cuGraphExecEventWaitNodeSetEvent(exec: Handle, node: Handle, event: Handle) {
        let _use = InUse::new(exec);
        let mut world = lock();
        world.event(event)?;
        let step = step(&mut world, exec, node)?;
        let Act::Wait(old) = &mut step.act else { return Err(Code::INVALID_VALUE) };
        *old = event;
        Ok(())
    }

    // Nodes stand for one another in the order in which they were added.
    fn cuGraphExecUpdate_v2(exec: Handle, graph: Handle, result: Out<ExecUpdateResult>) {
        let (_use, _use_graph) = (InUse::new(exec), InUse::new(graph));
        let mut world = lock();
        let new = world.body(world.graphs.get(&graph).ok_or(Code::INVALID_HANDLE)?)?;
        let found = world.execs.get_mut(&exec).ok_or(Code::INVALID_HANDLE)?;
        let (code, node) = refusal(&found.body, &new).unwrap_or((0, Handle::NULL));
        result.set_if_wanted(ExecUpdateResult { result: code, error_node: node, error_from_node: Handle::NULL });
        if code != 0 {
            return Err(Code::GRAPH_EXEC_UPDATE_FAILURE);
        }
        update(Arc::make_mut(&mut found.body), &new);
        Ok(())
    }

    fn cuGraphNodeSetEnabled(exec: Handle, node: Handle, enabled: u32) {
        let _use = InUse::new(exec);
        let mut world = lock();
        let step = step(&mut world, exec, node)?;
        // Kernels, copies and sets.
        if step.act.kind() > 2 {
            return Err(Code::INVALID_VALUE);
        }
        step.is_enabled = enabled != 0;
        Ok(())
    }

    fn cuGraphNodeGetEnabled(exec: Handle, node: Handle, enabled: Out<u32>) {
        let mut world = lock();
        enabled.set(u32::from(step(&mut world, exec, node)?.is_enabled))
    }
}
