//! Numbers one step apart.
#![forbid(unsafe_code)]

use super::{Builtin, BuiltinOperation, GRAIN, LEAST_NS, NS_PER_FLOAT};
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::Element;
use crate::ops::Range;
use crate::threadpool::Span;
use std::fmt::Display;

fn step_of_0() -> Error {
    Error::out_of_range("input 2: expected a step that is not 0, got 0")
}

fn uncounted(start: impl Display, limit: impl Display, step: impl Display) -> Error {
    let text = format!("input 1: expected a limit that can be reached, got {limit} from {start} in steps of {step}");
    Error::out_of_range(text)
}

/// How many integers there are.
fn count_integers(start: impl Into<i128>, limit: impl Into<i128>, step: impl Into<i128>) -> Result<i64> {
    let (start, limit, step) = (start.into(), limit.into(), step.into());
    let distance = limit - start;
    if step == 0 {
        return Err(step_of_0());
    }
    if distance.signum() != step.signum() {
        return Ok(0);
    }
    let count = distance.unsigned_abs().div_ceil(step.unsigned_abs());
    count.try_into().map_err(|_| uncounted(start, limit, step))
}

/// How many floats there are.
fn count_floats(start: f32, limit: f32, step: f32) -> Result<i64> {
    if step == 0.0 {
        return Err(step_of_0());
    }
    let count = (f64::from(limit - start) / f64::from(step)).ceil();
    // The greatest s64 is no f64.
    if count.is_nan() || count >= i64::MAX as f64 {
        return Err(uncounted(start, limit, step));
    }
    Ok(count.max(0.0) as i64)
}

/// `count` tells of a start, a limit and a step how many numbers there are, `at` of a start and a step each of them.
fn run<T: Element>(
    context: &KernelContext<'_>,
    mut outputs: Outputs<'_>,
    count: impl Fn(T, T, T) -> Result<i64>,
    at: impl Fn(T, T, usize) -> T + Sync,
) -> Result<()> {
    let [start, limit, step] = [0, 1, 2].map(|input| context.input(input).read::<T>()[0]);
    let count = count(start, limit, step)?;
    outputs.allocate(context, 0, &[count])?;
    let span = Span { items: count as usize, cost_ns: NS_PER_FLOAT, grain: GRAIN, ..Span::default() };
    context.parallel_into(&span, outputs.only().shards::<T>(1), |y, claim| {
        y.iter_mut().zip(claim.begin()..).for_each(|(y, i)| *y = at(start, step, i));
        Ok(())
    })
}

impl BuiltinOperation for Builtin<Range> {
    fn cost_ns(&self, _inputs: &[Desc], _output: &Desc) -> u64 {
        LEAST_NS
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        // The lowest bits of a product and of a sum depend on the lowest bits alone.
        match context.inputs()[0].desc().dtype {
            dtype::F32 => run::<f32>(context, outputs, count_floats, |start, step, i| start + i as f32 * step),
            dtype::S64 => run::<i64>(context, outputs, count_integers, |start, step, i| {
                start.wrapping_add(step.wrapping_mul(i as i64))
            }),
            _ => run::<i32>(context, outputs, count_integers, |start, step, i| {
                start.wrapping_add(step.wrapping_mul(i as i32))
            }),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::Code;
    use crate::kernel::Kernel;
    use crate::kernel::builtin::fixture::refusal;

    #[test]
    fn numbers_are_counted_as_a_loop_counts_them() {
        for start in -9i32..10 {
            for limit in -9i32..10 {
                for step in (-5i32..6).filter(|&step| step != 0) {
                    let mut want = 0;
                    let mut at = start;
                    while if step > 0 { at < limit } else { at > limit } {
                        (at, want) = (at + step, want + 1);
                    }
                    assert_eq!(count_integers(start, limit, step).unwrap(), want, "{start} {limit} {step}");
                    let floats = count_floats(start as f32 / 4.0, limit as f32 / 4.0, step as f32 / 4.0);
                    assert_eq!(floats.unwrap(), want, "{start} {limit} {step}");
                }
            }
        }
        assert_eq!(count_integers(i32::MIN, i32::MAX, 1).unwrap(), (1 << 32) - 1);
        assert_eq!(count_integers(i64::MAX, i64::MIN, i64::MIN).unwrap(), 2);
        assert_eq!(count_integers(i64::MIN, i64::MAX, 3).unwrap(), i64::MAX / 3 * 2 + 1);
        assert_eq!(count_floats(0.0, 1.0, 0.1).unwrap(), 10);
        assert_eq!(count_floats(0.0, f32::NEG_INFINITY, 1.0).unwrap(), 0);
    }

    #[test]
    fn what_has_no_end_is_refused() {
        for error in [count_integers(1, 5, 0).unwrap_err(), count_floats(1.0, 5.0, -0.0).unwrap_err()] {
            assert_eq!(error.code(), Code::OutOfRange);
            assert_eq!(error.message(), "input 2: expected a step that is not 0, got 0");
        }
        let error = count_integers(i64::MIN, i64::MAX, 1i64).unwrap_err();
        assert_eq!(error.code(), Code::OutOfRange);
        let text = "input 1: expected a limit that can be reached, got 9223372036854775807 from -9223372036854775808 \
                    in steps of 1";
        assert_eq!(error.message(), text);
        let text = "input 1: expected a limit that can be reached, got inf from 0 in steps of 2";
        assert_eq!(count_floats(0.0, f32::INFINITY, 2.0).unwrap_err().message(), text);
        assert!(count_floats(0.0, f32::NAN, 2.0).is_err() && count_floats(0.0, 1.0, f32::NAN).is_err());
    }

    #[test]
    fn inputs_are_one_element_of_one_type() {
        let one = |of, dims: &[i64]| Desc::new(of, dims);
        let kernel = Builtin::new(Range);
        let inputs = [one(dtype::S64, &[]), one(dtype::S64, &[1]), one(dtype::S64, &[1, -1])];
        assert_eq!(kernel.infer(&inputs).unwrap(), [one(dtype::S64, &[-1])]);
        let floats = |dims| one(dtype::F32, dims);
        let refused = refusal(&kernel, &[floats(&[1]), floats(&[1]), floats(&[2])]);
        assert_eq!(refused, "input 2: expected one element, got f32[2]");
        let refused = refusal(&kernel, &[floats(&[1]), one(dtype::S32, &[1]), floats(&[1])]);
        assert_eq!(refused, "input 1: expected f32 elements, as input 0 has, got s32[1]");
        let refused = refusal(&kernel, &[one(dtype::F16, &[]), one(dtype::F16, &[]), one(dtype::F16, &[])]);
        assert_eq!(refused, "input 0: expected f32, s32 or s64 elements, got f16[]");
    }
}
