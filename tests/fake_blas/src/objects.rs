//! Handles and descriptors, and their attributes: each has a size that must be met.

use crate::driver::Loaded;
use crate::state::{INVALID_VALUE, Status};

#[derive(Clone, Debug)]
pub enum Object {
    Handle(Loaded),
    Operation(Operation),
    Layout(Layout),
    Preference(Preference),
}

#[derive(Clone, Debug, Hash)]
pub struct Operation {
    pub compute: i32,
    pub scale: i32,
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub epilogue: u32,
    pub bias: u64,
}

#[derive(Clone, Debug, Hash, PartialEq)]
pub struct Layout {
    pub of: i32,
    pub rows: u64,
    pub columns: u64,
    pub ld: i64,
    pub batch: i32,
    pub stride: i64,
}

#[derive(Clone, Debug)]
pub struct Preference {
    pub workspace: u64,
    pub reductions: u32,
    /// A, B, C, D.
    pub alignment: [u32; 4],
}

/// An attribute's value.
struct Value<'a>(&'a [u8]);

impl Value<'_> {
    fn take<const N: usize>(&self) -> Result<[u8; N], Status> {
        self.0.try_into().map_err(|_| INVALID_VALUE)
    }

    fn i32(&self) -> Result<i32, Status> {
        self.take().map(i32::from_ne_bytes)
    }

    fn u32(&self) -> Result<u32, Status> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&self) -> Result<u64, Status> {
        self.take().map(u64::from_ne_bytes)
    }

    fn i64(&self) -> Result<i64, Status> {
        self.take().map(i64::from_ne_bytes)
    }

    fn transpose(&self) -> Result<bool, Status> {
        match self.i32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(INVALID_VALUE),
        }
    }
}

impl Object {
    /// Sets an attribute of an object of this sort.
    pub fn set(&mut self, attribute: i32, value: &[u8]) -> Result<(), Status> {
        let value = Value(value);
        match (self, attribute) {
            (Object::Operation(operation), 3) => operation.transpose_a = value.transpose()?,
            (Object::Operation(operation), 4) => operation.transpose_b = value.transpose()?,
            (Object::Operation(operation), 7) => operation.epilogue = value.u32()?,
            (Object::Operation(operation), 8) => operation.bias = value.u64()?,
            (Object::Layout(layout), 5) => layout.batch = value.i32()?,
            (Object::Layout(layout), 6) => layout.stride = value.i64()?,
            (Object::Preference(preference), 1) => preference.workspace = value.u64()?,
            (Object::Preference(preference), 3) => preference.reductions = value.u32()?,
            (Object::Preference(preference), 5..=8) => preference.alignment[attribute as usize - 5] = value.u32()?,
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }
}
