//! Built-in kernels on shapes that only a run knows: what compile knows of the outputs, the same bits as with shapes
//! that are known, and what is said of shapes that do not fit.

use crate::build::{all_pools, cpu, run};
use std::sync::Arc;
use weir_core::base::{Code, Desc, Ref, Result, dtype};
use weir_core::engine::{BoundKernel, KernelOptions, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program, ValueId};
use weir_core::kernel::Kernel;
use weir_core::kernel::builtin::Builtin;
use weir_core::kernel::vector::activation::Activation;
use weir_core::ops::weir_binary_op_value::{self, *};
use weir_core::ops::weir_norm_op_value as NormOp;
use weir_core::ops::{
    Binary, Convert, Eltwise, Matmul, Norm, Quantize, Reduce, Slice, Softmax, Transpose, weir_eltwise_op_value,
};

pub const PLAIN: Matmul = Matmul {
    transpose_a: false,
    transpose_b: false,
    bias: false,
    sum: false,
    activation: Activation::NONE,
    wide: false,
    tf32: false,
    packed: None,
};
const LAYER: Matmul = Matmul { bias: true, activation: Activation::RELU, ..PLAIN };

pub fn softmax(axis: i32) -> Builtin<Softmax> {
    Builtin::new(Softmax { axis, log: false })
}

pub fn binary(op: weir_binary_op_value) -> Builtin<Binary> {
    Builtin::new(Binary::of(op))
}

pub fn relu() -> Builtin<Eltwise> {
    Builtin::new(Eltwise { op: weir_eltwise_op_value::WEIR_ELTWISE_RELU, alpha: 0.0, beta: 0.0 })
}

pub fn argmax(axis: i32) -> Builtin<Reduce> {
    Builtin::new(Reduce::argmax(axis))
}

pub fn floats(dims: &[i64]) -> Desc {
    Desc::new(dtype::F32, dims)
}

/// Numbers between -1 and 1, the same for the same seed.
pub fn filled(dims: &[i64], seed: u32) -> Ref<Tensor> {
    let tensor = Tensor::create(cpu(), floats(dims)).unwrap();
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let elements = tensor.desc().elements().unwrap();
    let values: Vec<f32> = (0..elements)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1u32 << 23) as f32 - 1.0
        })
        .collect();
    // SAFETY: a new tensor of that many floats.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), tensor.data().cast(), elements) };
    tensor
}

pub fn bytes(tensor: &Tensor) -> Vec<u8> {
    // SAFETY: readable, and written by no run now.
    unsafe { (0..tensor.bytes()).map(|i| tensor.data().add(i).read()).collect() }
}

pub fn node(graph: &mut Graph, name: &str, kernel: impl Kernel + 'static, inputs: &[ValueId]) -> ValueId {
    let kernel = BoundKernel::create(cpu(), Arc::new(kernel), &KernelOptions::default()).unwrap();
    graph.add_kernel(name, kernel, inputs, 1).unwrap().output(0)
}

/// A graph of one kernel.
fn alone(kernel: impl Kernel + 'static, inputs: &[&[i64]]) -> Result<Ref<Program>> {
    let mut graph = Graph::new("alone");
    let add = |(i, dims): (usize, &&[i64])| graph.add_input(&format!("in{i}"), floats(dims)).unwrap();
    let values: Vec<ValueId> = inputs.iter().enumerate().map(add).collect();
    let output = node(&mut graph, "x", kernel, &values);
    graph.add_output("out", output).unwrap();
    Program::compile(&graph, vec![cpu()], &CompileOptions::default())
}

/// Two layers, a residual, and what is the likeliest.
fn network(rows: i64) -> Ref<Program> {
    let mut graph = Graph::new("network");
    let x = graph.add_input("x", floats(&[rows, 24])).unwrap();
    let constant =
        |graph: &mut Graph, name: &str, dims: &[i64], seed| graph.add_constant(name, filled(dims, seed)).unwrap();
    let (w, bias) = (constant(&mut graph, "w", &[24, 24], 1), constant(&mut graph, "bias", &[24], 2));
    let out = constant(&mut graph, "out", &[24, 10], 3);
    let hidden = node(&mut graph, "hidden", Builtin::new(LAYER), &[x, w, bias]);
    let both = node(&mut graph, "both", binary(WEIR_BINARY_ADD), &[hidden, x]);
    let active = node(&mut graph, "active", relu(), &[both]);
    let scores = node(&mut graph, "scores", Builtin::new(PLAIN), &[active, out]);
    let likely = node(&mut graph, "likely", softmax(-1), &[scores]);
    let across = node(&mut graph, "across", softmax(0), &[scores]);
    let best = node(&mut graph, "best", argmax(1), &[likely]);
    for (i, value) in [likely, across, best, active].into_iter().enumerate() {
        graph.add_output(&format!("out{i}"), value).unwrap();
    }
    Program::compile(&graph, vec![cpu()], &CompileOptions::default()).unwrap()
}

