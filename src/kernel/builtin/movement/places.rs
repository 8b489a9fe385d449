//! Indices of elements, and walks through tensors.
#![forbid(unsafe_code)]

use crate::base::desc::MAX_RANK;
use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::levels::{self, LevelLoop};
use crate::memory::Bytes;

/// Time per index: what it selects may be anywhere in memory.
pub const INDEX_NS: f32 = 5.0;

/// A type of indices.
pub trait IndexType: Copy + Into<i64> + Sync {
    /// The place along a dimension of this size that a checked index names: below 0 it counts from the end.
    #[inline(always)]
    fn place(self, size: usize) -> usize {
        let index = self.into();
        (if index < 0 { index + size as i64 } else { index }) as usize
    }
}

impl IndexType for i32 {}
impl IndexType for i64 {}

/// Indices of either type.
#[derive(Clone, Copy, Debug)]
pub enum Indices<'a> {
    S32(&'a [i32]),
    S64(&'a [i64]),
}

impl<'a> Indices<'a> {
    pub fn of(input: Bytes<'a>) -> Result<Indices<'a>> {
        let count = input.desc().elements()?;
        Ok(match input.desc().dtype {
            dtype::S64 => Indices::S64(&input.read()[..count]),
            _ => Indices::S32(&input.read()[..count]),
        })
    }

    pub fn get(&self, at: usize) -> i64 {
        match self {
            Indices::S32(all) => all[at].into(),
            Indices::S64(all) => all[at],
        }
    }

    /// The place along a dimension of this size that a checked index names.
    #[inline(always)]
    pub fn place(&self, at: usize, size: usize) -> usize {
        self.get(at).place(size)
    }

    /// Refuses an index of input 1 outside of its dimension of input 0. They belong to the dimensions from `first` on
    /// in turn, `depth` of them.
    pub fn check(&self, table: &Desc, first: usize, depth: usize, from_end: bool) -> Result<()> {
        let sizes = &table.shape()[first..][..depth];
        let bad = match self {
            Indices::S32(all) => outside(all, sizes, from_end),
            Indices::S64(all) => outside(all, sizes, from_end),
        };
        let Some(at) = bad else { return Ok(()) };
        let size = sizes[at % depth];
        Err(Error::out_of_range(format!(
            "input 1: element {at} is {}, expected an index from {} to {} along axis {} of input 0, {}",
            self.get(at),
            if from_end { -size } else { 0 },
            size - 1,
            first + at % depth,
            table.text()
        )))
    }
}

/// Whether an index is less than the least or not less than the size.
struct AnyOutside<'a, I> {
    indices: &'a [I],
    least: i64,
    size: i64,
}

impl<I: Copy + Into<i64>> LevelLoop for AnyOutside<'_, I> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let bad = |index: i64| (index < self.least) | (index >= self.size);
        self.indices.iter().fold(false, |any, &index| any | bad(index.into()))
    }
}

/// The number of an index outside of its dimension.
fn outside<I: Copy + Into<i64>>(indices: &[I], sizes: &[i64], from_end: bool) -> Option<usize> {
    let bad = |index: I, size: i64| {
        let index: i64 = index.into();
        (index < if from_end { -size } else { 0 }) | (index >= size)
    };
    if let &[size] = sizes {
        // The first check is a loop without branches.
        let any =
            levels::up_to_avx2(Isa::best(), AnyOutside { indices, least: if from_end { -size } else { 0 }, size });
        return any.then(|| indices.iter().position(|&index| bad(index, size))).flatten();
    }
    indices.iter().zip(sizes.iter().cycle()).position(|(&index, &size)| bad(index, size))
}

/// Element strides of a dense tensor; arbitrary if it has no elements.
pub fn strides(desc: &Desc) -> [usize; MAX_RANK] {
    let (mut strides, mut step) = ([0; MAX_RANK], 1usize);
    for (stride, &dim) in strides.iter_mut().zip(desc.shape()).rev() {
        *stride = step;
        step = step.wrapping_mul(dim as usize);
    }
    strides
}

/// The elements of a shape one after the other, and where each lies by strides of its own.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    rank: usize,
    sizes: [usize; MAX_RANK],
    steps: [usize; MAX_RANK],
    at: [usize; MAX_RANK],
    pub offset: usize,
}

impl Walk {
    /// From an element of the shape, which has some, on.
    pub fn new(shape: &[i64], strides: &[usize], mut number: usize) -> Walk {
        let (rank, mut walk) = (shape.len(), Walk { rank: 0, sizes: [1; 8], steps: [0; 8], at: [0; 8], offset: 0 });
        walk.rank = rank;
        for i in (0..rank).rev() {
            (walk.sizes[i], walk.steps[i]) = (shape[i] as usize, strides[i]);
            walk.at[i] = number % walk.sizes[i];
            number /= walk.sizes[i];
            walk.offset += walk.at[i] * walk.steps[i];
        }
        walk
    }

    /// To the next element; behind the last one to the first.
    #[inline(always)]
    pub fn step(&mut self) {
        for i in (0..self.rank).rev() {
            self.at[i] += 1;
            self.offset += self.steps[i];
            if self.at[i] < self.sizes[i] {
                return;
            }
            self.offset -= self.sizes[i] * self.steps[i];
            self.at[i] = 0;
        }
    }

    /// The element's place along a dimension.
    pub fn at(&self, dimension: usize) -> usize {
        self.at[dimension]
    }
}
