//! The elements of an input and of an output that go through one loop side by side, and may be the same memory: what
//! slices, of which one is mutable, cannot be.

use super::convert::{self, Stored};
use super::isa::Isa;
use crate::base::{Error, Result};
use crate::memory::{Element, View, overlaps};
use crate::sync::Claim;
use std::marker::PhantomData;

/// `len` elements to read at `x` and to write at `y`: the same ones, or none in common.
#[derive(Debug)]
pub struct Pair<'a, T, U> {
    x: *const T,
    y: *mut U,
    len: usize,
    _life: PhantomData<&'a mut [U]>,
}

impl<T: Element, U: Element> Pair<'_, T, U> {
    /// The elements that a claim of a region has, of views with as many elements as the region has items.
    pub fn part<'c>(x: &'c View, y: &'c View, claim: &'c mut Claim) -> Pair<'c, T, U> {
        let (begin, end) = (claim.begin(), claim.end());
        let fits = |view: &View, size: usize| view.bytes() / size >= end;
        assert!(begin <= end && fits(x, size_of::<T>()) && fits(y, size_of::<U>()), "items {begin}..{end}");
        assert_eq!((x.desc().dtype, y.desc().dtype), (T::DTYPE, U::DTYPE));
        let (x, y) = (x.data().cast::<T>().wrapping_add(begin), y.data().cast::<U>().wrapping_add(begin));
        assert!(x.is_aligned() && y.is_aligned());
        Pair { x, y, len: end - begin, _life: PhantomData }
    }

    /// A slice and another one.
    pub fn apart<'c>(x: &'c [T], y: &'c mut [U]) -> Pair<'c, T, U> {
        assert_eq!(x.len(), y.len());
        Pair { x: x.as_ptr(), y: y.as_mut_ptr(), len: y.len(), _life: PhantomData }
    }

    pub fn num_elements(&self) -> usize {
        self.len
    }

    /// Addresses for a loop that reads each element, or block of them, before it writes that.
    pub fn addresses(&mut self) -> (*const T, *mut U) {
        (self.x, self.y)
    }
}

impl<T: Element> Pair<'_, T, T> {
    /// A slice that is read and written.
    pub fn in_place(y: &mut [T]) -> Pair<'_, T, T> {
        let address = y.as_mut_ptr();
        Pair { x: address, y: address, len: y.len(), _life: PhantomData }
    }
}

/// Refuses an output that shares some of its memory with an input, but is not the same memory element by element.
/// `stretches` says of an input that its elements do not lie as those of the output do.
pub fn check_in_place(inputs: &[View], output: &View, stretches: impl Fn(usize) -> bool) -> Result<()> {
    let place = |view: &View| (view.data(), view.bytes());
    for (i, input) in inputs.iter().enumerate() {
        let same = input.data() == output.data() && input.bytes() == output.bytes() && !stretches(i);
        if !same && overlaps(place(input), place(output)) {
            return Err(Error::invalid(format!(
                "output 0 shares a part of its memory with input {i}, expected all or nothing"
            )));
        }
    }
    Ok(())
}

/// The elements of an input that is read by pieces, and may be the memory of an output.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a, T> {
    data: *const T,
    len: usize,
    _life: PhantomData<&'a [T]>,
}

// SAFETY: read only, but by the claim that writes the same elements.
unsafe impl<T: Sync> Sync for Source<'_, T> {}

/// Where a row begins in a source, and whether its elements follow one another or are the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub at: usize,
    pub stretched: bool,
}

impl<'a, T: Element> Source<'a, T> {
    pub fn of(view: &'a View) -> Self {
        assert_eq!(view.desc().dtype, T::DTYPE);
        let data = view.data().cast::<T>().cast_const();
        assert!(data.is_aligned());
        Source { data, len: view.bytes() / size_of::<T>(), _life: PhantomData }
    }

    /// The address of a row of `len` elements.
    pub fn row(&self, row: Row, len: usize) -> *const T {
        let end = row.at.checked_add(if row.stretched { 1 } else { len });
        assert!(len == 0 || end.is_some_and(|end| end <= self.len), "{row:?} of {len} in {}", self.len);
        self.data.wrapping_add(row.at)
    }

    /// The first element.
    fn one(&self, at: usize) -> T {
        // SAFETY: `row` has compared; readable during the call, and not written meanwhile.
        unsafe { self.row(Row { at, stretched: true }, 1).read() }
    }

    /// Copies a row.
    pub fn copy(&self, row: Row, to: &mut [T]) {
        if row.stretched {
            return to.fill(self.one(row.at));
        }
        // SAFETY: `row` has compared, and `to` is no part of a tensor that is written meanwhile.
        unsafe { std::ptr::copy(self.row(row, to.len()), to.as_mut_ptr(), to.len()) }
    }
}

impl<T: Stored> Source<'_, T> {
    /// A row as floats.
    pub fn widen(&self, isa: Isa, row: Row, to: &mut [f32]) {
        match row.stretched {
            _ if to.is_empty() => {}
            true => to.fill(self.one(row.at).widened()),
            // SAFETY: `row` has compared; the slice is gone before anything is written.
            false => convert::widen(isa, unsafe { std::slice::from_raw_parts(self.row(row, to.len()), to.len()) }, to),
        }
    }
}

/// The elements of an output that a claim has.
#[derive(Debug)]
pub struct Target<'a, T> {
    data: *mut T,
    len: usize,
    _life: PhantomData<&'a mut [T]>,
}

impl<'a, T: Element> Target<'a, T> {
    pub fn part(view: &'a View, claim: &'a mut Claim) -> Self {
        let shards = view.shards::<T>();
        assert!(claim.begin() <= claim.end() && claim.end() * size_of::<T>() <= view.bytes());
        Target {
            data: shards.as_ptr().wrapping_add(claim.begin()),
            len: claim.end() - claim.begin(),
            _life: PhantomData,
        }
    }

    /// The address of `len` elements from `at` on.
    pub fn address(&mut self, at: usize, len: usize) -> *mut T {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len), "{at} and {len} more of {}", self.len);
        self.data.wrapping_add(at)
    }

    /// Elements from `at` on, to be written while nobody reads the same memory.
    pub fn slice(&mut self, at: usize, len: usize) -> &mut [T] {
        // SAFETY: `address` has compared, and the elements are the claim's (`part`).
        unsafe { std::slice::from_raw_parts_mut(self.address(at, len), len) }
    }
}
