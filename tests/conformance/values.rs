//! Tensors of any type as numbers in f64, which holds what all of them hold. The conversions are written down here once
//! more, so that those of the library are not compared with themselves.

use std::sync::{Arc, OnceLock};
use weir_core::base::{Desc, Ref, dtype};
use weir_core::device::DeviceKind;
use weir_core::engine::{Engine, Tensor};
use weir_core::kernel::builtin::Packed;

pub fn engine() -> Ref<Engine> {
    static ENGINE: OnceLock<Ref<Engine>> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::create(DeviceKind::CPU, 0, None).unwrap()).clone()
}

#[derive(Clone, Debug)]
pub struct Values {
    pub dtype: u32,
    pub dims: Vec<i64>,
    pub x: Vec<f64>,
}

pub fn is_integer(of: u32) -> bool {
    range(of).is_some()
}

/// The least and the greatest value of an integer type.
pub fn range(of: u32) -> Option<(f64, f64)> {
    match of {
        // The greatest one is 1 more than s64 has: f64 has no other that near.
        dtype::S64 => Some((i64::MIN as f64, i64::MAX as f64)),
        dtype::S32 => Some((f64::from(i32::MIN), f64::from(i32::MAX))),
        dtype::S8 => Some((-128.0, 127.0)),
        dtype::U8 => Some((0.0, 255.0)),
        _ => None,
    }
}

/// The number of an integer type that has the lowest bits of a number.
pub fn wrapped(of: u32, x: i64) -> f64 {
    match of {
        dtype::S32 => f64::from(x as i32),
        dtype::S8 => f64::from(x as i8),
        dtype::U8 => f64::from(x as u8),
        _ => x as f64,
    }
}

/// Bits of exponent and of fraction.
fn fields(of: u32) -> (i32, i32) {
    if of == dtype::F16 { (5, 10) } else { (8, 7) }
}

/// The nearest number that a type has, of two the even one.
pub fn rounded(of: u32, x: f64) -> f64 {
    if let Some((least, greatest)) = range(of) {
        return if x.is_nan() { 0.0 } else { x.round_ties_even().clamp(least, greatest) };
    }
    match of {
        dtype::F32 => f64::from(x as f32),
        dtype::BOOL => f64::from(x != 0.0),
        _ if x == 0.0 || !x.is_finite() => x,
        _ => {
            let (exponent_bits, fraction_bits) = fields(of);
            let bias = (1 << (exponent_bits - 1)) - 1;
            let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(1 - bias);
            let unit = 2f64.powi(exponent - fraction_bits);
            let nearest = (x / unit).round_ties_even() * unit;
            let greatest = (2.0 - 2f64.powi(-fraction_bits)) * 2f64.powi(bias);
            if nearest.abs() > greatest { f64::INFINITY.copysign(x) } else { nearest }
        }
    }
}

/// A half's number.
fn widened(of: u32, bits: u16) -> f64 {
    let (exponent_bits, fraction_bits) = fields(of);
    let bias = (1 << (exponent_bits - 1)) - 1;
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> fraction_bits & ((1 << exponent_bits) - 1));
    let fraction = f64::from(bits & ((1 << fraction_bits) - 1));
    match exponent {
        e if e == (1 << exponent_bits) - 1 => sign * if fraction == 0.0 { f64::INFINITY } else { f64::NAN },
        0 => sign * fraction * 2f64.powi(1 - bias - fraction_bits),
        _ => sign * (1.0 + fraction * 2f64.powi(-fraction_bits)) * 2f64.powi(exponent - bias),
    }
}

/// The bits of a number that the type has.
fn narrowed(of: u32, x: f64) -> u16 {
    let (exponent_bits, fraction_bits) = fields(of);
    let bias = (1 << (exponent_bits - 1)) - 1;
    let sign = u16::from(x.is_sign_negative()) << 15;
    let top = ((1u16 << exponent_bits) - 1) << fraction_bits;
    if x.is_nan() {
        return sign | top | 1 << (fraction_bits - 1);
    }
    if x.is_infinite() {
        return sign | top;
    }
    let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(1 - bias);
    let units = (x.abs() / 2f64.powi(exponent - fraction_bits)) as u16;
    sign | ((((exponent + bias - 1) as u16) << fraction_bits) + units)
}

impl Values {
    /// Numbers that the type has.
    pub fn new(dtype: u32, dims: &[i64], x: Vec<f64>) -> Values {
        let values = Values { dtype, dims: dims.to_vec(), x };
        assert_eq!(values.x.len() as i64, dims.iter().product::<i64>());
        values
    }

