/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Batches and images of a size that only a run knows, through kernels of weir's and a merge; and what is said of those
 * that do not fit.
 */

#include <weir/control.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

static weir_tensor_desc ids_desc(int64_t n) {
    return make_desc(WEIR_S32, 1, n, 0, 0);
}

static weir_value add(weir_graph *graph, const char *name, weir_kernel *kernel, const weir_value *inputs, size_t count) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, inputs, count, &value, 1, NULL));
    weir_kernel_release(kernel);
    return value;
}

static weir_tensor *dynamic_tensor(weir_engine *engine, weir_tensor_desc desc) {
    weir_tensor *tensor = NULL;
    CHECK_OK(weir_tensor_create(engine, &desc, NULL, &tensor));
    return tensor;
}

static int64_t rows_of(const weir_tensor *tensor) {
    weir_tensor_desc desc;
    CHECK_OK(weir_tensor_get_desc(tensor, &desc));
    return desc.dims[0];
}

static int32_t *ints(const weir_tensor *tensor) {
    return (int32_t *)(void *)floats(tensor);
}

/* A batch of any size goes through one of two kernels of weir's; a merge passes on which it was. */
static weir_program *make_chooser(weir_engine *engine) {
    weir_tensor_desc batch = matrix_desc(WEIR_DIM_DYNAMIC, 4), one = ids_desc(1);
    weir_softmax_desc along_rows = {.struct_size = sizeof along_rows, .axis = -1};
    weir_kernel *softmax = NULL, *relu = NULL, *argmax = NULL;
    weir_value in[2], sides[2], both[2], merged[2], best = 0;
    weir_graph *graph = make_graph("chooser");
    CHECK_OK(weir_kernel_create_softmax(engine, &along_rows, NULL, &softmax));
    CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_kernel_create_reduce(engine, ARGMAX(-1), NULL, &argmax));
    CHECK_OK(weir_graph_add_input(graph, "batch", &batch, &in[0]));
    CHECK_OK(weir_graph_add_input(graph, "which", &one, &in[1]));
    CHECK_OK(weir_graph_add_switch(graph, "switch", in[0], in[1], &sides[0], &sides[1], NULL));
    both[0] = add(graph, "softmax", softmax, &sides[0], 1);
    both[1] = add(graph, "relu", relu, &sides[1], 1);
    CHECK_OK(weir_graph_add_merge(graph, "merge", both, 2, &merged[0], &merged[1], NULL));
    best = add(graph, "argmax", argmax, &merged[0], 1);
    CHECK_OK(weir_graph_add_output(graph, "merged", merged[0]));
    CHECK_OK(weir_graph_add_output(graph, "best", best));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

static void test_chooser(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_program *program = make_chooser(engine);
    weir_tensor *out[2] = {dynamic_tensor(engine, matrix_desc(WEIR_DIM_DYNAMIC, 4)),
                           dynamic_tensor(engine, ids_desc(WEIR_DIM_DYNAMIC))};
    const int64_t sizes[] = {5, 0, 300, 1};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    weir_tensor *batches[COUNT], *which[2];
    for (int i = 0; i < 2; i++) {
        which[i] = make_tensor(engine, ids_desc(1));
        *ints(which[i]) = i;
    }
    for (int i = 0; i < COUNT; i++) {
        batches[i] = make_tensor(engine, matrix_desc(sizes[i], 4));
        for (int64_t k = 0; k < 4 * sizes[i]; k++) floats(batches[i])[k] = (float)((k * 7 + k / 4) % 11) - 5.0f;
    }
    uint64_t before = 0;
    for (int round = 0; round < 8; round++) {
        if (round == 4) before = runtime_info().allocations;
        for (int i = 0; i < 2 * COUNT; i++) {
            weir_tensor *in[2] = {batches[i / 2], which[(i + round) % 2]};
            int relu = (i + round) % 2 == 0 ? 0 : 1;
            const float *x = floats(in[0]);
            CHECK_OK(weir_program_run(program, NULL, in, 2, out, 2, NULL));
            CHECK_EQ(rows_of(out[0]), sizes[i / 2]);
            CHECK_EQ(rows_of(out[1]), sizes[i / 2]);
            for (int64_t row = 0; row < sizes[i / 2]; row++) {
                const float *y = floats(out[0]) + 4 * row;
                int greatest = 0;
                float sum = 0;
                for (int k = 0; k < 4; k++) {
                    float at = x[4 * row + k];
                    if (relu) CHECK(y[k] == (at > 0 ? at : 0));
                    if (y[k] > y[greatest]) greatest = k;
                    sum += y[k];
                }
                if (!relu) CHECK(sum > 0.999f && sum < 1.001f);
                CHECK_EQ(ints(out[1])[row], greatest);
            }
        }
    }
    if (pool == NULL) CHECK_EQ(runtime_info().allocations, before);
    for (int i = 0; i < COUNT; i++) weir_tensor_release(batches[i]);
    for (int i = 0; i < 2; i++) weir_tensor_release(out[i]), weir_tensor_release(which[i]);
    weir_program_release(program);
    weir_engine_release(engine);
}

