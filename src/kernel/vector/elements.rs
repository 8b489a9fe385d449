//! The elements of inputs and of an output that go through one loop side by side, and may be the same memory: what
//! slices, of which one is mutable, cannot be.
//!
//! `Pairs` and `Beside` divide such an output among the claims of a region. A claim reads the elements of an input that
//! shares the output's memory at its own items only, and has no slice of them while it writes.

use super::convert::{self, Stored};
use super::isa::Isa;
use crate::base::{Error, Result};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bytes, Element, Parts, Shards, View, overlaps};
use crate::sync::Claim;
use std::marker::PhantomData;
use std::ops::Range;

/// An input and an output of as many elements, which are the same memory or have none in common.
#[derive(Debug)]
pub struct Pairs<'a, T, U> {
    x: *const T,
    y: Shards<'a, U>,
    _life: PhantomData<&'a [T]>,
}

// SAFETY: each claim reads and writes elements of its own.
unsafe impl<T: Sync, U: Send> Sync for Pairs<'_, T, U> {}

impl<'a, T: Element, U: Element> Pairs<'a, T, U> {
    /// Input 0 and the one output of a call.
    pub fn of(context: &'a KernelContext<'_>, outputs: Outputs<'a>) -> Result<Pairs<'a, T, U>> {
        let (x, y) = (&context.inputs()[0], outputs.only());
        check_in_place(context.inputs(), y.view(), |_| size_of::<T>() != size_of::<U>())?;
        let y = y.shards::<U>(1);
        assert!(x.bytes() / size_of::<T>() >= y.len(), "{} of {} elements", x.desc().text(), y.len());
        Ok(Pairs { x: Source::new(x).data, y, _life: PhantomData })
    }
}

// SAFETY: claims have elements of their own, of the output and of the input that may be the same memory.
unsafe impl<'a, T: Element, U: Element> Parts for Pairs<'a, T, U> {
    type Part = Pair<'a, T, U>;

    unsafe fn part(&self, claim: &Claim) -> Pair<'a, T, U> {
        let (begin, end) = (claim.begin(), claim.end());
        assert!(begin <= end && end <= self.y.len(), "items {begin}..{end} of {}", self.y.len());
        let (x, y) = (self.x.wrapping_add(begin), self.y.as_ptr().wrapping_add(begin));
        Pair { x, y, len: end - begin, _life: PhantomData }
    }
}

/// `len` elements to read at `x` and to write at `y`: the same ones, or none in common.
#[derive(Debug)]
pub struct Pair<'a, T, U> {
    x: *const T,
    y: *mut U,
    len: usize,
    _life: PhantomData<&'a mut [U]>,
}

impl<T: Element, U: Element> Pair<'_, T, U> {
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
fn check_in_place(inputs: &[View], output: &View, stretches: impl Fn(usize) -> bool) -> Result<()> {
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
#[derive(Debug)]
pub struct Source<'a, T> {
    data: *const T,
    /// Which elements may be read.
    window: Range<usize>,
    _life: PhantomData<&'a [T]>,
}

// SAFETY: as a shared slice of the window.
unsafe impl<T: Sync> Sync for Source<'_, T> {}

/// Where a row begins in a source, and whether its elements follow one another or are the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub at: usize,
    pub stretched: bool,
}

impl<'a, T: Element> Source<'a, T> {
    pub fn of(input: Bytes<'a>) -> Self {
        let elements = input.read::<T>();
        Source { data: elements.as_ptr(), window: 0..elements.len(), _life: PhantomData }
    }

    /// All elements of a tensor, which the caller reads only while nobody writes them.
    fn new(view: &'a View) -> Self {
        assert_eq!(view.desc().dtype, T::DTYPE);
        let data = view.data().cast::<T>().cast_const();
        assert!(data.is_aligned());
        Source { data, window: 0..view.bytes() / size_of::<T>(), _life: PhantomData }
    }

