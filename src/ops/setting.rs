//! Members of descriptors that a call may read from tensors.
#![forbid(unsafe_code)]

use super::signature;
use crate::base::{Desc, Result, dtype};

/// Most numbers of a member.
const MOST: usize = 8;

/// The type of a member's numbers in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Int32,
    Int64,
    Float,
    Double,
}

/// Not compiled once more for each descriptor.
impl Number {
    #[inline(never)]
    fn check(self, name: &str, count: i64, index: usize, input: &Desc) -> Result<()> {
        let (types, names): (&[u32], _) = match self {
            Number::Int32 | Number::Int64 => (&[dtype::S32, dtype::S64], "s32 or s64"),
            Number::Float | Number::Double => (&[dtype::F32], "f32"),
        };
        let fits = match *input.shape() {
            [] => count == 1,
            [dim] => dim < 0 || dim == count,
            _ => false,
        };
        if fits && types.contains(&input.dtype) {
            return Ok(());
        }
        let expected = format!("{names}[{count}], which is desc->{name}");
        Err(signature::mismatch("input", index, &expected, input))
    }

    #[inline(never)]
    fn put(self, offset: usize, input: &Desc, elements: &[u8], count: usize, set: &mut dyn FnMut(usize, &[u8])) {
        let float = |i: usize| f32::from_ne_bytes(part(elements, i));
        let whole = |i: usize| match input.dtype {
            dtype::S32 => i32::from_ne_bytes(part(elements, i)).into(),
            _ => i64::from_ne_bytes(part(elements, i)),
        };
        for i in 0..count.min(MOST) {
            match self {
                Number::Int32 => {
                    let number = whole(i).clamp(i32::MIN.into(), i32::MAX.into()) as i32;
                    set(offset + i * size_of::<i32>(), &number.to_ne_bytes());
                }
                Number::Int64 => set(offset + i * size_of::<i64>(), &whole(i).to_ne_bytes()),
                Number::Float => set(offset + i * size_of::<f32>(), &float(i).to_ne_bytes()),
                Number::Double => set(offset + i * size_of::<f64>(), &f64::from(float(i)).to_ne_bytes()),
            }
        }
    }
}

/// A member of a descriptor that an input may hold in its place.
#[derive(Clone, Copy, Debug)]
pub struct Setting<D: 'static> {
    pub name: &'static str,
    offset: usize,
    number: Number,
    count: fn(&D) -> usize,
    /// Whether shapes depend on it.
    pub decides_shapes: bool,
}

impl<D> Setting<D> {
    const fn new(name: &'static str, offset: usize, number: Number) -> Setting<D> {
        Setting { name, offset, number, count: |_| 1, decides_shapes: true }
    }

    pub const fn int32(name: &'static str, offset: usize) -> Setting<D> {
        Setting::new(name, offset, Number::Int32)
    }

    pub const fn int64(name: &'static str, offset: usize) -> Setting<D> {
        Setting::new(name, offset, Number::Int64)
    }

    pub const fn float(name: &'static str, offset: usize) -> Setting<D> {
        Setting::new(name, offset, Number::Float)
    }

    pub const fn double(name: &'static str, offset: usize) -> Setting<D> {
        Setting::new(name, offset, Number::Double)
    }

    /// An array, of which so many numbers count.
    pub const fn times(self, count: fn(&D) -> usize) -> Setting<D> {
        Setting { count, ..self }
    }

    /// Shapes do not depend on it.
    pub const fn of_values(self) -> Setting<D> {
        Setting { decides_shapes: false, ..self }
    }

    /// Refuses input `index` if it cannot hold the member.
    pub fn check(&self, desc: &D, index: usize, input: &Desc) -> Result<()> {
        self.number.check(self.name, self.count(desc) as i64, index, input)
    }

    /// Gives the bytes that the elements of a checked tensor are in the descriptor, number by number, and where. A
    /// number that the member cannot hold becomes the nearest one that it can.
    pub fn put(&self, input: &Desc, elements: &[u8], count: usize, set: &mut dyn FnMut(usize, &[u8])) {
        self.number.put(self.offset, input, elements, count, set);
    }

    /// How many numbers the member has.
    pub fn count(&self, desc: &D) -> usize {
        (self.count)(desc)
    }
}

/// Element i, of N bytes.
fn part<const N: usize>(elements: &[u8], i: usize) -> [u8; N] {
    std::array::from_fn(|k| elements[i * N + k])
}
