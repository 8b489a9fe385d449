//! Kernels on tables.
//!
//! Chapter: Lookup table.

use super::argument::out_ptr;
use super::guard::guard;
use super::handle;
use crate::abi::*;
use crate::base::Result;
use crate::device;
use crate::engine::{BoundKernel, KernelAttr};
use crate::resource::{TableOperation, table_kernel};

/// The shared end of the creation of a table's kernels.
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

/// Creates a kernel that looks up keys in a table with integer keys. Inputs: keys, s64 of any shape; the row for
/// missing keys. Outputs: the rows, of the keys' shape followed by the row's; and bool of the keys' shape, whether each
/// key was found. It sees all of an insert or nothing of it. The kernel refers to the table by its id and does not keep
/// it alive; a program compiled with the kernel does.
///
/// A graph must state the order in which its nodes insert into a table, and the order between inserts and lookups
/// (docs/resources.md). The kernels run in every run of a program, whether or not their outputs are used.
///
/// Thread safety: any thread. Blocking: never. Ownership: the caller owns one reference to *out_kernel; attr is copied.
/// Errors: INVALID_ARGUMENT (NULL, no table, one of another engine, keys that are byte strings); UNIMPLEMENTED (an
/// accelerator's engine). Of its calls, and of weir_graph_compile: NOT_FOUND (the table was destroyed).
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

/// Creates a kernel that inserts into a table with integer keys. Inputs: keys, s64 of any shape; rows, of the keys'
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

/// Creates a kernel that returns the number of keys of a table: no input, one output, a scalar of s64. Otherwise as
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
