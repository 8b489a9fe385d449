/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Prepared calls: a kernel with its tensors on a stream, enqueued again and again; on all pools, on a device, by many
 * threads at once, with kernels that complete later, and on streams that have failed.
 */

#include <pthread.h>
#include <weir/inspect.h>
#include <weir/ops.h>

#include "detached.h"
#include "make.h"
#include "test_pools.h"
#include "weir/testing.h"

static weir_call *make_call(weir_stream *stream, weir_kernel *kernel, weir_tensor *const *inputs, size_t num_inputs,
                            weir_tensor *const *outputs, size_t num_outputs) {
    weir_call *call = NULL;
    CHECK_OK(weir_call_create(stream, kernel, inputs, num_inputs, outputs, num_outputs, &call));
    return call;
}

static weir_kernel *make_add(weir_engine *engine) {
    const weir_binary_desc plus = {.struct_size = sizeof plus, .op = WEIR_BINARY_ADD};
    weir_kernel *add = NULL;
    CHECK_OK(weir_kernel_create_binary(engine, &plus, NULL, &add));
    return add;
}

/* A product and a sum in place, turn by turn with other numbers: the bits of weir_enqueue with the same arguments. */
static void same_bits(weir_engine *engine, uint64_t stream_flags, weir_threadpool *of_stream) {
    enum { N = 33 };
    weir_stream *stream = make_stream(engine, stream_flags, of_stream, NULL);
    weir_kernel *matmul = NULL, *add = make_add(engine);
    CHECK_OK(weir_kernel_create_matmul(engine, NULL, NULL, &matmul));
    weir_tensor *a = make_tensor(engine, matrix_desc(N, N)), *b = make_tensor(engine, matrix_desc(N, N));
    weir_tensor *c = make_tensor(engine, matrix_desc(N, N)), *sum = make_tensor(engine, matrix_desc(N, N));
    weir_tensor *expected = make_tensor(engine, matrix_desc(N, N)), *total = make_tensor(engine, matrix_desc(N, N));
    weir_tensor *const factors[] = {a, b}, *const summands[] = {sum, c}, *const wanted[] = {total, expected};
    weir_call *product = make_call(stream, matmul, factors, 2, &c, 1);
    weir_call *growing = make_call(stream, add, summands, 2, &sum, 1);
    memset(floats(sum), 0, sizeof(float) * N * N);
    memset(floats(total), 0, sizeof(float) * N * N);
    for (int turn = 0; turn < 5; turn++) {
        fill(a, turn), fill(b, 7 * turn + 1);
        CHECK_OK(weir_call_enqueue(product));
        CHECK_OK(weir_call_enqueue(growing));
        CHECK_OK(weir_call_enqueue(product)); /* again before the first is done */
        CHECK_OK(weir_call_enqueue(growing));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK_OK(weir_enqueue(stream, matmul, factors, 2, &expected, 1));
        CHECK_OK(weir_enqueue(stream, add, wanted, 2, &total, 1));
        CHECK_OK(weir_enqueue(stream, add, wanted, 2, &total, 1));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
        CHECK(memcmp(floats(c), floats(expected), sizeof(float) * N * N) == 0);
        CHECK(memcmp(floats(sum), floats(total), sizeof(float) * N * N) == 0);
    }
    weir_tensor *all[] = {a, b, c, sum, expected, total};
    for (int i = 0; i < 6; i++) weir_tensor_release(all[i]);
    weir_call_release(product);
    weir_call_release(growing);
    weir_kernel_release(matmul);
    weir_kernel_release(add);
    weir_stream_release(stream);
}

static void on_all_pools(void) {
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        weir_threadpool *pool = NULL, *of_stream = NULL;
        test_pool *threads = test_pool_create((pool_kind)kind, 2, &pool);
        test_pool *others = test_pool_create(POOL_FIFO, 1, &of_stream);
        test_pool_let_go(threads);
        weir_engine *engine = make_engine(pool);
        same_bits(engine, WEIR_STREAM_DEFAULT, NULL);
        same_bits(engine, WEIR_STREAM_ASYNCHRONOUS, NULL);
        same_bits(engine, WEIR_STREAM_DEFAULT, of_stream);
        same_bits(engine, WEIR_STREAM_ASYNCHRONOUS, of_stream);
        weir_engine_release(engine);
        weir_threadpool_release(pool);
        weir_threadpool_release(of_stream);
        test_pool_destroy(threads);
        test_pool_destroy(others);
    }
}

