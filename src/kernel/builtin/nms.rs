//! Non-maximum suppression.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, input};
use crate::base::{Desc, Result};
use crate::kernel::vector::nms::NmsShape;
use crate::kernel::{KernelContext, Outputs};
use crate::ops::Nms;

impl Builtin<Nms> {
    fn shape(&self, inputs: &[Desc]) -> NmsShape {
        let [images, classes, boxes] = [0, 1, 2].map(|i| inputs[1].dims[i] as usize);
        NmsShape {
            images,
            classes,
            boxes,
            most: self.most_of(boxes),
            centers: self.centers,
            most_overlap: self.most_overlap,
            least_score: self.least_score,
        }
    }
}

impl BuiltinOperation for Builtin<Nms> {
    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        self.shape(inputs).scratch_bytes()
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        self.shape(inputs).cost_ns().max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, mut outputs: Outputs<'_>) -> Result<()> {
        let descs = [0, 1].map(|i| *context.inputs()[i].desc());
        let shape = self.shape(&descs);
        let count = shape.choose(self.isa, input(context, 0), input(context, 1), context)?;
        if self.exact {
            outputs.allocate(context, 0, &[count as i64, 3])?;
        }
        shape.store(outputs.get(0), context);
        outputs.get(1).write::<i64>()[0] = count as i64;
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::dtype;
    use crate::kernel::Kernel;
    use crate::kernel::builtin::fixture::{pools, refusal};
    use crate::kernel::builtin::fixture_elements::{TypedTensor, noise, run_all_on};
    use crate::kernel::vector::isa::Isa;

    const PLAIN: Nms = Nms { centers: false, exact: false, most_boxes: 0, most_overlap: 0.5, least_score: None };

    /// Intersection over union.
    fn overlap(a: &[f64], b: &[f64], centers: bool) -> f64 {
        let corners = |of: &[f64]| match centers {
            true => [of[1] - of[3] / 2.0, of[0] - of[2] / 2.0, of[1] + of[3] / 2.0, of[0] + of[2] / 2.0],
            false => [of[0].min(of[2]), of[1].min(of[3]), of[0].max(of[2]), of[1].max(of[3])],
        };
        let (a, b) = (corners(a), corners(b));
        let area = |of: [f64; 4]| (of[2] - of[0]) * (of[3] - of[1]);
        let (height, width) = (a[2].min(b[2]) - a[0].max(b[0]), a[3].min(b[3]) - a[1].max(b[1]));
        let inside = height.max(0.0) * width.max(0.0);
        if inside > 0.0 && area(a) > 0.0 && area(b) > 0.0 { inside / (area(a) + area(b) - inside) } else { 0.0 }
    }

    #[test]
    fn each_class_keeps_its_best_boxes() {
        for (images, classes, count, most_boxes) in
            [(1, 1, 6, 0), (2, 3, 40, 5), (1, 2, 300, 100), (2, 1, 0, 3), (0, 4, 3, 1)]
        {
            for (centers, least_score) in [(false, None), (true, Some(0.1)), (false, Some(-2.0))] {
                let of = Nms { centers, most_boxes, least_score, most_overlap: 0.3, ..PLAIN };
                // Eighths, so that f32 is as exact as f64; some scores are equal.
                let eighths = |count: i64, seed: u64| -> Vec<f64> {
                    noise(count as usize, seed, 40.0).into_iter().map(|x| x.round() / 8.0).collect()
                };
                let (boxes, scores) = (eighths(images * count * 4, 1), eighths(images * classes * count, 2));
                let mut want = vec![];
                for (image, class) in (0..images).flat_map(|i| (0..classes).map(move |c| (i, c))) {
                    let scores = &scores[((image * classes + class) * count) as usize..][..count as usize];
                    let boxes = &boxes[(image * count * 4) as usize..][..count as usize * 4];
                    let mut order: Vec<usize> = (0..scores.len()).collect();
                    order.retain(|&i| least_score.is_none_or(|least| scores[i] > f64::from(least)));
                    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
                    let mut kept: Vec<usize> = vec![];
                    for i in order {
                        let far =
                            |&j: &usize| overlap(&boxes[i * 4..][..4], &boxes[j * 4..][..4], centers) <= 0.3f32.into();
                        if (most_boxes == 0 || kept.len() < most_boxes) && kept.iter().all(far) {
                            kept.push(i);
                        }
                    }
                    want.extend(kept.into_iter().flat_map(|i| [image as f64, class as f64, i as f64]));
                }
                let found = want.len() as f64 / 3.0;
                let inputs = [
                    &TypedTensor::new(dtype::F32, &[images, count, 4], &boxes),
                    &TypedTensor::new(dtype::F32, &[images, classes, count], &scores),
                ];
                for isa in Isa::levels() {
                    let kernel = Builtin::on(of, isa);
                    let got = run_all_on(&kernel, &inputs, None);
                    let rows = images * classes * of.most_of(count as usize) as i64;
                    assert_eq!(got[0].desc.shape(), [rows, 3]);
                    want.resize(rows as usize * 3, -1.0);
                    assert_eq!((got[0].values(), got[1].values()), (want.clone(), vec![found]), "{of:?} {count}");
                    for (name, pool) in pools() {
                        let on = run_all_on(&kernel, &inputs, Some(&pool));
                        assert!(on.iter().zip(&got).all(|(a, b)| a.words == b.words), "{of:?} on {name}");
                    }
                }
            }
        }
    }

