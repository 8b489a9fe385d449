//! Every operator on sizes that only a run knows, with the bits of a program for each size; networks of them in
//! branches, loops and several runs at once; and what is said of sizes that do not fit.

use crate::build::{all_pools, cpu, run};
use crate::builtin::{PLAIN, argmax, binary, bytes, filled, floats, node, relu, softmax};
use crate::kit::pools;
use crate::kit::random::Random;
use std::sync::Arc;
use weir_core::base::{Code, Desc, Ref, Result, dtype};
use weir_core::engine::{BoundKernel, KernelOptions, Tensor};
use weir_core::graph::{CompileOptions, Graph, Program, ValueId};
use weir_core::kernel::Kernel;
use weir_core::kernel::builtin::Builtin;
use weir_core::kernel::vector::activation::Activation;
use weir_core::kernel::vector::window::EdgeMode;
use weir_core::ops::weir_binary_op_value::*;
use weir_core::ops::weir_gate_order_value::*;
use weir_core::ops::weir_norm_op_value::*;
use weir_core::ops::weir_pad_mode_value::*;
use weir_core::ops::weir_pooling_op_value::*;
use weir_core::ops::weir_sequence_direction_value::*;
use weir_core::ops::weir_tile_mode_value::*;
use weir_core::ops::*;
use weir_core::threadpool::ThreadPool;

const F32: u32 = dtype::F32;
const REST: i64 = weir_reshape_dim::WEIR_RESHAPE_INFER as i64;
const KEEP: i64 = weir_reshape_dim::WEIR_RESHAPE_KEEP as i64;

const fn windows(padding: i64, strides: i64, dilations: i64) -> Windows {
    Windows {
        strides: [strides; 2],
        dilations: [dilations; 2],
        begin: [padding; 2],
        end: [padding; 2],
        depth: AxisSettings { stride: 0, dilation: 0, begin: 0, end: 0 },
        edge: EdgeMode::Zero,
    }
}

fn conv(windows: Windows, groups: i64, bias: bool) -> Arc<dyn Kernel> {
    Arc::new(Builtin::new(Conv { windows, groups, bias, sum: false, activation: Activation::RELU }))
}

fn pooling(op: weir_pooling_op_value, kernel: Option<[i64; 2]>, windows: Windows) -> Arc<dyn Kernel> {
    Arc::new(Builtin::new(Pooling { op, kernel, depth_kernel: 0, windows }))
}

fn reshape(dims: &[i64]) -> Arc<dyn Kernel> {
    let shape = std::array::from_fn(|i| dims.get(i).copied().unwrap_or(0));
    Arc::new(Builtin::new(Reshape { rank: dims.len(), shape }))
}

fn pad(rank: usize, mode: weir_pad_mode_value) -> Arc<dyn Kernel> {
    let margin = |first: i64| std::array::from_fn(|i| if i < rank { (first + i as i64) % 3 } else { 0 });
    Arc::new(Builtin::new(Pad { rank, before: margin(1), after: margin(0), mode, value: 2.0 }))
}

fn tile(mode: weir_tile_mode_value, counts: &[i64]) -> Arc<dyn Kernel> {
    let mut desc = weir_tile_desc { struct_size: 0, rank: counts.len() as u32, mode: mode as u32, counts: [0; 8] };
    desc.counts[..counts.len()].copy_from_slice(counts);
    Arc::new(Builtin::new(Tile::new(&mut desc, None).unwrap()))
}

/// A dimension: a variable times a factor, plus a number.
#[derive(Clone, Copy)]
struct Dim(usize, i64, i64);

/// A size that never changes.
const fn is(size: i64) -> Dim {
    Dim(0, 0, size)
}

/// A variable.
const fn v(variable: usize) -> Dim {
    Dim(variable, 1, 0)
}

impl Dim {
    fn of(self, sizes: &[i64]) -> i64 {
        sizes[self.0] * self.1 + self.2
    }

    fn is_among(self, open: &[bool]) -> bool {
        self.1 != 0 && open[self.0]
    }
}

struct Case {
    kernel: Arc<dyn Kernel>,
    inputs: Vec<(u32, Vec<Dim>)>,
}

fn case(kernel: Arc<dyn Kernel>, inputs: &[(u32, &[Dim])]) -> Case {
    Case { kernel, inputs: inputs.iter().map(|&(dtype, dims)| (dtype, dims.to_vec())).collect() }
}

fn plain<O: Operator>(operator: O) -> Arc<dyn Kernel>
where
    Builtin<O>: Kernel,
{
    Arc::new(Builtin::new(operator))
}

