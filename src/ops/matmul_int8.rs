//! Creates an int8 matrix product, see weir_matmul_int8_desc. Shapes are checked when it is enqueued or compiled. NULL
//! desc = 32-bit sums, no zero points. The kernel keeps desc->weights alive.
//!
//! Errors: INVALID_ARGUMENT (unknown flags or type, reserved not 0, a scale that is not finite, weights that are not
//! s8, are to be transposed or are of another engine's device); OUT_OF_RANGE (zero points).
//!
//! Chapter: Matrix products.
#![forbid(unsafe_code)]

use super::check::{flags, reserved};
use super::operator::{Operator, PackedShape, Weights, zeroed};
use super::signature;
use crate::abi::{weir_dtype, weir_packed_weights};
use crate::base::{Desc, Error, Result, desc::ANY_DIM, desc::MAX_RANK, dtype};

/// Flags of weir_matmul_int8_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_matmul_int8_flags {
    /// A is given as [K, M].
    WEIR_MATMUL_INT8_TRANSPOSE_A = 1,
    /// B is given as [N, K].
    WEIR_MATMUL_INT8_TRANSPOSE_B = 2,
    /// One more input, bias[N] of s32, is added to the sums.
    WEIR_MATMUL_INT8_BIAS = 4,
    /// The last input, scales[N] of f32, has a scale for each column, besides `scale`.
    WEIR_MATMUL_INT8_SCALES = 8,
}

/// int8 matrix product: C[..., M, N] = saturate(round(scale * scales[N] * ((A[..., M, K] - zero_a) * (B[K, N] -
/// zero_b) + bias[N])) + zero_c), with A of u8 or s8 and B of s8.
///
/// The sums of products are exact for every K on every processor, and then saturate at 32 bits. Without scales, and
/// with a scale of 1, the rest is exact too; otherwise it is computed in f64 and rounded to the nearest integer, ties
/// to even. A C of f32 is not rounded to an integer.
///
/// Inputs: A; B, unless there are packed `weights`; with WEIR_MATMUL_INT8_BIAS bias; with WEIR_MATMUL_INT8_SCALES
/// scales. Output: C.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_matmul_int8_desc {
    /// sizeof(weir_matmul_int8_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_matmul_int8_flags.
    pub flags: u64,
    /// The type of C: WEIR_S32 (also if it is 0), WEIR_F32, WEIR_S8 or WEIR_U8.
    pub dtype: weir_dtype,
    /// Finite; 0 = 1.
    pub scale: f32,
    /// Zero point of A, subtracted from each element; a value of its type.
    pub zero_a: i32,
    /// Zero point of B, subtracted from each element: -128 to 127.
    pub zero_b: i32,
    /// Zero point of C, added to each element at the end.
    pub zero_c: i32,
    /// Reserved, 0.
    pub reserved: u32,
    /// B, packed from s8, in place of the input; NULL = B is an input. Excludes WEIR_MATMUL_INT8_TRANSPOSE_B.
    pub weights: *mut weir_packed_weights,
}

/// `C[..., M, N] = saturate(round(scale * scales[N] * ((A[..., M, K] - zero_a) * (B[K, N] - zero_b) + bias[N])) +
/// zero_c)`, A of u8 or s8, B of s8, bias of s32. The leading dimensions of A become more rows. A transposed A is `[K,
/// M]` and has none; a transposed B is `[N, K]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatmulInt8 {
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub bias: bool,
    /// The last input has a scale for each column.
    pub scales: bool,
    pub scale: f32,
    pub zero_a: i32,
    pub zero_b: i32,
    pub zero_c: i32,
    /// The type of C.
    pub dtype: u32,
    /// Packed B instead of an input; its orientation was fixed when it was packed.
    pub packed: Option<PackedShape>,
}

impl MatmulInt8 {
    /// Number of inputs before the bias.
    pub fn operands(&self) -> usize {
        if self.packed.is_some() { 1 } else { 2 }
    }

    /// N, from B.
    pub fn width(&self, inputs: &[Desc]) -> i64 {
        match self.packed {
            Some(packed) => packed.n as i64,
            None => inputs[1].dims[if self.transpose_b { 0 } else { 1 }],
        }
    }
}

impl Operator for MatmulInt8 {
    type Desc = weir_matmul_int8_desc;
    const NAME: &'static str = "matmul_int8";
    const DEFAULT: Option<weir_matmul_int8_desc> = Some(zeroed());

