//! Gather and scatter of elements and blocks, and one-hot encoding, against their definitions.
#![forbid(unsafe_code)]

use super::fixture::{Any, check_pools, run, run_on};
use crate::base::{Code, Desc, dtype};
use crate::kernel::Kernel;
use crate::kernel::builtin::Builtin;
use crate::kernel::builtin::fixture::refusal;
use crate::kernel::builtin::fixture_elements::{self as typed, TypedTensor};
use crate::ops::{
    GatherElements, GatherNd, OneHot, Scatter, weir_scatter_mode_value as Mode,
    weir_scatter_reduction_value as Reduction,
};

const TYPES: [u32; 8] = typed::ALL;

fn s64(dims: &[i64], values: &[i64]) -> Any {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    Any::new(Desc::new(dtype::S64, dims), &bytes)
}

/// Indices of both types.
fn indices(dims: &[i64], values: &[i64]) -> [Any; 2] {
    [s64(dims, values), Any::s32(dims, &values.iter().map(|&index| index as i32).collect::<Vec<_>>())]
}

/// Numbers below `size`, or from -size on.
fn draw(count: usize, size: i64, from_end: bool, seed: u64) -> Vec<i64> {
    let noise = typed::noise(count, seed, size as f64 * 0.999);
    noise.iter().map(|x| if from_end { x.floor() as i64 } else { x.abs().floor() as i64 }).collect()
}

fn coordinates(dims: &[i64], mut number: usize) -> Vec<usize> {
    let mut all = vec![0; dims.len()];
    for (at, &dim) in all.iter_mut().zip(dims).rev() {
        (*at, number) = (number % dim as usize, number / dim as usize);
    }
    all
}

fn number(dims: &[i64], coordinates: &[usize]) -> usize {
    dims.iter().zip(coordinates).fold(0, |number, (&dim, &at)| number * dim as usize + at)
}

fn count(dims: &[i64]) -> usize {
    dims.iter().product::<i64>() as usize
}

/// The element of x that an index along an axis, at an element of the indices, means.
fn place(x: &[i64], at: &[i64], element: usize, axis: usize, index: i64) -> usize {
    let mut place = coordinates(at, element);
    place[axis] = index.rem_euclid(x[axis]) as usize;
    number(x, &place)
}

const ELEMENTS: [(&[i64], &[i64], usize); 6] = [
    (&[7], &[20], 0),
    (&[3, 4], &[2, 9], 1),
    (&[3, 4], &[9, 3], 0),
    (&[2, 5, 3, 4], &[2, 1, 8, 3], 2),
    (&[2, 1, 2, 1, 2, 3, 1, 2], &[2, 1, 1, 1, 2, 40, 1, 2], 5),
    (&[40, 1000], &[40, 500], 1),
];

#[test]
fn gather_elements_takes_each_by_its_index() {
    for (dims, at, axis) in ELEMENTS {
        for from_end in [false, true] {
            let places = draw(count(at), dims[axis], from_end, 3);
            for of in TYPES {
                let x = Any::filled(of, dims, 1);
                let (size, bytes) = (dtype::size(of).unwrap(), x.bytes());
                let elements = (0..count(at)).map(|i| place(dims, at, i, axis, places[i]));
                let want: Vec<u8> = elements.flat_map(|from| bytes[from * size..][..size].to_vec()).collect();
                let kernel = Builtin::new(GatherElements { axis: axis as i32 - dims.len() as i32, from_end });
                for indices in indices(at, &places) {
                    let inputs = [x.clone(), indices];
                    let y = run(&kernel, &inputs);
                    assert_eq!(y.desc, Desc::new(of, at));
                    assert!(y.bytes() == want, "{dims:?} at {at:?}");
                    check_pools(&kernel, &inputs);
                }
            }
        }
    }
}

