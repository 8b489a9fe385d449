//! What an iteration of a loop takes: the nodes and edges of its body, counted, with the processor's bits; and every
//! edge of it is needed.

use crate::kit::{fake, with_driver};
use crate::programs::{bound, cpu, floats, gpu, lend, set_integer, words};
use weir_core::base::{Desc, Ref, dtype};
use weir_core::engine::{BoundKernel, Engine, Stream, StreamAttr, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program, RunOptions, ValueId};
use weir_core::ops::{Binary, weir_binary_op_value as Op};

/// Adds nodes on an engine to a graph, from the variables and what stays.
type Makes<'a, T> = dyn Fn(&mut Graph, &Ref<Engine>, &[ValueId]) -> T + 'a;

/// A loop over single numbers of one type, all of which are inputs and outputs on the engine.
struct Case<'a> {
    dtype: u32,
    variables: usize,
    invariants: usize,
    condition: &'a Makes<'a, ValueId>,
    body: &'a Makes<'a, Vec<ValueId>>,
}

impl Case<'_> {
    fn graph(&self, on: &Ref<Engine>) -> Graph {
        let (desc, all) = (Desc::new(self.dtype, &[1]), self.variables + self.invariants);
        let inputs = |graph: &mut Graph| -> Vec<ValueId> {
            (0..all).map(|i| graph.add_input(&format!("v{i}"), desc).unwrap()).collect()
        };
        let mut condition = Graph::new("condition");
        let values = inputs(&mut condition);
        let more = (self.condition)(&mut condition, on, &values);
        condition.add_output("more", more).unwrap();
        let mut body = Graph::new("body");
        let values = inputs(&mut body);
        for (i, next) in (self.body)(&mut body, on, &values).into_iter().enumerate() {
            body.add_output(&format!("v{i}"), next).unwrap();
        }
        let mut graph = Graph::new("steps");
        let values = inputs(&mut graph);
        let (first, rest) = values.split_at(self.variables);
        let looped = graph.add_while("loop", &condition, &body, first, rest, 1).unwrap();
        for i in 0..self.variables {
            graph.add_output(&format!("v{i}"), looped.output(i)).unwrap();
        }
        if on.accelerator().is_some() {
            (0..all).for_each(|i| graph.set_input_engine(i, Some(on.clone())).unwrap());
            (0..self.variables).for_each(|i| graph.set_output_engine(i, Some(on.clone())).unwrap());
        }
        graph
    }

    /// A program of it on the engine.
    fn there(&self, engine: &Ref<Engine>, options: &CompileOptions) -> There {
        let program = Program::compile(&self.graph(engine), vec![cpu(), engine.clone()], options).unwrap();
        let stream = Stream::create(engine.clone(), StreamAttr::new(engine.kind())).unwrap();
        let make = |count: usize| -> Vec<Ref<Tensor>> {
            let desc = Desc::new(self.dtype, &[1]);
            (0..count).map(|_| Tensor::create(engine.clone(), desc).unwrap()).collect()
        };
        There { inputs: make(self.variables + self.invariants), outputs: make(self.variables), program, stream }
    }

    /// By the processor.
    fn expected(&self, bits: &[u32]) -> Vec<u32> {
        let host = Program::compile(&self.graph(&cpu()), vec![cpu()], &CompileOptions::default()).unwrap();
        let inputs: Vec<_> = bits.iter().map(|&bits| number(self.dtype, bits)).collect();
        let outputs: Vec<_> = (0..self.variables).map(|_| number(self.dtype, 0)).collect();
        crate::programs::run(&host, &inputs, &outputs);
        outputs.iter().flat_map(words).collect()
    }
}

/// One number on the host.
fn number(of: u32, bits: u32) -> Ref<Tensor> {
    if of == dtype::F32 {
        return floats(&cpu(), &[1], &[f32::from_bits(bits)]);
    }
    let tensor = Tensor::create(cpu(), Desc::new(of, &[1])).unwrap();
    set_integer(&tensor, bits.cast_signed());
    tensor
}

struct There {
    program: Ref<Program>,
    stream: Ref<Stream>,
    inputs: Vec<Ref<Tensor>>,
    outputs: Vec<Ref<Tensor>>,
}

impl There {
    fn run(&self, bits: &[u32]) -> Vec<u32> {
        for (there, &bits) in self.inputs.iter().zip(bits) {
            self.stream.enqueue_copy(number(there.desc().dtype, bits), there.clone()).unwrap();
        }
        self.stream.synchronize(u64::MAX).unwrap();
        let (get_in, get_out) = (|i: usize| Ok(lend(&self.inputs[i])), |o: usize| Ok(lend(&self.outputs[o])));
        let bound = Program::bind(&self.program, (self.inputs.len(), &get_in), (self.outputs.len(), &get_out)).unwrap();
        bound.run(Some(&self.stream), Some(&RunOptions::default())).unwrap();
        let here: Vec<_> = self.outputs.iter().map(|there| number(there.desc().dtype, 0)).collect();
        for (there, here) in self.outputs.iter().zip(&here) {
            self.stream.enqueue_copy(there.clone(), here.clone()).unwrap();
        }
        self.stream.synchronize(u64::MAX).unwrap();
        here.iter().flat_map(words).collect()
    }
}

