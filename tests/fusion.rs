//! Fusion: elementwise nodes at the end of products, convolutions, norms and reductions. A program with it makes the same bits as one
//! without, and says what was fused.

#[path = "kit/mod.rs"]
mod kit;

use kit::random::Random;
use kit::run::{all_pools, cpu, execute, fact, on};
use std::sync::Arc;
use weir_core::base::{Desc, Ref, dtype};
use weir_core::engine::{BoundKernel, KernelOptions, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program, ReportFormat, RunOptions, ValueId};
use weir_core::kernel::Kernel;
use weir_core::kernel::builtin::Builtin;
use weir_core::ops::axis::EdgeMode;
use weir_core::ops::weir_activation_value::*;
use weir_core::ops::weir_binary_op_value::{self, *};
use weir_core::ops::weir_eltwise_op_value::*;
use weir_core::ops::weir_norm_op_value::*;
use weir_core::ops::weir_reduce_op_value::{self, *};
use weir_core::ops::{
    Activation, Binary, Conv, Eltwise, Matmul, Norm, Pooling, Reduce, Windows, weir_pooling_op_value,
};

fn floats(dims: &[i64]) -> Desc {
    Desc::new(dtype::F32, dims)
}

/// Numbers between -1 and 1, some of them zero or an infinity if that is asked for.
fn filled(dims: &[i64], random: &mut Random, has_special: bool) -> Ref<Tensor> {
    let tensor = Tensor::create(cpu(), floats(dims)).unwrap();
    let elements = tensor.desc().elements().unwrap();
    let values: Vec<f32> = (0..elements)
        .map(|_| match random.below(if has_special { 40 } else { 40 << 20 }) {
            0 => f32::INFINITY,
            1 => -0.0,
            2 => -1e30,
            _ => random.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0,
        })
        .collect();
    // SAFETY: a new tensor of that many floats.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), tensor.data().cast(), elements) };
    tensor
}

/// The elements; all NaN are one.
fn words(tensor: &Tensor) -> Vec<u32> {
    // SAFETY: readable floats, and written by no run now.
    let floats = (0..tensor.bytes() / 4).map(|i| unsafe { tensor.data().cast::<f32>().add(i).read() });
    floats.map(|x| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }).collect()
}

fn node(graph: &mut Graph, name: &str, kernel: impl Kernel + 'static, inputs: &[ValueId]) -> ValueId {
    let kernel = BoundKernel::create(cpu(), Arc::new(kernel), &KernelOptions::default()).unwrap();
    graph.add_kernel(name, kernel, inputs, 1).unwrap().output(0)
}

const PLAIN: Matmul = Matmul {
    transpose_a: false,
    transpose_b: false,
    bias: false,
    sum: false,
    activation: Activation::NONE,
    wide: false,
    tf32: false,
    packed: None,
};

fn windows(stride: i64, padding: i64) -> Windows {
    let (strides, dilations, padding) = ([stride; 2], [1; 2], [padding; 2]);
    Windows { strides, dilations, begin: padding, end: padding, edge: EdgeMode::Zero, ..Windows::default() }
}

fn conv(windows: Windows, groups: i64, bias: bool) -> Builtin<Conv> {
    Builtin::new(Conv { windows, groups, bias, sum: false, activation: Activation::NONE })
}

fn eltwise(op: weir_core::ops::weir_eltwise_op_value, alpha: f32, beta: f32) -> Builtin<Eltwise> {
    Builtin::new(Eltwise { op, alpha, beta })
}

fn relu() -> Builtin<Eltwise> {
    eltwise(WEIR_ELTWISE_RELU, 0.0, 0.0)
}

fn binary(op: weir_binary_op_value) -> Builtin<Binary> {
    Builtin::new(Binary::of(op))
}

fn reduce(op: weir_reduce_op_value, axes: &[i32]) -> Builtin<Reduce> {
    let all = std::array::from_fn(|i| axes.get(i).copied().unwrap_or(0));
    Builtin::new(Reduce { op, axes: all, num_axes: axes.len(), ..Reduce::argmax(0) })
}

