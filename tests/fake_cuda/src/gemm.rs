//! Matrix products, for a library that has the driver do them as one function. Matrices are column by column:
//! D = op(A) op(B) + beta C + bias, batch by batch.

use crate::access::Memory;
use crate::builtin::Params;
use crate::modules::Fault;
use crate::schedule::Origin;
use crate::status::Code;

/// Bytes of each parameter: `Call` in their order.
pub const PARAMS: &[usize] = &[8; 18];

/// Types of elements.
const F32: u64 = 0;
const F16: u64 = 2;
const S8: u64 = 3;
const S32: u64 = 10;
const BF16: u64 = 14;

/// What `flags` has.
const TRANSPOSE_A: u64 = 1;
const TRANSPOSE_B: u64 = 2;
const BETA: u64 = 4;
/// Factors lose bits first.
const TF32: u64 = 8;

#[derive(Clone, Copy)]
struct Call {
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    /// 0 = none.
    bias: u64,
    workspace: u64,
    workspace_bytes: u64,
    m: usize,
    n: usize,
    k: usize,
    lda: usize,
    ldb: usize,
    ldd: usize,
    batch: u64,
    /// In elements.
    stride_a: u64,
    stride_b: u64,
    stride_d: u64,
    /// Flags; from bit 8 on the type of A and B, from bit 16 on that of C and D.
    flags: u64,
}

fn illegal(why: String) -> Fault {
    (Code::ILLEGAL_ADDRESS, why)
}

fn bytes_of(of: u64) -> usize {
    match of {
        S8 => 1,
        F16 | BF16 => 2,
        _ => 4,
    }
}

fn from_f16(bits: u16) -> f64 {
    let (sign, exponent, fraction) =
        (if bits >> 15 == 1 { -1.0 } else { 1.0 }, bits >> 10 & 31, f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    }
}

fn to_f16(x: f32) -> u16 {
    let sign = ((x.to_bits() >> 16) & 0x8000) as u16;
    if x.is_nan() {
        return sign | 0x7e00;
    }
    // In units of the last place, which is no less than that of the numbers next to zero.
    let x = f64::from(x.abs());
    let exponent = ((x.to_bits() >> 52) as i32 - 1023).max(-14);
    let units = (x / 2f64.powi(exponent - 10)).round_ties_even();
    match units * 2f64.powi(exponent - 10) {
        rounded if rounded >= 65536.0 => sign | 0x7c00,
        _ if units < 1024.0 => sign | units as u16,
        // A carry into the exponent is right as it is.
        _ => sign | ((((exponent + 14) as u16) << 10) + units as u16),
    }
}

fn to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() { (bits >> 16) as u16 | 0x40 } else { ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16 }
}

/// A number of 19 bits, halfway cases away from zero.
fn to_tf32(x: f32) -> f32 {
    if x.is_finite() { f32::from_bits((x.to_bits() + 0x1000) & !0x1fff) } else { x }
}

