//! Recordings as graphs of the driver's: built node by node, instantiated once, launched by one call, and given new
//! addresses in place.
//!
//! A step is one node or more: a kernel's launches one behind the other, a copy, a fill; what launches nothing is an
//! empty node, so that edges through it stay. A branch or a loop is a conditional node, whose bodies are filled in the
//! same way (`conditional`). The graph is kept beside what it was instantiated to, because an update names its nodes.
//! Nothing is captured: no other thread's call can break it, and the edges are those of the recording.
//!
//! The driver runs one launch of an executable at a time, each behind the one before.

use super::blas::RecordedProducts;
use super::conditional::Control;
use super::context::{Context, Handle};
use super::downcast::downcast;
use super::inbox::{Inbox, Ticket, Tickets};
use super::kernel::{CudaKernel, Piece};
use super::plan::Check;
use super::stream::{CudaStream, Grid};
use super::table::{
    CUcontext, CUgraph, CUgraphExec, CUgraphNode, CUstream, CopyNode, FillNode, KernelNode, Status, Table,
};
use crate::base::{Code, Error, Result};
use crate::device::{Executable, Fill, Place, Recording, Step, Transfer, Work};
use crate::sync::OnceLock;
use cudarc::driver::sys::CUmemorytype_enum as M;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ffi::c_void;
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
    /// Has the kernels that set conditions.
    _control: Option<Arc<Control>>,
    products: RecordedProducts,
    /// For kernels that may find a failure.
    inbox: OnceLock<Arc<Inbox>>,
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

/// What fills the graph of a recording, and those inside of it.
#[derive(Clone, Copy)]
pub(super) struct Filler<'a> {
    pub context: &'a Arc<Context>,
    pub functions: Functions,
    /// If the recording has branches or loops.
    pub control: Option<&'a Control>,
    pub name: &'a str,
    /// It is the body of a conditional node that is filled.
    pub is_inside: bool,
    /// The recording's, which are added in the order of its lists.
    pub products: &'a RefCell<RecordedProducts>,
    pub tickets: &'a dyn Tickets,
}

/// Nodes, of which so many at the end are what others come behind.
#[derive(Default)]
pub(super) struct Made {
    pub nodes: SmallVec<[CUgraphNode; 4]>,
    pub ends: usize,
}

impl Made {
    pub(super) fn one(node: CUgraphNode) -> Made {
        Made { nodes: [node].as_slice().into(), ends: 1 }
    }

    pub(super) fn ends(&self) -> &[CUgraphNode] {
        &self.nodes[self.nodes.len() - self.ends..]
    }
}

/// The nodes that nothing of a list comes behind.
pub(super) type Last = SmallVec<[CUgraphNode; 8]>;

