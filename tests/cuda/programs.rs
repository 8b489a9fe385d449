//! Programs with nodes on a CUDA engine, against the processor: the digits network.

use crate::digits::{CLASSES, Digits, PIXELS};
use crate::kit::{fake, is_fake, with_driver};
use std::sync::Arc;
use weir_core::base::{Desc, Ref, dtype};
use weir_core::device::{DeviceKind, Operation};
use weir_core::engine::{BoundKernel, Engine, EngineAttr, KernelIdentity, KernelOptions, Stream, StreamAttr, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program, RunOptions};
use weir_core::kernel::Kernel;
use weir_core::kernel::builtin::Builtin;
use weir_core::ops::*;

const BATCH: usize = 20;

pub fn cpu() -> Ref<Engine> {
    Engine::create(DeviceKind::CPU, 0, None).unwrap()
}

pub fn gpu(streams: u32) -> Ref<Engine> {
    let mut attr = EngineAttr::new(DeviceKind::CUDA);
    attr.set_max_streams(streams).unwrap();
    Engine::create(DeviceKind::CUDA, 0, Some(&attr)).unwrap()
}

/// An operation on either engine.
pub fn bound<O: Operator + Into<Op>>(engine: &Ref<Engine>, mut desc: O::Desc) -> Ref<BoundKernel>
where
    Builtin<O>: Kernel,
{
    let (operator, described) = Described::new::<O>(&mut desc, None).unwrap();
    let identity = KernelIdentity::of(Operation::Builtin(&described));
    let kernel = Arc::new(Builtin::new(operator));
    BoundKernel::create_as(engine.clone(), kernel, identity, &KernelOptions::default()).unwrap()
}

fn layer(engine: &Ref<Engine>, relu: bool) -> Ref<BoundKernel> {
    let activation =
        if relu { weir_activation_value::WEIR_ACTIVATION_RELU } else { weir_activation_value::WEIR_ACTIVATION_NONE };
    let desc = weir_matmul_desc {
        struct_size: size_of::<weir_matmul_desc>(),
        flags: weir_matmul_flags::WEIR_MATMUL_BIAS as u64,
        activation: activation as u32,
        reserved: 0,
        weights: std::ptr::null_mut(),
        alpha: 0.0,
        beta: 0.0,
    };
    bound::<Matmul>(engine, desc)
}

fn softmax(engine: &Ref<Engine>) -> Ref<BoundKernel> {
    bound::<Softmax>(engine, Softmax::DEFAULT.unwrap())
}

fn argmax(engine: &Ref<Engine>) -> Ref<BoundKernel> {
    let desc = weir_reduce_desc {
        struct_size: size_of::<weir_reduce_desc>(),
        flags: 0,
        op: weir_reduce_op_value::WEIR_REDUCE_ARGMAX as u32,
        num_axes: 1,
        axes: [-1, 0, 0, 0, 0, 0, 0, 0],
        p: 0.0,
        eps: 0.0,
    };
    bound::<Reduce>(engine, desc)
}

pub fn floats(engine: &Ref<Engine>, dims: &[i64], values: &[f32]) -> Ref<Tensor> {
    let tensor = Tensor::create(engine.clone(), Desc::new(dtype::F32, dims)).unwrap();
    // SAFETY: an array of so many numbers on the host that nobody uses yet.
    unsafe { tensor.data().cast::<f32>().copy_from(values.as_ptr(), values.len()) };
    tensor
}

fn empty(engine: &Ref<Engine>, desc: Desc) -> Ref<Tensor> {
    Tensor::create(engine.clone(), desc).unwrap()
}

/// The bytes of a tensor on the host, as words.
pub fn words(tensor: &Ref<Tensor>) -> Vec<u32> {
    // SAFETY: whole words that no work uses any more.
    (0..tensor.bytes() / 4).map(|i| unsafe { tensor.data().cast::<u32>().add(i).read() }).collect()
}

pub fn run(program: &Ref<Program>, inputs: &[Ref<Tensor>], outputs: &[Ref<Tensor>]) {
    let (get_in, get_out) = (|i: usize| Ok(lend(&inputs[i])), |i: usize| Ok(lend(&outputs[i])));
    let bound = Program::bind(program, (inputs.len(), &get_in), (outputs.len(), &get_out)).unwrap();
    bound.run(None, Some(&RunOptions::default())).unwrap();
}

/// Gives a tensor of the host's, of one integer, another one.
pub fn set_integer(tensor: &Tensor, value: i32) {
    // SAFETY: no run that uses the tensor is under way.
    unsafe { tensor.view().as_bytes_mut().write_integer(value) }
}

/// What `Program::bind` is given of a tensor.
pub fn lend(tensor: &Ref<Tensor>) -> std::mem::ManuallyDrop<Ref<Tensor>> {
    // SAFETY: a second owner that is never dropped; the first one outlives the call that it is lent to.
    std::mem::ManuallyDrop::new(unsafe { std::ptr::read(tensor) })
}

fn output_descs() -> [Desc; 3] {
    let rows = Desc::new(dtype::F32, &[BATCH as i64, CLASSES as i64]);
    [rows, rows, Desc::new(dtype::S32, &[BATCH as i64])]
}