    /// More images and classes than can be counted, of no boxes.
    #[test]
    fn no_boxes_are_none_of_however_many() {
        for (images, classes) in [(1 << 62, 3), (1 << 32, 1 << 32), (3, 1 << 62), (i64::MAX, 1)] {
            let boxes = TypedTensor::new(dtype::F32, &[images, 0, 4], &[]);
            let scores = TypedTensor::new(dtype::F32, &[images, classes, 0], &[]);
            let got = run_all_on(&Builtin::new(PLAIN), &[&boxes, &scores], None);
            assert_eq!((got[0].values(), got[1].values()), (vec![], vec![0.0]), "{images} x {classes}");
        }
    }

    #[test]
    fn scores_that_are_nan_are_never_chosen() {
        let boxes =
            TypedTensor::new(dtype::F32, &[1, 3, 4], &[0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 4.0, 4.0]);
        let scores = TypedTensor::new(dtype::F32, &[1, 1, 3], &[f64::NAN, f64::NEG_INFINITY, 0.0]);
        let got = run_all_on(&Builtin::new(PLAIN), &[&boxes, &scores], None);
        assert_eq!(got[0].values(), [0.0, 0.0, 2.0, 0.0, 0.0, 1.0, -1.0, -1.0, -1.0]);
    }

    #[test]
    fn shapes_may_be_open_and_what_does_not_fit_is_refused() {
        let f32s = |dims: &[i64]| Desc::new(dtype::F32, dims);
        let s64s = |dims: &[i64]| Desc::new(dtype::S64, dims);
        let of = Builtin::new(Nms { most_boxes: 7, ..PLAIN });
        assert_eq!(of.infer(&[f32s(&[-1, 9, 4]), f32s(&[2, 3, -1])]).unwrap(), [s64s(&[42, 3]), s64s(&[1])]);
        assert_eq!(of.infer(&[f32s(&[-1, 9, 4]), f32s(&[-1, 3, -1])]).unwrap(), [s64s(&[-1, 3]), s64s(&[1])]);
        let exact = Builtin::new(Nms { exact: true, ..PLAIN });
        assert_eq!(exact.infer(&[f32s(&[2, 9, 4]), f32s(&[2, 3, 9])]).unwrap(), [s64s(&[-1, 3]), s64s(&[1])]);
        let text = "input 1: expected f32[2,?,9], got f32[2,3,8]";
        assert_eq!(refusal(&of, &[f32s(&[2, 9, 4]), f32s(&[2, 3, 8])]), text);
        assert_eq!(refusal(&of, &[f32s(&[2, 9]), f32s(&[2, 3, 9])]), "input 0: expected f32[?,?,4], got f32[2,9]");
    }
}
