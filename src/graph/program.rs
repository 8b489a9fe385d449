//! A compiled graph.
#![forbid(unsafe_code)]

use super::compiled::Compiled;
use super::dump::{self, DumpFormat};
use super::exec::{Flight, RunState, Stock};
use super::facts::Facts;
use super::figures::{NodeStats, ProgramCounters};
use super::partial::Parts;
use super::place::{Devices, Direct};
use super::plan::{Plan, Port};
use super::profile;
use crate::base::object::tag;
use crate::base::{Error, Kind, Ref, Result, live};
use crate::engine::{Apart, Engine, Place, Stream};
use crate::kernel::Stop;
use crate::sync::{HandOff, Lent, Loan, OnceLock};
use std::sync::Arc;

/// Steps that a program keeps for later runs.
const KEPT_STATES: usize = 32;

/// Runs on streams that may be queued without an allocation.
const KEPT_FLIGHTS: usize = 32;

/// Checks of tensors that may go on at once without an allocation.
const KEPT_CHECKS: usize = 16;

/// Puts a value into the first empty place; drops it if there is none.
fn put_first<T>(places: &[HandOff<T>], value: T) {
    let _ = places.iter().try_fold(value, |value, place| match place.put(value) {
        Ok(()) => Err(()),
        Err(value) => Ok(value),
    });
}

/// A compiled graph: immutable, shared, any number of runs at once.
pub struct Program {
    pub(super) compiled: Arc<Compiled>,
    pub(super) devices: Devices,
    pub(super) facts: Facts,
    states: [Loan<Arc<RunState>>; KEPT_STATES],
    flights: [HandOff<Arc<Flight>>; KEPT_FLIGHTS],
    /// Makes the stock of flights, at the first run on a stream.
    stock: OnceLock<()>,
    /// What the last checks of tensors have found.
    checks: [HandOff<Apart>; KEPT_CHECKS],
    /// What runs of a part of the outputs need.
    pub(super) parts: Option<Parts>,
    /// What runs are attached to that are made together from outside; they are only stopped group by group.
    pub(super) together: Stop,
    /// Runs that were issued to streams, for later ones.
    pub(super) direct_runs: Stock,
}

impl Kind for Program {
    const TAG: u32 = tag::PROGRAM;
    const NAME: &'static str = "program";
    const COUNTER: live::Counter = live::Counter::Programs;
}

impl Program {
    pub(super) fn new(compiled: Compiled, devices: Devices, facts: Facts, parts: Option<Parts>) -> Program {
        Program {
            compiled: Arc::new(compiled),
            devices,
            facts,
            states: std::array::from_fn(|_| Loan::default()),
            flights: std::array::from_fn(|_| HandOff::default()),
            stock: OnceLock::new(),
            checks: std::array::from_fn(|_| HandOff::default()),
            parts,
            together: Stop::default(),
            direct_runs: Stock::default(),
        }
    }

    #[inline]
    pub(super) fn plan(&self) -> &Plan {
        &self.compiled.plan
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

    /// The program's own engine.
    pub fn engine(&self) -> &Ref<Engine> {
        &self.plan().engines[0]
    }

    /// Whether runs have kernels that complete later.
    pub(super) fn has_later_kernels(&self) -> bool {
        !self.plan().calls.is_empty()
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
        dump::program(&self.compiled, format)
    }

    /// A state for a run on up to `workers` threads: one that is kept, else a new one.
    pub(super) fn take_state(&self, workers: usize) -> Result<Arc<RunState>> {
        for (home, place) in self.states.iter().enumerate() {
            match place.borrow() {
                Lent::Value(state) if state.workers() >= workers => return Ok(state),
                // Made for a narrower pool: let it go, the wider one serves both.
                Lent::Value(_) | Lent::Vacant => {
                    return RunState::create(&self.compiled, workers, Some(home)).inspect_err(|_| place.vacate());
                }
                Lent::Elsewhere => {}
            }
        }
        RunState::create(&self.compiled, workers, None)
    }

    /// What issues runs to this stream, if anything does. Who counts nodes or runs needs the executor.
    pub(super) fn direct_on(&self, stream: &Stream) -> Option<&Direct> {
        let is_plain = self.compiled.figures.is_none() && self.compiled.admission.is_none();
        self.devices.direct.as_deref().filter(|direct| is_plain && direct.engine.is_same_device(stream.engine()))
    }

    /// Refuses a run's output that shares memory with another one of its tensors.
    #[inline]
    pub(super) fn check_apart(
        &self,
        inputs: usize,
        input: impl Fn(usize) -> Place,
        outputs: usize,
        output: impl Fn(usize) -> Place,
    ) -> Result<()> {
        if Apart::needs_nothing(inputs, outputs) {
            return Apart::default().check(inputs, input, outputs, output);
        }
        let mut apart = self.checks.iter().find_map(HandOff::take).unwrap_or_default();
        let result = apart.check(inputs, input, outputs, output);
        put_first(&self.checks, apart);
        result
    }

    /// Gives back the memory that is kept for later runs. Runs that are under way keep theirs.
    pub fn trim(&self) {
        self.direct_runs.trim();
        self.devices.direct.iter().for_each(|direct| direct.trim());
        self.checks.iter().for_each(|check| drop(check.take()));
        for place in &self.states {
            match place.borrow() {
                Lent::Elsewhere => {}
                Lent::Value(_) | Lent::Vacant => place.vacate(),
            }
        }
    }

    /// Keeps a state of `take_state` for a later run, if it has a place.
    #[inline]
    pub(super) fn give_state(&self, state: Arc<RunState>) {
        if let Some(home) = state.home {
            self.states[home].give_back(state);
        }
    }

    /// An empty flight. The first call makes as many as are kept, so that later runs allocate nothing while no more
    /// than that many are queued.
    pub(super) fn take_flight(&self) -> Result<Arc<Flight>> {
        let make = || Flight::create(self.inputs().len() + self.outputs().len());
        // Without memory for all of them there are fewer; a run that makes its own leaves it here.
        self.stock.get_or_init(|| self.flights.iter().map_while(|_| make().ok()).for_each(|new| self.give_flight(new)));
        self.flights.iter().find_map(HandOff::take).map_or_else(make, Ok)
    }

    /// Keeps an empty flight for a later run, if there is room.
    pub(super) fn give_flight(&self, flight: Arc<Flight>) {
        put_first(&self.flights, flight);
    }

    pub fn counters(&self) -> ProgramCounters {
        let [begun, ended, failed, cancelled] = self.compiled.tallies.sums();
        // A run may have ended between the looks at its two counters.
        ProgramCounters { begun: begun.max(ended), ended, failed, cancelled }
    }

    /// The figures of node `index`, in the program's order.
    pub fn node_stats(&self, index: usize) -> Result<NodeStats> {
        let Some(figures) = &self.compiled.figures else {
            return Err(Error::precondition(format!("program '{}' was compiled without statistics", self.name())));
        };
        let Some(figures) = figures.of(index) else {
            let nodes = self.num_nodes();
            return Err(Error::out_of_range(format!("index is {index}, the program has {nodes} nodes")));
        };
        Ok(figures.told(self.plan().names.get(index)))
    }

    /// What runs have learned of costs, as text.
    pub fn save_profile(&self) -> String {
        profile::save(&self.compiled)
    }

    /// Takes costs and iterations from a profile. How many nodes it knew is returned. Nothing changes if the text is
    /// no profile.
    pub fn load_profile(&self, text: &str) -> Result<usize> {
        profile::load(&self.compiled, text)
    }
}