fn cases() -> Vec<Case> {
    let (image, mirrored) = (windows(1, 1, 0), Windows { edge: EdgeMode::Reflect, ..windows(2, 1, 0) });
    let line = Windows { strides: [2, 0], begin: [1, 0], ..Windows::default() };
    let x4: &[Dim] = &[v(0), v(1), v(2), v(3)];
    let int8 = |bias, scales, dtype| {
        let (transpose_a, transpose_b, scale) = (false, false, 0.5);
        let operator = MatmulInt8 {
            transpose_a,
            transpose_b,
            bias,
            scales,
            scale,
            zero_a: 3,
            zero_b: 0,
            zero_c: 0,
            dtype,
            packed: None,
        };
        plain(operator)
    };
    let cell: &[(u32, &[Dim])] = &[
        (F32, &[v(0), v(1)]),
        (F32, &[v(0), v(2)]),
        (F32, &[v(0), v(2)]),
        (F32, &[Dim(2, 4, 0), v(1)]),
        (F32, &[Dim(2, 4, 0), v(2)]),
        (F32, &[Dim(2, 4, 0)]),
        (F32, &[Dim(2, 4, 0)]),
    ];
    let gru: &[(u32, &[Dim])] = &[
        (F32, &[v(0), v(1)]),
        (F32, &[v(0), v(2)]),
        (F32, &[Dim(2, 3, 0), v(1)]),
        (F32, &[Dim(2, 3, 0), v(2)]),
        (F32, &[Dim(2, 3, 0)]),
        (F32, &[Dim(2, 3, 0)]),
    ];
    let slice = {
        let mut slice = Slice { rank: 3, begin: [0; 8], end: [i64::MAX; 8], step: [1; 8] };
        (slice.begin[0], slice.end[1], slice.step[2]) = (1, -1, 2);
        slice
    };
    let reduce = |op, axes: &[i32]| {
        let all = std::array::from_fn(|i| axes.get(i).copied().unwrap_or(0));
        let (keep_dims, long_indices, squares) = (true, false, false);
        plain(Reduce { op, axes: all, num_axes: axes.len(), keep_dims, long_indices, squares, eps: 0.0 })
    };
    let norm = |op, axis, groups| plain(Norm { op, axis, groups, epsilon: 1e-5, scale: true, shift: true });
    let sequence = |direction, batch_first: bool, order| Sequence {
        order,
        direction,
        bias: true,
        lengths: !batch_first,
        initial: true,
        batch_first,
        clip: f32::INFINITY,
    };
    let nms = |exact| {
        let (centers, most_boxes, most_overlap, least_score) = (false, 3, 0.4, Some(-0.5));
        plain(Nms { centers, exact, most_boxes, most_overlap, least_score })
    };
    let conv_int8 = |groups, bias, dtype| {
        let (scales, scale, zero_x, zero_w, zero_y) = (true, 0.5, 1, -1, 2);
        let windows = windows(1, 1, 0);
        plain(ConvInt8 { windows, groups, bias, scales, scale, zero_x, zero_w, zero_y, dtype })
    };
    let many: Vec<(u32, &[Dim])> = vec![(dtype::S32, &x4[..2]); 20];
    vec![
        // Direct, in rows, and Winograd, as sizes have it; windows of one element; few filters; groups; signals.
        case(conv(image, 1, true), &[(F32, x4), (F32, &[is(9), v(1), is(3), is(3)]), (F32, &[is(9)])]),
        case(conv(image, 1, false), &[(F32, &[v(0), is(32), v(2), v(3)]), (F32, &[is(40), is(32), is(3), is(3)])]),
        case(
            conv(windows(0, 0, 0), 1, true),
            &[(F32, &[v(0), is(5), v(2), v(3)]), (F32, &[is(16), is(5), is(1), is(1)]), (F32, &[is(16)])],
        ),
        case(conv(windows(2, 2, 2), 1, false), &[(F32, x4), (F32, &[is(3), v(1), is(2), is(3)])]),
        case(conv(mirrored, 2, false), &[(F32, &[v(0), is(4), v(2), v(3)]), (F32, &[is(18), is(2), is(3), v(1)])]),
        case(conv(line, 1, true), &[(F32, &[v(0), v(1), v(2)]), (F32, &[v(3), v(1), is(3)]), (F32, &[v(3)])]),
        case(pooling(WEIR_POOLING_MAX, Some([3, 2]), image), &[(F32, x4)]),
        case(pooling(WEIR_POOLING_AVERAGE_INSIDE, Some([2, 0]), Windows::default()), &[(F32, &[v(0), v(1), v(2)])]),
        case(pooling(WEIR_POOLING_AVERAGE, None, Windows::default()), &[(F32, x4)]),
        case(
            plain(Concat { axis: 1, inputs: 3 }),
            &[(F32, &[v(0), v(1), v(2)]), (F32, &[v(0), v(3), v(2)]), (F32, &[v(0), is(2), v(2)])],
        ),
        case(plain(Concat { axis: 0, inputs: 20 }), &many),
        case(pad(3, WEIR_PAD_CONSTANT), &[(dtype::S32, &[v(0), v(1), v(2)])]),
        case(pad(2, WEIR_PAD_REFLECT), &[(F32, &[v(0), v(1)])]),
        case(pad(2, WEIR_PAD_EDGE), &[(F32, &[v(0), v(1)])]),
        case(reshape(&[-1]), &[(F32, &[v(0), v(1), v(2)])]),
        case(reshape(&[2, -1]), &[(F32, &[v(0), v(1), is(6)])]),
        case(reshape(&[KEEP, REST]), &[(F32, x4)]),
        case(reshape(&[KEEP, KEEP, 2, 3]), &[(F32, &[v(0), v(1), is(6)])]),
        case(reshape(&[3, 8]), &[(F32, &[v(0), is(4)])]),
        case(
            int8(true, true, dtype::U8),
            &[(dtype::U8, &[v(0), v(1), v(2)]), (dtype::S8, &[v(2), v(3)]), (dtype::S32, &[v(3)]), (F32, &[v(3)])],
        ),
        case(int8(false, false, dtype::S32), &[(dtype::S8, &[v(0), v(2)]), (dtype::S8, &[v(2), v(3)])]),
        case(plain(Lstm { order: WEIR_GATES_TORCH, bias: true }), cell),
        case(plain(Lstm { order: WEIR_GATES_ONNX, bias: false }), &cell[..5]),
        case(plain(Gru { order: WEIR_GATES_ONNX, bias: true, linear_before_reset: true }), gru),
        case(plain(Gru { order: WEIR_GATES_ONNX, bias: false, linear_before_reset: false }), &gru[..4]),
        case(
            plain(LstmSequence {
                sequence: sequence(WEIR_SEQUENCE_BIDIRECTIONAL, false, WEIR_GATES_ONNX),
                peepholes: true,
            }),
            &[
                (F32, &[v(0), v(1), is(5)]),
                (F32, &[is(2), Dim(2, 4, 0), is(5)]),
                (F32, &[is(2), Dim(2, 4, 0), v(2)]),
                (F32, &[is(2), Dim(2, 8, 0)]),
                (dtype::S32, &[v(1)]),
                (F32, &[is(2), v(1), v(2)]),
                (F32, &[is(2), v(1), v(2)]),
                (F32, &[is(2), Dim(2, 3, 0)]),
            ],
        ),
        case(
            plain(GruSequence {
                sequence: sequence(WEIR_SEQUENCE_REVERSE, true, WEIR_GATES_TORCH),
                linear_before_reset: false,
            }),
            &[
                (F32, &[v(1), v(0), v(3)]),
                (F32, &[is(1), Dim(2, 3, 0), v(3)]),
                (F32, &[is(1), Dim(2, 3, 0), v(2)]),
                (F32, &[is(1), Dim(2, 6, 0)]),
                (F32, &[v(1), is(1), v(2)]),
            ],
        ),
        case(
            plain(GridSample {
                mode: weir_resize_mode_value::WEIR_RESIZE_CUBIC,
                edge: weir_grid_sample_edge_value::WEIR_GRID_SAMPLE_REFLECTION,
                align_corners: false,
            }),
            &[(F32, x4), (F32, &[v(0), v(3), is(5), is(2)])],
        ),
        case(nms(false), &[(F32, &[v(0), v(1), is(4)]), (F32, &[v(0), v(2), v(1)])]),
        case(nms(true), &[(F32, &[v(0), v(1), is(4)]), (F32, &[v(0), v(2), v(1)])]),
        case(plain(Nonzero { exact: false }), &[(dtype::S32, &[v(0), v(1), v(2)])]),
        case(plain(Nonzero { exact: true }), &[(dtype::BOOL, &[v(0), v(1)])]),
        case(plain(Shape), &[(F32, &[v(0), v(1)])]),
        case(plain(Range), &[(dtype::S32, &[is(1)]), (dtype::S32, &[v(0)]), (dtype::S32, &[])]),
        case(plain(Range), &[(F32, &[is(1)]), (F32, &[is(1)]), (F32, &[is(1), is(1)])]),
        case(tile(WEIR_TILE_REPEAT, &[2, 1, 3]), &[(dtype::S32, &[v(0), v(1), v(2)])]),
        case(tile(WEIR_TILE_EXPAND, &[3, -1, 4, 1]), &[(F32, &[v(0), v(1), v(2)])]),
        case(
            conv_int8(1, true, dtype::U8),
            &[(dtype::U8, x4), (dtype::S8, &[is(9), v(1), is(3), is(3)]), (dtype::S32, &[is(9)]), (F32, &[is(9)])],
        ),
        case(
            conv_int8(4, false, dtype::S32),
            &[(dtype::S8, &[v(0), is(4), v(2), v(3)]), (dtype::S8, &[is(8), is(1), is(3), v(1)]), (F32, &[is(8)])],
        ),
        case(plain(PLAIN), &[(F32, &[v(0), v(1), v(2)]), (F32, &[v(2), v(3)])]),
        case(Arc::new(binary(WEIR_BINARY_SUB)), &[(F32, &[v(0), is(1), v(2)]), (F32, &[v(1), v(2)])]),
        case(plain(Select), &[(dtype::BOOL, &[v(0), v(1)]), (F32, &[v(1)]), (F32, &[v(0), is(1)])]),
        case(Arc::new(relu()), &[(F32, &[v(0), v(1)])]),
        case(Arc::new(softmax(0)), &[(F32, &[v(0), v(1), v(2)])]),
        case(Arc::new(argmax(1)), &[(F32, &[v(0), v(1), v(2)])]),
        case(reduce(weir_reduce_op_value::WEIR_REDUCE_MEAN, &[-1, 0]), &[(F32, &[v(0), v(1), v(2)])]),
        case(reduce(weir_reduce_op_value::WEIR_REDUCE_SUM, &[]), &[(F32, &[v(0), Dim(1, 300, 0), v(2)])]),
        case(norm(WEIR_NORM_LAYER, 1, 0), &[(F32, &[v(0), v(1), v(2)]), (F32, &[v(1), v(2)]), (F32, &[v(1), v(2)])]),
        case(
            norm(WEIR_NORM_GROUP, 1, 2),
            &[(F32, &[v(0), Dim(1, 2, 0), v(2)]), (F32, &[Dim(1, 2, 0)]), (F32, &[Dim(1, 2, 0)])],
        ),
        case(plain(Cumsum { axis: 1, exclusive: false, reverse: true }), &[(F32, &[v(0), v(1), v(2)])]),
        case(plain(Transpose { rank: Some(3), permutation: [2, 0, 1, 0, 0, 0, 0, 0] }), &[(F32, &[v(0), v(1), v(2)])]),
        case(plain(slice), &[(F32, &[v(0), v(1), v(2)])]),
        case(
            plain(Gather { axis: 1, from_end: true }),
            &[(F32, &[v(0), Dim(1, 1, 4), v(2)]), (dtype::S32, &[v(3), v(2)])],
        ),
        case(plain(Convert { scale: 2.0, ..Convert::to(dtype::S32) }), &[(F32, &[v(0), v(1)])]),
        case(plain(Lrn { size: 3, alpha: 0.5, beta: 0.75, bias: 1.0 }), &[(F32, &[v(0), v(1), v(2)])]),
        case(
            plain(ConvTranspose {
                windows: windows(1, 2, 1),
                more: [1, 0],
                depth_more: 0,
                groups: 2,
                bias: true,
                activation: Activation::RELU,
            }),
            &[(F32, &[v(0), is(4), v(2), v(3)]), (F32, &[is(4), v(1), is(3), is(3)]), (F32, &[Dim(1, 2, 0)])],
        ),
        case(
            plain(Quantize { dequantize: false, dtype: dtype::S8, zero_point: false, axis: 1 }),
            &[(F32, &[v(0), v(1), v(2)]), (F32, &[v(1)])],
        ),
    ]
}

