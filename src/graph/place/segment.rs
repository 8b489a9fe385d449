//! The node that stands for a segment: several pieces of an engine's work with nothing of anybody else's between them.
//!
//! In a lane's first run it issues one piece after the other, each to its own stream, with waits and events between them: what is wrong with a
//! piece shows there. In the second run it has the device record them, with the edges between them, and from then on a run submits the
//! recording: one call, whatever the number of pieces, and one event if anybody waits for it. Copies to the engine that only this segment reads
//! are in the recording, too; the run only stages their bytes.
//!
//! *Two ways, one order.* A run goes one way in all of its segments (`Lane::is_replay`), because each way has waits and events of its own: who
//! waits for a value asks for the event of the way that the run goes. The way back is always open: a run after one that failed issues, and
//! if a device will not record, a segment's pieces are issued one after the other on its stream, and the next runs issue all.
#![forbid(unsafe_code)]

use super::kernels::{Before, Issue, Source, lane_of, of, on_engine, shape};
use super::lane::{Lane, Lanes};
use super::replays::Recorded;
use crate::base::{Code, Desc, Error, Result};
use crate::device::{DeviceStream, Launch, Place, Recording, Step, Transfer, Work};
use crate::kernel::{Effect, Kernel, KernelContext};
use crate::memory::View;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A copy to the engine that is part of a segment.
pub(super) struct CopyIn {
    /// Its number among the engine's.
    pub upload: usize,
    pub to: usize,
    pub bytes: usize,
    pub name: String,
}

/// Inputs: the lane, and values that are a run's own tensors. Outputs: those of the pieces that are.
pub(super) struct Segment {
    pub lanes: Arc<Lanes>,
    pub engine: usize,
    /// The engine's.
    pub label: Arc<str>,
    /// Among the engine's.
    pub number: usize,
    pub name: String,
    pub issues: Vec<Issue>,
    pub num_inputs: usize,
    /// What its outputs look like.
    pub given: Vec<Desc>,
    /// Where it goes as one, and what that stream waits for first.
    pub stream: usize,
    pub before: Vec<Before>,
    pub copies: Vec<CopyIn>,
    /// For each copy and then each piece, those that come before it. None: it is too short to be recorded.
    pub after: Option<Vec<Vec<usize>>>,
}

impl Segment {
    /// Each piece on its stream.
    fn issue(&self, lane: &Lane, context: &KernelContext<'_>) -> Result<()> {
        self.issues.iter().try_for_each(|issue| {
            let stream = lane.engines[self.engine].streams[issue.stream].lock();
            issue.issue(lane, &**stream, context).map_err(|error| error.within(&issue.name))
        })
    }

    /// All of it on one stream.
    fn replay(&self, lane: &Lane, context: &KernelContext<'_>) -> Result<()> {
        let on = &lane.engines[self.engine];
        let stream = on.streams[self.stream].lock();
        for before in &self.before {
            // ORDERING: Relaxed; the copy's node comes before this one, by an edge.
            if !matches!(*before, Before::Constant(upload) if !on.uploads[upload].is_new.load(Relaxed)) {
                stream.wait(before.event(on)?)?;
            }
        }
        self.submit(lane, &**stream, context)?;
        match &on.segments[self.number].event {
            Some(event) => stream.record(event),
            None => Ok(()),
        }
    }

    fn submit(&self, lane: &Lane, stream: &dyn DeviceStream, context: &KernelContext<'_>) -> Result<()> {
        let Some(after) = &self.after else { return self.one_by_one(lane, stream, context) };
        let mut recorded = lane.engines[self.engine].segments[self.number].recorded.lock();
        if let Some(known) = &mut *recorded
            && self.update(lane, known, context).is_err()
        {
            *recorded = None;
        }
        if recorded.is_none() && lane.counts().refusal.get().is_none() {
            match self.record(lane, after, context) {
                Ok(made) => *recorded = Some(made),
                Err(error) if error.code() == Code::DeviceLost => return Err(error),
                Err(error) => {
                    let text = format!("engine {}: {}: {}", self.label, self.name, error.message());
                    lane.counts().refusal.get_or_init(|| text);
                }
            }
        }
        match &*recorded {
            Some(recorded) => stream.replay(&recorded.executable),
            None => self.one_by_one(lane, stream, context),
        }
    }

    /// Without a recording: in the order of the pieces, which all edges allow.
    fn one_by_one(&self, lane: &Lane, stream: &dyn DeviceStream, context: &KernelContext<'_>) -> Result<()> {
        for copy in &self.copies {
            stream.copy(&self.transfer(lane, copy, context))?;
        }
        self.issues
            .iter()
            .try_for_each(|issue| issue.launch(lane, stream, context).map_err(|error| error.within(&issue.name)))
    }

