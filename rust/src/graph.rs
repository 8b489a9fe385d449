//! Graphs: what a program is compiled from.

use crate::callback::{call_often, drop_box};
use crate::error::check;
use crate::handle::handle;
use crate::{CompileOptions, Engine, Kernel, Program, Result, Tensor, TensorDesc};
use std::ops::Index;
use weir_core::abi::{weir_case_desc, weir_cond_desc, weir_graph, weir_while_desc};
use weir_core::ffi;

handle!(Handle(weir_graph), ffi::weir_graph_destroy);

// SAFETY: a builder is for one thread at a time, not for a certain one. It is not Sync.
unsafe impl Send for Handle {}

/// A value in a graph: an input, a constant, or an output of a node. Other graphs refuse it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Value(u64);

/// A node of a graph. `node[i]` is its output `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    id: u64,
    outputs: Vec<Value>,
}

impl Node {
    /// The outputs.
    pub fn outputs(&self) -> &[Value] {
        &self.outputs
    }
}

impl Index<usize> for Node {
    type Output = Value;

    fn index(&self, output: usize) -> &Value {
        &self.outputs[output]
    }
}

/// A loop, for [`Graph::while_loop`]. Both graphs have the variables as inputs, and then the invariants.
#[derive(Clone, Copy, Debug)]
pub struct While<'a> {
    condition: &'a Graph,
    body: &'a Graph,
    variables: &'a [Value],
    invariants: &'a [Value],
    parallel_iterations: i32,
}

impl<'a> While<'a> {
    /// The output of `condition` says whether the loop goes on: one element of `bool`, `u8`, `i8` or `i32`. The outputs
    /// of `body` are the variables' next values.
    pub fn new(condition: &'a Graph, body: &'a Graph, variables: &'a [Value]) -> While<'a> {
        While { condition, body, variables, invariants: &[], parallel_iterations: 0 }
    }

    /// Values that stay the same in all iterations.
    pub fn invariants(mut self, invariants: &'a [Value]) -> Self {
        self.invariants = invariants;
        self
    }

    /// How many iterations may run at once, where their data allow it. It changes no result.
    pub fn parallel_iterations(mut self, count: u16) -> Self {
        self.parallel_iterations = i32::from(count);
        self
    }
}

/// A dataflow graph under construction. It is built once, compiled once, and its [`Program`] runs as often as you like.
///
/// Nodes have names, and every failure has them. Types and shapes are checked by [`compile`](Graph::compile). One
/// thread at a time may use a graph: it is `Send`, and not `Sync`.
///
/// ```
/// use weir::{Engine, Graph, Kernel, Tensor, TensorDesc, ops};
///
/// let cpu = Engine::cpu()?;
/// let mut graph = Graph::new("layer")?;
/// let x = graph.input("x", TensorDesc::of::<f32>(&[1, 2]))?;
/// let weights = graph.constant("weights", Tensor::from_slice(&cpu, &[2, 2], &[1.0_f32, 2.0, 3.0, -4.0])?)?;
/// let product = graph.kernel("product", &Kernel::new(&cpu, &ops::Matmul::default())?, &[x, weights])?;
/// let relu = Kernel::new(&cpu, &ops::Eltwise::new(ops::EltwiseOp::Relu))?;
/// let positive = graph.kernel("positive", &relu, &[product[0]])?;
/// graph.output("y", positive[0])?;
/// let layer = graph.compile(&[&cpu])?;
/// let y = layer.run(&[&Tensor::from_slice(&cpu, &[1, 2], &[1.0_f32, 2.0])?])?;
/// assert_eq!(y[0].as_slice::<f32>()?, [7.0, 0.0]);
/// # Ok::<(), weir::Error>(())
/// ```
///
/// ```compile_fail,E0277
/// # use weir::{Graph, TensorDesc};
/// # fn main() -> weir::Result<()> {
/// let graph = Graph::new("shared")?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| graph.compile(&[])); // a graph is not Sync
/// });
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Graph {
    handle: Handle,
    num_outputs: usize,
}

impl Graph {
    /// An empty graph, with a name for texts.
    pub fn new(name: &str) -> Result<Graph> {
        let (text, mut raw) = (crate::error::name(name)?, std::ptr::null_mut());
        // SAFETY: a text that lives during the call.
        check(unsafe { ffi::weir_graph_create(text.as_ptr(), &raw mut raw) })?;
        // SAFETY: a new object of this value's.
        Ok(Graph { handle: unsafe { Handle::from_raw(raw) }?, num_outputs: 0 })
    }

    /// An input: a tensor that each run is given, in the order in which inputs were added. With open dimensions each
    /// run has its own.
    pub fn input(&mut self, name: &str, desc: TensorDesc) -> Result<Value> {
        let (text, desc, mut value) = (crate::error::name(name)?, desc.to_c(), 0);
        // SAFETY: a live handle, and arguments that live during the call.
        check(unsafe { ffi::weir_graph_add_input(self.raw(), text.as_ptr(), &raw const desc, &raw mut value) })?;
        Ok(Value(value))
    }