    fn new(desc: &mut weir_matmul_int8_desc, packed: Option<PackedShape>) -> Result<MatmulInt8> {
        use weir_matmul_int8_flags::*;
        let known = WEIR_MATMUL_INT8_TRANSPOSE_A as u64
            | WEIR_MATMUL_INT8_TRANSPOSE_B as u64
            | WEIR_MATMUL_INT8_BIAS as u64
            | WEIR_MATMUL_INT8_SCALES as u64;
        let bits = flags(desc.flags, known, "desc->flags")?;
        let has = |flag: weir_matmul_int8_flags| bits & flag as u64 != 0;
        reserved(desc.reserved)?;
        if !desc.scale.is_finite() {
            return Err(Error::invalid(format!("desc->scale is {}, expected a finite number", desc.scale)));
        }
        for (name, value, least, most) in [("zero_a", desc.zero_a, -128, 255), ("zero_b", desc.zero_b, -128, 127)] {
            if !(least..=most).contains(&value) {
                return Err(Error::out_of_range(format!("desc->{name} is {value}, expected {least} to {most}")));
            }
        }
        if desc.dtype == dtype::ANY {
            desc.dtype = dtype::S32;
        }
        if ![dtype::S32, dtype::F32, dtype::S8, dtype::U8].contains(&desc.dtype) {
            let text = format!("desc->dtype is {}, expected the number of s32, f32, s8 or u8", desc.dtype);
            return Err(Error::invalid(text));
        }
        if packed.is_some() && has(WEIR_MATMUL_INT8_TRANSPOSE_B) {
            return Err(Error::invalid("desc->weights are packed, and WEIR_MATMUL_INT8_TRANSPOSE_B is set"));
        }
        if desc.scale == 0.0 {
            desc.scale = 1.0;
        }
        Ok(MatmulInt8 {
            transpose_a: has(WEIR_MATMUL_INT8_TRANSPOSE_A),
            transpose_b: has(WEIR_MATMUL_INT8_TRANSPOSE_B),
            bias: has(WEIR_MATMUL_INT8_BIAS),
            scales: has(WEIR_MATMUL_INT8_SCALES),
            scale: desc.scale,
            zero_a: desc.zero_a,
            zero_b: desc.zero_b,
            zero_c: desc.zero_c,
            dtype: desc.dtype,
            packed,
        })
    }

    fn weights(desc: &mut weir_matmul_int8_desc) -> Option<Weights<'_>> {
        Some(Weights { handle: &mut desc.weights, dtypes: &[dtype::S8] })
    }

    fn num_inputs(&self) -> usize {
        self.operands() + usize::from(self.bias) + usize::from(self.scales)
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let a = &inputs[0];
        if ![dtype::U8, dtype::S8].contains(&a.dtype) {
            return Err(signature::mismatch("input", 0, "u8 or s8 elements", a));
        }
        let values = if a.dtype == dtype::U8 { 0..=255 } else { -128..=127 };
        if !values.contains(&self.zero_a) {
            let (zero, name) = (self.zero_a, dtype::name(a.dtype));
            return Err(Error::invalid(format!("input 0: zero_a is {zero}, which is no {name}")));
        }
        let rank = if self.transpose_a { 2 } else { a.shape().len().max(2) };
        let of_k = if self.transpose_a { 0 } else { rank - 1 };
        let mut dims = [ANY_DIM; MAX_RANK];
        if let Some(packed) = self.packed {
            dims[of_k] = packed.k as i64;
        }
        // No allocation: this runs each time the kernel is enqueued.
        let (mut patterns, mut count) = ([Desc::new(a.dtype, &dims[..rank]); 4], self.operands());
        signature::check_fit("input", &patterns[..1], &inputs[..1])?;
        let k = a.dims[of_k];
        if self.packed.is_none() {
            patterns[1] = Desc::new(dtype::S8, &if self.transpose_b { [ANY_DIM, k] } else { [k, ANY_DIM] });
            signature::check_fit("input", &patterns[..2], &inputs[..2])?;
        }
        let n = self.width(inputs);
        for (has, dtype) in [(self.bias, dtype::S32), (self.scales, dtype::F32)] {
            if has {
                patterns[count] = Desc::new(dtype, &[n]);
                count += 1;
            }
        }
        signature::check_fit("input", &patterns[..count], inputs)?;
        let mut output = Desc { dtype: self.dtype, ..*a };
        if self.transpose_a {
            output.dims[0] = a.dims[1];
        }
        output.dims[rank - 1] = n;
        output.check_open()
    }
}