fn compile(graph: &Graph, without_fusion: bool) -> Ref<Program> {
    let options = CompileOptions { without_fusion, partial_runs: 4, statistics: true, ..CompileOptions::default() };
    Program::compile(graph, vec![cpu()], &options).unwrap()
}

fn outputs(program: &Program, chosen: &[usize]) -> Vec<Ref<Tensor>> {
    let make = |&i: &usize| match program.outputs()[i].desc {
        desc if desc.is_concrete() => Tensor::create(cpu(), desc).unwrap(),
        desc => Tensor::create_open(cpu(), desc).unwrap(),
    };
    chosen.iter().map(make).collect()
}

/// What a program computes of these inputs, the outputs one after the other.
fn results(program: &Ref<Program>, inputs: &[Ref<Tensor>], options: &RunOptions) -> Vec<(String, Vec<u32>)> {
    let all: Vec<usize> = (0..program.outputs().len()).collect();
    let outputs = outputs(program, &all);
    execute(program, inputs, &outputs, options).unwrap();
    outputs.iter().map(|tensor| (tensor.desc().text(), words(tensor))).collect()
}

/// Fused and not fused: the same on each pool, twice, and in each run of one output.
fn same(graph: &Graph, inputs: &[&[Ref<Tensor>]], seed: u64) -> Ref<Program> {
    let (fused, apart) = (compile(graph, false), compile(graph, true));
    assert_eq!(fact(&apart, "fused"), 0);
    for inputs in inputs {
        let want = results(&apart, inputs, &RunOptions::default());
        for (i, pool) in all_pools().iter().enumerate() {
            for round in 0..2 {
                let got = results(&fused, inputs, &on(pool.as_ref()));
                assert!(got == want, "seed {seed}, pool {i}, round {round}: {}", fused.report(ReportFormat::Text));
            }
        }
        for (i, want) in want.iter().enumerate() {
            let part = fused.part(&[i]).unwrap();
            let outputs = outputs(&part, &[0]);
            execute(&part, inputs, &outputs, &RunOptions::default()).unwrap();
            assert!(words(&outputs[0]) == want.1, "seed {seed}, output {i} alone");
        }
    }
    fused
}

