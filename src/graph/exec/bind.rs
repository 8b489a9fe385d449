//! A run's tensors: checked, and put where the step's arguments point.

use super::dynamic;
use super::orders::Orders;
use super::run::Run;
use super::step::Step;
use crate::base::{Error, Object, Ref, Result};
use crate::engine::{Stream, Tensor, check_overlaps, check_tensor, scratch_slots};
use crate::graph::layout::Port;
use crate::graph::{Program, RunOptions};
use crate::kernel::signature;
use crate::memory::View;
use crate::stream::Op;
use crate::threadpool::ThreadPool;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

/// Looks a tensor up in the caller's array; the reference is the caller's own, not counted.
type Lookup<'a> = &'a dyn Fn(usize) -> Result<ManuallyDrop<Ref<Tensor>>>;

/// Checked tensors for a run of a program.
pub struct Bound<'a> {
    program: &'a Ref<Program>,
    inputs: (usize, Lookup<'a>),
    outputs: (usize, Lookup<'a>),
}

impl Program {
    /// Checks the tensors of a run against the program. Nothing is allocated when they are right.
    pub fn bind<'a>(
        program: &'a Ref<Program>,
        inputs: (usize, Lookup<'a>),
        outputs: (usize, Lookup<'a>),
    ) -> Result<Bound<'a>> {
        let engine = &program.layout.engines[0];
        for (what, (count, lookup), ports) in
            [("input", inputs, program.inputs()), ("output", outputs, program.outputs())]
        {
            signature::check_count(what, ports.len(), count)?;
            for (i, port) in ports.iter().enumerate() {
                let tensor = lookup(i)?;
                check_port(what, i, port, &tensor)?;
                check_tensor(what, i, &tensor, engine)?;
            }
        }
        // What a dynamic tensor holds is written when all is read.
        let memory = |tensor: &Tensor| match tensor.open() {
            None => (tensor.data(), tensor.bytes()),
            Some(_) => (std::ptr::null_mut(), 0),
        };
        let view = |lookup: Lookup<'a>, i: usize| lookup(i).map_or((std::ptr::null_mut(), 0), |t| memory(&t));
        check_overlaps(inputs.0, &|i| view(inputs.1, i), outputs.0, &|i| view(outputs.1, i))?;
        dynamic::check_twice(&program.layout.dynamics.outputs, &|i| Ok(Arc::as_ptr(&*outputs.1(i)?)))?;
        Ok(Bound { program, inputs, outputs })
    }
}

/// A tensor's view.
struct Shown(ManuallyDrop<Ref<Tensor>>);

impl Deref for Shown {
    type Target = View;

    fn deref(&self) -> &View {
        self.0.view()
    }
}

fn check_port(what: &str, index: usize, port: &Port, tensor: &Tensor) -> Result<()> {
    if port.desc == *tensor.desc() && tensor.open().is_none() {
        return Ok(());
    }
    dynamic::check_port(what, index, port, tensor)
}

impl Bound<'_> {
    /// The pool of a run: the options' own, else the stream's, else the engine's.
    fn pool<'p>(&'p self, stream: Option<&'p Stream>, options: Option<&'p RunOptions>) -> Option<&'p Ref<ThreadPool>> {
        let own = options.and_then(|options| options.threadpool.as_ref());
        own.or_else(|| match stream {
            Some(stream) => stream.pool(),
            None => self.program.layout.engines[0].pool(),
        })
    }

    /// Runs on a stream, or in this thread.
    pub fn run(&self, stream: Option<&Object<Stream>>, options: Option<&RunOptions>) -> Result<()> {
        let pool = self.pool(stream.map(|stream| &**stream), options);
        let orders = Orders::of(options, &self.program.layout)?;
        match stream {
            Some(stream) => self.submit(stream, pool, None, orders)?,
            None => self.run_told(pool, orders)?,
        }
        match pool {
            Some(pool) if stream.is_none_or(|stream| stream.queue().is_synchronous()) => pool.intact(),
            _ => Ok(()),
        }
    }

    /// Runs in this thread, with helpers from the pool.
    pub fn run_here(&self, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
        self.run_told(pool, None)
    }

    fn run_told(&self, pool: Option<&Ref<ThreadPool>>, orders: Option<Orders>) -> Result<()> {
        let step = self.program.take_step(scratch_slots(pool))?;
        // Looked up once before, so they are there.
        let data = |lookup: Lookup<'_>, i: usize| lookup(i).map_or(std::ptr::null_mut(), |tensor| tensor.data());
        step.bind(|i| data(self.inputs.1, i), |o| data(self.outputs.1, o));
        step.obey(orders);
        let result = match self.program.layout.dynamics.is_empty() {
            true => step.run_here(pool),
            false => self.run_open(&step, pool),
        };
        self.program.give_step(step);
        result
    }

    /// With shapes that only the run knows.
    fn run_open(&self, step: &Arc<Step>, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
        step.take_shapes(|i| self.inputs.1(i).map(Shown))?;
        step.run_here(pool)?;
        step.publish(|o| self.outputs.1(o))
    }

    /// Starts on an asynchronous stream, with a handle.
    pub fn start(&self, stream: &Object<Stream>, options: Option<&RunOptions>) -> Result<Ref<Run>> {
        if stream.queue().is_synchronous() {
            return Err(Error::invalid(format!("stream '{}' is not asynchronous", stream.queue().name())));
        }
        let run = Run::create(stream.queue());
        let orders = Orders::of(options, &self.program.layout)?;
        self.submit(stream, self.pool(Some(stream), options), Some(&run), orders)?;
        Ok(run)
    }

    fn submit(
        &self,
        stream: &Object<Stream>,
        pool: Option<&Ref<ThreadPool>>,
        handle: Option<&Ref<Run>>,
        orders: Option<Orders>,
    ) -> Result<()> {
        stream.queue().admit()?;
        self.check_stream(stream)?;
        let flight = self.program.take_flight();
        let mut tensors = flight.list();
        for (count, lookup) in [self.inputs, self.outputs] {
            for i in 0..count {
                tensors.push(Ref::clone(&*lookup(i)?));
            }
        }
        flight.board(self.program, tensors, pool, handle);
        flight.order(orders);
        stream.queue().submit(Op::Work(flight))
    }

    fn check_stream(&self, stream: &Stream) -> Result<()> {
        if self.program.layout.engines.iter().any(|engine| engine.is_same_device(stream.engine())) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "stream '{}' is on engine {}, which is not among the engines of the program",
            stream.queue().name(),
            stream.engine().label()
        )))
    }
}
