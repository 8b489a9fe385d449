//! Recordings as graphs of the driver's: built node by node, instantiated once, launched by one call, and given new addresses in place.
//!
//! A step is one node or more: a kernel's launches one behind the other, a copy, a fill; what launches nothing is an empty node, so that edges
//! through it stay. The graph is kept beside what it was instantiated to, because an update names its nodes. Nothing is captured: no other
//! thread's call can break it, and the edges are those of the recording.
//!
//! The driver runs one launch of an executable at a time, each behind the one before.

use super::context::{Context, Handle};
use super::kernel::CudaKernel;
use super::stream::{Arguments, CudaStream, Grid};
use super::table::{
    CUcontext, CUgraph, CUgraphExec, CUgraphNode, CUstream, CopyNode, FillNode, KernelNode, Status, Table,
};
use crate::base::{Code, Error, Result};
use crate::device::{Executable, Fill, Launch, Place, Recording, Transfer, Work};
use cudarc::driver::sys::CUmemorytype_enum as M;
use smallvec::SmallVec;
use std::any::Any;
use std::fmt::{self, Display};
use std::ops::Range;
use std::sync::Arc;

/// Most bytes that a copy has as one row.
const MOST_BYTES: usize = i32::MAX as usize;

type Instantiate = unsafe extern "C" fn(*mut CUgraphExec, CUgraph, u64) -> Status;
type Add<P> = unsafe extern "C" fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, *const P) -> Status;
type AddIn<P, C> = unsafe extern "C" fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, *const P, C) -> Status;
type AddEmpty = unsafe extern "C" fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize) -> Status;
type Set<P> = unsafe extern "C" fn(CUgraphExec, CUgraphNode, *const P) -> Status;
type SetIn<P, C> = unsafe extern "C" fn(CUgraphExec, CUgraphNode, *const P, C) -> Status;

/// What a graph takes, where the driver has all of it.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    create: unsafe extern "C" fn(*mut CUgraph, u32) -> Status,
    destroy: unsafe extern "C" fn(CUgraph) -> Status,
    add_kernel: Add<KernelNode>,
    add_copy: AddIn<CopyNode, CUcontext>,
    add_fill: AddIn<FillNode, CUcontext>,
    add_empty: AddEmpty,
    instantiate: Instantiate,
    destroy_exec: unsafe extern "C" fn(CUgraphExec) -> Status,
    launch: unsafe extern "C" fn(CUgraphExec, CUstream) -> Status,
    set_kernel: Set<KernelNode>,
    set_copy: SetIn<CopyNode, CUcontext>,
    set_fill: SetIn<FillNode, CUcontext>,
}

impl Functions {
    pub(super) fn of(table: &Table) -> Option<Functions> {
        Some(Functions {
            create: table.graph_create?,
            destroy: table.graph_destroy?,
            add_kernel: table.graph_add_kernel_node?,
            add_copy: table.graph_add_memcpy_node?,
            add_fill: table.graph_add_memset_node?,
            add_empty: table.graph_add_empty_node?,
            instantiate: table.graph_instantiate?,
            destroy_exec: table.graph_exec_destroy?,
            launch: table.graph_launch?,
            set_kernel: table.graph_exec_kernel_node_set_params?,
            set_copy: table.graph_exec_memcpy_node_set_params?,
            set_fill: table.graph_exec_memset_node_set_params?,
        })
    }
}

/// A graph, and what it was instantiated to.
pub(super) struct CudaGraph {
    context: Arc<Context>,
    functions: Functions,
    name: Box<str>,
    graph: Handle<CUgraph>,
    exec: Handle<CUgraphExec>,
    nodes: Vec<Handle<CUgraphNode>>,
    /// Each step's nodes.
    steps: Vec<Range<usize>>,
}

/// What is done in which recording, for texts.
struct In<'a>(&'a str, &'a str);

impl Display for In<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "recording '{}': {}", self.0, self.1)
    }
}

impl fmt::Debug for CudaGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaGraph({}, {}, {} nodes)", self.context.label(), self.name, self.nodes.len())
    }
}

