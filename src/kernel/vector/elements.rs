//! Elements of inputs and of an output that are processed in one loop and may share memory, which slices, one of them
//! mutable, cannot.
//!
//! `Pairs` and `Beside` divide such an output among the claims of a region. A claim reads an input that shares the
//! output's memory only at its own items, and holds no slice of it while it writes.

use super::convert::{self, Stored};
use super::isa::Isa;
use crate::base::{Error, Result};
use crate::kernel::{KernelContext, Outputs};
use crate::memory::{Bytes, Element, Parts, Shards, View, overlaps};
use crate::sync::Claim;
use std::marker::PhantomData;
use std::ops::Range;

/// An input and an output of the same length, identical in memory or disjoint.
#[derive(Debug)]
pub struct Pairs<'a, T, U> {
    x: *const T,
    y: Shards<'a, U>,
    /// Elements of an item.
    per_item: usize,
    _life: PhantomData<&'a [T]>,
}

// SAFETY: each claim reads and writes elements of its own.
unsafe impl<T: Sync, U: Send> Sync for Pairs<'_, T, U> {}

impl<'a, T: Element, U: Element> Pairs<'a, T, U> {
    /// Input 0 and the one output of a call; an item is an element.
    pub fn of(context: &'a KernelContext<'_>, outputs: Outputs<'a>) -> Result<Pairs<'a, T, U>> {
        Pairs::of_rows(context, outputs, 1)
    }

    /// Input 0 and the one output of a call. An item is `per_item` consecutive elements, which need each other. Other
    /// inputs are disjoint from the output.
    pub fn of_rows(context: &'a KernelContext<'_>, outputs: Outputs<'a>, per_item: usize) -> Result<Pairs<'a, T, U>> {
        let (x, y) = (&context.inputs()[0], outputs.only());
        check_in_place(context.inputs(), y.view(), |i| i > 0 || size_of::<T>() != size_of::<U>())?;
        let y = y.shards::<U>(1);
        assert!(x.bytes() / size_of::<T>() >= y.len(), "{} of {} elements", x.desc().text(), y.len());
        Ok(Pairs { x: ClaimInput::new(x).data, y, per_item, _life: PhantomData })
    }

    /// The addresses of the input and the output, and the number of elements.
    pub(super) fn addresses(&self) -> (*const T, *mut U, usize) {
        (self.x, self.y.as_ptr(), self.y.len())
    }
}

// SAFETY: claims have disjoint elements, of the output and of the input that may be the same memory.
unsafe impl<'a, T: Element, U: Element> Parts for Pairs<'a, T, U> {
    type Part = ElementPair<'a, T, U>;

    unsafe fn part(&self, claim: &Claim) -> ElementPair<'a, T, U> {
        let (items, all) = (claim.begin()..claim.end(), self.y.len());
        let end = items.end.checked_mul(self.per_item).filter(|&end| items.start <= items.end && end <= all);
        let Some(end) = end else { panic!("items {items:?} of {} elements of {all}", self.per_item) };
        let begin = items.start * self.per_item;
        let (x, y) = (self.x.wrapping_add(begin), self.y.as_ptr().wrapping_add(begin));
        ElementPair { x, y, len: end - begin, _life: PhantomData }
    }
}

/// `len` elements to read at `x` and to write at `y`: identical in memory or disjoint.
#[derive(Debug)]
pub struct ElementPair<'a, T, U> {
    x: *const T,
    y: *mut U,
    len: usize,
    _life: PhantomData<&'a mut [U]>,
}