    /// The address of a row of `len` elements.
    pub fn row(&self, row: Row, len: usize) -> *const T {
        let Range { start, end } = self.window;
        let last = row.at.checked_add(if row.stretched { 1 } else { len });
        let fits = start <= row.at && last.is_some_and(|last| last <= end);
        assert!(len == 0 || fits, "{row:?} of {len} in {start}..{end}");
        self.data.wrapping_add(row.at)
    }

    /// The first element.
    fn one(&self, at: usize) -> T {
        // SAFETY: `row` has compared; the window is readable, and nobody writes it now.
        unsafe { self.row(Row { at, stretched: true }, 1).read() }
    }

    /// Copies a row.
    pub fn copy(&self, row: Row, to: &mut [T]) {
        if row.stretched {
            return to.fill(self.one(row.at));
        }
        // SAFETY: `row` has compared; the window is readable, and nobody else has `to`.
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

/// Two inputs and an output, which may be the memory of either.
#[derive(Debug)]
pub struct Beside<'a, T, U> {
    inputs: [Source<'a, T>; 2],
    /// Whether an input is the output's memory.
    same: [bool; 2],
    output: Shards<'a, U>,
}

impl<'a, T: Element, U: Element> Beside<'a, T, U> {
    /// The two inputs and the one output of a call. `stretches` says of an input that its elements do not lie as those
    /// of the output do: then it must be other memory.
    pub fn of(
        context: &'a KernelContext<'_>,
        outputs: Outputs<'a>,
        stretches: impl Fn(usize) -> bool,
    ) -> Result<Beside<'a, T, U>> {
        let (inputs, output) = ([&context.inputs()[0], &context.inputs()[1]], outputs.only());
        check_in_place(context.inputs(), output.view(), |i| size_of::<T>() != size_of::<U>() || stretches(i))?;
        let same = inputs.map(|input| input.data() == output.data() && input.bytes() > 0);
        Ok(Beside { inputs: inputs.map(Source::new), same, output: output.shards(1) })
    }
}

// SAFETY: claims have elements of their own, of the output and of inputs that are the same memory.
unsafe impl<'a, T: Element, U: Element> Parts for Beside<'a, T, U> {
    type Part = Sides<'a, T, U>;

    unsafe fn part(&self, claim: &Claim) -> Sides<'a, T, U> {
        let items = claim.begin()..claim.end();
        assert!(items.start <= items.end && items.end <= self.output.len(), "items {items:?} of {}", self.output.len());
        let inputs = [0, 1].map(|i| {
            let Source { data, window, .. } = &self.inputs[i];
            Source {
                data: *data,
                window: if self.same[i] { items.clone() } else { window.clone() },
                _life: PhantomData,
            }
        });
        Sides { inputs, data: self.output.as_ptr().wrapping_add(items.start), len: items.len(), _life: PhantomData }
    }
}

/// What a claim has of them: rows of the inputs to read, and elements of the output to write, which count from the
/// claim's first.
#[derive(Debug)]
pub struct Sides<'a, T, U> {
    inputs: [Source<'a, T>; 2],
    data: *mut U,
    len: usize,
    _life: PhantomData<&'a mut [U]>,
}

impl<'a, T: Element, U: Element> Sides<'a, T, U> {
    /// An input.
    pub fn input(&self, index: usize) -> &Source<'a, T> {
        &self.inputs[index]
    }

    /// The address of `len` elements from `at` on.
    pub fn address(&mut self, at: usize, len: usize) -> *mut U {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len), "{at} and {len} more of {}", self.len);
        self.data.wrapping_add(at)
    }

    /// Elements from `at` on, to be written; nothing is read meanwhile.
    pub fn slice(&mut self, at: usize, len: usize) -> &mut [U] {
        // SAFETY: `address` has compared, the elements are the claim's, and an input that is the same memory is
        // borrowed with them.
        unsafe { std::slice::from_raw_parts_mut(self.address(at, len), len) }
    }
}
