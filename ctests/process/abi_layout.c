/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The binary interface in numbers: the size of every public struct and the offset of every member here, the value of
 * every enumerator in abi_values.h, as they were published. It does its work when it is compiled; a change of a number
 * here is a change of the interface. Structs that begin with struct_size may grow at the end: then their size changes
 * and a member is added here, and nothing else. A script checks that nothing is missing.
 */

#include "abi_values.h"
#include "weir.h"
#include "weir/comm.h"
#include "weir/control.h"
#include "weir/dlpack.h"
#include "weir/memory.h"
#include "weir/ops.h"
#include "weir/resource.h"
#include "weir/inspect.h"
#include "weir/device.h"
#include "weir/cuda.h"
#include "weir/conformance.h"
#include "weir/testing.h"

#include <stdio.h>
#include <string.h>

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), "size of " #type)
#define OFFSET(type, member, bytes) _Static_assert(offsetof(type, member) == (bytes), "offset of " #type "." #member)

/* clang-format off */
#ifdef __LP64__

SIZE(weir_runtime_info, 240);
OFFSET(weir_runtime_info, struct_size, 0);
OFFSET(weir_runtime_info, threads_started, 8);
OFFSET(weir_runtime_info, threads_alive, 16);
OFFSET(weir_runtime_info, allocations, 24);
OFFSET(weir_runtime_info, bytes_in_use, 32);
OFFSET(weir_runtime_info, threadpools, 40);
OFFSET(weir_runtime_info, engines, 48);
OFFSET(weir_runtime_info, streams, 56);
OFFSET(weir_runtime_info, events, 64);
OFFSET(weir_runtime_info, tensors, 72);
OFFSET(weir_runtime_info, kernels, 80);
OFFSET(weir_runtime_info, graphs, 88);
OFFSET(weir_runtime_info, programs, 96);
OFFSET(weir_runtime_info, runs, 104);
OFFSET(weir_runtime_info, attrs, 112);
OFFSET(weir_runtime_info, threads_of_builtin_pools, 120);
OFFSET(weir_runtime_info, threads_of_lanes, 128);
OFFSET(weir_runtime_info, threads_of_engines, 136);
OFFSET(weir_runtime_info, threads_of_kinds, 144);
OFFSET(weir_runtime_info, packed_weights, 152);
OFFSET(weir_runtime_info, threads_of_devices, 160);
OFFSET(weir_runtime_info, allocators, 168);
OFFSET(weir_runtime_info, buffers, 176);
OFFSET(weir_runtime_info, resources, 184);
OFFSET(weir_runtime_info, leaked_resources, 192);
OFFSET(weir_runtime_info, domains, 200);
OFFSET(weir_runtime_info, task_groups, 208);
OFFSET(weir_runtime_info, traces, 216);
OFFSET(weir_runtime_info, comms, 224);
OFFSET(weir_runtime_info, calls, 232);

SIZE(weir_allocator_vtable, 48);
OFFSET(weir_allocator_vtable, struct_size, 0);
OFFSET(weir_allocator_vtable, flags, 8);
OFFSET(weir_allocator_vtable, alignment, 16);
OFFSET(weir_allocator_vtable, allocate, 24);
OFFSET(weir_allocator_vtable, deallocate, 32);
OFFSET(weir_allocator_vtable, release, 40);

SIZE(weir_memory, 72);
OFFSET(weir_memory, struct_size, 0);
OFFSET(weir_memory, source, 8);
OFFSET(weir_memory, reserved, 12);
OFFSET(weir_memory, data, 16);
OFFSET(weir_memory, bytes, 24);
OFFSET(weir_memory, release, 32);
OFFSET(weir_memory, release_ctx, 40);
OFFSET(weir_memory, buffer, 48);
OFFSET(weir_memory, offset, 56);
OFFSET(weir_memory, device, 64);
SIZE(weir_memory_info, 144);
OFFSET(weir_memory_info, struct_size, 0);
OFFSET(weir_memory_info, limit, 8);
OFFSET(weir_memory_info, in_use, 16);
OFFSET(weir_memory_info, peak_in_use, 24);
OFFSET(weir_memory_info, reserved, 32);
OFFSET(weir_memory_info, peak_reserved, 40);
OFFSET(weir_memory_info, largest_free, 48);
OFFSET(weir_memory_info, blocks, 56);
OFFSET(weir_memory_info, regions, 64);
OFFSET(weir_memory_info, allocations, 72);
OFFSET(weir_memory_info, region_allocations, 80);
OFFSET(weir_memory_info, fragmentation, 88);
OFFSET(weir_memory_info, host_limit, 96);
OFFSET(weir_memory_info, host_in_use, 104);
OFFSET(weir_memory_info, host_peak_in_use, 112);
OFFSET(weir_memory_info, host_reserved, 120);
OFFSET(weir_memory_info, registered, 128);
OFFSET(weir_memory_info, pinning, 136);
OFFSET(weir_memory_info, reserved0, 140);

SIZE(weir_engine_sync, 336);
OFFSET(weir_engine_sync, struct_size, 0);
OFFSET(weir_engine_sync, status, 8);
OFFSET(weir_engine_sync, reserved, 12);
OFFSET(weir_engine_sync, engine, 16);
OFFSET(weir_engine_sync, message, 80);

SIZE(weir_resource_info, 376);
OFFSET(weir_resource_info, struct_size, 0);
OFFSET(weir_resource_info, id, 8);
OFFSET(weir_resource_info, kind, 16);
OFFSET(weir_resource_info, optimistic, 20);
OFFSET(weir_resource_info, references, 24);
OFFSET(weir_resource_info, bytes, 32);
OFFSET(weir_resource_info, rows, 40);
OFFSET(weir_resource_info, container, 48);
OFFSET(weir_resource_info, name, 112);
OFFSET(weir_resource_info, type_name, 240);
OFFSET(weir_resource_info, desc, 304);

SIZE(weir_table_desc, 88);
OFFSET(weir_table_desc, struct_size, 0);
OFFSET(weir_table_desc, key, 8);
OFFSET(weir_table_desc, reserved, 12);
OFFSET(weir_table_desc, row, 16);

SIZE(weir_table_keys, 40);
OFFSET(weir_table_keys, struct_size, 0);
OFFSET(weir_table_keys, count, 8);
OFFSET(weir_table_keys, integers, 16);
OFFSET(weir_table_keys, bytes, 24);
OFFSET(weir_table_keys, lengths, 32);

SIZE(weir_table_contents, 88);
OFFSET(weir_table_contents, struct_size, 0);
OFFSET(weir_table_contents, capacity, 8);
OFFSET(weir_table_contents, count, 16);
OFFSET(weir_table_contents, integers, 24);
OFFSET(weir_table_contents, lengths, 32);
OFFSET(weir_table_contents, bytes, 40);
OFFSET(weir_table_contents, bytes_capacity, 48);
OFFSET(weir_table_contents, bytes_size, 56);
OFFSET(weir_table_contents, rows, 64);
OFFSET(weir_table_contents, rows_capacity, 72);
OFFSET(weir_table_contents, rows_size, 80);

SIZE(weir_kernel_cache_info, 56);
OFFSET(weir_kernel_cache_info, struct_size, 0);
OFFSET(weir_kernel_cache_info, capacity, 8);
OFFSET(weir_kernel_cache_info, entries, 16);
OFFSET(weir_kernel_cache_info, hits, 24);
OFFSET(weir_kernel_cache_info, misses, 32);
OFFSET(weir_kernel_cache_info, shared_builds, 40);
OFFSET(weir_kernel_cache_info, evictions, 48);

