//! Predicates: a device's branch or loop reads an integer from its memory when it begins, or two numbers that are
//! compared. A comparison needs no integer that a kernel writes, so that an iteration is a step shorter.
#![forbid(unsafe_code)]

use crate::base::{Error, Result, dtype};
use std::cmp::Ordering;

/// An integer in the device's memory, read when the step begins: the first element of a tensor of bool, u8, s8 or s32.
#[derive(Clone, Copy, Debug)]
pub struct Integer {
    pub address: usize,
    pub dtype: u32,
}

/// A loop's condition: an integer that is not 0, or a comparison that holds.
#[derive(Clone, Copy, Debug)]
pub enum Predicate {
    Integer(Integer),
    Comparison(Comparison),
}

impl From<Integer> for Predicate {
    fn from(integer: Integer) -> Predicate {
        Predicate::Integer(integer)
    }
}

impl Predicate {
    /// The addresses that it reads, with their bytes.
    pub fn reads(&self) -> impl Iterator<Item = (usize, usize)> {
        let (addresses, bytes) = match self {
            Predicate::Integer(integer) => ([integer.address; 2], integer.form().map_or(0, i32::unsigned_abs) as usize),
            Predicate::Comparison(comparison) => (comparison.addresses, Comparison::BYTES),
        };
        let count = if addresses[0] == addresses[1] { 1 } else { 2 };
        addresses.into_iter().take(count).map(move |address| (address, bytes))
    }

    pub(super) fn check(&self) -> Result<()> {
        match self {
            Predicate::Integer(integer) => integer.check("its predicate"),
            Predicate::Comparison(comparison) => comparison.check("its predicate"),
        }
    }
}

impl Integer {
    /// How to read it: its bytes, negative if signed; `None`: it has another type.
    pub fn form(&self) -> Option<i32> {
        match self.dtype {
            dtype::BOOL | dtype::U8 => Some(1),
            dtype::S8 => Some(-1),
            dtype::S32 => Some(4),
            _ => None,
        }
    }

    pub(super) fn check(&self, what: &str) -> Result<()> {
        let name = dtype::name(self.dtype);
        let Some(form) = self.form() else {
            return Err(Error::invalid(format!("{what} is of {name}, expected bool, u8, s8 or s32")));
        };
        if self.address.is_multiple_of(form.unsigned_abs() as usize) {
            return Ok(());
        }
        Err(Error::invalid(format!("{what} at {:#x} is not aligned as {name} is", self.address)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

// The relations of two numbers; unordered numbers have none of them.
const LESS: u32 = 1;
const EQUAL: u32 = 2;
const GREATER: u32 = 4;
const UNORDERED: u32 = 8;

impl Relation {
    /// The cases in which it holds: the first number is less (1), equal (2), greater (4), or one of them is NaN (8).
    pub fn mask(self) -> u32 {
        match self {
            Relation::Eq => EQUAL,
            Relation::Ne => LESS | GREATER | UNORDERED,
            Relation::Lt => LESS,
            Relation::Le => LESS | EQUAL,
            Relation::Gt => GREATER,
            Relation::Ge => GREATER | EQUAL,
        }
    }

    fn holds(self, order: Option<Ordering>) -> bool {
        let found = match order {
            Some(Ordering::Less) => LESS,
            Some(Ordering::Equal) => EQUAL,
            Some(Ordering::Greater) => GREATER,
            None => UNORDERED,
        };
        self.mask() & found != 0
    }
}

/// The first elements of two tensors, both of f32 or both of s32, read when the step begins.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    pub relation: Relation,
    pub dtype: u32,
    pub addresses: [usize; 2],
}

impl Comparison {
    /// Bytes of each number.
    pub const BYTES: usize = 4;

    /// Whether numbers of this type are compared.
    pub fn takes(of: u32) -> bool {
        matches!(of, dtype::F32 | dtype::S32)
    }

    pub(super) fn check(&self, what: &str) -> Result<()> {
        let name = dtype::name(self.dtype);
        if !Comparison::takes(self.dtype) {
            return Err(Error::invalid(format!("{what} compares numbers of {name}, expected f32 or s32")));
        }
        match self.addresses.iter().find(|address| !address.is_multiple_of(Comparison::BYTES)) {
            None => Ok(()),
            Some(address) => Err(Error::invalid(format!("{what} at {address:#x} is not aligned as {name} is"))),
        }
    }

    /// Whether it holds for numbers with these bytes.
    pub fn of(relation: Relation, of: u32, [a, b]: [[u8; Comparison::BYTES]; 2]) -> bool {
        relation.holds(match of {
            dtype::F32 => f32::from_le_bytes(a).partial_cmp(&f32::from_le_bytes(b)),
            _ => Some(i32::from_le_bytes(a).cmp(&i32::from_le_bytes(b))),
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use Relation::*;

    #[test]
    fn relations_hold_as_the_operators_do() {
        let floats = [f32::NEG_INFINITY, -1.0, -0.0, 0.0, f32::MIN_POSITIVE / 4.0, 1.0, f32::INFINITY, f32::NAN];
        let integers = [i32::MIN, -1, 0, 1, i32::MAX];
        for a in floats {
            for b in floats {
                let expected = [a == b, a != b, a < b, a <= b, a > b, a >= b];
                let bytes = [a.to_le_bytes(), b.to_le_bytes()];
                assert_eq!(
                    [Eq, Ne, Lt, Le, Gt, Ge].map(|is| Comparison::of(is, dtype::F32, bytes)),
                    expected,
                    "{a} {b}"
                );
            }
        }
        for a in integers {
            for b in integers {
                let expected = [a == b, a != b, a < b, a <= b, a > b, a >= b];
                let bytes = [a.to_le_bytes(), b.to_le_bytes()];
                assert_eq!(
                    [Eq, Ne, Lt, Le, Gt, Ge].map(|is| Comparison::of(is, dtype::S32, bytes)),
                    expected,
                    "{a} {b}"
                );
            }
        }
    }
}