/// Logits, probabilities and classes by a program whose nodes are on these engines in turn.
pub fn by_program(digits: &Digits, engines: &[Ref<Engine>]) -> [Vec<u32>; 3] {
    let host = cpu();
    let mut graph = Graph::new("digits");
    let mut value = graph.add_input("scans", Desc::new(dtype::F32, &[BATCH as i64, PIXELS as i64])).unwrap();
    let mut turn = engines.iter().cycle();
    let mut next = || turn.next().unwrap();
    for (i, of) in digits.layers.iter().enumerate() {
        let dims = [of.inputs as i64, of.outputs as i64];
        let weights = graph.add_constant(&format!("weights {i}"), floats(&host, &dims, &of.weights)).unwrap();
        let bias = graph.add_constant(&format!("bias {i}"), floats(&host, &dims[1..], &of.bias)).unwrap();
        let kernel = layer(next(), i + 1 < digits.layers.len());
        value = graph.add_kernel(&format!("layer {i}"), kernel, &[value, weights, bias], 1).unwrap().output(0);
    }
    let probabilities = graph.add_kernel("softmax", softmax(next()), &[value], 1).unwrap().output(0);
    let classes = graph.add_kernel("argmax", argmax(next()), &[probabilities], 1).unwrap().output(0);
    for (name, value) in [("logits", value), ("probabilities", probabilities), ("classes", classes)] {
        graph.add_output(name, value).unwrap();
    }
    let mut all = vec![host.clone()];
    all.extend(engines.iter().find(|engine| engine.kind() == DeviceKind::CUDA).cloned());
    let program = Program::compile(&graph, all, &CompileOptions::default()).unwrap();
    let scans = floats(&host, &[BATCH as i64, PIXELS as i64], &digits.pixels[..BATCH * PIXELS]);
    let outputs = output_descs().map(|desc| empty(&host, desc));
    // The second run is one of those that allocate nothing.
    for _ in 0..2 {
        run(&program, std::slice::from_ref(&scans), &outputs);
    }
    outputs.each_ref().map(words)
}

/// The same by calls of one kernel after the other on a stream.
fn by_kernels(digits: &Digits, engine: &Ref<Engine>) -> [Vec<u32>; 3] {
    let host = cpu();
    let stream = Stream::create(engine.clone(), StreamAttr::new(engine.kind())).unwrap();
    let upload = |dims: &[i64], values: &[f32]| {
        let there = empty(engine, Desc::new(dtype::F32, dims));
        stream.enqueue_copy(floats(&host, dims, values), there.clone()).unwrap();
        there
    };
    let mut value = upload(&[BATCH as i64, PIXELS as i64], &digits.pixels[..BATCH * PIXELS]);
    for (i, of) in digits.layers.iter().enumerate() {
        let dims = [of.inputs as i64, of.outputs as i64];
        let inputs = vec![value, upload(&dims, &of.weights), upload(&dims[1..], &of.bias)];
        value = empty(engine, Desc::new(dtype::F32, &[BATCH as i64, of.outputs as i64]));
        stream.enqueue(layer(engine, i + 1 < digits.layers.len()), inputs, vec![value.clone()]).unwrap();
    }
    let [_, rows, classes] = output_descs().map(|desc| empty(engine, desc));
    stream.enqueue(softmax(engine), vec![value.clone()], vec![rows.clone()]).unwrap();
    stream.enqueue(argmax(engine), vec![rows.clone()], vec![classes.clone()]).unwrap();
    let outputs = [value, rows, classes].map(|there| {
        let here = empty(&host, *there.desc());
        stream.enqueue_copy(there, here.clone()).unwrap();
        here
    });
    stream.synchronize(u64::MAX).unwrap();
    outputs.each_ref().map(words)
}

/// The same classes, and numbers that differ by roundings alone.
fn check_like(found: &[Vec<u32>; 3], expected: &[Vec<u32>; 3]) {
    assert_eq!(found[2], expected[2], "classes");
    for (found, expected) in found[..2].iter().flatten().zip(expected[..2].iter().flatten()) {
        let [found, expected] = [found, expected].map(|&word| f32::from_bits(word));
        assert!((found - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{found}, expected {expected}");
    }
}

#[test]
fn digits_are_read_as_by_the_processor() {
    for version in ["12000", "12040", "12080", "13000"] {
        let ran = with_driver(&[("VERSION", version)], || {
            let digits = Digits::load();
            let expected = by_program(&digits, &[cpu()]);
            let right = (0..BATCH).filter(|&i| expected[2][i] == u32::from(digits.labels[i])).count();
            assert!(right * 10 >= BATCH * 9, "{right} of {BATCH}");
            let alone = by_program(&digits, &[gpu(1)]);
            check_like(&alone, &expected);
            assert_eq!(by_kernels(&digits, &gpu(1)), alone, "a program and its kernels one by one");
            check_like(&by_program(&digits, &[gpu(2), cpu()]), &expected);
            assert!(fake::counted("cuLaunchKernel") >= 15 || !is_fake());
        });
        if ran.is_none() {
            return;
        }
    }
}