SIZE(weir_thread_info, 128);
OFFSET(weir_thread_info, struct_size, 0);
OFFSET(weir_thread_info, origin, 8);
OFFSET(weir_thread_info, index, 12);
OFFSET(weir_thread_info, pool, 16);
OFFSET(weir_thread_info, os_id, 24);
OFFSET(weir_thread_info, name, 32);
OFFSET(weir_thread_info, owner, 64);

SIZE(weir_failure, 1400);
OFFSET(weir_failure, struct_size, 0);
OFFSET(weir_failure, code, 8);
OFFSET(weir_failure, reserved, 12);
OFFSET(weir_failure, iteration, 16);
OFFSET(weir_failure, node, 24);
OFFSET(weir_failure, loop_node, 152);
OFFSET(weir_failure, engine, 280);
OFFSET(weir_failure, message, 344);
OFFSET(weir_failure, num_not_run, 1368);
OFFSET(weir_failure, not_run_bytes, 1376);
OFFSET(weir_failure, not_run, 1384);
OFFSET(weir_failure, not_run_capacity, 1392);

SIZE(weir_program_info, 72);
OFFSET(weir_program_info, struct_size, 0);
OFFSET(weir_program_info, num_inputs, 8);
OFFSET(weir_program_info, num_outputs, 16);
OFFSET(weir_program_info, num_nodes, 24);
OFFSET(weir_program_info, begun, 32);
OFFSET(weir_program_info, ended, 40);
OFFSET(weir_program_info, failed, 48);
OFFSET(weir_program_info, cancelled, 56);
OFFSET(weir_program_info, running, 64);
SIZE(weir_port_info, 216);
OFFSET(weir_port_info, struct_size, 0);
OFFSET(weir_port_info, desc, 8);
OFFSET(weir_port_info, engine, 80);
OFFSET(weir_port_info, name, 88);
SIZE(weir_kernel_info, 152);
OFFSET(weir_kernel_info, struct_size, 0);
OFFSET(weir_kernel_info, num_inputs, 8);
OFFSET(weir_kernel_info, num_outputs, 16);
OFFSET(weir_kernel_info, name, 24);

SIZE(weir_notice, 40);
OFFSET(weir_notice, struct_size, 0);
OFFSET(weir_notice, notify, 8);
OFFSET(weir_notice, ctx, 16);
OFFSET(weir_notice, release, 24);
OFFSET(weir_notice, event_fd, 32);
OFFSET(weir_notice, reserved, 36);

SIZE(weir_kernel_options, 32);
OFFSET(weir_kernel_options, struct_size, 0);
OFFSET(weir_kernel_options, name, 8);
OFFSET(weir_kernel_options, cost_ns, 16);
OFFSET(weir_kernel_options, settings, 24);

SIZE(weir_threadpool_options, 32);
OFFSET(weir_threadpool_options, struct_size, 0);
OFFSET(weir_threadpool_options, num_threads, 8);
OFFSET(weir_threadpool_options, checking, 12);
OFFSET(weir_threadpool_options, spin_ns, 16);
OFFSET(weir_threadpool_options, costs, 24);

SIZE(weir_cond_desc, 48);
OFFSET(weir_cond_desc, struct_size, 0);
OFFSET(weir_cond_desc, predicate, 8);
OFFSET(weir_cond_desc, then_graph, 16);
OFFSET(weir_cond_desc, else_graph, 24);
OFFSET(weir_cond_desc, inputs, 32);
OFFSET(weir_cond_desc, num_inputs, 40);

SIZE(weir_case_desc, 48);
OFFSET(weir_case_desc, struct_size, 0);
OFFSET(weir_case_desc, index, 8);
OFFSET(weir_case_desc, branches, 16);
OFFSET(weir_case_desc, num_branches, 24);
OFFSET(weir_case_desc, inputs, 32);
OFFSET(weir_case_desc, num_inputs, 40);

SIZE(weir_while_desc, 64);
OFFSET(weir_while_desc, struct_size, 0);
OFFSET(weir_while_desc, cond_graph, 8);
OFFSET(weir_while_desc, body_graph, 16);
OFFSET(weir_while_desc, variables, 24);
OFFSET(weir_while_desc, num_variables, 32);
OFFSET(weir_while_desc, invariants, 40);
OFFSET(weir_while_desc, num_invariants, 48);
OFFSET(weir_while_desc, parallel_iterations, 56);
OFFSET(weir_while_desc, reserved, 60);

SIZE(weir_compile_options, 56);
OFFSET(weir_compile_options, struct_size, 0);
OFFSET(weir_compile_options, flags, 8);
OFFSET(weir_compile_options, hop_ns, 16);
OFFSET(weir_compile_options, blocking_threadpool, 24);
OFFSET(weir_compile_options, partial_runs, 32);
OFFSET(weir_compile_options, max_concurrent_runs, 40);
OFFSET(weir_compile_options, placement, 44);
OFFSET(weir_compile_options, segments, 48);
OFFSET(weir_compile_options, reserved, 52);

SIZE(weir_run_options, 104);
OFFSET(weir_run_options, struct_size, 0);
OFFSET(weir_run_options, flags, 8);
OFFSET(weir_run_options, deadline_ns, 16);
OFFSET(weir_run_options, threadpool, 24);
OFFSET(weir_run_options, outputs, 32);
OFFSET(weir_run_options, num_outputs, 40);
OFFSET(weir_run_options, absent, 48);
OFFSET(weir_run_options, num_absent, 56);
OFFSET(weir_run_options, notice, 64);
OFFSET(weir_run_options, trace, 72);
OFFSET(weir_run_options, progress, 80);
OFFSET(weir_run_options, progress_ctx, 88);
OFFSET(weir_run_options, progress_interval_ns, 96);
SIZE(weir_run_progress, 176);
OFFSET(weir_run_progress, struct_size, 0);
OFFSET(weir_run_progress, run, 8);
OFFSET(weir_run_progress, nodes_done, 16);
OFFSET(weir_run_progress, nodes_total, 24);
OFFSET(weir_run_progress, elapsed_ns, 32);
OFFSET(weir_run_progress, estimated_remaining_ns, 40);
OFFSET(weir_run_progress, node, 48);

SIZE(weir_trace_options, 56);
OFFSET(weir_trace_options, struct_size, 0);
OFFSET(weir_trace_options, flags, 8);
OFFSET(weir_trace_options, domain, 16);
OFFSET(weir_trace_options, engine, 24);
OFFSET(weir_trace_options, program, 32);
OFFSET(weir_trace_options, records_per_thread, 40);
OFFSET(weir_trace_options, threads, 48);
OFFSET(weir_trace_options, reserved, 52);

SIZE(weir_trace_info, 96);
OFFSET(weir_trace_info, struct_size, 0);
OFFSET(weir_trace_info, recording, 8);
OFFSET(weir_trace_info, threads, 12);
OFFSET(weir_trace_info, records, 16);
OFFSET(weir_trace_info, lost, 24);
OFFSET(weir_trace_info, lost_without_ring, 32);
OFFSET(weir_trace_info, begin_ns, 40);
OFFSET(weir_trace_info, end_ns, 48);
OFFSET(weir_trace_info, clock_error_ns, 56);
OFFSET(weir_trace_info, clock, 64);

