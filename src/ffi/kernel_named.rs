//! Named kernels, which only the device of an engine knows.
//!
//! Chapter: Kernel.

use super::argument::{array, out_ptr, string};
use super::context::HostKernel;
use super::guard::guard;
use super::kernel_options::kernel_options;
use super::{handle, versioned};
use crate::abi::*;
use crate::base::{Code, Desc, Error, Result};
use crate::device::{self, Operation};
use crate::engine::{BoundKernel, KernelIdentity};
use crate::kernel::{Kernel, KernelContext, Outputs};
use std::ffi::c_void;
use std::sync::Arc;

/// The signature that the host gave, without a body.
pub(super) struct Named(pub(super) Arc<HostKernel>);

/// Never called.
pub(super) unsafe extern "C" fn no_body(_user: *mut c_void, _context: *mut weir_kernel_context) -> i32 {
    weir_status_value::WEIR_UNIMPLEMENTED as i32
}

/// A host kernel's descriptor with the signature of another descriptor, under that name.
macro_rules! signature {
    ($desc:expr, $name:expr) => {
        weir_host_kernel_desc {
            struct_size: size_of::<weir_host_kernel_desc>(),
            name: $name,
            compute: Some($crate::ffi::kernel_named::no_body),
            user: $desc.user,
            destroy: $desc.destroy,
            num_inputs: $desc.num_inputs,
            inputs: $desc.inputs,
            num_outputs: $desc.num_outputs,
            outputs: $desc.outputs,
            infer: $desc.infer,
            cost_ns: 0,
            scratch_bytes: 0,
            flags: 0,
            compute_async: None,
        }
    };
}
pub(super) use signature;

impl Kernel for Named {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn num_inputs(&self) -> usize {
        self.0.num_inputs()
    }

    fn num_outputs(&self) -> usize {
        self.0.num_outputs()
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        self.0.infer(inputs)
    }

    fn in_place(&self) -> bool {
        self.0.in_place()
    }

    fn is_on_host(&self) -> bool {
        false
    }

    fn compute(&self, _context: &KernelContext<'_>, _outputs: Outputs<'_>) -> Result<()> {
        Err(Error::new(Code::Unimplemented, "only a device knows how to do it"))
    }
}

/// Creates a kernel that only the engine's device knows, see weir_named_kernel_desc: one of a plug-in's own. options
/// may be NULL; without a name in them the kernel has the name of the operation.
///
/// Ownership: desc->user passes to the kernel if desc->destroy is given. Errors: INVALID_ARGUMENT (NULL, struct_size,
/// bad signature, bad UTF-8); OUT_OF_RANGE (num_inputs, num_outputs); UNIMPLEMENTED if the device has no such kernel,
/// or the engine is a CPU engine; else errors of the device.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_named(
    engine: *mut weir_engine,
    desc: *const weir_named_kernel_desc,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    guard("weir_kernel_create_named", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_kernel, "out_kernel")?;
            let engine = handle::share(engine, "engine")?;
            let desc = versioned::read(desc, "desc")?;
            let options = kernel_options(options)?;
            let operation = string(desc.operation, "desc->operation")?;
            if operation.is_empty() {
                return Err(Error::invalid("desc->operation is \"\""));
            }
            let attributes = array(desc.attributes.cast::<u8>(), desc.attributes_bytes, "desc->attributes")?;
            let kernel = Arc::new(Named(HostKernel::new(&signature!(desc, desc.operation))?));
            if engine.accelerator().is_none() {
                let what = format!("kernel '{operation}' of its own");
                return Err(device::unimplemented(&engine.label(), what));
            }
            let host = Arc::clone(&kernel.0);
            handle::into_c(
                BoundKernel::create_as(
                    engine,
                    kernel,
                    KernelIdentity { operation: Operation::Named(operation, attributes), is_bound: true, stays: true },
                    &options,
                )?,
                out,
            )?;
            // Only now, with the creation a success, is `user` the kernel's to release.
            host.adopt();
            Ok(())
        }
    })
}