static void test_product(void) {
    weir_engine *engine = make_engine(NULL);
    weir_tensor_desc open = matrix_desc(WEIR_DIM_DYNAMIC, WEIR_DIM_DYNAMIC), known = matrix_desc(8, 4);
    weir_graph *graph = make_graph("product");
    weir_kernel *matmul = NULL;
    weir_value in[2];
    CHECK_OK(weir_kernel_create_matmul(engine, NULL, NULL, &matmul));
    CHECK_OK(weir_graph_add_input(graph, "a", &open, &in[0]));
    CHECK_OK(weir_graph_add_input(graph, "b", &known, &in[1]));
    CHECK_OK(weir_graph_add_output(graph, "c", add(graph, "x", matmul, in, 2)));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_tensor *a = make_tensor(engine, matrix_desc(3, 8)), *odd = make_tensor(engine, matrix_desc(3, 9));
    weir_tensor *b = make_tensor(engine, known), *c = dynamic_tensor(engine, matrix_desc(WEIR_DIM_DYNAMIC, 4));
    for (int i = 0; i < 24; i++) floats(a)[i] = (float)(i % 5);
    for (int i = 0; i < 32; i++) floats(b)[i] = (float)(i % 3);
    for (int round = 0; round < 3; round++) {
        weir_tensor *good[2] = {a, b}, *bad[2] = {odd, b};
        CHECK_OK(weir_program_run(program, NULL, good, 2, &c, 1, NULL));
        CHECK_EQ(rows_of(c), 3);
        for (int i = 0; i < 3; i++) {
            for (int k = 0; k < 4; k++) {
                float sum = 0;
                for (int j = 0; j < 8; j++) sum += floats(a)[i * 8 + j] * floats(b)[j * 4 + k];
                CHECK(floats(c)[i * 4 + k] == sum);
            }
        }
        CHECK_CODE(weir_program_run(program, NULL, bad, 2, &c, 1, NULL), WEIR_INVALID_ARGUMENT,
                   "node 'x': input 1: expected f32[9,?], got f32[8,4]");
        CHECK_EQ(rows_of(c), 3);
    }
    weir_tensor_release(a);
    weir_tensor_release(b);
    weir_tensor_release(c);
    weir_tensor_release(odd);
    weir_program_release(program);
    weir_engine_release(engine);
}

static weir_tensor_desc image_desc(int64_t n, int64_t height, int64_t width) {
    weir_tensor_desc desc = make_desc(WEIR_F32, 4, n, 3, height);
    desc.dims[3] = width;
    return desc;
}

static weir_value add_constant(weir_graph *graph, weir_engine *engine, const char *name, weir_tensor_desc desc) {
    weir_tensor *tensor = make_tensor(engine, desc);
    weir_value value = 0;
    fill(tensor, 3);
    CHECK_OK(weir_graph_add_constant(graph, name, tensor, &value));
    weir_tensor_release(tensor);
    return value;
}

/* A convolution goes another way for images of another size; then its result twice, side by side, with a margin, in a
 * line for each channel. */
