//! Kernels that make one integer from several, and graphs of them.

use super::run::{cpu, scalar, tensor};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use weir_core::base::{Desc, Ref, Result};
use weir_core::engine::{BoundKernel, Engine, KernelOptions};
use weir_core::graph::{CompileOptions, Graph, Program, ValueId};
use weir_core::kernel::{Completion, Kernel, KernelContext, Outputs};

pub type Function = dyn Fn(&[i32]) -> Result<i32> + Send + Sync;

/// Sees to it that a call which has computed its result completes.
pub type Later = dyn Fn(&KernelContext<'_>, Completion, Result<()>) + Send + Sync;

/// What an op tells of itself, and when it completes.
#[derive(Clone)]
pub struct How {
    pub cost_ns: u64,
    pub in_place: bool,
    /// A result of constants is known by compile.
    pub is_pure: bool,
    /// None: when it returns.
    pub later: Option<Arc<Later>>,
    /// Counts how often a kernel is asked for the shapes of its outputs.
    pub asked: Option<Arc<AtomicUsize>>,
}

impl Default for How {
    fn default() -> How {
        How { cost_ns: 100_000, in_place: true, is_pure: false, later: None, asked: None }
    }
}

struct Op {
    inputs: usize,
    how: How,
    f: Box<Function>,
}

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
        if let Some(asked) = &self.how.asked {
            asked.fetch_add(1, Relaxed);
        }
        Ok(vec![scalar()])
    }
    fn in_place(&self) -> bool {
        self.how.in_place
    }
    fn is_pure(&self) -> bool {
        self.how.is_pure
    }
    fn cost_ns(&self, _: &[Desc], _: &[Desc]) -> u64 {
        self.how.cost_ns
    }
    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let inputs: Vec<i32> = (0..self.inputs).map(|i| outputs.input(context, i).read_integer()).collect();
        outputs.only().write_integer((self.f)(&inputs)?);
        Ok(())
    }
    fn is_async(&self) -> bool {
        self.how.later.is_some()
    }
    fn start(&self, context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let result = self.compute(context, outputs);
        self.how.later.as_ref().unwrap()(context, done, result);
        Ok(())
    }
}

/// A graph, and how the ops that are added next are.
pub struct Builder {
    pub engine: Ref<Engine>,
    pub graph: Graph,
    pub how: How,
    nodes: usize,
}

impl Builder {
    pub fn new(name: &str) -> Builder {
        Builder { engine: cpu(), graph: Graph::new(name), how: How::default(), nodes: 0 }
    }

    /// With so many inputs.
    pub fn of(name: &str, inputs: usize) -> (Builder, Vec<ValueId>) {
        let mut builder = Builder::new(name);
        let inputs = builder.inputs(inputs);
        (builder, inputs)
    }

    /// Names are n1, n2 and so on, in the order of the calls.
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
        let kernel = Op { inputs: inputs.len(), how: self.how.clone(), f: Box::new(f) };
        let kernel = BoundKernel::create(self.engine.clone(), Arc::new(kernel), &KernelOptions::default()).unwrap();
        self.graph.add_kernel(name, kernel, inputs, 1).unwrap().output(0)
    }

    pub fn try_op(&mut self, inputs: &[ValueId], f: impl Fn(&[i32]) -> Result<i32> + Send + Sync + 'static) -> ValueId {
        let name = self.name();
        self.named(&name, inputs, f)
    }

    pub fn op(&mut self, inputs: &[ValueId], f: impl Fn(&[i32]) -> i32 + Send + Sync + 'static) -> ValueId {
        self.try_op(inputs, move |x| Ok(f(x)))
    }

    pub fn sum(&mut self, inputs: &[ValueId]) -> ValueId {
        self.op(inputs, |x| x.iter().fold(0, |sum, x| sum.wrapping_add(*x)))
    }

    pub fn output(&mut self, value: ValueId) {
        let name = self.name();
        self.graph.add_output(&name, value).unwrap();
    }

    pub fn giving(mut self, outputs: &[ValueId]) -> Graph {
        outputs.iter().for_each(|&value| self.output(value));
        self.graph
    }

    pub fn try_compile(&self, options: &CompileOptions) -> Result<Ref<Program>> {
        Program::compile(&self.graph, vec![self.engine.clone()], options)
    }

    pub fn compile(&self) -> Ref<Program> {
        self.try_compile(&CompileOptions::default()).unwrap()
    }

    pub fn refusal(&self) -> String {
        match self.try_compile(&CompileOptions::default()) {
            Err(error) => error.message().to_owned(),
            Ok(_) => panic!("compiled"),
        }
    }
}
