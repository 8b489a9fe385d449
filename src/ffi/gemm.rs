//! Standalone matrix products: sgemm and its integer forms, without an engine, on a pool given by the call.
//!
//! Chapter: Matrix products without an engine.

use super::argument::boolean;
use super::guard::guard;
use super::task;
use crate::abi::*;
use crate::base::{Error, Result};
use crate::kernel::vector::gemm::{self, GemmShape};
use crate::kernel::vector::int8::{self, Offset, Rule};
use crate::kernel::vector::micro::Scale;
use crate::kernel::vector::site::{Matrix, MatrixMut};
use crate::kernel::vector::standalone;

/// C = alpha * op(A) * op(B) + beta * C in f32, where op(A) is m x k and op(B) is k x n. With transpose_a = 1 A is
/// stored as k x m, with transpose_b = 1 B as n x k; otherwise they are 0. All matrices are row-major, with row strides
/// lda, ldb and ldc in elements. Any size may be 0, and a matrix without elements may be NULL. With beta = 0 C is not
/// read, with alpha = 0 or k = 0 A and B are not; NaN and infinity, in alpha and beta too, follow IEEE 754. C must not
/// overlap A or B.
///
/// The work runs on `pool`, or in the calling thread if pool is NULL. The bits of C depend on the arguments and the
/// instruction set, never on the pool. The second and later calls of a size allocate nothing: the library keeps scratch
/// memory for them, at most about a megabyte for each thread that was in such a call at once.
///
/// Thread safety: any thread, also inside tasks of the pool. Blocking: until C is written. Errors: INVALID_ARGUMENT
/// (WEIR_MAX_ISA too); OUT_OF_RANGE (a matrix larger than memory); RESOURCE_EXHAUSTED. On all of them C is untouched.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_sgemm(
    transpose_a: i32,
    transpose_b: i32,
    m: i64,
    n: i64,
    k: i64,
    alpha: f32,
    a: *const f32,
    lda: i64,
    b: *const f32,
    ldb: i64,
    beta: f32,
    c: *mut f32,
    ldc: i64,
    pool: *mut weir_threadpool,
) -> weir_status {
    guard("weir_sgemm", || {
        let sizes = GemmSizes::check(transpose_a, transpose_b, [m, n, k])?;
        let layout = sizes.layout([a.cast(), b.cast(), c.cast_const().cast()], [lda, ldb, ldc], [4, 4, 4])?;
        let GemmSizes { transpose_a, transpose_b, m, n, k } = sizes;
        // SAFETY: sizes, strides and NULL were checked; the rest is as documented.
        let (product, c) = unsafe {
            let product = gemm::GemmProduct {
                shape: GemmShape { m, n, k, transpose_a, transpose_b },
                a: layout.a.matrix(a),
                b: layout.b.matrix(b),
                scale: Scale { alpha, beta },
                bias: None,
                relu: false,
            };
            (product, MatrixMut::new(c, m, n, layout.c.stride))
        };
        // SAFETY: the caller's handle, as documented.
        let pool = unsafe { task::borrow_pool(pool) }?;
        standalone::f32(pool.as_deref(), &product, c)
    })
}

/// Integer GEMM: C = saturate(round(alpha * (op(A) - ao) * (op(B) - bo) + beta * C + offset)) with unsigned A, signed B
/// and 32-bit C. The zero points ao and bo are subtracted from every element of A and B. Sizes, transposes and strides
/// are those of weir_sgemm. `co` holds the offset, 1, n or m numbers according to `offsetc` (weir_gemm_offset_value). A
/// NULL co is an offset of 0.
///
/// The sum of products is exact for every k on every processor: nothing saturates or wraps on the way. With alpha and
/// beta 0 or 1 the rest is exact too. Otherwise it is computed in f64 as (alpha * sum + beta * C) + offset, each step
/// rounded to nearest even, and then rounded to the nearest integer, ties to even. Results beyond 32 bits become
/// INT32_MAX or INT32_MIN. With beta = 0 C is not read, with alpha = 0 or k = 0 A and B are not.
///
/// Thread safety: any thread, also inside tasks of the pool. Blocking: until C is written. Errors: as weir_sgemm, and
/// INVALID_ARGUMENT for an alpha or beta that is not finite. On all of them C is untouched.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_gemm_u8s8s32(
    transpose_a: i32,
    transpose_b: i32,
    offsetc: weir_gemm_offset,
    m: i64,
    n: i64,
    k: i64,
    alpha: f32,
    a: *const u8,
    lda: i64,
    ao: u8,
    b: *const i8,
    ldb: i64,
    bo: i8,
    beta: f32,
    c: *mut i32,
    ldc: i64,
    co: *const i32,
    pool: *mut weir_threadpool,
) -> weir_status {
    guard("weir_gemm_u8s8s32", || {
        let sizes = GemmSizes::check(transpose_a, transpose_b, [m, n, k])?;
        let a = A { data: a, signed: false, zero: i32::from(ao) };
        // SAFETY: the caller's pointers, as documented.
        unsafe { bytes(sizes, offsetc, alpha, a, lda, (b, ldb, bo), beta, (c, ldc), co, pool) }
    })
}

