//! A run's tensors: checked, and put where the state's arguments point.

use super::on_stream::{DirectRun, Tensors};
use super::pool::Keeps;
use super::program::Program;
use super::queued_run::QueuedRun;
use crate::base::{Error, Object, Ref, Result};
use crate::engine::{Engine, LaunchKey, Stream, Tensor, TensorRange, check_tensor, scratch_slots};
use crate::graph::build::options::RunOptions;
use crate::graph::carry::admission::{Admitted, Asks};
use crate::graph::carry::device::direct::Direct;
use crate::graph::carry::host::dynamic;
use crate::graph::carry::host::execute::Outer;
use crate::graph::carry::host::one_by_one;
use crate::graph::carry::orders::Orders;
use crate::graph::carry::state::RunState;
use crate::graph::plan::Port;
use crate::graph::run::handle::Run;
use crate::memory::{View, heap};
use crate::ops::signature;
use crate::stream::{Listener, Notice, QueueItem};
use crate::threadpool::ThreadPool;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

/// Looks a tensor up in the caller's array; the reference belongs to the caller and is not counted.
pub(in crate::graph) type Lookup<'a> = &'a dyn Fn(usize) -> Result<ManuallyDrop<Ref<Tensor>>>;

/// Checked tensors for a run of a program.
pub struct Bound<'a> {
    pub(in crate::graph) program: &'a Ref<Program>,
    pub(in crate::graph) inputs: (usize, Lookup<'a>),
    pub(in crate::graph) outputs: (usize, Lookup<'a>),
}

impl Program {
    /// Checks the tensors of a run against the program. Nothing is allocated when they are right.
    #[inline(always)]
    pub fn bind<'a>(
        program: &'a Ref<Program>,
        inputs: (usize, Lookup<'a>),
        outputs: (usize, Lookup<'a>),
    ) -> Result<Bound<'a>> {
        let bound = Bound { program, inputs, outputs };
        bound.check()?;
        Ok(bound)
    }
}

impl<'a> Bound<'a> {
    fn check(&self) -> Result<()> {
        let Bound { program, inputs, outputs } = *self;
        let engine = &program.plan().engines[0];
        let not_needed = &program.plan().not_needed[..];
        for (what, (count, lookup), ports, left_out) in
            [("input", inputs, program.inputs(), not_needed), ("output", outputs, program.outputs(), &[])]
        {
            signature::check_count(what, ports.len(), count)?;
            for (i, port) in ports.iter().enumerate() {
                if !left_out.is_empty() && left_out[i] {
                    continue;
                }
                let tensor = lookup(i)?;
                check_port(what, i, port, &tensor)?;
                match &port.engine {
                    None => check_tensor(what, i, &tensor, engine)?,
                    Some(home) => check_home(what, i, port, &tensor, home)?,
                }
            }
        }
        if outputs.0 == 0 {
            return Ok(());
        }
        let is_needed = |i: usize| not_needed.is_empty() || !not_needed[i];
        // An input that is not needed may be missing, and is not looked up.
        let input = |i: usize| match is_needed(i).then(|| inputs.1(i)) {
            // The memory of a dynamic tensor is written after all reads.
            Some(Ok(tensor)) if tensor.open().is_none() => self.place(&tensor),
            _ => TensorRange::NOWHERE,
        };
        let output = |o: usize| match outputs.1(o) {
            // Checked as an object, whatever memory it has: it can take only one output.
            Ok(tensor)
                if tensor.open().is_some() || tensor.bytes() == 0 && !program.outputs()[o].desc.is_concrete() =>
            {
                TensorRange { engine: u32::MAX, data: Arc::as_ptr(&*tensor).addr(), bytes: 1 }
            }
            Ok(tensor) => self.place(&tensor),
            Err(_) => TensorRange::NOWHERE,
        };
        program.runs.check_apart(inputs.0, input, outputs.0, output)
    }

    /// The memory of a tensor, by the engines of the program.
    fn place(&self, tensor: &Tensor) -> TensorRange {
        let devices = &self.program.runs.devices.engines;
        let is_there = |device: &Ref<Engine>| tensor.engine().is_same_device(device);
        let device = if devices.is_empty() { None } else { devices.iter().position(is_there) };
        let engine = device.map_or(0, |device| device as u32 + 1);
        TensorRange { engine, data: tensor.data().addr(), bytes: tensor.bytes() }
    }
}

/// Refuses a tensor that is not on the engine that the graph requires.
fn check_home(what: &str, index: usize, port: &Port, tensor: &Tensor, home: &Engine) -> Result<()> {
    if tensor.engine().is_same_device(home) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{what} {index} '{}': expected a tensor on {}, got one on {}",
        port.name,
        home.label(),
        tensor.engine().label()
    )))
}

