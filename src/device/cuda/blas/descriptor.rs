//! The library's descriptors: an operation, the layout of a matrix, a preference. They are in host memory only.

use super::library::{BlasLibrary, Destroy, Pointer, Set};
use crate::base::Result;
use crate::device::cuda::context::Handle;
use cudarc::cublaslt::sys::cublasLtMatmulDescAttributes_t as O;
use cudarc::cublaslt::sys::cublasLtMatmulPreferenceAttributes_t as P;
use cudarc::cublaslt::sys::cublasLtMatrixLayoutAttribute_t as L;
use std::ffi::c_int;

/// A descriptor, until it is dropped.
#[derive(Debug)]
struct Descriptor {
    library: &'static BlasLibrary,
    raw: Handle<Pointer>,
    destroy: Destroy,
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the library's function with an unused descriptor.
        unsafe { (self.destroy)(self.raw.0) };
    }
}

impl Descriptor {
    /// Sets an attribute whose type in C is `T`.
    fn set<T>(&self, function: &'static str, set: Set, attribute: c_int, value: T) -> Result<()> {
        // SAFETY: the library's function with a descriptor of its own; the value lives during the call, which copies
        // it.
        let status = unsafe { set(self.raw.0, attribute, (&raw const value).cast(), size_of::<T>()) };
        self.library.check(function, status)
    }
}

/// The computation of a product.
#[derive(Debug)]
pub(super) struct MatmulDescriptor(Descriptor);

impl MatmulDescriptor {
    /// `compute` and `scale` are cublasComputeType_t and cudaDataType_t.
    pub fn new(library: &'static BlasLibrary, compute: c_int, scale: c_int) -> Result<MatmulDescriptor> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the library's function, and a place for the answer.
        let status = unsafe { (library.operation_create)(&raw mut raw, compute, scale) };
        library.check("cublasLtMatmulDescCreate", status)?;
        Ok(MatmulDescriptor(Descriptor { library, raw: Handle(raw), destroy: library.operation_destroy }))
    }

    pub fn raw(&self) -> Pointer {
        self.0.raw.0
    }

    fn set<T>(&self, attribute: O, value: T) -> Result<()> {
        self.0.set("cublasLtMatmulDescSetAttribute", self.0.library.operation_set, attribute as c_int, value)
    }

    pub fn transpose(&self, a: bool, b: bool) -> Result<()> {
        self.set(O::CUBLASLT_MATMUL_DESC_TRANSA, c_int::from(a))?;
        self.set(O::CUBLASLT_MATMUL_DESC_TRANSB, c_int::from(b))
    }

    /// Adds a number to each row of the result.
    pub fn add_bias(&self) -> Result<()> {
        const BIAS: u32 = 4;
        self.set(O::CUBLASLT_MATMUL_DESC_EPILOGUE, BIAS)
    }

    pub fn set_bias(&self, address: usize) -> Result<()> {
        self.set(O::CUBLASLT_MATMUL_DESC_BIAS_POINTER, address)
    }
}

/// A matrix, column by column.
#[derive(Debug)]
pub(super) struct MatrixLayout(Descriptor);

impl MatrixLayout {
    /// Without gaps between columns; so many, `stride` elements apart.
    pub fn new(library: &'static BlasLibrary, dtype: c_int, rows: usize, columns: usize) -> Result<MatrixLayout> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the library's function, and a place for the answer.
        let status = unsafe { (library.layout_create)(&raw mut raw, dtype, rows as u64, columns as u64, rows as i64) };
        library.check("cublasLtMatrixLayoutCreate", status)?;
        Ok(MatrixLayout(Descriptor { library, raw: Handle(raw), destroy: library.layout_destroy }))
    }

    pub fn raw(&self) -> Pointer {
        self.0.raw.0
    }

    fn set<T>(&self, attribute: L, value: T) -> Result<()> {
        self.0.set("cublasLtMatrixLayoutSetAttribute", self.0.library.layout_set, attribute as c_int, value)
    }

    /// Makes it a batch of `count` matrices, `stride` elements apart.
    pub fn repeat(&self, count: usize, stride: i64) -> Result<()> {
        self.set(L::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count as i32)?;
        self.set(L::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride)
    }
}

/// The constraints on an algorithm.
#[derive(Debug)]
pub(super) struct Preference(Descriptor);

impl Preference {
    pub fn new(library: &'static BlasLibrary) -> Result<Preference> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the library's function, and a place for the answer.
        let status = unsafe { (library.preference_create)(&raw mut raw) };
        library.check("cublasLtMatmulPreferenceCreate", status)?;
        Ok(Preference(Descriptor { library, raw: Handle(raw), destroy: library.preference_destroy }))
    }

    pub fn raw(&self) -> Pointer {
        self.0.raw.0
    }

    fn set<T>(&self, attribute: P, value: T) -> Result<()> {
        self.0.set("cublasLtMatmulPreferenceSetAttribute", self.0.library.preference_set, attribute as c_int, value)
    }

    pub fn workspace(&self, most: usize) -> Result<()> {
        self.set(P::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most as u64)
    }

    /// Requires partial sums in the type of sums: in the type of the result they would be rounded early.
    pub fn whole_sums(&self) -> Result<()> {
        const COMPUTE_TYPE: u32 = 2;
        self.set(P::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, COMPUTE_TYPE)
    }

    /// The alignment of all addresses.
    pub fn alignment(&self, bytes: u32) -> Result<()> {
        self.set(P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, bytes)?;
        self.set(P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, bytes)?;
        self.set(P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, bytes)?;
        self.set(P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, bytes)
    }
}
