//! The environment of a product: matrices in memory of the caller's, and a site with threads and scratch memory.

use crate::base::Result;
use crate::kernel::KernelContext;
use crate::memory::{ALIGNMENT, BytesMut, Element};
use crate::sync::Claim;
use crate::threadpool::Span;
use std::marker::PhantomData;

/// A row-major matrix whose rows are `stride` elements apart.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    data: *const T,
    rows: usize,
    columns: usize,
    stride: usize,
    _life: PhantomData<&'a [T]>,
}

// SAFETY: as a shared slice.
unsafe impl<T: Sync> Sync for Matrix<'_, T> {}

impl<'a, T> Matrix<'a, T> {
    /// # Safety
    /// `data` has `rows` rows of `columns` readable elements, `stride` apart, which stay the same during `'a`; any
    /// pointer if there are no elements.
    pub unsafe fn new(data: *const T, rows: usize, columns: usize, stride: usize) -> Matrix<'a, T> {
        debug_assert!(stride >= columns);
        Matrix { data, rows, columns, stride, _life: PhantomData }
    }

    /// Consecutive rows.
    pub fn dense(data: &'a [T], rows: usize, columns: usize) -> Matrix<'a, T> {
        assert!(data.len() >= rows * columns, "{} elements for {rows} x {columns}", data.len());
        Matrix { data: data.as_ptr(), rows, columns, stride: columns, _life: PhantomData }
    }

    /// Whether it is `rows` x `columns`, or the transpose of that.
    pub fn holds(&self, rows: usize, columns: usize, transposed: bool) -> bool {
        let shape = if transposed { (columns, rows) } else { (rows, columns) };
        (self.rows, self.columns) == shape
    }

    pub fn stride(&self) -> usize {
        self.stride
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows that are `stride` apart.
    pub fn apart(data: &'a [T], rows: usize, columns: usize, stride: usize) -> Matrix<'a, T> {
        let elements = if rows == 0 { 0 } else { (rows - 1) * stride + columns };
        assert!(stride >= columns && data.len() >= elements, "{} elements for {rows} x {columns}", data.len());
        Matrix { data: data.as_ptr(), rows, columns, stride, _life: PhantomData }
    }

    /// The elements of a row.
    pub fn row(&self, row: usize) -> &'a [T] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        if self.columns == 0 {
            return &[];
        }
        // SAFETY: a row of the matrix, readable as `new` demands.
        unsafe { std::slice::from_raw_parts(self.data.add(row * self.stride), self.columns) }
    }

    /// A single column without gaps, as a row.
    pub fn as_row(&self) -> Self {
        assert!(self.columns == 1 && self.stride == 1, "{} columns, {} apart", self.columns, self.stride);
        Matrix { rows: 1, columns: self.rows, stride: self.rows, ..*self }
    }

    /// Whether a predicate holds for all elements of a matrix of this shape.
    pub fn all(&self, shape: (usize, usize), so: impl Fn(T) -> bool) -> bool
    where
        T: Copy,
    {
        assert!(self.holds(shape.0, shape.1, false));
        // Strips are examined without an early exit: loops without a branch are fast.
        const STRIP: usize = 512;
        let strip = |elements: &[T]| elements.iter().fold(true, |all, &element| all & so(element));
        let all = |elements: &[T]| elements.chunks(STRIP).all(strip);
        if self.rows > 0 && self.stride == self.columns {
            // SAFETY: rows without gaps, readable as `new` demands.
            return all(unsafe { std::slice::from_raw_parts(self.data, self.rows * self.columns) });
        }
        (0..self.rows).all(|row| all(self.row(row)))
    }

    /// The address of an element.
    ///
    /// # Safety
    /// The element exists, or the address is not used.
    pub unsafe fn at(&self, row: usize, column: usize) -> *const T {
        self.data.wrapping_add(row * self.stride + column)
    }
}

/// As `Matrix`, for the result: pieces of a region write disjoint elements. A product takes ownership of it.
#[derive(Debug)]
pub struct MatrixMut<'a, T> {
    data: *mut T,
    rows: usize,
    columns: usize,
    stride: usize,
    _life: PhantomData<&'a mut [T]>,
}

// SAFETY: claims of a region are disjoint, and so are the elements that they write.
unsafe impl<T: Send> Sync for MatrixMut<'_, T> {}

impl<'a, T: Element> MatrixMut<'a, T> {
    /// Consecutive rows that fill the beginning of an output.
    pub fn output(output: BytesMut<'a>, rows: usize, columns: usize) -> Self {
        let elements = output.shards::<T>(1);
        assert!(elements.len() >= rows * columns, "{} elements for {rows} x {columns}", elements.len());
        MatrixMut { data: elements.as_ptr(), rows, columns, stride: columns, _life: PhantomData }
    }
}