/// A tensor of any type with small numbers.
fn any(desc: Desc, seed: u32) -> Ref<Tensor> {
    if desc.dtype == F32 {
        return filled(desc.shape(), seed);
    }
    let tensor = Tensor::create(cpu(), desc).unwrap();
    for i in 0..desc.elements().unwrap() {
        let value = (i * 7 + seed as usize) * 5 % 11 % 4;
        // SAFETY: a new tensor of so many elements.
        unsafe {
            match desc.dtype {
                dtype::S32 => tensor.data().cast::<i32>().add(i).write(value as i32),
                dtype::BOOL => tensor.data().add(i).write(value as u8 % 2),
                _ => tensor.data().add(i).write(value as u8),
            }
        }
    }
    tensor
}

fn outputs(program: &Program) -> Vec<Ref<Tensor>> {
    let make = |desc: Desc| match desc.is_concrete() {
        true => Tensor::create(cpu(), desc).unwrap(),
        false => Tensor::create_open(cpu(), desc).unwrap(),
    };
    program.outputs().iter().map(|port| make(port.desc)).collect()
}

/// What a run makes: shapes and bytes.
fn made(
    program: &Ref<Program>,
    inputs: &[Ref<Tensor>],
    pool: Option<&Ref<ThreadPool>>,
) -> Result<Vec<(Desc, Vec<u8>)>> {
    let outputs = outputs(program);
    run(program, inputs, &outputs, pool)?;
    Ok(outputs.iter().map(|tensor| (*tensor.desc(), bytes(tensor))).collect())
}