impl<T: Element, U: Element> ElementPair<'_, T, U> {
    /// Two disjoint slices.
    pub fn apart<'c>(x: &'c [T], y: &'c mut [U]) -> ElementPair<'c, T, U> {
        assert_eq!(x.len(), y.len());
        ElementPair { x: x.as_ptr(), y: y.as_mut_ptr(), len: y.len(), _life: PhantomData }
    }

    pub fn num_elements(&self) -> usize {
        self.len
    }

    /// Addresses for a loop that reads each element, or block, before writing it.
    pub fn addresses(&mut self) -> (*const T, *mut U) {
        (self.x, self.y)
    }

    /// The elements to read, while nothing is written.
    pub fn x(&self) -> &[T] {
        // SAFETY: readable (`Pairs`), and an output that is the same memory is borrowed with them.
        unsafe { std::slice::from_raw_parts(self.x, self.len) }
    }

    /// The elements to write, while nothing is read.
    pub fn y(&mut self) -> &mut [U] {
        // SAFETY: writable (`Pairs`), and an input that is the same memory is borrowed with them.
        unsafe { std::slice::from_raw_parts_mut(self.y, self.len) }
    }

    /// Some of the elements.
    #[inline(always)]
    pub fn part(&mut self, at: Range<usize>) -> ElementPair<'_, T, U> {
        assert!(at.start <= at.end && at.end <= self.len, "{at:?} of {}", self.len);
        let (x, y) = (self.x.wrapping_add(at.start), self.y.wrapping_add(at.start));
        ElementPair { x, y, len: at.len(), _life: PhantomData }
    }

    /// Calls `body` for at most `len` elements at a time, with the number of the first.
    #[inline(always)]
    pub fn for_chunks(&mut self, len: usize, mut body: impl FnMut(usize, ElementPair<'_, T, U>)) {
        for begin in (0..self.len).step_by(len.max(1)) {
            body(begin, self.part(begin..begin.saturating_add(len.max(1)).min(self.len)));
        }
    }
}

impl<T: Element> ElementPair<'_, T, T> {
    /// One slice, read and written in place.
    pub fn in_place(y: &mut [T]) -> ElementPair<'_, T, T> {
        let address = y.as_mut_ptr();
        ElementPair { x: address, y: address, len: y.len(), _life: PhantomData }
    }

    /// Copies what is to be read to where it is written.
    pub fn copied(&mut self) -> &mut [T] {
        if !std::ptr::eq(self.x, self.y) {
            // SAFETY: readable and writable (`Pairs`).
            unsafe { std::ptr::copy(self.x, self.y, self.len) };
        }
        self.y()
    }

    /// Elements at these addresses.
    ///
    /// # Safety
    /// There are `len` to read at `x` and to write at `y`, identical in memory or disjoint, which nothing else uses in
    /// this life but for reading those that are disjoint.
    pub(super) unsafe fn new<'c>(x: *const T, y: *mut T, len: usize) -> ElementPair<'c, T, T> {
        ElementPair { x, y, len, _life: PhantomData }
    }
}

/// Refuses an output that shares some of its memory with an input, but is not the same memory element by element.
/// `stretches` tells whether an input is broadcast or otherwise laid out differently from the output.
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

/// The elements of an input that is read by pieces, and may share memory with an output.
#[derive(Debug)]
pub struct ClaimInput<'a, T> {
    data: *const T,
    /// The readable elements.
    window: Range<usize>,
    _life: PhantomData<&'a [T]>,
}

// SAFETY: as a shared slice of the window.
unsafe impl<T: Sync> Sync for ClaimInput<'_, T> {}

/// The position of a row in a source, and whether it is one element broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceRow {
    pub at: usize,
    pub stretched: bool,
}

impl<'a, T: Element> ClaimInput<'a, T> {
    pub fn of(input: Bytes<'a>) -> Self {
        let elements = input.read::<T>();
        ClaimInput { data: elements.as_ptr(), window: 0..elements.len(), _life: PhantomData }
    }

    /// All elements of a tensor, which the caller reads only while nothing writes them.
    fn new(view: &'a View) -> Self {
        assert_eq!(view.desc().dtype, T::DTYPE);
        let data = view.data().cast::<T>().cast_const();
        assert!(data.is_aligned());
        ClaimInput { data, window: 0..view.bytes() / size_of::<T>(), _life: PhantomData }
    }

    /// The address of a row of `len` elements.
    pub fn row(&self, row: SourceRow, len: usize) -> *const T {
        let Range { start, end } = self.window;
        let last = row.at.checked_add(if row.stretched { 1 } else { len });
        let fits = start <= row.at && last.is_some_and(|last| last <= end);
        assert!(len == 0 || fits, "{row:?} of {len} in {start}..{end}");
        self.data.wrapping_add(row.at)
    }