SIZE(weir_trace_thread, 64);
OFFSET(weir_trace_thread, struct_size, 0);
OFFSET(weir_trace_thread, os_id, 8);
OFFSET(weir_trace_thread, records, 16);
OFFSET(weir_trace_thread, lost, 24);
OFFSET(weir_trace_thread, name, 32);

SIZE(weir_trace_run, 32);
OFFSET(weir_trace_run, struct_size, 0);
OFFSET(weir_trace_run, program, 8);
OFFSET(weir_trace_run, number, 16);
OFFSET(weir_trace_run, outer, 24);

SIZE(weir_trace_node, 32);
OFFSET(weir_trace_node, struct_size, 0);
OFFSET(weir_trace_node, name, 8);
OFFSET(weir_trace_node, engine, 16);
OFFSET(weir_trace_node, index, 24);
OFFSET(weir_trace_node, flags, 28);

SIZE(weir_trace_region, 24);
OFFSET(weir_trace_region, struct_size, 0);
OFFSET(weir_trace_region, number, 8);
OFFSET(weir_trace_region, helps, 16);
OFFSET(weir_trace_region, reserved, 20);

SIZE(weir_trace_hooks, 80);
OFFSET(weir_trace_hooks, struct_size, 0);
OFFSET(weir_trace_hooks, run_begin, 8);
OFFSET(weir_trace_hooks, run_end, 16);
OFFSET(weir_trace_hooks, stay_begin, 24);
OFFSET(weir_trace_hooks, stay_end, 32);
OFFSET(weir_trace_hooks, node_begin, 40);
OFFSET(weir_trace_hooks, node_end, 48);
OFFSET(weir_trace_hooks, region_begin, 56);
OFFSET(weir_trace_hooks, region_end, 64);
OFFSET(weir_trace_hooks, release, 72);

SIZE(weir_node_stats, 176);
OFFSET(weir_node_stats, struct_size, 0);
OFFSET(weir_node_stats, count, 8);
OFFSET(weir_node_stats, total_ns, 16);
OFFSET(weir_node_stats, min_ns, 24);
OFFSET(weir_node_stats, max_ns, 32);
OFFSET(weir_node_stats, name, 40);
OFFSET(weir_node_stats, waited_ns, 168);

SIZE(weir_task_hint, 24);
OFFSET(weir_task_hint, struct_size, 0);
OFFSET(weir_task_hint, cost_ns, 8);
OFFSET(weir_task_hint, priority, 16);
OFFSET(weir_task_hint, flags, 20);

SIZE(weir_threadpool_vtable, 80);
OFFSET(weir_threadpool_vtable, struct_size, 0);
OFFSET(weir_threadpool_vtable, flags, 8);
OFFSET(weir_threadpool_vtable, num_threads, 16);
OFFSET(weir_threadpool_vtable, parallel_for, 24);
OFFSET(weir_threadpool_vtable, schedule, 32);
OFFSET(weir_threadpool_vtable, in_parallel, 40);
OFFSET(weir_threadpool_vtable, thread_index, 48);
OFFSET(weir_threadpool_vtable, help, 56);
OFFSET(weir_threadpool_vtable, release, 64);
OFFSET(weir_threadpool_vtable, max_threads, 72);

SIZE(weir_threadpool_costs, 32);
OFFSET(weir_threadpool_costs, struct_size, 0);
OFFSET(weir_threadpool_costs, submit_ns, 8);
OFFSET(weir_threadpool_costs, arrive_ns, 16);
OFFSET(weir_threadpool_costs, join_ns, 24);

SIZE(weir_parallel_hint, 40);
OFFSET(weir_parallel_hint, struct_size, 0);
OFFSET(weir_parallel_hint, cost_ns, 8);
OFFSET(weir_parallel_hint, grain, 16);
OFFSET(weir_parallel_hint, max_slots, 24);
OFFSET(weir_parallel_hint, flags, 28);
OFFSET(weir_parallel_hint, epilogue, 32);

SIZE(weir_conformance_options, 32);
OFFSET(weir_conformance_options, struct_size, 0);
OFFSET(weir_conformance_options, budget_ns, 8);
OFFSET(weir_conformance_options, seed, 16);
OFFSET(weir_conformance_options, rounds, 24);
OFFSET(weir_conformance_options, flags, 28);

SIZE(weir_conformance_line, 40);
OFFSET(weir_conformance_line, struct_size, 0);
OFFSET(weir_conformance_line, clause, 8);
OFFSET(weir_conformance_line, title, 16);
OFFSET(weir_conformance_line, text, 24);
OFFSET(weir_conformance_line, verdict, 32);
OFFSET(weir_conformance_line, reserved, 36);

SIZE(weir_emulation, 112);
OFFSET(weir_emulation, struct_size, 0);
OFFSET(weir_emulation, seed, 8);
OFFSET(weir_emulation, flags, 16);
OFFSET(weir_emulation, latency_ns, 24);
OFFSET(weir_emulation, bytes_per_us, 32);
OFFSET(weir_emulation, kernel_ns, 40);
OFFSET(weir_emulation, memory_bytes, 48);
OFFSET(weir_emulation, fail_operation, 56);
OFFSET(weir_emulation, fail_copy, 64);
OFFSET(weir_emulation, fail_allocation, 72);
OFFSET(weir_emulation, lose_operation, 80);
OFFSET(weir_emulation, replay_ns, 88);
OFFSET(weir_emulation, regions, 96);
OFFSET(weir_emulation, fail_region, 104);

SIZE(weir_emulated_race, 824);
OFFSET(weir_emulated_race, struct_size, 0);
OFFSET(weir_emulated_race, kind, 8);
OFFSET(weir_emulated_race, reserved, 12);
OFFSET(weir_emulated_race, count, 16);
OFFSET(weir_emulated_race, first_number, 24);
OFFSET(weir_emulated_race, second_number, 32);
OFFSET(weir_emulated_race, offset, 40);
OFFSET(weir_emulated_race, bytes, 48);
OFFSET(weir_emulated_race, first_name, 56);
OFFSET(weir_emulated_race, first_stream, 120);
OFFSET(weir_emulated_race, second_name, 184);
OFFSET(weir_emulated_race, second_stream, 248);
OFFSET(weir_emulated_race, text, 312);

SIZE(weir_emulated_counters, 136);
OFFSET(weir_emulated_counters, struct_size, 0);
OFFSET(weir_emulated_counters, operations, 8);
OFFSET(weir_emulated_counters, completed, 16);
OFFSET(weir_emulated_counters, launches, 24);
OFFSET(weir_emulated_counters, copies, 32);
OFFSET(weir_emulated_counters, fills, 40);
OFFSET(weir_emulated_counters, waits, 48);
OFFSET(weir_emulated_counters, records, 56);
OFFSET(weir_emulated_counters, allocations, 64);
OFFSET(weir_emulated_counters, allocations_in_use, 72);
OFFSET(weir_emulated_counters, bytes_in_use, 80);
OFFSET(weir_emulated_counters, peak_bytes, 88);
OFFSET(weir_emulated_counters, races, 96);
OFFSET(weir_emulated_counters, replays, 104);
OFFSET(weir_emulated_counters, pageable_copies, 112);
OFFSET(weir_emulated_counters, pinned_bytes, 120);
OFFSET(weir_emulated_counters, regions, 128);

