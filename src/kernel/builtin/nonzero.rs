//! The places of elements that are not 0.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, LEAST_NS, elements};
use crate::base::{Desc, Result, dtype};
use crate::kernel::vector::nonzero::Words;
use crate::kernel::{KernelContext, Outputs};
use crate::ops::Nonzero;

impl BuiltinOperation for Builtin<Nonzero> {
    fn scratch_bytes(&self, inputs: &[Desc], _output: &Desc) -> usize {
        Words::scratch_bytes(elements(&inputs[0]))
    }

    fn cost_ns(&self, inputs: &[Desc], _output: &Desc) -> u64 {
        Words::cost_ns(elements(&inputs[0]), inputs[0].shape().len()).max(LEAST_NS)
    }

    fn compute(&self, context: &KernelContext<'_>, mut outputs: Outputs<'_>) -> Result<()> {
        let x = context.input(0);
        let of = x.desc().dtype;
        let size = dtype::size(of)?;
        let words = Words {
            bytes: &x.read_bytes()[..elements(x.desc()) * size],
            size,
            signed_zero: [dtype::F32, dtype::F16, dtype::BF16].contains(&of),
            shape: x.desc().shape(),
        };
        let count = words.count(context)?;
        if self.exact {
            outputs.allocate(context, 0, &[words.shape.len() as i64, count as i64])?;
        }
        let pitch = outputs.desc(0).dims[1] as usize;
        words.fill(count, outputs.get(0), pitch, context)?;
        outputs.get(1).write::<i64>()[0] = count as i64;
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::Code;
    use crate::kernel::Kernel;
    use crate::kernel::builtin::fixture::pools;
    use crate::kernel::builtin::fixture_elements::{ALL, TypedTensor, run_all_on};

    #[test]
    fn places_are_those_of_elements_that_are_not_0() {
        let kernel = Builtin::new(Nonzero { exact: false });
        for dims in [&[][..], &[7], &[3, 5], &[2, 0, 3], &[2, 3, 4, 5], &[3, 9000], &[1, 1, 20001, 1]] {
            let count = dims.iter().product::<i64>();
            for of in ALL {
                let values: Vec<f64> = (0..count).map(|i| if i * i % 7 < 3 { 0.0 } else { 1.0 }).collect();
                let x = TypedTensor::new(of, dims, &values);
                let got = run_all_on(&kernel, &[&x], None);
                let set: Vec<i64> = (0..count).filter(|&i| values[i as usize] != 0.0).collect();
                let mut want = vec![-1.0; dims.len() * count as usize];
                for (column, &at) in set.iter().enumerate() {
                    let mut left = at;
                    for (row, &dim) in dims.iter().enumerate().rev() {
                        want[row * count as usize + column] = (left % dim) as f64;
                        left /= dim;
                    }
                }
                assert_eq!(got[0].desc.shape(), [dims.len() as i64, count]);
                assert_eq!(got[0].values(), want, "{dims:?} of {of}");
                assert_eq!(got[1].values(), [set.len() as f64]);
                for (name, pool) in pools() {
                    let on = run_all_on(&kernel, &[&x], Some(&pool));
                    assert!(on.iter().zip(&got).all(|(a, b)| a.words == b.words), "{dims:?} on {name}");
                }
            }
        }
    }

    #[test]
    fn a_nan_counts_and_zeros_do_not() {
        let x = TypedTensor::new(dtype::F32, &[4], &[-0.0, f64::NAN, 0.0, -1e-30]);
        let got = run_all_on(&Builtin::new(Nonzero { exact: false }), &[&x], None);
        assert_eq!((got[0].values(), got[1].values()), (vec![1.0, 3.0, -1.0, -1.0], vec![2.0]));
    }

    #[test]
    fn only_a_call_knows_an_exact_number() {
        let kernel = Builtin::new(Nonzero { exact: true });
        let shapes = kernel.infer(&[Desc::new(dtype::F32, &[2, 3])]).unwrap();
        assert_eq!(shapes, [Desc::new(dtype::S64, &[2, -1]), Desc::new(dtype::S64, &[1])]);
        let open = Builtin::new(Nonzero { exact: false }).infer(&[Desc::new(dtype::F32, &[2, -1])]).unwrap();
        assert_eq!(open, shapes);
        let huge = Builtin::new(Nonzero { exact: false }).infer(&[Desc::new(dtype::U8, &[1 << 40, 1 << 22])]);
        assert_eq!(huge.unwrap_err().code(), Code::OutOfRange);
    }
}
