// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What it costs that nodes hand values to each other, and to compile graphs of many nodes.

#include <cstdio>

#include "data.hpp"
#include "graphs.hpp"

namespace bench {

namespace {

std::string per(double whole, std::uint32_t nodes, int digits = 1) {
    return fixed(whole / nodes, digits);
}

void run_table(const graph_options &options) {
    std::printf("\n## Values along the edges, one thread\n\n"
                "Each node is a kernel of the host's that reads and writes tensors of one s32; \"layers\" have two inputs a\n"
                "node. ns per node from call to return, medians; bytes per node of the program and of a run's memory.\n");
    const data_shape shapes[] = {{"chain", 8192, 1},       {"layers of 128", 8192, 128}, {"chain", 145000, 1},
                                 {"layers of 32", 145024, 32}, {"layers of 4500", 144000, 4500}};
    const table t({"shape", "nodes", "one kernel", "a kernel each", "program, a run: bytes", "with a kernel each"});
    for (const auto &shape : shapes) {
        if (options.quick && shape.nodes > 10000) continue;
        const int runs = shape.nodes > 50000 ? 40 : 400;
        const auto shared = measure_data(shape, kernels::shared, runs), own = measure_data(shape, kernels::own, runs);
        t.row({shape.name, std::to_string(shape.nodes), per(shared.run_ns, shape.nodes), per(own.run_ns, shape.nodes),
               per(double(shared.program_bytes), shape.nodes, 0) + ", " + per(double(shared.run_bytes), shape.nodes, 0),
               per(double(own.program_bytes), shape.nodes, 0) + ", " + per(double(own.run_bytes), shape.nodes, 0)});
    }
}

void loop_table() {
    std::printf("\n## Variables of a loop\n\nns per variable and iteration; each goes through a kernel, and is copied.\n");
    const table t({"variables", "ns"});
    for (const std::size_t variables : {std::size_t{1}, std::size_t{10}, std::size_t{60}, std::size_t{100}}) {
        t.row({std::to_string(variables), fixed(measure_loop(variables, 200) / double(variables))});
    }
}

void compile_table(const graph_options &options) {
    std::printf("\n## Building and compiling\n\n"
                "Layers of 100 nodes that wait for two. ns per node of this thread's time, and bytes per node of the graph\n"
                "and of the program.\n");
    const table t({"nodes", "what", "add", "compile", "first run", "graph", "program"});
    for (const std::uint32_t nodes : {10000u, 100000u, 1000000u}) {
        for (const auto what : {kernels::none, kernels::shared, kernels::own}) {
            if (nodes > (what == kernels::none && !options.quick ? 1000000u : 100000u)) continue;
            const auto costs = measure_data({"layers of 100", nodes, 100}, what, 5);
            const char *const words[] = {"tasks", "one kernel", "a kernel each"};
            t.row({std::to_string(nodes), words[static_cast<int>(what)], per(costs.add_ns, nodes, 0),
                   per(costs.compile_ns, nodes, 0), per(costs.first_ns, nodes, 0),
                   per(double(costs.graph_bytes), nodes, 0), per(double(costs.program_bytes), nodes, 0)});
        }
    }
}

} // namespace

void bench_data(const graph_options &options) {
    run_table(options);
    loop_table();
    compile_table(options);
}

} // namespace bench