impl Filler<'_> {
    pub(super) fn call(&self, function: &'static str, what: &str, call: impl FnOnce() -> Status) -> Result<()> {
        self.context.call(function, &In(self.name, what), |_| call())
    }

    /// Adds a list's nodes, those of each step; what comes behind no other step comes behind `first`.
    pub(super) fn list(&self, to: CUgraph, steps: &[Step<'_>], first: &[CUgraphNode]) -> Result<(Vec<Made>, Last)> {
        let mut made: Vec<Made> = Vec::with_capacity(steps.len());
        let mut is_last = vec![true; steps.len()];
        for step in steps {
            let mut after: SmallVec<[CUgraphNode; 8]> =
                if step.after.is_empty() { first.into() } else { SmallVec::new() };
            for &before in step.after {
                let from = made.get(before);
                let from =
                    from.ok_or_else(|| Error::invalid(format!("{} comes after a later step", step.work.name())))?;
                is_last[before] = false;
                after.extend_from_slice(from.ends());
            }
            // A driver takes no edge twice.
            after.sort_unstable();
            after.dedup();
            made.push(self.step(to, &step.work, &after)?);
        }
        let last = made.iter().zip(is_last).filter(|(_, is_last)| *is_last).flat_map(|(made, _)| made.ends().iter());
        let last: Last = last.copied().collect();
        let last = if last.is_empty() { first.into() } else { last };
        Ok((made, last))
    }

    /// Adds a step's nodes.
    fn step(&self, to: CUgraph, work: &Work<'_>, after: &[CUgraphNode]) -> Result<Made> {
        let (functions, context) = (self.functions, self.context.raw());
        let mut node = std::ptr::null_mut();
        let place = &raw mut node;
        let what = work.name();
        match work {
            Work::Launch(launch) => {
                let mut made = Made::default();
                let kernel = CudaKernel::of(launch, self.context)?;
                kernel.launches(launch, self.tickets, true, &mut |piece| {
                    let before = made.nodes.last().map_or(after, std::slice::from_ref);
                    let new = match piece {
                        Piece::Grid(grid, arguments) => self.kernel(to, what, before, grid, arguments.places)?,
                        Piece::Product(prepared) => self.products.borrow_mut().add(prepared, to, before, what)?,
                    };
                    made.nodes.push(new);
                    Ok(())
                })?;
                if made.nodes.is_empty() {
                    return self.empty(to, what, after);
                }
                made.ends = 1;
                return Ok(made);
            }
            Work::Copy(transfer) => {
                let params = copy_node(transfer)?;
                // SAFETY: the driver's function with a graph and nodes of it; the host keeps its memory as long as the
                // graph may be launched.
                self.call("cuGraphAddMemcpyNode", what, || unsafe {
                    (functions.add_copy)(place, to, after.as_ptr(), after.len(), &raw const params, context)
                })?;
            }
            Work::Fill(fill) if self.is_inside => return self.fill_inside(to, fill, after),
            Work::Fill(fill) => {
                let params = fill_node(fill);
                // SAFETY: as above.
                self.call("cuGraphAddMemsetNode", what, || unsafe {
                    (functions.add_fill)(place, to, after.as_ptr(), after.len(), &raw const params, context)
                })?;
            }
            Work::Branch(branch) => return self.branch(to, branch, after),
            Work::Loop(again) => return self.again(to, again, after),
        }
        Ok(Made::one(node))
    }

    pub(super) fn kernel(
        &self,
        to: CUgraph,
        what: &str,
        after: &[CUgraphNode],
        grid: &Grid,
        arguments: &[*mut c_void],
    ) -> Result<CUgraphNode> {
        let (mut node, params) = (std::ptr::null_mut(), kernel_node(grid, arguments));
        // SAFETY: the driver's function with a graph and nodes of it; the arguments live during the call, which copies
        // them.
        self.call("cuGraphAddKernelNode", what, || unsafe {
            (self.functions.add_kernel)(&raw mut node, to, after.as_ptr(), after.len(), &raw const params)
        })?;
        Ok(node)
    }

    pub(super) fn empty(&self, to: CUgraph, what: &str, after: &[CUgraphNode]) -> Result<Made> {
        let mut node = std::ptr::null_mut();
        // SAFETY: as above.
        self.call("cuGraphAddEmptyNode", what, || unsafe {
            (self.functions.add_empty)(&raw mut node, to, after.as_ptr(), after.len())
        })?;
        Ok(Made::one(node))
    }
}

