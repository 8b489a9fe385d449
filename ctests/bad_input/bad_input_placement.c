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
    ROW(weir_graph_set_port_engine, (graph, WEIR_PORT_INPUT, SIZE_MAX, good.engine), RANGE, "index is 18446744073709551615, the graph has");
    ROW(weir_graph_set_port_engine, (graph, 3, 0, good.engine), INVALID, "kind is 3, expected 1 (INPUT) or 2 (OUTPUT)");
    ROW(weir_graph_set_port_engine, (NULL, WEIR_PORT_OUTPUT, 0, good.engine), INVALID, "graph is NULL");
    ROW(weir_graph_set_port_engine, (WRONG(run), WEIR_PORT_OUTPUT, 0, good.engine), INVALID, "graph: expected a graph, got a run");
    ROW(weir_graph_set_port_engine, (graph, WEIR_PORT_OUTPUT, 0, UNALIGNED), INVALID, "engine");
    ROW(weir_graph_set_port_engine, (graph, WEIR_PORT_OUTPUT, SIZE_MAX, NULL), RANGE, "index is 18446744073709551615, the graph has");
    ROW(weir_graph_set_placement, (NULL, 0, WEIR_PLACEMENT_ANY), INVALID, "graph is NULL");
    ROW(weir_graph_set_placement, (WRONG(tensor), 0, WEIR_PLACEMENT_ANY), INVALID, "graph: expected a graph, got a tensor");
    ROW(weir_graph_set_placement, (graph, UINT64_MAX, WEIR_PLACEMENT_ANY), INVALID, "node: 0xffffffffffffffff is no node");
    ROW(weir_graph_set_placement, (graph, 0, 3), INVALID, "placement is 3, expected 0 (DEFAULT), 1 (KERNEL) or 2 (ANY)");
}