    /// A tensor that all runs share. It becomes the program's, since nobody may change it any more.
    ///
    /// Blocks until queued work that uses the tensor is over, and gives the failure of what was to write it.
    pub fn constant(&mut self, name: &str, tensor: Tensor) -> Result<Value> {
        tensor.wait_written()?;
        tensor.wait_unused()?;
        let (text, mut value) = (crate::error::name(name)?, 0);
        // SAFETY: live handles. The graph has a reference of its own, and nobody else can reach the tensor any more.
        check(unsafe { ffi::weir_graph_add_constant(self.raw(), text.as_ptr(), tensor.raw(), &raw mut value) })?;
        Ok(Value(value))
    }

    /// A node that computes tensors from tensors.
    pub fn kernel(&mut self, name: &str, kernel: &Kernel, inputs: &[Value]) -> Result<Node> {
        let (graph, text) = (self.raw(), crate::error::name(name)?);
        node(kernel.num_outputs()?, |outputs, count, id| {
            let (from, len) = (inputs.as_ptr().cast(), inputs.len());
            // SAFETY: live handles, and arrays of these lengths. A `Value` is a number alone.
            unsafe { ffi::weir_graph_add_kernel(graph, text.as_ptr(), kernel.raw(), from, len, outputs, count, id) }
        })
    }

    /// A program as one node: its inputs and outputs are the program's. The failure of a node inside names both.
    pub fn program(&mut self, name: &str, program: &Program, inputs: &[Value]) -> Result<Node> {
        let (graph, text) = (self.raw(), crate::error::name(name)?);
        node(program.outputs()?.len(), |outputs, count, id| {
            let (from, len) = (inputs.as_ptr().cast(), inputs.len());
            // SAFETY: live handles, and arrays of these lengths.
            unsafe { ffi::weir_graph_add_program(graph, text.as_ptr(), program.raw(), from, len, outputs, count, id) }
        })
    }

    /// A node without tensors: a closure that each run calls, once, when the nodes are done that have a control edge to
    /// it. Calls of several runs may overlap. A failure or a panic fails the run, with its kind alone: the C interface
    /// has no text for it. Use a kernel without inputs and outputs for a failure with a text.
    pub fn task<F>(&mut self, name: &str, task: F) -> Result<Node>
    where
        F: Fn() -> Result<()> + Send + Sync + 'static,
    {
        let (graph, text) = (self.raw(), crate::error::name(name)?);
        let context = Box::into_raw(Box::new(task));
        node(0, |_, _, id| {
            let (call, drop) = (Some(call_often::<F> as _), Some(drop_box::<F> as _));
            // SAFETY: a live handle, and functions for this context.
            unsafe { ffi::weir_graph_add_task(graph, text.as_ptr(), call, context.cast(), drop, 0, id) }
        })
        .inspect_err(|_| {
            // SAFETY: the node was refused, so nobody else has the context.
            unsafe { drop_box::<F>(context.cast()) }
        })
    }

    /// Makes one node wait for another one, though no value goes between them.
    pub fn control_edge(&mut self, from: &Node, to: &Node) -> Result<()> {
        // SAFETY: a live handle.
        check(unsafe { ffi::weir_graph_add_control_edge(self.raw(), from.id, to.id) })
    }

    /// A branch: each run executes one of two graphs, the first if `predicate` is not 0. It is one element of `bool`,
    /// `u8`, `i8` or `i32`. Both graphs have `inputs` as inputs, and outputs of the same types and shapes, which become
    /// the node's. They are copied.
    pub fn cond(
        &mut self,
        name: &str,
        predicate: Value,
        then: &Graph,
        otherwise: &Graph,
        inputs: &[Value],
    ) -> Result<Node> {
        let (graph, text) = (self.raw(), crate::error::name(name)?);
        let desc = weir_cond_desc {
            struct_size: size_of::<weir_cond_desc>(),
            predicate: predicate.0,
            then_graph: then.raw(),
            else_graph: otherwise.raw(),
            inputs: inputs.as_ptr().cast(),
            num_inputs: inputs.len(),
        };
        node(then.num_outputs, |outputs, count, id| {
            // SAFETY: live handles, and arrays of these lengths.
            unsafe { ffi::weir_graph_add_cond(graph, text.as_ptr(), &raw const desc, outputs, count, id) }
        })
    }

    /// A branch between several graphs: `index` is the number of the one that a run executes; the last one if there is
    /// no such number. Else as [`cond`](Graph::cond).
    pub fn case(&mut self, name: &str, index: Value, branches: &[&Graph], inputs: &[Value]) -> Result<Node> {
        let (graph, text) = (self.raw(), crate::error::name(name)?);
        let handles: Vec<_> = branches.iter().map(|branch| branch.raw().cast_const()).collect();
        let desc = weir_case_desc {
            struct_size: size_of::<weir_case_desc>(),
            index: index.0,
            branches: handles.as_ptr(),
            num_branches: handles.len(),
            inputs: inputs.as_ptr().cast(),
            num_inputs: inputs.len(),
        };
        node(branches.first().map_or(0, |branch| branch.num_outputs), |outputs, count, id| {
            // SAFETY: live handles, and arrays of these lengths.
            unsafe { ffi::weir_graph_add_case(graph, text.as_ptr(), &raw const desc, outputs, count, id) }
        })
    }

