//! Where programs run: an engine, pools, streams.

use super::build::{Lowering, build, partial_runs};
use super::kit::run::lend;
use super::leaves::{desc, read, tensor};
use super::pools;
use super::probe::Board;
use super::random::Random;
use super::spec::{Data, Spec, Type};
use std::sync::{Arc, Mutex, OnceLock};
use weir_core::abi::WEIR_TIMEOUT_INFINITE;
use weir_core::base::{Ref, Result};
use weir_core::device::DeviceKind;
use weir_core::engine::{Engine, Stream, StreamAttr, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program, Run, RunOptions};
use weir_core::threadpool::ThreadPool;

/// A pool and streams to use it from.
pub struct Place {
    pub name: String,
    pub pool: Option<Ref<ThreadPool>>,
    /// Asynchronous: one with a thread of its own, whose runs are told to use the pool, and one on the pool itself.
    pub streams: Vec<Ref<Stream>>,
}

/// Everything that outlives a single graph.
pub struct Stage {
    pub engine: Ref<Engine>,
    pub places: Vec<Place>,
    /// Seeded ones, for those who do not need one of their own.
    seeded: OnceLock<Vec<Place>>,
    /// Gives a list as it is.
    copy: OnceLock<Ref<Program>>,
}

/// No leaf gives more elements.
const LONGEST_LIST: usize = 400;

/// How many seeded pools a stage has.
const SEEDED: u64 = 8;

impl Stage {
    pub fn new() -> Stage {
        let engine = Engine::create(DeviceKind::CPU, 0, None).unwrap();
        // Where one pool stands in for all, there is no point in naming others.
        let replaced = std::env::var_os("WEIR_TEST_POOL").is_some();
        let mut all = vec![("no pool", None), ("2 threads", Some(pools::of(2)))];
        if !replaced {
            all.push(("one thread", Some(pools::named("one", 1))));
            all.push(("inline", Some(ThreadPool::inline())));
            all.push(("lifo", Some(pools::named("lifo", 2))));
            all.push(("half", Some(pools::named("half", 3))));
        }
        let places = all.into_iter().map(|(name, pool)| Place::new(&engine, name, pool)).collect();
        Stage { engine, places, seeded: OnceLock::new(), copy: OnceLock::new() }
    }

    /// A place for this seed: as `seeded`, but the pool has a past.
    pub fn seeded_before(&self, seed: u64) -> &Place {
        let all = self.seeded.get_or_init(|| (0..SEEDED).map(|seed| self.seeded(seed)).collect());
        &all[(seed % SEEDED) as usize]
    }

    /// A tensor with this in it; of a list now and then one that a run has made.
    fn input(&self, data: &Data, random: &mut Random) -> Ref<Tensor> {
        let tensor = tensor(&self.engine, data);
        if data.kind != Type::List || !random.once_in(3) {
            return tensor;
        }
        let program = self.copy.get_or_init(|| {
            let mut graph = Graph::new("copy");
            let value = graph.add_input("list", desc(Type::List)).unwrap();
            graph.add_output("same", value).unwrap();
            Program::compile(&graph, vec![Ref::clone(&self.engine)], &CompileOptions::default()).unwrap()
        });
        let made = Tensor::create_open(Ref::clone(&self.engine), desc(Type::List)).unwrap();
        let (input, output) = (|_| Ok(lend(&tensor)), |_| Ok(lend(&made)));
        Program::bind(program, (1, &input), (1, &output)).and_then(|bound| bound.run(None, None)).unwrap();
        made
    }

    /// A pool that draws from this seed what it does, unless one stands in for all.
    pub fn seeded(&self, seed: u64) -> Place {
        let pool = match std::env::var_os("WEIR_TEST_POOL") {
            Some(_) => pools::of(3),
            None => crate::kit::pools::seeded(seed, 2),
        };
        Place::new(&self.engine, &format!("seeded {seed}"), Some(pool))
    }
}

