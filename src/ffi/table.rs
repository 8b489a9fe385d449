//! Lookup tables, and their kernels.
//!
//! Chapter: Lookup table.

use super::argument::{array, array_mut, out_ptr, out_value};
use super::guard::guard;
use super::kernel_options::kernel_options;
use super::{handle, resource, versioned};
use crate::abi::*;
use crate::base::{Error, Result};
use crate::device;
use crate::engine::BoundKernel;
use crate::memory::heap;
use crate::resource::{KeyKind, Keys, LookupTable, ResourceBody, TableKey, TableOperation, table_kernel};
use std::ffi::{c_char, c_void};

/// Creates an empty table. `container` NULL = "default"; `name` NULL = without a name.
///
/// Errors: ALREADY_EXISTS; INVALID_ARGUMENT (NULL, a bad name, struct_size, key, row, reserved not 0); OUT_OF_RANGE.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_create(
    engine: *mut weir_engine,
    container: *const c_char,
    name: *const c_char,
    desc: *const weir_table_desc,
    out_table: *mut *mut weir_resource,
) -> weir_status {
    guard("weir_table_create", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let out = out_ptr(out_table, "out_table")?;
            let (engine, desc) = (handle::borrow(engine, "engine")?, versioned::read(desc, "desc")?);
            let kind = match desc.key {
                key if key == weir_table_key_value::WEIR_TABLE_KEY_INT64 as u32 => KeyKind::Int64,
                key if key == weir_table_key_value::WEIR_TABLE_KEY_BYTES as u32 => KeyKind::Bytes,
                key => return Err(Error::invalid(format!("desc->key is {key}, which is no kind of keys"))),
            };
            if desc.reserved != 0 {
                return Err(Error::invalid(format!("desc->reserved is {}, expected 0", desc.reserved)));
            }
            let make = || LookupTable::new(kind, desc.row).map(ResourceBody::Table);
            handle::into_c(resource::create(engine, container, name, make)?, out)
        }
    })
}

/// Calls `f` with the keys of a call. No keys are of any kind, and so of the table's.
///
/// # Safety
/// As the C documentation of weir_table_keys demands.
unsafe fn with_keys<R>(
    keys: *const weir_table_keys,
    kind: KeyKind,
    f: impl FnOnce(Keys<'_>) -> Result<R>,
) -> Result<R> {
    // SAFETY: as demanded of the caller.
    unsafe {
        let keys = versioned::read(keys, "keys")?;
        match (keys.integers.is_null(), keys.bytes.is_null()) {
            (false, false) => Err(Error::invalid("keys->integers and keys->bytes are both given")),
            (false, true) => f(Keys::Int64(array(keys.integers, keys.count, "keys->integers")?)),
            (true, true) if keys.count > 0 => Err(Error::invalid(format!(
                "keys->integers and keys->bytes are NULL, but keys->count is {}",
                keys.count
            ))),
            (true, true) => f(match kind {
                KeyKind::Int64 => Keys::Int64(&[]),
                KeyKind::Bytes => Keys::Bytes(&[]),
            }),
            (true, false) => {
                let (bytes, lengths) =
                    (array(keys.bytes, keys.count, "keys->bytes")?, array(keys.lengths, keys.count, "keys->lengths")?);
                let mut all: Vec<&[u8]> = Vec::new();
                all.try_reserve_exact(keys.count).map_err(|_| Error::exhausted("the keys of a call", keys.count))?;
                for (i, (&key, &length)) in bytes.iter().zip(lengths).enumerate() {
                    if key.is_null() && length > 0 {
                        return Err(Error::null(&format!("keys->bytes[{i}]")));
                    }
                    all.push(array(key.cast::<u8>(), length, "keys->bytes")?);
                }
                f(Keys::Bytes(&all))
            }
        }
    }
}

/// Inserts rows into a table: row i under key i, in this order; an existing key gets the new row. All rows or, if
/// memory is short, none. `rows` holds keys->count rows, `bytes` bytes.
///
/// Thread safety: any thread; a find sees all rows of a call or none. Errors: INVALID_ARGUMENT (NULL, no table, keys of
/// another kind, bytes); OUT_OF_RANGE (keys->count); RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_insert(
    table: *mut weir_resource,
    keys: *const weir_table_keys,
    rows: *const c_void,
    bytes: usize,
) -> weir_status {
    guard("weir_table_insert", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let table = handle::borrow(table, "table")?.table()?;
            let rows = array(rows.cast::<u8>(), bytes, "rows")?;
            with_keys(keys, table.kind(), |keys| table.insert(keys, rows))?;
        }
        heap::check()
    })
}

