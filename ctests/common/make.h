/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Short ways to make the objects that most tests need.
 */

#ifndef WEIR_CTESTS_MAKE_H
#define WEIR_CTESTS_MAKE_H

#include <stdatomic.h>

#include "check.h"

static inline weir_tensor_desc make_desc(weir_dtype dtype, uint32_t rank, int64_t d0, int64_t d1, int64_t d2) {
    weir_tensor_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.dtype = dtype;
    desc.rank = rank;
    desc.dims[0] = d0;
    desc.dims[1] = d1;
    desc.dims[2] = d2;
    return desc;
}

static inline weir_tensor_desc vector_desc(int64_t n) {
    return make_desc(WEIR_F32, 1, n, 0, 0);
}

static inline weir_tensor_desc matrix_desc(int64_t rows, int64_t columns) {
    return make_desc(WEIR_F32, 2, rows, columns, 0);
}

/* A CPU engine whose work runs on `pool` (NULL: in the calling thread). */
static inline weir_engine *make_engine(weir_threadpool *pool) {
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_engine_attr_set_threadpool(attr, pool));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

/* A stream with a pool of its own (NULL: the engine's) and a name for error texts (NULL: none). */
static inline weir_stream *make_stream(weir_engine *engine, uint64_t flags, weir_threadpool *pool, const char *name) {
    weir_stream_attr *attr = NULL;
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_stream_attr_set_threadpool(attr, pool));
    if (name != NULL) CHECK_OK(weir_stream_attr_set_name(attr, name));
    CHECK_OK(weir_stream_create(engine, flags, attr, &stream));
    weir_stream_attr_destroy(attr);
    return stream;
}

static inline weir_event *make_event(weir_engine *engine, uint64_t flags) {
    weir_event *event = NULL;
    CHECK_OK(weir_event_create(engine, flags, &event));
    return event;
}

static inline weir_tensor *make_tensor(weir_engine *engine, weir_tensor_desc desc) {
    weir_tensor *tensor = NULL;
    CHECK_OK(weir_tensor_create(engine, &desc, NULL, &tensor));
    return tensor;
}

static inline float *floats(const weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return (float *)data;
}

static inline size_t num_floats(const weir_tensor *tensor) {
    size_t bytes = 0;
    CHECK_OK(weir_tensor_get_size(tensor, &bytes));
    return bytes / sizeof(float);
}

/* A task that says that it has begun, and ends when it is told to. */
typedef struct gate {
    atomic_int begun;
    atomic_int open;
    weir_status result;
} gate;

static inline int32_t pass_gate(void *arg) {
    gate *g = (gate *)arg;
    atomic_fetch_add(&g->begun, 1);
    while (!atomic_load(&g->open)) sleep_ns(20000);
    return g->result;
}

static inline void open_gate(gate *g) {
    atomic_store(&g->open, 1);
}

/* A task that counts its runs: arg is an atomic_int. */
static inline int32_t count_run(void *arg) {
    atomic_fetch_add((atomic_int *)arg, 1);
    return WEIR_OK;
}

/* The same as a destroy function. */
static inline void count_destroy(void *arg) {
    atomic_fetch_add((atomic_int *)arg, 1);
}

static inline int32_t fail_with_data_loss(void *arg) {
    (void)arg;
    return WEIR_DATA_LOSS;
}

/* Small whole numbers that differ from place to place, so that sums of them are exact in f32. */
static inline void fill(weir_tensor *tensor, int seed) {
    float *data = floats(tensor);
    size_t n = num_floats(tensor);
    for (size_t i = 0; i < n; i++) data[i] = (float)((int)((i * 7u + (unsigned)seed * 13u) % 17u) - 8);
}

static inline weir_host_kernel_desc make_kernel_desc(const char *name, weir_compute_fn compute, void *user) {
    weir_host_kernel_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.struct_size = sizeof desc;
    desc.name = name;
    desc.compute = compute;
    desc.user = user;
    return desc;
}

/* A host kernel with one input and one output of the same descriptor. */
static inline weir_kernel *make_unary_kernel(weir_engine *engine, const char *name, weir_compute_fn compute, void *user,
                                             const weir_tensor_desc *like) {
    weir_host_kernel_desc desc = make_kernel_desc(name, compute, user);
    weir_kernel *kernel = NULL;
    desc.num_inputs = 1;
    desc.inputs = like;
    desc.num_outputs = 1;
    desc.outputs = like;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    return kernel;
}

static inline weir_graph *make_graph(const char *name) {
    weir_graph *graph = NULL;
    CHECK_OK(weir_graph_create(name, &graph));
    return graph;
}

static inline weir_program *compile(const weir_graph *graph, weir_engine *engine) {
    weir_program *program = NULL;
    CHECK_OK(weir_graph_compile(graph, &engine, 1, NULL, &program));
    return program;
}

#endif /* WEIR_CTESTS_MAKE_H */
