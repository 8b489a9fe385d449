//! The mapping of indices to offsets in operands: dimensions with a stride for each operand, as few as possible.
#![forbid(unsafe_code)]

use crate::base::Desc;
use crate::base::desc::MAX_RANK;

/// Sizes and strides, the last dimension first; strides are in elements. Dimensions that all operands walk through in
/// one stride are one.
#[derive(Clone, Copy, Debug)]
pub struct StrideWalk<const N: usize> {
    sizes: [usize; MAX_RANK],
    strides: [[i64; MAX_RANK]; N],
    rank: usize,
}

impl<const N: usize> StrideWalk<N> {
    /// One place.
    pub(in crate::device::cuda) fn new() -> StrideWalk<N> {
        StrideWalk { sizes: [1; MAX_RANK], strides: [[0; MAX_RANK]; N], rank: 0 }
    }

    /// A dimension in front of all others.
    pub fn push(&mut self, size: usize, strides: [i64; N]) {
        if size == 1 {
            return;
        }
        if let Some(last) = self.rank.checked_sub(1) {
            let of_last = self.sizes[last] as i64;
            if (0..N).all(|n| strides[n] == self.strides[n][last] * of_last) {
                self.sizes[last] *= size;
                return;
            }
        }
        self.sizes[self.rank] = size;
        (0..N).for_each(|n| self.strides[n][self.rank] = strides[n]);
        self.rank += 1;
    }

    /// Operands under an output, whose shapes are aligned at the last dimension; a dimension of 1 stretches.
    pub fn broadcast(operands: [&Desc; N], output: &Desc) -> StrideWalk<N> {
        let mut walk = StrideWalk::new();
        let mut steps = [1; N];
        for from_last in 0..output.shape().len() {
            let of = operands.map(|desc| size(desc, from_last));
            walk.push(size(output, from_last), std::array::from_fn(|n| if of[n] == 1 { 0 } else { steps[n] }));
            steps = std::array::from_fn(|n| steps[n] * of[n] as i64);
        }
        walk
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn sizes(&self) -> &[usize; MAX_RANK] {
        &self.sizes
    }

    pub fn strides(&self) -> &[[i64; MAX_RANK]; N] {
        &self.strides
    }

    /// Number of places.
    pub fn places(&self) -> usize {
        self.sizes[..self.rank].iter().product()
    }

    /// Takes a dimension out.
    pub fn without(mut self, index: usize) -> StrideWalk<N> {
        self.sizes.copy_within(index + 1.., index);
        self.strides.iter_mut().for_each(|strides| strides.copy_within(index + 1.., index));
        self.rank -= 1;
        self.sizes[self.rank] = 1;
        self
    }

    /// The same in units of so many elements, if that is possible: rows of them lie side by side in all operands, and
    /// begin at units.
    pub fn in_units(mut self, elements: usize) -> Option<StrideWalk<N>> {
        let step = elements as i64;
        let whole = self.rank > 0
            && self
                .strides
                .iter()
                .all(|strides| strides[0] == 1 && strides[1..self.rank].iter().all(|stride| stride % step == 0))
            && self.sizes[0].is_multiple_of(elements);
        if !whole {
            return None;
        }
        self.sizes[0] /= elements;
        for strides in &mut self.strides {
            strides[1..].iter_mut().for_each(|stride| *stride /= step);
        }
        Some(self)
    }
}

/// Size of the dimension that is `from_last` before the last one; 1 if there is none.
fn size(desc: &Desc, from_last: usize) -> usize {
    desc.shape().iter().rev().nth(from_last).map_or(1, |&size| size as usize)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::dtype;

    #[test]
    fn dimensions_in_one_stride_are_one() {
        let desc = |dims: &[i64]| Desc::new(dtype::F32, dims);
        let walk = StrideWalk::broadcast([&desc(&[2, 3, 4]), &desc(&[4])], &desc(&[2, 3, 4]));
        assert_eq!((walk.rank(), walk.places()), (2, 24));
        assert_eq!((&walk.sizes()[..2], walk.strides()[1][..2].to_vec()), (&[4, 6][..], vec![1, 0]));
        let walk = StrideWalk::broadcast([&desc(&[2, 1, 4]), &desc(&[3, 1])], &desc(&[2, 3, 4]));
        assert_eq!((walk.rank(), walk.strides()[0][..3].to_vec()), (3, vec![1, 0, 4]));
        assert_eq!(walk.strides()[1][..3], [0, 1, 0]);
    }

    #[test]
    fn units_need_rows_of_them() {
        let mut walk: StrideWalk<2> = StrideWalk::new();
        walk.push(8, [1, 1]);
        walk.push(3, [16, 8]);
        let units = walk.in_units(4).unwrap();
        assert_eq!((&units.sizes()[..2], units.strides()[0][..2].to_vec()), (&[2, 3][..], vec![1, 4]));
        assert!(walk.in_units(16).is_none());
        let mut turned: StrideWalk<2> = StrideWalk::new();
        turned.push(8, [3, 1]);
        assert!(turned.in_units(2).is_none());
    }
}
