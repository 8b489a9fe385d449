//! A compiled graph.
#![forbid(unsafe_code)]

use super::on_stream::{DirectRun, DirectRuns};
use super::partial::PartialPrograms;
use super::pool::{Keeps, RunPool, put_first};
use super::queued_run::QueuedRun;
use crate::base::object::tag;
use crate::base::{Error, Kind, Object, Ref, Result, live};
use crate::engine::Engine;
use crate::graph::build::options::CompileOptions;
use crate::graph::carry::calls::StateHome;
use crate::graph::carry::compiled::Compiled;
use crate::graph::carry::device::ProgramDevices;
use crate::graph::carry::figures::{NodeStats, ProgramCounters};
use crate::graph::carry::state::RunState;
use crate::graph::compile::communicate::Communicated;
use crate::graph::compile::facts::CompileFacts;
use crate::graph::observe::dump::{self, DumpFormat};
use crate::graph::observe::report::{ReportFormat, report};
use crate::graph::observe::saved_costs;
use crate::graph::observe::{KeptPart, Subject};
use crate::graph::plan::{Plan, Port};
use crate::kernel::Stop;
use crate::sync::{Mailbox, OnceLock};
use std::any::Any;
use std::sync::Arc;

/// Runs on streams that may be queued without an allocation.
const KEPT_QUEUED_RUNS: usize = 32;

/// A compiled graph: immutable, shared, any number of runs at once.
pub struct Program {
    pub(in crate::graph) runs: RunPool,
    pub(in crate::graph) facts: CompileFacts,
    queued_runs: [Mailbox<Arc<QueuedRun>>; KEPT_QUEUED_RUNS],
    /// Fills the pool of queued runs, at the first run on a stream.
    stock: OnceLock<()>,
    /// State of runs of a part of the outputs.
    pub(in crate::graph) parts: Option<PartialPrograms<Ref<Program>>>,
    /// Runs that are made together from outside are attached to it; they are only stopped group by group.
    pub(in crate::graph) together: Stop,
    /// Runs that were issued to streams, for reuse.
    pub(in crate::graph) direct_runs: DirectRuns,
}

impl Kind for Program {
    const TAG: u32 = tag::PROGRAM;
    const NAME: &'static str = "program";
    const COUNTER: live::Counter = live::Counter::Programs;
}

impl Program {
    pub(in crate::graph) fn new(
        compiled: Compiled,
        devices: ProgramDevices,
        facts: CompileFacts,
        parts: Option<PartialPrograms<Ref<Program>>>,
    ) -> Program {
        Program {
            runs: RunPool::new(compiled, devices),
            facts,
            queued_runs: std::array::from_fn(|_| Mailbox::default()),
            stock: OnceLock::new(),
            parts,
            together: Stop::default(),
            direct_runs: DirectRuns::default(),
        }
    }

    #[inline]
    pub(in crate::graph) fn plan(&self) -> &Plan {
        &self.runs.compiled.plan
    }

    /// The same for the whole program and its parts, and for no other that is alive.
    pub fn identity(&self) -> usize {
        self.runs.compiled.identity()
    }

    pub fn name(&self) -> &str {
        &self.plan().name
    }

    pub fn inputs(&self) -> &[Port] {
        &self.plan().inputs
    }

    pub fn outputs(&self) -> &[Port] {
        &self.plan().outputs
    }

    /// The options that it was compiled with.
    pub fn options(&self) -> &CompileOptions {
        &self.facts.options
    }

    /// The program's own engine.
    pub fn engine(&self) -> &Ref<Engine> {
        &self.plan().engines[0]
    }

    /// Whether runs have kernels that complete later.
    pub(in crate::graph) fn has_later_kernels(&self) -> bool {
        !self.plan().calls.is_empty()
    }

    /// Its communications, in the order in which they were added.
    pub fn communications(&self) -> &[Communicated] {
        &self.facts.communications
    }

    /// Number of nodes that a run executes.
    pub fn num_nodes(&self) -> usize {
        self.plan().len()
    }

    /// Port `index`, or an error that says how many there are.
    pub fn port(ports: &[Port], index: usize) -> Result<&Port> {
        ports
            .get(index)
            .ok_or_else(|| Error::out_of_range(format!("index is {index}, the program has {}", ports.len())))
    }

    pub fn dump(&self, format: DumpFormat) -> String {
        dump::program(&self.runs.compiled, format)
    }

    /// Reports what compile did, what the costs that are known by now mean, and what is kept for partial runs.
    pub fn report(&self, format: ReportFormat) -> String {
        let kept = |outputs: &[usize], program: &Ref<Program>| KeptPart {
            outputs: outputs.into(),
            nodes: program.num_nodes(),
            arena_bytes: program.plan().arena_bytes,
        };
        let parts = self.parts.as_ref().map(|parts| parts.each(kept));
        report(&Subject { compiled: &self.runs.compiled, facts: &self.facts, parts }, format)
    }

    /// Frees the memory that is kept for later runs. Runs in flight keep theirs.
    pub fn trim(&self) {
        self.direct_runs.trim();
        self.runs.trim();
    }

    /// An empty queued run. The first call makes as many as are kept, so that later runs allocate nothing while no more
    /// than that many are queued.
    pub(in crate::graph) fn take_queued_run(&self) -> Result<Arc<QueuedRun>> {
        let make = || QueuedRun::create(self.inputs().len() + self.outputs().len());
        // Without memory for all of them there are fewer; a run that allocates its own leaves it here.
        self.stock.get_or_init(|| {
            self.queued_runs.iter().map_while(|_| make().ok()).for_each(|new| put_first(&self.queued_runs, new))
        });
        self.queued_runs.iter().find_map(Mailbox::take).map_or_else(make, Ok)
    }

    pub fn counters(&self) -> ProgramCounters {
        let [begun, ended, failed, cancelled] = self.runs.compiled.tallies.sums();
        // A run may have ended between the reads of its two counters.
        ProgramCounters { begun: begun.max(ended), ended, failed, cancelled }
    }

    /// The statistics of node `index`, in the program's order.
    pub fn node_stats(&self, index: usize) -> Result<NodeStats> {
        let Some(figures) = &self.runs.compiled.figures else {
            return Err(Error::precondition(format!("program '{}' was compiled without statistics", self.name())));
        };
        let Some(figures) = figures.of(index) else {
            let nodes = self.num_nodes();
            return Err(Error::out_of_range(format!("index is {index}, the program has {nodes} nodes")));
        };
        Ok(figures.told(self.plan().names.get(index)))
    }

    /// The costs that runs have learned, as text.
    pub fn save_costs(&self) -> String {
        saved_costs::save(&self.runs.compiled)
    }

    /// Takes costs and iterations from saved costs, and returns how many of the nodes were known. Any other text
    /// changes nothing.
    pub fn load_costs(&self, text: &str) -> Result<usize> {
        saved_costs::load(&self.runs.compiled, text)
    }
}

impl StateHome for Object<Program> {
    fn give_back(&self, state: Arc<dyn Any + Send + Sync>) {
        if let Ok(state) = state.downcast::<RunState>() {
            self.runs.give_state(state);
        }
    }
}

impl Keeps<QueuedRun> for Object<Program> {
    fn runs(&self) -> &RunPool {
        &self.runs
    }

    fn keep(&self, run: Arc<QueuedRun>) {
        put_first(&self.queued_runs, run);
    }
}

impl Keeps<DirectRun> for Object<Program> {
    fn runs(&self) -> &RunPool {
        &self.runs
    }

    fn keep(&self, run: Arc<DirectRun>) {
        self.direct_runs.keep(run);
    }
}