SIZE(weir_engine_info, 112);
OFFSET(weir_engine_info, struct_size, 0);
OFFSET(weir_engine_info, kind, 8);
OFFSET(weir_engine_info, index, 12);
OFFSET(weir_engine_info, num_processors, 16);
OFFSET(weir_engine_info, reserved, 20);
OFFSET(weir_engine_info, alignment, 24);
OFFSET(weir_engine_info, name, 32);
OFFSET(weir_engine_info, thread_mode, 96);
OFFSET(weir_engine_info, thread_count, 100);
OFFSET(weir_engine_info, memory_bytes, 104);

SIZE(weir_tensor_desc, 72);
OFFSET(weir_tensor_desc, dtype, 0);
OFFSET(weir_tensor_desc, rank, 4);
OFFSET(weir_tensor_desc, dims, 8);

SIZE(weir_host_kernel_desc, 112);
OFFSET(weir_host_kernel_desc, struct_size, 0);
OFFSET(weir_host_kernel_desc, name, 8);
OFFSET(weir_host_kernel_desc, compute, 16);
OFFSET(weir_host_kernel_desc, user, 24);
OFFSET(weir_host_kernel_desc, destroy, 32);
OFFSET(weir_host_kernel_desc, num_inputs, 40);
OFFSET(weir_host_kernel_desc, inputs, 48);
OFFSET(weir_host_kernel_desc, num_outputs, 56);
OFFSET(weir_host_kernel_desc, outputs, 64);
OFFSET(weir_host_kernel_desc, infer, 72);
OFFSET(weir_host_kernel_desc, cost_ns, 80);
OFFSET(weir_host_kernel_desc, scratch_bytes, 88);
OFFSET(weir_host_kernel_desc, flags, 96);
OFFSET(weir_host_kernel_desc, compute_async, 104);

SIZE(weir_matmul_desc, 40);
OFFSET(weir_matmul_desc, struct_size, 0);
OFFSET(weir_matmul_desc, flags, 8);
OFFSET(weir_matmul_desc, activation, 16);
OFFSET(weir_matmul_desc, reserved, 20);
OFFSET(weir_matmul_desc, weights, 24);
OFFSET(weir_matmul_desc, alpha, 32);
OFFSET(weir_matmul_desc, beta, 36);

SIZE(weir_softmax_desc, 24);
OFFSET(weir_softmax_desc, struct_size, 0);
OFFSET(weir_softmax_desc, axis, 8);
OFFSET(weir_softmax_desc, reserved, 12);
OFFSET(weir_softmax_desc, flags, 16);

SIZE(weir_eltwise_desc, 24);
OFFSET(weir_eltwise_desc, struct_size, 0);
OFFSET(weir_eltwise_desc, op, 8);
OFFSET(weir_eltwise_desc, alpha, 12);
OFFSET(weir_eltwise_desc, beta, 16);
OFFSET(weir_eltwise_desc, reserved, 20);

SIZE(weir_binary_desc, 24);
OFFSET(weir_binary_desc, struct_size, 0);
OFFSET(weir_binary_desc, op, 8);
OFFSET(weir_binary_desc, reserved, 12);
OFFSET(weir_binary_desc, rounding, 16);
OFFSET(weir_binary_desc, overflow, 20);

SIZE(weir_select_desc, 8);
OFFSET(weir_select_desc, struct_size, 0);

SIZE(weir_convert_desc, 32);
OFFSET(weir_convert_desc, struct_size, 0);
OFFSET(weir_convert_desc, dtype, 8);
OFFSET(weir_convert_desc, scale, 12);
OFFSET(weir_convert_desc, shift, 16);
OFFSET(weir_convert_desc, reserved, 20);
OFFSET(weir_convert_desc, rounding, 24);
OFFSET(weir_convert_desc, overflow, 28);

SIZE(weir_quantize_desc, 24);
OFFSET(weir_quantize_desc, struct_size, 0);
OFFSET(weir_quantize_desc, flags, 8);
OFFSET(weir_quantize_desc, dtype, 16);
OFFSET(weir_quantize_desc, axis, 20);

SIZE(weir_transpose_desc, 48);
OFFSET(weir_transpose_desc, struct_size, 0);
OFFSET(weir_transpose_desc, rank, 8);
OFFSET(weir_transpose_desc, reserved, 12);
OFFSET(weir_transpose_desc, permutation, 16);

SIZE(weir_concat_desc, 16);
OFFSET(weir_concat_desc, struct_size, 0);
OFFSET(weir_concat_desc, num_inputs, 8);
OFFSET(weir_concat_desc, axis, 12);

SIZE(weir_slice_desc, 208);
OFFSET(weir_slice_desc, struct_size, 0);
OFFSET(weir_slice_desc, rank, 8);
OFFSET(weir_slice_desc, reserved, 12);
OFFSET(weir_slice_desc, begin, 16);
OFFSET(weir_slice_desc, end, 80);
OFFSET(weir_slice_desc, step, 144);

SIZE(weir_pad_desc, 152);
OFFSET(weir_pad_desc, struct_size, 0);
OFFSET(weir_pad_desc, rank, 8);
OFFSET(weir_pad_desc, mode, 12);
OFFSET(weir_pad_desc, before, 16);
OFFSET(weir_pad_desc, after, 80);
OFFSET(weir_pad_desc, value, 144);

SIZE(weir_reshape_desc, 80);
OFFSET(weir_reshape_desc, struct_size, 0);
OFFSET(weir_reshape_desc, rank, 8);
OFFSET(weir_reshape_desc, reserved, 12);
OFFSET(weir_reshape_desc, dims, 16);

SIZE(weir_gather_desc, 24);
OFFSET(weir_gather_desc, struct_size, 0);
OFFSET(weir_gather_desc, axis, 8);
OFFSET(weir_gather_desc, reserved, 12);
OFFSET(weir_gather_desc, flags, 16);
SIZE(weir_gather_elements_desc, 24);
OFFSET(weir_gather_elements_desc, struct_size, 0);
OFFSET(weir_gather_elements_desc, axis, 8);
OFFSET(weir_gather_elements_desc, reserved, 12);
OFFSET(weir_gather_elements_desc, flags, 16);
SIZE(weir_gather_nd_desc, 24);
OFFSET(weir_gather_nd_desc, struct_size, 0);
OFFSET(weir_gather_nd_desc, flags, 8);
OFFSET(weir_gather_nd_desc, batch_dims, 16);
SIZE(weir_scatter_desc, 32);
OFFSET(weir_scatter_desc, struct_size, 0);
OFFSET(weir_scatter_desc, flags, 8);
OFFSET(weir_scatter_desc, mode, 16);
OFFSET(weir_scatter_desc, reduction, 20);
OFFSET(weir_scatter_desc, axis, 24);
OFFSET(weir_scatter_desc, reserved, 28);
SIZE(weir_one_hot_desc, 32);
OFFSET(weir_one_hot_desc, struct_size, 0);
OFFSET(weir_one_hot_desc, axis, 8);
OFFSET(weir_one_hot_desc, reserved, 12);
OFFSET(weir_one_hot_desc, depth, 16);
OFFSET(weir_one_hot_desc, flags, 24);

SIZE(weir_reduce_desc, 64);
OFFSET(weir_reduce_desc, struct_size, 0);
OFFSET(weir_reduce_desc, flags, 8);
OFFSET(weir_reduce_desc, op, 16);
OFFSET(weir_reduce_desc, num_axes, 20);
OFFSET(weir_reduce_desc, axes, 24);
OFFSET(weir_reduce_desc, p, 56);
OFFSET(weir_reduce_desc, eps, 60);

