//! Which structs are versioned, and how large each was in the first published header.

use super::versioned::Versioned;
use crate::ops::{Descriptor, Operator};

macro_rules! versioned {
    ($($name:ident : $last:ident : $last_type:ty),* $(,)?) => {
        // SAFETY: plain repr(C) structs of integers, raw pointers and optional function pointers.
        $(unsafe impl Versioned for crate::abi::$name {
            const FIRST_SIZE: usize = std::mem::offset_of!(crate::abi::$name, $last) + size_of::<$last_type>();
        })*
    };
}

// SAFETY: as of `Descriptor`.
unsafe impl<D: Descriptor> Versioned for D {
    const FIRST_SIZE: usize = <D::Operator as Operator>::FIRST_SIZE;
}

// The last member of each struct in the first published header; later members are optional.
versioned! {
    weir_threadpool_vtable: release: usize,
    weir_parallel_hint: flags: u32,
    weir_conformance_options: flags: u32,
    weir_device_vtable: release: usize,
    weir_named_kernel_desc: destroy: usize,
    weir_threadpool_costs: join_ns: f64,
    weir_threadpool_options: costs: *const crate::abi::weir_threadpool_costs,
    weir_kernel_options: cost_ns: u64,
    weir_host_kernel_desc: flags: u64,
    weir_packed_weights_desc: flags: u64,
    weir_kernel_cache_info: evictions: u64,
    weir_runtime_info: attrs: u64,
    weir_allocator_vtable: release: usize,
    weir_memory: device: *mut crate::abi::weir_engine,
    weir_memory_info: fragmentation: f64,
    weir_thread_info: owner: [std::ffi::c_char; 64],
    weir_failure: not_run_capacity: usize,
    weir_program_info: running: u64,
    weir_port_info: name: [std::ffi::c_char; 128],
    weir_kernel_info: name: [std::ffi::c_char; 128],
    weir_notice: reserved: u32,
    weir_cond_desc: num_inputs: usize,
    weir_case_desc: num_inputs: usize,
    weir_while_desc: reserved: u32,
    weir_compile_options: reserved: u32,
    weir_run_options: notice: *const crate::abi::weir_notice,
    weir_run_progress: node: [std::ffi::c_char; 128],
    weir_node_stats: name: [std::ffi::c_char; 128],
    weir_trace_options: reserved: u32,
    weir_trace_info: clock: [std::ffi::c_char; 32],
    weir_trace_thread: name: [std::ffi::c_char; 32],
    weir_trace_hooks: release: usize,
    weir_engine_sync: message: [std::ffi::c_char; 256],
    weir_comm_options: limit_ns: u64,
    weir_comm_vtable: release: usize,
    weir_comm_info: transport: [std::ffi::c_char; 64],
    weir_communication: num_tensors: usize,
    weir_resource_info: desc: crate::abi::weir_tensor_desc,
    weir_table_desc: row: crate::abi::weir_tensor_desc,
    weir_table_keys: lengths: *const usize,
    weir_table_contents: rows_size: usize,
    weir_engine_info: name: [std::ffi::c_char; 64],
    weir_cuda_kernel_desc: destroy: usize,
    weir_cuda_device_info: name: [std::ffi::c_char; 128],
}
