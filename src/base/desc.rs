//! Tensor descriptors: checks, sizes, matching, text.
#![forbid(unsafe_code)]

use super::dtype;
use super::error::{Error, Result};
use crate::abi::{weir_limit, weir_tensor_desc};
use std::fmt::Write as _;

/// Element type and shape of a dense, row-major tensor: the C struct itself.
pub type Desc = weir_tensor_desc;

/// Maximum number of dimensions.
pub const MAX_RANK: usize = weir_limit::WEIR_MAX_RANK as usize;

/// In a signature: any size.
pub const ANY_DIM: i64 = -1;

impl weir_tensor_desc {
    /// A descriptor. Dims beyond MAX_RANK are an error of the caller, which `check` reports.
    pub fn new(dtype: u32, dims: &[i64]) -> Desc {
        let mut all = [0; MAX_RANK];
        let kept = dims.len().min(MAX_RANK);
        all[..kept].copy_from_slice(&dims[..kept]);
        Desc { dtype, rank: dims.len() as u32, dims: all }
    }

    /// The dimensions in use.
    pub fn shape(&self) -> &[i64] {
        &self.dims[..(self.rank as usize).min(MAX_RANK)]
    }

    /// Refuses impossible tensors, and clears the unused dimensions so that equal descriptors are equal bytes.
    pub fn check(mut self) -> Result<Desc> {
        dtype::size(self.dtype)?;
        self.check_rank()?;
        if let Some((i, dim)) = self.shape().iter().enumerate().find(|(_, dim)| **dim < 0) {
            return Err(Error::invalid(format!("dims[{i}] is {dim}, expected 0 or more")));
        }
        self.clear_unused();
        self.bytes()?;
        Ok(self)
    }

    /// As `check`, for a signature: dtype ANY and dimensions of -1 are legal.
    pub fn check_pattern(mut self) -> Result<Desc> {
        if self.dtype != dtype::ANY {
            dtype::size(self.dtype)?;
        }
        self.check_rank()?;
        if let Some((i, dim)) = self.shape().iter().enumerate().find(|(_, dim)| **dim < ANY_DIM) {
            return Err(Error::invalid(format!("dims[{i}] is {dim}, expected -1 (any), 0 or more")));
        }
        self.clear_unused();
        Ok(self)
    }

    /// As `check`, for a value in a graph: a dimension may be open (-1), known only at run time.
    pub fn check_open(self) -> Result<Desc> {
        if self.dtype == dtype::ANY || self.shape().iter().all(|&dim| dim != ANY_DIM) {
            return self.check();
        }
        self.check_pattern()
    }

    /// The common descriptor of two, open in the dimensions where only one of them is open. `None` if neither leaves a
    /// differing dimension open, or they differ in more.
    pub fn join(&self, other: &Desc) -> Option<Desc> {
        let mut joined = *self;
        for (dim, &with) in joined.dims.iter_mut().zip(&other.dims) {
            match (*dim, with) {
                (a, b) if a == b => {}
                (ANY_DIM, _) | (_, ANY_DIM) => *dim = ANY_DIM,
                _ => return None,
            }
        }
        (self.dtype == other.dtype && self.rank == other.rank).then_some(joined)
    }

    /// As `join`, but every dimension in which they differ is left open.
    pub fn widen(&self, other: &Desc) -> Option<Desc> {
        let mut both = *self;
        both.dims.iter_mut().zip(&other.dims).filter(|(a, b)| a != b).for_each(|(dim, _)| *dim = ANY_DIM);
        (self.dtype == other.dtype && self.rank == other.rank).then_some(both)
    }

    fn check_rank(&self) -> Result<()> {
        if self.rank as usize > MAX_RANK {
            return Err(Error::invalid(format!("rank is {}, expected 0 to {MAX_RANK}", self.rank)));
        }
        Ok(())
    }

    fn clear_unused(&mut self) {
        let rank = self.rank as usize;
        self.dims[rank..].fill(0);
    }

    /// Whether no dimension is open.
    pub fn is_concrete(&self) -> bool {
        self.dtype != dtype::ANY && self.shape().iter().all(|&dim| dim >= 0)
    }

    /// Whether a tensor like `other` matches this pattern.
    pub fn matches(&self, other: &Desc) -> bool {
        (self.dtype == dtype::ANY || self.dtype == other.dtype)
            && self.rank == other.rank
            && self.shape().iter().zip(other.shape()).all(|(want, have)| *want == ANY_DIM || want == have)
    }

    /// Number of elements.
    pub fn elements(&self) -> Result<usize> {
        if self.shape().contains(&0) {
            return Ok(0);
        }
        self.shape()
            .iter()
            .try_fold(1usize, |n, &dim| n.checked_mul(usize::try_from(dim).ok()?))
            .filter(|&n| n <= isize::MAX as usize)
            .ok_or_else(|| Error::out_of_range(format!("{} has more elements than memory can hold", self.text())))
    }

    /// Size in bytes.
    pub fn bytes(&self) -> Result<usize> {
        let element = dtype::size(self.dtype)?;
        self.elements()?
            .checked_mul(element)
            .filter(|&n| n <= isize::MAX as usize)
            .ok_or_else(|| Error::out_of_range(format!("{} is larger than memory can hold", self.text())))
    }

    /// "f32[1,128]"; open types and dimensions print as "any" and "?".
    pub fn text(&self) -> String {
        let mut text = String::from(dtype::name(self.dtype));
        text.push('[');
        for (i, dim) in self.shape().iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let _ = match *dim {
                ANY_DIM => write!(text, "{comma}?"),
                dim => write!(text, "{comma}{dim}"),
            };
        }
        text.push(']');
        text
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::Code;

    #[test]
    fn text_names_type_and_shape() {
        assert_eq!(Desc::new(dtype::F32, &[1, 128]).text(), "f32[1,128]");
        assert_eq!(Desc::new(dtype::ANY, &[-1, 3]).text(), "any[?,3]");
        assert_eq!(Desc::new(dtype::S32, &[]).text(), "s32[]");
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        let desc = Desc::new(dtype::F32, &[i64::MAX, i64::MAX]);
        assert_eq!(desc.check().unwrap_err().code(), Code::OutOfRange);
        let desc = Desc::new(dtype::F32, &[i64::MAX / 2]);
        assert_eq!(desc.check().unwrap_err().code(), Code::OutOfRange);
        assert_eq!(Desc::new(dtype::F32, &[i64::MAX, 0, 7]).check().unwrap().bytes().unwrap(), 0);
    }

    #[test]
    fn a_pattern_matches_what_it_leaves_open() {
        let pattern = Desc::new(dtype::ANY, &[-1, 8]);
        assert!(pattern.matches(&Desc::new(dtype::F32, &[3, 8])));
        assert!(!pattern.matches(&Desc::new(dtype::F32, &[3, 9])));
        assert!(!pattern.matches(&Desc::new(dtype::F32, &[8])));
    }
}