/// A tensor's view.
struct BoundView(ManuallyDrop<Ref<Tensor>>);

impl Deref for BoundView {
    type Target = View;

    fn deref(&self) -> &View {
        self.0.view()
    }
}

fn check_port(what: &str, index: usize, port: &Port, tensor: &Tensor) -> Result<()> {
    // The memory of a dynamic tensor is looked at when the run begins: an earlier run may still change it.
    if tensor.open().is_none() && port.desc == *tensor.desc() {
        return Ok(());
    }
    dynamic::check_port(what, index, port, tensor)
}

impl Bound<'_> {
    /// The pool of a run: that of the options, else the stream's, else the engine's. Fails if it is closed.
    fn pool<'p>(
        &'p self,
        stream: Option<&'p Stream>,
        options: Option<&'p RunOptions>,
    ) -> Result<Option<&'p Ref<ThreadPool>>> {
        let own = options.and_then(|options| options.threadpool.as_ref());
        let pool = own.or_else(|| match stream {
            Some(stream) if stream.pool().is_some() || stream.engine().accelerator().is_none() => stream.pool(),
            // On a device's stream the pool runs the host's part of the work.
            _ => self.program.plan().engines[0].pool(),
        });
        pool.map_or(Ok(()), |pool| pool.usable())?;
        Ok(pool)
    }

    /// Runs on a stream, or in this thread.
    pub fn run(&self, stream: Option<&Object<Stream>>, options: Option<&RunOptions>) -> Result<()> {
        let pool = self.pool(stream.map(|stream| &**stream), options)?;
        let orders = Orders::of(options, self.program.plan())?;
        let no_wait = options.is_some_and(|options| options.no_wait);
        let listener = options.and_then(|options| options.listener.as_ref());
        if listener.is_some() && stream.is_none_or(|stream| stream.queue().is_synchronous()) {
            options.map_or(Ok(()), RunOptions::refuse_listener)?;
        }
        match stream {
            Some(stream) => self.submit(stream, pool, None, orders, (no_wait, listener))?,
            None if self.program.runs.compiled.admission.is_some() => self.run_with_permit(pool, orders, no_wait)?,
            None => self.run_told(pool, orders.as_ref(), None)?,
        }
        match pool {
            Some(pool) if stream.is_none_or(|stream| stream.queue().is_synchronous()) => pool.intact(),
            _ => Ok(()),
        }
    }

    /// Runs in this thread, nested in another run or call, with helpers from the pool.
    pub(in crate::graph) fn run_inside(
        &self,
        pool: Option<&Ref<ThreadPool>>,
        orders: Option<Orders>,
        outer: Outer<'_>,
    ) -> Result<()> {
        self.run_told(pool, orders.as_ref(), Some(outer))
    }

    /// A run's request for a permit of the program.
    fn asks<'p>(&'p self, pool: Option<&'p Ref<ThreadPool>>, orders: Option<&Orders>, no_wait: bool) -> Asks<'p> {
        let deadline_at_ns = orders.map_or(0, Orders::deadline_at_ns);
        Asks { name: self.program.name(), no_wait, pool, deadline_at_ns }
    }

    /// A permit for a run here, in a program that bounds its concurrent runs.
    fn enter(
        &self,
        pool: Option<&Ref<ThreadPool>>,
        orders: Option<&Orders>,
        no_wait: bool,
    ) -> Result<Option<Admitted>> {
        match &self.program.runs.compiled.admission {
            None => Ok(None),
            Some(admission) => admission.enter(&self.asks(pool, orders, no_wait)),
        }
    }

    /// Runs in this thread, once there is a permit.
    #[cold]
    fn run_with_permit(&self, pool: Option<&Ref<ThreadPool>>, orders: Option<Orders>, no_wait: bool) -> Result<()> {
        let _admitted = self.enter(pool, orders.as_ref(), no_wait)?;
        self.run_told(pool, orders.as_ref(), None)
    }

    #[inline]
    fn run_told(
        &self,
        pool: Option<&Ref<ThreadPool>>,
        orders: Option<&Orders>,
        outer: Option<Outer<'_>>,
    ) -> Result<()> {
        let state = self.bound_state(pool, orders)?;
        let result = match (self.program.plan().dynamics.is_empty(), outer) {
            (true, None) => state.run_here(pool),
            (true, Some(outer)) => state.run_inside(pool, outer),
            (false, outer) => self.run_open(&state, pool, outer),
        };
        self.given_back(state, result)
    }

    /// A state for this run, with its tensors and orders set.
    #[inline]
    fn bound_state(&self, pool: Option<&Ref<ThreadPool>>, orders: Option<&Orders>) -> Result<Arc<RunState>> {
        let state = self.program.runs.take_state(scratch_slots(pool))?;
        // They were looked up once before, so they are there.
        let data = |lookup: Lookup<'_>, i: usize| lookup(i).map_or(std::ptr::null_mut(), |tensor| tensor.data());
        state.obey(orders);
        if self.program.plan().not_needed.is_empty() {
            // SAFETY: a state that is this run's alone. The tensors were checked, and the host keeps them to the run.
            unsafe { state.bind(None, |i| data(self.inputs.1, i), |o| data(self.outputs.1, o)) };
        } else {
            let needs = |i: usize| self.program.plan().needs_input(i);
            let input = |i: usize| if needs(i) { data(self.inputs.1, i) } else { std::ptr::null_mut() };
            // SAFETY: as above.
            unsafe { state.bind(None, input, |o| data(self.outputs.1, o)) };
        }
        Ok(state)
    }

    /// A state whose run may be opened by the owner of several runs.
    pub(in crate::graph) fn prepared(
        &self,
        pool: Option<&Ref<ThreadPool>>,
        orders: Option<&Orders>,
    ) -> Result<Arc<RunState>> {
        let state = self.bound_state(pool, orders).inspect_err(|error| self.program.runs.not_begun(error))?;
        let ready = state.may_wait_here(pool).and_then(|()| match self.program.plan().dynamics.is_empty() {
            true => Ok(()),
            // SAFETY: as above.
            false => unsafe { state.take_shapes(|i| self.inputs.1(i).map(BoundView)) },
        });
        match ready {
            Ok(()) => Ok(state),
            Err(error) => {
                self.program.runs.not_begun(&error);
                self.given_back(Arc::clone(&state), Err(error)).map(|()| state)
            }
        }
    }

    /// Ends a run of such a state: publishes its outputs.
    pub(in crate::graph) fn ended(&self, state: &Arc<RunState>, result: Result<()>) -> Result<()> {
        let result = result.and_then(|()| match self.program.plan().dynamics.is_empty() {
            true => Ok(()),
            // SAFETY: the run is closed, and its owner is here; the host keeps the tensors to the run.
            false => unsafe { state.publish(|o| self.outputs.1(o)) },
        });
        self.given_back(Arc::clone(state), result)
    }

    fn given_back(&self, state: Arc<RunState>, result: Result<()>) -> Result<()> {
        self.program.runs.give_state(state);
        if let (Err(_), Some(frames)) = (&result, &self.program.runs.devices.frames) {
            frames.keep(Arc::new((Ref::clone(self.program), self.on_devices())));
        }
        result
    }

    /// References to the tensors on accelerators.
    #[cold]
    fn on_devices(&self) -> Vec<Ref<Tensor>> {
        let plan = self.program.plan();
        let given = |ports: &[Port], lookup: Lookup<'_>| {
            let is_there = |i: &usize| ports[*i].engine.is_some();
            let shared = |i: usize| lookup(i).ok().map(|tensor| Ref::clone(&*tensor));
            (0..ports.len()).filter(is_there).filter_map(shared).collect::<Vec<_>>()
        };
        let mut all = given(&plan.inputs, self.inputs.1);
        all.extend(given(&plan.outputs, self.outputs.1));
        all
    }

    /// For programs with shapes that only the run knows.
    fn run_open(&self, state: &Arc<RunState>, pool: Option<&Ref<ThreadPool>>, outer: Option<Outer<'_>>) -> Result<()> {
        // SAFETY: the state is this run's alone, and the host keeps the tensors to the run.
        unsafe { state.take_shapes(|i| self.inputs.1(i).map(BoundView)) }?;
        match outer {
            None => state.run_here(pool)?,
            Some(outer) => state.run_inside(pool, outer)?,
        }
        // SAFETY: the run is closed, and its owner is here.
        unsafe { state.publish(|o| self.outputs.1(o)) }
    }

    /// Starts on an asynchronous stream, with a handle.
    pub fn start(&self, stream: &Object<Stream>, options: Option<&RunOptions>) -> Result<Ref<Run>> {
        if stream.queue().is_synchronous() {
            return Err(Error::invalid(format!("stream '{}' is not asynchronous", stream.queue().name())));
        }
        let run = Run::create(stream.queue());
        let orders = Orders::of(options, self.program.plan())?;
        let no_wait = options.is_some_and(|options| options.no_wait);
        let listener = options.and_then(|options| options.listener.as_ref());
        self.submit(stream, self.pool(Some(stream), options)?, Some(&run), orders, (no_wait, listener))?;
        Ok(run)
    }

    fn submit(
        &self,
        stream: &Object<Stream>,
        pool: Option<&Ref<ThreadPool>>,
        handle: Option<&Ref<Run>>,
        orders: Option<Orders>,
        (no_wait, listener): (bool, Option<&Listener>),
    ) -> Result<()> {
        stream.queue().admit().inspect_err(|error| self.program.runs.not_begun(error))?;
        self.check_stream(stream)?;
        if orders.is_some_and(|orders| orders.is_serial()) {
            one_by_one::check_stream(stream.queue(), self.program.plan())?;
        }
        let is_direct = handle.is_none() && orders.is_none() && self.is_direct_on(stream)?;
        if !is_direct || listener.is_some() {
            self.check_not_captured(stream)?;
        }
        let notice = listener.map(|listener| stream.queue().notice(*listener)).transpose()?;
        if is_direct {
            return self.submit_direct(stream, notice);
        }
        // On a synchronous stream the permit is acquired now, so that a refusal comes before anything else.
        let admission = self.program.runs.compiled.admission.as_ref().filter(|admission| !admission.is_inside());
        let (mut admitted, mut accepted) = (None, None);
        match admission {
            None => {}
            Some(_) if stream.queue().is_synchronous() => admitted = self.enter(pool, orders.as_ref(), no_wait)?,
            Some(admission) => accepted = Some(admission.accept(&self.asks(pool, orders.as_ref(), no_wait))?),
        }
        let queued_run = self.program.take_queued_run()?;
        let mut tensors = queued_run.list();
        for i in 0..self.inputs.0 {
            let needed = self.program.plan().needs_input(i);
            tensors.push(if needed { Some(Ref::clone(&*self.inputs.1(i)?)) } else { None });
        }
        for i in 0..self.outputs.0 {
            tensors.push(Some(Ref::clone(&*self.outputs.1(i)?)));
        }
        queued_run.fill(Arc::clone(self.program) as Arc<dyn Keeps<QueuedRun>>, tensors, pool, handle);
        queued_run.order(orders);
        queued_run.accept(accepted);
        heap::check()?;
        // From here on nothing fails: after an error the host is told nothing, and keeps its context.
        notice.iter().for_each(Notice::adopt);
        queued_run.announce(notice);
        let work = QueueItem::Work(queued_run);
        if admitted.is_none() {
            return stream.queue().submit(work);
        }
        let mut acquire = || match admitted.take() {
            None => self.enter(pool, orders.as_ref(), no_wait),
            first => Ok(first),
        };
        stream.queue().submit_with(work, &mut acquire)
    }

    fn check_stream(&self, stream: &Stream) -> Result<()> {
        let plan = self.program.plan();
        if plan
            .engines
            .iter()
            .chain(&self.program.runs.devices.engines)
            .any(|engine| engine.is_same_device(stream.engine()))
        {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "stream '{}' is on engine {}, which is not among the engines of the program",
            stream.queue().name(),
            stream.engine().label()
        )))
    }
}