/// As weir_gemm_u8s8s32, with signed A.
///
/// Thread safety: any thread, also inside tasks of the pool. Blocking: until C is written. Errors: as
/// weir_gemm_u8s8s32.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_gemm_s8s8s32(
    transpose_a: i32,
    transpose_b: i32,
    offsetc: weir_gemm_offset,
    m: i64,
    n: i64,
    k: i64,
    alpha: f32,
    a: *const i8,
    lda: i64,
    ao: i8,
    b: *const i8,
    ldb: i64,
    bo: i8,
    beta: f32,
    c: *mut i32,
    ldc: i64,
    co: *const i32,
    pool: *mut weir_threadpool,
) -> weir_status {
    guard("weir_gemm_s8s8s32", || {
        let sizes = GemmSizes::check(transpose_a, transpose_b, [m, n, k])?;
        let a = A { data: a.cast(), signed: true, zero: i32::from(ao) };
        // SAFETY: the caller's pointers, as documented.
        unsafe { bytes(sizes, offsetc, alpha, a, lda, (b, ldb, bo), beta, (c, ldc), co, pool) }
    })
}

/// The left operand of an integer product.
struct A {
    data: *const u8,
    signed: bool,
    zero: i32,
}

/// # Safety
/// The pointers are as weir_gemm_u8s8s32 documents them.
#[expect(clippy::too_many_arguments, reason = "the arguments of BLAS")]
unsafe fn bytes(
    sizes: GemmSizes,
    offsetc: weir_gemm_offset,
    alpha: f32,
    a: A,
    lda: i64,
    (b, ldb, bo): (*const i8, i64, i8),
    beta: f32,
    (c, ldc): (*mut i32, i64),
    co: *const i32,
    pool: *mut weir_threadpool,
) -> Result<()> {
    let layout = sizes.layout([a.data, b.cast(), c.cast_const().cast()], [lda, ldb, ldc], [1, 1, 4])?;
    let GemmSizes { transpose_a, transpose_b, m, n, k } = sizes;
    // SAFETY: as demanded of the caller.
    let offset = unsafe { offset(offsetc, co, m, n) }?;
    let rule = Rule { alpha: finite(alpha, "alpha")?, beta: finite(beta, "beta")?, offset };
    // SAFETY: sizes, strides and NULL were checked; the rest is as demanded of the caller.
    let (product, c) = unsafe {
        let product = int8::Int8Product {
            m,
            n,
            k,
            a: layout.a.matrix(a.data),
            transpose_a,
            signed_a: a.signed,
            b: layout.b.matrix(b.cast::<u8>()),
            transpose_b,
            packed_b: None,
            zero_a: a.zero,
            zero_b: i32::from(bo),
            rule,
        };
        (product, MatrixMut::new(c, m, n, layout.c.stride))
    };
    // SAFETY: the caller's handle, as documented.
    let pool = unsafe { task::borrow_pool(pool) }?;
    standalone::bytes(pool.as_deref(), &product, c)
}

fn finite(value: f32, argument: &str) -> Result<f32> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(Error::invalid(format!("{argument} is {value}, expected a finite number: C holds integers")))
}

