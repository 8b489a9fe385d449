/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The kernel cache as a host meets it: the counters, the bound, capacity 0, many threads, tasks of a pool of one
 * thread, and what is left when the engine is released. With an argument: that text is what creating a kernel says.
 */

#include <pthread.h>
#include <weir/memory.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

static weir_kernel_cache_info cache(void) {
    weir_kernel_cache_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_kernel_cache_get_info(&info));
    return info;
}

static weir_runtime_info runtime(void) {
    weir_runtime_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_runtime_get_info(&info));
    return info;
}

/* What has happened since `before`. */
#define CHECK_SINCE(before, h, m, e)                                                                                   \
    do {                                                                                                               \
        weir_kernel_cache_info now = cache();                                                                          \
        CHECK_EQ(now.hits - (before).hits, (h));                                                                       \
        CHECK_EQ(now.misses - (before).misses, (m));                                                                   \
        CHECK_EQ(now.evictions - (before).evictions, (e));                                                             \
    } while (0)

static weir_kernel *eltwise(weir_engine *engine, weir_eltwise_op op, float alpha) {
    weir_eltwise_desc desc = {.struct_size = sizeof desc, .op = op, .alpha = alpha};
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_eltwise(engine, &desc, NULL, &kernel));
    return kernel;
}

/* Whether the kernel gives what leaky relu gives. */
static void check_leaky(weir_engine *engine, weir_kernel *kernel, float alpha) {
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_tensor *x = make_tensor(engine, vector_desc(3)), *y = make_tensor(engine, vector_desc(3));
    memcpy(floats(x), (float[]){-2, 0, 3}, 3 * sizeof(float));
    CHECK_OK(weir_enqueue(stream, kernel, &x, 1, &y, 1));
    CHECK(floats(y)[0] == -2 * alpha && floats(y)[1] == 0 && floats(y)[2] == 3);
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_stream_release(stream);
}

static const char *name_of(const weir_kernel *kernel) {
    static weir_kernel_info info;
    info.struct_size = sizeof info;
    CHECK_OK(weir_kernel_get_info(kernel, &info));
    return info.name;
}

/* Each creation gives a handle of its own, with its own name; what is inside is made once. */
static void test_counters(void) {
    weir_engine *engine = make_engine(NULL);
    weir_kernel *named = NULL;
    weir_eltwise_desc desc = {.struct_size = sizeof desc, .op = WEIR_ELTWISE_RELU, .alpha = 0.5f};
    weir_kernel_cache_info before = cache();
    uint64_t kernels = runtime().kernels;
    CHECK_EQ(before.capacity, 1024);
    CHECK_EQ(before.entries, 0);
    weir_kernel *one = eltwise(engine, WEIR_ELTWISE_RELU, 0.5f), *two = eltwise(engine, WEIR_ELTWISE_RELU, 0.5f);
    CHECK(one != two);
    CHECK_SINCE(before, 1, 1, 0);
    const weir_kernel_options options = {.struct_size = sizeof options, .name = "leaky", .cost_ns = 1000};
    CHECK_OK(weir_kernel_create_eltwise(engine, &desc, &options, &named));
    CHECK_SINCE(before, 2, 1, 0);
    CHECK_EQ(runtime().kernels - kernels, 3);
    CHECK(strcmp(name_of(named), "leaky") == 0 && strcmp(name_of(one), "relu") == 0);
    /* The one that is let go takes nothing from the others. */
    weir_kernel_release(one);
    weir_kernel_release(named);
    check_leaky(engine, two, 0.5f);
    weir_kernel_release(two);
    CHECK_EQ(runtime().kernels, kernels);
    CHECK_EQ(cache().entries, 1);
    weir_kernel *again = eltwise(engine, WEIR_ELTWISE_RELU, 0.5f);
    CHECK_SINCE(before, 3, 1, 0);
    check_leaky(engine, again, 0.5f);
    weir_kernel_release(again);
    weir_engine_release(engine);
}