/// A graph of one kernel, some of whose inputs are constants.
fn single(kernel: &Arc<dyn Kernel>, inputs: &[Desc], constants: &[Option<Ref<Tensor>>]) -> Result<Ref<Program>> {
    let mut graph = Graph::new("single");
    let values: Vec<ValueId> = inputs
        .iter()
        .zip(constants)
        .enumerate()
        .map(|(i, (desc, constant))| match constant {
            Some(tensor) => graph.add_constant(&format!("in{i}"), tensor.clone()).unwrap(),
            None => graph.add_input(&format!("in{i}"), *desc).unwrap(),
        })
        .collect();
    let kernel = BoundKernel::create(cpu(), Arc::clone(kernel), &KernelOptions::default()).unwrap();
    let count = kernel.num_outputs();
    let node = graph.add_kernel("x", kernel, &values, count).unwrap();
    (0..count).for_each(|i| graph.add_output(&format!("out{i}"), node.output(i)).unwrap());
    Program::compile(&graph, vec![cpu()], &CompileOptions::default())
}

/// The same without constants.
fn alone(kernel: &Arc<dyn Kernel>, inputs: &[&[i64]]) -> Result<Ref<Program>> {
    let descs: Vec<Desc> = inputs.iter().map(|dims| floats(dims)).collect();
    single(kernel, &descs, &vec![None; inputs.len()])
}

/// Some variables change from run to run, and all that they are in is open; so are a few other dimensions. A run is
/// what a program for its sizes alone gives, or refuses as that is refused when it is compiled.
#[test]
fn any_sizes_give_the_bits_of_known_ones() {
    let parts = std::thread::available_parallelism().map_or(1, |n| n.get());
    let counts: Vec<_> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..parts).map(|part| scope.spawn(move || any_sizes(part, parts))).collect();
        parts.into_iter().map(|part| part.join().unwrap()).collect()
    });
    let ran: usize = counts.iter().map(|counts| counts.0).sum();
    let refused: usize = counts.iter().map(|counts| counts.1).sum();
    println!("{ran} runs, {refused} refusals");
    assert!(ran > refused && refused > 0, "{ran} runs, {refused} refusals");
}

/// The runs and refusals of every `parts`-th case.
fn any_sizes(part: usize, parts: usize) -> (usize, usize) {
    let rounds =
        std::env::var("WEIR_ORACLE_GRAPHS").ok().and_then(|n| n.parse().ok()).map_or(4, |n: u64| n.div_ceil(100));
    let pools = all_pools();
    let (mut ran, mut refused) = (0, 0);
    for (number, case) in cases().iter().enumerate().skip(part).step_by(parts) {
        for seed in 0..rounds {
            let random = &mut Random::new(seed * 1000 + number as u64);
            let size = |random: &mut Random| random.of(&[0, 1, 1, 2, 3, 4, 5, 8, 13, 16, 30]);
            let first: Vec<i64> = (0..4).map(|_| size(random).max(1)).collect();
            let open: Vec<bool> = (0..4).map(|i| random.once_in(2) || i == seed as usize % 4).collect();
            let patterns: Vec<Desc> = case
                .inputs
                .iter()
                .map(|(dtype, dims)| {
                    let dims = dims.iter().map(|dim| match dim.is_among(&open) || random.once_in(8) {
                        true => -1,
                        false => dim.of(&first),
                    });
                    Desc::new(*dtype, &dims.collect::<Vec<_>>())
                })
                .collect();
            let constants: Vec<Option<Ref<Tensor>>> = patterns
                .iter()
                .enumerate()
                .map(|(i, desc)| (i > 0 && desc.is_concrete() && random.once_in(2)).then(|| any(*desc, i as u32)))
                .collect();
            let what = || {
                let texts: Vec<_> = patterns.iter().map(Desc::text).collect();
                format!("case {number}, seed {seed}: {} of {texts:?}", case.kernel.name())
            };
            let program = match single(&case.kernel, &patterns, &constants) {
                Ok(program) => program,
                // Sizes that are known already may be refused.
                Err(error) => {
                    assert!(error.message().starts_with("node 'x' input"), "{}: {error}", what());
                    continue;
                }
            };
            for round in 0..6 {
                let sizes: Vec<i64> = (0..4).map(|i| if open[i] { size(random) } else { first[i] }).collect();
                let known: Vec<Desc> = case
                    .inputs
                    .iter()
                    .map(|(dtype, dims)| Desc::new(*dtype, &dims.iter().map(|dim| dim.of(&sizes)).collect::<Vec<_>>()))
                    .collect();
                let given: Vec<Ref<Tensor>> = known
                    .iter()
                    .zip(&constants)
                    .enumerate()
                    .filter(|(_, (_, constant))| constant.is_none())
                    .map(|(i, (desc, _))| any(*desc, i as u32))
                    .collect();
                let pool = pools[round % pools.len()].as_ref();
                let expected =
                    single(&case.kernel, &known, &constants).and_then(|program| made(&program, &given, None));
                for _ in 0..2 {
                    match (made(&program, &given, pool), &expected) {
                        (Ok(got), Ok(want)) => {
                            let shapes: Vec<_> = got.iter().zip(want).map(|(got, want)| (got.0, want.0)).collect();
                            assert!(got == *want, "{} with {sizes:?}: {shapes:?}", what());
                            ran += 1;
                        }
                        (Err(got), Err(want)) => {
                            let cause = want.message().split_once(": ").map_or(want.message(), |(_, cause)| cause);
                            assert!(got.message().starts_with("node 'x': input "), "{}: {got}", what());
                            assert!(
                                got.message().contains(cause.split(", got").next().unwrap()),
                                "{}: {got} for {want}",
                                what()
                            );
                            assert_eq!(got.code(), want.code());
                            refused += 1;
                        }
                        (got, want) => {
                            panic!("{} with {sizes:?}: {:?} for {:?}", what(), got.err(), want.as_ref().err())
                        }
                    }
                }
            }
        }
    }
    (ran, refused)
}

fn constant(graph: &mut Graph, name: &str, dims: &[i64], seed: u32) -> ValueId {
    graph.add_constant(name, filled(dims, seed)).unwrap()
}