/* On a device, whose memory the host sees through copies. */
static void on_a_device(void) {
    const weir_tensor_desc four = vector_desc(4);
    weir_engine *device = NULL, *cpu = make_engine(NULL);
    weir_stream *stream = NULL;
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, NULL, &device));
    CHECK_OK(weir_stream_create(device, 0, NULL, &stream));
    weir_tensor *x = make_tensor(device, four), *sum = make_tensor(device, four), *here = make_tensor(cpu, four);
    weir_tensor *const summands[] = {sum, x};
    weir_kernel *add = make_add(device);
    weir_call *call = make_call(stream, add, summands, 2, &sum, 1), *none = NULL;
    CHECK_OK(weir_enqueue_fill(stream, sum, 0));
    for (int turn = 1; turn <= 20; turn++) {
        for (int i = 0; i < 4; i++) floats(here)[i] = (float)(turn + i);
        CHECK_OK(weir_enqueue_copy(stream, here, x));
        CHECK_OK(weir_call_enqueue(call));
        CHECK_OK(weir_call_enqueue(call));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    }
    CHECK_OK(weir_enqueue_copy(stream, sum, here));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    for (int i = 0; i < 4; i++) CHECK(floats(here)[i] == (float)(2 * (210 + 20 * i)));
    CHECK_CODE(weir_call_create(stream, add, (weir_tensor *[]){sum, here}, 2, &sum, 1, &none), WEIR_INVALID_ARGUMENT,
               "input 1 is in the memory of engine cpu");
    CHECK(none == NULL);
    weir_call_release(call);
    weir_kernel_release(add);
    weir_tensor_release(x);
    weir_tensor_release(sum);
    weir_tensor_release(here);
    weir_stream_release(stream);
    weir_engine_release(device);
    weir_engine_release(cpu);
}

enum { CALLERS = 4, TURNS = 500 };

static void *call_often(void *call) {
    for (int i = 0; i < TURNS; i++) CHECK_OK(weir_call_enqueue(call));
    return NULL;
}

/* Turns of many threads come one after another, and each finds what the one before has stored. */
static void many_callers(uint64_t stream_flags) {
    weir_threadpool *pool = NULL;
    test_pool *threads = test_pool_create(POOL_FULL, 2, &pool);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, stream_flags, NULL, NULL);
    weir_kernel *add = make_add(engine);
    weir_tensor *one = make_tensor(engine, vector_desc(100)), *sum = make_tensor(engine, vector_desc(100));
    weir_call *call = make_call(stream, add, (weir_tensor *[]){sum, one}, 2, &sum, 1);
    for (int i = 0; i < 100; i++) floats(one)[i] = 1, floats(sum)[i] = 0;
    pthread_t callers[CALLERS];
    for (int i = 0; i < CALLERS; i++) CHECK_EQ(pthread_create(&callers[i], NULL, call_often, call), 0);
    for (int i = 0; i < CALLERS; i++) CHECK_EQ(pthread_join(callers[i], NULL), 0);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    for (int i = 0; i < 100; i++) CHECK(floats(sum)[i] == CALLERS * TURNS);
    weir_call_release(call);
    weir_tensor_release(one);
    weir_tensor_release(sum);
    weir_kernel_release(add);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(threads);
}

/* The call keeps all that it needs, and queued turns keep it too; a turn asks for no memory. */
static void keeps_its_own(void) {
    float numbers[4] = {1, 2, 3, 4};
    const weir_tensor_desc four = vector_desc(4);
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_kernel *add = make_add(engine);
    weir_tensor *x = NULL;
    CHECK_OK(weir_tensor_create(engine, &four, OVER(numbers), &x));
    weir_call *call = make_call(stream, add, (weir_tensor *[]){x, x}, 2, &x, 1);
    weir_tensor_release(x);
    weir_kernel_release(add);
    weir_stream_release(stream);
    weir_engine_release(engine);
    CHECK_EQ(runtime_info().calls, 1);
    CHECK_OK(weir_call_enqueue(call));
    const uint64_t allocations = runtime_info().allocations;
    CHECK_OK(weir_call_enqueue(call));
    CHECK_EQ(runtime_info().allocations, allocations);
    CHECK(numbers[0] == 4 && numbers[3] == 16);
    CHECK_OK(weir_call_retain(call));
    weir_call_release(call);
    CHECK_OK(weir_call_enqueue(call));
    CHECK(numbers[0] == 8);
    weir_call_release(call);
    weir_call_release(NULL);
}

