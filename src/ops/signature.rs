//! Comparison of descriptors with a kernel's signature, and the texts of refusals.
#![forbid(unsafe_code)]

use crate::base::{Desc, Error, Result, desc::ANY_DIM, dtype};

/// `input 2: expected f32[1,128], got f32[1,64]`
pub fn mismatch(what: &str, index: usize, expected: &str, got: &Desc) -> Error {
    Error::invalid(format!("{what} {index}: expected {expected}, got {}", got.text()))
}

/// Refuses a wrong number of inputs or outputs.
#[inline(always)]
pub fn check_count(what: &str, expected: usize, got: usize) -> Result<()> {
    if expected != got {
        return Err(wrong_count(what, expected, got));
    }
    Ok(())
}

#[cold]
fn wrong_count(what: &str, expected: usize, got: usize) -> Error {
    Error::invalid(format!("expected {expected} {what}s, got {got}"))
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

/// As `check`, but an open dimension fits any pattern.
pub fn check_fit(what: &str, patterns: &[Desc], got: &[Desc]) -> Result<()> {
    check_count(what, patterns.len(), got.len())?;
    for (i, (pattern, desc)) in patterns.iter().zip(got).enumerate() {
        let dims = pattern.shape().iter().zip(desc.shape());
        let fits = dims.into_iter().all(|(want, have)| [want, have].contains(&&ANY_DIM) || want == have);
        if pattern.dtype != desc.dtype || pattern.rank != desc.rank || !fits {
            return Err(mismatch(what, i, &pattern.text(), desc));
        }
    }
    Ok(())
}

/// A dimension that two descriptors name: what one leaves open, the other may know.
pub fn known(dim: i64, other: i64) -> i64 {
    if dim == ANY_DIM { other } else { dim }
}

/// Refuses an input that is not f32.
pub fn check_f32(inputs: &[Desc]) -> Result<()> {
    match inputs.iter().position(|desc| desc.dtype != dtype::F32) {
        Some(i) => Err(mismatch("input", i, "f32 elements", &inputs[i])),
        None => Ok(()),
    }
}

/// Refuses an input that is not f32, f16 or bf16.
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

/// Refuses an input that does not have the type of another one.
pub fn check_like(inputs: &[Desc], index: usize, other: usize) -> Result<()> {
    if inputs[index].dtype != inputs[other].dtype {
        let expected = format!("{} elements, as input {other} has", dtype::name(inputs[other].dtype));
        return Err(mismatch("input", index, &expected, &inputs[index]));
    }
    Ok(())
}

/// Refuses an input that cannot be indices.
pub fn check_indices(index: usize, indices: &Desc) -> Result<()> {
    if ![dtype::S32, dtype::S64].contains(&indices.dtype) {
        return Err(mismatch("input", index, "s32 or s64 elements", indices));
    }
    Ok(())
}

/// Refuses an input 0 of another rank.
pub fn check_rank(rank: usize, input: &Desc) -> Result<()> {
    if input.shape().len() != rank {
        return Err(mismatch("input", 0, &format!("a tensor of rank {rank}"), input));
    }
    Ok(())
}
