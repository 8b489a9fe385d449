//! A run's tensors: checked, and put where the step's arguments point.

use super::orders::Orders;
use super::run::Run;
use crate::base::{Error, Object, Ref, Result};
use crate::engine::{Stream, Tensor, check_overlaps, check_tensor, scratch_slots};
use crate::graph::layout::Port;
use crate::graph::{Program, RunOptions};
use crate::kernel::{Stop, signature};
use crate::stream::Op;
use crate::threadpool::ThreadPool;
use std::mem::ManuallyDrop;

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
        let view =
            |lookup: Lookup<'a>, i: usize| lookup(i).map_or((std::ptr::null_mut(), 0), |t| (t.data(), t.bytes()));
        check_overlaps(inputs.0, &|i| view(inputs.1, i), outputs.0, &|i| view(outputs.1, i))?;
        Ok(Bound { program, inputs, outputs })
    }
}

fn check_port(what: &str, index: usize, port: &Port, tensor: &Tensor) -> Result<()> {
    if port.desc == *tensor.desc() {
        return Ok(());
    }
    let Port { name, desc } = port;
    Err(Error::invalid(format!("{what} {index} '{name}': expected {}, got {}", desc.text(), tensor.desc().text())))
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
            None => self.run_told(pool, orders, None)?,
        }
        match pool {
            Some(pool) if stream.is_none_or(|stream| stream.queue().is_synchronous()) => pool.intact(),
            _ => Ok(()),
        }
    }

    /// Runs in this thread, inside of a call, with helpers from the pool; stopped when the call's run is.
    pub fn run_within(&self, pool: Option<&Ref<ThreadPool>>, outer: &Stop) -> Result<()> {
        self.run_told(pool, Orders::within(outer), Some(outer))
    }

    fn run_told(&self, pool: Option<&Ref<ThreadPool>>, orders: Option<Orders>, outer: Option<&Stop>) -> Result<()> {
        let step = self.program.take_step(scratch_slots(pool))?;
        // Looked up once before, so they are there.
        let data = |lookup: Lookup<'_>, i: usize| lookup(i).map_or(std::ptr::null_mut(), |tensor| tensor.data());
        step.bind(|i| data(self.inputs.1, i), |o| data(self.outputs.1, o));
        step.obey(orders);
        let result = match outer {
            Some(outer) => step.run_within(pool, outer),
            None => step.run_here(pool),
        };
        self.program.give_step(step);
        result
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
