//! Host kernels: a C function behind the kernel trait, and the C view of a call's context.

use super::argument::{array, string};
use super::handle;
use crate::abi::*;
use crate::base::object;
use crate::base::{Desc, Error, Name, Result};
use crate::ffi::task::Destroy;
use crate::kernel::{Completion, Kernel, KernelCall, KernelContext, Outputs};
use crate::ops::signature;
use crate::sync::ambient;
use std::ffi::c_void;
use std::sync::Arc;

/// The function that the host provides: a complete body, or the beginning of an asynchronous one.
#[derive(Clone, Copy)]
enum HostBody {
    Whole(KernelCall),
    Begun(unsafe extern "C" fn(*mut c_void, *mut weir_kernel_context, *mut weir_completion) -> i32),
}

/// A kernel that the host implements.
pub(super) struct HostKernel {
    name: Name,
    body: HostBody,
    infer: weir_infer_fn,
    user: *mut c_void,
    destroy: Destroy,
    /// None = anything is accepted.
    inputs: Option<Box<[Desc]>>,
    num_inputs: usize,
    /// Descriptors of the outputs, where `infer` does not compute them.
    outputs: Option<Box<[Desc]>>,
    num_outputs: usize,
    cost_ns: u64,
    scratch_bytes: usize,
    in_place: bool,
    may_block: bool,
    is_pure: bool,
    is_open: bool,
}

// SAFETY: the host promises that its functions may run on any thread, several calls at once.
unsafe impl Send for HostKernel {}
// SAFETY: as above.
unsafe impl Sync for HostKernel {}

impl HostKernel {
    /// # Safety
    /// The pointers in `desc` are NULL or point to what the C documentation says.
    pub(super) unsafe fn new(desc: &weir_host_kernel_desc) -> Result<Arc<HostKernel>> {
        let body = match (desc.compute, desc.compute_async) {
            (Some(compute), None) => {
                // SAFETY: the host promises that its function may run on any thread, several calls at once, and does
                // not unwind; the context is opaque to it.
                HostBody::Whole(unsafe { KernelCall::new(compute, desc.user) })
            }
            (None, Some(begin)) => HostBody::Begun(begin),
            (None, None) => return Err(Error::invalid("desc->compute is NULL, and desc->compute_async too")),
            (Some(_), Some(_)) => {
                return Err(Error::invalid("desc->compute and desc->compute_async are given, expected one of them"));
            }
        };
        let limit = weir_limit::WEIR_MAX_ARGS as usize;
        for (what, count) in [("num_inputs", desc.num_inputs), ("num_outputs", desc.num_outputs)] {
            if count > limit {
                return Err(Error::out_of_range(format!("desc->{what} is {count}, the limit is {limit}")));
            }
        }
        // SAFETY: as demanded of the caller.
        let (name, inputs, outputs) = unsafe {
            (
                if desc.name.is_null() { "host" } else { string(desc.name, "desc->name")? },
                patterns(desc.inputs, desc.num_inputs, "desc->inputs")?,
                patterns(desc.outputs, desc.num_outputs, "desc->outputs")?,
            )
        };
        let is_open = desc.flags & weir_kernel_flags::WEIR_KERNEL_DYNAMIC as u64 != 0;
        // A kernel with open outputs settles the dimensions when it runs.
        let is_settled = |output: &Desc| output.is_concrete() || is_open && output.dtype != crate::base::dtype::ANY;
        let settled = outputs.as_ref().is_some_and(|outputs| outputs.iter().all(is_settled));
        if desc.num_outputs > 0 && !settled && desc.infer.is_none() {
            return Err(Error::invalid("desc->outputs is NULL or leaves something open, and desc->infer is NULL"));
        }
        if desc.compute_async.is_some() && desc.flags & weir_kernel_flags::WEIR_KERNEL_MAY_BLOCK as u64 != 0 {
            return Err(Error::invalid("desc->flags says WEIR_KERNEL_MAY_BLOCK, and compute_async must not block"));
        }
        Ok(Arc::new(HostKernel {
            name: name.into(),
            body,
            infer: desc.infer,
            user: desc.user,
            destroy: Destroy::new(desc.destroy, desc.user),
            inputs,
            num_inputs: desc.num_inputs,
            outputs,
            num_outputs: desc.num_outputs,
            cost_ns: desc.cost_ns,
            scratch_bytes: desc.scratch_bytes,
            in_place: desc.flags & weir_kernel_flags::WEIR_KERNEL_IN_PLACE as u64 != 0,
            may_block: desc.flags & weir_kernel_flags::WEIR_KERNEL_MAY_BLOCK as u64 != 0,
            is_pure: desc.flags & weir_kernel_flags::WEIR_KERNEL_PURE as u64 != 0,
            is_open,
        }))
    }

    /// From now on `user` is the kernel's to release.
    pub(super) fn adopt(&self) {
        self.destroy.adopt();
    }
}

