/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for where inputs and outputs are.
 */

#include "bad_input.h"

void bad_input_placement(void) {
    weir_graph *graph = good.graph;

    ROW(weir_graph_set_port_engine, (NULL, WEIR_PORT_INPUT, 0, good.engine), INVALID, "graph is NULL");
    ROW(weir_graph_set_port_engine, (WRONG(tensor), WEIR_PORT_INPUT, 0, good.engine), INVALID, "graph: expected a graph, got a tensor");
    ROW(weir_graph_set_port_engine, (graph, WEIR_PORT_INPUT, 0, WRONG(stream)), INVALID, "engine: expected an engine, got a stream");
    ROW(weir_graph_set_port_engine, (graph, WEIR_PORT_INPUT, SIZE_MAX, good.engine), RANGE, "input is 18446744073709551615, the graph has");
    ROW(weir_graph_set_port_engine, (graph, 3, 0, good.engine), INVALID, "kind is 3, expected 1 (INPUT) or 2 (OUTPUT)");
    ROW(weir_graph_set_port_engine, (NULL, WEIR_PORT_OUTPUT, 0, good.engine), INVALID, "graph is NULL");
    ROW(weir_graph_set_port_engine, (WRONG(run), WEIR_PORT_OUTPUT, 0, good.engine), INVALID, "graph: expected a graph, got a run");
    ROW(weir_graph_set_port_engine, (graph, WEIR_PORT_OUTPUT, 0, UNALIGNED), INVALID, "engine");
    ROW(weir_graph_set_port_engine, (graph, WEIR_PORT_OUTPUT, SIZE_MAX, NULL), RANGE, "output is 18446744073709551615, the graph has");
    ROW(weir_graph_set_placement, (NULL, 0, WEIR_PLACEMENT_ANY), INVALID, "graph is NULL");
    ROW(weir_graph_set_placement, (WRONG(tensor), 0, WEIR_PLACEMENT_ANY), INVALID, "graph: expected a graph, got a tensor");
    ROW(weir_graph_set_placement, (graph, UINT64_MAX, WEIR_PLACEMENT_ANY), INVALID, "node: 0xffffffffffffffff is no node");
    ROW(weir_graph_set_placement, (graph, 0, 3), INVALID, "placement is 3, expected 0 (DEFAULT), 1 (KERNEL) or 2 (ANY)");
    ROW(weir_compile_options_set_placement, (NULL, 1), INVALID, "options is NULL");
    ROW(weir_compile_options_set_placement, (WRONG(run_options), 1), INVALID, "options: expected compile_options");
    ROW(weir_compile_options_set_placement, (good.compile_options, UINT32_MAX), INVALID, "placement is 4294967295");
    ROW(weir_compile_options_get_placement, (NULL, &out.u32), INVALID, "options is NULL");
    ROW(weir_compile_options_get_placement, (good.compile_options, NULL), INVALID, "out_placement is NULL");
    ROW(weir_compile_options_set_segments, (NULL, 1), INVALID, "options is NULL");
    ROW(weir_compile_options_set_segments, (WRONG(run_options), 1), INVALID, "options: expected compile_options");
    ROW(weir_compile_options_set_segments, (good.compile_options, -1), INVALID, "segments is -1");
    ROW(weir_compile_options_set_segments, (good.compile_options, 3), INVALID, "segments is 3, expected 0, 1 or 2");
    ROW(weir_compile_options_get_segments, (NULL, &out.i32), INVALID, "options is NULL");
    ROW(weir_compile_options_get_segments, (WRONG(graph), &out.i32), INVALID, "options: expected compile_options");
    ROW(weir_compile_options_get_segments, (good.compile_options, NULL), INVALID, "out_segments is NULL");
    ROW(weir_compile_options_set_device_control, (NULL, 1), INVALID, "options is NULL");
    ROW(weir_compile_options_set_device_control, (WRONG(run_options), 1), INVALID, "options: expected compile_options");
    ROW(weir_compile_options_set_device_control, (good.compile_options, -1), INVALID, "device_control is -1");
    ROW(weir_compile_options_get_device_control, (NULL, &out.i32), INVALID, "options is NULL");
    ROW(weir_compile_options_get_device_control, (WRONG(graph), &out.i32), INVALID, "options: expected compile_options");
    ROW(weir_compile_options_get_device_control, (good.compile_options, NULL), INVALID, "out_device_control is NULL");
    ROW(weir_compile_options_set_regions, (NULL, 1), INVALID, "options is NULL");
    ROW(weir_compile_options_set_regions, (WRONG(run_options), 1), INVALID, "options: expected compile_options");
    ROW(weir_compile_options_set_regions, (good.compile_options, 2), INVALID, "regions is 2");
    ROW(weir_compile_options_get_regions, (NULL, &out.i32), INVALID, "options is NULL");
    ROW(weir_compile_options_get_regions, (WRONG(graph), &out.i32), INVALID, "options: expected compile_options");
    ROW(weir_compile_options_get_regions, (good.compile_options, NULL), INVALID, "out_regions is NULL");
}