impl Place {
    fn new(engine: &Ref<Engine>, name: &str, pool: Option<Ref<ThreadPool>>) -> Place {
        let mut attrs = vec![StreamAttr::new(DeviceKind::CPU)];
        if pool.is_some() {
            attrs.push(StreamAttr::new(DeviceKind::CPU));
            attrs[1].set_threadpool(pool.clone());
        }
        let stream = |mut attr: StreamAttr| {
            attr.asynchronous = true;
            Stream::create(Ref::clone(engine), attr).unwrap()
        };
        Place { name: name.to_owned(), pool, streams: attrs.into_iter().map(stream).collect() }
    }
}

type Used = Arc<Mutex<Vec<Ref<Tensor>>>>;

/// A compiled spec.
pub struct Subject {
    pub program: Ref<Program>,
    pub board: Arc<Board>,
    /// Whether runs may ask for some of the outputs.
    pub has_parts: bool,
    engine: Ref<Engine>,
    /// Of each set.
    inputs: Vec<Vec<Ref<Tensor>>>,
    outputs: Vec<Type>,
    /// Tensors that runs have given a shape, for other runs.
    used: Used,
}

impl Subject {
    pub fn new(spec: &Spec, stage: &Stage, lowering: Lowering) -> Result<Subject> {
        let board = Arc::new(Board::new(spec));
        let program = build(spec, &stage.engine, &board, lowering)?;
        let mut random = Random::new(spec.seed ^ 0xfeed);
        let mut set = |set: &Vec<Data>| set.iter().map(|data| stage.input(data, &mut random)).collect();
        Ok(Subject {
            program,
            board,
            has_parts: partial_runs(spec) > 0,
            engine: Ref::clone(&stage.engine),
            inputs: spec.inputs.iter().map(&mut set).collect(),
            outputs: spec.graph.outputs.iter().map(|&value| spec.graph.type_of(value)).collect(),
            used: Used::default(),
        })
    }

    pub fn sets(&self) -> usize {
        self.inputs.len()
    }

    pub fn num_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Tensors for the outputs, full of what no run writes by chance.
    pub fn targets(&self, random: &mut Random) -> Targets {
        self.targets_for(&(0..self.outputs.len()).collect::<Vec<_>>(), random)
    }

    /// Tensors for some of the outputs.
    pub fn targets_for(&self, outputs: &[usize], random: &mut Random) -> Targets {
        let target = |&output: &usize| {
            let (kind, port) = (self.outputs[output], &self.program.outputs()[output].desc);
            if !port.is_concrete() {
                return Target { tensor: self.open(random), kind };
            }
            let items: Vec<i32> = (0..kind.len()).map(|_| random.next() as i32 & 0x7f | 0x40).collect();
            Target { tensor: tensor(&self.engine, &Data::new(kind, &items)), kind }
        };
        let targets: Vec<Target> = outputs.iter().map(target).collect();
        let before = targets.iter().map(Target::look).collect();
        Targets { targets, before, used: Arc::clone(&self.used) }
    }

    /// A tensor for a list: new, or with what a run made in it, or over memory of the test's.
    fn open(&self, random: &mut Random) -> Ref<Tensor> {
        if let Some(used) = self.used.lock().unwrap().pop().filter(|_| random.once_in(2)) {
            return used;
        }
        let engine = Ref::clone(&self.engine);
        if !random.once_in(4) {
            return Tensor::create_open(engine, desc(Type::List)).unwrap();
        }
        let mut memory = vec![0i32; LONGEST_LIST];
        let (data, bytes) = (memory.as_mut_ptr().cast(), LONGEST_LIST * 4);
        // SAFETY: the list's memory, which the tensor keeps.
        unsafe { Tensor::create_open_from(engine, desc(Type::List), data, bytes, Box::new(memory)) }.unwrap()
    }

