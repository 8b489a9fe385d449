/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Included in front of a source that builds a graph on one engine: every second kernel is then made on another one.
 */
#ifndef WEIR_TEST_ALTERNATE_H
#define WEIR_TEST_ALTERNATE_H

#include <weir.h>
#include <weir/ops.h>

/* The other engine; NULL = all stays as it is. */
extern weir_engine *alternate_device;

/* In turn the engine that is given and the other one. */
weir_engine *alternate_engine(weir_engine *host);
weir_status alternate_compile(const weir_graph *graph, weir_engine *const *engines, size_t num_engines,
                              const weir_compile_options *options, weir_program **out_program);

#define ALTERNATE(function, engine, desc, attr, out) (function)(alternate_engine(engine), desc, attr, out)
#define weir_kernel_create_matmul(engine, desc, attr, out) ALTERNATE(weir_kernel_create_matmul, engine, desc, attr, out)
#define weir_kernel_create_reshape(engine, desc, attr, out) ALTERNATE(weir_kernel_create_reshape, engine, desc, attr, out)
#define weir_kernel_create_reduce(engine, desc, attr, out) ALTERNATE(weir_kernel_create_reduce, engine, desc, attr, out)
#define weir_kernel_create_conv(engine, desc, attr, out) ALTERNATE(weir_kernel_create_conv, engine, desc, attr, out)
#define weir_kernel_create_slice(engine, desc, attr, out) ALTERNATE(weir_kernel_create_slice, engine, desc, attr, out)
#define weir_kernel_create_lstm(engine, desc, attr, out) ALTERNATE(weir_kernel_create_lstm, engine, desc, attr, out)
#define weir_kernel_create_eltwise(engine, desc, attr, out) ALTERNATE(weir_kernel_create_eltwise, engine, desc, attr, out)
#define weir_kernel_create_softmax(engine, desc, attr, out) ALTERNATE(weir_kernel_create_softmax, engine, desc, attr, out)
#define weir_kernel_create_binary(engine, desc, attr, out) ALTERNATE(weir_kernel_create_binary, engine, desc, attr, out)
#define weir_graph_compile(graph, engines, count, options, out) alternate_compile(graph, engines, count, options, out)

#endif