/// Table, indices without the last dimension, their last dimension, dimensions of the batch.
const PLACES: [(&[i64], &[i64], usize, usize); 8] = [
    (&[5], &[3], 1, 0),
    (&[], &[3], 0, 0),
    (&[3, 4], &[], 2, 0),
    (&[3, 4, 2], &[2, 3], 1, 0),
    (&[3, 4, 2], &[3, 5], 1, 1),
    (&[2, 3, 4, 5], &[2, 3, 7], 2, 2),
    (&[2, 1, 2, 1, 2, 1, 3, 2], &[2, 9], 6, 0),
    (&[50, 300], &[400], 1, 0),
];

/// Indices of each tuple.
fn tuples(table: &[i64], rows: &[i64], depth: usize, batch: usize, from_end: bool) -> Vec<i64> {
    let all = draw(count(rows) * depth, 1 << 20, from_end, 5);
    let sized = |(i, index): (usize, &i64)| {
        let size = table[batch + i % depth];
        if from_end { index.rem_euclid(2 * size) - size } else { index.rem_euclid(size) }
    };
    all.iter().enumerate().map(sized).collect()
}

#[test]
fn gather_nd_takes_blocks_by_their_places() {
    for (table, rows, depth, batch) in PLACES {
        for from_end in [false, true] {
            let places = tuples(table, rows, depth, batch, from_end);
            let at: Vec<i64> = rows.iter().copied().chain([depth as i64]).collect();
            let block = &table[batch + depth..];
            let shape: Vec<i64> = rows.iter().chain(block).copied().collect();
            for of in TYPES {
                let x = Any::filled(of, table, 1);
                let (size, bytes) = (dtype::size(of).unwrap(), x.bytes());
                let mut want = Vec::new();
                for i in 0..count(rows) {
                    let mut from = coordinates(rows, i)[..batch].to_vec();
                    for k in 0..depth {
                        from.push(places[i * depth + k].rem_euclid(table[batch + k]) as usize);
                    }
                    let first = number(&table[..batch + depth], &from) * count(block) * size;
                    want.extend_from_slice(&bytes[first..][..count(block) * size]);
                }
                let kernel = Builtin::new(GatherNd { batch_dims: batch, from_end });
                for indices in indices(&at, &places) {
                    let inputs = [x.clone(), indices];
                    let y = run(&kernel, &inputs);
                    assert_eq!(y.desc, Desc::new(of, &shape));
                    assert!(y.bytes() == want, "{table:?} at {at:?}");
                    check_pools(&kernel, &inputs);
                }
            }
        }
    }
}

fn scatter(mode: Mode, reduction: Reduction, axis: i32, from_end: bool) -> Builtin<Scatter> {
    Builtin::new(Scatter { mode, reduction, axis, from_end })
}

const REDUCTIONS: [Reduction; 5] = [
    Reduction::WEIR_SCATTER_NONE,
    Reduction::WEIR_SCATTER_ADD,
    Reduction::WEIR_SCATTER_MUL,
    Reduction::WEIR_SCATTER_MIN,
    Reduction::WEIR_SCATTER_MAX,
];

/// An element after its update, rounded to its type.
fn updated(reduction: Reduction, of: u32, x: f64, update: f64) -> f64 {
    let y = match reduction {
        Reduction::WEIR_SCATTER_NONE => update,
        Reduction::WEIR_SCATTER_ADD => x + update,
        Reduction::WEIR_SCATTER_MUL => x * update,
        _ if x.is_nan() || update.is_nan() => f64::NAN,
        Reduction::WEIR_SCATTER_MIN => x.min(update),
        Reduction::WEIR_SCATTER_MAX => x.max(update),
    };
    let modulus = |bits: u32, signed: bool| {
        let (size, low) = (2f64.powi(bits as i32), if signed { -2f64.powi(bits as i32 - 1) } else { 0.0 });
        (y - low).rem_euclid(size) + low
    };
    match of {
        dtype::S8 => modulus(8, true),
        dtype::U8 => modulus(8, false),
        _ => TypedTensor::rounded(of, y),
    }
}

