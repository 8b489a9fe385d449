//! Weights that were packed once, for any number of kernels, calls and threads.
#![forbid(unsafe_code)]

use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::vector::convert::{self, Stored};
use crate::kernel::vector::int8::{self, BytePanels};
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::panels::Panels;
use crate::kernel::vector::site::Matrix;
use crate::memory::{Bf16, Bytes, F16, heap};
use crate::ops::PackedShape;

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
    /// f32, f16 or bf16, as f32 panels.
    Floats(Panels),
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
        let floats =
            |data: &[f32]| Panels::new(Matrix::dense(data, rows, columns), k, n, transposed).map(PackedPanels::Floats);
        let panels = match desc.dtype {
            dtype::F32 => floats(tensor.read())?,
            dtype::F16 => floats(&widened::<F16>(isa, tensor)?)?,
            dtype::BF16 => floats(&widened::<Bf16>(isa, tensor)?)?,
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
            PackedPanels::Floats(panels) => panels.bytes(),
            PackedPanels::S8(panels) => panels.bytes(),
        }
    }

    /// Panels of packed floats; the maker of a kernel has checked the type.
    pub(super) fn f32_panels(&self) -> &Panels {
        match &self.panels {
            PackedPanels::Floats(panels) => panels,
            PackedPanels::S8(_) => panic!("packed s8 weights in a product of floats"),
        }
    }

    /// Panels of packed s8, likewise.
    pub(super) fn s8_panels(&self) -> &BytePanels {
        match &self.panels {
            PackedPanels::S8(panels) => panels,
            PackedPanels::Floats(_) => panic!("packed float weights in a product of bytes"),
        }
    }
}

/// The tensor as floats: panels of 16-bit floats are f32, too.
fn widened<T: Stored>(isa: Isa, tensor: Bytes<'_>) -> Result<Vec<f32>> {
    let from = tensor.read::<T>();
    heap::probe(size_of_val(from) * size_of::<f32>() / size_of::<T>(), "packing weights")?;
    let mut floats = vec![0.0; from.len()];
    convert::widen(isa, from, &mut floats);
    Ok(floats)
}

fn refused(desc: &Desc) -> Error {
    Error::invalid(format!("tensor: expected f32[?,?], f16[?,?], bf16[?,?] or s8[?,?], got {}", desc.text()))
}
