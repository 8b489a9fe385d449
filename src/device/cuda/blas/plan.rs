//! The plan of a product, made once for each shape, and the plans of a kernel.
//!
//! The library's matrices are column-major. Row-major ones are their transposes, so a product is requested with its
//! factors swapped: the columns of B A are the rows of A B.

use super::Blas;
use super::descriptor::{MatmulDescriptor, MatrixLayout, Preference};
use super::library::{Algorithm, NOT_SUPPORTED, Proposal, SUCCESS};
use crate::base::{Error, Result, dtype};
use crate::device::cuda::product::{MatrixProduct, ProductShape};
use crate::device::cuda::table::{CUdeviceptr, CUstream};
use crate::sync::Mutex;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// cublasComputeType_t.
const COMPUTE_F32: c_int = 68;
const COMPUTE_S32: c_int = 72;
const COMPUTE_TF32: c_int = 77;

/// Most shapes that a kernel keeps.
const MOST_PLANS: usize = 64;

/// cudaDataType_t.
fn data_type(of: u32) -> Option<c_int> {
    Some(match of {
        dtype::F32 => 0,
        dtype::F16 => 2,
        dtype::S8 => 3,
        dtype::S32 => 10,
        dtype::BF16 => 14,
        _ => return None,
    })
}

#[derive(Debug)]
struct ProductPlan {
    operation: MatmulDescriptor,
    /// In the library's order: B, A, and C.
    first: MatrixLayout,
    second: MatrixLayout,
    result: MatrixLayout,
    algorithm: Algorithm,
    workspace_bytes: usize,
}

impl ProductPlan {
    /// `None`: the library cannot do this.
    fn new(blas: &Blas, product: &MatrixProduct) -> Result<Option<ProductPlan>> {
        let (library, shape) = (blas.library, &product.shape);
        let (Some(from), Some(to)) = (data_type(shape.dtype), data_type(shape.to)) else { return Ok(None) };
        let (compute, scale) = match shape.dtype {
            dtype::S8 => (COMPUTE_S32, dtype::S32),
            dtype::F32 if shape.tf32 => (COMPUTE_TF32, dtype::F32),
            _ => (COMPUTE_F32, dtype::F32),
        };
        let operation = MatmulDescriptor::new(library, compute, data_type(scale).unwrap_or(0))?;
        operation.transpose(shape.transpose_b, shape.transpose_a)?;
        if shape.bias {
            operation.add_bias()?;
            // Not used, but required.
            operation.set_bias(product.bias)?;
        }
        let stored = |rows, columns, transposed| if transposed { (rows, columns) } else { (columns, rows) };
        let (rows, columns) = stored(shape.k, shape.n, shape.transpose_b);
        let first = MatrixLayout::new(library, from, rows, columns)?;
        let (rows, columns) = stored(shape.m, shape.k, shape.transpose_a);
        let second = MatrixLayout::new(library, from, rows, columns)?;
        let result = MatrixLayout::new(library, to, shape.n, shape.m)?;
        if shape.batch > 1 {
            first.repeat(shape.batch, shape.strides[1])?;
            second.repeat(shape.batch, shape.strides[0])?;
            result.repeat(shape.batch, (shape.m * shape.n) as i64)?;
        }
        let preference = Preference::new(library)?;
        preference.workspace(blas.most_workspace)?;
        preference.whole_sums()?;
        preference.alignment(shape.alignment)?;
        let (mut proposal, mut count) = (Proposal::default(), 0);
        let entered = blas.context.enter_relaxed()?;
        // SAFETY: the library's function with descriptors of its own, and places for the answers.
        let status = unsafe {
            (library.propose)(
                blas.handle.0,
                operation.raw(),
                first.raw(),
                second.raw(),
                result.raw(),
                result.raw(),
                preference.raw(),
                1,
                &raw mut proposal,
                &raw mut count,
            )
        };
        drop(entered);
        if status == NOT_SUPPORTED || (status == SUCCESS && (count < 1 || proposal.state != SUCCESS)) {
            return Ok(None);
        }
        library.check("cublasLtMatmulAlgoGetHeuristic", status)?;
        let Proposal { algorithm, workspace_bytes, .. } = proposal;
        if workspace_bytes > blas.most_workspace {
            return Err(Error::internal(format!("cuBLASLt wants a workspace of {workspace_bytes} bytes")));
        }
        Ok(Some(ProductPlan { operation, first, second, result, algorithm, workspace_bytes }))
    }
}

