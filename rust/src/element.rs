//! Element types and shapes.

use crate::{Error, ErrorKind, Result};
use std::fmt;
use weir_core::abi::{WEIR_DIM_DYNAMIC, weir_dtype_value as D, weir_tensor_desc};

/// A dimension that is known only when a program runs, or that matches anything in a kernel's signature.
pub const OPEN: usize = usize::MAX;

/// The most dimensions of a tensor.
pub const MAX_RANK: usize = 8;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// In a signature: any type. No tensor has it.
    Any,
    /// `f32`.
    F32,
    /// `i32`.
    I32,
    /// `u8`.
    U8,
    /// `i8`.
    I8,
    /// IEEE 754 binary16, `half::f16`.
    F16,
    /// The upper half of an `f32`, `half::bf16`.
    Bf16,
    /// `bool`.
    Bool,
    /// `i64`: for keys, indices and operators that move elements. No operator computes with it.
    I64,
}

const NAMES: [(DType, D, &str); 9] = [
    (DType::Any, D::WEIR_DTYPE_ANY, "any"),
    (DType::F32, D::WEIR_F32, "f32"),
    (DType::I32, D::WEIR_S32, "i32"),
    (DType::U8, D::WEIR_U8, "u8"),
    (DType::I8, D::WEIR_S8, "i8"),
    (DType::F16, D::WEIR_F16, "f16"),
    (DType::Bf16, D::WEIR_BF16, "bf16"),
    (DType::Bool, D::WEIR_BOOL, "bool"),
    (DType::I64, D::WEIR_S64, "i64"),
];

impl DType {
    fn row(self) -> (DType, D, &'static str) {
        NAMES[self as usize]
    }

    /// The number in the C interface.
    pub(crate) fn code(self) -> u32 {
        self.row().1 as u32
    }

    fn of(code: u32) -> DType {
        NAMES.iter().find(|row| row.1 as u32 == code).map_or(DType::Any, |row| row.0)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().2)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that tensors can have as elements: `f32`, `i32`, `i64`, `u8`, `i8`, `bool`, and with the feature `half`
/// `half::f16` and `half::bf16`. weir has no `f64`.
pub trait Element: sealed::Sealed + Copy + Default + Send + Sync + 'static {
    /// The same type in weir.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty: $dtype:ident),*) => {
        $(impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        })*
    };
}

elements!(f32: F32, i32: I32, i64: I64, u8: U8, i8: I8, bool: Bool);
#[cfg(feature = "half")]
elements!(half::f16: F16, half::bf16: Bf16);

/// The elements at an address. Bytes from elsewhere, such as memory of a device, need not be those of a `bool`.
///
/// # Safety
/// `data` has `len` elements of initialised memory that nobody writes for `'a`, or `len` is 0.
pub(crate) unsafe fn elements<'a, T: Element>(data: *const T, len: usize) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    // SAFETY: as demanded of the caller. A `bool` has one byte.
    let is_wrong = T::DTYPE == DType::Bool
        && unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) }.iter().any(|&byte| byte > 1);
    if is_wrong {
        return Err(Error::new(ErrorKind::DataLoss, "an element of bool is neither 0 nor 1"));
    }
    // SAFETY: as demanded of the caller, and every value of the other types is legal.
    Ok(unsafe { std::slice::from_raw_parts(data, len) })
}

/// Element type and shape. The shape is row-major, the slowest dimension first; without dimensions it is a scalar's.
///
/// ```
/// use weir::{DType, OPEN, TensorDesc};
///
/// let rows = TensorDesc::of::<f32>(&[OPEN, 128]);
/// assert_eq!(rows, TensorDesc::new(DType::F32, &[OPEN, 128]));
/// assert_eq!(rows.to_string(), "f32[?,128]");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorDesc {
    dtype: DType,
    rank: usize,
    dims: [usize; MAX_RANK],
}

impl TensorDesc {
    /// A description. Calls that take one with more than [`MAX_RANK`] dimensions refuse it.
    pub fn new(dtype: DType, dims: &[usize]) -> TensorDesc {
        let mut desc = TensorDesc { dtype, rank: dims.len(), dims: [0; MAX_RANK] };
        for (to, from) in desc.dims.iter_mut().zip(dims) {
            *to = *from;
        }
        desc
    }

    /// The description of tensors of `T`.
    pub fn of<T: Element>(dims: &[usize]) -> TensorDesc {
        TensorDesc::new(T::DTYPE, dims)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions, some of which may be [`OPEN`].
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank.min(MAX_RANK)]
    }

    /// The number of elements. `None` if it is open or overflows.
    pub fn num_elements(&self) -> Option<usize> {
        let each = self.dims().iter().map(|&dim| if dim == OPEN { None } else { Some(dim) });
        each.into_iter().try_fold(1usize, |product, dim| product.checked_mul(dim?))
    }

    /// Whether a dimension is open.
    pub fn is_open(&self) -> bool {
        self.dims().contains(&OPEN)
    }

    pub(crate) fn to_c(self) -> weir_tensor_desc {
        let dim = |dim| if dim == OPEN { WEIR_DIM_DYNAMIC } else { i64::try_from(dim).unwrap_or(i64::MAX) };
        let rank = u32::try_from(self.rank).unwrap_or(u32::MAX);
        weir_tensor_desc { dtype: self.dtype.code(), rank, dims: self.dims.map(dim) }
    }

    pub(crate) fn from_c(desc: &weir_tensor_desc) -> TensorDesc {
        let rank = (desc.rank as usize).min(MAX_RANK);
        let dims = desc.dims.map(|dim| usize::try_from(dim).unwrap_or(OPEN));
        TensorDesc::new(DType::of(desc.dtype), &dims[..rank])
    }
}

impl fmt::Display for TensorDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (i, &dim) in self.dims().iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match dim {
                OPEN => write!(f, "{comma}?")?,
                dim => write!(f, "{comma}{dim}")?,
            }
        }
        f.write_str("]")
    }
}

impl fmt::Debug for TensorDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
