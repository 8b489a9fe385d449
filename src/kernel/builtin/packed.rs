//! Weights that were packed once, for any number of kernels, calls and threads.
#![forbid(unsafe_code)]

use crate::base::{Desc, Error, Result, dtype};
use crate::kernel::vector::int8::BytePanels;
use crate::kernel::vector::isa::Isa;
use crate::kernel::vector::panels::Panels;
use crate::kernel::vector::site::Matrix;
use crate::memory::View;

/// A packed B of a matrix product. What it looks like depends on its size and type and the instruction set of the
/// process, never on a pool; nobody writes it again.
#[derive(Debug)]
pub struct Packed {
    k: usize,
    n: usize,
    panels: Kind,
}

#[derive(Debug)]
enum Kind {
    F32(Panels),
    S8(BytePanels),
}

impl Packed {
    /// Packs a tensor, [K, N] or, transposed, [N, K], which is read before this returns.
    pub fn new(tensor: &View, transposed: bool) -> Result<Packed> {
        let isa = Isa::checked()?;
        let desc = tensor.desc();
        let &[rows, columns] = desc.shape() else { return Err(refused(desc)) };
        let [rows, columns] = [rows, columns].map(|side| side as usize);
        let (k, n) = if transposed { (columns, rows) } else { (rows, columns) };
        let panels = match desc.dtype {
            dtype::F32 => Kind::F32(Panels::new(Matrix::dense(tensor.read::<f32>(), rows, columns), k, n, transposed)?),
            dtype::S8 => {
                let b = Matrix::dense(tensor.read_bytes(), rows, columns);
                Kind::S8(BytePanels::new(isa, b, k, n, transposed)?)
            }
            _ => return Err(refused(desc)),
        };
        Ok(Packed { k, n, panels })
    }

    pub fn k(&self) -> usize {
        self.k
    }

    pub fn n(&self) -> usize {
        self.n
    }

    /// The element type of the tensor.
    pub fn dtype(&self) -> u32 {
        match self.panels {
            Kind::F32(_) => dtype::F32,
            Kind::S8(_) => dtype::S8,
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        match &self.panels {
            Kind::F32(panels) => panels.bytes(),
            Kind::S8(panels) => panels.bytes(),
        }
    }

    /// Of packed f32, which those who make a kernel have checked.
    pub(super) fn f32_panels(&self) -> &Panels {
        match &self.panels {
            Kind::F32(panels) => panels,
            Kind::S8(_) => panic!("packed s8 weights in a product of f32"),
        }
    }

    /// The same of s8.
    pub(super) fn s8_panels(&self) -> &BytePanels {
        match &self.panels {
            Kind::S8(panels) => panels,
            Kind::F32(_) => panic!("packed f32 weights in a product of bytes"),
        }
    }
}

fn refused(desc: &Desc) -> Error {
    Error::invalid(format!("tensor: expected f32[?,?] or s8[?,?], got {}", desc.text()))
}
