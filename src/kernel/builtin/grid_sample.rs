//! Sampling of images at places of a grid.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, elements, input};
use crate::base::{Desc, Error, Result};
use crate::kernel::vector::grid_sample::GridShape;
use crate::kernel::vector::site::MatrixMut;
use crate::kernel::{KernelContext, Outputs};
use crate::ops::GridSample;

impl Builtin<GridSample> {
    fn shape(&self, inputs: &[Desc]) -> GridShape {
        let [images, channels, height, width] = [0, 1, 2, 3].map(|i| inputs[0].dims[i] as usize);
        GridShape {
            images,
            channels,
            height,
            width,
            points: (inputs[1].dims[1] * inputs[1].dims[2]) as usize,
            mode: self.mode,
            edge: self.edge,
            align_corners: self.align_corners,
        }
    }
}

impl BuiltinOperation for Builtin<GridSample> {
    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        self.shape(inputs).scratch_bytes()
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        self.shape(inputs).cost_ns().max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let descs = [0, 1].map(|i| *context.inputs()[i].desc());
        let (shape, out) = (self.shape(&descs), outputs.only());
        if elements(out.desc()) == 0 {
            return Ok(());
        }
        if shape.height * shape.width > i32::MAX as usize {
            return Err(Error::out_of_range("input 0: an image has more than 2147483647 elements"));
        }
        let y = MatrixMut::output(out, shape.images * shape.channels, shape.points);
        shape.compute(input(context, 0), input(context, 1), y, context)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::dtype;
    use crate::kernel::builtin::fixture::{WordTensor, check_pools, refusal, run};
    use crate::ops::weir_grid_sample_edge_value::*;
    use crate::ops::weir_resize_mode_value::*;

    /// The place that a place is moved to.
    fn moved(of: &GridSample, place: f64, len: i64) -> f64 {
        let last = (len - 1) as f64;
        let (low, high) = if of.align_corners { (0.0, last) } else { (-0.5, last + 0.5) };
        match of.edge {
            WEIR_GRID_SAMPLE_ZEROS => place,
            WEIR_GRID_SAMPLE_BORDER => place.clamp(0.0, last),
            WEIR_GRID_SAMPLE_REFLECTION if high <= low => low,
            WEIR_GRID_SAMPLE_REFLECTION => {
                let mut place = place;
                while place < low || place > high {
                    place = if place < low { 2.0 * low - place } else { 2.0 * high - place };
                }
                place
            }
        }
    }

    /// (index, weight) of the elements along an axis; none where there is 0.
    fn along(of: &GridSample, at: f64, len: i64) -> Vec<(Option<i64>, f64)> {
        let place =
            if of.align_corners { (at + 1.0) / 2.0 * (len - 1) as f64 } else { ((at + 1.0) * len as f64 - 1.0) / 2.0 };
        let nearest = of.mode == WEIR_RESIZE_NEAREST;
        let place = if nearest { place.round_ties_even() } else { place };
        let stays = of.mode == WEIR_RESIZE_CUBIC && of.edge == WEIR_GRID_SAMPLE_BORDER;
        let place = if stays { place } else { moved(of, place, len) };
        let first = if nearest { place } else { place.floor() };
        let cubic = |x: f64| match x.abs() {
            x if x <= 1.0 => 1.25 * x * x * x - 2.25 * x * x + 1.0,
            x => -0.75 * (x * x * x - 5.0 * x * x + 8.0 * x - 4.0),
        };
        let taps: Vec<(f64, f64)> = match of.mode {
            WEIR_RESIZE_NEAREST => vec![(first, 1.0)],
            WEIR_RESIZE_LINEAR => {
                (0..2).map(|i| (first + f64::from(i), 1.0 - (place - first - f64::from(i)).abs())).collect()
            }
            WEIR_RESIZE_CUBIC => (-1..3).map(|i| (first + f64::from(i), cubic(place - first - f64::from(i)))).collect(),
        };
        let inside = |place: f64| (0.0..=(len - 1) as f64).contains(&place);
        let index = |place: f64| match of.edge {
            _ if inside(place) => Some(place as i64),
            WEIR_GRID_SAMPLE_ZEROS => None,
            _ => Some(moved(of, place, len).clamp(0.0, (len - 1) as f64) as i64),
        };
        taps.into_iter().map(|(place, weight)| (index(place), weight)).collect()
    }

