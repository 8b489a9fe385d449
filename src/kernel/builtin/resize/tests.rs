use super::*;
use crate::kernel::builtin::fixture::refusal;
use crate::kernel::builtin::fixture_elements::{self as typed, TypedTensor, random};
use crate::ops::{Operator, weir_resize_desc};

fn desc(mode: Mode, sizes: [i64; 2], scales: [f64; 2]) -> weir_resize_desc {
    let (coordinates, rounding) = (0, 0);
    weir_resize_desc { struct_size: 0, flags: 0, mode: mode as u32, coordinates, rounding, cubic: 0.0, sizes, scales }
}

fn kernel(mut desc: weir_resize_desc) -> Builtin<Resize> {
    Builtin::new(Resize::new(&mut desc, None).unwrap())
}

fn row(mut of: weir_resize_desc, size: i64, x: &[f64]) -> Vec<f64> {
    of.sizes[1] = size;
    let y = typed::run(&kernel(of), &[&TypedTensor::new(dtype::F32, &[x.len() as i64], x)]);
    assert_eq!(y.desc.shape(), [size]);
    y.values()
}

#[test]
fn coordinates_are_those_of_onnx() {
    let x = [10.0, 20.0, 30.0, 40.0];
    let with = |coordinates: Coordinates, size| {
        row(
            weir_resize_desc { coordinates: coordinates as u32, ..desc(Mode::WEIR_RESIZE_LINEAR, [0; 2], [0.0; 2]) },
            size,
            &x,
        )
    };
    assert_eq!(with(Coordinates::WEIR_RESIZE_HALF_PIXEL, 8), [10.0, 12.5, 17.5, 22.5, 27.5, 32.5, 37.5, 40.0]);
    assert_eq!(with(Coordinates::WEIR_RESIZE_ALIGN_CORNERS, 7), [10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0]);
    assert_eq!(with(Coordinates::WEIR_RESIZE_ASYMMETRIC, 8), [10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 40.0]);
    assert_eq!(with(Coordinates::WEIR_RESIZE_HALF_PIXEL, 1), [25.0]);
    assert_eq!(with(Coordinates::WEIR_RESIZE_PYTORCH_HALF_PIXEL, 1), [10.0]);
    assert_eq!(with(Coordinates::WEIR_RESIZE_ALIGN_CORNERS, 1), [10.0]);
    // The output of 3 by the scale 0.7 covers more than x, so it begins in front of it.
    let mut of = desc(Mode::WEIR_RESIZE_LINEAR, [0, 3], [0.0, 0.7]);
    of.coordinates = Coordinates::WEIR_RESIZE_HALF_PIXEL_SYMMETRIC as u32;
    let y = row(of, 3, &x);
    let places: Vec<f64> = (0..3).map(|i| 2.0 - 3.0 / 1.4 + (f64::from(i) + 0.5) / 0.7 - 0.5).collect();
    for (y, place) in y.iter().zip(places) {
        assert!((y - (10.0 + 10.0 * place.clamp(0.0, 3.0))).abs() < 1e-4, "{y} at {place}");
    }
}