impl CudaGraph {
    pub(super) fn new(context: &Arc<Context>, recording: &Recording<'_>) -> Result<CudaGraph> {
        let functions = Functions::of(context.table())
            .ok_or_else(|| Error::new(Code::Unimplemented, "the driver has not all that graphs take"))?;
        let mut raw = std::ptr::null_mut();
        context.call("cuGraphCreate", &In(recording.name, "its graph"), |_| {
            // SAFETY: the driver's function, and a place for the answer.
            unsafe { (functions.create)(&raw mut raw, 0) }
        })?;
        let mut graph = CudaGraph {
            context: Arc::clone(context),
            functions,
            name: recording.name.into(),
            graph: Handle(raw),
            exec: Handle(std::ptr::null_mut()),
            nodes: Vec::with_capacity(recording.steps.len()),
            steps: Vec::with_capacity(recording.steps.len()),
        };
        for step in recording.steps {
            let last = |&before: &usize| graph.steps.get(before).map(|nodes| graph.nodes[nodes.end - 1].0);
            let after: Option<SmallVec<[CUgraphNode; 8]>> = step.after.iter().map(last).collect();
            let after =
                after.ok_or_else(|| Error::invalid(format!("{} comes after a later step", step.work.name())))?;
            let first = graph.nodes.len();
            graph.add(&step.work, &after)?;
            graph.steps.push(first..graph.nodes.len());
        }
        let mut exec = std::ptr::null_mut();
        graph.call("cuGraphInstantiateWithFlags", "its graph", || {
            // SAFETY: the driver's function with a graph of this context, and a place for the answer.
            unsafe { (functions.instantiate)(&raw mut exec, raw, 0) }
        })?;
        graph.exec = Handle(exec);
        Ok(graph)
    }

    fn call(&self, function: &'static str, what: &str, call: impl FnOnce() -> Status) -> Result<()> {
        self.context.call(function, &In(&self.name, what), |_| call())
    }

    /// Adds a step's nodes.
    fn add(&mut self, work: &Work<'_>, after: &[CUgraphNode]) -> Result<()> {
        let (functions, graph, context) = (self.functions, self.graph.0, self.context.raw());
        let mut node = std::ptr::null_mut();
        let place = &raw mut node;
        let what = work.name();
        match work {
            Work::Launch(launch) => {
                let kernel = self.kernel(launch)?;
                let mut before: SmallVec<[CUgraphNode; 8]> = after.into();
                let mut made: SmallVec<[CUgraphNode; 4]> = SmallVec::new();
                kernel.launches(launch, &mut |grid, arguments| {
                    let params = kernel_node(grid, arguments);
                    self.call("cuGraphAddKernelNode", what, || {
                        // SAFETY: the driver's function with a graph and nodes of it; the arguments live during the call, which copies them.
                        unsafe {
                            (functions.add_kernel)(place, graph, before.as_ptr(), before.len(), &raw const params)
                        }
                    })?;
                    // SAFETY: the place for the answer, which the driver has filled.
                    let new = unsafe { place.read() };
                    before = [new].as_slice().into();
                    made.push(new);
                    Ok(())
                })?;
                if !made.is_empty() {
                    self.nodes.extend(made.into_iter().map(Handle));
                    return Ok(());
                }
                // SAFETY: as above.
                self.call("cuGraphAddEmptyNode", what, || unsafe {
                    (functions.add_empty)(place, graph, after.as_ptr(), after.len())
                })?;
            }
            Work::Copy(transfer) => {
                let params = copy_node(transfer)?;
                // SAFETY: as above; the host keeps its memory as long as the graph may be launched.
                self.call("cuGraphAddMemcpyNode", what, || unsafe {
                    (functions.add_copy)(place, graph, after.as_ptr(), after.len(), &raw const params, context)
                })?;
            }
            Work::Fill(fill) => {
                let params = fill_node(fill);
                // SAFETY: as above.
                self.call("cuGraphAddMemsetNode", what, || unsafe {
                    (functions.add_fill)(place, graph, after.as_ptr(), after.len(), &raw const params, context)
                })?;
            }
        }
        self.nodes.push(Handle(node));
        Ok(())
    }

    fn kernel<'a>(&self, launch: &Launch<'a>) -> Result<&'a CudaKernel> {
        let kernel = (&**launch.kernel as &dyn Any).downcast_ref::<CudaKernel>();
        let kernel = kernel.filter(|kernel| Arc::ptr_eq(kernel.context(), &self.context));
        kernel.ok_or_else(|| Error::internal("a recording was given a kernel of another device's"))
    }

    /// Launches it; `executable` is one of this context.
    pub(super) fn launch(executable: &Arc<dyn Executable>, context: &Arc<Context>, stream: &CudaStream) -> Result<()> {
        let graph = (&**executable as &dyn Any).downcast_ref::<CudaGraph>();
        let Some(graph) = graph.filter(|graph| Arc::ptr_eq(&graph.context, context)) else {
            return Err(Error::internal("a stream was given a recording of another device's"));
        };
        stream.issue("cuGraphLaunch", &graph.name, |_, stream| {
            // SAFETY: the driver's function with objects of this context.
            unsafe { (graph.functions.launch)(graph.exec.0, stream) }
        })
    }
}

