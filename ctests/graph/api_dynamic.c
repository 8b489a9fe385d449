/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Shapes that only a run knows, as a user writes them: text becomes tokens, some are left out, and rows of a table are
 * gathered for the rest; a loop whose variable grows; branches with different row counts; what is refused.
 */

#include <weir/control.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

#if WITH_ASAN
/* A request that no memory can meet is to fail as it does without the sanitizer. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}
#endif

enum { COLUMNS = 3, WORDS = 10 };

static weir_tensor_desc bytes_desc(int64_t n) {
    return make_desc(WEIR_U8, 1, n, 0, 0);
}

static weir_tensor_desc ids_desc(int64_t n) {
    return make_desc(WEIR_S32, 1, n, 0, 0);
}

static const weir_tensor_view *inputs_of(weir_kernel_context *context) {
    const weir_tensor_view *views = NULL;
    size_t count = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &views, &count));
    return views;
}

static const weir_tensor_view *outputs_of(weir_kernel_context *context) {
    const weir_tensor_view *views = NULL;
    size_t count = 0;
    CHECK_OK(weir_kernel_context_get_outputs(context, &views, &count));
    return views;
}

/* One token for each run of letters: its length. */
static int32_t tokenise(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = inputs_of(context);
    const char *text = (const char *)in[0].data;
    size_t n = (size_t)in[0].desc.dims[0];
    int64_t count = 0;
    void *data = NULL;
    (void)user;
    CHECK_EQ(in[0].bytes, n);
    for (size_t i = 0; i < n; i++) count += text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
    CHECK(outputs_of(context)[0].data == NULL && outputs_of(context)[0].desc.dims[0] == WEIR_DIM_DYNAMIC);
    CHECK_OK(weir_kernel_context_allocate_output(context, 0, &count, 1, &data));
    CHECK(outputs_of(context)[0].data == data && outputs_of(context)[0].desc.dims[0] == count);
    CHECK_EQ(outputs_of(context)[0].bytes, (size_t)count * 4);
    int32_t *ids = (int32_t *)data, at = -1;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == ' ') continue;
        if (i == 0 || text[i - 1] == ' ') ids[++at] = 0;
        ids[at] += 1;
    }
    return WEIR_OK;
}

/* Those of two letters or more. */
static int32_t filter(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = inputs_of(context);
    const int32_t *ids = (const int32_t *)in[0].data;
    int64_t count = 0;
    void *data = NULL;
    (void)user;
    for (int64_t i = 0; i < in[0].desc.dims[0]; i++) count += ids[i] >= 2;
    CHECK_OK(weir_kernel_context_allocate_output(context, 0, &count, 1, &data));
    int32_t *kept = (int32_t *)data;
    for (int64_t i = 0; i < in[0].desc.dims[0]; i++) {
        if (ids[i] >= 2) *kept++ = ids[i];
    }
    return WEIR_OK;
}

/* A row of the table for each. */
static int32_t gather(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = inputs_of(context);
    int64_t dims[2] = {in[1].desc.dims[0], COLUMNS};
    const float *table = (const float *)in[0].data;
    void *data = NULL;
    (void)user;
    CHECK_OK(weir_kernel_context_allocate_output(context, 0, dims, 2, &data));
    for (int64_t i = 0; i < dims[0]; i++) {
        memcpy((float *)data + i * COLUMNS, table + ((const int32_t *)in[1].data)[i] * COLUMNS, COLUMNS * sizeof(float));
    }
    return WEIR_OK;
}

static weir_kernel *open_kernel(weir_engine *engine, const char *name, weir_compute_fn compute, void *user,
                                const weir_tensor_desc *inputs, size_t num_inputs, weir_tensor_desc output) {
    weir_host_kernel_desc desc = make_kernel_desc(name, compute, user);
    weir_kernel *kernel = NULL;
    desc.inputs = inputs;
    desc.num_inputs = num_inputs;
    desc.outputs = &output;
    desc.num_outputs = 1;
    desc.cost_ns = 100000;
    desc.flags = WEIR_KERNEL_DYNAMIC;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    return kernel;
}

static weir_value add(weir_graph *graph, const char *name, weir_kernel *kernel, const weir_value *inputs, size_t count) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, inputs, count, &value, 1, NULL));
    weir_kernel_release(kernel);
    return value;
}

