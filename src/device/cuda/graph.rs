//! Recordings as driver graphs: built node by node, instantiated once, launched by one call, and updated in place.
//!
//! The graph (`filler`) is kept beside its executable, because an update names its nodes. It is not captured: so no
//! other thread's call can break it, and the edges are those of the recording.
//!
//! The driver runs one launch of an executable at a time, each behind the one before.

use super::blas::RecordedProducts;
use super::context::{Context, Handle};
use super::downcast::downcast;
use super::filler::{ConditionalControl, Filler};
use super::inbox::{FaultInbox, FaultTicket, FaultTickets};
use super::kernel::CudaKernel;
use super::node::{GraphFunctions, In, copy_node, fill_node, kernel_node};
use super::piece::CallPart;
use super::plan::Check;
use super::stream::CudaStream;
use super::table::{CUgraph, CUgraphExec, CUgraphNode, CUstream, Status};
use crate::base::{Code, Error, Result};
use crate::device::{Executable, RecordedWork, Recording};
use crate::sync::OnceLock;
use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A graph and its executable.
pub(super) struct CudaGraph {
    context: Arc<Context>,
    functions: GraphFunctions,
    name: Box<str>,
    graph: Handle<CUgraph>,
    exec: Handle<CUgraphExec>,
    nodes: Vec<Handle<CUgraphNode>>,
    /// Each step's nodes.
    steps: Vec<Range<usize>>,
    /// Has the kernels that set conditions.
    _control: Option<Arc<ConditionalControl>>,
    products: RecordedProducts,
    /// For kernels that may find a failure.
    inbox: OnceLock<Arc<FaultInbox>>,
}

impl fmt::Debug for CudaGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaGraph({}, {}, {} nodes)", self.context.label(), self.name, self.nodes.len())
    }
}

impl CudaGraph {
    /// `control` is for a recording with branches or loops. The graph is uploaded in the stream `uploads`, if there is
    /// one, so that the first launch need not do that.
    pub(super) fn new(
        context: &Arc<Context>,
        recording: &Recording<'_>,
        control: Option<Arc<ConditionalControl>>,
        uploads: Option<CUstream>,
    ) -> Result<CudaGraph> {
        recording.check()?;
        let functions = GraphFunctions::of(context.table())
            .ok_or_else(|| Error::new(Code::Unimplemented, "the driver has not all that graphs take"))?;
        // Dropped after the graph.
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
            // A failure here recurs at the first launch, or does not matter. SAFETY: the driver's function with objects
            // of this context.
            context.take_back("cuGraphUpload", |_| unsafe { upload(exec, stream) });
        }
        Ok(graph)
    }

    fn call(&self, function: &'static str, what: &str, call: impl FnOnce() -> Status) -> Result<()> {
        self.context.call(function, &In(&self.name, what), |_| call())
    }

    /// Sets new parameters of a node, as part of a run.
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

impl FaultTickets for CudaGraph {
    fn ticket(&self, name: &str, check: &Check<'_>) -> Result<FaultTicket> {
        let inbox = match self.inbox.get() {
            Some(inbox) => inbox,
            None => {
                let made = FaultInbox::new(&self.context)?;
                self.inbox.get_or_init(|| made)
            }
        };
        Ok(inbox.ticket(name, check, true))
    }
}

impl Executable for CudaGraph {
    fn update(&self, step: usize, work: &RecordedWork<'_>) -> Result<()> {
        let Some(nodes) = self.steps.get(step).map(|nodes| &self.nodes[nodes.clone()]) else {
            return Err(Error::invalid(format!("step is {step}, the recording has {}", self.steps.len())));
        };
        let (functions, exec, context) = (self.functions, self.exec.0, self.context.raw());
        let what = work.name();
        match work {
            RecordedWork::Launch(launch) => {
                let mut left = nodes.iter();
                let other = || Error::precondition("the step takes another number of launches now");
                CudaKernel::of(launch, &self.context)?.launches(launch, self, true, &mut |piece| {
                    let node = left.next().ok_or_else(other)?.0;
                    let (grid, arguments) = match piece {
                        CallPart::Grid(grid, arguments) => (grid, arguments.places),
                        CallPart::Product(prepared) => return self.products.set(prepared, exec, node, what),
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
            RecordedWork::Copy(transfer) => {
                let params = copy_node(transfer)?;
                // SAFETY: as above.
                self.set("cuGraphExecMemcpyNodeSetParams", what, || unsafe {
                    (functions.set_copy)(exec, nodes[0].0, &raw const params, context)
                })
            }
            RecordedWork::Fill(fill) => {
                let params = fill_node(fill);
                // SAFETY: as above.
                self.set("cuGraphExecMemsetNodeSetParams", what, || unsafe {
                    (functions.set_fill)(exec, nodes[0].0, &raw const params, context)
                })
            }
            RecordedWork::Branch(_) | RecordedWork::Loop(_) => Ok(()),
        }
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        let GraphFunctions { destroy, destroy_exec, .. } = self.functions;
        if !self.exec.0.is_null() {
            // SAFETY: the driver's function with an unused object; a launch in flight ends all the same.
            self.context.take_back("cuGraphExecDestroy", |_| unsafe { destroy_exec(self.exec.0) });
        }
        // SAFETY: as above.
        self.context.take_back("cuGraphDestroy", |_| unsafe { destroy(self.graph.0) });
    }
}