static weir_status compute_nothing(void *user, weir_kernel_context *context) {
    (void)user, (void)context;
    return WEIR_OK;
}

/* What is not the same is not taken for it, and what is the same is found however it is said. */
static void test_exact(void) {
    weir_engine *engine = make_engine(NULL);
    weir_kernel_cache_info before = cache();
    weir_kernel *kernels[16];
    weir_tensor_desc like = vector_desc(4);
    int n = 0;
    kernels[n++] = eltwise(engine, WEIR_ELTWISE_RELU, 0.0f);
    kernels[n++] = eltwise(engine, WEIR_ELTWISE_RELU, -0.0f);
    kernels[n++] = eltwise(engine, WEIR_ELTWISE_RELU, 1e-45f);
    kernels[n++] = eltwise(engine, WEIR_ELTWISE_ELU, 0.0f);
    CHECK_SINCE(before, 0, 4, 0);

    /* A description of zeros is that of none. */
    weir_matmul_desc matmul = {.struct_size = sizeof matmul};
    CHECK_OK(weir_kernel_create_matmul(engine, NULL, NULL, &kernels[n++]));
    CHECK_OK(weir_kernel_create_matmul(engine, &matmul, NULL, &kernels[n++]));
    matmul.activation = WEIR_ACTIVATION_RELU;
    CHECK_OK(weir_kernel_create_matmul(engine, &matmul, NULL, &kernels[n++]));
    CHECK_SINCE(before, 1, 6, 0);

    /* Garbage behind the rank says nothing. */
    weir_slice_desc slice = {.struct_size = sizeof slice, .rank = 1};
    slice.end[0] = slice.step[0] = 1;
    CHECK_OK(weir_kernel_create_slice(engine, &slice, NULL, &kernels[n++]));
    slice.begin[1] = slice.end[7] = slice.step[4] = 77;
    CHECK_OK(weir_kernel_create_slice(engine, &slice, NULL, &kernels[n++]));
    CHECK_SINCE(before, 2, 7, 0);

    /* What is refused is not noted; kernels of the host are not in the cache. */
    weir_eltwise_desc wrong = {.struct_size = sizeof wrong, .op = 4711};
    weir_kernel *none = NULL;
    for (int i = 0; i < 2; i++) {
        CHECK_CODE(weir_kernel_create_eltwise(engine, &wrong, NULL, &none), WEIR_INVALID_ARGUMENT, "desc->op is 4711");
    }
    kernels[n++] = make_unary_kernel(engine, "host", compute_nothing, NULL, &like);
    kernels[n++] = make_unary_kernel(engine, "host", compute_nothing, NULL, &like);
    CHECK_SINCE(before, 2, 7, 0);
    CHECK_EQ(cache().entries, 7);
    while (n > 0) weir_kernel_release(kernels[--n]);
    weir_engine_release(engine);
}

static void test_capacity(void) {
    weir_engine *engine = make_engine(NULL);
    weir_kernel_cache_info before = cache();
    CHECK_OK(weir_kernel_cache_set_capacity(2));
    CHECK_EQ(cache().capacity, 2);
    /* 3 makes room by 2, as 1 was used after it. A kernel that is pushed out lives on where it is used. */
    weir_kernel *one = eltwise(engine, WEIR_ELTWISE_RELU, 1), *two = eltwise(engine, WEIR_ELTWISE_RELU, 2);
    weir_kernel_release(eltwise(engine, WEIR_ELTWISE_RELU, 1));
    weir_kernel_release(eltwise(engine, WEIR_ELTWISE_RELU, 3));
    CHECK_SINCE(before, 1, 3, 1);
    weir_kernel_release(eltwise(engine, WEIR_ELTWISE_RELU, 1));
    CHECK_SINCE(before, 2, 3, 1);
    weir_kernel_release(eltwise(engine, WEIR_ELTWISE_RELU, 2));
    CHECK_SINCE(before, 2, 4, 2);
    check_leaky(engine, two, 2);
    CHECK_EQ(cache().entries, 2);
    /* Without a cache. */
    CHECK_OK(weir_kernel_cache_set_capacity(0));
    CHECK_EQ(cache().entries, 0);
    CHECK_SINCE(before, 2, 4, 4);
    for (int i = 0; i < 3; i++) weir_kernel_release(eltwise(engine, WEIR_ELTWISE_RELU, 1));
    CHECK_SINCE(before, 2, 4, 4);
    check_leaky(engine, one, 1);
    CHECK_CODE(weir_kernel_cache_set_capacity(SIZE_MAX), WEIR_OUT_OF_RANGE, "expected 0 to 1048576");
    CHECK_EQ(cache().capacity, 0);
    CHECK_OK(weir_kernel_cache_set_capacity(1024));
    weir_kernel_release(one);
    weir_kernel_release(two);
    weir_engine_release(engine);
}

