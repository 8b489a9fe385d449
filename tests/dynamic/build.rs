//! Graphs of lists, and their runs.

pub use crate::kit::run::{all_pools, cpu};
use crate::kit::run::{execute, on};
use std::sync::Arc;
use weir_core::base::{Desc, Error, Ref, Result, dtype};
use weir_core::engine::{BoundKernel, Engine, KernelOptions, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program, ValueId};
use weir_core::kernel::{Kernel, KernelContext, Outputs};
use weir_core::memory::BytesMut;
use weir_core::threadpool::ThreadPool;

pub fn ints(dims: &[i64]) -> Desc {
    Desc::new(dtype::S32, dims)
}

type Function = dyn Fn(&KernelContext<'_>, Outputs<'_>) -> Result<()> + Send + Sync;

struct Op {
    inputs: Vec<Desc>,
    outputs: Vec<Desc>,
    is_open: bool,
    f: Box<Function>,
}

impl Kernel for Op {
    fn name(&self) -> &str {
        "op"
    }
    fn num_inputs(&self) -> usize {
        self.inputs.len()
    }
    fn num_outputs(&self) -> usize {
        self.outputs.len()
    }
    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        weir_core::ops::signature::check("input", &self.inputs, inputs)?;
        Ok(self.outputs.clone())
    }
    fn cost_ns(&self, _: &[Desc], _: &[Desc]) -> u64 {
        100_000
    }
    fn is_open(&self) -> bool {
        self.is_open
    }
    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        (self.f)(context, outputs)
    }
}

pub fn write(mut output: BytesMut<'_>, values: &[i32]) {
    output.write().copy_from_slice(values);
}

/// The list in a tensor.
pub fn read(tensor: &Tensor) -> Vec<i32> {
    // SAFETY: no run that writes the tensor is under way.
    unsafe { tensor.view().as_bytes() }.read().to_vec()
}

/// The lists that a call is given.
pub fn inputs(context: &KernelContext<'_>) -> Vec<Vec<i32>> {
    (0..context.inputs().len()).map(|i| context.input(i).read().to_vec()).collect()
}

pub struct Builder {
    pub engine: Ref<Engine>,
    pub graph: Graph,
    nodes: usize,
}

impl Builder {
    pub fn new(name: &str) -> Builder {
        Builder { engine: cpu(), graph: Graph::new(name), nodes: 0 }
    }

    pub fn name(&mut self) -> String {
        self.nodes += 1;
        format!("n{}", self.nodes)
    }

    pub fn input(&mut self, dims: &[i64]) -> ValueId {
        let name = self.name();
        self.graph.add_input(&name, ints(dims)).unwrap()
    }

    pub fn node(
        &mut self,
        name: &str,
        inputs: &[(ValueId, &[i64])],
        outputs: &[&[i64]],
        is_open: bool,
        f: impl Fn(&KernelContext<'_>, Outputs<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Vec<ValueId> {
        let op = Op {
            inputs: inputs.iter().map(|(_, dims)| ints(dims)).collect(),
            outputs: outputs.iter().map(|dims| ints(dims)).collect(),
            is_open,
            f: Box::new(f),
        };
        let kernel = BoundKernel::create(self.engine.clone(), Arc::new(op), &KernelOptions::default()).unwrap();
        let values: Vec<ValueId> = inputs.iter().map(|input| input.0).collect();
        let node = self.graph.add_kernel(name, kernel, &values, outputs.len()).unwrap();
        (0..outputs.len()).map(|i| node.output(i)).collect()
    }

    /// A list from lists.
    pub fn list(&mut self, inputs: &[ValueId], f: impl Fn(&[Vec<i32>]) -> Vec<i32> + Send + Sync + 'static) -> ValueId {
        let name = self.name();
        let inputs: Vec<(ValueId, &[i64])> = inputs.iter().map(|&value| (value, &[-1][..])).collect();
        self.node(&name, &inputs, &[&[-1]], true, move |context, mut outputs| {
            let list = f(&self::inputs(context));
            outputs.allocate(context, 0, &[list.len() as i64])?;
            write(outputs.only(), &list);
            Ok(())
        })[0]
    }

    /// One number from lists.
    pub fn number(&mut self, inputs: &[ValueId], f: impl Fn(&[Vec<i32>]) -> i32 + Send + Sync + 'static) -> ValueId {
        let name = self.name();
        let inputs: Vec<(ValueId, &[i64])> = inputs.iter().map(|&value| (value, &[-1][..])).collect();
        self.node(&name, &inputs, &[&[1]], true, move |context, outputs| {
            outputs.only().write_integer(f(&self::inputs(context)));
            Ok(())
        })[0]
    }

    /// So many equal numbers, of a shape that is known.
    pub fn fixed(&mut self, input: ValueId, count: usize) -> ValueId {
        let name = self.name();
        self.node(&name, &[(input, &[1])], &[&[count as i64]], false, move |context, outputs| {
            let value = context.input(0).read_integer();
            write(outputs.only(), &vec![value; count]);
            Ok(())
        })[0]
    }

    pub fn output(&mut self, value: ValueId) {
        let name = self.name();
        self.graph.add_output(&name, value).unwrap();
    }

    pub fn try_compile(&self) -> Result<Ref<Program>> {
        Program::compile(&self.graph, vec![self.engine.clone()], &CompileOptions::default())
    }

    pub fn compile(&self) -> Ref<Program> {
        self.try_compile().unwrap()
    }

    pub fn refusal(&self) -> Error {
        match self.try_compile() {
            Err(error) => error,
            Ok(_) => panic!("compiled"),
        }
    }
}

pub fn tensor(values: &[i32]) -> Ref<Tensor> {
    let tensor = Tensor::create(cpu(), ints(&[values.len() as i64])).unwrap();
    // SAFETY: nobody else has it yet.
    write(unsafe { tensor.view().as_bytes_mut() }, values);
    tensor
}

pub fn open() -> Ref<Tensor> {
    Tensor::create_open(cpu(), ints(&[-1])).unwrap()
}

pub fn run(
    program: &Ref<Program>,
    inputs: &[Ref<Tensor>],
    outputs: &[Ref<Tensor>],
    pool: Option<&Ref<ThreadPool>>,
) -> Result<()> {
    execute(program, inputs, outputs, &on(pool))
}

/// Outputs of a run into dynamic tensors where the port is open.
pub fn lists(program: &Ref<Program>, inputs: &[Vec<i32>], pool: Option<&Ref<ThreadPool>>) -> Result<Vec<Vec<i32>>> {
    let inputs: Vec<_> = inputs.iter().map(|values| tensor(values)).collect();
    let make =
        |desc: Desc| if desc.is_concrete() { Tensor::create(cpu(), desc) } else { Tensor::create_open(cpu(), desc) };
    let outputs: Vec<_> = program.outputs().iter().map(|port| make(port.desc).unwrap()).collect();
    run(program, &inputs, &outputs, pool)?;
    Ok(outputs.iter().map(|tensor| read(tensor)).collect())
}

pub fn check(program: &Ref<Program>, inputs: &[Vec<i32>], expected: &[Vec<i32>]) {
    for (i, pool) in all_pools().iter().enumerate() {
        for _ in 0..3 {
            assert_eq!(lists(program, inputs, pool.as_ref()).unwrap(), expected, "pool {i}, inputs {inputs:?}");
        }
    }
}
