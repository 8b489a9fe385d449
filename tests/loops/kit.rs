//! Kernels of one integer, graphs of them, and where to run them.

use super::pools;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicI64, Ordering::*};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir::base::{Desc, Ref, Result, dtype};
use weir::device::DeviceKind;
use weir::engine::{BoundKernel, Engine, KernelAttr, Tensor};
use weir::graph::{CompileOptions, Graph, Program, ReportFormat, RunOptions, ValueId};
use weir::kernel::{Completion, Kernel, KernelContext};
use weir::threadpool::ThreadPool;

pub fn scalar() -> Desc {
    Desc::new(dtype::S32, &[1])
}

pub fn cpu() -> Ref<Engine> {
    Engine::create(DeviceKind::Cpu, 0, None).unwrap()
}

pub type Function = dyn Fn(&[i32]) -> Result<i32> + Send + Sync;

#[derive(Clone, Copy, PartialEq)]
pub enum How {
    Here,
    /// A result of constants is known by compile.
    Pure,
    Later,
}

/// One integer from several.
pub struct Op {
    inputs: usize,
    cost_ns: u64,
    how: How,
    f: Box<Function>,
}

/// For tests with kernels that complete later, which are counted all together.
pub static ALONE: Mutex<()> = Mutex::new(());
/// Kernels that were started and are not done, and the most that there were.
pub static PENDING: AtomicI64 = AtomicI64::new(0);

pub static MOST_PENDING: AtomicI64 = AtomicI64::new(0);

impl Kernel for Op {
    fn name(&self) -> &str {
        "op"
    }
    fn num_inputs(&self) -> usize {
        self.inputs
    }
    fn num_outputs(&self) -> usize {
        1
    }
    fn infer(&self, _: &[Desc]) -> Result<Vec<Desc>> {
        Ok(vec![scalar()])
    }
    fn is_pure(&self) -> bool {
        self.how == How::Pure
    }
    fn cost_ns(&self, _: &[Desc], _: &[Desc]) -> u64 {
        self.cost_ns
    }
    fn compute(&self, context: &KernelContext<'_>) -> Result<()> {
        let inputs: Vec<i32> = context.inputs().iter().map(|view| view.read_integer()).collect();
        context.outputs()[0].write_integer((self.f)(&inputs)?);
        Ok(())
    }
    fn is_async(&self) -> bool {
        self.how == How::Later
    }
    fn start(&self, context: &KernelContext<'_>, done: Completion) -> Result<()> {
        let result = self.compute(context);
        MOST_PENDING.fetch_max(PENDING.fetch_add(1, SeqCst) + 1, SeqCst);
        // The later ones take longer than what leads to the next iteration.
        let ms = if self.cost_ns > 50_000 && context.inputs()[0].read_integer() % 2 == 1 { 1 } else { 3 };
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(ms));
            PENDING.fetch_sub(1, SeqCst);
            done.done(result).unwrap();
        });
        Ok(())
    }
}

pub struct Builder {
    pub engine: Ref<Engine>,
    pub graph: Graph,
    nodes: usize,
    pub how: How,
    pub cost_ns: u64,
}

impl Builder {
    pub fn new(name: &str) -> Builder {
        Builder { engine: cpu(), graph: Graph::new(name), nodes: 0, how: How::Here, cost_ns: 100_000 }
    }

    pub fn pure(name: &str) -> Builder {
        Builder { how: How::Pure, ..Builder::new(name) }
    }

    pub fn name(&mut self) -> String {
        self.nodes += 1;
        format!("n{}", self.nodes)
    }

    pub fn input(&mut self) -> ValueId {
        let name = self.name();
        self.graph.add_input(&name, scalar()).unwrap()
    }

    pub fn inputs(&mut self, count: usize) -> Vec<ValueId> {
        (0..count).map(|_| self.input()).collect()
    }

    pub fn constant(&mut self, value: i32) -> ValueId {
        let tensor = tensor(&self.engine, value);
        let name = self.name();
        self.graph.add_constant(&name, tensor).unwrap()
    }

    pub fn named(
        &mut self,
        name: &str,
        inputs: &[ValueId],
        f: impl Fn(&[i32]) -> Result<i32> + Send + Sync + 'static,
    ) -> ValueId {
        let kernel = Op { inputs: inputs.len(), cost_ns: self.cost_ns, how: self.how, f: Box::new(f) };
        let kernel = BoundKernel::create(self.engine.clone(), Arc::new(kernel), &KernelAttr::default());
        self.graph.add_kernel(name, kernel, inputs, 1).unwrap().output(0)
    }

