//! Resources: kinds, flags, information, tables.
//!
//! Chapter: Resources.
use super::{weir_resource, weir_status, weir_tensor_desc};
use std::ffi::{c_char, c_void};

/// The kind of a resource: one of enum weir_resource_kind_value.
pub type weir_resource_kind = u32;

/// Kinds of resources.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_resource_kind_value {
    /// In a lookup: any kind. Never the kind of a resource.
    WEIR_RESOURCE_ANY = 0,
    /// A tensor that lives between runs.
    WEIR_RESOURCE_VARIABLE = 1,
    /// A lookup table.
    WEIR_RESOURCE_TABLE = 2,
    /// A host object.
    WEIR_RESOURCE_HOST = 3,
}

/// Creates a resource for weir_resource_lookup_or_create: creates one of `engine` with name NULL and stores the
/// reference in *out_resource, which passes to weir. Returns WEIR_OK or the code of its failure. It may take its time,
/// and create other resources; it must not throw, longjmp or unwind.
pub type weir_resource_build_fn =
    Option<unsafe extern "C" fn(arg: *mut c_void, out_resource: *mut *mut weir_resource) -> weir_status>;

/// A description of a resource.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_resource_info {
    /// sizeof(weir_resource_info), set by the caller before the call.
    pub struct_size: usize,
    /// Its id on its engine, an index and a generation, valid while it has its name (or, without one, is alive) and
    /// never reused for another resource. It keeps nothing alive (weir_resource_from_id).
    pub id: u64,
    /// Its kind.
    pub kind: weir_resource_kind,
    /// 1: a variable for optimistic use.
    pub optimistic: u32,
    /// References now, not counting the container's: handles, programs, work in flight.
    pub references: u64,
    /// Memory that it holds, in bytes; 0 for host objects.
    pub bytes: u64,
    /// Number of rows of a table.
    pub rows: u64,
    /// Its container, "" if it has no name.
    pub container: [c_char; 64],
    /// Its name, "" if it has none.
    pub name: [c_char; 128],
    /// The type name of a host object.
    pub type_name: [c_char; 64],
    /// Element type and shape of a variable, or of a table's rows.
    pub desc: weir_tensor_desc,
}

/// Flags of weir_variable_create.
///
/// Chapter: Variable.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_variable_flags {
    /// Exclusive: nodes, streams and the host take turns, and a graph states the order of its nodes' accesses.
    WEIR_VARIABLE_EXCLUSIVE = 0,
    /// Optimistic: nobody waits. A read sees one whole value, never parts of two; no sum is lost; a graph need not
    /// state an order.
    WEIR_VARIABLE_OPTIMISTIC = 1,
}

/// An operation of a kernel on a variable: one of enum weir_variable_op_value.
///
/// Chapter: Variable.
pub type weir_variable_op = u32;

/// Operations of weir_kernel_create_variable.
///
/// Chapter: Variable.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_variable_op_value {
    /// No input; one output, the value as it is when the kernel runs.
    WEIR_VARIABLE_READ = 1,
    /// One input like the variable, its new value; no output. A write that has begun is completed, even if the run is
    /// cancelled.
    WEIR_VARIABLE_ASSIGN = 2,
    /// As ASSIGN, and the input is added to the value: f32, bf16, f16, s64, s32, s8, u8, with the sums of
    /// weir_kernel_create_binary. Concurrent additions of several nodes are all included, in some order, which may show
    /// in floating point.
    WEIR_VARIABLE_ASSIGN_ADD = 3,
}

/// An operation of a kernel on a table: one of enum weir_table_op_value.
///
/// Chapter: Lookup table.
pub type weir_table_op = u32;

/// Operations of weir_kernel_create_table.
///
/// Chapter: Lookup table.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_table_op_value {
    /// Inputs: keys, s64 of any shape; the row for missing keys. Outputs: the rows, of the keys' shape followed by the
    /// row's; and bool of the keys' shape, whether each key was found. It sees all of an insert or nothing of it.
    WEIR_TABLE_FIND = 1,
    /// Inputs: keys, s64 of any shape; rows, of the keys' shape followed by the row's. No output. As weir_table_insert:
    /// in the order of the keys, all or none.
    WEIR_TABLE_INSERT = 2,
    /// No input; one output, a scalar of s64, the number of keys.
    WEIR_TABLE_SIZE = 3,
}

/// The key type of a table: one of enum weir_table_key_value.
///
/// Chapter: Lookup table.
pub type weir_table_key = u32;

/// Key types of tables.
///
/// Chapter: Lookup table.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_table_key_value {
    /// Signed 64-bit integers.
    WEIR_TABLE_KEY_INT64 = 1,
    /// Strings of bytes of any length, any bytes.
    WEIR_TABLE_KEY_BYTES = 2,
}

/// Descriptor of a table.
///
/// Chapter: Lookup table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_table_desc {
    /// sizeof(weir_table_desc), set by the caller.
    pub struct_size: usize,
    /// Kind of the keys.
    pub key: weir_table_key,
    /// 0.
    pub reserved: u32,
    /// Element type and shape of each row.
    pub row: weir_tensor_desc,
}

/// Keys of one call: `integers`, or `bytes` with `lengths`, according to the table's key type; the others are NULL.
///
/// Chapter: Lookup table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_table_keys {
    /// sizeof(weir_table_keys), set by the caller.
    pub struct_size: usize,
    /// Number of keys.
    pub count: usize,
    /// `count` integers, or NULL.
    pub integers: *const i64,
    /// `count` byte strings, or NULL.
    pub bytes: *const *const c_void,
    /// Their lengths, if `bytes` is given.
    pub lengths: *const usize,
}

/// Output arrays of weir_table_export. Arrays that are NULL with a capacity of 0 are left out.
///
/// Chapter: Lookup table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_table_contents {
    /// sizeof(weir_table_contents), set by the caller.
    pub struct_size: usize,
    /// Capacity of `integers` or `lengths`, in keys, set by the caller.
    pub capacity: usize,
    /// Out: number of rows in the table.
    pub count: usize,
    /// Keys in ascending order, for a table of integers.
    pub integers: *mut i64,
    /// Lengths of the keys, for a table of byte strings.
    pub lengths: *mut usize,
    /// The byte strings, contiguous, in ascending order of the keys.
    pub bytes: *mut c_void,
    /// Capacity of `bytes`, set by the caller.
    pub bytes_capacity: usize,
    /// Out: total bytes of all keys.
    pub bytes_size: usize,
    /// The rows in the order of the keys.
    pub rows: *mut c_void,
    /// Capacity of `rows` in bytes, set by the caller.
    pub rows_capacity: usize,
    /// Out: total bytes of all rows.
    pub rows_size: usize,
}