    /// The nearest numbers that the type has.
    pub fn nearest(dtype: u32, dims: &[i64], x: impl IntoIterator<Item = f64>) -> Values {
        Values::new(dtype, dims, x.into_iter().map(|x| rounded(dtype, x)).collect())
    }

    pub fn desc(&self) -> Desc {
        Desc::new(self.dtype, &self.dims)
    }

    pub fn bytes(&self) -> Vec<u8> {
        match self.dtype {
            dtype::F32 => self.x.iter().flat_map(|&x| (x as f32).to_ne_bytes()).collect(),
            dtype::S64 => self.x.iter().flat_map(|&x| (x as i64).to_ne_bytes()).collect(),
            dtype::S32 => self.x.iter().flat_map(|&x| (x as i32).to_ne_bytes()).collect(),
            dtype::S8 => self.x.iter().map(|&x| x as i8 as u8).collect(),
            dtype::U8 | dtype::BOOL => self.x.iter().map(|&x| x as u8).collect(),
            _ => self.x.iter().flat_map(|&x| narrowed(self.dtype, x).to_ne_bytes()).collect(),
        }
    }

    pub fn of_bytes(dtype: u32, dims: &[i64], bytes: &[u8]) -> Values {
        let (halves, words) = (bytes.as_chunks::<2>().0, bytes.as_chunks::<4>().0);
        let x = match dtype {
            dtype::F32 => words.iter().map(|&x| f64::from(f32::from_ne_bytes(x))).collect(),
            dtype::S64 => bytes.as_chunks::<8>().0.iter().map(|&x| i64::from_ne_bytes(x) as f64).collect(),
            dtype::S32 => words.iter().map(|&x| f64::from(i32::from_ne_bytes(x))).collect(),
            dtype::S8 => bytes.iter().map(|&x| f64::from(x as i8)).collect(),
            dtype::U8 | dtype::BOOL => bytes.iter().map(|&x| f64::from(x)).collect(),
            _ => halves.iter().map(|&x| widened(dtype, u16::from_ne_bytes(x))).collect(),
        };
        Values::new(dtype, dims, x)
    }

    pub fn tensor(&self) -> Ref<Tensor> {
        let (tensor, bytes) = (Tensor::create(engine(), self.desc()).unwrap(), self.bytes());
        assert_eq!(tensor.bytes(), bytes.len());
        // SAFETY: a new tensor of so many bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data(), bytes.len()) };
        tensor
    }
}

/// An output that shows where nothing was written: NaN, or a number that no case gives everywhere.
pub fn unwritten(desc: Desc) -> Ref<Tensor> {
    let tensor = Tensor::create(engine(), desc).unwrap();
    // SAFETY: a new tensor of so many bytes.
    unsafe { std::ptr::write_bytes(tensor.data(), 0xff, tensor.bytes()) };
    tensor
}

/// Weights that nobody writes.
pub fn packed(tensor: &Tensor, transposed: bool) -> Arc<Packed> {
    // SAFETY: the host's memory, and nothing is under way with it.
    Arc::new(Packed::new(unsafe { tensor.view().as_bytes() }, transposed).unwrap())
}

pub fn copy(tensor: &Tensor) -> Ref<Tensor> {
    let copy = unwritten(*tensor.desc());
    // SAFETY: the host's memory, and nothing is under way with either.
    unsafe { copy.view().as_bytes_mut().copy_from(tensor.view().as_bytes()) };
    copy
}

pub fn bytes_of(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = vec![0; tensor.bytes()];
    // SAFETY: readable, and written by no work now.
    unsafe { std::ptr::copy_nonoverlapping(tensor.data(), bytes.as_mut_ptr(), bytes.len()) };
    bytes
}

#[test]
fn halves_go_there_and_back() {
    for of in [dtype::F16, dtype::BF16] {
        for bits in 0..=u16::MAX {
            let x = widened(of, bits);
            if !x.is_nan() {
                assert_eq!((narrowed(of, x), rounded(of, x)), (bits, x));
            }
        }
    }
    assert_eq!(rounded(dtype::F16, 65519.9), 65504.0);
    assert_eq!(rounded(dtype::F16, 65520.0), f64::INFINITY);
    assert_eq!(rounded(dtype::F16, 2f64.powi(-25)), 0.0);
    assert_eq!(rounded(dtype::BF16, 1.0 + 2f64.powi(-8)), 1.0);
    assert_eq!(rounded(dtype::BF16, 1.0 + 3.0 * 2f64.powi(-8)), 1.0 + 2f64.powi(-6));
}