#[test]
fn the_bits_are_those_of_a_known_batch() {
    let open = network(-1);
    let texts: Vec<String> = open.outputs().iter().map(|port| port.desc.text()).collect();
    assert_eq!(texts, ["f32[?,10]", "f32[?,10]", "s32[?]", "f32[?,24]"]);
    let pools = all_pools();
    for rows in [3, 0, 1, 64, 17, 300, 2] {
        let (known, x) = (network(rows), filled(&[rows, 24], rows as u32));
        let tensors = |program: &Ref<Program>| -> Vec<Ref<Tensor>> {
            let make = |desc| match Desc::is_concrete(&desc) {
                true => Tensor::create(cpu(), desc).unwrap(),
                false => Tensor::create_open(cpu(), desc).unwrap(),
            };
            program.outputs().iter().map(|port| make(port.desc)).collect()
        };
        let expected = tensors(&known);
        run(&known, std::slice::from_ref(&x), &expected, None).unwrap();
        for (i, pool) in pools.iter().enumerate() {
            let got = tensors(&open);
            run(&open, std::slice::from_ref(&x), &got, pool.as_ref()).unwrap();
            for (want, got) in expected.iter().zip(&got) {
                assert_eq!((want.desc(), bytes(want)), (got.desc(), bytes(got)), "{rows} rows, pool {i}");
            }
        }
    }
}

#[test]
fn compile_says_what_is_known() {
    let text = |program: Result<Ref<Program>>| program.unwrap().outputs()[0].desc.text();
    let transposed = Matmul { transpose_a: true, transpose_b: true, ..PLAIN };
    assert_eq!(text(alone(Builtin::new(PLAIN), &[&[-1, -1], &[8, 4]])), "f32[?,4]");
    assert_eq!(text(alone(Builtin::new(PLAIN), &[&[2, -1, 8], &[-1, 4]])), "f32[2,?,4]");
    assert_eq!(text(alone(Builtin::new(PLAIN), &[&[5, 8], &[8, -1]])), "f32[5,?]");
    assert_eq!(text(alone(Builtin::new(transposed), &[&[8, -1], &[4, 8]])), "f32[?,4]");
    assert_eq!(text(alone(Builtin::new(LAYER), &[&[-1, 8], &[8, 4], &[-1]])), "f32[?,4]");
    assert_eq!(text(alone(binary(WEIR_BINARY_ADD), &[&[-1, 4], &[4]])), "f32[?,4]");
    assert_eq!(text(alone(binary(WEIR_BINARY_ADD), &[&[-1], &[4]])), "f32[4]");
    assert_eq!(text(alone(binary(WEIR_BINARY_ADD), &[&[-1], &[1]])), "f32[?]");
    assert_eq!(text(alone(binary(WEIR_BINARY_ADD), &[&[-1, 1], &[-1]])), "f32[?,?]");
    assert_eq!(text(alone(relu(), &[&[-1, 3, -1]])), "f32[?,3,?]");
    assert_eq!(text(alone(softmax(1), &[&[3, -1]])), "f32[3,?]");
    assert_eq!(text(alone(argmax(0), &[&[-1, 5]])), "s32[5]");
    assert_eq!(text(alone(argmax(1), &[&[2, 5, -1]])), "s32[2,?]");
    let refusal = |program: Result<Ref<Program>>| program.err().unwrap().message().to_owned();
    assert_eq!(
        refusal(alone(Builtin::new(PLAIN), &[&[-1, 8], &[7, -1]])),
        "node 'x' input 1: expected f32[8,?], got f32[7,?]"
    );
    assert_eq!(
        refusal(alone(binary(WEIR_BINARY_ADD), &[&[-1, 4], &[-1, 3]])),
        "node 'x' input 1: expected a shape that broadcasts with f32[?,4], got f32[?,3]"
    );
}

#[test]
fn shapes_that_do_not_fit_are_told_by_the_run() {
    let told = |program: Ref<Program>, inputs: &[&[i64]]| {
        let inputs: Vec<Ref<Tensor>> = inputs.iter().map(|dims| filled(dims, 7)).collect();
        let desc = program.outputs()[0].desc;
        let output = if desc.is_concrete() { Tensor::create(cpu(), desc) } else { Tensor::create_open(cpu(), desc) };
        run(&program, &inputs, &[output.unwrap()], None)
    };
    let is = |result: Result<()>, expected: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.message().ends_with(expected), "{error}");
    };
    let product = || alone(Builtin::new(PLAIN), &[&[-1, -1], &[-1, 8]]).unwrap();
    told(product(), &[&[5, 4], &[4, 8]]).unwrap();
    is(told(product(), &[&[5, 4], &[3, 8]]), "node 'x': input 1: expected f32[4,?], got f32[3,8]");
    let layer = || alone(Builtin::new(LAYER), &[&[-1, 8], &[8, -1], &[4]]).unwrap();
    is(told(layer(), &[&[5, 8][..], &[8, 3], &[4]]), "node 'x': input 2: expected f32[3], got f32[4]");
    let sum = || alone(binary(WEIR_BINARY_ADD), &[&[-1], &[4]]).unwrap();
    told(sum(), &[&[1], &[4]]).unwrap();
    is(told(sum(), &[&[3], &[4]]), "node 'x': input 1: expected a shape that broadcasts with f32[3], got f32[4]");
    let best = || alone(argmax(0), &[&[-1, 5]]).unwrap();
    told(best(), &[&[2, 5]]).unwrap();
    is(told(best(), &[&[0, 5]]), "input 0: expected 1 to 2147483647 elements along the axes together, got f32[0,5]");
}

