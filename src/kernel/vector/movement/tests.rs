use super::*;
use crate::base::{Desc, dtype};
use crate::memory::View;

/// Distinct bytes at neighbouring positions.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 151 + i / 251 * 7 + 3) as u8).collect()
}

fn view(bytes: &mut [u8]) -> View {
    // SAFETY: the callers keep the bytes as long as the view.
    unsafe { View::new(bytes.as_mut_ptr(), bytes.len(), Desc::new(dtype::U8, &[bytes.len() as i64])) }
}

/// The result of a copy, by its definition.
fn reference(unit: usize, dims: &[StridedDim], from: isize, to: isize, source: &[u8], out: &mut [u8]) {
    match dims.split_first() {
        None => out[to as usize..][..unit].copy_from_slice(&source[from as usize..][..unit]),
        Some((dim, rest)) => (0..dim.size as isize).for_each(|i| {
            reference(unit, rest, from + i * dim.from, to + i * dim.to, source, out);
        }),
    }
}

/// Copies in pieces of `step` items, and compares with the definition.
fn check(isa: Isa, unit: usize, dims: &[StridedDim], from: isize, to: isize, sizes: (usize, usize), step: usize) {
    let mut source = bytes(sizes.0);
    // Guards reveal a write outside.
    let (mut got, mut want) = (vec![0xEE; sizes.1], vec![0xEE; sizes.1]);
    reference(unit, dims, from, to, &source, &mut want);
    let movement = Movement::with(isa, unit, dims, from, to);
    let (from_view, to_view) = (view(&mut source), view(&mut got));
    // SAFETY: nothing else uses the bytes.
    let moves = unsafe { movement.divide(from_view.as_bytes(), to_view.as_bytes_mut()) };
    for begin in (0..movement.items()).step_by(step) {
        let end = (begin + step).min(movement.items());
        // SAFETY: each item once, one claim at a time.
        unsafe { moves.part(&Claim::new(begin, end, 0)).run() };
    }
    assert!(movement.item_ns() > 0.0);
    assert!(got == want, "{isa:?}, {unit} bytes, {dims:?} from {from} to {to}");
}

/// A dense source with its dimensions in another order, into a dense destination.
fn permuted(unit: usize, shape: &[usize], order: &[usize]) -> Vec<StridedDim> {
    let strides = |shape: &[usize]| {
        let mut strides = vec![unit as isize; shape.len()];
        (0..shape.len().saturating_sub(1)).rev().for_each(|i| strides[i] = strides[i + 1] * shape[i + 1] as isize);
        strides
    };
    let from = strides(shape);
    let out: Vec<_> = order.iter().map(|&i| shape[i]).collect();
    let to = strides(&out);
    order.iter().enumerate().map(|(at, &i)| StridedDim { size: out[at], from: from[i], to: to[at] }).collect()
}

#[test]
fn planes_of_every_size_are_transposed_on_every_level() {
    let sides = [1, 2, 3, 4, 7, 9, 16, 17, 33, 63, 65, 130];
    for isa in Isa::levels() {
        for unit in [1, 2, 4, 8, 16] {
            for rows in sides {
                for columns in sides {
                    let bytes = rows * columns * unit;
                    check(isa, unit, &permuted(unit, &[rows, columns], &[1, 0]), 0, 0, (bytes, bytes), 3);
                }
            }
        }
    }
}

#[test]
fn thin_planes_are_transposed_in_long_tiles() {
    for isa in Isa::levels() {
        for unit in [1, 2, 4, 8] {
            for thin in 1..=6 {
                for long in [15, 31, 63, 100, 257, 3001] {
                    for (rows, columns) in [(thin, long), (long, thin)] {
                        let bytes = 2 * rows * columns * unit;
                        check(isa, unit, &permuted(unit, &[2, rows, columns], &[0, 2, 1]), 0, 0, (bytes, bytes), 1);
                    }
                    // Rows that are not dense.
                    let (pitch, unit) = ((thin * unit + 5) as isize, unit as isize);
                    let dims = [
                        StridedDim { size: thin, from: unit, to: long as isize * unit + 3 },
                        StridedDim { size: long, from: pitch, to: unit },
                    ];
                    let (from, to) = (long * pitch as usize, thin * (long * unit as usize + 3));
                    check(isa, unit as usize, &dims, 0, 0, (from, to), 1);
                }
            }
        }
    }
}