/// Compares a scatter with updates of `unit` elements one after the other, `targets` of them.
fn check_scatter(
    kernel: &Builtin<Scatter>,
    of: u32,
    shapes: [&[i64]; 2],
    places: &Any,
    targets: &[usize],
    unit: usize,
) {
    let [dims, shape] = shapes;
    let tensor = |dims: &[i64], seed| {
        let values = typed::noise(count(dims), seed, 3.0).into_iter();
        let whole = |x: f64| if of == dtype::U8 || of == dtype::BOOL { x.abs().round() } else { x.round() };
        let is_float = [dtype::F32, dtype::F16, dtype::BF16].contains(&of);
        TypedTensor::new(of, dims, &values.map(|x| if is_float { x } else { whole(x) }).collect::<Vec<_>>())
    };
    let (x, updates) = (tensor(dims, 1), tensor(shape, 2));
    let bytes = places.bytes();
    let indices = match places.desc.dtype {
        dtype::S32 => bytes.chunks(4).map(|b| i32::from_ne_bytes(b.try_into().unwrap()).into()).collect::<Vec<f64>>(),
        _ => bytes.chunks(8).map(|b| i64::from_ne_bytes(b.try_into().unwrap()) as f64).collect(),
    };
    let indices = TypedTensor::new(places.desc.dtype, places.desc.shape(), &indices);
    let (mut want, from) = (x.values(), updates.values());
    for (number, &target) in targets.iter().enumerate() {
        for i in 0..unit {
            let y = &mut want[target * unit + i];
            *y = updated(kernel.reduction, of, *y, from[number * unit + i]);
        }
    }
    let inputs = [&x, &indices, &updates];
    let y = typed::run(kernel, &inputs);
    for (i, (y, want)) in y.values().iter().zip(&want).enumerate() {
        assert!(y == want || y.is_nan() && want.is_nan(), "{:?} of {of} in {dims:?}, {i}: {y} for {want}", **kernel);
    }
    typed::check_pools(kernel, &inputs);
}

#[test]
fn scatter_applies_updates_of_elements_in_their_order() {
    for (dims, at, axis) in ELEMENTS {
        for (from_end, reduction) in [false, true].into_iter().flat_map(|end| REDUCTIONS.map(|of| (end, of))) {
            let places = draw(count(at), dims[axis], from_end, 3);
            let targets: Vec<usize> = (0..count(at)).map(|i| place(dims, at, i, axis, places[i])).collect();
            let kernel = scatter(Mode::WEIR_SCATTER_ELEMENTS, reduction, axis as i32, from_end);
            for of in TYPES {
                if of == dtype::BOOL && reduction != Reduction::WEIR_SCATTER_NONE {
                    continue;
                }
                let [wide, narrow] = indices(at, &places);
                check_scatter(&kernel, of, [dims, at], if from_end { &wide } else { &narrow }, &targets, 1);
            }
        }
    }
}

#[test]
fn scatter_applies_updates_of_blocks_in_their_order() {
    for (dims, rows, depth, batch) in PLACES {
        if batch > 0 {
            continue;
        }
        for (from_end, reduction) in [false, true].into_iter().flat_map(|end| REDUCTIONS.map(|of| (end, of))) {
            let places = tuples(dims, rows, depth, 0, from_end);
            let tuple = |i: usize| (0..depth).map(move |k| (i * depth + k, k));
            let target = |i| {
                let place: Vec<usize> = tuple(i).map(|(at, k)| places[at].rem_euclid(dims[k]) as usize).collect();
                number(&dims[..depth], &place)
            };
            let targets: Vec<usize> = (0..count(rows)).map(target).collect();
            let at: Vec<i64> = rows.iter().copied().chain([depth as i64]).collect();
            let shape: Vec<i64> = rows.iter().chain(&dims[depth..]).copied().collect();
            let kernel = scatter(Mode::WEIR_SCATTER_ND, reduction, 0, from_end);
            for of in TYPES {
                if of == dtype::BOOL && reduction != Reduction::WEIR_SCATTER_NONE {
                    continue;
                }
                let [wide, narrow] = indices(&at, &places);
                let places = if from_end { &wide } else { &narrow };
                check_scatter(&kernel, of, [dims, &shape], places, &targets, count(&dims[depth..]));
            }
        }
    }
}