fn shared(graph: &mut Graph, name: &str, kernel: Arc<dyn Kernel>, inputs: &[ValueId]) -> ValueId {
    let kernel = BoundKernel::create(cpu(), kernel, &KernelOptions::default()).unwrap();
    graph.add_kernel(name, kernel, inputs, 1).unwrap().output(0)
}

fn compiled(graph: &Graph) -> Ref<Program> {
    Program::compile(graph, vec![cpu()], &CompileOptions::default()).unwrap()
}

/// Images through two towers that meet, to a number for each class.
fn network(dims: &[i64]) -> Ref<Program> {
    let mut graph = Graph::new("network");
    let g = &mut graph;
    let x = g.add_input("x", floats(dims)).unwrap();
    let (w1, b1) = (constant(g, "w1", &[32, 3, 3, 3], 1), constant(g, "b1", &[32], 2));
    let (w2, b2) = (constant(g, "w2", &[32, 32, 3, 3], 3), constant(g, "b2", &[32], 4));
    let (w3, b3) = (constant(g, "w3", &[8, 32, 1, 1], 5), constant(g, "b3", &[8], 6));
    let (full, classes) = (constant(g, "full", &[40, 7], 7), constant(g, "classes", &[7], 8));
    let same = windows(1, 1, 0);
    let first = shared(g, "conv1", conv(same, 1, true), &[x, w1, b1]);
    let half = shared(g, "pool1", pooling(WEIR_POOLING_MAX, Some([2, 2]), windows(0, 2, 0)), &[first]);
    let wide = shared(g, "conv2", conv(same, 1, true), &[half, w2, b2]);
    let narrow = shared(g, "conv3", conv(windows(0, 1, 0), 1, true), &[half, w3, b3]);
    let both = node(g, "both", Builtin::new(Concat { axis: 1, inputs: 2 }), &[wide, narrow]);
    let margin = shared(g, "margin", pad(4, WEIR_PAD_CONSTANT), &[narrow]);
    let pooled = shared(g, "pool2", pooling(WEIR_POOLING_AVERAGE, None, Windows::default()), &[both]);
    let flat = shared(g, "flat", reshape(&[KEEP, REST]), &[pooled]);
    let layer = weir_core::ops::Matmul { bias: true, ..PLAIN };
    let scores = node(g, "scores", Builtin::new(layer), &[flat, full, classes]);
    let likely = node(g, "likely", softmax(-1), &[scores]);
    let pixels = shared(g, "pixels", reshape(&[KEEP, 8, REST]), &[narrow]);
    for (i, value) in [likely, both, margin, pixels].into_iter().enumerate() {
        graph.add_output(&format!("out{i}"), value).unwrap();
    }
    compiled(&graph)
}

const IMAGES: [[i64; 4]; 9] = [
    [1, 3, 8, 8],
    [2, 3, 30, 26],
    [1, 3, 2, 3],
    [0, 3, 9, 9],
    [3, 3, 25, 40],
    [1, 3, 64, 64],
    [5, 3, 6, 2],
    [1, 3, 31, 31],
    [4, 3, 12, 50],
];

#[test]
fn images_of_any_size_go_through_a_network() {
    let open = network(&[-1, 3, -1, -1]);
    let texts: Vec<String> = open.outputs().iter().map(|port| port.desc.text()).collect();
    assert_eq!(texts, ["f32[?,7]", "f32[?,40,?,?]", "f32[?,11,?,?]", "f32[?,8,?]"]);
    let (batches, pools) = (network(&[-1, 3, 30, 26]), all_pools());
    let inside = {
        let mut graph = Graph::new("outer");
        let x = graph.add_input("x", floats(&[-1, 3, -1, -1])).unwrap();
        let node = graph.add_program("network", &open, &[x], 4).unwrap();
        (0..4).for_each(|i| graph.add_output(&format!("out{i}"), node.output(i)).unwrap());
        compiled(&graph)
    };
    let mut random = Random::new(1);
    let drawn = (0..12).map(|_| [random.below(4) as i64, 3, random.below(39) as i64 + 2, random.below(39) as i64 + 2]);
    for dims in IMAGES.into_iter().chain(drawn.collect::<Vec<_>>()) {
        let x = [filled(&dims, dims[2] as u32)];
        let expected = made(&network(&dims), &x, None).unwrap();
        assert!(made(&inside, &x, pools[3].as_ref()).unwrap() == expected, "{dims:?} inside of another program");
        for (i, pool) in pools.iter().enumerate() {
            for _ in 0..2 {
                assert!(made(&open, &x, pool.as_ref()).unwrap() == expected, "{dims:?}, pool {i}");
            }
        }
        if dims[2..] == [30, 26] {
            assert!(made(&batches, &x, pools[4].as_ref()).unwrap() == expected);
        }
    }
    open.trim();
    let x = [filled(&IMAGES[1], 1)];
    assert!(made(&open, &x, None).unwrap() == made(&network(&IMAGES[1]), &x, None).unwrap());
}

#[test]
fn runs_at_once_have_images_of_their_own() {
    let open = network(&[-1, 3, -1, -1]);
    let x = IMAGES.map(|dims| filled(&dims, 5));
    let expected: Vec<_> =
        IMAGES.iter().zip(&x).map(|(dims, x)| made(&network(dims), std::slice::from_ref(x), None).unwrap()).collect();
    let pool = pools::of(2);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (open, x, expected, pool) = (&open, &x, &expected, &pool);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                for _ in 0..25 {
                    let i = random.below(IMAGES.len());
                    let pool = Some(pool).filter(|_| thread % 2 == 0);
                    assert!(made(open, &x[i..=i], pool).unwrap() == expected[i], "{:?}", IMAGES[i]);
                }
            });
        }
    });
}

/// `less[1] = x[rank] < limit`: how many turns are left, from the run's own sizes, would need a kernel that reads them;
/// a counter does as well.
fn counted(graph: &mut Graph, kernel: Builtin<Binary>, name: &str, left: ValueId, with: i32) -> ValueId {
    let number = Tensor::create(cpu(), Desc::new(dtype::S32, &[1])).unwrap();
    // SAFETY: nobody else has it yet.
    unsafe { number.view().as_bytes_mut().write_integer(with) };
    let number = graph.add_constant(&format!("{name} with"), number).unwrap();
    node(graph, name, kernel, &[left, number])
}