/// Lines of the report about nodes that others could end with.
fn told(program: &Program) -> Vec<String> {
    let report = program.report(ReportFormat::Text);
    let lines = report.lines().skip_while(|line| *line != "nodes that others could end with").skip(1);
    lines.take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn a_residual_block_is_three_nodes() {
    let mut random = Random::new(1);
    for (batch, images) in [(2, vec![2]), (-1, vec![1, 3, 2])] {
        let mut graph = Graph::new("block");
        let x = graph.add_input("x", floats(&[batch, 32, 14, 14])).unwrap();
        let mut constant = |graph: &mut Graph, name: &str, dims: &[i64]| {
            graph.add_constant(name, filled(dims, &mut random, false)).unwrap()
        };
        let (w1, b1) = (constant(&mut graph, "w1", &[16, 32, 1, 1]), constant(&mut graph, "b1", &[16]));
        let (w2, w3) = (constant(&mut graph, "w2", &[32, 16, 3, 3]), constant(&mut graph, "w3", &[32, 32, 3, 3]));
        let a = node(&mut graph, "conv1", conv(windows(1, 0), 1, true), &[x, w1, b1]);
        let a = node(&mut graph, "clip1", eltwise(WEIR_ELTWISE_CLIP, 0.0, 6.0), &[a]);
        let b = node(&mut graph, "conv2", conv(windows(1, 1), 1, false), &[a, w2]);
        let b = node(&mut graph, "swish2", eltwise(WEIR_ELTWISE_SWISH, 1.0, 0.0), &[b]);
        let c = node(&mut graph, "conv3", conv(windows(1, 1), 1, false), &[b, w3]);
        let sum = node(&mut graph, "add", binary(WEIR_BINARY_ADD), &[x, c]);
        let y = node(&mut graph, "relu", relu(), &[sum]);
        graph.add_output("y", y).unwrap();
        let inputs: Vec<_> = images.iter().map(|&n| [filled(&[n, 32, 14, 14], &mut random, false)]).collect();
        let inputs: Vec<&[Ref<Tensor>]> = inputs.iter().map(|input| &input[..]).collect();
        let program = same(&graph, &inputs, 0);
        assert_eq!(
            told(&program),
            [
                "'conv1' ends with 'clip1'",
                "'conv2' ends with 'swish2'",
                "'conv3' ends with 'add'",
                "'conv3+add' ends with 'relu'"
            ]
        );
        assert_eq!((fact(&program, "fused"), program.num_nodes()), (4, 3));
        let json = program.report(ReportFormat::Json);
        assert!(json.contains(r#"{"node":"relu","into":"conv3+add","why_not":null}"#), "{json}");
        assert_eq!(program.node_stats(2).unwrap().name, "conv3+add+relu");
        assert!(program.save_costs().contains("conv1+clip1"));
    }
}

#[test]
fn layers_of_products_have_bias_addend_and_activation() {
    let mut random = Random::new(2);
    let mut graph = Graph::new("layers");
    let x = graph.add_input("x", floats(&[-1, 24])).unwrap();
    let mut constant = |graph: &mut Graph, name: &str, dims: &[i64]| {
        graph.add_constant(name, filled(dims, &mut random, false)).unwrap()
    };
    let (w, bias) = (constant(&mut graph, "w", &[24, 24]), constant(&mut graph, "bias", &[24]));
    let a = node(&mut graph, "product", Builtin::new(PLAIN), &[x, w]);
    let a = node(&mut graph, "bias1", binary(WEIR_BINARY_ADD), &[bias, a]);
    let a = node(&mut graph, "sum1", binary(WEIR_BINARY_ADD), &[a, x]);
    let a = node(&mut graph, "gelu1", eltwise(WEIR_ELTWISE_GELU_ERF, 0.0, 0.0), &[a]);
    // Behind an activation nothing can be added.
    let b = node(&mut graph, "bias2", binary(WEIR_BINARY_ADD), &[a, bias]);
    graph.add_output("b", b).unwrap();
    let inputs = [1, 7, 40].map(|rows| [filled(&[rows, 24], &mut random, true)]);
    let program = same(&graph, &inputs.each_ref().map(|input| &input[..]), 0);
    assert_eq!(program.num_nodes(), 2, "{:?}", told(&program));
    assert_eq!(told(&program).last().unwrap(), "'product+bias1+sum1' ends with 'gelu1'");
}

#[test]
fn what_others_see_stays() {
    let mut random = Random::new(3);
    let mut graph = Graph::new("seen");
    let x = graph.add_input("x", floats(&[4, 4])).unwrap();
    let open = graph.add_input("open", floats(&[-1, 4])).unwrap();
    let other = graph.add_input("other", floats(&[-1, 4])).unwrap();
    let w = graph.add_constant("w", filled(&[4, 4], &mut random, false)).unwrap();
    let product = |graph: &mut Graph, name: &str, x| node(graph, name, Builtin::new(PLAIN), &[x, w]);
    let a = product(&mut graph, "a", x);
    let a1 = node(&mut graph, "a1", relu(), &[a]);
    let b = product(&mut graph, "b", x);
    let b1 = node(&mut graph, "b1", relu(), &[b]);
    let b2 = node(&mut graph, "b2", binary(WEIR_BINARY_MUL), &[b, b1]);
    let c = product(&mut graph, "c", open);
    let c1 = node(&mut graph, "c1", binary(WEIR_BINARY_ADD), &[c, other]);
    let d = product(&mut graph, "d", x);
    let d1 = node(&mut graph, "d1", binary(WEIR_BINARY_ADD), &[d, d]);
    // The addend comes after a long way.
    let large = graph.add_input("large", floats(&[64, 64])).unwrap();
    let mut e = node(&mut graph, "e", Builtin::new(PLAIN), &[large, large]);
    let mut long = large;
    for i in 0..40 {
        long = node(&mut graph, &format!("long{i}"), eltwise(WEIR_ELTWISE_TANH, 0.0, 0.0), &[long]);
    }
    e = node(&mut graph, "e1", binary(WEIR_BINARY_ADD), &[e, long]);
    for (name, value) in [("a", a), ("a1", a1), ("b2", b2), ("c1", c1), ("d1", d1), ("e1", e)] {
        graph.add_output(name, value).unwrap();
    }
    let (x, large) = (filled(&[4, 4], &mut random, false), filled(&[64, 64], &mut random, false));
    let inputs = [(1, 1), (3, 3), (5, 1), (1, 2)].map(|(n, m)| {
        let open = [n, m].map(|rows| filled(&[rows, 4], &mut random, false));
        [&[Ref::clone(&x)], &open[..], &[Ref::clone(&large)]].concat()
    });
    let program = same(&graph, &inputs.each_ref().map(|input| &input[..]), 0);
    assert_eq!(
        told(&program),
        [
            "'a' does not end with 'a1': its result is an output",
            "'b' does not end with 'b1': its result is read more than once",
            "'c' does not end with 'c1': only a run knows whether 'other' has its shape",
            "'d' does not end with 'd1': its result is read more than once",
            "'e' does not end with 'e1': it would wait for 'long39'",
        ]
    );
}

/// A random graph of convolutions, products, sums and activations of one or two shapes.
fn drawn(seed: u64, open: bool) -> (Graph, Vec<Vec<Ref<Tensor>>>) {
    let mut random = Random::new(seed);
    let (mut channels, height, width) =
        (1 + random.below(20) as i64, 3 + random.below(14) as i64, 1 + random.below(17) as i64);
    let is_image = random.below(3) > 0;
    // Chains are for what does not fit into a near cache.
    let is_large = !is_image && random.below(2) == 0;
    if is_large {
        channels = 130;
    }
    let shape = |batch: i64| match is_image {
        true => vec![batch, channels, height, width],
        false if is_large => vec![batch, 70, channels],
        false => vec![batch * height, channels],
    };
    let mut declared = shape(2);
    if open {
        declared[0] = -1;
    }
    let mut graph = Graph::new("drawn");
    let x = graph.add_input("x", floats(&declared)).unwrap();
    let y = graph.add_input("y", floats(&declared)).unwrap();
    let mut values = vec![x, y];
    let mut constants = 0;
    let has_special = random.below(4) == 0;
    for i in 0..4 + random.below(14) {
        let mut constant = |graph: &mut Graph, dims: &[i64], random: &mut Random| {
            constants += 1;
            graph.add_constant(&format!("k{constants}"), filled(dims, random, false)).unwrap()
        };
        // Mostly the last value, so that there are chains.
        let pick = |random: &mut Random| match random.below(3) {
            0 => values[random.below(values.len())],
            _ => *values.last().unwrap(),
        };
        let (a, b) = (pick(&mut random), pick(&mut random));
        let name = format!("n{i}");
        let value = match random.below(11) {
            0..4 if is_image => {
                let (taps, groups) = (1 + 2 * random.below(3) as i64, if random.below(3) == 0 { channels } else { 1 });
                let w = constant(&mut graph, &[channels, channels / groups, taps, taps], &mut random);
                match random.below(2) {
                    0 => node(&mut graph, &name, conv(windows(1, taps / 2), groups, false), &[a, w]),
                    _ => {
                        let bias = constant(&mut graph, &[channels], &mut random);
                        node(&mut graph, &name, conv(windows(1, taps / 2), groups, true), &[a, w, bias])
                    }
                }
            }
            0..4 => {
                let w = constant(&mut graph, &[channels, channels], &mut random);
                node(&mut graph, &name, Builtin::new(PLAIN), &[a, w])
            }
            4 if is_image => {
                let op = weir_pooling_op_value::WEIR_POOLING_MAX;
                let pooling = Pooling { op, kernel: Some([3, 3]), depth_kernel: 0, windows: windows(1, 1) };
                node(&mut graph, &name, Builtin::new(pooling), &[a])
            }
            4 => {
                let bias = constant(&mut graph, &[channels], &mut random);
                node(&mut graph, &name, binary(WEIR_BINARY_ADD), &[a, bias])
            }
            5 | 6 => node(&mut graph, &name, binary(WEIR_BINARY_ADD), &[a, b]),
            7 => {
                let op = random.of(&[WEIR_BINARY_MUL, WEIR_BINARY_SUB, WEIR_BINARY_DIV, WEIR_BINARY_MAX]);
                let one = [&[1, 1][..], &[1], &[]][random.below(3)];
                let b = if random.below(2) == 0 { constant(&mut graph, one, &mut random) } else { b };
                let operands = if random.below(2) == 0 { [a, b] } else { [b, a] };
                node(&mut graph, &name, binary(op), &operands)
            }
            _ => {
                let function = match random.below(9) {
                    0 => eltwise(WEIR_ELTWISE_CLIP, -0.5, 6.0),
                    1 => eltwise(WEIR_ELTWISE_HARDSWISH, 1.0 / 6.0, 0.5),
                    2 => eltwise(WEIR_ELTWISE_HARDSIGMOID, 0.2, 0.5),
                    3 => eltwise(WEIR_ELTWISE_SWISH, 1.0, 0.0),
                    4 => eltwise(WEIR_ELTWISE_RELU, 0.1, 0.0),
                    5 => eltwise(WEIR_ELTWISE_SIGMOID, 0.0, 0.0),
                    6 => eltwise(WEIR_ELTWISE_MISH, 0.0, 0.0),
                    _ => relu(),
                };
                node(&mut graph, &name, function, &[a])
            }
        };
        values.push(value);
    }
    graph.add_output("last", *values.last().unwrap()).unwrap();
    if random.below(2) == 0 {
        graph.add_output("some", values[2 + random.below(values.len() - 2)]).unwrap();
    }
    let batches: &[i64] = if open { &[1, 3] } else { &[2] };
    let inputs = batches
        .iter()
        .map(|&batch| (0..2).map(|_| filled(&shape(batch), &mut random, has_special)).collect())
        .collect();
    (graph, inputs)
}

#[test]
fn random_graphs_make_the_same_bits() {
    let graphs: u64 = std::env::var("WEIR_FUSION_GRAPHS").map_or(60, |text| text.parse().unwrap());
    let mut fused = 0;
    for seed in 0..graphs {
        let (graph, inputs) = drawn(seed, seed % 3 == 0);
        let inputs: Vec<&[Ref<Tensor>]> = inputs.iter().map(|inputs| &inputs[..]).collect();
        fused += fact(&same(&graph, &inputs, seed), "fused");
    }
    assert!(fused as u64 > graphs / 3, "{fused} in {graphs}");
}

#[test]
fn elementwise_nodes_become_chains() {
    let mut random = Random::new(4);
    let mut graph = Graph::new("gelu");
    let x = graph.add_input("x", floats(&[8, 4096])).unwrap();
    let mut number = |graph: &mut Graph, name: &str, value: f32| {
        let tensor = filled(&[1], &mut random, false);
        // SAFETY: a tensor of one float that nobody else uses.
        unsafe { *tensor.data().cast::<f32>() = value };
        graph.add_constant(name, tensor).unwrap()
    };
    let (root, one, half) = (
        number(&mut graph, "root", std::f32::consts::SQRT_2),
        number(&mut graph, "one", 1.0),
        number(&mut graph, "half", 0.5),
    );
    let a = node(&mut graph, "div", binary(WEIR_BINARY_DIV), &[x, root]);
    let a = node(&mut graph, "erf", eltwise(WEIR_ELTWISE_ERF, 0.0, 0.0), &[a]);
    let a = node(&mut graph, "add", binary(WEIR_BINARY_ADD), &[one, a]);
    let a = node(&mut graph, "mul", binary(WEIR_BINARY_MUL), &[x, a]);
    let a = node(&mut graph, "times", binary(WEIR_BINARY_MUL), &[a, half]);
    graph.add_output("y", a).unwrap();
    let inputs = [filled(&[8, 4096], &mut random, true)];
    let program = same(&graph, &[&inputs], 0);
    assert_eq!(program.num_nodes(), 1, "{:?}", told(&program));
    assert_eq!(program.node_stats(0).unwrap().name, "div+erf+add+mul+times");
}

#[test]
fn norms_and_reductions_end_with_what_follows() {
    let mut random = Random::new(6);
    let norms = [WEIR_NORM_LAYER, WEIR_NORM_RMS, WEIR_NORM_GROUP, WEIR_NORM_BATCH].map(Some);
    for (seed, (norm, open)) in
        norms.into_iter().chain([None]).flat_map(|norm| [(norm, false), (norm, true)]).enumerate()
    {
        for shape in [vec![2, 4, 3, 5], vec![3, 8, 21, 40], vec![1, 6, 1, 1]] {
            let mut graph = Graph::new("ends");
            let mut declared = shape.clone();
            if open {
                declared[0] = -1;
            }
            let x = graph.add_input("x", floats(&declared)).unwrap();
            let channels = shape[1];
            let mut constant = |graph: &mut Graph, name: &str| {
                let tensor = filled(&[channels], &mut random, false);
                // SAFETY: a tensor of so many floats that nobody else uses; variances are no less than zero.
                unsafe { std::slice::from_raw_parts_mut(tensor.data().cast::<f32>(), channels as usize) }
                    .iter_mut()
                    .for_each(|x| *x = x.abs() + 0.1);
                graph.add_constant(name, tensor).unwrap()
            };
            let first = match norm {
                Some(op) => {
                    let axis = if [WEIR_NORM_GROUP, WEIR_NORM_BATCH].contains(&op) { 1 } else { -1 };
                    let groups = if op == WEIR_NORM_GROUP { 2 } else { 0 };
                    let scale = op == WEIR_NORM_BATCH;
                    let of = Norm { op, axis, groups, epsilon: 1e-5, scale, shift: false };
                    let more = match scale {
                        true => ["mean", "variance", "scale"].map(|name| constant(&mut graph, name)).to_vec(),
                        false => Vec::new(),
                    };
                    node(&mut graph, "first", Builtin::new(of), &[&[x], &more[..]].concat())
                }
                None => node(&mut graph, "first", reduce(WEIR_REDUCE_MEAN, &[-1, -2]), &[x]),
            };
            // Of open dimensions only a run knows whether the other one has them too.
            let (other, least) = match norm {
                Some(_) => (x, 3),
                None => (graph.add_input("other", floats(&declared[..2])).unwrap(), if open { 1 } else { 3 }),
            };
            let one = constant(&mut graph, "all");
            let one = node(&mut graph, "one", reduce(WEIR_REDUCE_SUM, &[0]), &[one]);
            let a = node(&mut graph, "square", eltwise(WEIR_ELTWISE_SQUARE, 0.0, 0.0), &[first]);
            let a = node(&mut graph, "less", binary(WEIR_BINARY_SUB), &[other, a]);
            let a = node(&mut graph, "times", binary(WEIR_BINARY_MUL), &[a, one]);
            let a = node(&mut graph, "relu", relu(), &[a]);
            graph.add_output("y", a).unwrap();
            let mut inputs = vec![filled(&shape, &mut random, seed % 3 == 2)];
            if norm.is_none() {
                inputs.push(filled(&shape[..2], &mut random, false));
            }
            let program = same(&graph, &[&inputs], seed as u64);
            let joined = told(&program).iter().filter(|told| told.contains("'first")).count();
            assert!(joined > 0 && fact(&program, "fused") >= least, "{norm:?} {shape:?} {open}: {:?}", told(&program));
        }
    }
}

#[test]
fn inside_of_branches_and_loops() {
    let mut random = Random::new(5);
    let w = filled(&[6, 6], &mut random, false);
    let layer = |name: &str| {
        let mut graph = Graph::new(name);
        let x = graph.add_input("x", floats(&[3, 6])).unwrap();
        let w = graph.add_constant("w", Ref::clone(&w)).unwrap();
        let a = node(&mut graph, "product", Builtin::new(PLAIN), &[x, w]);
        let a = node(&mut graph, "sum", binary(WEIR_BINARY_ADD), &[a, x]);
        (node(&mut graph, "relu", relu(), &[a]), graph)
    };
    let (value, mut yes) = layer("yes");
    yes.add_output("y", value).unwrap();
    let mut no = Graph::new("no");
    let x = no.add_input("x", floats(&[3, 6])).unwrap();
    let x = node(&mut no, "tanh", eltwise(WEIR_ELTWISE_TANH, 0.0, 0.0), &[x]);
    no.add_output("y", x).unwrap();
    let mut graph = Graph::new("cond");
    let predicate = graph.add_input("predicate", Desc::new(dtype::S32, &[1])).unwrap();
    let x = graph.add_input("x", floats(&[3, 6])).unwrap();
    let choice = graph.add_cond("choice", predicate, &yes, &no, &[x]).unwrap();
    graph.add_output("y", choice.output(0)).unwrap();
    let x = filled(&[3, 6], &mut random, false);
    let inputs = [0, 1].map(|chosen| [kit::run::tensor(&cpu(), chosen), Ref::clone(&x)]);
    let program = same(&graph, &inputs.each_ref().map(|input| &input[..]), 0);
    assert_eq!(told(&program), ["'product' ends with 'sum'", "'product+sum' ends with 'relu'"]);
}

#[test]
fn a_fused_node_that_fails_has_all_names() {
    let mut random = Random::new(6);
    let mut graph = Graph::new("fails");
    let x = graph.add_input("x", floats(&[-1, -1])).unwrap();
    let w = graph.add_constant("w", filled(&[4, 4], &mut random, false)).unwrap();
    let a = node(&mut graph, "product", Builtin::new(PLAIN), &[x, w]);
    let a = node(&mut graph, "relu", relu(), &[a]);
    graph.add_output("a", a).unwrap();
    let program = compile(&graph, false);
    let outputs = outputs(&program, &[0]);
    let error = execute(&program, &[filled(&[2, 5], &mut random, false)], &outputs, &RunOptions::default());
    let error = error.unwrap_err();
    assert!(error.message().starts_with("node 'product+relu': input 1: expected f32[5,?]"), "{error}");
}

#[test]
fn activations_have_the_formulas_of_elements() {
    for (function, alpha, beta) in [(WEIR_ACTIVATION_CLIP, -1.0, 1.0), (WEIR_ACTIVATION_LEAKY_RELU, 0.5, 0.0)] {
        let activation = Activation { function, alpha, beta };
        assert_eq!(Eltwise::of(activation).unwrap().activation(), Some(activation));
    }
    assert_eq!(Eltwise { op: WEIR_ELTWISE_RELU, alpha: 0.0, beta: 0.0 }.activation(), Some(Activation::RELU));
    assert_eq!(Eltwise { op: WEIR_ELTWISE_MISH, alpha: 0.0, beta: 0.0 }.activation(), None);
    assert_eq!(Eltwise::of(Activation::NONE), None);
}

/// A report is as long as the graph: no chain's name has all of a long chain in it.
#[test]
fn long_chains_have_short_names() {
    let longest = |functions: usize| {
        let mut random = Random::new(7);
        let mut graph = Graph::new("long");
        let mut value = graph.add_input("x", floats(&[16, 1024])).unwrap();
        for i in 0..functions {
            value = node(&mut graph, &format!("n{i:03}"), eltwise(WEIR_ELTWISE_TANH, 0.0, 0.0), &[value]);
        }
        graph.add_output("y", value).unwrap();
        let program = same(&graph, &[&[filled(&[16, 1024], &mut random, false)]], 0);
        assert_eq!(program.num_nodes(), functions.div_ceil(32));
        program.report(ReportFormat::Text).lines().map(str::len).max().unwrap()
    };
    // Numbers in a line differ by digits, and a name would by hundreds of bytes.
    assert!(longest(200) <= longest(64) + 16);
}