impl<'a, T> MatrixMut<'a, T> {
    /// Consecutive rows.
    pub fn dense(data: &'a mut [T], rows: usize, columns: usize) -> Self {
        assert!(data.len() >= rows * columns, "{} elements for {rows} x {columns}", data.len());
        MatrixMut { data: data.as_mut_ptr(), rows, columns, stride: columns, _life: PhantomData }
    }

    /// # Safety
    /// As `Matrix::new`, and the elements are exclusive during `'a`. They may be uninitialised.
    pub unsafe fn new(data: *mut T, rows: usize, columns: usize, stride: usize) -> Self {
        debug_assert!(stride >= columns);
        MatrixMut { data, rows, columns, stride, _life: PhantomData }
    }

    pub fn holds(&self, rows: usize, columns: usize) -> bool {
        (self.rows, self.columns) == (rows, columns)
    }

    /// Result `number` of `count` results of the same shape, one below the other.
    ///
    /// # Safety
    /// Nothing else writes the elements that are written through this meanwhile.
    pub(super) unsafe fn one_of(&self, number: usize, count: usize) -> Self {
        assert!(number < count && self.rows.is_multiple_of(count), "result {number} of {count} in {} rows", self.rows);
        let rows = self.rows / count;
        MatrixMut { data: self.data.wrapping_add(number * rows * self.stride), rows, ..*self }
    }

    /// A single column without gaps, as a row.
    pub fn as_row(self) -> Self {
        assert!(self.columns == 1 && self.stride == 1, "{} columns, {} apart", self.columns, self.stride);
        MatrixMut { rows: 1, columns: self.rows, stride: self.rows, ..self }
    }

    pub fn data(&self) -> *mut T {
        self.data
    }

    pub fn stride(&self) -> usize {
        self.stride
    }
}

/// The place where a product is computed: threads and scratch memory.
///
/// # Safety
/// Claims are as `Claim::new` demands, and each item is in one; slots have separate scratch memory of this size,
/// aligned to `memory::ALIGNMENT` and initialised.
pub unsafe trait Site: Sync {
    /// A region whose slots have scratch memory.
    fn parallel_for(&self, span: &Span, body: &(dyn Fn(Claim) -> Result<()> + Sync)) -> Result<()>;

    /// Bytes of scratch memory in a slot.
    fn scratch_bytes(&self) -> usize;

    /// The scratch memory of a slot.
    fn scratch(&self, slot: usize) -> *mut u8;
}

// SAFETY: guaranteed by the maker of the context.
unsafe impl Site for KernelContext<'_> {
    fn parallel_for(&self, span: &Span, body: &(dyn Fn(Claim) -> Result<()> + Sync)) -> Result<()> {
        KernelContext::parallel_for(self, span, body)
    }

    fn scratch_bytes(&self) -> usize {
        KernelContext::scratch_bytes(self)
    }

    fn scratch(&self, slot: usize) -> *mut u8 {
        KernelContext::scratch(self, slot)
    }
}

/// Checks that a slot's scratch memory is large enough for a product.
pub(super) fn check_scratch(site: &dyn Site, bytes: usize) {
    assert!(site.scratch_bytes() >= bytes, "{bytes} bytes of scratch memory in {}", site.scratch_bytes());
}

/// Scratch memory for a product in the calling thread.
pub(super) struct Alone<'a> {
    scratch: *mut u8,
    bytes: usize,
    _life: PhantomData<&'a mut [u8]>,
}

// SAFETY: the address of memory that the only claim of a product uses.
unsafe impl Sync for Alone<'_> {}

impl<'a> Alone<'a> {
    /// The memory is aligned to `memory::ALIGNMENT`.
    pub(super) fn new(memory: &'a mut [u8]) -> Alone<'a> {
        assert!(memory.is_empty() || (memory.as_ptr() as usize).is_multiple_of(ALIGNMENT));
        Alone { scratch: memory.as_mut_ptr(), bytes: memory.len(), _life: PhantomData }
    }
}

// SAFETY: one claim has all items, and the only slot.
unsafe impl Site for Alone<'_> {
    fn parallel_for(&self, span: &Span, body: &(dyn Fn(Claim) -> Result<()> + Sync)) -> Result<()> {
        // SAFETY: the only claim.
        body(unsafe { Claim::new(0, span.items, 0) })
    }

    fn scratch_bytes(&self) -> usize {
        self.bytes
    }

    fn scratch(&self, _slot: usize) -> *mut u8 {
        self.scratch
    }
}