SIZE(weir_norm_desc, 32);
OFFSET(weir_norm_desc, struct_size, 0);
OFFSET(weir_norm_desc, flags, 8);
OFFSET(weir_norm_desc, op, 16);
OFFSET(weir_norm_desc, axis, 20);
OFFSET(weir_norm_desc, groups, 24);
OFFSET(weir_norm_desc, epsilon, 28);
SIZE(weir_lrn_desc, 32);
OFFSET(weir_lrn_desc, struct_size, 0);
OFFSET(weir_lrn_desc, size, 8);
OFFSET(weir_lrn_desc, alpha, 16);
OFFSET(weir_lrn_desc, beta, 20);
OFFSET(weir_lrn_desc, bias, 24);
OFFSET(weir_lrn_desc, reserved, 28);
SIZE(weir_cumsum_desc, 24);
OFFSET(weir_cumsum_desc, struct_size, 0);
OFFSET(weir_cumsum_desc, axis, 8);
OFFSET(weir_cumsum_desc, reserved, 12);
OFFSET(weir_cumsum_desc, flags, 16);
SIZE(weir_topk_desc, 32);
OFFSET(weir_topk_desc, struct_size, 0);
OFFSET(weir_topk_desc, axis, 8);
OFFSET(weir_topk_desc, reserved, 12);
OFFSET(weir_topk_desc, k, 16);
OFFSET(weir_topk_desc, flags, 24);
SIZE(weir_conv_desc, 144);
OFFSET(weir_conv_desc, struct_size, 0);
OFFSET(weir_conv_desc, flags, 8);
OFFSET(weir_conv_desc, data_layout, 16);
OFFSET(weir_conv_desc, weights_layout, 20);
OFFSET(weir_conv_desc, padding, 24);
OFFSET(weir_conv_desc, activation, 28);
OFFSET(weir_conv_desc, groups, 32);
OFFSET(weir_conv_desc, strides, 40);
OFFSET(weir_conv_desc, dilations, 56);
OFFSET(weir_conv_desc, padding_begin, 72);
OFFSET(weir_conv_desc, padding_end, 88);
OFFSET(weir_conv_desc, alpha, 104);
OFFSET(weir_conv_desc, beta, 108);
OFFSET(weir_conv_desc, depth_stride, 112);
OFFSET(weir_conv_desc, depth_dilation, 120);
OFFSET(weir_conv_desc, depth_padding_begin, 128);
OFFSET(weir_conv_desc, depth_padding_end, 136);

SIZE(weir_conv_transpose_desc, 160);
OFFSET(weir_conv_transpose_desc, struct_size, 0);
OFFSET(weir_conv_transpose_desc, flags, 8);
OFFSET(weir_conv_transpose_desc, data_layout, 16);
OFFSET(weir_conv_transpose_desc, activation, 20);
OFFSET(weir_conv_transpose_desc, groups, 24);
OFFSET(weir_conv_transpose_desc, strides, 32);
OFFSET(weir_conv_transpose_desc, dilations, 48);
OFFSET(weir_conv_transpose_desc, padding_begin, 64);
OFFSET(weir_conv_transpose_desc, padding_end, 80);
OFFSET(weir_conv_transpose_desc, more, 96);
OFFSET(weir_conv_transpose_desc, alpha, 112);
OFFSET(weir_conv_transpose_desc, beta, 116);
OFFSET(weir_conv_transpose_desc, depth_stride, 120);
OFFSET(weir_conv_transpose_desc, depth_dilation, 128);
OFFSET(weir_conv_transpose_desc, depth_padding_begin, 136);
OFFSET(weir_conv_transpose_desc, depth_padding_end, 144);
OFFSET(weir_conv_transpose_desc, depth_more, 152);
SIZE(weir_pooling_desc, 144);
OFFSET(weir_pooling_desc, struct_size, 0);
OFFSET(weir_pooling_desc, flags, 8);
OFFSET(weir_pooling_desc, op, 16);
OFFSET(weir_pooling_desc, data_layout, 20);
OFFSET(weir_pooling_desc, kernel, 24);
OFFSET(weir_pooling_desc, strides, 40);
OFFSET(weir_pooling_desc, dilations, 56);
OFFSET(weir_pooling_desc, padding_begin, 72);
OFFSET(weir_pooling_desc, padding_end, 88);
OFFSET(weir_pooling_desc, depth_kernel, 104);
OFFSET(weir_pooling_desc, depth_stride, 112);
OFFSET(weir_pooling_desc, depth_dilation, 120);
OFFSET(weir_pooling_desc, depth_padding_begin, 128);
OFFSET(weir_pooling_desc, depth_padding_end, 136);
SIZE(weir_resize_desc, 64);
OFFSET(weir_resize_desc, struct_size, 0);
OFFSET(weir_resize_desc, flags, 8);
OFFSET(weir_resize_desc, mode, 16);
OFFSET(weir_resize_desc, coordinates, 20);
OFFSET(weir_resize_desc, rounding, 24);
OFFSET(weir_resize_desc, cubic, 28);
OFFSET(weir_resize_desc, sizes, 32);
OFFSET(weir_resize_desc, scales, 48);

SIZE(weir_lstm_desc, 24);
OFFSET(weir_lstm_desc, struct_size, 0);
OFFSET(weir_lstm_desc, flags, 8);
OFFSET(weir_lstm_desc, gate_order, 16);
OFFSET(weir_lstm_desc, reserved, 20);

SIZE(weir_gru_desc, 24);
OFFSET(weir_gru_desc, struct_size, 0);
OFFSET(weir_gru_desc, flags, 8);
OFFSET(weir_gru_desc, gate_order, 16);
OFFSET(weir_gru_desc, reserved, 20);

SIZE(weir_lstm_sequence_desc, 32);
OFFSET(weir_lstm_sequence_desc, struct_size, 0);
OFFSET(weir_lstm_sequence_desc, flags, 8);
OFFSET(weir_lstm_sequence_desc, gate_order, 16);
OFFSET(weir_lstm_sequence_desc, direction, 20);
OFFSET(weir_lstm_sequence_desc, clip, 24);
OFFSET(weir_lstm_sequence_desc, reserved, 28);

SIZE(weir_gru_sequence_desc, 32);
OFFSET(weir_gru_sequence_desc, struct_size, 0);
OFFSET(weir_gru_sequence_desc, flags, 8);
OFFSET(weir_gru_sequence_desc, gate_order, 16);
OFFSET(weir_gru_sequence_desc, direction, 20);
OFFSET(weir_gru_sequence_desc, clip, 24);
OFFSET(weir_gru_sequence_desc, reserved, 28);

SIZE(weir_nonzero_desc, 16);
OFFSET(weir_nonzero_desc, struct_size, 0);
OFFSET(weir_nonzero_desc, flags, 8);

SIZE(weir_shape_desc, 8);
OFFSET(weir_shape_desc, struct_size, 0);

SIZE(weir_range_desc, 8);
OFFSET(weir_range_desc, struct_size, 0);

SIZE(weir_tile_desc, 80);
OFFSET(weir_tile_desc, struct_size, 0);
OFFSET(weir_tile_desc, rank, 8);
OFFSET(weir_tile_desc, mode, 12);
OFFSET(weir_tile_desc, counts, 16);