    #[test]
    fn elements_are_those_around_their_places() {
        for (x, grid) in [
            ([1, 1, 1, 1], [1, 2, 3, 2]),
            ([2, 3, 5, 7], [2, 4, 5, 2]),
            ([1, 2, 9, 4], [1, 13, 17, 2]),
            ([0, 2, 3, 4], [0, 1, 1, 2]),
        ] {
            for mode in [WEIR_RESIZE_NEAREST, WEIR_RESIZE_LINEAR, WEIR_RESIZE_CUBIC] {
                for edge in [WEIR_GRID_SAMPLE_ZEROS, WEIR_GRID_SAMPLE_BORDER, WEIR_GRID_SAMPLE_REFLECTION] {
                    for align_corners in [false, true] {
                        let of = GridSample { mode, edge, align_corners };
                        let points: Vec<f32> = WordTensor::random(&grid, 5).floats().iter().map(|x| x * 2.5).collect();
                        let inputs = [WordTensor::random(&x, 1), WordTensor::f32(&grid, &points)];
                        let y = run(&Builtin::new(of), &inputs);
                        let [channels, height, width] = [x[1], x[2], x[3]];
                        assert_eq!(y.desc.shape(), [x[0], channels, grid[1], grid[2]]);
                        let (values, count) = (inputs[0].floats(), grid[1] * grid[2]);
                        for (i, y) in y.floats().into_iter().enumerate() {
                            let (point, plane) = (i as i64 % count, i as i64 / count);
                            let at = ((plane / channels * count + point) * 2) as usize;
                            let (columns, rows) =
                                (along(&of, points[at].into(), width), along(&of, points[at + 1].into(), height));
                            let mut want = 0.0;
                            for &(row, of_row) in &rows {
                                for &(column, of_column) in &columns {
                                    if let (Some(row), Some(column)) = (row, column) {
                                        let x = values[((plane * height + row) * width + column) as usize];
                                        want += f64::from(x) * of_row * of_column;
                                    }
                                }
                            }
                            let error = (f64::from(y) - want).abs();
                            assert!(error < 2e-5, "{of:?} {x:?} {i}: {y} for {want}");
                        }
                        check_pools(&Builtin::new(of), &inputs);
                    }
                }
            }
        }
    }

    #[test]
    fn places_that_are_no_numbers_are_somewhere() {
        let at = [f32::NAN, 0.0, f32::INFINITY, f32::NEG_INFINITY];
        for edge in [WEIR_GRID_SAMPLE_ZEROS, WEIR_GRID_SAMPLE_BORDER, WEIR_GRID_SAMPLE_REFLECTION] {
            for align_corners in [false, true] {
                let of = Builtin::new(GridSample { mode: WEIR_RESIZE_LINEAR, edge, align_corners });
                let inputs = [WordTensor::random(&[1, 1, 1, 3], 1), WordTensor::f32(&[1, 1, 2, 2], &at)];
                assert!(run(&of, &inputs).floats().iter().all(|y| y.is_finite()), "{of:?}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let f32s = |dims: &[i64]| Desc::new(dtype::F32, dims);
        let of = GridSample { mode: WEIR_RESIZE_LINEAR, edge: WEIR_GRID_SAMPLE_ZEROS, align_corners: false };
        let of = Builtin::new(of);
        let text = "input 1: expected f32[2,?,?,2], got f32[2,3,3,3]";
        assert_eq!(refusal(&of, &[f32s(&[2, 1, 4, 4]), f32s(&[2, 3, 3, 3])]), text);
        let text = "input 0: expected images with elements, got f32[2,1,0,4]";
        assert_eq!(refusal(&of, &[f32s(&[2, 1, 0, 4]), f32s(&[2, 3, 3, 2])]), text);
    }
}