/* Threads that create kernels at once, and run them. */
typedef struct user {
    weir_engine *engine;
    int index, rounds;
} user;

static void *create_and_run(void *arg) {
    const user *u = arg;
    for (int i = 0; i < u->rounds; i++) {
        float alpha = (float)((i * 7 + u->index) % 12);
        weir_kernel *kernel = eltwise(u->engine, WEIR_ELTWISE_RELU, alpha);
        check_leaky(u->engine, kernel, alpha);
        weir_kernel_release(kernel);
        if (u->index == 0 && i % 50 == 0) CHECK_OK(weir_kernel_cache_set_capacity(3 + (size_t)(i / 50) % 12));
    }
    return NULL;
}

static void test_threads(void) {
    enum { THREADS = 4 };
    int rounds = scale(600);
    pthread_t threads[THREADS];
    user users[THREADS];
    weir_engine *engine = make_engine(NULL);
    weir_kernel_cache_info before = cache();
    for (int i = 0; i < THREADS; i++) {
        users[i] = (user){engine, i, rounds};
        CHECK_EQ(pthread_create(&threads[i], NULL, create_and_run, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    weir_kernel_cache_info after = cache();
    CHECK_EQ(after.hits + after.misses + after.shared_builds - before.hits - before.misses - before.shared_builds,
             (uint64_t)THREADS * (uint64_t)rounds);
    CHECK(after.entries <= after.capacity);
    CHECK_OK(weir_kernel_cache_set_capacity(1024));
    weir_engine_release(engine);
}

/* Tasks of a pool of one thread, and a thread of the host's beside it, create the same kernels. */
typedef struct task {
    weir_engine *engine;
    atomic_int left;
} task;

static weir_status create_in_task(void *arg) {
    task *t = arg;
    for (int i = 0; i < 20; i++) weir_kernel_release(eltwise(t->engine, WEIR_ELTWISE_ELU, (float)(i % 5)));
    atomic_fetch_sub(&t->left, 1);
    return WEIR_OK;
}

static int32_t create_in_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    task *t = arg;
    (void)slot;
    for (int64_t i = begin; i < end; i++) weir_kernel_release(eltwise(t->engine, WEIR_ELTWISE_ELU, (float)(i % 5)));
    return WEIR_OK;
}

static void test_in_tasks(void) {
    enum { TASKS = 50 };
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_exact(POOL_FIFO, 1, &pool);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "creates");
    task t = {.engine = engine};
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 1000000};
    weir_kernel_cache_info before = cache();
    atomic_store(&t.left, TASKS + 1);
    for (int i = 0; i < TASKS; i++) CHECK_OK(weir_enqueue_task(stream, create_in_task, &t, NULL));
    CHECK_OK(create_in_task(&t));
    CHECK_OK(weir_parallel_for(pool, 1000, &hint, create_in_range, &t));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&t.left), 0);
    weir_kernel_cache_info after = cache();
    CHECK_EQ(after.hits + after.misses + after.shared_builds - before.hits - before.misses - before.shared_builds,
             20 * (TASKS + 1) + 1000);
    CHECK_EQ(after.entries, 5);
    weir_stream_release(stream);
    /* The kernels in the cache keep neither the engine nor its pool. */
    uint64_t engines = runtime().engines, pools = runtime().threadpools;
    weir_engine *other = make_engine(NULL);
    weir_engine_release(engine);
    EVENTUALLY(runtime().engines == engines);
    weir_threadpool_release(pool);
    EVENTUALLY(runtime().threadpools == pools - 1); /* its thread may still be leaving the last task */
    test_pool_destroy(host);
    /* Another engine of the same device finds them. */
    CHECK_EQ(cache().entries, 5);
    after = cache();
    weir_kernel_release(eltwise(other, WEIR_ELTWISE_ELU, 3));
    CHECK_SINCE(after, 1, 0, 0);
    weir_engine_release(other);
    CHECK_EQ(cache().entries, 0);
}

