//! Access to stripes of columns of an input and of an output, which may be the same memory: the counterpart of
//! `elements::Pairs` for consecutive elements.

use super::elements::{ElementPair, Pairs};
use crate::memory::{Element, Parts};
use crate::sync::Claim;
use std::marker::PhantomData;
use std::ops::Range;

/// An output seen as `outer` blocks of `len` rows of `inner` elements. An item is a stripe of at most WIDTH columns of
/// one block, all rows of it.
#[derive(Clone, Copy, Debug)]
pub struct ColumnStripes {
    pub outer: usize,
    pub len: usize,
    pub inner: usize,
}

/// Maximum number of columns in a stripe.
pub const WIDTH: usize = 64;

/// One stripe: `width` columns from offset `first` of the output, whose rows are `stride` elements apart.
#[derive(Clone, Copy, Debug)]
pub struct Stripe {
    pub first: usize,
    pub width: usize,
    pub len: usize,
    pub stride: usize,
}

impl ColumnStripes {
    /// Number of items.
    pub fn stretches(&self) -> usize {
        self.outer * self.inner.div_ceil(WIDTH)
    }

    /// The stripe with this number.
    pub fn stretch(&self, item: usize) -> Stripe {
        assert!(item < self.stretches());
        let per_block = self.inner.div_ceil(WIDTH);
        let (block, column) = (item / per_block, item % per_block * WIDTH);
        Stripe {
            first: block * self.len * self.inner + column,
            width: WIDTH.min(self.inner - column),
            len: self.len,
            stride: self.inner,
        }
    }

    /// Input and output, for a region whose items are stripes.
    pub fn divide<T: Element>(self, pairs: Pairs<'_, T, T>) -> Divided<'_, T> {
        assert!(pairs.addresses().2 >= self.outer * self.len * self.inner);
        Divided { columns: self, pairs }
    }
}

/// An input and an output divided into stripes.
#[derive(Debug)]
pub struct Divided<'a, T> {
    columns: ColumnStripes,
    pairs: Pairs<'a, T, T>,
}

// SAFETY: stripes share no element.
unsafe impl<'a, T: Element> Parts for Divided<'a, T> {
    type Part = Stretches<'a, T>;

    unsafe fn part(&self, claim: &Claim) -> Stretches<'a, T> {
        let Divided { columns, pairs } = self;
        assert!(claim.end() <= columns.stretches());
        let (x, y, _) = pairs.addresses();
        Stretches { columns: *columns, items: claim.begin()..claim.end(), x, y, _life: PhantomData }
    }
}

/// The stripes of a claim.
#[derive(Debug)]
pub struct Stretches<'a, T> {
    columns: ColumnStripes,
    items: Range<usize>,
    x: *const T,
    y: *mut T,
    _life: PhantomData<&'a mut [T]>,
}

impl<T: Element> Stretches<'_, T> {
    /// Calls `body` for each stripe, with its rows.
    pub fn for_each(self, mut body: impl FnMut(Stripe, &mut StripeRows<'_, T>)) {
        for item in self.items {
            let stretch = self.columns.stretch(item);
            // SAFETY: the stripe lies in the input and the output, whose size `divide` has compared; it is the claim's,
            // and stripes share no element.
            let mut rows = unsafe { StripeRows::new(self.x, self.y, stretch) };
            body(stretch, &mut rows);
        }
    }
}

/// The rows of a stripe.
#[derive(Debug)]
pub struct StripeRows<'a, T> {
    x: *const T,
    y: *mut T,
    stretch: Stripe,
    _life: PhantomData<&'a mut [T]>,
}

impl<T: Element> StripeRows<'_, T> {
    /// # Safety
    /// The stripe lies in the readable elements at `x` and the writable ones at `y`, identical in memory or disjoint.
    /// Nothing else writes or reads what is written meanwhile, and nothing writes what is read.
    unsafe fn new(x: *const T, y: *mut T, stretch: Stripe) -> Self {
        StripeRows { x, y, stretch, _life: PhantomData }
    }

    /// Row `i`: `width` elements.
    pub fn row(&mut self, i: usize) -> ElementPair<'_, T, T> {
        let Stripe { first, width, len, stride } = self.stretch;
        assert!(i < len);
        let at = first + i * stride;
        // SAFETY: in bounds and exclusive (`new`); borrowed from self for as long as the pair lives.
        unsafe { ElementPair::new(self.x.add(at), self.y.add(at), width) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn stretches_cover_each_element_once() {
        for (outer, len, inner) in
            [(1, 3, 1), (2, 5, 63), (3, 2, 64), (2, 4, 65), (1, 1, 200), (0, 3, 4), (3, 0, 4), (3, 4, 0)]
        {
            let columns = ColumnStripes { outer, len, inner };
            let mut seen = vec![0; outer * len * inner];
            for item in 0..columns.stretches() {
                let Stripe { first, width, len, stride } = columns.stretch(item);
                for i in 0..len {
                    seen[first + i * stride..][..width].iter_mut().for_each(|count| *count += 1);
                }
            }
            assert!(seen.iter().all(|&count| count == 1), "{columns:?}: {seen:?}");
        }
    }
}
