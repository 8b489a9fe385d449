//! Weights that were packed once, for any number of kernels, calls and threads.
#![forbid(unsafe_code)]

use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::vector::int8::{self, BytePanels};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::panels::Panels;
use crate::kernel::vector::site::Matrix;
use crate::memory::{Bf16, Bytes, F16};
use crate::ops::PackedShape;
use std::any::Any;

/// A packed B of a matrix product. Its layout depends on its size and type and the instruction set of the process,
/// never on a pool; it is immutable.
#[derive(Debug)]
pub struct Packed {
    k: usize,
    n: usize,
    dtype: u32,
    panels: PackedPanels,
}

#[derive(Debug)]
enum PackedPanels {
    F32(Panels),
    F16(Panels<F16>),
    Bf16(Panels<Bf16>),
    S8(BytePanels),
}

impl Packed {
    /// Packs a tensor, [K, N] or, transposed, [N, K], which is read before this returns.
    pub fn new(tensor: Bytes<'_>, transposed: bool) -> Result<Packed> {
        let isa = Isa::checked()?;
        let desc = tensor.desc();
        let &[rows, columns] = desc.shape() else { return Err(refused(desc)) };
        let [rows, columns] = [rows, columns].map(|side| side as usize);
        let (k, n) = if transposed { (columns, rows) } else { (rows, columns) };
        let panels = match desc.dtype {
            dtype::F32 => {
                PackedPanels::F32(Panels::new(Matrix::dense(tensor.read(), rows, columns), k, n, transposed)?)
            }
            dtype::F16 => {
                PackedPanels::F16(Panels::of_halves(Matrix::dense(tensor.read(), rows, columns), k, n, transposed)?)
            }
            dtype::BF16 => {
                PackedPanels::Bf16(Panels::of_halves(Matrix::dense(tensor.read(), rows, columns), k, n, transposed)?)
            }
            dtype::S8 => {
                let b = Matrix::dense(tensor.read_bytes(), rows, columns);
                PackedPanels::S8(int8::pack(isa, b, k, n, transposed)?)
            }
            _ => return Err(refused(desc)),
        };
        Ok(Packed { k, n, dtype: desc.dtype, panels })
    }

    /// The tensor's type, and its sizes in the product.
    pub fn shape(&self) -> PackedShape {
        PackedShape { dtype: self.dtype, k: self.k, n: self.n }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        match &self.panels {
            PackedPanels::F32(panels) => panels.bytes(),
            PackedPanels::F16(panels) => panels.bytes(),
            PackedPanels::Bf16(panels) => panels.bytes(),
            PackedPanels::S8(panels) => panels.bytes(),
        }
    }

    /// Panels of this type; the maker of a kernel has checked that of the weights.
    pub(super) fn panels<P: Any>(&self) -> &P {
        let panels: &dyn Any = match &self.panels {
            PackedPanels::F32(panels) => panels,
            PackedPanels::F16(panels) => panels,
            PackedPanels::Bf16(panels) => panels,
            PackedPanels::S8(panels) => panels,
        };
        panels.downcast_ref().unwrap_or_else(|| panic!("packed weights in a product of another type"))
    }
}

fn refused(desc: &Desc) -> Error {
    Error::invalid(format!("tensor: expected f32[?,?], f16[?,?], bf16[?,?] or s8[?,?], got {}", desc.text()))
}
