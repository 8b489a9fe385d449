//! Which products there are algorithms for, and how they are done.

use crate::driver::Loaded;
use crate::objects::{Layout, Operation, Preference};
use crate::state::{INVALID_VALUE, NOT_SUPPORTED, Status, stop};
use std::ffi::c_void;
use std::hash::{DefaultHasher, Hash, Hasher};

const F32: i32 = 0;
const F16: i32 = 2;
const S8: i32 = 3;
const S32: i32 = 10;
const BF16: i32 = 14;

const COMPUTE_F32: i32 = 68;
const COMPUTE_S32: i32 = 72;
const COMPUTE_TF32: i32 = 77;

const NO_EPILOGUE: u32 = 1;
const BIAS: u32 = 4;

/// Parts of a sum may be added in their own type.
const COMPUTE_TYPE: u32 = 2;
/// Sums that are longer are made in parts.
const LONG: u64 = 16;

const MAGIC: u64 = 0x616c_676f_7269_7468;

/// What a program keeps of an algorithm.
pub type Algorithm = [u64; 8];

pub struct Problem<'a> {
    pub operation: &'a Operation,
    pub a: &'a Layout,
    pub b: &'a Layout,
    pub c: &'a Layout,
    pub d: &'a Layout,
}

/// Addresses, in the order of the call.
pub struct Operands {
    pub a: u64,
    pub b: u64,
    pub c: u64,
    pub d: u64,
    pub has_beta: bool,
    pub workspace: u64,
    pub workspace_bytes: u64,
}

impl Problem<'_> {
    /// M, N and K.
    fn sizes(&self) -> Result<[u64; 3], Status> {
        let size = |layout: &Layout, turned: bool| match turned {
            true => [layout.columns, layout.rows],
            false => [layout.rows, layout.columns],
        };
        let ([m, k], [other_k, n]) =
            (size(self.a, self.operation.transpose_a), size(self.b, self.operation.transpose_b));
        let all = [self.a, self.b, self.c, self.d];
        let fits = k == other_k && [m, n] == size(self.d, false) && self.c == self.d && m * n * k > 0;
        let is_stored = all
            .iter()
            .all(|layout| layout.ld >= layout.rows as i64 && layout.batch == self.d.batch && layout.batch > 0);
        let is_apart = self.d.batch == 1 || self.d.stride >= (self.d.ld * n as i64);
        if fits && is_stored && is_apart { Ok([m, n, k]) } else { Err(INVALID_VALUE) }
    }

    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let operation = Operation { bias: 0, ..self.operation.clone() };
        (&operation, self.a, self.b, self.c, self.d).hash(&mut hasher);
        hasher.finish()
    }

    /// An algorithm, and the bytes of workspace that it needs.
    pub fn propose(&self, preference: &Preference) -> Result<(Algorithm, u64), Status> {
        let [m, n, k] = self.sizes()?;
        let Operation { compute, scale, transpose_a, transpose_b, epilogue, bias } = *self.operation;
        if self.a.of != self.b.of {
            return Err(NOT_SUPPORTED);
        }
        let types = match (self.a.of, self.d.of, compute) {
            (F32, F32, COMPUTE_F32 | COMPUTE_TF32) | (F16 | BF16, F32, COMPUTE_F32) => scale == F32,
            (F16, F16, COMPUTE_F32) | (BF16, BF16, COMPUTE_F32) => scale == F32,
            (S8, S32, COMPUTE_S32) => scale == S32,
            _ => false,
        };
        let four = |size: u64| size.is_multiple_of(4);
        let layouts = [self.a, self.b, self.d];
        let is_fit_for_bytes = || {
            let is_stored = layouts.iter().all(|layout| four(layout.ld as u64));
            transpose_a
                && !transpose_b
                && four(m)
                && four(k)
                && is_stored
                && preference.alignment.iter().all(|&of| of >= 4)
        };
        if !types
            || !matches!(epilogue, NO_EPILOGUE | BIAS)
            || (self.a.of == S8 && (!is_fit_for_bytes() || epilogue == BIAS))
        {
            return Err(NOT_SUPPORTED);
        }
        if epilogue == BIAS && bias == 0 {
            return Err(INVALID_VALUE);
        }
        if preference.reductions & !COMPUTE_TYPE != 0 {
            stop("parts of sums may be rounded to the type of the result");
        }
        let parts = (4 * m * n * self.d.batch as u64).next_multiple_of(256);
        let is_split = k > LONG && preference.reductions == COMPUTE_TYPE && parts <= preference.workspace;
        let workspace = if is_split { parts } else { 0 };
        let [a, b, c, d] = preference.alignment.map(u64::from);
        Ok(([MAGIC, self.key(), workspace, a, b, c, d, 0], workspace))
    }

    /// Puts the product into a stream.
    pub fn enqueue(
        &self,
        loaded: &Loaded,
        algorithm: &Algorithm,
        operands: &Operands,
        stream: *mut c_void,
    ) -> Result<(), Status> {
        let [m, n, k] = self.sizes()?;
        if !loaded.is_current() {
            stop("a product in another context than its handle was made in");
        }
        let [magic, key, workspace, alignments @ .., _] = *algorithm;
        if magic != MAGIC || key != self.key() {
            stop("an algorithm that was not proposed for this product");
        }
        let Operands { a, b, c, d, has_beta, .. } = *operands;
        if [a, b, c, d]
            .iter()
            .zip(alignments)
            .any(|(address, alignment)| *address == 0 || !address.is_multiple_of(alignment))
        {
            stop(&format!("addresses {a:#x}, {b:#x}, {c:#x}, {d:#x}: alignments of {alignments:?} were promised"));
        }
        if operands.workspace_bytes < workspace
            || (workspace > 0 && (operands.workspace == 0 || !operands.workspace.is_multiple_of(256)))
        {
            return Err(INVALID_VALUE);
        }
        let bias = match self.operation.epilogue {
            BIAS if self.operation.bias == 0 => return Err(INVALID_VALUE),
            BIAS => self.operation.bias,
            _ => 0,
        };
        let flag = |flag: u64, is_set: bool| if is_set { flag } else { 0 };
        let flags = flag(1, self.operation.transpose_a) | flag(2, self.operation.transpose_b) | flag(4, has_beta);
        let flags = flags
            | flag(8, self.operation.compute == COMPUTE_TF32)
            | (self.a.of as u64) << 8
            | (self.d.of as u64) << 16;
        let (lda, ldb, ldd) = (self.a.ld as u64, self.b.ld as u64, self.d.ld as u64);
        let strides = [self.a, self.b, self.d].map(|layout| layout.stride as u64);
        // Less aligned numbers are for another kernel, which takes two launches.
        let is_halved = alignments[0] < 16 && n > 1 && !self.operation.transpose_b;
        let first = if is_halved { n / 2 } else { n };
        let size = |of| {
            if matches!(of, S8) {
                1
            } else if matches!(of, F16 | BF16) {
                2
            } else {
                4
            }
        };
        let (column_of_b, column) = (ldb * size(self.b.of), ldd * size(self.d.of));
        for (from, count) in [(0, first), (first, n - first)].into_iter().filter(|(_, count)| *count > 0) {
            let (b, c, d) = (b + from * column_of_b, c + from * column, d + from * column);
            let params = [a, b, c, d, bias, operands.workspace, workspace, m, count, k, lda, ldb, ldd];
            let mut all = [0; 18];
            all[..13].copy_from_slice(&params);
            all[13..].copy_from_slice(&[self.d.batch as u64, strides[0], strides[1], strides[2], flags]);
            loaded.launch(all, stream)?;
        }
        Ok(())
    }
}
