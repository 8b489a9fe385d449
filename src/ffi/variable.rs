//! Variables, and their kernels.
//!
//! Chapter: Variable.

use super::argument::out_ptr;
use super::guard::guard;
use super::kernel_options::kernel_options;
use super::tensor::read_desc;
use super::{handle, resource};
use crate::abi::*;
use crate::base::Error;
use crate::engine::{BoundKernel, check_tensor, device_sum, side_of};
use crate::ops::check::flags;
use crate::resource::{ResourceBody, Side, Variable, VariableOperation, kernel};
use std::ffi::c_char;

/// Creates a variable like `desc`, in the engine's memory. Its initial value is that of `initial`, a tensor like `desc`
/// (NULL: zeros). `flags`: WEIR_VARIABLE_EXCLUSIVE or WEIR_VARIABLE_OPTIMISTIC. `container` NULL = "default"; `name`
/// NULL = without a name.
///
/// On an accelerator's engine the variable is in the device's memory, and `initial` there or in the host's; the device
/// orders the accesses of all streams and programs one after the other, without a wait on the host (docs/resources.md).
///
/// Blocking: never; with `initial` on a device until its value is there. Ownership: desc, names and the initial value
/// are copied. Errors: ALREADY_EXISTS; INVALID_ARGUMENT (NULL, a bad name, desc, flags, another shape of `initial`, or
/// one in the memory of another device); FAILED_PRECONDITION (`initial` of a variable on a device, where waiting may
/// block a worker); OUT_OF_RANGE; RESOURCE_EXHAUSTED; errors of the device.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_variable_create(
    engine: *mut weir_engine,
    container: *const c_char,
    name: *const c_char,
    desc: *const weir_tensor_desc,
    flags: u64,
    initial: *const weir_tensor,
    out_variable: *mut *mut weir_resource,
) -> weir_status {
    guard("weir_variable_create", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_variable, "out_variable")?;
            let (engine, desc) = (handle::borrow(engine, "engine")?, read_desc(desc, "desc")?);
            let optimistic = weir_variable_flags::WEIR_VARIABLE_OPTIMISTIC as u64;
            let is_optimistic = self::flags(flags, optimistic, "flags")? != 0;
            let initial = handle::borrow_opt(initial, "initial")?;
            let on_device = engine.accelerator().is_some();
            if let Some(initial) = initial.filter(|initial| !on_device || initial.engine().accelerator().is_some()) {
                check_tensor("initial", 0, initial, engine)?;
            }
            let make = || {
                let variable = if on_device {
                    let side = |of_host: bool| if of_host { Side::Host } else { Side::Device };
                    let initial =
                        initial.map(|initial| (initial.view(), side(initial.engine().accelerator().is_none())));
                    // The tensor is in the memory of its engine, and the host writes no tensor that is in use.
                    Variable::create_on(engine.device(), engine.memory(), desc, is_optimistic, initial)
                } else {
                    // Host memory, as was checked.
                    Variable::create(desc, is_optimistic, initial.map(|initial| initial.view().as_bytes()))
                };
                variable.map(ResourceBody::Variable)
            };
            handle::into_c(resource::create(engine, container, name, make)?, out)
        }
    })
}

/// Copies a variable's value into a tensor of the same shape, in the calling thread. The tensor is in the memory of the
/// variable's device, or the host's.
///
/// Blocking: while a node or another call holds an exclusive variable; in a worker of a pool it spins for a moment and
/// refuses. For a variable on a device: until the copy is done; inside of anything that weir has called it refuses.
/// Errors: INVALID_ARGUMENT (NULL, no variable, another shape, the memory of another device); FAILED_PRECONDITION
/// (waiting here may block a worker); errors of the device.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_variable_read(variable: *const weir_resource, tensor: *mut weir_tensor) -> weir_status {
    guard("weir_variable_read", || {
        // SAFETY: the caller's handles, as documented.
        let (resource, tensor) = unsafe { (handle::borrow(variable, "variable")?, handle::borrow(tensor, "tensor")?) };
        let variable = resource.variable()?;
        let side = side_of(variable, tensor, "tensor")?;
        // SAFETY: the tensor is where the side says; the host uses no tensor that is in use otherwise.
        unsafe { variable.get(tensor.view(), side, &|| resource.text()) }
    })
}

/// Assigns the value of a tensor of the same shape to a variable, in the calling thread.
///
/// Blocking: as weir_variable_read. Errors: those of weir_variable_read; RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_variable_assign(variable: *mut weir_resource, tensor: *const weir_tensor) -> weir_status {
    guard("weir_variable_assign", || {
        // SAFETY: the caller's handles, as documented.
        let (resource, tensor) = unsafe { (handle::borrow(variable, "variable")?, handle::borrow(tensor, "tensor")?) };
        let variable = resource.variable()?;
        let side = side_of(variable, tensor, "tensor")?;
        // SAFETY: the tensor is where the side says; the host writes no tensor that is in use.
        unsafe { variable.set(tensor.view(), side, &|| resource.text()) }
    })
}

/// Creates a kernel that reads or writes a variable. The kernel refers to the variable by its id and does not keep it
/// alive; a program compiled with the kernel does.
///
/// Kernels of an exclusive variable complete later while another node holds it, so synchronous streams and runs inside
/// of a worker of a pool refuse them; kernels of an optimistic variable, and of a variable on a device, may run
/// anywhere. They run in every run of a program, whether or not their outputs are used.
///
/// Errors: INVALID_ARGUMENT (NULL, no variable, one of another engine, unknown op, a sum of elements that are no
/// numbers). Calls of the kernel, and weir_graph_compile: NOT_FOUND (the variable was destroyed); of a write
/// RESOURCE_EXHAUSTED, too.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_variable(
    engine: *mut weir_engine,
    variable: *const weir_resource,
    op: weir_variable_op,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    use weir_variable_op_value::*;
    guard("weir_kernel_create_variable", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine, resource, options) = unsafe {
            let out = out_ptr(out_kernel, "out_kernel")?;
            let (engine, resource) = (handle::share(engine, "engine")?, handle::borrow(variable, "variable")?);
            (out, engine, resource, kernel_options(options)?)
        };
        let operation = match op {
            op if op == WEIR_VARIABLE_READ as u32 => VariableOperation::Read,
            op if op == WEIR_VARIABLE_ASSIGN as u32 => VariableOperation::Assign,
            op if op == WEIR_VARIABLE_ASSIGN_ADD as u32 => VariableOperation::AssignAdd,
            op => return Err(Error::invalid(format!("op is {op}, expected 1 (READ), 2 (ASSIGN) or 3 (ASSIGN_ADD)"))),
        };
        resource.check_engine(engine.resources(), "variable")?;
        let sum = match operation {
            VariableOperation::AssignAdd => device_sum(&engine)?,
            _ => None,
        };
        let kernel = kernel(operation, engine.resources(), resource, sum)?;
        handle::into_c(BoundKernel::create(engine, kernel, &options)?, out)
    })
}