    /// A loop: while the condition holds, the body computes the variables' next values. The outputs of the node are
    /// their last values. The graphs are copied.
    ///
    /// ```
    /// use weir::{Engine, Graph, Kernel, Tensor, TensorDesc, While, ops};
    ///
    /// let cpu = Engine::cpu()?;
    /// let number = TensorDesc::of::<f32>(&[1]);
    /// let binary = |op| Kernel::new(&cpu, &ops::Binary::new(op));
    /// let mut small = Graph::new("small")?;
    /// let (x, limit) = (small.input("x", number)?, small.input("limit", number)?);
    /// let is_less = small.kernel("is less", &binary(ops::BinaryOp::Lt)?, &[x, limit])?;
    /// small.output("goes on", is_less[0])?;
    /// let mut double = Graph::new("double")?;
    /// let (x, _) = (double.input("x", number)?, double.input("limit", number)?);
    /// let sum = double.kernel("sum", &binary(ops::BinaryOp::Add)?, &[x, x])?;
    /// double.output("next", sum[0])?;
    ///
    /// let mut graph = Graph::new("powers")?;
    /// let (x, limit) = (graph.input("x", number)?, graph.input("limit", number)?);
    /// let last = graph.while_loop("doubling", While::new(&small, &double, &[x]).invariants(&[limit]))?;
    /// graph.output("last", last[0])?;
    /// let tensor = |x: f32| Tensor::from_slice(&cpu, &[1], &[x]);
    /// let last = graph.compile(&[&cpu])?.run(&[&tensor(3.0)?, &tensor(100.0)?])?;
    /// assert_eq!(last[0].as_slice::<f32>()?, [192.0]);
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn while_loop(&mut self, name: &str, told: While<'_>) -> Result<Node> {
        let (graph, text) = (self.raw(), crate::error::name(name)?);
        let desc = weir_while_desc {
            struct_size: size_of::<weir_while_desc>(),
            cond_graph: told.condition.raw(),
            body_graph: told.body.raw(),
            variables: told.variables.as_ptr().cast(),
            num_variables: told.variables.len(),
            invariants: told.invariants.as_ptr().cast(),
            num_invariants: told.invariants.len(),
            parallel_iterations: told.parallel_iterations,
            reserved: 0,
        };
        node(told.variables.len(), |outputs, _, id| {
            // SAFETY: live handles, and arrays of these lengths. There are as many outputs as variables.
            unsafe { ffi::weir_graph_add_while(graph, text.as_ptr(), &raw const desc, outputs, id) }
        })
    }

    /// Makes a value an output: each run writes it to a tensor. Outputs are in the order in which they were added.
    pub fn output(&mut self, name: &str, value: Value) -> Result<()> {
        let text = crate::error::name(name)?;
        // SAFETY: a live handle, and a text that lives during the call.
        check(unsafe { ffi::weir_graph_add_output(self.raw(), text.as_ptr(), value.0) })?;
        self.num_outputs += 1;
        Ok(())
    }

    /// Compiles the graph for engines, with default options. The first CPU engine among them is the program's own:
    /// inputs and outputs are in its memory, and runs use its pool.
    pub fn compile(&self, engines: &[&Engine]) -> Result<Program> {
        self.compile_with(engines, &CompileOptions::new())
    }

    /// Compiles the graph for engines: verifies it, and lays it out for runs. The graph may be changed and compiled
    /// again.
    pub fn compile_with(&self, engines: &[&Engine], options: &CompileOptions) -> Result<Program> {
        let engines: Vec<_> = engines.iter().map(|engine| engine.raw()).collect();
        let (options, mut raw) = (options.to_c(), std::ptr::null_mut());
        let (data, len) = (engines.as_ptr(), engines.len());
        // SAFETY: live handles, and arguments that live during the call.
        check(unsafe { ffi::weir_graph_compile(self.raw(), data, len, &raw const options, &raw mut raw) })?;
        // SAFETY: a new reference.
        unsafe { Program::from_raw(raw) }
    }

    fn raw(&self) -> *mut weir_graph {
        self.handle.raw()
    }
}

/// The node that `add` adds, with so many outputs.
fn node(count: usize, add: impl FnOnce(*mut u64, usize, *mut u64) -> i32) -> Result<Node> {
    let (mut outputs, mut id) = (vec![0u64; count], 0u64);
    check(add(outputs.as_mut_ptr(), count, &raw mut id))?;
    Ok(Node { id, outputs: outputs.into_iter().map(Value).collect() })
}
