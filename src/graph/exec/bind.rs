//! A run's tensors: checked, and put where the step's arguments point.

use super::run::Run;
use super::step::Step;
use crate::base::{Error, Object, Ref, Result};
use crate::engine::{Stream, Tensor, check_overlaps, check_tensor, scratch_slots};
use crate::graph::program::{Place, Port};
use crate::graph::{Program, RunOptions};
use crate::kernel::signature;
use crate::stream::Op;
use crate::threadpool::ThreadPool;
use std::mem::ManuallyDrop;
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
    /// A step whose arguments point at the tensors.
    fn step(&self, pool: Option<&Ref<ThreadPool>>) -> Result<Arc<Step>> {
        let step = self.program.take_step(scratch_slots(pool))?;
        for (view, arg) in step.args.iter().zip(&step.layout.args) {
            match arg.place {
                Place::Input(i) => view.set_data((self.inputs.1)(i)?.data()),
                Place::Output(i) => view.set_data((self.outputs.1)(i)?.data()),
                Place::Arena(_) | Place::Constant(_) => {}
            }
        }
        let _ = step.program.put(Ref::clone(self.program));
        Ok(step)
    }

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
        let Some(stream) = stream else {
            return self.step(pool)?.run_here(pool);
        };
        stream.queue().admit()?;
        self.check_stream(stream)?;
        let step = self.step(pool)?;
        if !stream.queue().is_synchronous() {
            self.keep_alive(&step, pool)?;
        } else if let Some(pool) = pool {
            let _ = step.pool.put(Ref::clone(pool));
        }
        stream.queue().submit(Op::Work(step))
    }

    /// Starts on an asynchronous stream, with a handle.
    pub fn start(&self, stream: &Object<Stream>, options: Option<&RunOptions>) -> Result<Ref<Run>> {
        if stream.queue().is_synchronous() {
            return Err(Error::invalid(format!("stream '{}' is not asynchronous", stream.queue().name())));
        }
        stream.queue().admit()?;
        self.check_stream(stream)?;
        let pool = self.pool(Some(stream), options);
        let step = self.step(pool)?;
        self.keep_alive(&step, pool)?;
        let run = Run::create(stream.queue(), &step);
        let _ = step.handle.put(Ref::clone(&run));
        stream.queue().submit(Op::Work(step))?;
        Ok(run)
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

    /// References that last until the run is done.
    fn keep_alive(&self, step: &Arc<Step>, pool: Option<&Ref<ThreadPool>>) -> Result<()> {
        let mut tensors = step.tensors.take().unwrap_or_default();
        for (count, lookup) in [self.inputs, self.outputs] {
            for i in 0..count {
                tensors.push(Ref::clone(&*lookup(i)?));
            }
        }
        let _ = step.tensors.put(tensors);
        if let Some(pool) = pool {
            let _ = step.pool.put(Ref::clone(pool));
        }
        Ok(())
    }
}
