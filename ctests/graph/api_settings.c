/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Settings of kernels that are tensors: positions, margins, shapes, axes, counts and limits that a run brings, or that
 * are computed from shapes; and what is said of those that do not fit.
 */

#include <math.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

#define SETTINGS(names) (&(weir_kernel_options){.struct_size = sizeof(weir_kernel_options), .settings = (names)})

enum { OPEN = WEIR_DIM_DYNAMIC };

static weir_tensor *longs(weir_engine *engine, int64_t count, const int64_t *values) {
    weir_tensor *tensor = make_tensor(engine, make_desc(WEIR_S64, 1, count, 0, 0));
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    memcpy(data, values, (size_t)count * sizeof *values);
    return tensor;
}
#define LONGS(engine, ...)                                                                                             \
    longs(engine, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

static weir_value add(weir_graph *graph, const char *name, weir_kernel *kernel, const weir_value *inputs, size_t count) {
    weir_value values[2] = {0, 0};
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, inputs, count, values, 1, NULL));
    weir_kernel_release(kernel);
    return values[0];
}

static weir_value input(weir_graph *graph, const char *name, weir_tensor_desc desc) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_input(graph, name, &desc, &value));
    return value;
}

static weir_value constant(weir_graph *graph, const char *name, weir_tensor *tensor) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_constant(graph, name, tensor, &value));
    weir_tensor_release(tensor);
    return value;
}