/// # Safety
/// `data` is NULL or points to `len` descriptors.
unsafe fn patterns(data: *const weir_tensor_desc, len: usize, argument: &str) -> Result<Option<Box<[Desc]>>> {
    if data.is_null() {
        return Ok(None);
    }
    // SAFETY: as demanded of the caller.
    let descs = unsafe { array(data, len, argument) }?;
    let checked = descs
        .iter()
        .enumerate()
        .map(|(i, desc)| desc.check_pattern().map_err(|error| error.within(format_args!("{argument}[{i}]"))));
    checked.collect::<Result<Box<[_]>>>().map(Some)
}

impl Kernel for HostKernel {
    fn name(&self) -> &str {
        &self.name
    }

    fn num_inputs(&self) -> usize {
        self.num_inputs
    }

    fn num_outputs(&self) -> usize {
        self.num_outputs
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        if let Some(patterns) = &self.inputs {
            signature::check("input", patterns, inputs)?;
        }
        let mut outputs =
            self.outputs.as_ref().map_or_else(|| vec![Desc::new(0, &[]); self.num_outputs], |outputs| outputs.to_vec());
        if let Some(infer) = self.infer {
            // SAFETY: the host's function; both arrays have the lengths that it is told.
            let status = ambient::call(|| unsafe {
                infer(self.user, inputs.as_ptr(), inputs.len(), outputs.as_mut_ptr(), outputs.len())
            });
            if status != 0 {
                return Err(Error::from_status(status, "its infer function"));
            }
            if let Some(patterns) = &self.outputs {
                signature::check("output", patterns, &outputs)?;
            }
        }
        Ok(outputs)
    }

    fn scratch_bytes(&self, _inputs: &[Desc], _outputs: &[Desc]) -> usize {
        self.scratch_bytes
    }

    fn cost_ns(&self, _inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        self.cost_ns
    }

    fn in_place(&self) -> bool {
        self.in_place
    }

    fn is_pure(&self) -> bool {
        self.is_pure
    }

    fn is_open(&self) -> bool {
        self.is_open
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match self.body {
            HostBody::Whole(call) => call.run(context, outputs),
            HostBody::Begun(_) => Err(Error::internal("the whole of a kernel that completes later")),
        }
    }

    fn call(&self) -> Option<KernelCall> {
        match self.body {
            HostBody::Whole(call) => Some(call),
            HostBody::Begun(_) => None,
        }
    }

    fn may_block(&self) -> bool {
        self.may_block
    }

    fn is_async(&self) -> bool {
        matches!(self.body, HostBody::Begun(_))
    }

    fn start(&self, context: &KernelContext<'_>, outputs: Outputs<'_>, done: Completion) -> Result<()> {
        let HostBody::Begun(begin) = self.body else { return done.done(self.compute(context, outputs)) };
        let handle = std::ptr::without_provenance_mut::<weir_completion>(done.into_number());
        // SAFETY: the host's function. The context is behind a tag, is read only through `borrow`, and stays until the
        // call is done, as `Kernel::start` requires. The handle is a number that is never dereferenced.
        let status = unsafe { begin(self.user, std::ptr::from_ref(context).cast_mut().cast(), handle) };
        match status {
            0 => Ok(()),
            status => Err(Error::from_status(status, "its compute_async function")),
        }
    }
}

/// As `borrow`, for frequent calls of kernels: None if anything is wrong with the three pointers; a second, slower
/// check then finds the error.
///
/// # Safety
/// As `borrow`; the others are NULL or may be written to.
#[inline]
pub(super) unsafe fn borrow_right<'a, V>(
    context: *const weir_kernel_context,
    out_views: *mut *const V,
    out_count: *mut usize,
) -> Option<&'a KernelContext<'a>> {
    if context.is_null() || !context.cast::<u64>().is_aligned() || out_views.is_null() || out_count.is_null() {
        return None;
    }
    // SAFETY: every handle and every context begins with its tag; behind a context's tag there is a context.
    unsafe {
        let tag = context.cast::<u32>().read();
        (tag == KernelContext::TAG).then(|| &*context.cast::<KernelContext<'a>>())
    }
}

/// Borrows the context of a call.
///
/// # Safety
/// `context` is NULL, or points to readable memory; if it is a context, its call is still running.
pub(super) unsafe fn borrow<'a>(context: *const weir_kernel_context, argument: &str) -> Result<&'a KernelContext<'a>> {
    if context.is_null() {
        return Err(Error::null(argument));
    }
    if !context.cast::<u64>().is_aligned() {
        return Err(Error::wrong_handle(argument, "kernel_context", None));
    }
    // SAFETY: every handle and every context begins with its tag.
    let tag = unsafe { context.cast::<u32>().read() };
    if tag != object::tag::KERNEL_CONTEXT {
        return Err(Error::wrong_handle(argument, "kernel_context", Some(tag)));
    }
    // SAFETY: the tag proves the type; the call is running.
    let context = unsafe { &*context.cast::<KernelContext<'a>>() };
    if context.is_inherited() { Err(handle::inherited(argument)) } else { Ok(context) }
}