impl CudaGraph {
    /// `control` is what a recording with branches or loops takes. It is brought to the device in the stream `uploads`,
    /// if there is one, so that the first launch has not to do that.
    pub(super) fn new(
        context: &Arc<Context>,
        recording: &Recording<'_>,
        control: Option<Arc<Control>>,
        uploads: Option<CUstream>,
    ) -> Result<CudaGraph> {
        recording.check()?;
        let functions = Functions::of(context.table())
            .ok_or_else(|| Error::new(Code::Unimplemented, "the driver has not all that graphs take"))?;
        // Given back behind the graph.
        let products = RefCell::new(RecordedProducts::of(context, recording)?);
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
            _control: control,
            products: RecordedProducts::default(),
            inbox: OnceLock::new(),
        };
        let control = graph._control.as_deref();
        let filler = Filler {
            context,
            functions,
            control,
            name: recording.name,
            is_inside: false,
            products: &products,
            tickets: &graph,
        };
        let (all, _) = filler.list(raw, recording.steps, &[])?;
        graph.products = products.take();
        for made in all {
            let first = graph.nodes.len();
            graph.nodes.extend(made.nodes.into_iter().map(Handle));
            graph.steps.push(first..graph.nodes.len());
        }
        let mut exec = std::ptr::null_mut();
        graph.call("cuGraphInstantiateWithFlags", "its graph", || {
            // SAFETY: the driver's function with a graph of this context, and a place for the answer.
            unsafe { (functions.instantiate)(&raw mut exec, raw, 0) }
        })?;
        graph.exec = Handle(exec);
        if let (Some(stream), Some(upload)) = (uploads, context.table().graph_upload) {
            // What fails here fails at the first launch, or does not matter.
            // SAFETY: the driver's function with objects of this context.
            context.take_back("cuGraphUpload", |_| unsafe { upload(exec, stream) });
        }
        Ok(graph)
    }

    fn call(&self, function: &'static str, what: &str, call: impl FnOnce() -> Status) -> Result<()> {
        self.context.call(function, &In(&self.name, what), |_| call())
    }

    /// Other parameters for a node, which is a part of a run.
    fn set(&self, function: &'static str, what: &str, set: impl FnOnce() -> Status) -> Result<()> {
        self.context.issue(function, &In(&self.name, what), |_| set())
    }

    /// Launches it; `executable` is one of this context.
    pub(super) fn launch(executable: &Arc<dyn Executable>, context: &Arc<Context>, stream: &CudaStream) -> Result<()> {
        let graph = downcast::<CudaGraph>(&**executable);
        let Some(graph) = graph.filter(|graph| Arc::ptr_eq(&graph.context, context)) else {
            return Err(Error::internal("a stream was given a recording of another device's"));
        };
        if let Some(inbox) = graph.inbox.get() {
            stream.may_hear_of(inbox);
        }
        stream.issue("cuGraphLaunch", &graph.name, |_, stream| {
            // SAFETY: the driver's function with objects of this context.
            unsafe { (graph.functions.launch)(graph.exec.0, stream) }
        })
    }
}

impl Tickets for CudaGraph {
    fn ticket(&self, name: &str, check: &Check<'_>) -> Result<Ticket> {
        let inbox = match self.inbox.get() {
            Some(inbox) => inbox,
            None => {
                let made = Inbox::new(&self.context)?;
                self.inbox.get_or_init(|| made)
            }
        };
        Ok(inbox.ticket(name, check, true))
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
                CudaKernel::of(launch, &self.context)?.launches(launch, self, true, &mut |piece| {
                    let node = left.next().ok_or_else(other)?.0;
                    let (grid, arguments) = match piece {
                        Piece::Grid(grid, arguments) => (grid, arguments.places),
                        Piece::Product(prepared) => return self.products.set(prepared, exec, node, what),
                    };
                    let params = kernel_node(grid, arguments);
                    // SAFETY: the driver's function with an executable and a node of its graph; the arguments are
                    // copied.
                    self.set("cuGraphExecKernelNodeSetParams", what, || unsafe {
                        (functions.set_kernel)(exec, node, &raw const params)
                    })
                })?;
                if left.next().is_some() { Err(other()) } else { Ok(()) }
            }
            Work::Copy(transfer) => {
                let params = copy_node(transfer)?;
                // SAFETY: as above.
                self.set("cuGraphExecMemcpyNodeSetParams", what, || unsafe {
                    (functions.set_copy)(exec, nodes[0].0, &raw const params, context)
                })
            }
            Work::Fill(fill) => {
                let params = fill_node(fill);
                // SAFETY: as above.
                self.set("cuGraphExecMemsetNodeSetParams", what, || unsafe {
                    (functions.set_fill)(exec, nodes[0].0, &raw const params, context)
                })
            }
            Work::Branch(_) | Work::Loop(_) => Ok(()),
        }
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        let Functions { destroy, destroy_exec, .. } = self.functions;
        if !self.exec.0.is_null() {
            // SAFETY: the driver's function with what nobody uses any more; a launch that is under way ends all the
            // same.
            self.context.take_back("cuGraphExecDestroy", |_| unsafe { destroy_exec(self.exec.0) });
        }
        // SAFETY: as above.
        self.context.take_back("cuGraphDestroy", |_| unsafe { destroy(self.graph.0) });
    }
}

fn kernel_node(grid: &Grid, arguments: &[*mut c_void]) -> KernelNode {
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
        kernelParams: arguments.as_ptr().cast_mut(),
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
        Place::Host(address) => Ok((M::CU_MEMORYTYPE_HOST, address.get(), 0)),
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