/// Any function of two.
fn binary(engine: &Ref<Engine>, op: Op) -> Ref<BoundKernel> {
    bound::<Binary>(engine, Binary::desc(op))
}

fn op(graph: &mut Graph, on: &Ref<Engine>, op: Op, inputs: [ValueId; 2]) -> ValueId {
    let name = format!("{op:?} of {inputs:?}");
    graph.add_kernel(&name, binary(on, op), &inputs, 1).unwrap().output(0)
}

/// Kernels, conditional nodes, copies and edges of what is made for a program's runs.
fn nodes(case: &Case<'_>, engine: &Ref<Engine>, bits: &[u32]) -> [u64; 4] {
    const NAMES: [&str; 4] = ["cuGraphAddKernelNode_v2", "cuGraphAddNode_v2", "cuGraphAddMemcpyNode", "edge"];
    let there = case.there(engine, &CompileOptions::default());
    let before = NAMES.map(fake::count);
    assert_eq!(there.run(bits), case.expected(bits));
    let after = NAMES.map(fake::count);
    assert_eq!(there.run(bits), case.expected(bits));
    assert_eq!(NAMES.map(fake::count), after, "it is made once");
    [0, 1, 2, 3].map(|i| after[i] - before[i])
}

const VERSIONS: [&str; 2] = ["12040", "13000"];

fn one(x: f32) -> u32 {
    x.to_bits()
}

#[test]
fn an_iteration_is_the_bodys_kernel_and_the_one_that_sets_the_condition() {
    for version in VERSIONS {
        let ran = with_driver(&[("VERSION", version)], || {
            let engine = gpu(1);
            engine.accelerator().unwrap().control_flow().unwrap();
            let less =
                |graph: &mut Graph, on: &Ref<Engine>, v: &[ValueId]| op(graph, on, Op::WEIR_BINARY_LT, [v[0], v[1]]);
            let count = |graph: &mut Graph, on: &Ref<Engine>, v: &[ValueId]| {
                vec![op(graph, on, Op::WEIR_BINARY_ADD, [v[0], v[2]])]
            };
            // Outside: both tensors and the step come in, the first value, one sets the condition, the loop, the result
            // goes out.
            let counts = Case { dtype: dtype::F32, variables: 1, invariants: 2, condition: &less, body: &count };
            let bits = [0.0, 7.0, 1.0].map(one);
            // Edges: the first value is behind its tensor; the set behind that, the limit and the step; then the loop,
            // then the result. Inside, the set is behind the kernel.
            assert_eq!(nodes(&counts, &engine, &bits), [3, 1, 5, 7]);
            // A number that is computed for the comparison, and one that is compared with itself.
            let square = |graph: &mut Graph, on: &Ref<Engine>, v: &[ValueId]| {
                let square = op(graph, on, Op::WEIR_BINARY_MUL, [v[0], v[0]]);
                op(graph, on, Op::WEIR_BINARY_LT, [square, v[1]])
            };
            assert_eq!(nodes(&Case { condition: &square, ..counts }, &engine, &bits)[..2], [5, 1]);
            // What is no comparison of numbers is read: two predicates, one that compares them, and the set, twice, and
            // the body's.
            let both = |graph: &mut Graph, on: &Ref<Engine>, v: &[ValueId]| {
                let [low, high] = [Op::WEIR_BINARY_LT, Op::WEIR_BINARY_GT].map(|by| op(graph, on, by, [v[0], v[1]]));
                op(graph, on, Op::WEIR_BINARY_GT, [low, high])
            };
            assert_eq!(nodes(&Case { condition: &both, ..counts }, &engine, &bits)[..2], [9, 1]);
            // The set is behind what counts, and not behind a second variable's kernels: three edges inside.
            let two = |graph: &mut Graph, on: &Ref<Engine>, v: &[ValueId]| {
                let next = op(graph, on, Op::WEIR_BINARY_ADD, [v[0], v[3]]);
                let scaled = op(graph, on, Op::WEIR_BINARY_MUL, [v[1], v[3]]);
                vec![next, op(graph, on, Op::WEIR_BINARY_ADD, [scaled, v[3]])]
            };
            let less =
                |graph: &mut Graph, on: &Ref<Engine>, v: &[ValueId]| op(graph, on, Op::WEIR_BINARY_LT, [v[0], v[2]]);
            let two = Case { dtype: dtype::F32, variables: 2, invariants: 2, condition: &less, body: &two };
            let [kernels, loops, _, edges] = nodes(&two, &engine, &[0.0, 1.0, 5.0, 2.0].map(one));
            // As above, with the second variable in, its first value before the loop, and out; inside, the two edges.
            assert_eq!((kernels, loops, edges), (5, 1, 11));
        });
        if ran.is_none() {
            return;
        }
    }
}