#[test]
fn a_nan_stays_through_a_minimum_and_a_maximum() {
    for reduction in [Reduction::WEIR_SCATTER_MIN, Reduction::WEIR_SCATTER_MAX] {
        let x = Any::f32(&[3], &[f32::NAN, 1.0, 2.0]);
        let updates = Any::f32(&[4], &[1.0, f32::NAN, 0.0, 3.0]);
        let kernel = scatter(Mode::WEIR_SCATTER_ELEMENTS, reduction, 0, false);
        let y = run(&kernel, &[x, Any::s32(&[4], &[0, 1, 1, 2]), updates]).floats();
        assert!(y[0].is_nan() && y[1].is_nan());
        assert_eq!(y[2], if reduction == Reduction::WEIR_SCATTER_MIN { 2.0 } else { 3.0 });
    }
}

#[test]
fn an_index_outside_is_named_and_nothing_is_written() {
    let elements = Builtin::new(GatherElements { axis: 1, from_end: false });
    let places = Builtin::new(GatherNd { batch_dims: 0, from_end: true });
    let updates = scatter(Mode::WEIR_SCATTER_ND, Reduction::WEIR_SCATTER_ADD, 0, true);
    let x = Any::f32(&[2, 3], &[0.0; 6]);
    let two = Any::f32(&[2], &[0.0; 2]);
    let cases: [(&dyn Kernel, Vec<Any>, &str); 4] = [
        (
            &elements,
            vec![x.clone(), Any::s32(&[2, 2], &[0, 2, 1, -1])],
            "input 1: element 3 is -1, expected an index from 0 to 2 along axis 1 of input 0, f32[2,3]",
        ),
        (
            &places,
            vec![x.clone(), s64(&[2, 2], &[-2, -3, 1, 3])],
            "input 1: element 3 is 3, expected an index from -3 to 2 along axis 1 of input 0, f32[2,3]",
        ),
        (
            &updates,
            vec![x, s64(&[2, 2], &[1, 2, -3, 0]), two],
            "input 1: element 2 is -3, expected an index from -2 to 1 along axis 0 of input 0, f32[2,3]",
        ),
        (
            &elements,
            vec![Any::f32(&[2, 0], &[]), Any::s32(&[1, 1], &[0])],
            "input 1: element 0 is 0, expected an index from 0 to -1 along axis 1 of input 0, f32[2,0]",
        ),
    ];
    for (kernel, inputs, text) in cases {
        let error = run_on(kernel, &inputs, None).unwrap_err();
        assert_eq!((error.code(), error.message()), (Code::OutOfRange, text));
    }
}