/// Copies the row of each key to `out_rows` (`bytes` bytes, keys->count rows). A missing key gets `default_row` (one
/// row, NULL: zeros). `out_found` (may be NULL) receives the number of keys found. `out_flags` (may be NULL) receives 1
/// or 0 for each key; `out_flags` has keys->count elements.
///
/// Errors: INVALID_ARGUMENT (NULL, no table, keys of another kind, bytes); OUT_OF_RANGE (keys->count);
/// RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_find(
    table: *const weir_resource,
    keys: *const weir_table_keys,
    default_row: *const c_void,
    out_rows: *mut c_void,
    bytes: usize,
    out_found: *mut usize,
    out_flags: *mut u8,
) -> weir_status {
    guard("weir_table_find", || {
        // SAFETY: the caller's pointers, as documented.
        unsafe {
            let table = handle::borrow(table, "table")?.table()?;
            let row = table.row().bytes()?;
            let default =
                if default_row.is_null() { None } else { Some(array(default_row.cast(), row, "default_row")?) };
            let rows = array_mut(out_rows.cast::<u8>(), bytes, "out_rows")?;
            let found = with_keys(keys, table.kind(), |keys| {
                let flags =
                    if out_flags.is_null() { None } else { Some(array_mut(out_flags, keys.len(), "out_flags")?) };
                table.find(keys, default, rows, flags)
            })?;
            if !out_found.is_null() {
                out_value(out_found, "out_found")?.set(found);
            }
            Ok(())
        }
    })
}

/// Copies all keys and rows, in ascending order of the keys, as of one moment. The sizes in `contents` are always
/// filled; an array that is NULL with a capacity of 0 is left out.
///
/// Errors: INVALID_ARGUMENT (NULL, no table, struct_size); OUT_OF_RANGE if an array is too small (the sizes are filled,
/// the arrays left alone); RESOURCE_EXHAUSTED.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_table_export(
    table: *const weir_resource,
    contents: *mut weir_table_contents,
) -> weir_status {
    guard("weir_table_export", || {
        // SAFETY: the caller's pointers, as documented.
        let (table, mut to) =
            unsafe { (handle::borrow(table, "table")?.table()?, versioned::read(contents.cast_const(), "contents")?) };
        let (keys, rows) = table.export()?;
        let length = |key: &TableKey| match key {
            TableKey::Int64(_) => 0,
            TableKey::Bytes(bytes) => bytes.len(),
        };
        (to.count, to.rows_size, to.bytes_size) = (keys.len(), rows.len(), keys.iter().map(length).sum());
        // SAFETY: the caller's struct, as documented.
        unsafe { versioned::write(contents, &to, "contents") }?;
        let wants_keys = !(to.integers.is_null() && to.lengths.is_null() && to.capacity == 0);
        let fit = [
            ("capacity", !wants_keys || to.capacity >= to.count, to.capacity, to.count),
            (
                "bytes_capacity",
                to.bytes.is_null() || to.bytes_capacity >= to.bytes_size,
                to.bytes_capacity,
                to.bytes_size,
            ),
            ("rows_capacity", to.rows.is_null() || to.rows_capacity >= to.rows_size, to.rows_capacity, to.rows_size),
        ];
        if let Some((what, _, have, need)) = fit.into_iter().find(|(_, fits, ..)| !fits) {
            return Err(Error::out_of_range(format!("contents->{what} is {have}, the table needs {need}")));
        }
        // SAFETY: the caller's arrays, as documented; they have room for all.
        unsafe { copy_out(&to, &keys, &rows) }
    })
}