SIZE(weir_nms_desc, 40);
OFFSET(weir_nms_desc, struct_size, 0);
OFFSET(weir_nms_desc, flags, 8);
OFFSET(weir_nms_desc, most_boxes, 16);
OFFSET(weir_nms_desc, most_overlap, 24);
OFFSET(weir_nms_desc, least_score, 28);
OFFSET(weir_nms_desc, reserved, 32);

SIZE(weir_grid_sample_desc, 24);
OFFSET(weir_grid_sample_desc, struct_size, 0);
OFFSET(weir_grid_sample_desc, flags, 8);
OFFSET(weir_grid_sample_desc, mode, 16);
OFFSET(weir_grid_sample_desc, edge, 20);

SIZE(weir_conv_int8_desc, 112);
OFFSET(weir_conv_int8_desc, struct_size, 0);
OFFSET(weir_conv_int8_desc, flags, 8);
OFFSET(weir_conv_int8_desc, dtype, 16);
OFFSET(weir_conv_int8_desc, scale, 20);
OFFSET(weir_conv_int8_desc, zero_x, 24);
OFFSET(weir_conv_int8_desc, zero_w, 28);
OFFSET(weir_conv_int8_desc, zero_y, 32);
OFFSET(weir_conv_int8_desc, reserved, 36);
OFFSET(weir_conv_int8_desc, groups, 40);
OFFSET(weir_conv_int8_desc, strides, 48);
OFFSET(weir_conv_int8_desc, dilations, 64);
OFFSET(weir_conv_int8_desc, padding_begin, 80);
OFFSET(weir_conv_int8_desc, padding_end, 96);

SIZE(weir_packed_weights_desc, 16);
OFFSET(weir_packed_weights_desc, struct_size, 0);
OFFSET(weir_packed_weights_desc, flags, 8);

SIZE(weir_matmul_int8_desc, 48);
OFFSET(weir_matmul_int8_desc, struct_size, 0);
OFFSET(weir_matmul_int8_desc, flags, 8);
OFFSET(weir_matmul_int8_desc, dtype, 16);
OFFSET(weir_matmul_int8_desc, scale, 20);
OFFSET(weir_matmul_int8_desc, zero_a, 24);
OFFSET(weir_matmul_int8_desc, zero_b, 28);
OFFSET(weir_matmul_int8_desc, zero_c, 32);
OFFSET(weir_matmul_int8_desc, reserved, 36);
OFFSET(weir_matmul_int8_desc, weights, 40);

SIZE(weir_tensor_view, 88);
OFFSET(weir_tensor_view, data, 0);
OFFSET(weir_tensor_view, bytes, 8);
OFFSET(weir_tensor_view, desc, 16);

#else
#error "the sizes and offsets of 32-bit machines have not been written down yet"

SIZE(weir_device_info, 104);
OFFSET(weir_device_info, struct_size, 0);
OFFSET(weir_device_info, capabilities, 8);
OFFSET(weir_device_info, memory_bytes, 16);
OFFSET(weir_device_info, alignment, 24);
OFFSET(weir_device_info, name, 32);
OFFSET(weir_device_info, max_streams, 96);
OFFSET(weir_device_info, reserved, 100);

SIZE(weir_device_stream_attr, 24);
OFFSET(weir_device_stream_attr, struct_size, 0);
OFFSET(weir_device_stream_attr, name, 8);
OFFSET(weir_device_stream_attr, priority, 16);
OFFSET(weir_device_stream_attr, reserved, 20);

SIZE(weir_device_recipe, 80);
OFFSET(weir_device_recipe, struct_size, 0);
OFFSET(weir_device_recipe, operation, 8);
OFFSET(weir_device_recipe, attributes, 16);
OFFSET(weir_device_recipe, attributes_bytes, 24);
OFFSET(weir_device_recipe, num_inputs, 32);
OFFSET(weir_device_recipe, num_outputs, 40);
OFFSET(weir_device_recipe, host_call, 48);
OFFSET(weir_device_recipe, host_user, 56);
OFFSET(weir_device_recipe, host_retain, 64);
OFFSET(weir_device_recipe, host_release, 72);

SIZE(weir_named_kernel_desc, 88);
OFFSET(weir_named_kernel_desc, struct_size, 0);
OFFSET(weir_named_kernel_desc, operation, 8);
OFFSET(weir_named_kernel_desc, attributes, 16);
OFFSET(weir_named_kernel_desc, attributes_bytes, 24);
OFFSET(weir_named_kernel_desc, num_inputs, 32);
OFFSET(weir_named_kernel_desc, inputs, 40);
OFFSET(weir_named_kernel_desc, num_outputs, 48);
OFFSET(weir_named_kernel_desc, outputs, 56);
OFFSET(weir_named_kernel_desc, infer, 64);
OFFSET(weir_named_kernel_desc, user, 72);
OFFSET(weir_named_kernel_desc, destroy, 80);

SIZE(weir_cuda_argument, 24);
OFFSET(weir_cuda_argument, kind, 0);
OFFSET(weir_cuda_argument, index, 4);
OFFSET(weir_cuda_argument, value, 8);
OFFSET(weir_cuda_argument, bytes, 16);

SIZE(weir_cuda_kernel_desc, 160);
OFFSET(weir_cuda_kernel_desc, struct_size, 0);
OFFSET(weir_cuda_kernel_desc, source, 8);
OFFSET(weir_cuda_kernel_desc, source_bytes, 16);
OFFSET(weir_cuda_kernel_desc, source_kind, 24);
OFFSET(weir_cuda_kernel_desc, shared_bytes, 28);
OFFSET(weir_cuda_kernel_desc, entry, 32);
OFFSET(weir_cuda_kernel_desc, options, 40);
OFFSET(weir_cuda_kernel_desc, num_options, 48);
OFFSET(weir_cuda_kernel_desc, grid, 56);
OFFSET(weir_cuda_kernel_desc, block, 68);
OFFSET(weir_cuda_kernel_desc, arguments, 80);
OFFSET(weir_cuda_kernel_desc, num_arguments, 88);
OFFSET(weir_cuda_kernel_desc, num_inputs, 96);
OFFSET(weir_cuda_kernel_desc, inputs, 104);
OFFSET(weir_cuda_kernel_desc, num_outputs, 112);
OFFSET(weir_cuda_kernel_desc, outputs, 120);
OFFSET(weir_cuda_kernel_desc, infer, 128);
OFFSET(weir_cuda_kernel_desc, user, 136);
OFFSET(weir_cuda_kernel_desc, destroy, 144);
OFFSET(weir_cuda_kernel_desc, flags, 152);

SIZE(weir_cuda_device_info, 360);
OFFSET(weir_cuda_device_info, struct_size, 0);
OFFSET(weir_cuda_device_info, driver_version, 8);
OFFSET(weir_cuda_device_info, capability_major, 12);
OFFSET(weir_cuda_device_info, capability_minor, 16);
OFFSET(weir_cuda_device_info, multiprocessors, 20);
OFFSET(weir_cuda_device_info, max_threads_per_block, 24);
OFFSET(weir_cuda_device_info, max_shared_bytes, 28);
OFFSET(weir_cuda_device_info, memory_bytes, 32);
OFFSET(weir_cuda_device_info, free_bytes, 40);
OFFSET(weir_cuda_device_info, has_memory_pool, 48);
OFFSET(weir_cuda_device_info, reserved, 52);
OFFSET(weir_cuda_device_info, uuid, 56);
OFFSET(weir_cuda_device_info, pci_bus_id, 72);
OFFSET(weir_cuda_device_info, name, 104);
OFFSET(weir_cuda_device_info, products, 232);