/// Compiles a kernel for inputs with open rows, and compares its runs with those of the same kernel for rows that are
/// known.
fn check_rows<K: Kernel + Clone + 'static>(kernel: &K, inputs: &[&[i64]], expected: &str) {
    let open = alone(kernel.clone(), inputs).unwrap();
    let desc = open.outputs()[0].desc;
    assert_eq!(desc.text(), expected);
    for rows in [3, 1, 130, 0] {
        let known: Vec<Vec<i64>> =
            inputs.iter().map(|dims| dims.iter().map(|&dim| if dim == -1 { rows } else { dim }).collect()).collect();
        let known: Vec<&[i64]> = known.iter().map(Vec::as_slice).collect();
        let tensors: Vec<Ref<Tensor>> = known.iter().zip(1..).map(|(dims, seed)| filled(dims, seed)).collect();
        let closed = alone(kernel.clone(), &known).unwrap();
        let want = Tensor::create(cpu(), closed.outputs()[0].desc).unwrap();
        run(&closed, &tensors, std::slice::from_ref(&want), None).unwrap();
        for pool in all_pools() {
            let got = Tensor::create_open(cpu(), desc).unwrap();
            run(&open, &tensors, std::slice::from_ref(&got), pool.as_ref()).unwrap();
            assert_eq!((want.desc(), bytes(&want)), (got.desc(), bytes(&got)), "{} of {rows} rows", kernel.name());
        }
    }
}

#[test]
fn kernels_of_elements_take_open_rows() {
    let (wide, narrow): (&[i64], &[i64]) = (&[-1, 6], &[6]);
    let tanh = Eltwise { op: weir_eltwise_op_value::WEIR_ELTWISE_TANH, alpha: 0.0, beta: 0.0 };
    check_rows(&Builtin::new(tanh), &[wide], "f32[?,6]");
    check_rows(&binary(WEIR_BINARY_MUL), &[wide, narrow], "f32[?,6]");
    check_rows(&binary(WEIR_BINARY_LT), &[narrow, wide], "bool[?,6]");
    check_rows(&Builtin::new(Convert { scale: 3.0, shift: 0.5, ..Convert::to(dtype::BF16) }), &[wide], "bf16[?,6]");
    let quantization = Builtin::new(Quantize { dequantize: false, dtype: dtype::S8, zero_point: false, axis: 1 });
    check_rows(&quantization, &[wide, narrow], "s8[?,6]");
    let text = |kernel: Builtin<Binary>, inputs: &[&[i64]]| alone(kernel, inputs).unwrap().outputs()[0].desc.text();
    assert_eq!(text(binary(WEIR_BINARY_ADD), &[&[-1], &[4]]), "f32[4]");
    let error = alone(binary(WEIR_BINARY_ADD), &[&[-1, 4], &[3]]).err().unwrap();
    assert!(error.message().ends_with("expected a shape that broadcasts with f32[?,4], got f32[3]"), "{error}");
}

#[test]
fn moves_and_normalisations_take_open_rows() {
    let wide: &[i64] = &[-1, 6];
    let transpose = Transpose { rank: Some(2), permutation: [1, 0, 0, 0, 0, 0, 0, 0] };
    check_rows(&Builtin::new(transpose), &[wide], "f32[6,?]");
    let mut slice = Slice { rank: 2, begin: [0; 8], end: [i64::MAX; 8], step: [2; 8] };
    slice.begin[1] = 1;
    check_rows(&Builtin::new(slice), &[wide], "f32[?,3]");
    let norm = Norm { op: NormOp::WEIR_NORM_LAYER, axis: -1, groups: 1, epsilon: 1e-5, scale: true, shift: true };
    check_rows(&argmax(1), &[wide], "s32[?]");
    check_rows(&Builtin::new(norm), &[wide, &[6], &[6]], "f32[?,6]");
    check_rows(&Builtin::new(Norm { op: NormOp::WEIR_NORM_RMS, shift: false, ..norm }), &[wide, &[6]], "f32[?,6]");
}