#[test]
fn loops_go_by_each_comparison_as_the_processor_does() {
    let rows = [
        (Op::WEIR_BINARY_LT, 0.0, 5.0, 1.0),
        (Op::WEIR_BINARY_LE, 0.0, 5.0, 1.0),
        (Op::WEIR_BINARY_GT, 3.0, -4.0, -1.0),
        (Op::WEIR_BINARY_GE, 3.0, -4.0, -1.0),
    ];
    let rows = rows.into_iter().chain([
        (Op::WEIR_BINARY_NE, 0.0, 6.0, 2.0),
        (Op::WEIR_BINARY_EQ, 4.0, 4.0, 1.0),
        (Op::WEIR_BINARY_LT, 4.0, 4.0, 1.0),
    ]);
    let rows: Vec<_> =
        rows.chain([(Op::WEIR_BINARY_GT, 4.0, 4.0, -1.0), (Op::WEIR_BINARY_NE, 4.0, 4.0, 1.0)]).collect();
    let none = [Op::WEIR_BINARY_LT, Op::WEIR_BINARY_LE, Op::WEIR_BINARY_GT, Op::WEIR_BINARY_GE, Op::WEIR_BINARY_EQ]
        .map(|by| (by, 1.0, f32::NAN, 1.0));
    let zero = [
        (Op::WEIR_BINARY_EQ, 0.0, -0.0, 1.0),
        (Op::WEIR_BINARY_LT, -0.0, 0.0, 1.0),
        (Op::WEIR_BINARY_LT, 0.0, f32::from_bits(1), 1.0),
    ];
    for version in ["12000", "12040", "13000"] {
        let ran = with_driver(&[("VERSION", version)], || {
            let engine = gpu(1);
            for of in [dtype::F32, dtype::S32] {
                let more: Vec<_> = none.iter().chain(&zero).copied().filter(|_| of == dtype::F32).collect();
                for (by, from, to, step) in rows.iter().copied().chain(more) {
                    let bits = [from, to, step]
                        .map(|x: f32| if of == dtype::F32 { x.to_bits() } else { (x as i32).cast_unsigned() });
                    let case = Case {
                        dtype: of,
                        variables: 1,
                        invariants: 2,
                        condition: &|graph, on, v| op(graph, on, by, [v[0], v[1]]),
                        body: &|graph, on, v| vec![op(graph, on, Op::WEIR_BINARY_ADD, [v[0], v[2]])],
                    };
                    for without_device_control in [false, true] {
                        let options = CompileOptions { without_device_control, ..CompileOptions::default() };
                        let found = case.there(&engine, &options).run(&bits);
                        assert_eq!(found, case.expected(&bits), "{by:?} of {from} and {to}");
                    }
                }
            }
        });
        if ran.is_none() {
            return;
        }
    }
}

/// The other variable reads the old value of the first, in an order of the driver's own.
fn sums<'a>() -> Case<'a> {
    Case {
        dtype: dtype::F32,
        variables: 3,
        invariants: 2,
        condition: &|graph, on, v| op(graph, on, Op::WEIR_BINARY_LT, [v[0], v[3]]),
        body: &|graph, on, v| {
            let next = op(graph, on, Op::WEIR_BINARY_ADD, [v[0], v[4]]);
            let sum = op(graph, on, Op::WEIR_BINARY_ADD, [v[1], v[0]]);
            vec![next, sum, op(graph, on, Op::WEIR_BINARY_MUL, [v[2], sum])]
        },
    }
}

#[test]
fn values_in_place_have_the_processors_bits_in_each_order() {
    for version in ["12000", "12040", "13000"] {
        let ran = with_driver(&[("VERSION", version), ("SEED", "1")], || {
            let engine = gpu(1);
            let case = sums();
            for seed in 0..30 {
                fake::reseed(seed);
                let there = case.there(&engine, &CompileOptions::default());
                for n in [3.0, 0.0, 6.0] {
                    let bits = [0.0, 0.5, 1.25, n, 1.0].map(one);
                    assert_eq!(there.run(&bits), case.expected(&bits), "seed {seed}, {n} iterations");
                }
            }
        });
        if ran.is_none() {
            return;
        }
    }
}

#[test]
fn every_edge_that_is_left_out_is_a_race() {
    for version in VERSIONS {
        let ran = with_driver(&[("VERSION", version), ("SEED", "1"), ("RACES", "report")], || {
            let engine = gpu(1);
            engine.accelerator().unwrap().control_flow().unwrap();
            let (case, bits) = (sums(), [0.0, 0.5, 1.25, 3.0, 1.0].map(one));
            let edges = nodes(&case, &engine, &bits)[3];
            assert_eq!(fake::races(), 0);
            // Three first values, five of what the set is behind; and without the one of the WHILE node the driver
            // misses the condition.
            for edge in (1..=edges).filter(|&edge| edge != 9) {
                let there = case.there(&engine, &CompileOptions::default());
                fake::fail("edge", edge, 0);
                let known = fake::races();
                // Each time in another order.
                (0..20).take_while(|_| fake::races() == known).for_each(|_| drop(there.run(&bits)));
                assert!(fake::races() > known, "nobody misses edge {edge} of {edges}");
            }
            assert!(edges > 10, "{edges}");
        });
        if ran.is_none() {
            return;
        }
    }
}