SIZE(weir_device_launch, 56);
OFFSET(weir_device_launch, struct_size, 0);
OFFSET(weir_device_launch, inputs, 8);
OFFSET(weir_device_launch, num_inputs, 16);
OFFSET(weir_device_launch, outputs, 24);
OFFSET(weir_device_launch, num_outputs, 32);
OFFSET(weir_device_launch, scratch, 40);
OFFSET(weir_device_launch, scratch_bytes, 48);

SIZE(weir_device_copy, 48);
OFFSET(weir_device_copy, struct_size, 0);
OFFSET(weir_device_copy, bytes, 8);
OFFSET(weir_device_copy, to_device, 16);
OFFSET(weir_device_copy, to, 24);
OFFSET(weir_device_copy, from_device, 32);
OFFSET(weir_device_copy, from, 40);

SIZE(weir_device_fill, 32);
OFFSET(weir_device_fill, struct_size, 0);
OFFSET(weir_device_fill, to, 8);
OFFSET(weir_device_fill, bytes, 16);
OFFSET(weir_device_fill, value, 24);
OFFSET(weir_device_fill, reserved, 25);

SIZE(weir_device_step_list, 16);
OFFSET(weir_device_step_list, steps, 0);
OFFSET(weir_device_step_list, num_steps, 8);

SIZE(weir_device_branch, 40);
OFFSET(weir_device_branch, struct_size, 0);
OFFSET(weir_device_branch, choice, 8);
OFFSET(weir_device_branch, dtype, 16);
OFFSET(weir_device_branch, is_cond, 20);
OFFSET(weir_device_branch, branches, 24);
OFFSET(weir_device_branch, num_branches, 32);

SIZE(weir_device_loop, 56);
OFFSET(weir_device_loop, struct_size, 0);
OFFSET(weir_device_loop, relation, 8);
OFFSET(weir_device_loop, dtype, 12);
OFFSET(weir_device_loop, addresses, 16);
OFFSET(weir_device_loop, body, 32);
OFFSET(weir_device_loop, behind, 40);
OFFSET(weir_device_loop, num_behind, 48);

SIZE(weir_device_work, 72);
OFFSET(weir_device_work, struct_size, 0);
OFFSET(weir_device_work, kind, 8);
OFFSET(weir_device_work, reserved, 12);
OFFSET(weir_device_work, name, 16);
OFFSET(weir_device_work, kernel, 24);
OFFSET(weir_device_work, launch, 32);
OFFSET(weir_device_work, copy, 40);
OFFSET(weir_device_work, fill, 48);
OFFSET(weir_device_work, branch, 56);
OFFSET(weir_device_work, again, 64);

SIZE(weir_device_step, 24);
OFFSET(weir_device_step, work, 0);
OFFSET(weir_device_step, after, 8);
OFFSET(weir_device_step, num_after, 16);

SIZE(weir_device_recording, 32);
OFFSET(weir_device_recording, struct_size, 0);
OFFSET(weir_device_recording, name, 8);
OFFSET(weir_device_recording, list, 16);

SIZE(weir_device_region_value, 80);
OFFSET(weir_device_region_value, desc, 0);
OFFSET(weir_device_region_value, constant, 72);

SIZE(weir_device_region_node, 72);
OFFSET(weir_device_region_node, name, 0);
OFFSET(weir_device_region_node, recipe, 8);
OFFSET(weir_device_region_node, kernel, 16);
OFFSET(weir_device_region_node, inputs, 24);
OFFSET(weir_device_region_node, num_inputs, 32);
OFFSET(weir_device_region_node, outputs, 40);
OFFSET(weir_device_region_node, num_outputs, 48);
OFFSET(weir_device_region_node, after, 56);
OFFSET(weir_device_region_node, num_after, 64);

SIZE(weir_device_region, 80);
OFFSET(weir_device_region, struct_size, 0);
OFFSET(weir_device_region, name, 8);
OFFSET(weir_device_region, nodes, 16);
OFFSET(weir_device_region, num_nodes, 24);
OFFSET(weir_device_region, values, 32);
OFFSET(weir_device_region, num_values, 40);
OFFSET(weir_device_region, inputs, 48);
OFFSET(weir_device_region, num_inputs, 56);
OFFSET(weir_device_region, outputs, 64);
OFFSET(weir_device_region, num_outputs, 72);

SIZE(weir_device_vtable, 432);
OFFSET(weir_device_vtable, struct_size, 0);
OFFSET(weir_device_vtable, flags, 8);
OFFSET(weir_device_vtable, device_count, 16);
OFFSET(weir_device_vtable, device_open, 24);
OFFSET(weir_device_vtable, device_close, 32);
OFFSET(weir_device_vtable, device_info, 40);
OFFSET(weir_device_vtable, error_text, 48);
OFFSET(weir_device_vtable, allocate, 56);
OFFSET(weir_device_vtable, deallocate, 64);
OFFSET(weir_device_vtable, stream_create, 72);
OFFSET(weir_device_vtable, stream_destroy, 80);
OFFSET(weir_device_vtable, stream_clear_error, 88);
OFFSET(weir_device_vtable, event_create, 96);
OFFSET(weir_device_vtable, event_destroy, 104);
OFFSET(weir_device_vtable, event_record, 112);
OFFSET(weir_device_vtable, event_wait, 120);
OFFSET(weir_device_vtable, event_query, 128);
OFFSET(weir_device_vtable, event_synchronize, 136);
OFFSET(weir_device_vtable, event_elapsed, 144);
OFFSET(weir_device_vtable, event_callback, 152);
OFFSET(weir_device_vtable, copy_to_device, 160);
OFFSET(weir_device_vtable, copy_to_host, 168);
OFFSET(weir_device_vtable, copy_on_device, 176);
OFFSET(weir_device_vtable, copy_peer, 184);
OFFSET(weir_device_vtable, fill, 192);
OFFSET(weir_device_vtable, kernel_create, 200);
OFFSET(weir_device_vtable, kernel_destroy, 208);
OFFSET(weir_device_vtable, launch, 216);
OFFSET(weir_device_vtable, native_handle, 224);
OFFSET(weir_device_vtable, release, 232);
OFFSET(weir_device_vtable, host_allocate, 240);
OFFSET(weir_device_vtable, host_deallocate, 248);
OFFSET(weir_device_vtable, host_register, 256);
OFFSET(weir_device_vtable, host_unregister, 264);
OFFSET(weir_device_vtable, stream_query, 272);
OFFSET(weir_device_vtable, record, 280);
OFFSET(weir_device_vtable, executable_update, 288);
OFFSET(weir_device_vtable, executable_destroy, 296);
OFFSET(weir_device_vtable, replay, 304);
OFFSET(weir_device_vtable, prepare, 312);
OFFSET(weir_device_vtable, launch_prepared, 320);
OFFSET(weir_device_vtable, prepared_destroy, 328);
OFFSET(weir_device_vtable, kernel_scratch, 336);
OFFSET(weir_device_vtable, device_open_with, 344);
OFFSET(weir_device_vtable, device_settings, 352);
OFFSET(weir_device_vtable, device_fits, 360);
OFFSET(weir_device_vtable, work_submit, 368);
OFFSET(weir_device_vtable, batch_begin, 376);
OFFSET(weir_device_vtable, batch_end, 384);
OFFSET(weir_device_vtable, memory_trim, 392);
OFFSET(weir_device_vtable, host_used, 400);
OFFSET(weir_device_vtable, error_origin, 408);
OFFSET(weir_device_vtable, region_claim, 416);
OFFSET(weir_device_vtable, region_compile, 424);