/// Runs that are issued to the stream like a kernel (`direct`).
impl Bound<'_> {
    /// Whether the run is issued to the stream like a kernel; to be checked before each run.
    fn is_direct_on(&self, stream: &Stream) -> Result<bool> {
        let Some(direct) = self.program.runs.direct_on(stream) else { return Ok(false) };
        match direct.is_possible() {
            Some(is_possible) => Ok(is_possible),
            None => self.try_out(direct, stream),
        }
    }

    /// Refuses a run that is not issued like a kernel, if the host captures the stream.
    fn check_not_captured(&self, stream: &Stream) -> Result<()> {
        let queue = stream.queue();
        match queue.device_queue() {
            Some(line) if line.is_captured()? => {}
            _ => return Ok(()),
        }
        let direct = self.program.facts.placement.direct.text();
        let why = direct.strip_prefix("no, ").unwrap_or("it has a handle or options, tells of its end, or is counted");
        let (program, name) = (self.program.name(), queue.name());
        Err(Error::precondition(format!(
            "program '{program}': stream '{name}' is being captured, and the run cannot be part of that: {why}"
        )))
    }

    #[cold]
    fn try_out(&self, direct: &Direct, stream: &Stream) -> Result<bool> {
        let mut tensors = Tensors::new();
        self.give(&mut tensors)?;
        let tried = direct.try_out(stream.queue(), &tensors);
        tried.map_err(|error| error.within(format_args!("program '{}'", self.program.name())))
    }

    fn give(&self, tensors: &mut Tensors) -> Result<()> {
        for i in 0..self.inputs.0 {
            let needed = self.program.plan().needs_input(i);
            tensors.push(if needed { Some(Ref::clone(&*self.inputs.1(i)?)) } else { None });
        }
        for i in 0..self.outputs.0 {
            tensors.push(Some(Ref::clone(&*self.outputs.1(i)?)));
        }
        Ok(())
    }

    /// Identifies the run for later runs (`LaunchKey::set`); empty if each one must be checked. A stream of the host's
    /// may be captured at any time, and an input that is not needed may be anything.
    fn key(&self, stream: &Stream) -> LaunchKey {
        let is_own = stream.queue().device_queue().is_some_and(|line| line.stream().tells_idle());
        if !is_own || !self.program.plan().not_needed.is_empty() {
            return LaunchKey::default();
        }
        let address = |lookup: Lookup<'_>, i: usize| lookup(i).map_or(0, |tensor| Arc::as_ptr(&tensor).addr());
        let inputs = (0..self.inputs.0).map(|i| address(self.inputs.1, i));
        let outputs = (0..self.outputs.0).map(|i| address(self.outputs.1, i));
        let mut key = LaunchKey::default();
        key.set(Arc::as_ptr(self.program).addr(), inputs, outputs);
        key
    }

    /// Issues the run to a stream of its engine.
    fn submit_direct(&self, stream: &Stream, notice: Option<Notice>) -> Result<()> {
        let key = if notice.is_none() { self.key(stream) } else { LaunchKey::default() };
        if stream.again(&key) {
            return Ok(());
        }
        let mut run = self.program.direct_runs.take();
        let program = Arc::clone(self.program) as Arc<dyn Keeps<DirectRun>>;
        run.fill(program, |tensors| self.give(tensors), (stream, notice))?;
        stream.queue().submit_as(QueueItem::Work(run), &key)
    }
}
