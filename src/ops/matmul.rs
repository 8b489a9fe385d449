//! Creates a matrix product, see weir_matmul_desc. Shapes are checked when it is enqueued or compiled. NULL desc = no
//! flags. The kernel keeps desc->weights alive.
//!
//! Errors: INVALID_ARGUMENT (unknown flags or activation, reserved not 0, weights that are of s8, are to be transposed
//! or are of another engine's device).
//!
//! Chapter: Matrix products.
#![forbid(unsafe_code)]

use super::activation::{Activation, weir_activation};
use super::check::{flags, reserved};
use super::operator::{Operator, PackedShape, Weights, zeroed};
use super::signature;
use crate::abi::weir_packed_weights;
use crate::base::desc::{ANY_DIM, MAX_RANK};
use crate::base::{Desc, Error, Result, dtype};

/// Matrix product: C[..., M, N] = activation(A[..., M, K] * B[..., K, N] + bias[N] + addend[..., M, N]). A and B are
/// both of f32, f16 or bf16; C, bias and addend are of the same type, or of f32 with WEIR_MATMUL_F32_RESULT.
/// Accumulators are f32, rounded once at the end. Leading dimensions are aligned at the last one and broadcast: a
/// dimension of 1 is broadcast. In a graph, dimensions of the inputs of this and of weir's other kernels may be open
/// (WEIR_DIM_DYNAMIC): then the run checks whether they fit. Only the last dimension of the indices of
/// weir_gather_nd_desc and of WEIR_SCATTER_ND, which decides about ranks, is fixed.
///
/// Inputs: A; B, unless there are packed `weights`; with WEIR_MATMUL_BIAS bias; with WEIR_MATMUL_SUM addend. Output: C.
/// A B that is a constant of a graph is packed by compile, once for all kernels of a program with that constant.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_matmul_desc {
    /// sizeof(weir_matmul_desc) of the caller's header.
    pub struct_size: usize,
    /// OR of weir_matmul_flags.
    pub flags: u64,
    /// The function applied to each element of C at the end.
    pub activation: weir_activation,
    /// Reserved, 0.
    pub reserved: u32,
    /// B, packed from the type of A, in place of the input; NULL = B is an input. Excludes WEIR_MATMUL_TRANSPOSE_B: the
    /// orientation was fixed when the weights were packed.
    pub weights: *mut weir_packed_weights,
    /// A parameter of the activation; 0 if it has none.
    pub alpha: f32,
    /// A second one; 0 if it has none.
    pub beta: f32,
}

/// Flags of weir_matmul_desc.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_matmul_flags {
    /// A is given as [..., K, M].
    WEIR_MATMUL_TRANSPOSE_A = 1,
    /// B is given as [..., N, K].
    WEIR_MATMUL_TRANSPOSE_B = 2,
    /// A third input, bias[N], is added to each row.
    WEIR_MATMUL_BIAS = 4,
    /// The last input, of the shape of C, is added.
    WEIR_MATMUL_SUM = 8,
    /// C, bias and addend are f32 even if A and B are f16 or bf16.
    WEIR_MATMUL_F32_RESULT = 16,
    /// f32 factors may be rounded to TF32 (10 bits of fraction) before they are multiplied, where the device has units
    /// for it and is faster with them: on CUDA engines with cuBLASLt. No effect elsewhere. Without this flag f32
    /// products use all bits.
    WEIR_MATMUL_ALLOW_TF32 = 32,
}

/// `C[..., M, N] = activation(A[..., M, K] * B[..., K, N] + bias[N] + addend[..., M, N])`. The leading dimensions
/// broadcast. A transposed A is `[..., K, M]`, a transposed B `[..., N, K]`. A and B are of one type, f32, f16 or bf16;
/// C, the bias and the addend are of that type, or f32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matmul {
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub bias: bool,
    /// The last input, of the shape of C, is added.
    pub sum: bool,
    pub activation: Activation,
    /// C is f32 even if A and B are not.
    pub wide: bool,
    pub tf32: bool,
    /// Packed B instead of an input; its orientation was fixed when it was packed.
    pub packed: Option<PackedShape>,
}

/// Size of the leading dimension `from_last` before the last of these; 1 if there is none.
pub fn leading(desc: &Desc, from_last: usize) -> i64 {
    desc.shape().iter().rev().nth(2 + from_last).copied().unwrap_or(1)
}

/// The last two dimensions, in the order of the product.
pub fn sides(desc: &Desc, transposed: bool) -> (i64, i64) {
    let rank = desc.shape().len();
    let (rows, columns) = (desc.dims[rank - 2], desc.dims[rank - 1]);
    if transposed { (columns, rows) } else { (rows, columns) }
}

impl Matmul {
    /// The descriptor of B, also if B is packed.
    pub fn right(&self, inputs: &[Desc]) -> Desc {
        self.packed.map_or_else(|| inputs[1], |packed| packed.desc())
    }

    /// Number of inputs before the bias.
    pub fn operands(&self) -> usize {
        if self.packed.is_some() { 1 } else { 2 }
    }