SIZE(weir_device_plugin_api, 56);
OFFSET(weir_device_plugin_api, struct_size, 0);
OFFSET(weir_device_plugin_api, version, 8);
OFFSET(weir_device_plugin_api, abi_version, 12);
OFFSET(weir_device_plugin_api, device_register, 16);
OFFSET(weir_device_plugin_api, device_replace, 24);
OFFSET(weir_device_plugin_api, device_unregister, 32);
OFFSET(weir_device_plugin_api, last_error_message, 40);
OFFSET(weir_device_plugin_api, fail, 48);

SIZE(weir_communication, 112);
OFFSET(weir_communication, struct_size, 0);
OFFSET(weir_communication, op, 8);
OFFSET(weir_communication, reduction, 12);
OFFSET(weir_communication, peer, 16);
OFFSET(weir_communication, tag, 20);
OFFSET(weir_communication, desc, 24);
OFFSET(weir_communication, flags, 96);
OFFSET(weir_communication, num_tensors, 104);

SIZE(weir_comm_transport_info, 160);
OFFSET(weir_comm_transport_info, struct_size, 0);
OFFSET(weir_comm_transport_info, rank, 8);
OFFSET(weir_comm_transport_info, size, 12);
OFFSET(weir_comm_transport_info, flags, 16);
OFFSET(weir_comm_transport_info, ops, 24);
OFFSET(weir_comm_transport_info, dtypes, 32);
OFFSET(weir_comm_transport_info, reductions, 40);
OFFSET(weir_comm_transport_info, max_tag, 48);
OFFSET(weir_comm_transport_info, reserved, 52);
OFFSET(weir_comm_transport_info, max_bytes, 56);
OFFSET(weir_comm_transport_info, name, 64);
OFFSET(weir_comm_transport_info, engine_kind, 128);
OFFSET(weir_comm_transport_info, engine_index, 132);
OFFSET(weir_comm_transport_info, device_ops, 136);
OFFSET(weir_comm_transport_info, device_dtypes, 144);
OFFSET(weir_comm_transport_info, device_reductions, 152);

SIZE(weir_comm_operation, 64);
OFFSET(weir_comm_operation, struct_size, 0);
OFFSET(weir_comm_operation, op, 8);
OFFSET(weir_comm_operation, reduction, 12);
OFFSET(weir_comm_operation, dtype, 16);
OFFSET(weir_comm_operation, peer, 20);
OFFSET(weir_comm_operation, tag, 24);
OFFSET(weir_comm_operation, reserved, 28);
OFFSET(weir_comm_operation, count, 32);
OFFSET(weir_comm_operation, element_bytes, 40);
OFFSET(weir_comm_operation, send, 48);
OFFSET(weir_comm_operation, recv, 56);

SIZE(weir_comm_vtable, 112);
OFFSET(weir_comm_vtable, struct_size, 0);
OFFSET(weir_comm_vtable, get_info, 8);
OFFSET(weir_comm_vtable, start, 16);
OFFSET(weir_comm_vtable, test, 24);
OFFSET(weir_comm_vtable, progress, 32);
OFFSET(weir_comm_vtable, control_send, 40);
OFFSET(weir_comm_vtable, control_poll, 48);
OFFSET(weir_comm_vtable, duplicate, 56);
OFFSET(weir_comm_vtable, split, 64);
OFFSET(weir_comm_vtable, abort, 72);
OFFSET(weir_comm_vtable, recover, 80);
OFFSET(weir_comm_vtable, last_error, 88);
OFFSET(weir_comm_vtable, release, 96);
OFFSET(weir_comm_vtable, enqueue, 104);

SIZE(weir_comm_options, 32);
OFFSET(weir_comm_options, struct_size, 0);
OFFSET(weir_comm_options, name, 8);
OFFSET(weir_comm_options, flags, 16);
OFFSET(weir_comm_options, limit_ns, 24);

SIZE(weir_comm_info, 136);
OFFSET(weir_comm_info, struct_size, 0);
OFFSET(weir_comm_info, rank, 8);
OFFSET(weir_comm_info, size, 12);
OFFSET(weir_comm_info, flags, 16);
OFFSET(weir_comm_info, begun, 24);
OFFSET(weir_comm_info, ended, 32);
OFFSET(weir_comm_info, built, 40);
OFFSET(weir_comm_info, quarantined_bytes, 48);
OFFSET(weir_comm_info, dead, 56);
OFFSET(weir_comm_info, recoverable, 60);
OFFSET(weir_comm_info, transport, 64);
OFFSET(weir_comm_info, device_ops, 128);

/* DLPack's, which weir_cdef.h has too. */
SIZE(DLDevice, 8);
OFFSET(DLDevice, device_type, 0);
OFFSET(DLDevice, device_id, 4);
SIZE(DLDataType, 4);
OFFSET(DLDataType, code, 0);
OFFSET(DLDataType, bits, 1);
OFFSET(DLDataType, lanes, 2);
SIZE(DLTensor, 48);
OFFSET(DLTensor, data, 0);
OFFSET(DLTensor, device, 8);
OFFSET(DLTensor, ndim, 16);
OFFSET(DLTensor, dtype, 20);
OFFSET(DLTensor, shape, 24);
OFFSET(DLTensor, strides, 32);
OFFSET(DLTensor, byte_offset, 40);
SIZE(DLManagedTensor, 64);
OFFSET(DLManagedTensor, dl_tensor, 0);
OFFSET(DLManagedTensor, manager_ctx, 48);
OFFSET(DLManagedTensor, deleter, 56);
SIZE(DLPackVersion, 8);
OFFSET(DLPackVersion, major, 0);
OFFSET(DLPackVersion, minor, 4);
SIZE(DLManagedTensorVersioned, 80);
OFFSET(DLManagedTensorVersioned, version, 0);
OFFSET(DLManagedTensorVersioned, manager_ctx, 8);
OFFSET(DLManagedTensorVersioned, deleter, 16);
OFFSET(DLManagedTensorVersioned, flags, 24);
OFFSET(DLManagedTensorVersioned, dl_tensor, 32);

#endif
/* clang-format on */

/* The library that runs is the one that this header describes. */
int main(void) {
    const uint32_t version = (WEIR_VERSION_MAJOR << 16) | (WEIR_VERSION_MINOR << 8) | WEIR_VERSION_PATCH;
    char text[32];

    snprintf(text, sizeof text, "%d.%d.%d", WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR, WEIR_VERSION_PATCH);
    if (weir_abi_version() != WEIR_ABI_VERSION || weir_version() != version ||
        strcmp(weir_version_string(), text) != 0) {
        fprintf(stderr, "header %s with interface %d, library %s with interface %u\n", text, WEIR_ABI_VERSION,
                weir_version_string(), (unsigned)weir_abi_version());
        return 1;
    }
    printf("header and library are %s, interface %d\n", text, WEIR_ABI_VERSION);
    return 0;
}