#[test]
fn the_nearest_element_is_chosen_as_the_rounding_says() {
    let with = |rounding: Rounding, size| {
        let of = weir_resize_desc { rounding: rounding as u32, ..desc(Mode::WEIR_RESIZE_NEAREST, [0; 2], [0.0; 2]) };
        row(of, size, &[0.0, 1.0, 2.0, 3.0])
    };
    // Places 0.5 and 2.5; -0.25, 0.25, 0.75 and so on.
    assert_eq!(with(Rounding::WEIR_RESIZE_PREFER_FLOOR, 2), [0.0, 2.0]);
    assert_eq!(with(Rounding::WEIR_RESIZE_PREFER_CEIL, 2), [1.0, 3.0]);
    assert_eq!(with(Rounding::WEIR_RESIZE_FLOOR, 8), [0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0]);
    assert_eq!(with(Rounding::WEIR_RESIZE_CEIL, 8), [0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0]);
    assert_eq!(with(Rounding::WEIR_RESIZE_PREFER_FLOOR, 8), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
}

/// The place of result i is a fraction, which is rounded exactly.
#[test]
fn places_from_the_middle_are_exact() {
    const SYMMETRIC: u32 = Coordinates::WEIR_RESIZE_HALF_PIXEL_SYMMETRIC as u32;
    let ties = |rounding: Rounding, scale: f64, len: i64| {
        let of = desc(Mode::WEIR_RESIZE_NEAREST, [0; 2], [0.0, scale]);
        let of = weir_resize_desc { rounding: rounding as u32, coordinates: SYMMETRIC, ..of };
        let x: Vec<f64> = (0..len).map(|x| x as f64).collect();
        row(of, (len as f64 * scale) as i64, &x)
    };
    assert_eq!(ties(Rounding::WEIR_RESIZE_CEIL, 1.5, 3), [0.0, 1.0, 2.0, 2.0]);
    assert_eq!(ties(Rounding::WEIR_RESIZE_FLOOR, 1.5, 5), [0.0, 0.0, 1.0, 2.0, 2.0, 3.0, 4.0]);
    for (len, eighths) in (1..24).flat_map(|len| (1..40).map(move |eighths| (len, eighths))) {
        let size = len * eighths / 8;
        // Places times 2 * eighths.
        let place = |i: i64| (2 * i + 1 - size) * 8 + (len - 1) * eighths;
        let (floor, unit) = (|x: i64, by: i64| x.div_euclid(by), 2 * eighths);
        let ceil = |x: i64, by: i64| -floor(-x, by);
        let each = |rounded: &dyn Fn(i64) -> i64| -> Vec<f64> {
            (0..size).map(|i| rounded(place(i)).clamp(0, len - 1) as f64).collect()
        };
        let got = |rounding| if size == 0 { vec![] } else { ties(rounding, eighths as f64 / 8.0, len) };
        assert_eq!(got(Rounding::WEIR_RESIZE_FLOOR), each(&|x| floor(x, unit)), "{len} by {eighths} / 8");
        assert_eq!(got(Rounding::WEIR_RESIZE_CEIL), each(&|x| ceil(x, unit)), "{len} by {eighths} / 8");
        assert_eq!(got(Rounding::WEIR_RESIZE_PREFER_CEIL), each(&|x| floor(x + eighths, unit)), "{len}, {eighths}");
        assert_eq!(got(Rounding::WEIR_RESIZE_PREFER_FLOOR), each(&|x| ceil(x - eighths, unit)), "{len}, {eighths}");
    }
}

/// Wide enough for several pieces of columns, of each element size.
#[test]
fn factors_of_whole_numbers_repeat_elements() {
    for of in typed::ALL {
        let x = TypedTensor::new(of, &[2, 3, 5, 201], &typed::noise(6 * 5 * 201, 7, 100.0).map_whole());
        for (down, across) in [(2, 2), (1, 2), (2, 1), (3, 3), (1, 1), (4, 2)] {
            let kernel = kernel(desc(Mode::WEIR_RESIZE_NEAREST, [0; 2], [f64::from(down), f64::from(across)]));
            let (x_values, y) = (x.values(), typed::run(&kernel, &[&x]));
            let (height, width) = (5 * down as usize, 201 * across as usize);
            assert_eq!(y.desc.shape(), [2, 3, height as i64, width as i64]);
            for (i, &y) in y.values().iter().enumerate() {
                let (plane, row, column) = (i / width / height, i / width % height, i % width);
                let from = (plane * 5 + row / down as usize) * 201 + column / across as usize;
                assert_eq!(y, x_values[from], "{down} {across}: {i}");
            }
            typed::check_pools(&kernel, &[&x]);
        }
    }
}

trait Rounded {
    fn map_whole(self) -> Vec<f64>;
}

impl Rounded for Vec<f64> {
    fn map_whole(self) -> Vec<f64> {
        self.into_iter().map(|x| x.abs().floor()).collect()
    }
}

/// The weight of an element at this distance, by the definition of the cubic convolution.
fn keys(distance: f64) -> f64 {
    let (d, a) = (distance.abs(), -0.75);
    match d {
        ..=1.0 => ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0,
        ..2.0 => ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a,
        _ => 0.0,
    }
}

#[test]
fn interpolation_is_a_sum_over_all_elements_by_their_distance() {
    for (mode, weight, reach) in [
        (Mode::WEIR_RESIZE_LINEAR, (|d: f64| (1.0 - d.abs()).max(0.0)) as fn(f64) -> f64, 1),
        (Mode::WEIR_RESIZE_CUBIC, keys, 2),
    ] {
        for (dims, sizes) in [([2, 9, 11], [14i64, 300]), ([3, 20, 190], [7, 60]), ([1, 1, 5], [3, 140])] {
            for of in [dtype::F32, dtype::F16, dtype::BF16, dtype::U8, dtype::S8] {
                let limit = if [dtype::U8, dtype::S8].contains(&of) { 100.0 } else { 2.0 };
                let mut values = typed::noise(dims.iter().product::<i64>() as usize, 3, limit);
                if of == dtype::U8 {
                    values.iter_mut().for_each(|x| *x = x.abs());
                }
                let x = TypedTensor::new(of, &dims, &values);
                let (kernel, x_values) = (kernel(desc(mode, sizes, [0.0; 2])), x.values());
                let y = typed::run(&kernel, &[&x]).values();
                for (i, &y) in y.iter().enumerate() {
                    let column = i as i64 % sizes[1];
                    let (row, plane) = (i as i64 / sizes[1] % sizes[0], i as i64 / sizes[1] / sizes[0]);
                    let place = |at: i64, size: i64, len: i64| (at as f64 + 0.5) * len as f64 / size as f64 - 0.5;
                    let (down, across) = (place(row, sizes[0], dims[1]), place(column, sizes[1], dims[2]));
                    let mut want = 0.0;
                    // Elements at the edge stand for those beyond it.
                    for r in -reach..dims[1] + reach {
                        for c in -reach..dims[2] + reach {
                            let from = (plane * dims[1] + r.clamp(0, dims[1] - 1)) * dims[2] + c.clamp(0, dims[2] - 1);
                            want += weight(down - r as f64) * weight(across - c as f64) * x_values[from as usize];
                        }
                    }
                    want = match of {
                        dtype::U8 => want.clamp(0.0, 255.0),
                        dtype::S8 => want.clamp(-128.0, 127.0),
                        _ => want,
                    };
                    let error = match of {
                        dtype::F32 => 1e-5,
                        dtype::F16 => 2e-3,
                        dtype::BF16 => 2e-2,
                        _ => 0.5001,
                    };
                    assert!((y - want).abs() <= error, "{mode:?} {dims:?} {of} {i}: {y} for {want}");
                }
                typed::check_pools(&kernel, &[&x]);
            }
        }
    }
}

#[test]
fn excluded_elements_have_no_weight() {
    let of = weir_resize_desc { flags: 1, ..desc(Mode::WEIR_RESIZE_CUBIC, [0; 2], [0.0; 2]) };
    let y = row(of, 8, &[5.0; 4]);
    assert!(y.iter().all(|y| (y - 5.0).abs() < 1e-5), "{y:?}");
    let y = row(of, 4, &[1.0, 2.0]);
    // Place -0.25: the elements 0 and 1 alone count, of four.
    let (a, b) = (keys(0.25), keys(1.25));
    assert!((y[0] - (a + 2.0 * b) / (a + b)).abs() < 1e-5, "{y:?}");
}

#[test]
fn an_axis_that_stays_is_left_alone() {
    let x = TypedTensor::new(dtype::F32, &[2, 3], &[f64::INFINITY, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let y = typed::run(&kernel(desc(Mode::WEIR_RESIZE_CUBIC, [2, 3], [0.0; 2])), &[&x]);
    assert_eq!(y.values(), x.values());
    let empty = random(dtype::F32, &[2, 0, 4], 1, 1.0);
    assert_eq!(
        typed::run(&kernel(desc(Mode::WEIR_RESIZE_LINEAR, [0; 2], [2.0; 2])), &[&empty]).desc.shape(),
        [2, 0, 8]
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let of = |of, dims: &[i64]| Desc::new(of, dims);
    let linear = kernel(desc(Mode::WEIR_RESIZE_LINEAR, [4, 4], [0.0; 2]));
    let text = "input 0: expected f32, f16, bf16, u8 or s8 elements, got s32[2,2]";
    assert_eq!(refusal(&linear, &[of(dtype::S32, &[2, 2])]), text);
    let text = "input 0: expected a tensor of rank 2 or more, got f32[2]";
    assert_eq!(refusal(&linear, &[of(dtype::F32, &[2])]), text);
    let text = "input 0: expected at least 1 element along axis 1, which is resized, got f32[2,0,3]";
    assert_eq!(refusal(&linear, &[of(dtype::F32, &[2, 0, 3])]), text);
    let refused = |of: weir_resize_desc| Resize::new(&mut { of }, None).unwrap_err().message().to_owned();
    let text = "desc->scales[1] is -2, expected 0, or a number from 1e-6 to 1e6";
    assert_eq!(refused(desc(Mode::WEIR_RESIZE_LINEAR, [0; 2], [0.0, -2.0])), text);
    let text = "desc->sizes[0] is -1, expected 0 or more";
    assert_eq!(refused(desc(Mode::WEIR_RESIZE_LINEAR, [-1, 0], [0.0; 2])), text);
    // An open dimension stays so if a scale makes the other one of it.
    let x = of(dtype::F32, &[1, 3, -1, -1]);
    let y = kernel(desc(Mode::WEIR_RESIZE_NEAREST, [0, 9], [2.0, 0.0])).output(&[x]).unwrap();
    assert_eq!(y, of(dtype::F32, &[1, 3, -1, 9]));
}
