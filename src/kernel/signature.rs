//! Comparing descriptors with what a kernel wants, and saying what is wrong.
#![forbid(unsafe_code)]

use crate::base::{Desc, Error, Result, dtype};

/// `input 2: expected f32[1,128], got f32[1,64]`
pub fn mismatch(what: &str, index: usize, expected: &str, got: &Desc) -> Error {
    Error::invalid(format!("{what} {index}: expected {expected}, got {}", got.text()))
}

/// Refuses a wrong number of inputs or outputs.
pub fn check_count(what: &str, expected: usize, got: usize) -> Result<()> {
    if expected != got {
        return Err(Error::invalid(format!("expected {expected} {what}s, got {got}")));
    }
    Ok(())
}

/// Refuses descriptors that do not match their patterns.
pub fn check(what: &str, patterns: &[Desc], got: &[Desc]) -> Result<()> {
    check_count(what, patterns.len(), got.len())?;
    for (i, (pattern, desc)) in patterns.iter().zip(got).enumerate() {
        if !pattern.matches(desc) {
            return Err(mismatch(what, i, &pattern.text(), desc));
        }
    }
    Ok(())
}

/// Refuses an input that is not f32.
pub fn check_f32(inputs: &[Desc]) -> Result<()> {
    match inputs.iter().position(|desc| desc.dtype != dtype::F32) {
        Some(i) => Err(mismatch("input", i, "f32 elements", &inputs[i])),
        None => Ok(()),
    }
}

/// Refuses an input that holds neither floats nor halves.
pub fn check_floats(inputs: &[Desc]) -> Result<()> {
    match inputs.iter().position(|desc| ![dtype::F32, dtype::F16, dtype::BF16].contains(&desc.dtype)) {
        Some(i) => Err(mismatch("input", i, "f32, f16 or bf16 elements", &inputs[i])),
        None => Ok(()),
    }
}

/// The index of an axis that may count from the end.
pub fn axis(axis: i32, input: &Desc) -> Result<usize> {
    let rank = input.rank as i32;
    let index = if axis < 0 { axis + rank } else { axis };
    if !(0..rank).contains(&index) {
        return Err(mismatch("input", 0, &format!("a shape with axis {axis}"), input));
    }
    Ok(index as usize)
}