    pub fn op(&mut self, inputs: &[ValueId], f: impl Fn(&[i32]) -> i32 + Send + Sync + 'static) -> ValueId {
        let name = self.name();
        self.named(&name, inputs, move |x| Ok(f(x)))
    }

    pub fn gives(mut self, outputs: &[ValueId]) -> Graph {
        for &output in outputs {
            let name = self.name();
            self.graph.add_output(&name, output).unwrap();
        }
        self.graph
    }
}

pub fn compile(graph: &Graph) -> Ref<Program> {
    let options = CompileOptions { hop_ns: Some(1000), ..CompileOptions::default() };
    Program::compile(graph, vec![cpu()], &options).unwrap()
}

pub fn tensor(engine: &Ref<Engine>, value: i32) -> Ref<Tensor> {
    let tensor = Tensor::create(engine.clone(), scalar()).unwrap();
    tensor.view().write_integer(value);
    tensor
}

pub fn run(program: &Ref<Program>, inputs: &[i32], outputs: usize, options: &RunOptions) -> Result<Vec<i32>> {
    let engine = cpu();
    let inputs: Vec<_> = inputs.iter().map(|&value| tensor(&engine, value)).collect();
    let outputs: Vec<_> = (0..outputs).map(|_| tensor(&engine, -99)).collect();
    // SAFETY: the copies are never dropped, and do not outlive the vectors.
    let borrow = |tensor: &Ref<Tensor>| Ok(ManuallyDrop::new(unsafe { std::ptr::read(tensor) }));
    let (get_in, get_out) = (|i: usize| borrow(&inputs[i]), |i: usize| borrow(&outputs[i]));
    Program::bind(program, (inputs.len(), &get_in), (outputs.len(), &get_out))?.run(None, Some(options))?;
    Ok(outputs.iter().map(|tensor| tensor.view().read_integer()).collect())
}

pub fn on(pool: &Option<Ref<ThreadPool>>) -> RunOptions {
    RunOptions { threadpool: pool.clone(), ..RunOptions::default() }
}

pub fn all_pools() -> [Option<Ref<ThreadPool>>; 5] {
    let seeded = ThreadPool::seeded(5, 3).unwrap();
    [None, Some(ThreadPool::inline()), Some(seeded), Some(pools::of(2)), Some(pools::of(1))]
}

/// A number in the JSON of a program's report.
pub fn reported(program: &Program, key: &str) -> u64 {
    let text = program.report(ReportFormat::Json);
    let at = text.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key} in {text}")) + key.len() + 3;
    text[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// while i < n: (i, sum) = (i + 1, sum + late(i)), where `late` is what iterations need not wait for.
pub fn pipeline(
    parallel: u32,
    early: impl Fn(i32) -> Result<i32> + Send + Sync + 'static,
    late: impl Fn(i32) -> Result<i32> + Send + Sync + 'static,
) -> Graph {
    pipeline_of(How::Here, parallel, early, late)
}

pub fn pipeline_of(
    how: How,
    parallel: u32,
    early: impl Fn(i32) -> Result<i32> + Send + Sync + 'static,
    late: impl Fn(i32) -> Result<i32> + Send + Sync + 'static,
) -> Graph {
    let mut condition = Builder::new("condition");
    let x = condition.inputs(3);
    condition.cost_ns = 1000;
    let less = condition.named("less", &[x[0], x[2]], |x| Ok(i32::from(x[0] < x[1])));
    let condition = condition.gives(&[less]);
    let mut body = Builder { how, ..Builder::new("body") };
    let x = body.inputs(3);
    let next = body.named("early", &[x[0]], move |x| early(x[0]));
    let made = body.named("late", &[x[0]], move |x| late(x[0]));
    body.cost_ns = 1000;
    body.how = How::Here;
    let sum = body.named("sum", &[x[1], made], |x| Ok(x[0].wrapping_mul(31).wrapping_add(x[1])));
    let body = body.gives(&[next, sum]);
    let mut main = Builder::new("main");
    let n = main.input();
    let zero = main.constant(0);
    let looped = main.graph.add_while("loop", &condition, &body, &[zero, zero], &[n], parallel).unwrap();
    let after = main.named("after", &[looped.output(1)], |x| Ok(x[0]));
    main.gives(&[looped.output(0), after])
}

pub fn summed(n: i32) -> i32 {
    (0..n).fold(0i32, |sum, i| sum.wrapping_mul(31).wrapping_add(7 * i))
}