/// The columns of a matrix, one after the other.
fn read(memory: &mut Memory, of: u64, start: u64, rows: usize, columns: usize, ld: usize) -> Result<Vec<f64>, Fault> {
    let size = bytes_of(of);
    let mut numbers = Vec::with_capacity(rows * columns);
    for column in 0..columns {
        let at = memory.at(start + (column * ld * size) as u64, (rows * size) as u64, false).map_err(illegal)?;
        // SAFETY: so many bytes of a live block are there.
        let bytes = unsafe { std::slice::from_raw_parts(at, rows * size) };
        numbers.extend(bytes.chunks_exact(size).map(|bytes| match (of, bytes) {
            (S8, &[byte]) => f64::from(byte as i8),
            (F16, &[low, high]) => from_f16(u16::from_le_bytes([low, high])),
            (BF16, &[low, high]) => f64::from(f32::from_le_bytes([0, 0, low, high])),
            (S32, &[a, b, c, d]) => f64::from(i32::from_le_bytes([a, b, c, d])),
            (F32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            _ => f64::NAN,
        }));
    }
    Ok(numbers)
}

fn write(memory: &mut Memory, of: u64, start: u64, column: &[f64]) -> Result<(), Fault> {
    let size = bytes_of(of);
    let mut bytes = Vec::with_capacity(column.len() * size);
    for &x in column {
        match of {
            S32 => bytes.extend((x as i64 as i32).to_le_bytes()),
            F16 => bytes.extend(to_f16(x as f32).to_le_bytes()),
            BF16 => bytes.extend(to_bf16(x as f32).to_le_bytes()),
            _ => bytes.extend((x as f32).to_le_bytes()),
        }
    }
    memory.write(start, &bytes).map_err(illegal)
}

impl Call {
    fn new(params: &Params<'_>) -> Call {
        let size = |index: usize| params.long(index) as usize;
        Call {
            a: params.long(0),
            b: params.long(1),
            c: params.long(2),
            d: params.long(3),
            bias: params.long(4),
            workspace: params.long(5),
            workspace_bytes: params.long(6),
            m: size(7),
            n: size(8),
            k: size(9),
            lda: size(10),
            ldb: size(11),
            ldd: size(12),
            batch: params.long(13),
            stride_a: params.long(14),
            stride_b: params.long(15),
            stride_d: params.long(16),
            flags: params.long(17),
        }
    }

    fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    fn factor(
        &self,
        memory: &mut Memory,
        start: u64,
        turned: bool,
        size: [usize; 2],
        ld: usize,
    ) -> Result<Vec<f64>, Fault> {
        let [rows, columns] = if turned { [size[1], size[0]] } else { size };
        let mut numbers = read(memory, self.flags >> 8 & 255, start, rows, columns, ld)?;
        if self.has(TF32) {
            numbers.iter_mut().for_each(|x| *x = f64::from(to_tf32(*x as f32)));
        }
        Ok(numbers)
    }

    fn run(&self, memory: &mut Memory) -> Result<(), Fault> {
        let (Call { m, n, k, .. }, from, to) = (*self, self.flags >> 8 & 255, self.flags >> 16 & 255);
        let (turn_a, turn_b) = (self.has(TRANSPOSE_A), self.has(TRANSPOSE_B));
        if self.workspace_bytes > 0 {
            // Parts of sums, of which the contents are nobody's business: that they are there is.
            memory.at(self.workspace, self.workspace_bytes, true).map_err(illegal)?;
        }
        let bias = if self.bias == 0 { Vec::new() } else { read(memory, to, self.bias, m, 1, m)? };
        for matrix in 0..self.batch {
            let start = |start: u64, stride: u64, of: u64| start + matrix * stride * bytes_of(of) as u64;
            let a = self.factor(memory, start(self.a, self.stride_a, from), turn_a, [m, k], self.lda)?;
            let b = self.factor(memory, start(self.b, self.stride_b, from), turn_b, [k, n], self.ldb)?;
            let c = match self.has(BETA) {
                true => read(memory, to, start(self.c, self.stride_d, to), m, n, self.ldd)?,
                false => Vec::new(),
            };
            for column in 0..n {
                let mut sums = vec![0.0f64; m];
                for i in (0..k).rev() {
                    let factor = if turn_b { b[i * n + column] } else { b[column * k + i] };
                    for (row, sum) in sums.iter_mut().enumerate() {
                        let product = factor * if turn_a { a[row * k + i] } else { a[i * m + row] };
                        *sum = if from == S8 { *sum + product } else { f64::from((*sum + product) as f32) };
                    }
                }
                for (row, sum) in sums.iter_mut().enumerate() {
                    *sum += c.get(column * m + row).copied().unwrap_or(0.0);
                    *sum += bias.get(row).copied().unwrap_or(0.0);
                }
                let size = bytes_of(to) as u64;
                write(memory, to, start(self.d, self.stride_d, to) + (column * self.ldd) as u64 * size, &sums)?;
            }
        }
        Ok(())
    }
}

pub fn run(params: &Params<'_>, memory: &mut Memory, _: &Origin) -> Result<(), Fault> {
    Call::new(params).run(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_to_the_nearest() {
        for (x, bits) in [
            (0.0, 0),
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65504.0, 0x7bff),
            (65519.0, 0x7bff),
            (65520.0, 0x7c00),
            (1.0 + 1.0 / 2048.0, 0x3c00),
            (1.0 + 3.0 / 2048.0, 0x3c02),
            (2f32.powi(-24), 1),
            (2f32.powi(-14), 0x400),
            (2047.0 / 2048.0 * 2f32.powi(-14), 0x400),
            (f32::INFINITY, 0x7c00),
        ] {
            assert_eq!(to_f16(x), bits, "{x}");
        }
        for bits in (0..=0x7c00u16).step_by(7) {
            assert_eq!(to_f16(from_f16(bits) as f32), bits);
        }
        assert_eq!((to_bf16(1.0), to_bf16(1.0 + 1.0 / 256.0), to_bf16(1.0 + 3.0 / 256.0)), (0x3f80, 0x3f80, 0x3f82));
        assert_eq!(to_tf32(1.0 + 2f32.powi(-11)), 1.0 + 2f32.powi(-10));
    }
}