fn turns(count: i32) -> Ref<Tensor> {
    let tensor = Tensor::create(cpu(), Desc::new(dtype::S32, &[1])).unwrap();
    // SAFETY: nobody else has it yet.
    unsafe { tensor.view().as_bytes_mut().write_integer(count) };
    tensor
}

/// A convolution in a loop, over images that shrink with each turn, and behind a choice.
fn looped(dims: &[i64]) -> Ref<Program> {
    let body = |graph: &mut Graph, x: ValueId| {
        let w = constant(graph, "w", &[8, 8, 3, 3], 3);
        shared(graph, "shrink", conv(windows(0, 1, 0), 1, false), &[x, w])
    };
    let open = [dims[0], dims[1], -1, -1];
    let integer = Desc::new(dtype::S32, &[1]);
    let (mut condition, mut turn) = (Graph::new("condition"), Graph::new("turn"));
    condition.add_input("x", floats(&open)).unwrap();
    let left = condition.add_input("left", integer).unwrap();
    let goes_on = counted(&mut condition, binary(WEIR_BINARY_GT), "goes on", left, 0);
    condition.add_output("goes on", goes_on).unwrap();
    let (x, left) = (turn.add_input("x", floats(&open)).unwrap(), turn.add_input("left", integer).unwrap());
    let y = body(&mut turn, x);
    let less = counted(&mut turn, binary(WEIR_BINARY_SUB), "less", left, 1);
    turn.add_output("y", y).unwrap();
    turn.add_output("less", less).unwrap();
    let branch = |name: &str, kernel: &dyn Fn(&mut Graph, ValueId) -> ValueId| {
        let mut graph = Graph::new(name);
        let x = graph.add_input("x", floats(&open)).unwrap();
        let y = kernel(&mut graph, x);
        graph.add_output("y", y).unwrap();
        graph
    };
    let widened = branch("widened", &|graph, x| {
        let w = constant(graph, "w", &[8, 8, 1, 3], 9);
        let wide = Windows { begin: [1, 2], end: [0, 1], ..Windows::default() };
        shared(graph, "widen", conv(wide, 1, false), &[x, w])
    });
    let pooled = branch("pooled", &|graph, x| {
        shared(graph, "pool", pooling(WEIR_POOLING_MAX, Some([2, 2]), windows(0, 2, 0)), &[x])
    });
    let mut graph = Graph::new("looped");
    let (x, count) = (graph.add_input("x", floats(dims)).unwrap(), graph.add_input("turns", integer).unwrap());
    let shrunk = graph.add_while("loop", &condition, &turn, &[x, count], &[], 1).unwrap();
    let chosen = graph.add_cond("chosen", count, &widened, &pooled, &[shrunk.output(0)]).unwrap();
    let flat = shared(&mut graph, "flat", reshape(&[KEEP, REST]), &[chosen.output(0)]);
    graph.add_output("shrunk", shrunk.output(0)).unwrap();
    graph.add_output("flat", flat).unwrap();
    compiled(&graph)
}

/// The same without a loop or a choice, for known sizes.
fn unrolled(dims: &[i64], turns: i32) -> Ref<Program> {
    let mut graph = Graph::new("unrolled");
    let mut x = graph.add_input("x", floats(dims)).unwrap();
    graph.add_input("turns", Desc::new(dtype::S32, &[1])).unwrap();
    let w = constant(&mut graph, "w", &[8, 8, 3, 3], 3);
    for turn in 0..turns {
        x = shared(&mut graph, &format!("shrink{turn}"), conv(windows(0, 1, 0), 1, false), &[x, w]);
    }
    let y = if turns > 0 {
        let w = constant(&mut graph, "wide", &[8, 8, 1, 3], 9);
        let wide = Windows { begin: [1, 2], end: [0, 1], ..Windows::default() };
        shared(&mut graph, "widen", conv(wide, 1, false), &[x, w])
    } else {
        shared(&mut graph, "pool", pooling(WEIR_POOLING_MAX, Some([2, 2]), windows(0, 2, 0)), &[x])
    };
    let flat = shared(&mut graph, "flat", reshape(&[KEEP, REST]), &[y]);
    graph.add_output("shrunk", x).unwrap();
    graph.add_output("flat", flat).unwrap();
    compiled(&graph)
}

#[test]
fn images_shrink_in_a_loop_and_a_choice_pads_or_pools_them() {
    let programs = [looped(&[-1, 8, -1, -1]), looped(&[2, 8, 20, 17])];
    let pools = all_pools();
    for (dims, count) in [
        ([2, 8, 20, 17], 3),
        ([1, 8, 9, 9], 4),
        ([3, 8, 5, 30], 0),
        ([2, 8, 20, 17], 0),
        ([1, 8, 64, 40], 6),
        ([0, 8, 9, 9], 2),
    ] {
        let inputs = [filled(&dims, count as u32), turns(count)];
        let expected = made(&unrolled(&dims, count), &inputs, None).unwrap();
        for (i, pool) in pools.iter().enumerate() {
            for program in &programs[..1 + usize::from(dims == [2, 8, 20, 17])] {
                for _ in 0..2 {
                    assert!(
                        made(program, &inputs, pool.as_ref()).unwrap() == expected,
                        "{dims:?}, {count} turns, pool {i}"
                    );
                }
            }
        }
    }
    // In the fifth turn there is nothing left for a window.
    for pool in &pools {
        let error = made(&programs[0], &[filled(&[1, 8, 9, 30], 1), turns(5)], pool.as_ref()).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains("shrink'"), "{error}");
        let cause = "input 0: dimension 2 of f32[1,8,1,22] with a padding of 0 and 0 is shorter than the 3 elements \
                     of the filters (input 1)";
        assert!(error.message().ends_with(cause), "{error}");
    }
}