/* Nothing is left when the last engine is gone, and packed weights do not wait for that. */
static void test_left_over(void) {
    enum { SIDE = 256 };
    for (int round = 0; round < 3; round++) {
        uint64_t bytes = runtime().bytes_in_use;
        weir_engine *engine = make_engine(NULL);
        for (int i = 0; i < 300; i++) weir_kernel_release(eltwise(engine, WEIR_ELTWISE_SWISH, (float)i));
        CHECK_EQ(cache().entries, 300);
        uint64_t with_kernels = runtime().bytes_in_use;

        weir_tensor *b = make_tensor(engine, matrix_desc(SIDE, SIDE));
        weir_packed_weights *weights[2] = {NULL, NULL};
        weir_kernel_cache_info before = cache();
        for (int i = 0; i < 2; i++) CHECK_OK(weir_packed_weights_create(engine, b, NULL, &weights[i]));
        weir_matmul_desc desc = {.struct_size = sizeof desc};
        weir_kernel *kernels[3];
        for (int i = 0; i < 3; i++) {
            desc.weights = weights[i % 2];
            CHECK_OK(weir_kernel_create_matmul(engine, &desc, NULL, &kernels[i]));
        }
        CHECK_SINCE(before, 1, 2, 0); /* by identity: the two look alike */
        weir_tensor_release(b);
        CHECK_OK(weir_engine_trim(engine, 0)); /* what the tensor was in */
        for (int i = 0; i < 2; i++) weir_packed_weights_release(weights[i]);
        CHECK(runtime().bytes_in_use >= with_kernels + 2 * SIDE * SIDE * sizeof(float));
        for (int i = 0; i < 3; i++) weir_kernel_release(kernels[i]);
        CHECK(runtime().bytes_in_use < with_kernels + SIDE * SIDE);

        weir_engine_release(engine);
        CHECK_EQ(cache().entries, 0);
        if (round > 0) CHECK_EQ(runtime().bytes_in_use, bytes);
    }
}