/// # Safety
/// The arrays that are not NULL have room for all.
unsafe fn copy_out(to: &weir_table_contents, keys: &[TableKey], rows: &[u8]) -> Result<()> {
    // SAFETY: as demanded of the caller.
    let (mut integers, mut lengths, mut bytes) = unsafe {
        let count = |is_null: bool, count: usize| if is_null { 0 } else { count };
        if !to.rows.is_null() {
            array_mut(to.rows.cast::<u8>(), rows.len(), "contents->rows")?.copy_from_slice(rows);
        }
        (
            array_mut(to.integers, count(to.integers.is_null(), keys.len()), "contents->integers")?.iter_mut(),
            array_mut(to.lengths, count(to.lengths.is_null(), keys.len()), "contents->lengths")?.iter_mut(),
            array_mut(to.bytes.cast::<u8>(), count(to.bytes.is_null(), to.bytes_size), "contents->bytes")?,
        )
    };
    for key in keys {
        match key {
            TableKey::Int64(key) => {
                if let Some(to) = integers.next() {
                    *to = *key;
                }
            }
            TableKey::Bytes(key) => {
                if let Some(to) = lengths.next() {
                    *to = key.len();
                }
                if bytes.len() >= key.len() {
                    let (head, tail) = bytes.split_at_mut(key.len());
                    head.copy_from_slice(key);
                    bytes = tail;
                }
            }
        }
    }
    Ok(())
}

/// Creates a kernel that looks into a table with integer keys, or inserts. The kernel refers to the table by its id and
/// does not keep it alive; a program compiled with the kernel does.
///
/// A graph must state the order in which its nodes insert into a table, and the order between inserts and lookups
/// (docs/resources.md). The kernels run in every run of a program, whether or not their outputs are used.
///
/// Errors: INVALID_ARGUMENT (NULL, no table, one of another engine, keys that are byte strings, unknown op);
/// UNIMPLEMENTED (an accelerator's engine). Of its calls, and of weir_graph_compile: NOT_FOUND (the table was
/// destroyed); of an insert RESOURCE_EXHAUSTED, too.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_kernel_create_table(
    engine: *mut weir_engine,
    table: *const weir_resource,
    op: weir_table_op,
    options: *const weir_kernel_options,
    out_kernel: *mut *mut weir_kernel,
) -> weir_status {
    use weir_table_op_value::*;
    guard("weir_kernel_create_table", || {
        // SAFETY: the caller's pointers, as documented.
        let (out, engine, resource, options) = unsafe {
            let out = out_ptr(out_kernel, "out_kernel")?;
            let (engine, resource) = (handle::share(engine, "engine")?, handle::borrow(table, "table")?);
            (out, engine, resource, kernel_options(options)?)
        };
        let operation = match op {
            op if op == WEIR_TABLE_FIND as u32 => TableOperation::Find,
            op if op == WEIR_TABLE_INSERT as u32 => TableOperation::Insert,
            op if op == WEIR_TABLE_SIZE as u32 => TableOperation::Size,
            op => return Err(Error::invalid(format!("op is {op}, expected 1 (FIND), 2 (INSERT) or 3 (SIZE)"))),
        };
        resource.check_engine(engine.resources(), "table")?;
        let kernel = table_kernel(operation, engine.resources(), resource)?;
        if engine.accelerator().is_some() {
            return Err(device::unimplemented(&engine.label(), "kernels of tables, which are in the host's memory"));
        }
        handle::into_c(BoundKernel::create(engine, kernel, &options)?, out)
    })
}