/* text -> tokens -> kept -> rows of the table */
static weir_program *make_embedding(weir_engine *engine) {
    weir_tensor_desc text = bytes_desc(WEIR_DIM_DYNAMIC), ids = ids_desc(WEIR_DIM_DYNAMIC);
    weir_tensor_desc both[2] = {matrix_desc(WORDS, COLUMNS), ids};
    weir_graph *graph = make_graph("embedding");
    weir_value in[2];
    CHECK_OK(weir_graph_add_input(graph, "text", &text, &in[1]));
    CHECK_OK(weir_graph_add_input(graph, "table", &both[0], &in[0]));
    in[1] = add(graph, "tokenise", open_kernel(engine, "tokenise", tokenise, NULL, &text, 1, ids), &in[1], 1);
    in[1] = add(graph, "filter", open_kernel(engine, "filter", filter, NULL, &ids, 1, ids), &in[1], 1);
    weir_tensor_desc rows = matrix_desc(WEIR_DIM_DYNAMIC, COLUMNS);
    weir_value out = add(graph, "gather", open_kernel(engine, "gather", gather, NULL, both, 2, rows), in, 2);
    CHECK_OK(weir_graph_add_output(graph, "rows", out));
    CHECK_OK(weir_graph_add_output(graph, "kept", in[1]));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

static weir_tensor *dynamic_tensor(weir_engine *engine, weir_tensor_desc desc) {
    weir_tensor *tensor = NULL;
    CHECK_OK(weir_tensor_create(engine, &desc, NULL, &tensor));
    return tensor;
}

static weir_tensor *text_tensor(weir_engine *engine, const char *text) {
    weir_tensor *tensor = make_tensor(engine, bytes_desc((int64_t)strlen(text)));
    memcpy(floats(tensor), text, strlen(text));
    return tensor;
}

static int64_t rows_of(const weir_tensor *tensor) {
    weir_tensor_desc desc;
    CHECK_OK(weir_tensor_get_desc(tensor, &desc));
    return desc.dims[0];
}

static void check_embedding(weir_tensor *const *outputs, const int32_t *lengths, int64_t count) {
    CHECK_EQ(rows_of(outputs[0]), count);
    CHECK_EQ(rows_of(outputs[1]), count);
    CHECK_EQ(num_floats(outputs[0]), (size_t)count * COLUMNS);
    for (int64_t i = 0; i < count; i++) {
        CHECK_EQ(((const int32_t *)floats(outputs[1]))[i], lengths[i]);
        for (int k = 0; k < COLUMNS; k++) CHECK_EQ(floats(outputs[0])[i * COLUMNS + k], (float)(lengths[i] * 100 + k));
    }
}

typedef struct sentence {
    const char *text;
    int32_t lengths[10];
    int64_t count;
} sentence;

static const sentence sentences[] = {
    {"a weir lets a stream pass", {4, 4, 6, 4}, 4}, {"", {0}, 0}, {"where and as fast as it should be we see", {5, 3, 2, 4, 2, 2, 6, 2, 2, 3}, 10},
    {"x y z", {0}, 0}, {"one", {3}, 1},
};

static weir_tensor *make_table(weir_engine *engine) {
    weir_tensor *table = make_tensor(engine, matrix_desc(WORDS, COLUMNS));
    for (int i = 0; i < WORDS; i++) {
        for (int k = 0; k < COLUMNS; k++) floats(table)[i * COLUMNS + k] = (float)(i * 100 + k);
    }
    return table;
}

static void test_embedding(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_program *program = make_embedding(engine);
    weir_tensor *in[2] = {NULL, make_table(engine)};
    weir_tensor *out[2] = {dynamic_tensor(engine, matrix_desc(WEIR_DIM_DYNAMIC, COLUMNS)),
                           dynamic_tensor(engine, ids_desc(WEIR_DIM_DYNAMIC))};
    enum { COUNT = sizeof sentences / sizeof sentences[0] };
    weir_tensor *texts[COUNT];
    CHECK_EQ(rows_of(out[0]), 0);
    for (int i = 0; i < COUNT; i++) {
        texts[i] = text_tensor(engine, sentences[i].text);
    }
    uint64_t before = 0;
    for (int round = 0; round < 12; round++) {
        /* Nothing has to grow any more: nothing is allocated. */
        if (round == 4) before = runtime_info().allocations;
        for (int i = 0; i < COUNT; i++) {
            in[0] = texts[i];
            CHECK_OK(weir_program_run(program, NULL, in, 2, out, 2, NULL));
            check_embedding(out, sentences[i].lengths, sentences[i].count);
        }
    }
    if (pool == NULL) CHECK_EQ(runtime_info().allocations, before);
    uint64_t kept = runtime_info().bytes_in_use;
    CHECK_OK(weir_program_trim(program));
    CHECK(runtime_info().bytes_in_use < kept);
    CHECK_OK(weir_program_run(program, NULL, in, 2, out, 2, NULL));
    check_embedding(out, sentences[COUNT - 1].lengths, sentences[COUNT - 1].count);
    for (int i = 0; i < COUNT; i++) weir_tensor_release(texts[i]);
    for (int i = 0; i < 2; i++) weir_tensor_release(out[i]);
    weir_tensor_release(in[1]);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* On a stream each run sees the shapes that are there when its turn comes: here those that the run before it made. */
static int32_t halve(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = inputs_of(context);
    int64_t count = in[0].desc.dims[0] / 2;
    void *data = NULL;
    (void)user;
    CHECK_OK(weir_kernel_context_allocate_output(context, 0, &count, 1, &data));
    if (count > 0) memcpy(data, in[0].data, (size_t)count * 4);
    return WEIR_OK;
}

static void test_stream(weir_threadpool *pool, uint64_t flags) {
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, flags, pool, NULL);
    weir_tensor_desc ids = ids_desc(WEIR_DIM_DYNAMIC);
    weir_graph *graph = make_graph("halves");
    weir_value value = 0;
    CHECK_OK(weir_graph_add_input(graph, "x", &ids, &value));
    value = add(graph, "halve", open_kernel(engine, "halve", halve, NULL, &ids, 1, ids), &value, 1);
    CHECK_OK(weir_graph_add_output(graph, "y", value));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_tensor *first = make_tensor(engine, ids_desc(1000));
    weir_tensor *pair[2] = {dynamic_tensor(engine, ids), dynamic_tensor(engine, ids)};
    for (int i = 0; i < 1000; i++) ((int32_t *)floats(first))[i] = i;
    for (int round = 0; round < 20; round++) {
        int64_t expected = 500;
        CHECK_OK(weir_program_run(program, stream, &first, 1, &pair[0], 1, NULL));
        for (int i = 0; i < 5; i++, expected /= 2) {
            CHECK_OK(weir_program_run(program, stream, &pair[i % 2], 1, &pair[1 - i % 2], 1, NULL));
        }
        /* In and out at once. */
        CHECK_OK(weir_program_run(program, stream, &pair[1], 1, &pair[1], 1, NULL));
        expected /= 2;
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK_EQ(rows_of(pair[1]), expected);
        for (int64_t i = 0; i < expected; i++) CHECK_EQ(((const int32_t *)floats(pair[1]))[i], i);
    }
    weir_tensor_release(first);
    for (int i = 0; i < 2; i++) weir_tensor_release(pair[i]);
    weir_program_release(program);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* rows, limit -> rows + 1 */
static int32_t append(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = inputs_of(context);
    int64_t dims[2] = {in[0].desc.dims[0] + 1, 2};
    void *data = NULL;
    (void)user;
    CHECK_OK(weir_kernel_context_allocate_output(context, 0, dims, 2, &data));
    if (in[0].bytes > 0) memcpy(data, in[0].data, in[0].bytes);
    for (int k = 0; k < 2; k++) ((float *)data)[(dims[0] - 1) * 2 + k] = (float)(dims[0] * 10 + k);
    return WEIR_OK;
}

static int32_t is_short(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = inputs_of(context);
    (void)user;
    *(int32_t *)outputs_of(context)[0].data = in[0].desc.dims[0] < *(const int32_t *)in[1].data;
    return WEIR_OK;
}

static void test_loop(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_tensor_desc both[2] = {matrix_desc(WEIR_DIM_DYNAMIC, 2), ids_desc(1)}, first = matrix_desc(1, 2);
    weir_graph *parts[2], *graph = make_graph("grow");
    for (int i = 0; i < 2; i++) {
        weir_value in[2], out;
        parts[i] = make_graph(i == 0 ? "condition" : "body");
        CHECK_OK(weir_graph_add_input(parts[i], "rows", &both[0], &in[0]));
        CHECK_OK(weir_graph_add_input(parts[i], "limit", &both[1], &in[1]));
        out = i == 0 ? add(parts[i], "short", open_kernel(engine, "short", is_short, NULL, both, 2, both[1]), in, 2)
                     : add(parts[i], "append", open_kernel(engine, "append", append, NULL, both, 1, both[0]), in, 1);
        CHECK_OK(weir_graph_add_output(parts[i], "out", out));
    }
    weir_value in[2], out = 0;
    CHECK_OK(weir_graph_add_input(graph, "first", &first, &in[0]));
    CHECK_OK(weir_graph_add_input(graph, "limit", &both[1], &in[1]));
    CHECK_OK(weir_graph_add_while(graph, "loop", &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
        .cond_graph = parts[0], .body_graph = parts[1], .variables = &in[0], .num_variables = 1, .invariants = &in[1],
        .num_invariants = 1}, &out, NULL));
    CHECK_OK(weir_graph_add_output(graph, "rows", out));
    weir_program *program = compile(graph, engine);
    weir_tensor *given[2] = {make_tensor(engine, first), make_tensor(engine, both[1])};
    weir_tensor *rows = dynamic_tensor(engine, both[0]);
    floats(given[0])[0] = 10, floats(given[0])[1] = 11;
    for (int round = 0; round < 3; round++) {
        const int32_t limits[] = {1, 7, 0, 100, 3};
        for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
            int64_t expected = limits[i] < 1 ? 1 : limits[i];
            *(int32_t *)(void *)floats(given[1]) = limits[i];
            CHECK_OK(weir_program_run(program, NULL, given, 2, &rows, 1, NULL));
            CHECK_EQ(rows_of(rows), expected);
            for (int64_t k = 0; k < 2 * expected; k++) CHECK_EQ(floats(rows)[k], (float)((k / 2 + 1) * 10 + k % 2));
        }
    }
    uint64_t before = 0;
    for (int round = 0; round < 6; round++) {
        if (round == 3) before = runtime_info().allocations;
        CHECK_OK(weir_program_run(program, NULL, given, 2, &rows, 1, NULL));
    }
    if (pool == NULL) CHECK_EQ(runtime_info().allocations, before);
    for (int i = 0; i < 2; i++) weir_graph_destroy(parts[i]), weir_tensor_release(given[i]);
    weir_graph_destroy(graph);
    weir_tensor_release(rows);
    weir_program_release(program);
    weir_engine_release(engine);
}