    /// The first element.
    fn one(&self, at: usize) -> T {
        // SAFETY: `row` has compared; the window is readable, and nothing writes it now.
        unsafe { self.row(SourceRow { at, stretched: true }, 1).read() }
    }

    /// Copies a row.
    pub fn copy(&self, row: SourceRow, to: &mut [T]) {
        if row.stretched {
            return to.fill(self.one(row.at));
        }
        // SAFETY: `row` has compared; the window is readable, and `to` is exclusive.
        unsafe { std::ptr::copy(self.row(row, to.len()), to.as_mut_ptr(), to.len()) }
    }
}

impl<T: Stored> ClaimInput<'_, T> {
    /// A row converted to f32.
    pub fn widen(&self, isa: Isa, row: SourceRow, to: &mut [f32]) {
        match row.stretched {
            _ if to.is_empty() => {}
            true => to.fill(self.one(row.at).widened()),
            // SAFETY: `row` has compared; the slice is gone before anything is written.
            false => convert::widen(isa, unsafe { std::slice::from_raw_parts(self.row(row, to.len()), to.len()) }, to),
        }
    }
}

/// Two inputs and an output, which may share memory with either.
#[derive(Debug)]
pub struct Beside<'a, T, U> {
    inputs: [ClaimInput<'a, T>; 2],
    /// Whether an input is the output's memory.
    same: [bool; 2],
    output: Shards<'a, U>,
}

impl<'a, T: Element, U: Element> Beside<'a, T, U> {
    /// The two inputs and the one output of a call. `stretches` tells whether an input is broadcast or otherwise laid
    /// out differently from the output: then it must be disjoint.
    pub fn of(
        context: &'a KernelContext<'_>,
        outputs: Outputs<'a>,
        stretches: impl Fn(usize) -> bool,
    ) -> Result<Beside<'a, T, U>> {
        let (inputs, output) = ([&context.inputs()[0], &context.inputs()[1]], outputs.only());
        check_in_place(context.inputs(), output.view(), |i| size_of::<T>() != size_of::<U>() || stretches(i))?;
        let same = inputs.map(|input| input.data() == output.data() && input.bytes() > 0);
        Ok(Beside { inputs: inputs.map(ClaimInput::new), same, output: output.shards(1) })
    }
}

// SAFETY: claims have disjoint elements, of the output and of inputs that are the same memory.
unsafe impl<'a, T: Element, U: Element> Parts for Beside<'a, T, U> {
    type Part = Sides<'a, T, U>;

    unsafe fn part(&self, claim: &Claim) -> Sides<'a, T, U> {
        let items = claim.begin()..claim.end();
        assert!(items.start <= items.end && items.end <= self.output.len(), "items {items:?} of {}", self.output.len());
        let inputs = [0, 1].map(|i| {
            let ClaimInput { data, window, .. } = &self.inputs[i];
            ClaimInput {
                data: *data,
                window: if self.same[i] { items.clone() } else { window.clone() },
                _life: PhantomData,
            }
        });
        Sides { inputs, data: self.output.as_ptr().wrapping_add(items.start), len: items.len(), _life: PhantomData }
    }
}

/// A claim's view: rows of the inputs for reading, and elements of the output for writing, counted from the claim's
/// first.
#[derive(Debug)]
pub struct Sides<'a, T, U> {
    inputs: [ClaimInput<'a, T>; 2],
    data: *mut U,
    len: usize,
    _life: PhantomData<&'a mut [U]>,
}

impl<'a, T: Element, U: Element> Sides<'a, T, U> {
    /// An input.
    pub fn input(&self, index: usize) -> &ClaimInput<'a, T> {
        &self.inputs[index]
    }

    /// The address of `len` elements from `at` on.
    pub fn address(&mut self, at: usize, len: usize) -> *mut U {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len), "{at} and {len} more of {}", self.len);
        self.data.wrapping_add(at)
    }

    /// Elements from `at` on, for writing; nothing is read meanwhile.
    pub fn slice(&mut self, at: usize, len: usize) -> &mut [U] {
        // SAFETY: `address` has compared, the elements are the claim's, and an input that is the same memory is
        // borrowed with them.
        unsafe { std::slice::from_raw_parts_mut(self.address(at, len), len) }
    }
}
