/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Graphs whose kernels are on two engines in turn.
 */
#include "alternate.h"

#undef weir_graph_compile

#include "check.h"

weir_engine *alternate_device;

weir_engine *alternate_engine(weir_engine *host) {
    static int turn;
    return alternate_device != NULL && turn++ % 2 == 0 ? alternate_device : host;
}

weir_status alternate_compile(const weir_graph *graph, weir_engine *const *engines, size_t num_engines,
                              const weir_compile_options *options, weir_program **out_program) {
    weir_engine *both[2] = {engines[0], alternate_device};
    CHECK_EQ(num_engines, 1);
    return weir_graph_compile(graph, both, alternate_device != NULL ? 2 : 1, options, out_program);
}