/// # Safety
/// `co` is NULL or has as many readable numbers as `offsetc` says, which stay the same during `'a`.
unsafe fn offset<'a>(offsetc: weir_gemm_offset, co: *const i32, m: usize, n: usize) -> Result<Offset<'a>> {
    use weir_gemm_offset_value::*;
    let numbers = match offsetc {
        x if x == WEIR_GEMM_OFFSET_FIXED as u32 => 1,
        x if x == WEIR_GEMM_OFFSET_ROW as u32 => n,
        x if x == WEIR_GEMM_OFFSET_COLUMN as u32 => m,
        other => {
            return Err(Error::invalid(format!(
                "offsetc is {other}, expected WEIR_GEMM_OFFSET_FIXED (1), _ROW (2) or _COLUMN (3)"
            )));
        }
    };
    if co.is_null() {
        return Ok(Offset::Fixed(0));
    }
    // SAFETY: not NULL, so readable as demanded of the caller.
    let numbers = unsafe { super::argument::array(co, numbers, "co") }?;
    Ok(match offsetc {
        x if x == WEIR_GEMM_OFFSET_FIXED as u32 => Offset::Fixed(numbers[0]),
        x if x == WEIR_GEMM_OFFSET_ROW as u32 => Offset::Row(numbers),
        _ => Offset::Column(numbers),
    })
}

/// Checked sizes of a product.
#[derive(Clone, Copy)]
struct GemmSizes {
    transpose_a: bool,
    transpose_b: bool,
    m: usize,
    n: usize,
    k: usize,
}

/// Checked matrices of a product, as they are stored.
struct CheckedMatrices {
    a: StoredMatrix,
    b: StoredMatrix,
    c: StoredMatrix,
}

impl GemmSizes {
    fn check(transpose_a: i32, transpose_b: i32, [m, n, k]: [i64; 3]) -> Result<GemmSizes> {
        let (transpose_a, transpose_b) = (boolean(transpose_a, "transpose_a")?, boolean(transpose_b, "transpose_b")?);
        let size = |value: i64, argument: &str| {
            usize::try_from(value).map_err(|_| Error::invalid(format!("{argument} is {value}, expected 0 or more")))
        };
        Ok(GemmSizes { transpose_a, transpose_b, m: size(m, "m")?, n: size(n, "n")?, k: size(k, "k")? })
    }

    /// Checks A, B and C: addresses, strides, and bytes of an element.
    fn layout(&self, data: [*const u8; 3], strides: [i64; 3], bytes: [usize; 3]) -> Result<CheckedMatrices> {
        let GemmSizes { transpose_a, transpose_b, m, n, k } = *self;
        let a = if transpose_a { (k, m, "m, as A is transposed") } else { (m, k, "k") };
        let b = if transpose_b { (n, k, "k, as B is transposed") } else { (k, n, "n") };
        let stored = |i: usize, names: [&str; 2], (rows, columns, why): (usize, usize, &str)| {
            StoredMatrix::check(names, data[i], [rows, columns], why, strides[i], bytes[i])
        };
        let layout = CheckedMatrices {
            a: stored(0, ["a", "lda"], a)?,
            b: stored(1, ["b", "ldb"], b)?,
            c: stored(2, ["c", "ldc"], (m, n, "n"))?,
        };
        for (operand, name) in [(&layout.a, "a"), (&layout.b, "b")] {
            if layout.c.overlaps(operand) {
                return Err(Error::invalid(format!("c overlaps {name}")));
            }
        }
        Ok(layout)
    }
}

/// A checked matrix in the caller's memory: `rows` times `width` bytes, `pitch` bytes apart.
struct StoredMatrix {
    address: usize,
    rows: usize,
    columns: usize,
    stride: usize,
    width: usize,
    pitch: usize,
}

impl StoredMatrix {
    fn check(
        [name, stride_name]: [&str; 2],
        data: *const u8,
        [rows, columns]: [usize; 2],
        why: &str,
        stride: i64,
        bytes: usize,
    ) -> Result<StoredMatrix> {
        let least = columns.max(1);
        let stride = usize::try_from(stride)
            .ok()
            .filter(|&stride| stride >= least)
            .ok_or_else(|| Error::invalid(format!("{stride_name} is {stride}, expected at least {least} ({why})")))?;
        let address = data as usize;
        if rows * usize::from(columns > 0) > 0 {
            if data.is_null() {
                return Err(Error::invalid(format!("{name} is NULL, but has {rows} x {columns} elements")));
            }
            if !address.is_multiple_of(bytes) {
                return Err(Error::invalid(format!("{name} is not aligned")));
            }
            let span = (rows - 1).checked_mul(stride).and_then(|last| last.checked_add(columns));
            let span =
                span.and_then(|elements| elements.checked_mul(bytes)).filter(|&span| span <= isize::MAX as usize);
            if span.and_then(|span| address.checked_add(span)).is_none() {
                return Err(Error::out_of_range(format!(
                    "{name} has {rows} rows, {stride_name} is {stride}: more than memory can hold"
                )));
            }
        }
        let (width, pitch) = (columns.saturating_mul(bytes), stride.saturating_mul(bytes));
        Ok(StoredMatrix { address, rows, columns, stride, width, pitch })
    }

