//! A piece of an engine's work in a run that is issued to a stream (`direct`), with the run's tensors.

use super::frame_stream::of;
use super::frames::RunFrame;
use super::kernels::{Issue, Upload};
use super::segment::Segment;
use crate::base::{Error, Ref, Result};
use crate::device::{DeviceStream, PreparedLaunch};
use crate::engine::Tensor;
use crate::kernel::{Kernel, KernelContext, NEVER, Scratch};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A node that stands for one or more pieces of an engine's work.
#[derive(Clone)]
pub(in crate::graph) enum PieceNode {
    Issue(Arc<Issue>),
    Segment(Arc<Segment>),
}

/// The nodes that were made for engines: pieces in the order of their issue, copies to them, and those on whose work no
/// other node depends: begin, end, and ends of pieces.
#[derive(Default)]
pub(in crate::graph) struct DeviceNodes {
    pub pieces: Vec<PieceNode>,
    pub uploads: Vec<Arc<Upload>>,
    pub bounds: Vec<Arc<dyn Kernel>>,
}

impl PieceNode {
    pub fn engine(&self) -> usize {
        match self {
            PieceNode::Issue(issue) => issue.engine,
            PieceNode::Segment(segment) => segment.engine,
        }
    }

    /// Whether issuing it may allocate.
    pub fn has_issuer(&self) -> bool {
        match self {
            PieceNode::Issue(issue) => issue.issuer.is_some(),
            PieceNode::Segment(segment) => segment.issues.iter().any(|issue| issue.issuer.is_some()),
        }
    }

    /// Whether somebody must know how each run ends that has it.
    pub fn has_listener(&self) -> bool {
        match self {
            PieceNode::Issue(issue) => !issue.listeners().is_empty(),
            PieceNode::Segment(segment) => !segment.listeners().is_empty(),
        }
    }

    /// Whether the host decides in it.
    pub fn is_by_host(&self) -> bool {
        let is_by_host = |issue: &Issue| issue.control.as_ref().is_some_and(|control| !control.by_device);
        matches!(self, PieceNode::Segment(segment) if segment.issues.iter().any(is_by_host))
    }

    /// The address of its kernel.
    pub fn address(&self) -> *const () {
        match self {
            PieceNode::Issue(issue) => Arc::as_ptr(issue).cast(),
            PieceNode::Segment(segment) => Arc::as_ptr(segment).cast(),
        }
    }
}

/// A piece, and which of a run's tensors its node is given: inputs, then outputs. A run's tensors are its inputs, then
/// its outputs.
pub(in crate::graph) struct DirectPiece {
    pub piece: PieceNode,
    pub tensors: Vec<usize>,
    pub num_inputs: usize,
    /// A stream could not prepare it. ORDERING: Relaxed; a stale read asks once more.
    pub never_prepared: AtomicBool,
}

impl DirectPiece {
    /// The segment, if it has branches or loops.
    pub fn control(&self) -> Option<&Segment> {
        match &self.piece {
            PieceNode::Segment(segment) if segment.has_control() => Some(segment),
            _ => None,
        }
    }

    pub fn issue(
        &self,
        frame: &RunFrame,
        stream: &dyn DeviceStream,
        tensors: &[Option<Ref<Tensor>>],
        has_run: bool,
    ) -> Result<()> {
        if let PieceNode::Segment(segment) = &self.piece {
            let given = self.tensors.iter().map(|&at| tensors[at].as_ref());
            let addresses = given.map(|tensor| tensor.map_or(0, |tensor| tensor.data() as usize));
            if let Some(replayed) = segment.replay_again(frame, stream, addresses) {
                return replayed.map_err(of(&segment.label));
            }
        }
        self.with(frame, tensors, |context| {
            let (issued, label) = match &self.piece {
                PieceNode::Issue(issue) => {
                    (issue.launch(frame, stream, context).map_err(|error| error.within(&issue.name)), &issue.label)
                }
                PieceNode::Segment(segment) => {
                    let issued = match has_run {
                        _ if self.control().is_some() => segment.submit_as_one(frame, Some(stream), context),
                        true => segment.submit(frame, stream, context),
                        false => segment.one_by_one(frame, stream, context),
                    };
                    (issued, &segment.label)
                }
            };
            issued.map_err(of(label))
        })
    }

    /// A kernel's call with these tensors, as prepared by the stream (`DeviceStream::prepare`). `None` if it is no
    /// kernel's call, or cannot be prepared.
    #[cold]
    pub fn prepare(
        &self,
        frame: &RunFrame,
        stream: &dyn DeviceStream,
        tensors: &[Option<Ref<Tensor>>],
        before: Option<Box<dyn PreparedLaunch>>,
    ) -> Option<Box<dyn PreparedLaunch>> {
        let PieceNode::Issue(issue) = &self.piece else { return None };
        if self.never_prepared.load(Relaxed) {
            return None;
        }
        let mut prepared = None;
        // A missing tensor is reported at the launch.
        let _ = self.with(frame, tensors, |context| {
            prepared = issue.prepare(frame, stream, context, before);
            Ok(())
        });
        self.never_prepared.store(prepared.is_none(), Relaxed);
        prepared
    }

    /// Launches the result of `prepare`.
    pub fn launch_prepared(&self, stream: &dyn DeviceStream, prepared: &dyn PreparedLaunch) -> Result<()> {
        let PieceNode::Issue(issue) = &self.piece else {
            return Err(Error::internal("a part that cannot be prepared"));
        };
        let launched = stream.launch_prepared(prepared, &issue.name);
        launched.map_err(|error| of(&issue.label)(error.within(&issue.name)))
    }

    /// The context with which its node would be called.
    pub fn with(
        &self,
        frame: &RunFrame,
        tensors: &[Option<Ref<Tensor>>],
        call: impl FnOnce(&KernelContext<'_>) -> Result<()>,
    ) -> Result<()> {
        let missing = || Error::internal("a tensor that a run needs is missing");
        frame.engines[self.piece.engine()].views.with(|views| {
            for &at in &self.tensors {
                views.push(tensors[at].as_ref().ok_or_else(missing)?.view().clone());
            }
            let (inputs, outputs) = views.split_at(self.num_inputs);
            // SAFETY: of the run's tensors; only their addresses are looked at.
            call(&unsafe { KernelContext::new(inputs, outputs, None, Scratch::none(1), &NEVER) })
        })
    }
}
