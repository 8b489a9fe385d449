//! cuBLASLt, if it is installed: a separate library, found on the first product.
//!
//! It is called with plain numbers, since its enums differ between versions. Its functions are resolved once; those of
//! the bindings are not called, since they panic where one is missing.

use crate::base::{Code, Error, Result};
use crate::device::cuda::table::CUstream;
use crate::sync::OnceLock;
use cudarc::cublaslt::sys;
use std::ffi::{c_int, c_void};

/// The status of a library function.
pub(super) type Status = i32;
/// A handle, a descriptor of some sort.
pub(super) type Pointer = *mut c_void;

pub(super) const SUCCESS: Status = 0;
/// Statuses for: not with this driver, this device, this licence; not this product.
pub(super) const NOT_INITIALIZED: Status = 1;
pub(super) const ARCH_MISMATCH: Status = 8;
pub(super) const NOT_SUPPORTED: Status = 15;
pub(super) const LICENSE_ERROR: Status = 16;

/// The oldest that is used: of CUDA 12.0.
const OLDEST: usize = 120_000;

/// An algorithm, which only the library reads.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Algorithm {
    data: [u64; 8],
}

/// The library's proposal for a product.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Proposal {
    pub algorithm: Algorithm,
    pub workspace_bytes: usize,
    pub state: Status,
    pub waves: f32,
    reserved: [c_int; 4],
}

const _: () = assert!(size_of::<Proposal>() == size_of::<sys::cublasLtMatmulHeuristicResult_t>());

pub(super) type Create = unsafe extern "C" fn(*mut Pointer) -> Status;
pub(super) type Destroy = unsafe extern "C" fn(Pointer) -> Status;
/// Descriptor, attribute, value, bytes of it.
pub(super) type Set = unsafe extern "C" fn(Pointer, c_int, *const c_void, usize) -> Status;

/// The functions used.
#[derive(Debug)]
pub(super) struct BlasLibrary {
    /// 120304 = CUDA 12.3, update 4.
    pub version: usize,
    pub create: Create,
    pub destroy: Destroy,
    /// Types of sums and of factors.
    pub operation_create: unsafe extern "C" fn(*mut Pointer, c_int, c_int) -> Status,
    pub operation_destroy: Destroy,
    pub operation_set: Set,
    /// Type, rows, columns, leading dimension.
    pub layout_create: unsafe extern "C" fn(*mut Pointer, c_int, u64, u64, i64) -> Status,
    pub layout_destroy: Destroy,
    pub layout_set: Set,
    pub preference_create: Create,
    pub preference_destroy: Destroy,
    pub preference_set: Set,
    /// Handle, operation, A, B, C, D, preference, how many are wanted, they, how many there are.
    pub propose: unsafe extern "C" fn(
        Pointer,
        Pointer,
        Pointer,
        Pointer,
        Pointer,
        Pointer,
        Pointer,
        c_int,
        *mut Proposal,
        *mut c_int,
    ) -> Status,
    /// Handle, operation, alpha, A, B, beta, C, D, algorithm, workspace, its bytes, stream; matrices each with their
    /// layout.
    pub multiply: unsafe extern "C" fn(
        Pointer,
        Pointer,
        *const c_void,
        *const c_void,
        Pointer,
        *const c_void,
        Pointer,
        *const c_void,
        *const c_void,
        Pointer,
        Pointer,
        Pointer,
        *const Algorithm,
        Pointer,
        usize,
        CUstream,
    ) -> Status,
}

static LIBRARY: OnceLock<Result<BlasLibrary, String>> = OnceLock::new();

impl BlasLibrary {
    /// The library, or the reason why it is not used.
    pub(super) fn get() -> Result<&'static BlasLibrary, &'static str> {
        LIBRARY.get_or_init(BlasLibrary::load).as_ref().map_err(String::as_str)
    }

    fn load() -> Result<BlasLibrary, String> {
        // SAFETY: libraries of these names are cuBLASLt, or do nothing when they are opened.
        if !unsafe { sys::is_culib_present() } {
            return Err("there is no library libcublasLt.so".to_owned());
        }
        macro_rules! find {
            ($name:literal) => {
                // SAFETY: the library was found just now, so this does not panic; the function with this name has the
                // type of the member (CUDA 11.0 and later).
                match unsafe { sys::culib().get($name.as_bytes()) } {
                    Ok(found) => *found,
                    Err(_) => return Err(format!("libcublasLt has no {}", $name)),
                }
            };
        }
        let version: unsafe extern "C" fn() -> usize = find!("cublasLtGetVersion");
        // SAFETY: the library's function.
        let version = unsafe { version() };
        let library = BlasLibrary {
            version,
            create: find!("cublasLtCreate"),
            destroy: find!("cublasLtDestroy"),
            operation_create: find!("cublasLtMatmulDescCreate"),
            operation_destroy: find!("cublasLtMatmulDescDestroy"),
            operation_set: find!("cublasLtMatmulDescSetAttribute"),
            layout_create: find!("cublasLtMatrixLayoutCreate"),
            layout_destroy: find!("cublasLtMatrixLayoutDestroy"),
            layout_set: find!("cublasLtMatrixLayoutSetAttribute"),
            preference_create: find!("cublasLtMatmulPreferenceCreate"),
            preference_destroy: find!("cublasLtMatmulPreferenceDestroy"),
            preference_set: find!("cublasLtMatmulPreferenceSetAttribute"),
            propose: find!("cublasLtMatmulAlgoGetHeuristic"),
            multiply: find!("cublasLtMatmul"),
        };
        if version < OLDEST {
            return Err(format!("{} is too old, 12.0 or later is used", library.text()));
        }
        Ok(library)
    }

    /// "cuBLASLt 12.3"
    pub(super) fn text(&self) -> String {
        format!("cuBLASLt {}.{}", self.version / 10_000, self.version / 100 % 100)
    }

    pub(super) fn check(&self, function: &str, status: Status) -> Result<()> {
        if status == SUCCESS { Ok(()) } else { Err(failed(function, status)) }
    }
}

/// "CUBLAS_STATUS_ALLOC_FAILED (3)"
pub(super) fn text(status: Status) -> String {
    let name = match status {
        1 => "NOT_INITIALIZED",
        3 => "ALLOC_FAILED",
        7 => "INVALID_VALUE",
        8 => "ARCH_MISMATCH",
        11 => "MAPPING_ERROR",
        13 => "EXECUTION_FAILED",
        14 => "INTERNAL_ERROR",
        15 => "NOT_SUPPORTED",
        16 => "LICENSE_ERROR",
        _ => return format!("cuBLAS status {status}"),
    };
    format!("CUBLAS_STATUS_{name} ({status})")
}

#[cold]
fn failed(function: &str, status: Status) -> Error {
    let code = match status {
        3 => Code::ResourceExhausted,
        NOT_INITIALIZED | ARCH_MISMATCH | LICENSE_ERROR => Code::Unavailable,
        NOT_SUPPORTED => Code::Unimplemented,
        _ => Code::Internal,
    };
    Error::new(code, format!("{function}: {}", text(status)))
}