typedef struct maker {
    int64_t dims[2];
    size_t rank;
    int times;
} maker;

static int32_t make_as_told(void *user, weir_kernel_context *context) {
    const maker *m = (const maker *)user;
    void *data = NULL;
    for (int i = 0; i < m->times; i++) {
        weir_status status = weir_kernel_context_allocate_output(context, 0, m->dims, m->rank, &data);
        if (status != WEIR_OK) return status;
    }
    return WEIR_OK;
}

/* What is wrong is said with the names of node and output, and the program goes on being good. */
static void test_refusals(void) {
    weir_engine *engine = make_engine(NULL);
    maker told = {{2, 4}, 2, 1};
    weir_tensor_desc open = matrix_desc(WEIR_DIM_DYNAMIC, 4);
    weir_graph *graph = make_graph("odd");
    weir_value value = add(graph, "maker", open_kernel(engine, "told", make_as_told, &told, NULL, 0, open), NULL, 0);
    CHECK_OK(weir_graph_add_output(graph, "rows", value));
    weir_program *program = compile(graph, engine);
    weir_tensor *rows = dynamic_tensor(engine, open), *fixed = make_tensor(engine, matrix_desc(2, 4)), *room = NULL;
    float memory[8];
    CHECK_OK(weir_tensor_create(engine, &open, OVER_BYTES(memory, sizeof memory), &room));

    CHECK_OK(weir_program_run(program, NULL, NULL, 0, &rows, 1, NULL));
    CHECK_EQ(rows_of(rows), 2);
    const struct {
        maker told;
        weir_status code;
        const char *text;
    } wrong[] = {
        {{{2, 5}, 2, 1}, WEIR_INVALID_ARGUMENT, "node 'maker': output 0: expected f32[?,4], got f32[2,5]"},
        {{{8, 0}, 1, 1}, WEIR_INVALID_ARGUMENT, "node 'maker': output 0: expected f32[?,4], got f32[8]"},
        {{{-1, 4}, 2, 1}, WEIR_INVALID_ARGUMENT, "node 'maker': output 0: dims[0] is -1"},
        {{{1, 4}, 2, 2}, WEIR_FAILED_PRECONDITION, "node 'maker': output 0 was allocated before"},
        {{{1, 4}, 2, 0}, WEIR_FAILED_PRECONDITION, "node 'maker': output 0, f32[?,4], was not allocated"},
        {{{INT64_C(1) << 48, 4}, 2, 1}, WEIR_RESOURCE_EXHAUSTED, "output 0 of node 'maker', f32[281474976710656,4]"},
        {{{INT64_C(1) << 60, 4}, 2, 1}, WEIR_OUT_OF_RANGE, "output 0: f32[1152921504606846976,4] is larger"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        told = wrong[i].told;
        CHECK_CODE(weir_program_run(program, NULL, NULL, 0, &rows, 1, NULL), wrong[i].code, wrong[i].text);
        CHECK_EQ(rows_of(rows), 2); /* as it was */
    }
    told = (maker){{3, 4}, 2, 1};
    CHECK_CODE(weir_program_run(program, NULL, NULL, 0, &fixed, 1, NULL), WEIR_FAILED_PRECONDITION,
               "output 0 'rows': the tensor is f32[2,4], and the run made f32[3,4]");
    CHECK_CODE(weir_program_run(program, NULL, NULL, 0, &room, 1, NULL), WEIR_OUT_OF_RANGE,
               "output 0 'rows': f32[3,4] needs 48 bytes, and the tensor's memory has 32");
    told.dims[0] = 2;
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, &fixed, 1, NULL));
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, &room, 1, NULL));
    CHECK_EQ(rows_of(room), 2);
    CHECK(floats(room) == memory);
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, &rows, 1, NULL));

    /* A kernel that does not say so takes no open shape, and none is enqueued. */
    weir_stream *stream = make_stream(engine, 0, NULL, NULL);
    weir_kernel *kernel = open_kernel(engine, "told", make_as_told, &told, NULL, 0, open), *relu = NULL;
    CHECK_CODE(weir_enqueue(stream, kernel, NULL, 0, &rows, 1), WEIR_UNIMPLEMENTED, "the shape of output 0, f32[?,4]");
    weir_kernel_release(kernel);
    CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &relu));
    CHECK_CODE(weir_enqueue(stream, relu, &fixed, 1, &rows, 1), WEIR_INVALID_ARGUMENT, "output 0 is a dynamic tensor");
    weir_kernel_release(relu);
    weir_tensor_desc closed = matrix_desc(2, 4);
    weir_host_kernel_desc host = make_kernel_desc("host", make_as_told, &told);
    weir_kernel *plain = NULL;
    weir_value copied = 0;
    weir_program *none = NULL;
    host.inputs = &open, host.num_inputs = 1, host.outputs = &closed, host.num_outputs = 1;
    CHECK_OK(weir_kernel_create_host(engine, &host, &plain));
    CHECK_OK(weir_graph_add_kernel(graph, "plain", plain, &value, 1, &copied, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "copied", copied));
    CHECK_CODE(weir_graph_compile(graph, &engine, 1, NULL, &none), WEIR_INVALID_ARGUMENT,
               "node 'plain' input 0: expected a shape without open dimensions");
    weir_kernel_release(plain);
    weir_stream_release(stream);
    weir_tensor_release(rows);
    weir_tensor_release(fixed);
    weir_tensor_release(room);
    weir_graph_destroy(graph);
    weir_program_release(program);
    weir_engine_release(engine);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_refusals();
    test_embedding(NULL);
    test_loop(NULL);
    test_stream(NULL, 0);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            weir_threadpool *pool = NULL;
            if (kind == POOL_LATE) continue;
            test_pool *of = test_pool_create((pool_kind)kind, threads, &pool);
            test_embedding(pool);
            test_loop(pool);
            test_stream(pool, 0);
            test_stream(pool, WEIR_STREAM_ASYNCHRONOUS);
            weir_threadpool_release(pool);
            test_pool_destroy(of);
        }
    }
    check_released(&before);
    return 0;
}