impl Executable for CudaGraph {
    fn update(&self, step: usize, work: &Work<'_>) -> Result<()> {
        let Some(nodes) = self.steps.get(step).map(|nodes| &self.nodes[nodes.clone()]) else {
            return Err(Error::invalid(format!("step is {step}, the recording has {}", self.steps.len())));
        };
        let (functions, exec, context) = (self.functions, self.exec.0, self.context.raw());
        let what = work.name();
        match work {
            Work::Launch(launch) => {
                let mut left = nodes.iter();
                let other = || Error::precondition("the step takes another number of launches now");
                self.kernel(launch)?.launches(launch, &mut |grid, arguments| {
                    let node = left.next().ok_or_else(other)?.0;
                    let params = kernel_node(grid, arguments);
                    // SAFETY: the driver's function with an executable and a node of its graph; the arguments are copied.
                    self.call("cuGraphExecKernelNodeSetParams", what, || unsafe {
                        (functions.set_kernel)(exec, node, &raw const params)
                    })
                })?;
                if left.next().is_some() { Err(other()) } else { Ok(()) }
            }
            Work::Copy(transfer) => {
                let params = copy_node(transfer)?;
                // SAFETY: as above.
                self.call("cuGraphExecMemcpyNodeSetParams", what, || unsafe {
                    (functions.set_copy)(exec, nodes[0].0, &raw const params, context)
                })
            }
            Work::Fill(fill) => {
                let params = fill_node(fill);
                // SAFETY: as above.
                self.call("cuGraphExecMemsetNodeSetParams", what, || unsafe {
                    (functions.set_fill)(exec, nodes[0].0, &raw const params, context)
                })
            }
        }
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        let Functions { destroy, destroy_exec, .. } = self.functions;
        if !self.exec.0.is_null() {
            // SAFETY: the driver's function with what nobody uses any more; a launch that is under way ends all the same.
            self.context.take_back("cuGraphExecDestroy", |_| unsafe { destroy_exec(self.exec.0) });
        }
        // SAFETY: as above.
        self.context.take_back("cuGraphDestroy", |_| unsafe { destroy(self.graph.0) });
    }
}

fn kernel_node(grid: &Grid, arguments: Arguments<'_>) -> KernelNode {
    let Arguments::Each(each) = arguments;
    let ([x, y, z], [bx, by, bz]) = (grid.grid, grid.block);
    KernelNode {
        func: grid.function,
        gridDimX: x,
        gridDimY: y,
        gridDimZ: z,
        blockDimX: bx,
        blockDimY: by,
        blockDimZ: bz,
        sharedMemBytes: grid.shared_bytes,
        kernelParams: each.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

/// One row of bytes.
fn copy_node(transfer: &Transfer<'_>) -> Result<CopyNode> {
    let bytes = transfer.bytes;
    if bytes == 0 || bytes > MOST_BYTES {
        return Err(Error::new(Code::Unimplemented, format!("{}: a recorded copy of {bytes} bytes", transfer.name)));
    }
    // Memory type, host's address, device's address.
    let of = |place: &Place<'_>| match *place {
        Place::Host(address) => Ok((M::CU_MEMORYTYPE_HOST, address, 0)),
        Place::Device(address) => Ok((M::CU_MEMORYTYPE_DEVICE, 0, address as u64)),
        Place::Peer(..) => Err(Error::new(Code::Unimplemented, "a recorded copy between devices")),
    };
    let (to, from) = (of(&transfer.to)?, of(&transfer.from)?);
    Ok(CopyNode {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: from.0,
        srcHost: std::ptr::with_exposed_provenance(from.1),
        srcDevice: from.2,
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: bytes,
        srcHeight: 1,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: to.0,
        dstHost: std::ptr::with_exposed_provenance_mut(to.1),
        dstDevice: to.2,
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: bytes,
        dstHeight: 1,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
    })
}

fn fill_node(fill: &Fill<'_>) -> FillNode {
    let (width, value) = (fill.bytes, u32::from(fill.value));
    FillNode { dst: fill.address as u64, pitch: fill.bytes, value, elementSize: 1, width, height: 1 }
}