    /// # Safety
    /// The matrix that was checked is readable, and stays the same during `'a`.
    unsafe fn matrix<'a, T>(&self, data: *const T) -> Matrix<'a, T> {
        // SAFETY: as demanded of the caller.
        unsafe { Matrix::new(data, self.rows, self.columns, self.stride) }
    }

    fn is_empty(&self) -> bool {
        self.rows == 0 || self.columns == 0
    }

    /// The first byte and the one after the last.
    fn span(&self) -> (usize, usize) {
        (self.address, self.address + (self.rows - 1) * self.pitch + self.width)
    }

    /// Whether the two certainly share an element. Two matrices with different row strides that may lie in each other's
    /// gaps are not reported.
    fn overlaps(&self, other: &StoredMatrix) -> bool {
        if self.is_empty() || other.is_empty() {
            return false;
        }
        let ((begin, end), (other_begin, other_end)) = (self.span(), other.span());
        if end <= other_begin || other_end <= begin {
            return false;
        }
        let dense = |matrix: &StoredMatrix| matrix.rows == 1 || matrix.pitch == matrix.width;
        match (dense(self), dense(other)) {
            (true, true) => true,
            (true, false) => other.touches(begin, end),
            (false, true) => self.touches(other_begin, other_end),
            (false, false) if self.pitch == other.pitch => {
                // Offset of the other matrix's rows within a row of this one.
                let shift = if other.address >= self.address {
                    (other.address - self.address) % self.pitch
                } else {
                    (self.pitch - (self.address - other.address) % self.pitch) % self.pitch
                };
                shift < self.width || shift + other.width > self.pitch
            }
            (false, false) => false,
        }
    }

    /// Whether any row contains a byte of `begin..end`.
    fn touches(&self, begin: usize, end: usize) -> bool {
        // The first row that ends after `begin`.
        let row = (begin + 1).saturating_sub(self.address + self.width).div_ceil(self.pitch);
        row < self.rows && self.address + row * self.pitch < end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(address: usize, rows: usize, columns: usize, stride: usize) -> StoredMatrix {
        StoredMatrix { address, rows, columns, stride, width: columns, pitch: stride }
    }

    /// Whether the two share a byte, checked byte by byte.
    fn share(a: &StoredMatrix, b: &StoredMatrix) -> bool {
        let bytes = |s: &StoredMatrix| -> Vec<usize> {
            (0..s.rows)
                .flat_map(|row| (0..s.columns).map(move |i| (row, i)))
                .map(|(row, i)| s.address + row * s.stride + i)
                .collect()
        };
        let b = bytes(b);
        bytes(a).iter().any(|byte| b.contains(byte))
    }

    #[test]
    fn overlap_is_found_and_never_imagined() {
        let mut found = 0;
        for distance in 0..60 {
            for (rows, columns, stride) in
                [(1, 1, 1), (3, 4, 4), (3, 2, 7), (4, 7, 10), (2, 3, 25), (0, 3, 3), (3, 0, 3)]
            {
                for (other_rows, other_columns, other_stride) in
                    [(1, 5, 5), (2, 3, 3), (3, 3, 7), (3, 2, 10), (2, 1, 25), (0, 1, 1)]
                {
                    let a = stored(100, rows, columns, stride);
                    let b = stored(70 + distance, other_rows, other_columns, other_stride);
                    let (said, truth) = (a.overlaps(&b), share(&a, &b));
                    assert_eq!(said, b.overlaps(&a));
                    assert!(truth || !said, "{distance}: {rows} x {columns} by {stride} imagined");
                    let dense = |s: &StoredMatrix| s.rows <= 1 || s.stride == s.columns;
                    if dense(&a) || dense(&b) || stride == other_stride {
                        assert_eq!(said, truth, "{distance}: {rows} x {columns} by {stride}");
                    }
                    found += usize::from(said);
                }
            }
        }
        assert!(found > 100);
    }
}
