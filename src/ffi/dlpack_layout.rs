//! Element types, shapes and strides of DLPack tensors.

use super::argument;
use crate::abi::*;
use crate::base::{Desc, Error, Result, desc::MAX_RANK, dtype};

/// Code and bits of each element type.
const TYPES: [(weir_dtype, u8, u8); 8] = [
    (dtype::F32, 2, 32),
    (dtype::S32, 0, 32),
    (dtype::U8, 1, 8),
    (dtype::S8, 0, 8),
    (dtype::F16, 2, 16),
    (dtype::BF16, 4, 16),
    (dtype::BOOL, 6, 8),
    (dtype::S64, 0, 64),
];

/// "int64"
fn type_text(of: DLDataType) -> String {
    const CODES: [&str; 7] = ["int", "uint", "float", "opaque", "bfloat", "complex", "bool"];
    let lanes = if of.lanes == 1 { String::new() } else { format!("x{}", of.lanes) };
    match CODES.get(usize::from(of.code)) {
        Some(name) => format!("{name}{}{lanes}", of.bits),
        None => format!("type code {} of {} bits{lanes}", of.code, of.bits),
    }
}

/// The DLPack type of a tensor's elements.
pub(super) fn element_type(of: weir_dtype) -> Result<DLDataType> {
    let known = TYPES.iter().find(|row| row.0 == of);
    let &(_, code, bits) = known.ok_or_else(|| Error::internal("an element type without a counterpart"))?;
    Ok(DLDataType { code, bits, lanes: 1 })
}

/// Row-major strides, in elements.
pub(super) fn compact(desc: &Desc) -> [i64; MAX_RANK] {
    let mut strides = [0; MAX_RANK];
    let mut next = 1i64;
    for i in (0..desc.shape().len()).rev() {
        strides[i] = next;
        next = next.saturating_mul(desc.dims[i].max(1));
    }
    strides
}

/// Shape and strides of an import.
pub(super) struct DlpackLayout {
    pub desc: Desc,
    pub strides: [i64; MAX_RANK],
}

impl DlpackLayout {
    /// # Safety
    /// `shape` and `strides` are as DLPack says.
    pub unsafe fn read(tensor: &DLTensor) -> Result<DlpackLayout> {
        let of = tensor.dtype;
        let known = TYPES.iter().find(|row| (row.1, row.2, 1) == (of.code, of.bits, of.lanes));
        let &(dtype, ..) = known.ok_or_else(|| {
            Error::invalid(format!("managed: elements of {} have no counterpart in weir", type_text(of)))
        })?;
        let rank = usize::try_from(tensor.ndim)
            .ok()
            .filter(|&rank| rank <= MAX_RANK)
            .ok_or_else(|| Error::invalid(format!("managed: ndim is {}, expected 0 to {MAX_RANK}", tensor.ndim)))?;
        // SAFETY: as demanded of the caller.
        let dims = unsafe { argument::array(tensor.shape, rank, "managed: shape") }?;
        let desc = Desc::new(dtype, dims).check().map_err(|error| error.within("managed: shape"))?;
        let mut strides = compact(&desc);
        if !tensor.strides.is_null() {
            // SAFETY: as demanded of the caller.
            strides[..rank].copy_from_slice(unsafe { argument::array(tensor.strides, rank, "managed: strides") }?);
        }
        Ok(DlpackLayout { desc, strides })
    }

    /// Whether the strides are compact. Strides of dimensions with one element, and of empty tensors, do not count.
    pub fn is_compact(&self) -> Result<bool> {
        let expected = compact(&self.desc);
        let says = |i: usize| self.desc.dims[i] > 1 && self.strides[i] != expected[i];
        Ok(self.desc.elements()? == 0 || !(0..self.desc.shape().len()).any(says))
    }

    /// # Safety
    /// All elements can be read at `from`, and `to` has room for them.
    pub unsafe fn copy(&self, from: *const u8, to: *mut u8, element: usize) -> Result<()> {
        let shape = self.desc.shape();
        let mut at = [0i64; MAX_RANK];
        for i in 0..self.desc.elements()? {
            let offset: i64 = (0..shape.len()).map(|d| at[d] * self.strides[d]).sum();
            // SAFETY: as demanded of the caller; the strides lead to elements of the tensor.
            unsafe {
                let from = from.offset(offset as isize * element as isize);
                std::ptr::copy_nonoverlapping(from, to.add(i * element), element);
            }
            for d in (0..shape.len()).rev() {
                at[d] += 1;
                if at[d] < shape[d] {
                    break;
                }
                at[d] = 0;
            }
        }
        Ok(())
    }
}
