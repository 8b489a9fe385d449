/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Batches of a size that only a run knows, through kernels of weir's and a merge; and what is said of those that do not
 * fit.
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

static void test_choice(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_program *program = make_choice(engine);
    weir_tensor *which = make_tensor(engine, ids_desc(1));
    weir_tensor *out = dynamic_tensor(engine, matrix_desc(WEIR_DIM_DYNAMIC, WEIR_DIM_DYNAMIC));
    static const int64_t sizes[][2] = {{3, 2}, {70, 300}, {0, 5}, {1, 9}};
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

int main(void) {
    weir_runtime_info before = runtime_info();
    test_product();
    test_chooser(NULL);
    test_choice(NULL);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            weir_threadpool *pool = NULL;
            if (kind == POOL_LATE) continue;
            test_pool *of = test_pool_create((pool_kind)kind, threads, &pool);
            test_chooser(pool);
            test_choice(pool);
            weir_threadpool_release(pool);
            test_pool_destroy(of);
        }
    }
    check_released(&before);
    return 0;
}