#[test]
fn runs_come_into_their_rows() {
    for run in (1..40).chain([100]) {
        let from = bytes(7 * run);
        let mut to = vec![0xEE; 7 * (run + 9) + 4];
        scatter_runs(&from, run, &mut to, run + 9, 4);
        for (i, row) in to.chunks(run + 9).take(7).enumerate() {
            assert!(row[4..][..run] == from[i * run..][..run], "{run}");
            assert!(row[..4].iter().chain(&row[4 + run..]).all(|&byte| byte == 0xEE), "{run}");
        }
    }
}

#[test]
fn dimensions_in_any_order() {
    let orders: &[&[usize]] =
        &[&[0, 1, 2, 3], &[3, 2, 1, 0], &[0, 2, 1, 3], &[0, 3, 1, 2], &[1, 0, 3, 2], &[2, 3, 0, 1], &[0, 1, 3, 2]];
    for isa in Isa::levels() {
        for unit in [1, 2, 4, 12] {
            for shape in [[2, 3, 5, 7], [3, 20, 1, 66], [1, 17, 33, 4], [2, 70, 3, 3], [2, 0, 3, 4]] {
                for order in orders {
                    let bytes = shape.iter().product::<usize>() * unit;
                    check(isa, unit, &permuted(unit, &shape, order), 0, 0, (bytes, bytes), 2);
                }
            }
        }
    }
}

#[test]
fn steps_and_offsets() {
    let dims = |all: &[(usize, isize, isize)]| -> Vec<StridedDim> {
        all.iter().map(|&(size, from, to)| StridedDim { size, from, to }).collect()
    };
    for isa in Isa::levels() {
        // Every third element of a line, backwards; and lines of a larger plane, in another one.
        check(isa, 4, &dims(&[(10, -12, 4)]), 116, 8, (120, 60), 1);
        check(isa, 4, &dims(&[(5, 80, 60), (7, 8, 4)]), 4, 12, (400, 400), 1);
        check(isa, 1, &dims(&[(5, -80, 75), (70, 1, 1)]), 320, 12, (400, 400), 2);
        check(isa, 2, &dims(&[(30, 2, 200), (40, -60, 2)]), 2340, 50, (2400, 6100), 1);
        check(isa, 40_000, &dims(&[(2, -40_000, 50_000)]), 40_000, 7, (80_000, 100_000), 3);
        check(isa, 24, &dims(&[(3000, 48, 24)]), 24, 0, (144_000, 72_000), 7);
        check(isa, 4, &[], 4, 4, (8, 8), 1);
    }
}

#[test]
fn runs_of_every_length() {
    for bytes in 1..=200 {
        check(Isa::best(), bytes, &[StridedDim { size: 3, from: 201, to: 203 }], 0, 0, (700, 700), 1);
    }
}

#[test]
fn consecutive_elements_are_one() {
    let movement = Movement::new(4, &permuted(4, &[2, 3, 4], &[0, 1, 2]), 0, 0);
    assert_eq!((movement.unit, movement.rank, movement.items), (96, 0, 1));
    let movement = Movement::new(4, &permuted(4, &[2, 100, 4, 8], &[0, 2, 1, 3]), 0, 0);
    assert_eq!((movement.unit, movement.rank), (32, 2));
}

#[test]
#[should_panic(expected = "a step of 4 in the destination after 8 bytes")]
fn places_of_the_destination_are_distinct() {
    Movement::new(4, &[StridedDim { size: 2, from: 8, to: 4 }, StridedDim { size: 2, from: 4, to: 4 }], 0, 0);
}

#[test]
#[should_panic(expected = "from 12 to 16 bytes")]
fn what_is_outside_is_not_read() {
    check(Isa::best(), 4, &[StridedDim { size: 4, from: 4, to: 4 }], 0, 0, (16, 16), 1);
    let (mut source, mut out) = (vec![0; 12], vec![0; 16]);
    let movement = Movement::new(4, &[StridedDim { size: 4, from: 4, to: 4 }], 0, 0);
    let (from, to) = (view(&mut source), view(&mut out));
    // SAFETY: nothing else uses the bytes.
    unsafe { movement.divide(from.as_bytes(), to.as_bytes_mut()) };
}
