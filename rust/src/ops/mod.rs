//! weir's own operators, each as a struct of its settings, for [`Kernel::new`](crate::Kernel::new).
//!
//! ```
//! use weir::{Engine, Kernel, OPEN, TensorDesc, ops};
//!
//! let cpu = Engine::cpu()?;
//! let product = Kernel::new(&cpu, &ops::Matmul { transpose_b: true, ..Default::default() })?;
//! let sums = Kernel::new(&cpu, &ops::Reduce { axes: &[-1], ..ops::Reduce::new(ops::ReduceOp::Sum) })?;
//! let rows = Kernel::new(&cpu, &ops::Reshape { dims: &[ops::Reshape::KEEP, ops::Reshape::INFER] })?;
//! assert_eq!(sums.infer(&[TensorDesc::of::<f32>(&[3, 4])])?, [TensorDesc::of::<f32>(&[3])]);
//! assert_eq!(rows.infer(&[TensorDesc::of::<f32>(&[OPEN, 4, 5])])?, [TensorDesc::of::<f32>(&[OPEN, 20])]);
//! # Ok::<(), weir::Error>(())
//! ```
//!
//! Settings that an operator does not know or that do not go together are refused when the kernel is made. Types and
//! shapes are checked when it is enqueued or compiled.

#[rustfmt::skip]
mod generated;

pub use generated::*;

use crate::error::check;
use crate::handle::shared_handle;
use crate::{Engine, Error, ErrorKind, Result, Tensor};
use weir_core::abi::{weir_packed_weights, weir_packed_weights_desc, weir_packed_weights_flags as Flags};
use weir_core::ffi;

pub(crate) mod sealed {
    use crate::Result;
    use weir_core::abi::{weir_engine, weir_kernel};

    pub trait Create {
        /// Has weir create the kernel. `engine` is alive.
        fn create(&self, engine: *mut weir_engine, out: &mut *mut weir_kernel) -> Result<()>;
    }
}

/// One of weir's operators.
pub trait Operator: sealed::Create {
    /// Its name, `matmul`.
    const NAME: &'static str;
}

shared_handle! {
    /// B of a matrix product, packed once for all kernels and threads that use it.
    PackedWeights(weir_packed_weights), ffi::weir_packed_weights_retain, ffi::weir_packed_weights_release
}

impl PackedWeights {
    /// Packs a tensor `[K, N]`, or `[N, K]` if it is transposed. It is not needed any more then.
    ///
    /// Blocks until queued work that writes the tensor is over.
    pub fn new(engine: &Engine, tensor: &Tensor, transposed: bool) -> Result<PackedWeights> {
        tensor.wait_written()?;
        let flags = if transposed { Flags::WEIR_PACKED_WEIGHTS_TRANSPOSED as u64 } else { 0 };
        let desc = weir_packed_weights_desc { struct_size: size_of::<weir_packed_weights_desc>(), flags };
        let mut raw = std::ptr::null_mut();
        // SAFETY: live handles, and a tensor that nobody writes.
        let status =
            unsafe { ffi::weir_packed_weights_create(engine.raw(), tensor.raw(), &raw const desc, &raw mut raw) };
        check(status)?;
        // SAFETY: a new reference.
        unsafe { PackedWeights::from_raw(raw) }
    }
}

impl Reshape<'_> {
    /// A dimension that follows from the number of elements; one at most.
    pub const INFER: i64 = -1;

    /// A dimension that is that of the input at the same place.
    pub const KEEP: i64 = -2;
}

/// The numbers of a list as an array of C, zeros behind it. `len` is that of the operator's first list.
fn filled<T: Copy + Default, const N: usize>(list: &[T], len: usize, what: &str) -> Result<[T; N]> {
    let mut array = [T::default(); N];
    if list.len() > N || (list.len() != len && !list.is_empty()) {
        let text = format!("{what} has {} numbers, expected {len}, and at most {N}", list.len());
        return Err(Error::new(ErrorKind::InvalidArgument, text));
    }
    array[..list.len()].copy_from_slice(list);
    Ok(array)
}

/// The flags that are set.
fn bits(flags: &[(bool, u64)]) -> u64 {
    flags.iter().filter(|(is_set, _)| *is_set).fold(0, |bits, (_, bit)| bits | bit)
}