/// A step of a recurrent network in a loop: the batch is open.
#[test]
fn a_batch_of_any_size_goes_through_the_steps_of_a_cell() {
    let build = |rows: i64| {
        let integer = Desc::new(dtype::S32, &[1]);
        let (mut condition, mut turn) = (Graph::new("condition"), Graph::new("turn"));
        condition.add_input("h", floats(&[rows, 12])).unwrap();
        condition.add_input("c", floats(&[rows, 12])).unwrap();
        let left = condition.add_input("left", integer).unwrap();
        condition.add_input("x", floats(&[rows, 5])).unwrap();
        let goes_on = counted(&mut condition, binary(WEIR_BINARY_GT), "goes on", left, 0);
        condition.add_output("goes on", goes_on).unwrap();
        let [h, c] = ["h", "c"].map(|name| turn.add_input(name, floats(&[rows, 12])).unwrap());
        let left = turn.add_input("left", integer).unwrap();
        let x = turn.add_input("x", floats(&[rows, 5])).unwrap();
        let (w, r) = (constant(&mut turn, "w", &[48, 5], 1), constant(&mut turn, "r", &[48, 12], 2));
        let lstm = plain(Lstm { order: WEIR_GATES_ONNX, bias: false });
        let lstm = BoundKernel::create(cpu(), lstm, &KernelOptions::default()).unwrap();
        let lstm = turn.add_kernel("lstm", lstm, &[x, h, c, w, r], 2).unwrap();
        let (w, r) = (constant(&mut turn, "w2", &[36, 12], 3), constant(&mut turn, "r2", &[36, 12], 4));
        let gru = plain(Gru { order: WEIR_GATES_TORCH, bias: false, linear_before_reset: false });
        let state = shared(&mut turn, "gru", gru, &[lstm.output(0), h, w, r]);
        let less = counted(&mut turn, binary(WEIR_BINARY_SUB), "less", left, 1);
        for (name, value) in [("h", state), ("c", lstm.output(1)), ("less", less)] {
            turn.add_output(name, value).unwrap();
        }
        let mut graph = Graph::new("steps");
        let x = graph.add_input("x", floats(&[rows, 5])).unwrap();
        let [h, c] = ["h", "c"].map(|name| graph.add_input(name, floats(&[rows, 12])).unwrap());
        let count = graph.add_input("turns", integer).unwrap();
        let steps = graph.add_while("loop", &condition, &turn, &[h, c, count], &[x], 1).unwrap();
        graph.add_output("h", steps.output(0)).unwrap();
        graph.add_output("c", steps.output(1)).unwrap();
        compiled(&graph)
    };
    let open = build(-1);
    let pools = all_pools();
    for (rows, count) in [(3, 4), (1, 9), (40, 2), (0, 2), (7, 0), (33, 3)] {
        let inputs = [filled(&[rows, 5], 1), filled(&[rows, 12], 2), filled(&[rows, 12], 3), turns(count)];
        let expected = made(&build(rows), &inputs, None).unwrap();
        for (i, pool) in pools.iter().enumerate() {
            for _ in 0..2 {
                assert!(made(&open, &inputs, pool.as_ref()).unwrap() == expected, "{rows} rows, pool {i}");
            }
        }
    }
    let inputs = [filled(&[3, 5], 1), filled(&[3, 12], 2), filled(&[4, 12], 3), turns(1)];
    let error = made(&open, &inputs, None).unwrap_err();
    let text = "node 'loop/body/lstm', iteration 0 of 'loop': input 2: expected f32[3,12], got f32[4,12]";
    assert_eq!(error.message(), text);
}

#[test]
fn what_is_known_of_windows_and_movements() {
    let text = |kernel: Arc<dyn Kernel>, inputs: &[&[i64]]| match alone(&kernel, inputs) {
        Ok(program) => program.outputs()[0].desc.text(),
        Err(error) => error.message().to_owned(),
    };
    let same = windows(1, 1, 0);
    let w: &[i64] = &[8, 4, 3, 3];
    assert_eq!(text(conv(same, 1, false), &[&[-1, 4, 9, -1], w]), "f32[?,8,9,?]");
    assert_eq!(text(conv(same, 1, false), &[&[2, -1, 9, 9], w]), "f32[2,8,9,9]");
    assert_eq!(text(conv(same, 1, false), &[&[2, 4, 9, 9], &[-1, -1, -1, 3]]), "f32[2,?,?,9]");
    assert_eq!(text(conv(same, 2, false), &[&[-1, -1, -1, -1], &[-1, 4, 3, 3]]), "f32[?,?,?,?]");
    let refused = "node 'x' input 1: expected f32[?,5,?,?], got f32[8,4,3,3]";
    assert_eq!(text(conv(same, 1, false), &[&[-1, 5, -1, -1], w]), refused);
    let refused = "node 'x' input 0: dimension 3 of f32[?,4,?,2] with a padding of 0 and 0 is shorter than the 3 \
                   elements of the filters (input 1)";
    assert_eq!(text(conv(windows(0, 1, 0), 1, false), &[&[-1, 4, -1, 2], w]), refused);
    let refused = "node 'x' input 0: expected a multiple of 2 channels, got f32[?,3,?,?]";
    assert_eq!(text(conv(same, 2, false), &[&[-1, 3, -1, -1], w]), refused);
    let global = || pooling(WEIR_POOLING_AVERAGE, None, Windows::default());
    assert_eq!(text(global(), &[&[-1, 5, -1, 7]]), "f32[?,5,1,1]");
    assert_eq!(text(pooling(WEIR_POOLING_MAX, Some([2, 2]), windows(0, 2, 0)), &[&[-1, 5, -1, 7]]), "f32[?,5,?,3]");
    let concat = || plain(Concat { axis: 1, inputs: 2 });
    assert_eq!(text(concat(), &[&[-1, 2, 4], &[3, 5, -1]]), "f32[3,7,4]");
    assert_eq!(text(concat(), &[&[-1, -1, 4], &[-1, 5, -1]]), "f32[?,?,4]");
    let refused = "node 'x' input 1: expected f32[?,?,4], got f32[?,5,3]";
    assert_eq!(text(concat(), &[&[-1, -1, 4], &[-1, 5, 3]]), refused);
    assert_eq!(text(pad(2, WEIR_PAD_CONSTANT), &[&[-1, 4]]), "f32[?,7]");
    assert_eq!(text(reshape(&[-1, 6]), &[&[-1, 3]]), "f32[?,6]");
    assert_eq!(text(reshape(&[KEEP, REST]), &[&[-1, 3, 4]]), "f32[?,12]");
    assert_eq!(text(reshape(&[KEEP, KEEP, REST]), &[&[-1, -1, 4, 5]]), "f32[?,?,20]");
    assert_eq!(text(reshape(&[KEEP, 2, REST]), &[&[-1, -1, 3]]), "f32[?,2,?]");
    assert_eq!(text(reshape(&[6, 2]), &[&[-1, 3]]), "f32[6,2]");
    let refused = "node 'x' input 0: expected as many elements as f32[6,2] has, got f32[?,5]";
    assert_eq!(text(reshape(&[6, 2]), &[&[-1, 5]]), refused);
    let refused = "node 'x' input 0: expected as many elements as f32[?,2] has, got f32[?,3]";
    assert_eq!(text(reshape(&[KEEP, 2]), &[&[-1, 3]]), refused);
    let refused = "node 'x' input 0: expected a tensor of rank 3 or more, as desc->dims[2] is one of its, got f32[?,3]";
    assert_eq!(text(reshape(&[1, 1, KEEP]), &[&[-1, 3]]), refused);
    let gru = || plain(Gru { order: WEIR_GATES_ONNX, bias: false, linear_before_reset: false });
    assert_eq!(text(gru(), &[&[-1, 4], &[5, -1], &[6, 4], &[-1, 2]]), "f32[5,2]");
    let refused = "node 'x' input 2: expected f32[6,?], got f32[8,?]";
    assert_eq!(text(gru(), &[&[-1, -1], &[-1, 2], &[8, -1], &[-1, 2]]), refused);
}

