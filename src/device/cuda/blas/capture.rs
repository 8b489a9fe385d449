//! Products in recordings: the library's work is captured from a stream, and becomes a child of the recording's graph.
//!
//! The capture uses a stream of its own and is RELAXED: it restricts neither other threads nor the library, which may
//! load its kernels during the capture.
//!
//! *Workspaces.* A product that needs one shares it with products that the recording's edges order before or behind it;
//! products that may run concurrently have one each. The order is tracked by clocks: for each workspace, how many of
//! its users are over when a step begins.
//!
//! *Other addresses*: the product is captured again, and the child replaced. The driver refuses a child of another
//! form; then the recording is made again.

use super::plan::Prepared;
use super::{Blas, Workspace};
use crate::base::{Code, Error, Result};
use crate::device::cuda::context::{Context, Handle};
use crate::device::cuda::kernel::CudaKernel;
use crate::device::cuda::table::{CUgraph, CUgraphExec, CUgraphNode, CUstream, DriverTable, Status};
use crate::device::{RecordedStep, RecordedWork, Recording};
use cudarc::driver::sys::{CUstream_flags_enum as F, CUstreamCaptureMode_enum as M};
use smallvec::SmallVec;
use std::ffi::{c_int, c_uint};
use std::fmt::Display;
use std::sync::Arc;

/// The driver's functions for captures, if it has all of them.
#[derive(Clone, Copy)]
struct CaptureFunctions {
    begin: unsafe extern "C" fn(CUstream, c_int) -> Status,
    end: unsafe extern "C" fn(CUstream, *mut CUgraph) -> Status,
    destroy: unsafe extern "C" fn(CUgraph) -> Status,
    add: unsafe extern "C" fn(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize, CUgraph) -> Status,
    set: unsafe extern "C" fn(CUgraphExec, CUgraphNode, CUgraph) -> Status,
}

impl CaptureFunctions {
    fn of(table: &DriverTable) -> Option<CaptureFunctions> {
        Some(CaptureFunctions {
            begin: table.stream_begin_capture?,
            end: table.stream_end_capture?,
            destroy: table.graph_destroy?,
            add: table.graph_add_child_graph_node?,
            set: table.graph_exec_child_graph_node_set_params?,
        })
    }
}

/// For each workspace, how many of its users are over.
type Clock = SmallVec<[u32; 4]>;

/// The requirements of a workspace, and its number of users so far.
#[derive(Debug, Default)]
struct WantedWorkspace {
    bytes: usize,
    users: u32,
}

/// The products of a recording.
#[derive(Debug, Default)]
pub(in crate::device::cuda) struct RecordedProducts {
    workspaces: Vec<Workspace>,
    /// The workspace of each product, in the order of the list.
    of: Vec<Option<usize>>,
    /// The nodes of those that were added.
    nodes: Vec<Handle<CUgraphNode>>,
}

/// A graph that was captured.
struct CapturedGraph<'a> {
    blas: &'a Blas,
    functions: CaptureFunctions,
    graph: CUgraph,
}

impl Drop for CapturedGraph<'_> {
    fn drop(&mut self) {
        // SAFETY: the driver's function with an unused graph.
        self.blas.context.take_back("cuGraphDestroy", |_| unsafe { (self.functions.destroy)(self.graph) });
    }
}

impl RecordedProducts {
    /// Prepares the products of a recording, and their workspaces. Then `add` is called for each of them, in the same
    /// order: that of the list, and of lists in it.
    pub fn of(context: &Arc<Context>, recording: &Recording<'_>) -> Result<RecordedProducts> {
        let mut planned = WorkspacePlan { context, wanted: Vec::new(), of: Vec::new(), blas: None };
        planned.list(recording.steps, &Clock::new())?;
        let WorkspacePlan { wanted, of, blas, .. } = planned;
        let what = format!("recording '{}': a workspace for products", recording.name);
        let workspaces = match &blas {
            Some(blas) => {
                let each = wanted.iter().map(|wanted| Workspace::new(&blas.memory, wanted.bytes, None, &what));
                each.collect::<Result<_>>()?
            }
            None => Vec::new(),
        };
        Ok(RecordedProducts { workspaces, of, nodes: Vec::new() })
    }

    /// Adds the next product to a graph of the recording's.
    pub fn add(
        &mut self,
        prepared: &Prepared<'_>,
        graph: CUgraph,
        after: &[CUgraphNode],
        what: &str,
    ) -> Result<CUgraphNode> {
        let number = self.nodes.len();
        let captured = self.capture(number, prepared, &what)?;
        let mut node = std::ptr::null_mut();
        prepared.blas().context.call("cuGraphAddChildGraphNode", &what, |_| {
            // SAFETY: the driver's function with graphs of its own and nodes of the first; it copies the second.
            unsafe { (captured.functions.add)(&raw mut node, graph, after.as_ptr(), after.len(), captured.graph) }
        })?;
        self.nodes.push(Handle(node));
        Ok(node)
    }

    /// Sets other addresses of an added product.
    pub fn set(&self, prepared: &Prepared<'_>, exec: CUgraphExec, node: CUgraphNode, what: &str) -> Result<()> {
        let Some(number) = self.nodes.iter().position(|other| other.0 == node) else {
            return Err(Error::precondition("the step is a product now, and was none"));
        };
        let captured = self.capture(number, prepared, &what)?;
        prepared.blas().context.call("cuGraphExecChildGraphNodeSetParams", &what, |_| {
            // SAFETY: the driver's function with an executable, a node of its graph, and a graph, which it copies.
            unsafe { (captured.functions.set)(exec, node, captured.graph) }
        })
    }

