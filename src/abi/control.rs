//! Branches and loops of a graph.
//!
//! Chapter: Control flow.
#![forbid(unsafe_code)]

use super::{weir_graph, weir_value};

/// A branch between two graphs, for weir_graph_add_cond.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_cond_desc {
    /// sizeof(weir_cond_desc) of the caller's header.
    pub struct_size: usize,
    /// One element of bool, u8, s8 or s32.
    pub predicate: weir_value,
    /// Executed if predicate is not 0.
    pub then_graph: *const weir_graph,
    /// Executed if predicate is 0.
    pub else_graph: *const weir_graph,
    /// The inputs of either graph, in order.
    pub inputs: *const weir_value,
    /// Length of `inputs`.
    pub num_inputs: usize,
}

/// A branch between several graphs, for weir_graph_add_case.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_case_desc {
    /// sizeof(weir_case_desc) of the caller's header.
    pub struct_size: usize,
    /// One element of bool, u8, s8 or s32: the number of the branch; the last one if it is less than 0 or too large.
    pub index: weir_value,
    /// The graphs.
    pub branches: *const *const weir_graph,
    /// Length of `branches`, at least 1.
    pub num_branches: usize,
    /// The inputs of each graph, in order.
    pub inputs: *const weir_value,
    /// Length of `inputs`.
    pub num_inputs: usize,
}

/// A loop, for weir_graph_add_while. Both graphs have the variables as inputs, then the invariants.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_while_desc {
    /// sizeof(weir_while_desc) of the caller's header.
    pub struct_size: usize,
    /// Its output says whether the loop continues: one element of bool, u8, s8 or s32.
    pub cond_graph: *const weir_graph,
    /// Its outputs are the variables' next values, with their types and shapes.
    pub body_graph: *const weir_graph,
    /// The variables' initial values.
    pub variables: *const weir_value,
    /// Length of `variables`.
    pub num_variables: usize,
    /// Values that stay the same in all iterations.
    pub invariants: *const weir_value,
    /// Length of `invariants`.
    pub num_invariants: usize,
    /// How many iterations may run at once where their data allow it; 0 = 1. It never changes a result. With more than
    /// 1, tasks and kernels without outputs of different iterations may run at the same time and in any order. Memory
    /// grows: with K iterations at once the program keeps K + 1 copies of the loop's values. compile may choose a
    /// smaller number (weir_program_report says which, and why).
    pub parallel_iterations: i32,
    /// Reserved, 0.
    pub reserved: u32,
}