/* A program of one kernel, whose inputs are x and settings of `counts` numbers. */
static weir_program *program_of(weir_engine *engine, weir_kernel *kernel, weir_tensor_desc x, const int64_t *counts,
                                size_t num_settings) {
    weir_graph *graph = make_graph("settings");
    weir_value in[4] = {input(graph, "x", x), 0, 0, 0};
    static const char *const names[] = {"first", "second", "third"};
    for (size_t i = 0; i < num_settings; i++) in[i + 1] = input(graph, names[i], make_desc(WEIR_S64, 1, counts[i], 0, 0));
    CHECK_OK(weir_graph_add_output(graph, "y", add(graph, "late", kernel, in, num_settings + 1)));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

static void check_shape(const weir_tensor *tensor, uint32_t rank, int64_t d0, int64_t d1) {
    weir_tensor_desc desc;
    CHECK_OK(weir_tensor_get_desc(tensor, &desc));
    CHECK_EQ(desc.rank, rank);
    if (rank > 0) CHECK_EQ(desc.dims[0], d0);
    if (rank > 1) CHECK_EQ(desc.dims[1], d1);
}

/* The rows and columns of a slice come with each run; the same shapes again need no memory. */
static void test_slice(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_slice_desc desc = {.struct_size = sizeof desc, .rank = 2};
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_slice(engine, &desc, SETTINGS("begin end step"), &kernel));
    weir_program *program = program_of(engine, kernel, matrix_desc(OPEN, 5), (const int64_t[]){2, 2, 2}, 3);
    weir_tensor *y = make_tensor(engine, matrix_desc(OPEN, OPEN)), *x = make_tensor(engine, matrix_desc(4, 5));
    weir_tensor *settings[2][3] = {{LONGS(engine, 1, 0), LONGS(engine, INT64_MAX, -1), LONGS(engine, 1, 2)},
                                   {LONGS(engine, -1, 4), LONGS(engine, INT64_MIN, 4), LONGS(engine, -2, 1)}};
    for (int i = 0; i < 20; i++) floats(x)[i] = (float)i;
    uint64_t before = 0;
    for (int round = 0; round < 8; round++) {
        if (round == 4) before = runtime_info().allocations;
        weir_tensor *in[4] = {x, settings[round % 2][0], settings[round % 2][1], settings[round % 2][2]};
        CHECK_OK(weir_program_run(program, NULL, in, 4, &y, 1, NULL));
        if (round % 2) {
            check_shape(y, 2, 2, 0);
            continue;
        }
        check_shape(y, 2, 3, 2);
        for (int k = 0; k < 6; k++) CHECK(floats(y)[k] == (float)(5 * (1 + k / 2) + 2 * (k % 2)));
    }
    if (pool == NULL) CHECK_EQ(runtime_info().allocations, before);
    for (int i = 0; i < 6; i++) weir_tensor_release(settings[i / 3][i % 3]);
    weir_tensor_release(x), weir_tensor_release(y);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* Margins, axes, counts and sizes. */
static void test_others(void) {
    weir_engine *engine = make_engine(NULL);
    weir_pad_desc pad = {.struct_size = sizeof pad, .rank = 1, .value = 9};
    weir_reduce_desc sum = {.struct_size = sizeof sum, .op = WEIR_REDUCE_SUM, .num_axes = 1};
    weir_topk_desc best = {.struct_size = sizeof best, .axis = -1};
    weir_kernel *kernel = NULL;
    weir_tensor *y = NULL, *x = make_tensor(engine, vector_desc(3)), *in[3] = {x, NULL, NULL};
    for (int i = 0; i < 3; i++) floats(x)[i] = (float)(i + 1);

    CHECK_OK(weir_kernel_create_pad(engine, &pad, SETTINGS("before after"), &kernel));
    weir_program *program = program_of(engine, kernel, vector_desc(3), (const int64_t[]){1, 1}, 2);
    y = make_tensor(engine, vector_desc(OPEN));
    in[1] = LONGS(engine, 2), in[2] = LONGS(engine, 1);
    CHECK_OK(weir_program_run(program, NULL, in, 3, &y, 1, NULL));
    check_shape(y, 1, 6, 0);
    const float padded[] = {9, 9, 1, 2, 3, 9};
    for (int i = 0; i < 6; i++) CHECK(floats(y)[i] == padded[i]);
    weir_tensor_release(in[1]);
    in[1] = LONGS(engine, -1);
    CHECK_CODE(weir_program_run(program, NULL, in, 3, &y, 1, NULL), WEIR_INVALID_ARGUMENT,
               "desc->before[0] is -1, expected 0 or more");
    check_shape(y, 1, 6, 0);
    weir_tensor_release(in[1]), weir_tensor_release(in[2]);
    weir_program_release(program);

    CHECK_OK(weir_kernel_create_topk(engine, &best, SETTINGS("k"), &kernel));
    weir_graph *graph = make_graph("best");
    weir_value values[2] = {input(graph, "x", vector_desc(3)), input(graph, "k", make_desc(WEIR_S64, 0, 0, 0, 0))};
    weir_value both[2];
    CHECK_OK(weir_graph_add_kernel(graph, "best", kernel, values, 2, both, 2, NULL));
    CHECK_OK(weir_graph_add_output(graph, "best", both[0]));
    weir_kernel_release(kernel);
    program = compile(graph, engine);
    weir_graph_destroy(graph);
    in[1] = make_tensor(engine, make_desc(WEIR_S64, 0, 0, 0, 0));
    *(int64_t *)(void *)floats(in[1]) = 2;
    CHECK_OK(weir_program_run(program, NULL, in, 2, &y, 1, NULL));
    check_shape(y, 1, 2, 0);
    CHECK(floats(y)[0] == 3 && floats(y)[1] == 2);
    *(int64_t *)(void *)floats(in[1]) = 4;
    CHECK_CODE(weir_program_run(program, NULL, in, 2, &y, 1, NULL), WEIR_INVALID_ARGUMENT,
               "input 0: expected 4 to 2147483647 elements along axis 0, got f32[3]");
    weir_tensor_release(in[1]), weir_tensor_release(y), weir_tensor_release(x);
    weir_program_release(program);

    CHECK_OK(weir_kernel_create_reduce(engine, &sum, SETTINGS("axes"), &kernel));
    program = program_of(engine, kernel, matrix_desc(2, 3), (const int64_t[]){1}, 1);
    x = in[0] = make_tensor(engine, matrix_desc(2, 3)), y = make_tensor(engine, vector_desc(OPEN));
    for (int i = 0; i < 6; i++) floats(x)[i] = (float)i;
    for (int axis = -2; axis < 2; axis++) {
        in[1] = LONGS(engine, axis);
        CHECK_OK(weir_program_run(program, NULL, in, 2, &y, 1, NULL));
        check_shape(y, 1, axis % 2 ? 2 : 3, 0);
        CHECK(floats(y)[0] == 3 && floats(y)[1] == (axis % 2 ? 12 : 5));
        weir_tensor_release(in[1]);
    }
    weir_tensor_release(x), weir_tensor_release(y);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* A row for each of as many sequences as the run says, or copies of it in a row. */
static void test_copies(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_tile_desc desc = {.struct_size = sizeof desc, .rank = 2};
    weir_tensor *x = make_tensor(engine, vector_desc(3)), *y = make_tensor(engine, matrix_desc(OPEN, OPEN));
    weir_tensor *in[2] = {x, NULL};
    for (int i = 0; i < 3; i++) floats(x)[i] = (float)i;
    for (int expand = 0; expand < 2; expand++) {
        weir_kernel *kernel = NULL;
        desc.mode = expand ? WEIR_TILE_EXPAND : WEIR_TILE_REPEAT;
        CHECK_OK(weir_kernel_create_tile(engine, &desc, SETTINGS("counts"), &kernel));
        weir_program *program = program_of(engine, kernel, vector_desc(3), (const int64_t[]){2}, 1);
        for (int64_t rows = 0; rows < 40; rows += 13) {
            in[1] = LONGS(engine, rows, expand ? -1 : 2);
            CHECK_OK(weir_program_run(program, NULL, in, 2, &y, 1, NULL));
            check_shape(y, 2, rows, expand ? 3 : 6);
            for (int64_t i = 0; i < rows * (expand ? 3 : 6); i++) CHECK(floats(y)[i] == (float)(i % 3));
            weir_tensor_release(in[1]);
        }
        in[1] = LONGS(engine, 2, expand ? 2 : -1);
        CHECK_CODE(weir_program_run(program, NULL, in, 2, &y, 1, NULL), WEIR_INVALID_ARGUMENT,
                   expand ? "node 'late': input 0: expected a shape that broadcasts with f32[2,2], got f32[3]"
                          : "desc->counts[1] is -1, expected 0 or more");
        weir_tensor_release(in[1]);
        weir_program_release(program);
    }
    weir_tensor_release(x), weir_tensor_release(y);
    weir_engine_release(engine);
}

/* [N, A, B] as [N, A * B], as exporters write it: the shape of x, some of it, and an inferred rest. */
static weir_program *make_flatten(weir_engine *engine, weir_tensor_desc x) {
    weir_slice_desc first = {.struct_size = sizeof first, .rank = 1, .end = {1}};
    weir_concat_desc join = {.struct_size = sizeof join, .num_inputs = 2, .axis = 0};
    weir_reshape_desc reshape = {.struct_size = sizeof reshape, .rank = 2};
    weir_kernel *shape = NULL, *part = NULL, *concat = NULL, *flatten = NULL, *again = NULL;
    weir_graph *graph = make_graph("flatten");
    weir_value in[2] = {input(graph, "x", x), 0}, dims[2], y;
    CHECK_OK(weir_kernel_create_shape(engine, NULL, NULL, &shape));
    CHECK_OK(weir_kernel_create_shape(engine, NULL, NULL, &again));
    CHECK_OK(weir_kernel_create_slice(engine, &first, NULL, &part));
    CHECK_OK(weir_kernel_create_concat(engine, &join, NULL, &concat));
    CHECK_OK(weir_kernel_create_reshape(engine, &reshape, SETTINGS("dims"), &flatten));
    dims[0] = add(graph, "shape", shape, in, 1);
    dims[0] = add(graph, "first", part, dims, 1);
    dims[1] = constant(graph, "rest", LONGS(engine, -1));
    in[1] = add(graph, "dims", concat, dims, 2);
    y = add(graph, "flatten", flatten, in, 2);
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    CHECK_OK(weir_graph_add_output(graph, "shape of y", add(graph, "again", again, &y, 1)));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

static void test_shapes(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_program *open = make_flatten(engine, make_desc(WEIR_F32, 3, OPEN, OPEN, OPEN));
    weir_program *known = make_flatten(engine, make_desc(WEIR_F32, 3, 2, 3, 4));
    weir_tensor *y = make_tensor(engine, matrix_desc(OPEN, OPEN)), *fixed = make_tensor(engine, matrix_desc(2, 12));
    weir_tensor *shape = make_tensor(engine, make_desc(WEIR_S64, 1, 2, 0, 0));
    for (int64_t rows = 1; rows < 4; rows++) {
        weir_tensor *x = make_tensor(engine, make_desc(WEIR_F32, 3, rows, 3, 4)), *out[2] = {y, shape};
        fill(x, (int)rows);
        CHECK_OK(weir_program_run(open, NULL, &x, 1, out, 2, NULL));
        check_shape(y, 2, rows, 12);
        CHECK(memcmp(floats(y), floats(x), (size_t)rows * 48) == 0);
        CHECK(((int64_t *)(void *)floats(shape))[0] == rows && ((int64_t *)(void *)floats(shape))[1] == 12);
        if (rows == 2) {
            out[0] = fixed;
            CHECK_OK(weir_program_run(known, NULL, &x, 1, out, 2, NULL));
            CHECK(memcmp(floats(fixed), floats(x), 96) == 0);
            CHECK(((int64_t *)(void *)floats(shape))[0] == 2 && ((int64_t *)(void *)floats(shape))[1] == 12);
        }
        weir_tensor_release(x);
    }
    /* Where the shape of x is known all is: what is left are the reshape, and a constant that is an output. */
    weir_program_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_program_get_info(known, &info));
    CHECK(info.num_nodes <= 2);
    weir_tensor_release(y), weir_tensor_release(fixed), weir_tensor_release(shape);
    weir_program_release(open), weir_program_release(known);
    weir_engine_release(engine);
}

/* Settings that no shape depends on, on a stream. */
static void test_stream(void) {
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_eltwise_desc clip = {.struct_size = sizeof clip, .op = WEIR_ELTWISE_CLIP};
    weir_slice_desc slice = {.struct_size = sizeof slice, .rank = 1};
    weir_kernel *kernel = NULL;
    weir_tensor *x = make_tensor(engine, vector_desc(4)), *y = make_tensor(engine, vector_desc(4));
    weir_tensor *in[3] = {x, make_tensor(engine, vector_desc(1)), make_tensor(engine, make_desc(WEIR_F32, 0, 0, 0, 0))};
    for (int i = 0; i < 4; i++) floats(x)[i] = (float)i;
    CHECK_OK(weir_kernel_create_eltwise(engine, &clip, SETTINGS("alpha beta"), &kernel));
    for (int round = 0; round < 2; round++) {
        *floats(in[1]) = (float)round, *floats(in[2]) = 2;
        CHECK_OK(weir_enqueue(stream, kernel, in, 3, &y, 1));
        const float clipped[][4] = {{0, 1, 2, 2}, {1, 1, 2, 2}};
        for (int i = 0; i < 4; i++) CHECK(floats(y)[i] == clipped[round][i]);
    }
    *floats(in[1]) = NAN;
    CHECK_CODE(weir_enqueue(stream, kernel, in, 3, &y, 1), WEIR_INVALID_ARGUMENT, "desc->alpha is NaN");
    CHECK_CODE(weir_enqueue(stream, kernel, in, 1, &y, 1), WEIR_INVALID_ARGUMENT, "expected 3 inputs, got 1");
    weir_tensor *wrong[3] = {x, x, in[2]};
    CHECK_CODE(weir_enqueue(stream, kernel, wrong, 3, &y, 1), WEIR_INVALID_ARGUMENT,
               "input 1: expected f32[1], which is desc->alpha, got f32[4]");
    weir_kernel_release(kernel);

    CHECK_CODE(weir_kernel_create_eltwise(engine, &clip, SETTINGS("gamma"), &kernel), WEIR_INVALID_ARGUMENT,
               "options->settings names 'gamma'; tensors can hold these members of eltwise: alpha, beta");
    CHECK_CODE(weir_kernel_create_eltwise(engine, &clip, SETTINGS("beta beta"), &kernel), WEIR_INVALID_ARGUMENT,
               "options->settings names 'beta' twice");
    CHECK_CODE(weir_kernel_create_select(engine, NULL, SETTINGS("begin"), &kernel), WEIR_INVALID_ARGUMENT,
               "tensors can hold these members of select: none");
    /* The shape of its output is not known before the call. */
    CHECK_OK(weir_kernel_create_slice(engine, &slice, SETTINGS("end"), &kernel));
    weir_tensor *cut[2] = {x, LONGS(engine, 2)};
    CHECK_CODE(weir_enqueue(stream, kernel, cut, 2, &y, 1), WEIR_UNIMPLEMENTED,
               "only its call knows the shape of output 0");
    weir_kernel_release(kernel);
    weir_tensor_release(cut[1]);
    for (int i = 0; i < 3; i++) weir_tensor_release(in[i]);
    weir_tensor_release(y);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* Outputs whose shape is known all the time: what the settings say is compared with it in each run all the same. */
static void test_known_shapes(void) {
    weir_engine *engine = make_engine(NULL);
    weir_reshape_desc scalar = {.struct_size = sizeof scalar};
    weir_reduce_desc greatest = {.struct_size = sizeof greatest, .op = WEIR_REDUCE_ARGMAX, .flags = WEIR_REDUCE_S64_INDICES};
    weir_eltwise_desc softplus = {.struct_size = sizeof softplus, .op = WEIR_ELTWISE_SOFTPLUS};
    weir_kernel *kernel = NULL;
    for (int64_t count = 0; count <= 24; count += count == 0 ? 1 : 23) {
        CHECK_OK(weir_kernel_create_reshape(engine, &scalar, SETTINGS("dims"), &kernel));
        weir_program *program = program_of(engine, kernel, vector_desc(count), (const int64_t[]){0}, 1);
        weir_tensor *x = make_tensor(engine, vector_desc(count)), *y = make_tensor(engine, make_desc(WEIR_F32, 0, 0, 0, 0));
        weir_tensor *in[2] = {x, make_tensor(engine, make_desc(WEIR_S64, 1, 0, 0, 0))};
        for (int64_t i = 0; i < count; i++) floats(x)[i] = (float)i + 3;
        if (count == 1) {
            CHECK_OK(weir_program_run(program, NULL, in, 2, &y, 1, NULL));
            CHECK(floats(y)[0] == 3);
        } else {
            CHECK_CODE(weir_program_run(program, NULL, in, 2, &y, 1, NULL), WEIR_INVALID_ARGUMENT, "node 'late'");
        }
        weir_program_release(program);
        weir_tensor_release(x), weir_tensor_release(y), weir_tensor_release(in[1]);
    }

    CHECK_OK(weir_kernel_create_reduce(engine, &greatest, SETTINGS("axes"), &kernel));
    weir_program *program = program_of(engine, kernel, vector_desc(0), (const int64_t[]){0}, 1);
    weir_tensor *y = make_tensor(engine, make_desc(WEIR_S64, 0, 0, 0, 0));
    weir_tensor *in[2] = {make_tensor(engine, vector_desc(0)), make_tensor(engine, make_desc(WEIR_S64, 1, 0, 0, 0))};
    CHECK_CODE(weir_program_run(program, NULL, in, 2, &y, 1, NULL), WEIR_INVALID_ARGUMENT, "node 'late'");
    weir_program_release(program);
    for (int i = 0; i < 2; i++) weir_tensor_release(in[i]);
    weir_tensor_release(y);

    /* A member that a tensor holds may be 0 in the descriptor, also where the function has no 0. */
    CHECK_OK(weir_kernel_create_eltwise(engine, &softplus, SETTINGS("alpha"), &kernel));
    weir_kernel_release(kernel);
    weir_engine_release(engine);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    test_slice(NULL);
    test_others();
    test_known_shapes();
    test_copies(NULL);
    test_shapes(NULL);
    test_stream();
    CHECK_OK(weir_threadpool_create_builtin(
        &(weir_threadpool_options){.struct_size = sizeof(weir_threadpool_options), .num_threads = 3}, &pool));
    test_slice(pool);
    test_copies(pool);
    test_shapes(pool);
    weir_threadpool_release(pool);
    check_released(&before);
    return 0;
}