#[test]
fn nothing_is_moved_by_no_indices() {
    let x = Any::f32(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let none = Any::s32(&[0, 3], &[]);
    assert!(
        run(&Builtin::new(GatherElements { axis: 0, from_end: false }), &[x.clone(), none.clone()]).bytes().is_empty()
    );
    let kernel = scatter(Mode::WEIR_SCATTER_ELEMENTS, Reduction::WEIR_SCATTER_MUL, 0, false);
    assert_eq!(run(&kernel, &[x.clone(), none, Any::f32(&[0, 3], &[])]).bytes(), x.bytes());
    let kernel = scatter(Mode::WEIR_SCATTER_ND, Reduction::WEIR_SCATTER_NONE, 0, false);
    assert_eq!(run(&kernel, &[x.clone(), Any::s32(&[0, 1], &[]), Any::f32(&[0, 3], &[])]).bytes(), x.bytes());
    // A tuple of no indices is the place of all.
    let all = Any::f32(&[1, 2, 3], &[6.0; 6]);
    assert_eq!(run(&kernel, &[x, Any::s32(&[1, 0], &[]), all.clone()]).bytes(), all.bytes());
}

#[test]
fn one_hot_sets_one_element_of_each_row() {
    for (dims, axis, depth) in [
        (&[][..], 0, 5i64),
        (&[7], -1, 4),
        (&[7], 0, 4),
        (&[2, 3, 50], 2, 30),
        (&[300], -1, 200),
        (&[2, 0], 1, 3),
        (&[3], 1, 0),
        (&[1, 2, 1, 2, 1, 2, 3], 3, 2),
    ] {
        for (from_end, of) in [(false, dtype::F32), (true, dtype::BOOL), (true, dtype::F16), (false, dtype::S64)] {
            let values = Any::filled(of, &[2], 9);
            let places = draw(count(dims), depth + 2, true, 13);
            let kernel = Builtin::new(OneHot { axis, depth, from_end });
            let at = if axis < 0 { dims.len() } else { axis as usize };
            let mut shape = dims.to_vec();
            shape.insert(at, depth);
            let (size, pair) = (dtype::size(of).unwrap(), values.bytes());
            let mut want = Vec::new();
            for i in 0..count(&shape) {
                let mut from = coordinates(&shape, i);
                let row = from.remove(at) as i64;
                let index = places[number(dims, &from)];
                let index = if index < 0 && from_end { index + depth } else { index };
                want.extend_from_slice(&pair[if index == row { size } else { 0 }..][..size]);
            }
            for indices in indices(dims, &places) {
                let inputs = [indices, values.clone()];
                let y = run(&kernel, &inputs);
                assert_eq!(y.desc, Desc::new(of, &shape));
                assert!(y.bytes() == want, "{dims:?} {axis} {depth}");
                check_pools(&kernel, &inputs);
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let of = |of, dims: &[i64]| Desc::new(of, dims);
    let (x, f32, s32) = (of(dtype::F32, &[2, 3]), dtype::F32, dtype::S32);
    let elements = Builtin::new(GatherElements { axis: 1, from_end: false });
    let text = "input 1: expected a shape that lies within f32[2,3], but for axis 1, got s32[3,1]";
    assert_eq!(refusal(&elements, &[x, of(s32, &[3, 1])]), text);
    assert_eq!(refusal(&elements, &[x, of(f32, &[2, 1])]), "input 1: expected s32 or s64 elements, got f32[2,1]");
    let places = Builtin::new(GatherNd { batch_dims: 1, from_end: false });
    let text = "input 1: expected the first 1 dimensions of f32[2,3], got s32[3,1]";
    assert_eq!(refusal(&places, &[x, of(s32, &[3, 1])]), text);
    let text = "input 1: expected a shape of rank 2 or more whose last dimension is 0 to 1, got s32[2,2]";
    assert_eq!(refusal(&places, &[x, of(s32, &[2, 2])]), text);
    let text = "input 1: expected a shape of rank 2 or more whose last dimension is fixed, 0 to 1, got s32[2,?]";
    assert_eq!(refusal(&places, &[x, of(s32, &[2, -1])]), text);
    assert_eq!(
        refusal(&places, &[of(f32, &[]), of(s32, &[2, 2])]),
        "input 0: expected a tensor of rank 1 or more, got f32[]"
    );
    let by_places = scatter(Mode::WEIR_SCATTER_ND, Reduction::WEIR_SCATTER_NONE, 0, false);
    let text = "input 2: expected f32[4,3], got f32[4]";
    assert_eq!(refusal(&by_places, &[x, of(s32, &[4, 1]), of(f32, &[4])]), text);
    let text = "input 2: expected f32 elements, as input 0 has, got s32[4,3]";
    assert_eq!(refusal(&by_places, &[x, of(s32, &[4, 1]), of(s32, &[4, 3])]), text);
    let sum = scatter(Mode::WEIR_SCATTER_ELEMENTS, Reduction::WEIR_SCATTER_ADD, 0, false);
    let bools = of(dtype::BOOL, &[2, 3]);
    let text = "input 0: expected elements that are numbers, for a reduction, got bool[2,3]";
    assert_eq!(refusal(&sum, &[bools, of(s32, &[2, 3]), bools]), text);
    let one_hot = Builtin::new(OneHot { axis: 2, depth: 3, from_end: false });
    let text = "input 0: expected a shape that may have a new axis 2, got s32[4]";
    assert_eq!(refusal(&one_hot, &[of(s32, &[4]), of(f32, &[2])]), text);
    assert_eq!(refusal(&one_hot, &[of(s32, &[4]), of(f32, &[3])]), "input 1: expected f32[2], got f32[3]");
}