    /// Runs with input set `set`, and asks for these outputs only.
    pub fn run_part(
        &self,
        set: usize,
        outputs: &[usize],
        targets: &Targets,
        pool: Option<&Ref<ThreadPool>>,
    ) -> Result<()> {
        let part = self.program.part(outputs)?;
        self.bound(&part, set, targets, |bound| bound.run(None, Some(&options(pool))))
    }

    /// Runs with input set `set`: here, or queued on a stream.
    pub fn run(
        &self,
        set: usize,
        outputs: &Targets,
        stream: Option<&Ref<Stream>>,
        pool: Option<&Ref<ThreadPool>>,
    ) -> Result<()> {
        self.run_told(set, outputs, stream, &options(pool))
    }

    pub fn run_told(
        &self,
        set: usize,
        outputs: &Targets,
        stream: Option<&Ref<Stream>>,
        options: &RunOptions,
    ) -> Result<()> {
        self.bound(&self.program, set, outputs, |bound| bound.run(stream.map(|stream| &**stream), Some(options)))
    }

    /// As `run` on a stream, with a handle.
    pub fn start(
        &self,
        set: usize,
        outputs: &Targets,
        stream: &Ref<Stream>,
        pool: Option<&Ref<ThreadPool>>,
    ) -> Result<Ref<Run>> {
        self.start_told(set, outputs, stream, &options(pool))
    }

    pub fn start_told(
        &self,
        set: usize,
        outputs: &Targets,
        stream: &Ref<Stream>,
        options: &RunOptions,
    ) -> Result<Ref<Run>> {
        self.bound(&self.program, set, outputs, |bound| bound.start(stream, Some(options)))
    }

    fn bound<T>(
        &self,
        program: &Ref<Program>,
        set: usize,
        outputs: &Targets,
        go: impl FnOnce(weir_core::graph::Bound<'_>) -> Result<T>,
    ) -> Result<T> {
        let inputs = &self.inputs[set];
        let outputs = &outputs.targets;
        let (input, output) = (|i: usize| Ok(lend(&inputs[i])), |i: usize| Ok(lend(&outputs[i].tensor)));
        go(Program::bind(program, (inputs.len(), &input), (outputs.len(), &output))?)
    }
}

/// Where an output goes.
struct Target {
    tensor: Ref<Tensor>,
    kind: Type,
}

impl Target {
    fn look(&self) -> Vec<i32> {
        read(self.tensor.view(), self.kind)
    }
}

/// Where a run's outputs go, and what is there before.
pub struct Targets {
    targets: Vec<Target>,
    before: Vec<Vec<i32>>,
    used: Used,
}

impl Drop for Targets {
    fn drop(&mut self) {
        let open = self.targets.drain(..).map(|target| target.tensor).filter(|tensor| tensor.open().is_some());
        self.used.lock().unwrap().extend(open);
    }
}

impl Targets {
    /// What is in each of them, before and now. For when no run uses them.
    pub fn look(&self) -> Vec<(Vec<i32>, Vec<i32>)> {
        self.before.iter().cloned().zip(self.targets.iter().map(Target::look)).collect()
    }

    /// A run that did not succeed leaves lists as they were.
    pub fn check_lists_are_left_alone(&self) -> std::result::Result<(), String> {
        for (i, (target, (before, now))) in self.targets.iter().zip(self.look()).enumerate() {
            if target.tensor.open().is_some() && before != now {
                return Err(format!("output {i} was {before:?}, and the run that did not succeed left {now:?}"));
            }
        }
        Ok(())
    }
}

pub fn options(pool: Option<&Ref<ThreadPool>>) -> RunOptions {
    #[allow(clippy::needless_update, reason = "there may be more options than these")]
    RunOptions { threadpool: pool.cloned(), ..RunOptions::default() }
}

pub fn synchronize(stream: &Ref<Stream>) -> Result<()> {
    stream.synchronize(WEIR_TIMEOUT_INFINITE)
}