/// A product ready for a stream.
#[derive(Debug)]
pub(in crate::device::cuda) struct Prepared<'a> {
    blas: &'a Arc<Blas>,
    plan: &'a ProductPlan,
    product: &'a MatrixProduct,
}

impl Prepared<'_> {
    pub fn blas(&self) -> &Arc<Blas> {
        self.blas
    }

    /// The workspace that it uses exclusively while it runs; 0 = none.
    pub fn workspace_bytes(&self) -> usize {
        self.plan.workspace_bytes
    }

    /// Puts it into a stream of the current context, with a workspace of at least `workspace_bytes`. Returns the
    /// library's status.
    pub(super) fn enqueue(&self, stream: CUstream, workspace: CUdeviceptr) -> Result<i32> {
        let (Blas { library, handle, .. }, plan, product) = (&**self.blas, self.plan, self.product);
        if product.shape.bias {
            plan.operation.set_bias(product.bias)?;
        }
        let (one, zero) = (1.0f32, 0.0f32);
        let (whole_one, whole_zero) = (1i32, 0i32);
        let scalar = |whole: &i32, part: &f32| -> *const c_void {
            match product.shape.dtype {
                dtype::S8 => std::ptr::from_ref(whole).cast(),
                _ => std::ptr::from_ref(part).cast(),
            }
        };
        let alpha = scalar(&whole_one, &one);
        let beta = if product.shape.addend { alpha } else { scalar(&whole_zero, &zero) };
        let at = std::ptr::with_exposed_provenance_mut::<c_void>;
        let addend = if product.shape.addend { product.addend } else { product.c };
        // SAFETY: the library's function with objects of its own, a stream of the context, and scalars that live during
        // the call. The validity of the addresses is the caller's duty.
        Ok(unsafe {
            (library.multiply)(
                handle.0,
                plan.operation.raw(),
                alpha,
                at(product.b),
                plan.first.raw(),
                at(product.a),
                plan.second.raw(),
                beta,
                at(addend),
                plan.result.raw(),
                at(product.c),
                plan.result.raw(),
                &raw const plan.algorithm,
                at(workspace as usize),
                plan.workspace_bytes,
                stream,
            )
        })
    }
}

/// The products of a kernel, by their shapes.
#[derive(Debug)]
pub(in crate::device::cuda) struct Plans {
    blas: Arc<Blas>,
    known: Mutex<KnownPlan>,
}

#[derive(Debug)]
struct KnownPlan {
    plans: Vec<(ProductShape, Option<ProductPlan>, u64)>,
    /// Counts the uses.
    time: u64,
}

impl Plans {
    pub fn new(blas: &Arc<Blas>) -> Plans {
        let known = KnownPlan { plans: Vec::with_capacity(MOST_PLANS), time: 0 };
        Plans { blas: Arc::clone(blas), known: Mutex::new(known) }
    }

    /// Passes a product to `issue`; `None` if the library cannot do it. A known shape does not allocate.
    pub fn issue<T>(
        &self,
        product: &MatrixProduct,
        issue: impl FnOnce(&Prepared<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        // A descriptor is for one thread at a time: the lock is kept to the end.
        let mut known = self.known.lock();
        known.time += 1;
        let time = known.time;
        let at = match known.plans.iter().position(|(shape, ..)| *shape == product.shape) {
            Some(at) => at,
            None => {
                let plan = ProductPlan::new(&self.blas, product)?;
                if known.plans.len() == MOST_PLANS {
                    let oldest = known.plans.iter().enumerate().min_by_key(|(_, (.., used))| *used);
                    let oldest = oldest.map_or(0, |(at, _)| at);
                    known.plans.swap_remove(oldest);
                }
                known.plans.push((product.shape, plan, 0));
                known.plans.len() - 1
            }
        };
        let (_, plan, used) = &mut known.plans[at];
        *used = time;
        plan.as_ref().map(|plan| issue(&Prepared { blas: &self.blas, plan, product })).transpose()
    }
}