static weir_program *make_images(weir_engine *engine, weir_tensor_desc x) {
    weir_conv_desc same = {.struct_size = sizeof same, .padding_begin = {1, 1}, .padding_end = {1, 1}};
    weir_pooling_desc half = {.struct_size = sizeof half, .op = WEIR_POOLING_MAX, .kernel = {2, 2}, .strides = {2, 2}};
    weir_concat_desc side = {.struct_size = sizeof side, .num_inputs = 2, .axis = 3};
    weir_pad_desc margin = {.struct_size = sizeof margin, .rank = 4, .before = {0, 0, 1, 0}, .after = {0, 0, 0, 2}};
    weir_reshape_desc lines = {.struct_size = sizeof lines, .rank = 3};
    weir_kernel *conv = NULL, *pooling = NULL, *concat = NULL, *pad = NULL, *reshape = NULL;
    weir_graph *graph = make_graph("images");
    weir_tensor_desc wide = make_desc(WEIR_F32, 4, 32, 3, 3), deep = make_desc(WEIR_F32, 4, 40, 32, 3);
    weir_value in[2], both[2], y;
    wide.dims[3] = deep.dims[3] = 3;
    lines.dims[0] = lines.dims[1] = WEIR_RESHAPE_KEEP, lines.dims[2] = WEIR_RESHAPE_INFER;
    CHECK_OK(weir_kernel_create_conv(engine, &same, NULL, &conv));
    CHECK_OK(weir_kernel_create_pooling(engine, &half, NULL, &pooling));
    CHECK_OK(weir_kernel_create_concat(engine, &side, NULL, &concat));
    CHECK_OK(weir_kernel_create_pad(engine, &margin, NULL, &pad));
    CHECK_OK(weir_kernel_create_reshape(engine, &lines, NULL, &reshape));
    CHECK_OK(weir_graph_add_input(graph, "x", &x, &in[0]));
    in[1] = add_constant(graph, engine, "wide", wide);
    CHECK_OK(weir_graph_add_kernel(graph, "conv1", conv, in, 2, &in[0], 1, NULL));
    in[1] = add_constant(graph, engine, "deep", deep);
    both[0] = both[1] = add(graph, "conv2", conv, in, 2);
    both[0] = both[1] = add(graph, "half", pooling, both, 1);
    y = add(graph, "both", concat, both, 2);
    y = add(graph, "margin", pad, &y, 1);
    y = add(graph, "lines", reshape, &y, 1);
    CHECK_OK(weir_graph_add_output(graph, "lines", y));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

/* The two greatest elements of each row are doubled in their places; or else the image is. */
static weir_program *make_choice(weir_engine *engine) {
    weir_tensor_desc open = matrix_desc(WEIR_DIM_DYNAMIC, WEIR_DIM_DYNAMIC), one = ids_desc(1);
    weir_topk_desc two = {.struct_size = sizeof two, .axis = -1, .k = 2};
    weir_scatter_desc sum = {.struct_size = sizeof sum, .axis = -1, .reduction = WEIR_SCATTER_ADD};
    weir_resize_desc twice = {.struct_size = sizeof twice, .scales = {2, 2}};
    weir_kernel *topk = NULL, *gather = NULL, *scatter = NULL, *resize = NULL;
    weir_graph *best = make_graph("best"), *image = make_graph("image"), *graph = make_graph("choice");
    weir_value in[3], chosen[2], given[2], result = 0;
    CHECK_OK(weir_kernel_create_topk(engine, &two, NULL, &topk));
    CHECK_OK(weir_kernel_create_gather_elements(engine, NULL, NULL, &gather));
    CHECK_OK(weir_kernel_create_scatter(engine, &sum, NULL, &scatter));
    CHECK_OK(weir_kernel_create_resize(engine, &twice, NULL, &resize));
    CHECK_OK(weir_graph_add_input(best, "x", &open, &in[0]));
    CHECK_OK(weir_graph_add_kernel(best, "topk", topk, in, 1, chosen, 2, NULL));
    in[1] = chosen[1];
    in[2] = add(best, "gather", gather, in, 2);
    CHECK_OK(weir_graph_add_output(best, "y", add(best, "scatter", scatter, in, 3)));
    CHECK_OK(weir_graph_add_input(image, "x", &open, &in[0]));
    CHECK_OK(weir_graph_add_output(image, "y", add(image, "resize", resize, in, 1)));
    CHECK_OK(weir_graph_add_input(graph, "x", &open, &given[0]));
    CHECK_OK(weir_graph_add_input(graph, "which", &one, &given[1]));
    CHECK_OK(weir_graph_add_cond(graph, "cond", &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc),
        .predicate = given[1], .then_graph = best, .else_graph = image, .inputs = given, .num_inputs = 1}, &result, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", result));
    weir_program *program = compile(graph, engine);
    weir_kernel_release(topk);
    weir_graph_destroy(best);
    weir_graph_destroy(image);
    weir_graph_destroy(graph);
    return program;
}

static void test_images(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_program *program = make_images(engine, image_desc(WEIR_DIM_DYNAMIC, WEIR_DIM_DYNAMIC, WEIR_DIM_DYNAMIC));
    const int64_t sizes[][3] = {{1, 4, 6}, {2, 14, 13}, {0, 9, 9}, {3, 2, 2}, {1, 24, 20}, {5, 3, 6}};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    weir_tensor *in[COUNT], *want[COUNT];
    weir_tensor *out = dynamic_tensor(engine, make_desc(WEIR_F32, 3, WEIR_DIM_DYNAMIC, 40, WEIR_DIM_DYNAMIC));
    weir_tensor *none = make_tensor(engine, image_desc(2, 1, 9));
    for (int i = 0; i < COUNT; i++) {
        weir_tensor_desc x = image_desc(sizes[i][0], sizes[i][1], sizes[i][2]);
        int64_t line = (sizes[i][1] / 2 + 1) * (sizes[i][2] / 2 * 2 + 2);
        weir_program *known = make_images(engine, x);
        in[i] = make_tensor(engine, x);
        want[i] = make_tensor(engine, make_desc(WEIR_F32, 3, sizes[i][0], 40, line));
        fill(in[i], i);
        CHECK_OK(weir_program_run(known, NULL, &in[i], 1, &want[i], 1, NULL));
        weir_program_release(known);
    }
    uint64_t before = 0;
    for (int round = 0; round < 4; round++) {
        if (round == 2) before = runtime_info().allocations;
        for (int i = 0; i < COUNT; i++) {
            weir_tensor_desc desc, expected;
            CHECK_OK(weir_program_run(program, NULL, &in[i], 1, &out, 1, NULL));
            CHECK_OK(weir_tensor_get_desc(out, &desc));
            CHECK_OK(weir_tensor_get_desc(want[i], &expected));
            CHECK(memcmp(&desc, &expected, sizeof desc) == 0);
            CHECK(memcmp(floats(out), floats(want[i]), num_floats(out) * sizeof(float)) == 0);
        }
    }
    if (pool == NULL) CHECK_EQ(runtime_info().allocations, before);
    CHECK_CODE(weir_program_run(program, NULL, &none, 1, &out, 1, NULL), WEIR_INVALID_ARGUMENT,
               "node 'half': input 0: dimension 2 of f32[2,40,1,9] with a padding of 0 and 0 is shorter");
    for (int i = 0; i < COUNT; i++) weir_tensor_release(in[i]), weir_tensor_release(want[i]);
    weir_tensor_release(out);
    weir_tensor_release(none);
    weir_program_release(program);
    weir_engine_release(engine);
}

static void test_choice(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_program *program = make_choice(engine);
    weir_tensor *which = make_tensor(engine, ids_desc(1));
    weir_tensor *out = dynamic_tensor(engine, matrix_desc(WEIR_DIM_DYNAMIC, WEIR_DIM_DYNAMIC));
    static const int64_t sizes[][2] = {{3, 2}, {70, 90}, {0, 5}, {1, 9}};
    for (int i = 0; i < 8; i++) {
        int64_t rows = sizes[i / 2][0], columns = sizes[i / 2][1];
        weir_tensor *in[2] = {make_tensor(engine, matrix_desc(rows, columns)), which};
        const float *x = floats(in[0]);
        for (int64_t k = 0; k < rows * columns; k++) floats(in[0])[k] = (float)(k * 7919 % 1009) + 1;
        *ints(which) = i % 2;
        CHECK_OK(weir_program_run(program, NULL, in, 2, &out, 1, NULL));
        CHECK_EQ(rows_of(out), i % 2 ? rows : 2 * rows);
        const float *y = floats(out);
        for (int64_t k = 0; k < rows * columns * (i % 2 ? 1 : 4); k++) {
            int64_t row = k / columns, better = 0;
            if (i % 2 == 0) {
                row = k / (2 * columns) / 2;
                CHECK(y[k] == x[row * columns + k % (2 * columns) / 2]);
                continue;
            }
            for (int64_t j = row * columns; j < (row + 1) * columns; j++) better += x[j] > x[k] || (x[j] == x[k] && j < k);
            CHECK(y[k] == (better < 2 ? 2 * x[k] : x[k]));
        }
        weir_tensor_release(in[0]);
    }
    if (pool == NULL) {
        weir_tensor *in[2] = {make_tensor(engine, matrix_desc(4, 1)), which};
        *ints(which) = 1;
        CHECK_CODE(weir_program_run(program, NULL, in, 2, &out, 1, NULL), WEIR_INVALID_ARGUMENT,
                   "input 0: expected 2 to 2147483647 elements along axis 1, got f32[4,1]");
        weir_tensor_release(in[0]);
    }
    weir_tensor_release(which);
    weir_tensor_release(out);
    weir_program_release(program);
    weir_engine_release(engine);
}

static weir_tensor *number_of(weir_engine *engine, int64_t x) {
    weir_tensor *tensor = make_tensor(engine, make_desc(WEIR_S64, 1, 1, 0, 0));
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    *(int64_t *)data = x;
    return tensor;
}

/* The places of a sequence that is as long as the run says, once for each of three batches. */
static void test_places(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_tensor_desc one = make_desc(WEIR_S64, 1, 1, 0, 0), open = make_desc(WEIR_S64, 2, 3, WEIR_DIM_DYNAMIC, 0);
    weir_tile_desc batches = {.struct_size = sizeof batches, .rank = 2, .mode = WEIR_TILE_EXPAND, .counts = {3, -1}};
    static const int64_t cases[][4] = {{0, 5, 1, 5}, {7, -2, -4, 3}, {4, 4, 1, 0}, {5, 2, 1, 0}, {-10, 40000, 3, 13337},
                                       {INT64_MIN, INT64_MAX, INT64_MAX, 3}};
    weir_graph *graph = make_graph("places");
    weir_kernel *range = NULL, *tile = NULL;
    weir_value in[3], y;
    CHECK_OK(weir_kernel_create_range(engine, NULL, NULL, &range));
    CHECK_OK(weir_kernel_create_tile(engine, &batches, NULL, &tile));
    CHECK_OK(weir_graph_add_input(graph, "start", &one, &in[0]));
    CHECK_OK(weir_graph_add_input(graph, "limit", &one, &in[1]));
    CHECK_OK(weir_graph_add_input(graph, "step", &one, &in[2]));
    y = add(graph, "places", range, in, 3);
    CHECK_OK(weir_graph_add_output(graph, "all", add(graph, "tile", tile, &y, 1)));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_tensor *out = dynamic_tensor(engine, open);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t *of = cases[i], n = of[3];
        weir_tensor *given[3] = {number_of(engine, of[0]), number_of(engine, of[1]), number_of(engine, of[2])};
        weir_tensor_desc desc;
        void *data = NULL;
        CHECK_OK(weir_program_run(program, NULL, given, 3, &out, 1, NULL));
        CHECK_OK(weir_tensor_get_desc(out, &desc));
        CHECK_OK(weir_tensor_get_data(out, &data));
        CHECK(desc.dims[0] == 3 && desc.dims[1] == n);
        for (int64_t k = 0; k < 3 * n; k++) {
            CHECK(((const int64_t *)data)[k] == (int64_t)((uint64_t)of[0] + (uint64_t)(k % n) * (uint64_t)of[2]));
        }
        weir_tensor_release(given[2]);
        given[2] = number_of(engine, 0);
        CHECK_CODE(weir_program_run(program, NULL, given, 3, &out, 1, NULL), WEIR_OUT_OF_RANGE,
                   "node 'places': input 2: expected a step that is not 0, got 0");
        for (int k = 0; k < 3; k++) weir_tensor_release(given[k]);
    }
    weir_tensor_release(out);
    weir_program_release(program);
    weir_engine_release(engine);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_product();
    test_chooser(NULL);
    test_images(NULL);
    test_choice(NULL);
    test_places(NULL);
    for (int kind = 0; kind < POOL_KINDS; kind += is_slow() ? 5 : 1) {
        for (int threads = 1; threads <= 3; threads += 2) {
            weir_threadpool *pool = NULL;
            if (kind == POOL_LATE || (is_slow() && threads == 1)) continue;
            test_pool *of = test_pool_create((pool_kind)kind, threads, &pool);
            test_chooser(pool);
            test_images(pool);
            test_choice(pool);
            test_places(pool);
            weir_threadpool_release(pool);
            test_pool_destroy(of);
        }
    }
    check_released(&before);
    return 0;
}
