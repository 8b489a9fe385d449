//! Cumulative sums along an axis.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, axis, elements};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::convert::Stored;
use crate::kernel::vector::elements::Pairs;
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bf16, Element, F16};
use crate::ops::Cumsum;
use crate::threadpool::Span;

/// Columns that are summed side by side.
const WIDTH: usize = 64;
/// Time per element: an addition waits for the one before it.
const ELEMENT_NS: f32 = 1.0;

impl Builtin<Cumsum> {
    /// Sums begin at 0 and grow by `add`; `store` makes an element of one.
    fn run<T: Element, S: Copy + Default>(
        &self,
        context: &KernelContext<'_>,
        outputs: Outputs<'_>,
        add: impl Fn(S, T) -> S + Sync,
        store: impl Fn(S) -> T + Sync,
    ) -> Result<()> {
        let x = context.inputs()[0].desc();
        let columns = axis::split(self.axis, x)?;
        let (len, inner) = (columns.len, columns.inner);
        if elements(x) == 0 {
            return Ok(());
        }
        let block = len * inner;
        let span = Span { items: columns.outer, cost_ns: ELEMENT_NS * block as f32, ..Span::default() };
        context.parallel_into(&span, Pairs::<T, T>::of_rows(context, outputs, block)?, |mut blocks, _| {
            blocks.for_chunks(block, |_, mut block| {
                if inner == 1 {
                    block.copied();
                }
                for first in (0..inner).step_by(WIDTH) {
                    let width = WIDTH.min(inner - first);
                    let mut sums = [S::default(); WIDTH];
                    for i in 0..len {
                        let row = if self.reverse { len - 1 - i } else { i } * inner + first;
                        let mut row = block.part(row..row + width);
                        let row = if inner == 1 { row.y() } else { row.copied() };
                        for (sum, x) in sums.iter_mut().zip(row) {
                            let with = add(*sum, *x);
                            *x = store(if self.exclusive { *sum } else { with });
                            *sum = with;
                        }
                    }
                }
            });
            Ok(())
        })
    }

    fn floats<T: Stored>(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        self.run::<T, f64>(context, outputs, |sum, x| sum + f64::from(x.widened()), |sum| T::narrowed(sum as f32))
    }
}

impl BuiltinOperation for Builtin<Cumsum> {
    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        ((elements(&inputs[0]) as f32 * ELEMENT_NS) as u64).max(LEAST_NS)
    }

    fn in_place_of(&self, _: usize) -> bool {
        true
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match context.inputs()[0].desc().dtype {
            dtype::F32 => self.floats::<f32>(context, outputs),
            dtype::F16 => self.floats::<F16>(context, outputs),
            dtype::BF16 => self.floats::<Bf16>(context, outputs),
            dtype::S64 => self.run::<i64, i64>(context, outputs, i64::wrapping_add, |sum| sum),
            _ => self.run::<i32, i32>(context, outputs, i32::wrapping_add, |sum| sum),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::kernel::builtin::fixture::{WordTensor, check_pools, refusal, run};
    use crate::kernel::builtin::fixture_elements::{self, TypedTensor};

    fn cumsum(axis: i32, exclusive: bool, reverse: bool) -> Builtin<Cumsum> {
        Builtin::new(Cumsum { axis, exclusive, reverse })
    }

    #[test]
    fn sums_agree_with_their_definition_on_all_pools() {
        for dims in [&[7][..], &[3, 5], &[2, 4, 3], &[3, 9, 130], &[2, 0, 3], &[0, 4]] {
            let x = WordTensor::random(dims, 3);
            for axis in 0..dims.len() {
                for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
                    let kernel = cumsum(axis as i32 - dims.len() as i32, exclusive, reverse);
                    let (values, y) = (x.floats(), run(&kernel, std::slice::from_ref(&x)).floats());
                    let (len, inner) = (dims[axis] as usize, dims[axis + 1..].iter().product::<i64>() as usize);
                    for (at, &y) in y.iter().enumerate() {
                        let (place, first) = (at / inner % len, at - at / inner % len * inner);
                        let counts = |i: usize| match (exclusive, reverse) {
                            (false, false) => i <= place,
                            (true, false) => i < place,
                            (false, true) => i >= place,
                            (true, true) => i > place,
                        };
                        let mut all: Vec<usize> = (0..len).filter(|&i| counts(i)).collect();
                        if reverse {
                            all.reverse();
                        }
                        let want = all.iter().fold(0f64, |sum, i| sum + f64::from(values[first + i * inner]));
                        assert_eq!(y, want as f32, "{dims:?} axis {axis} {exclusive} {reverse}: {at}");
                    }
                    check_pools(&kernel, std::slice::from_ref(&x));
                }
            }
        }
    }

    #[test]
    fn each_type_has_its_sums() {
        for of in [dtype::F32, dtype::F16, dtype::BF16, dtype::S32] {
            let y =
                fixture_elements::run(&cumsum(0, false, false), &[&TypedTensor::new(of, &[4], &[1.0, 2.0, -7.0, 5.0])]);
            assert_eq!(y.values(), [1.0, 3.0, -4.0, 1.0], "{of}");
        }
        let most = f64::from(i32::MAX);
        let y = fixture_elements::run(&cumsum(0, false, false), &[&TypedTensor::new(dtype::S32, &[2], &[most, 1.0])]);
        assert_eq!(y.values(), [most, f64::from(i32::MIN)]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let of = |of, dims: &[i64]| Desc::new(of, dims);
        let text = "input 0: expected f32, f16, bf16, s32 or s64 elements, got u8[2]";
        assert_eq!(refusal(&cumsum(0, false, false), &[of(dtype::U8, &[2])]), text);
        let text = "input 0: expected a shape with axis 1, got f32[2]";
        assert_eq!(refusal(&cumsum(1, false, false), &[of(dtype::F32, &[2])]), text);
    }
}