    fn transfer<'a>(&self, lane: &Lane, copy: &'a CopyIn, context: &KernelContext<'_>) -> Transfer<'a> {
        let to = Source::Arena(copy.to).address(lane, self.engine, context);
        let from = lane.engines[self.engine].uploads[copy.upload].staging.data() as usize;
        Transfer { name: &copy.name, to: Place::Device(to), from: Place::Host(from), bytes: copy.bytes }
    }

    fn record(&self, lane: &Lane, after: &[Vec<usize>], context: &KernelContext<'_>) -> Result<Recorded> {
        let Some(accelerator) = lane.engines[self.engine].engine.accelerator() else {
            return Err(Error::internal("a lane on the host's engine"));
        };
        let views = self.issues.iter().map(|issue| issue.views(lane, context)).collect::<Result<Vec<_>>>()?;
        let mut steps = Vec::with_capacity(after.len());
        let mut after = after.iter();
        let mut next = || after.next().map_or(&[][..], Vec::as_slice);
        for copy in &self.copies {
            steps.push(Step { work: Work::Copy(self.transfer(lane, copy, context)), after: next() });
        }
        for (issue, (inputs, outputs)) in self.issues.iter().zip(&views) {
            steps.push(Step { work: Work::Launch(issue.launch_of(inputs, outputs)?), after: next() });
        }
        let executable = accelerator.record(&Recording { name: &self.name, steps: &steps })?;
        lane.counts().recordings.fetch_add(1, Relaxed);
        let given = self.issues.iter().flat_map(|issue| issue.given_addresses(lane, context)).collect();
        Ok(Recorded { executable, given })
    }

    /// The runs' own tensors may be others each time.
    fn update(&self, lane: &Lane, recorded: &mut Recorded, context: &KernelContext<'_>) -> Result<()> {
        let mut known = recorded.given.iter_mut();
        for (at, issue) in self.issues.iter().enumerate() {
            let mut is_changed = false;
            for (address, known) in issue.given_addresses(lane, context).zip(&mut known) {
                is_changed |= std::mem::replace(known, address) != address;
            }
            if is_changed {
                let (inputs, outputs) = issue.views(lane, context)?;
                let work = Work::Launch(issue.launch_of(&inputs, &outputs)?);
                recorded.executable.update(self.copies.len() + at, &work)?;
                lane.counts().updates.fetch_add(1, Relaxed);
            }
        }
        Ok(())
    }
}

impl Kernel for Segment {
    shape!("segment on a device", of self: self.num_inputs, self.given.len());
    on_engine!();

    /// Pieces with effects are alone in their segments.
    fn effects(&self) -> &[Effect] {
        self.issues.first().map_or(&[], |issue| issue.effects())
    }

    fn infer(&self, _inputs: &[Desc]) -> Result<Vec<Desc>> {
        Ok(self.given.clone())
    }

    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        let lane = lane_of(&self.lanes, context, 0)?;
        let done = if lane.is_replay() { self.replay(&lane, context) } else { self.issue(&lane, context) };
        done.map_err(of(&self.label))
    }
}

impl Issue {
    /// Addresses that are the runs' own, in the order of the arguments.
    fn given_addresses<'a>(
        &'a self,
        lane: &'a Lane,
        context: &'a KernelContext<'_>,
    ) -> impl Iterator<Item = usize> + use<'a> {
        let arguments = self.inputs.iter().chain(&self.outputs);
        let given = arguments.filter(|(source, _)| matches!(source, Source::Input(_) | Source::Output(_)));
        given.map(move |(source, _)| source.address(lane, self.engine, context))
    }

    fn launch_of<'a>(&'a self, inputs: &'a [View], outputs: &'a [View]) -> Result<Launch<'a>> {
        let Some(kernel) = self.kernel.on_device() else { return Err(Error::internal("a host's kernel on a device")) };
        Ok(Launch { name: &self.name, kernel, inputs, outputs })
    }

    /// Without waits and events.
    pub fn launch(&self, lane: &Lane, stream: &dyn DeviceStream, context: &KernelContext<'_>) -> Result<()> {
        let (inputs, outputs) = self.views(lane, context)?;
        match &self.issuer {
            Some(issuer) => issuer.issue(stream, &self.name, &inputs, &outputs),
            None => stream.launch(&self.launch_of(&inputs, &outputs)?),
        }
    }
}
