//! The kernels that use tables.

use super::argument::out_ptr;
use super::guard::guard;
use super::handle;
use crate::abi::*;
use crate::base::Result;
use crate::device;
use crate::engine::{BoundKernel, KernelAttr};
use crate::resource::{TableOperation, table_kernel};

/// The common end of the creation of a table's kernels.
///
/// # Safety
/// The caller's pointers are as the C documentation demands.
unsafe fn create(
    engine: *mut weir_engine,
    table: *const weir_resource,
    operation: TableOperation,
    attr: *const weir_kernel_attr,
    out_kernel: *mut *mut weir_kernel,
) -> Result<()> {
    // SAFETY: the caller's pointers, as documented.
    let (out, engine, resource, attr) = unsafe {
        let out = out_ptr(out_kernel, "out_kernel")?;
        let (engine, resource) = (handle::share(engine, "engine")?, handle::borrow(table, "table")?);
        (out, engine, resource, handle::borrow_opt(attr, "attr")?)
    };
    resource.check_engine(engine.resources(), "table")?;
    let kernel = table_kernel(operation, engine.resources(), resource)?;
    if engine.accelerator().is_some() {
        return Err(device::unimplemented(&engine.label(), "kernels of tables, which are in the host's memory"));
    }
    let default = KernelAttr::default();
    handle::into_c(BoundKernel::create(engine, kernel, attr.map_or(&default, |attr| &**attr))?, out)
}

/// Makes a kernel that looks keys up in a table whose keys are integers. Inputs: keys, s64 of any shape; a row for keys
/// that are not there. Outputs: the rows, of the keys' shape followed by the row's; and bool of the keys' shape,
/// whether each was there. It sees all of an insert or nothing of it. The kernel knows the table by its id and does not
/// keep it alive; a program does that was compiled with the kernel.
///
/// A graph must say in which order its nodes insert into a table, and in which order they insert and look
/// (docs/resources.md). The kernels run in every run of a program, whether or not anybody uses what they find.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; attr is copied.
/// Errors: INVALID_ARGUMENT (NULL, no table, one of another engine, keys that are byte strings); UNIMPLEMENTED (an
/// engine whose work the host does not do). Of its calls, and of weir_graph_compile: NOT_FOUND (the table was
/// destroyed).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_table_find(
    engine: *mut weir_engine,
    table: *const weir_resource,
    attr: *const weir_kernel_attr,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    guard("weir_kernel_create_table_find", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe { create(engine, table, TableOperation::Find, attr, out_kernel) }
    })
}

/// Makes a kernel that inserts into a table whose keys are integers. Inputs: keys, s64 of any shape; rows, of the keys'
/// shape followed by the row's. No output. As weir_table_insert: in the order of the keys, all or none. Otherwise as
/// weir_kernel_create_table_find.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; attr is copied.
/// Errors: those of weir_kernel_create_table_find; of its calls RESOURCE_EXHAUSTED, too.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_table_insert(
    engine: *mut weir_engine,
    table: *const weir_resource,
    attr: *const weir_kernel_attr,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    guard("weir_kernel_create_table_insert", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe { create(engine, table, TableOperation::Insert, attr, out_kernel) }
    })
}

/// Makes a kernel that tells how many keys a table has: no input, one output, a scalar of s64. Otherwise as
/// weir_kernel_create_table_find.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; attr is copied.
/// Errors: those of weir_kernel_create_table_find.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_table_size(
    engine: *mut weir_engine,
    table: *const weir_resource,
    attr: *const weir_kernel_attr,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    guard("weir_kernel_create_table_size", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe { create(engine, table, TableOperation::Size, attr, out_kernel) }
    })
}