static void *complete(void *arg) {
    sleep_ns(200000);
    CHECK_OK(weir_completion_done(arg, WEIR_OK, NULL));
    return NULL;
}

static int32_t add_one_later(void *user, weir_kernel_context *context, weir_completion *done) {
    const weir_tensor_view *out = NULL;
    size_t count = 0;
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    *(float *)out->data = (float)(atomic_fetch_add((atomic_int *)user, 1) + 1);
    CHECK_EQ(start_detached(complete, done), 0);
    return WEIR_OK;
}

static void completing_later(uint64_t stream_flags) {
    const weir_tensor_desc single = vector_desc(1);
    atomic_int turns = 0;
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, stream_flags, NULL, NULL);
    weir_kernel *later = NULL;
    const weir_host_kernel_desc desc = {.struct_size = sizeof desc, .name = "later", .compute_async = add_one_later,
                                        .user = &turns, .num_outputs = 1, .outputs = &single};
    CHECK_OK(weir_kernel_create_host(engine, &desc, &later));
    weir_tensor *y = make_tensor(engine, single);
    weir_call *call = make_call(stream, later, NULL, 0, &y, 1);
    for (int i = 0; i < 10; i++) CHECK_OK(weir_call_enqueue(call));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK(floats(y)[0] == 10);
    weir_call_release(call);
    weir_tensor_release(y);
    weir_kernel_release(later);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

static int32_t fail_third(void *user, weir_kernel_context *context) {
    (void)context;
    return atomic_fetch_add((atomic_int *)user, 1) == 2 ? WEIR_DATA_LOSS : WEIR_OK;
}

/* A failure is the turn's on a synchronous stream, and the stream's on an asynchronous one. */
static void failing(uint64_t stream_flags) {
    atomic_int turns = 0;
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, stream_flags, NULL, "failing");
    const weir_host_kernel_desc desc = make_kernel_desc("third", fail_third, &turns);
    weir_kernel *third = NULL;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &third));
    weir_call *call = make_call(stream, third, NULL, 0, NULL, 0);
    CHECK_OK(weir_call_enqueue(call));
    CHECK_OK(weir_call_enqueue(call));
    if (stream_flags == WEIR_STREAM_DEFAULT) {
        CHECK_CODE(weir_call_enqueue(call), WEIR_DATA_LOSS, "weir_call_enqueue: stream 'failing': kernel 'third'");
    } else {
        CHECK_OK(weir_call_enqueue(call));
        CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_DATA_LOSS, "kernel 'third'");
        CHECK_CODE(weir_call_enqueue(call), WEIR_FAILED_PRECONDITION, "stream 'failing' has failed");
        CHECK_OK(weir_stream_clear_error(stream));
    }
    CHECK_OK(weir_call_enqueue(call));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK_EQ(atomic_load(&turns), 4);
    weir_call_release(call);
    weir_kernel_release(third);
    weir_stream_release(stream);
    weir_status status = weir_engine_synchronize(engine, WEIR_TIMEOUT_INFINITE);
    CHECK(status == WEIR_OK || status == WEIR_DATA_LOSS);
    weir_engine_release(engine);
}

int main(void) {
    CHECK_OK(weir_emulated_register());
    const weir_runtime_info before = runtime_info();
    on_all_pools();
    on_a_device();
    keeps_its_own();
    for (uint64_t flags = WEIR_STREAM_DEFAULT; flags <= WEIR_STREAM_ASYNCHRONOUS; flags++) {
        many_callers(flags);
        completing_later(flags);
        failing(flags);
    }
    check_released(&before);
    return 0;
}