    fn capture<'a>(&self, number: usize, prepared: &'a Prepared<'_>, what: &dyn Display) -> Result<CapturedGraph<'a>> {
        let blas = prepared.blas();
        let Some(functions) = CaptureFunctions::of(blas.context.table()) else {
            return Err(Error::new(Code::Unimplemented, "the driver has not all that products in recordings take"));
        };
        let workspace = self.of.get(number).copied().flatten().map(|at| &self.workspaces[at]);
        let has = workspace.map_or(0, |workspace| workspace.bytes);
        if has < prepared.workspace_bytes() {
            let needs = prepared.workspace_bytes();
            return Err(Error::precondition(format!(
                "the product needs a workspace of {needs} bytes now, it has {has}"
            )));
        }
        let mut stream = blas.capture.lock();
        if stream.0.is_null() {
            blas.context.call("cuStreamCreateWithPriority", what, |table| {
                let flags = F::CU_STREAM_NON_BLOCKING as c_uint;
                // SAFETY: the driver's function, and a place for the answer.
                unsafe { (table.stream_create_with_priority)(&raw mut stream.0, flags, 0) }
            })?;
        }
        let mode = M::CU_STREAM_CAPTURE_MODE_RELAXED as c_int;
        // SAFETY: the driver's function with a stream of this context's, which nobody else uses.
        blas.context.call("cuStreamBeginCapture", what, |_| unsafe { (functions.begin)(stream.0, mode) })?;
        let address = workspace.map_or(0, |workspace| workspace.address as u64);
        let entered = blas.context.enter_relaxed()?;
        let enqueued = prepared.enqueue(stream.0, address);
        drop(entered);
        let mut graph = std::ptr::null_mut();
        let ended = blas.context.call("cuStreamEndCapture", what, |_| {
            // SAFETY: as above, and a place for the answer.
            unsafe { (functions.end)(stream.0, &raw mut graph) }
        });
        let captured = (!graph.is_null()).then(|| CapturedGraph { blas, functions, graph });
        if ended.is_err() {
            // It may still be capturing: the capture is ended again, and the next one uses another stream.
            let mut left = std::ptr::null_mut();
            // SAFETY: as above.
            blas.context.take_back("cuStreamEndCapture", |_| unsafe { (functions.end)(stream.0, &raw mut left) });
            if !left.is_null() {
                drop(CapturedGraph { blas, functions, graph: left });
            }
            let raw = std::mem::replace(&mut stream.0, std::ptr::null_mut());
            // SAFETY: as above.
            blas.context.take_back("cuStreamDestroy", |table| unsafe { (table.stream_destroy)(raw) });
        }
        blas.check(enqueued?, what)?;
        ended?;
        captured.ok_or_else(|| Error::internal("a capture has ended without a graph"))
    }
}

/// The assignment of workspaces.
struct WorkspacePlan<'a> {
    context: &'a Arc<Context>,
    wanted: Vec<WantedWorkspace>,
    of: Vec<Option<usize>>,
    blas: Option<Arc<Blas>>,
}

impl WorkspacePlan<'_> {
    /// Plans a list that begins at clock `start`; returns the clock at its end.
    fn list(&mut self, steps: &[RecordedStep<'_>], start: &Clock) -> Result<Clock> {
        let mut clocks: Vec<Clock> = Vec::with_capacity(steps.len());
        let mut end = start.clone();
        for step in steps {
            let mut clock = start.clone();
            step.after.iter().filter_map(|&before| clocks.get(before)).for_each(|before| join(&mut clock, before));
            match &step.work {
                RecordedWork::Launch(launch) => {
                    CudaKernel::of(launch, self.context)?.product(launch, &mut |prepared| {
                        self.product(prepared, &mut clock);
                        Ok(())
                    })?;
                }
                RecordedWork::Branch(branch) => {
                    let before = clock.clone();
                    for list in branch.branches {
                        join(&mut clock, &self.list(list, &before)?);
                    }
                }
                RecordedWork::Loop(again) => clock = self.list(again.body, &clock)?,
                RecordedWork::Copy(_) | RecordedWork::Fill(_) => {}
            }
            join(&mut end, &clock);
            clocks.push(clock);
        }
        Ok(end)
    }

    fn product(&mut self, prepared: &Prepared<'_>, clock: &mut Clock) {
        let bytes = prepared.workspace_bytes();
        if bytes == 0 {
            return self.of.push(None);
        }
        self.blas.get_or_insert_with(|| Arc::clone(prepared.blas()));
        let over = |at: usize| clock.get(at).copied().unwrap_or(0);
        let at = match self.wanted.iter().enumerate().position(|(at, wanted)| wanted.users == over(at)) {
            Some(at) => at,
            None => {
                self.wanted.push(WantedWorkspace::default());
                self.wanted.len() - 1
            }
        };
        let wanted = &mut self.wanted[at];
        wanted.bytes = wanted.bytes.max(bytes);
        wanted.users += 1;
        clock.resize(clock.len().max(at + 1), 0);
        clock[at] = wanted.users;
        self.of.push(Some(at));
    }
}

fn join(clock: &mut Clock, other: &Clock) {
    clock.resize(clock.len().max(other.len()), 0);
    clock.iter_mut().zip(other).for_each(|(mine, other)| *mine = (*mine).max(*other));
}