    /// The type of A and B: that of packed weights, else that of the given A.
    pub fn element(&self, a: &Desc) -> u32 {
        match self.packed {
            Some(packed) => packed.dtype,
            None if [dtype::F16, dtype::BF16].contains(&a.dtype) => a.dtype,
            None => dtype::F32,
        }
    }
}

impl Operator for Matmul {
    type Desc = weir_matmul_desc;
    const NAME: &'static str = "matmul";
    const DEFAULT: Option<weir_matmul_desc> = Some(zeroed());

    fn new(desc: &mut weir_matmul_desc, packed: Option<PackedShape>) -> Result<Matmul> {
        use weir_matmul_flags::*;
        let known = WEIR_MATMUL_TRANSPOSE_A as u64
            | WEIR_MATMUL_TRANSPOSE_B as u64
            | WEIR_MATMUL_BIAS as u64
            | WEIR_MATMUL_SUM as u64
            | WEIR_MATMUL_F32_RESULT as u64
            | WEIR_MATMUL_ALLOW_TF32 as u64;
        let bits = flags(desc.flags, known, "desc->flags")?;
        let has = |flag: weir_matmul_flags| bits & flag as u64 != 0;
        reserved(desc.reserved)?;
        if packed.is_some() && has(WEIR_MATMUL_TRANSPOSE_B) {
            return Err(Error::invalid("desc->weights are packed, and WEIR_MATMUL_TRANSPOSE_B is set"));
        }
        Ok(Matmul {
            transpose_a: has(WEIR_MATMUL_TRANSPOSE_A),
            transpose_b: has(WEIR_MATMUL_TRANSPOSE_B),
            bias: has(WEIR_MATMUL_BIAS),
            sum: has(WEIR_MATMUL_SUM),
            activation: Activation::checked(desc.activation, desc.alpha, desc.beta)?,
            wide: has(WEIR_MATMUL_F32_RESULT),
            tf32: has(WEIR_MATMUL_ALLOW_TF32),
            packed,
        })
    }

    fn weights(desc: &mut weir_matmul_desc) -> Option<Weights<'_>> {
        Some(Weights { handle: &mut desc.weights, dtypes: &[dtype::F32, dtype::F16, dtype::BF16] })
    }

    fn num_inputs(&self) -> usize {
        self.operands() + usize::from(self.bias) + usize::from(self.sum)
    }

    fn dim_from(&self, inputs: &[Desc], _: usize, dim: usize) -> [Option<(usize, usize)>; 2] {
        let (a, b) = (&inputs[0], &self.right(inputs));
        let rank = a.shape().len();
        let from = match () {
            // One B for all: what comes before the columns is of A.
            () if b.rank != 2 || dim + 2 == rank && self.transpose_a => None,
            () if dim + 1 < rank => Some((0, dim)),
            () if self.packed.is_some() => None,
            () => Some((1, if self.transpose_b { 0 } else { 1 })),
        };
        [from, None]
    }

    fn output(&self, inputs: &[Desc]) -> Result<Desc> {
        let of = self.element(&inputs[0]);
        let of_c = if self.wide { dtype::F32 } else { of };
        // A matrix of any batch.
        let pattern = |desc: &Desc, first: i64, second: i64, transposed: bool| {
            let mut dims = [ANY_DIM; MAX_RANK];
            let rank = desc.shape().len().max(2);
            (dims[rank - 2], dims[rank - 1]) = if transposed { (second, first) } else { (first, second) };
            Desc::new(of, &dims[..rank])
        };
        let k = self.packed.map_or(ANY_DIM, |packed| packed.k as i64);
        // No allocation: this runs each time the kernel is enqueued.
        let (mut patterns, mut count) = ([inputs[0]; 4], self.operands());
        patterns[0] = pattern(&inputs[0], ANY_DIM, k, self.transpose_a);
        signature::check_fit("input", &patterns[..1], &inputs[..1])?;
        let (m, k) = sides(&inputs[0], self.transpose_a);
        if self.packed.is_none() {
            patterns[1] = pattern(&inputs[1], k, ANY_DIM, self.transpose_b);
            signature::check_fit("input", &patterns[..2], &inputs[..2])?;
        }
        let (a, b) = (inputs[0], self.right(inputs));
        let mut output = if a.rank >= b.rank { a } else { b };
        let rank = output.shape().len();
        for i in 0..rank - 2 {
            output.dims[rank - 3 - i] = match (leading(&a, i), leading(&b, i)) {
                (a, b) if a == b => a,
                (1, other) | (other, 1) | (ANY_DIM, other) | (other, ANY_DIM) => other,
                _ => {
                    let expected = format!("leading dimensions that broadcast with {}", a.text());
                    return Err(signature::mismatch("input", 1, &expected, &b));
                }
            };
        }
        let n = sides(&b, self.transpose_b).1;
        (output.dtype, output.dims[rank - 2], output.dims[rank - 1]) = (of_c, m, n);
        if self.bias {
            patterns[count] = Desc::new(of_c, &[n]);
            count += 1;
        }
        if self.sum {
            patterns[count] = output;
            count += 1;
        }
        signature::check_fit("input", &patterns[..count], inputs)?;
        output.check_open()
    }
}
