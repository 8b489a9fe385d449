//! Where programs run: an engine, pools, streams.

use super::build::{Lowering, build};
use super::leaves::{read, tensor};
use super::pools;
use super::probe::Board;
use super::random::Random;
use super::spec::{Data, Spec, Type};
use std::mem::ManuallyDrop;
use std::sync::{Arc, OnceLock};
use weir::abi::WEIR_TIMEOUT_INFINITE;
use weir::base::{Ref, Result};
use weir::device::DeviceKind;
use weir::engine::{Engine, Stream, StreamAttr, Tensor};
use weir::graph::{Program, Run, RunOptions};
use weir::threadpool::ThreadPool;

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
}

/// How many seeded pools a stage has.
const SEEDED: u64 = 8;

impl Stage {
    pub fn new() -> Stage {
        let engine = Engine::create(DeviceKind::Cpu, 0, None).unwrap();
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
        Stage { engine, places, seeded: OnceLock::new() }
    }

    /// A place for this seed: as `seeded`, but the pool has a past.
    pub fn seeded_before(&self, seed: u64) -> &Place {
        let all = self.seeded.get_or_init(|| (0..SEEDED).map(|seed| self.seeded(seed)).collect());
        &all[(seed % SEEDED) as usize]
    }

    /// A pool that draws from this seed what it does, unless one stands in for all.
    pub fn seeded(&self, seed: u64) -> Place {
        let pool = match std::env::var_os("WEIR_TEST_POOL") {
            Some(_) => pools::of(3),
            None => ThreadPool::seeded(seed, 2).unwrap(),
        };
        Place::new(&self.engine, &format!("seeded {seed}"), Some(pool))
    }
}

impl Place {
    fn new(engine: &Ref<Engine>, name: &str, pool: Option<Ref<ThreadPool>>) -> Place {
        let mut attrs = vec![StreamAttr::new(DeviceKind::Cpu)];
        if pool.is_some() {
            attrs.push(StreamAttr::new(DeviceKind::Cpu));
            attrs[1].set_threadpool(pool.clone()).unwrap();
        }
        let stream = |mut attr: StreamAttr| {
            attr.asynchronous = true;
            Stream::create(Ref::clone(engine), attr).unwrap()
        };
        Place { name: name.to_owned(), pool, streams: attrs.into_iter().map(stream).collect() }
    }
}

/// A compiled spec.
pub struct Subject {
    pub program: Ref<Program>,
    pub board: Arc<Board>,
    engine: Ref<Engine>,
    /// Of each set.
    inputs: Vec<Vec<Ref<Tensor>>>,
    outputs: Vec<Type>,
}

impl Subject {
    pub fn new(spec: &Spec, stage: &Stage, lowering: Lowering) -> Result<Subject> {
        let board = Arc::new(Board::new(spec));
        let program = build(spec, &stage.engine, &board, lowering)?;
        let set = |set: &Vec<Data>| set.iter().map(|data| tensor(&stage.engine, data)).collect();
        Ok(Subject {
            program,
            board,
            engine: Ref::clone(&stage.engine),
            inputs: spec.inputs.iter().map(set).collect(),
            outputs: spec.graph.outputs.iter().map(|&value| spec.graph.type_of(value)).collect(),
        })
    }

    pub fn sets(&self) -> usize {
        self.inputs.len()
    }

    /// Tensors for the outputs, full of what no run writes by chance.
    pub fn targets(&self, random: &mut Random) -> Targets {
        let data = |&kind: &Type| {
            let items: Vec<i32> = (0..kind.len()).map(|_| random.next() as i32 & 0x7f | 0x40).collect();
            Data::new(kind, &items)
        };
        let before: Vec<Data> = self.outputs.iter().map(data).collect();
        Targets { tensors: before.iter().map(|data| tensor(&self.engine, data)).collect(), before }
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
        self.bound(set, outputs, |bound| bound.run(stream.map(|stream| &**stream), Some(options)))
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
        self.bound(set, outputs, |bound| bound.start(stream, Some(options)))
    }

    fn bound<T>(
        &self,
        set: usize,
        outputs: &Targets,
        go: impl FnOnce(weir::graph::Bound<'_>) -> Result<T>,
    ) -> Result<T> {
        let lookup = |all: &[Ref<Tensor>], i: usize| {
            // SAFETY: a second owner that is never dropped; the first one outlives the call.
            Ok(ManuallyDrop::new(unsafe { std::ptr::read(&all[i]) }))
        };
        let inputs = &self.inputs[set];
        let outputs = &outputs.tensors;
        let (input, output) = (|i: usize| lookup(inputs, i), |i: usize| lookup(outputs, i));
        go(Program::bind(&self.program, (inputs.len(), &input), (outputs.len(), &output))?)
    }
}

/// Where a run's outputs go, and what is there before.
pub struct Targets {
    tensors: Vec<Ref<Tensor>>,
    before: Vec<Data>,
}

impl Targets {
    /// What is in each of them, before and now. For when no run uses them.
    pub fn look(&self) -> Vec<(Vec<i32>, Vec<i32>)> {
        let look = |(tensor, before): (&Ref<Tensor>, &Data)| (before.items.clone(), read(tensor.view(), before.kind));
        self.tensors.iter().zip(&self.before).map(look).collect()
    }
}

pub fn options(pool: Option<&Ref<ThreadPool>>) -> RunOptions {
    #[allow(clippy::needless_update, reason = "there may be more options than these")]
    RunOptions { threadpool: pool.cloned(), ..RunOptions::default() }
}

pub fn synchronize(stream: &Ref<Stream>) -> Result<()> {
    stream.synchronize(WEIR_TIMEOUT_INFINITE)
}