/* Every family makes its kernel once. */
static void test_families(void) {
    weir_engine *engine = make_engine(NULL);
    weir_kernel *kernel = NULL;
    weir_kernel_cache_info before = cache();
    int families = 0;
#define FAMILY(family, ...)                                                                                            \
    do {                                                                                                               \
        weir_##family##_desc desc = {.struct_size = sizeof desc, __VA_ARGS__};                                         \
        for (int i = 0; i < 2; i++) {                                                                                  \
            CHECK_OK(weir_kernel_create_##family(engine, &desc, NULL, &kernel));                                       \
            weir_kernel_release(kernel);                                                                               \
        }                                                                                                              \
        families++;                                                                                                    \
        CHECK_SINCE(before, families, families, 0);                                                                    \
    } while (0)
    FAMILY(select, );
    FAMILY(softmax, .axis = 1);
    FAMILY(matmul, .flags = WEIR_MATMUL_BIAS);
    FAMILY(matmul_int8, .zero_a = 3);
    FAMILY(eltwise, .op = WEIR_ELTWISE_TANH);
    FAMILY(binary, .op = WEIR_BINARY_SUB);
    FAMILY(convert, .dtype = WEIR_S8, .scale = 2);
    FAMILY(quantize, .dtype = WEIR_S8);
    FAMILY(quantize, .dtype = WEIR_F32, .flags = WEIR_QUANTIZE_DEQUANTIZE);
    FAMILY(transpose, .rank = 2, .permutation = {1, 0});
    FAMILY(concat, .num_inputs = 3);
    FAMILY(slice, .rank = 8, .step = {1, 1, 1, 1, 1, 1, 1, 1});
    FAMILY(pad, .rank = 8, .before = {1}, .mode = WEIR_PAD_EDGE);
    FAMILY(reshape, .rank = 1, .dims = {-1});
    FAMILY(gather, .axis = 1);
    FAMILY(gather_elements, .axis = 1);
    FAMILY(gather_nd, .batch_dims = 1);
    FAMILY(scatter, .mode = WEIR_SCATTER_ND);
    FAMILY(one_hot, .depth = 3);
    FAMILY(reduce, .op = WEIR_REDUCE_MEAN, .num_axes = 1);
    FAMILY(norm, .op = WEIR_NORM_LAYER, .axis = -1);
    FAMILY(lrn, .size = 5);
    FAMILY(cumsum, .axis = 1);
    FAMILY(topk, .k = 3);
    FAMILY(nms, .most_boxes = 3);
    FAMILY(nonzero, .flags = WEIR_NONZERO_EXACT);
    FAMILY(shape, );
    FAMILY(range, );
    FAMILY(tile, .rank = 2, .mode = WEIR_TILE_EXPAND, .counts = {4, -1});
    FAMILY(conv, .strides = {2, 2});
    FAMILY(conv_int8, .strides = {2, 2});
    FAMILY(conv_transpose, .strides = {2, 2});
    FAMILY(pooling, .op = WEIR_POOLING_MAX, .flags = WEIR_POOLING_GLOBAL);
    FAMILY(resize, .scales = {2, 2});
    FAMILY(grid_sample, .mode = WEIR_RESIZE_LINEAR);
    FAMILY(lstm, .flags = WEIR_LSTM_BIAS);
    FAMILY(gru, .flags = WEIR_GRU_BIAS);
    FAMILY(lstm_sequence, .flags = WEIR_LSTM_SEQUENCE_BIAS);
    FAMILY(gru_sequence, .flags = WEIR_GRU_SEQUENCE_BIAS);
    CHECK_EQ(cache().entries, families);
    weir_engine_release(engine);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        weir_engine *engine = make_engine(NULL);
        weir_kernel *kernel = NULL;
        weir_kernel_cache_info info = {.struct_size = sizeof info};
        CHECK_CODE(weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &kernel), WEIR_INVALID_ARGUMENT, argv[1]);
        CHECK_CODE(weir_kernel_cache_get_info(&info), WEIR_INVALID_ARGUMENT, argv[1]);
        CHECK_OK(weir_kernel_cache_set_capacity(1)); /* counts before it */
        CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &kernel));
        weir_kernel_release(kernel);
        weir_engine_release(engine);
        return 0;
    }
    const char *variable = getenv("WEIR_KERNEL_CACHE_CAPACITY");
    if (variable != NULL) {
        CHECK_EQ(cache().capacity, atoi(variable));
        CHECK_OK(weir_kernel_cache_set_capacity(1024));
    }
    test_counters();
    test_exact();
    test_capacity();
    test_threads();
    test_in_tasks();
    test_left_over();
    test_families();
    printf("hits %llu, misses %llu, shared %llu, evictions %llu\n", (unsigned long long)cache().hits,
           (unsigned long long)cache().misses, (unsigned long long)cache().shared_builds,
           (unsigned long long)cache().evictions);
    return 0;
}