#[test]
fn sizes_that_do_not_fit_are_told_by_the_run() {
    let told = |kernel: Arc<dyn Kernel>, open: &[&[i64]], given: &[&[i64]]| {
        let program = alone(&kernel, open).unwrap();
        let inputs: Vec<Ref<Tensor>> = given.iter().map(|dims| filled(dims, 7)).collect();
        let error = made(&program, &inputs, None).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        error.message().to_owned()
    };
    let (same, open4): (_, &[i64]) = (windows(1, 1, 0), &[-1, -1, -1, -1]);
    let text = told(conv(same, 1, false), &[open4, &[8, 4, 3, 3]], &[&[1, 5, 9, 9], &[8, 4, 3, 3]]);
    assert_eq!(text, "node 'x': input 1: expected f32[?,5,?,?], got f32[8,4,3,3]");
    let text = told(conv(same, 1, true), &[open4, open4, &[-1]], &[&[1, 4, 9, 9], &[8, 4, 3, 3], &[7]]);
    assert_eq!(text, "node 'x': input 2: expected f32[8], got f32[7]");
    let text = told(conv(windows(0, 1, 0), 1, false), &[open4, open4], &[&[1, 4, 9, 2], &[8, 4, 3, 3]]);
    assert!(text.starts_with("node 'x': input 0: dimension 3 of f32[1,4,9,2] with a padding of 0"), "{text}");
    let text = told(pooling(WEIR_POOLING_AVERAGE, None, Windows::default()), &[open4], &[&[1, 4, 0, 2]]);
    assert_eq!(text, "node 'x': input 0: expected something to pool in each channel, got f32[1,4,0,2]");
    let text = told(plain(Concat { axis: 1, inputs: 2 }), &[&[-1, -1], &[-1, -1]], &[&[2, 3], &[1, 9]]);
    assert_eq!(text, "node 'x': input 1: expected f32[2,?], got f32[1,9]");
    let text = told(pad(2, WEIR_PAD_REFLECT), &[&[-1, -1]], &[&[1, 9]]);
    assert!(text.starts_with("node 'x': input 0: expected at least 2 elements along axis 0"), "{text}");
    let text = told(reshape(&[-1, 4]), &[&[-1, 3]], &[&[2, 3]]);
    assert_eq!(text, "node 'x': input 0: expected as many elements as f32[?,4] has, got f32[2,3]");
    let text = told(reshape(&[12]), &[&[-1, 3]], &[&[2, 3]]);
    assert_eq!(text, "node 'x': input 0: expected as many elements as f32[12] has, got f32[2,3]");
}

/// Elements of a range as a plain loop has them, on every pool; and as many outputs as runs.
#[test]
fn a_range_is_as_long_as_its_run_says() {
    fn check<T: Copy>(of: u32, runs: &[[T; 3]], at: impl Fn([T; 3], usize) -> Option<T>) {
        let one = Desc::new(of, &[1]);
        let tensor = |value: T| {
            let tensor = Tensor::create(cpu(), one).unwrap();
            // SAFETY: a new tensor of one element of this type.
            unsafe { tensor.data().cast::<T>().write(value) };
            tensor
        };
        let program = single(&plain(Range), &[one; 3], &[const { None }; 3]).unwrap();
        assert_eq!(program.outputs()[0].desc, Desc::new(of, &[-1]));
        for &values in runs {
            let mut want = Vec::new();
            while let Some(value) = at(values, want.len()) {
                want.push(value);
            }
            // SAFETY: numbers.
            let bytes = unsafe { std::slice::from_raw_parts(want.as_ptr().cast::<u8>(), size_of_val(&want[..])) };
            let inputs = values.map(tensor);
            for pool in all_pools() {
                let got = made(&program, &inputs, pool.as_ref()).unwrap();
                assert_eq!(got[0].0, Desc::new(of, &[want.len() as i64]));
                assert!(got[0].1 == bytes, "{}", one.text());
            }
            let folded = single(&plain(Range), &[one; 3], &inputs.map(Some)).unwrap();
            assert!(made(&folded, &[], None).unwrap()[0].1 == bytes, "{} folded", one.text());
        }
    }
    check(F32, &[[0.0, 1.0, 0.1], [1.0, -3.0, -0.25], [5.0, 1.0, 1.0], [0.5, 40_000.0, 1.5]], |[a, b, step], i| {
        let at = a + i as f32 * step;
        (if step > 0.0 { at < b } else { at > b }).then_some(at)
    });
    let most = i32::MAX;
    check(
        dtype::S32,
        &[[0, 10, 3], [7, 7, 1], [-5, -9, -1], [most - 1, most, 5], [0, 50_000, 1]],
        |[a, b, step], i| {
            let at = i64::from(a) + i as i64 * i64::from(step);
            (if step > 0 { at < b.into() } else { at > b.into() }).then_some(at as i32)
        },
    );
    let (least, most) = (i64::MIN, i64::MAX);
    check(dtype::S64, &[[least, most, most / 2], [most, least, least], [0, -3, 2], [9, 0, -4]], |[a, b, step], i| {
        let at = i128::from(a) + i as i128 * i128::from(step);
        (if step > 0 { at < b.into() } else { at > b.into() }).then_some(at as i64)
    });
}
