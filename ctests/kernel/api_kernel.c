/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Host kernels: what their context gives them, how they fail, and what is checked before they run.
 */

#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

/* y = 2x, in a region, by way of each slot's scratch memory. */
enum { SCRATCH_BYTES = 200 };

typedef struct doubling {
    weir_kernel_context *context;
    const float *x;
    float *y;
    int32_t num_slots;
} doubling;

static int32_t double_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    doubling *d = arg;
    void *scratch = NULL;
    CHECK(slot >= 0 && slot < d->num_slots);
    CHECK_OK(weir_kernel_context_get_scratch(d->context, slot, &scratch));
    CHECK(scratch != NULL && (uintptr_t)scratch % 64 == 0);
    for (int64_t i = begin; i < end; i++) {
        memset(scratch, (int)i & 0xff, SCRATCH_BYTES);
        if (i % 8 == 0) sleep_ns(1000);
        for (int b = 0; b < SCRATCH_BYTES; b++) CHECK_EQ(((unsigned char *)scratch)[b], i & 0xff);
        d->y[i] = 2 * d->x[i];
    }
    return WEIR_OK;
}

static int32_t double_compute(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 50000};
    doubling d = {.context = context};
    void *beyond = user;
    int32_t cancelled = -1;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    CHECK(num_in == 1 && num_out == 1 && in->desc.rank == 1 && out->desc.dims[0] == in->desc.dims[0]);
    CHECK_EQ(in->bytes, (size_t)in->desc.dims[0] * sizeof(float));
    CHECK_OK(weir_kernel_context_get_num_slots(context, &d.num_slots));
    CHECK(d.num_slots >= 1);
    CHECK_OK(weir_kernel_context_is_cancelled(context, &cancelled));
    CHECK_EQ(cancelled, 0);
    CHECK_CODE(weir_kernel_context_get_scratch(context, d.num_slots, &beyond), WEIR_OUT_OF_RANGE, "slot");
    CHECK(beyond == NULL);
    CHECK_CODE(weir_kernel_context_get_scratch(context, -1, &beyond), WEIR_OUT_OF_RANGE, "slot");
    d.x = in->data;
    d.y = out->data;
    atomic_fetch_add((atomic_int *)user, 1);
    return weir_kernel_context_parallel_for(context, in->desc.dims[0], &hint, double_range, &d);
}

static void test_context(void) {
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        weir_threadpool *pool = NULL;
        test_pool *host = test_pool_create((pool_kind)kind, 3, &pool);
        weir_engine *engine = make_engine(pool);
        weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
        weir_tensor_desc any = vector_desc(-1);
        weir_tensor *x = make_tensor(engine, vector_desc(500)), *y = make_tensor(engine, vector_desc(500));
        atomic_int runs = 0;
        weir_host_kernel_desc desc = make_kernel_desc("double", double_compute, &runs);
        weir_tensor_desc made = vector_desc(500);
        weir_kernel *kernel = NULL;
        desc.num_inputs = desc.num_outputs = 1;
        desc.inputs = &any;
        desc.outputs = &made;
        desc.scratch_bytes = SCRATCH_BYTES;
        CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
        fill(x, kind);
        for (int round = 0; round < scale(40); round++) {
            memset(floats(y), 0, 500 * sizeof(float));
            CHECK_OK(weir_enqueue(stream, kernel, &x, 1, &y, 1));
            for (int i = 0; i < 500; i++) CHECK(floats(y)[i] == 2 * floats(x)[i]);
        }
        CHECK_EQ(atomic_load(&runs), scale(40));
        weir_kernel_release(kernel);
        weir_tensor_release(x);
        weir_tensor_release(y);
        weir_stream_release(stream);
        weir_engine_release(engine);
        test_pool_let_go(host);
        weir_threadpool_release(pool);
        test_pool_destroy(host);
    }
}

static int32_t no_scratch_compute(void *user, weir_kernel_context *context) {
    void *scratch = user;
    (void)user;
    CHECK_OK(weir_kernel_context_get_scratch(context, 0, &scratch));
    CHECK(scratch == NULL);
    return WEIR_OK;
}

/* How a kernel can fail. */
typedef enum failure { FAIL_BY_STATUS, FAIL_BY_STRANGE_STATUS, FAIL_WITH_TEXT, FAIL_IN_REGION, FAIL_TWICE } failure;

static int32_t failing_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)begin, (void)end, (void)slot;
    CHECK_OK(weir_kernel_context_fail(arg, WEIR_DATA_LOSS, "checksum of row 3 is wrong"));
    return WEIR_DATA_LOSS;
}

static int32_t failing_compute(void *user, weir_kernel_context *context) {
    switch (*(failure *)user) {
    case FAIL_BY_STATUS:
        return WEIR_NOT_FOUND;
    case FAIL_BY_STRANGE_STATUS:
        return 4711;
    case FAIL_WITH_TEXT:
        CHECK_OK(weir_kernel_context_fail(context, WEIR_PERMISSION_DENIED, "the key is missing: ключ"));
        return WEIR_OK; /* it has failed all the same */
    case FAIL_IN_REGION:
        return weir_kernel_context_parallel_for(context, 10, NULL, failing_range, context);
    case FAIL_TWICE:
        CHECK_OK(weir_kernel_context_fail(context, WEIR_ABORTED, "first"));
        CHECK_OK(weir_kernel_context_fail(context, WEIR_DATA_LOSS, "second"));
        return WEIR_UNKNOWN;
    }
    return WEIR_INTERNAL;
}

static void test_failures(void) {
    static const struct {
        failure how;
        int code;
        const char *text;
    } rows[] = {{FAIL_BY_STATUS, WEIR_NOT_FOUND, "flaky"},
                {FAIL_BY_STRANGE_STATUS, WEIR_UNKNOWN, "4711"},
                {FAIL_WITH_TEXT, WEIR_PERMISSION_DENIED, "the key is missing: ключ"},
                {FAIL_IN_REGION, WEIR_DATA_LOSS, "checksum of row 3 is wrong"},
                {FAIL_TWICE, WEIR_ABORTED, "first"}};
    weir_engine *engine = make_engine(NULL);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (uint64_t flags = 0; flags <= WEIR_STREAM_ASYNCHRONOUS; flags++) {
            failure how = rows[r].how;
            weir_host_kernel_desc desc = make_kernel_desc("flaky", failing_compute, &how);
            weir_kernel *kernel = NULL;
            weir_stream *stream = make_stream(engine, flags, NULL, NULL);
            CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
            if (flags == WEIR_STREAM_DEFAULT) {
                CHECK_CODE(weir_enqueue(stream, kernel, NULL, 0, NULL, 0), rows[r].code, rows[r].text);
            } else {
                CHECK_OK(weir_enqueue(stream, kernel, NULL, 0, NULL, 0));
                CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), rows[r].code, rows[r].text);
            }
            CHECK_TEXT(weir_last_error_message(), "flaky"); /* whatever it says itself, the text has its name */
            weir_kernel_release(kernel);
            weir_stream_release(stream);
        }
    }
    CHECK_CODE(weir_engine_synchronize(engine, 0), WEIR_NOT_FOUND, "flaky"); /* the first that came late */
    weir_engine_release(engine);
}

static int32_t copy_compute(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    memmove(out->data, in->data, out->bytes);
    return WEIR_OK;
}

/* What does not fit the signature is refused before anything runs, and the text names the argument. */
static void test_signature(void) {
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_tensor_desc wanted[2] = {make_desc(WEIR_F32, 2, -1, 8, 0), make_desc(WEIR_DTYPE_ANY, 1, 3, 0, 0)};
    weir_tensor_desc made = vector_desc(8);
    weir_host_kernel_desc desc = make_kernel_desc("strict", copy_compute, NULL);
    weir_kernel *kernel = NULL;
    desc.num_inputs = 2;
    desc.inputs = wanted;
    desc.num_outputs = 1;
    desc.outputs = &made;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    weir_tensor *good[2] = {make_tensor(engine, matrix_desc(5, 8)),
                            make_tensor(engine, make_desc(WEIR_S8, 1, 3, 0, 0))};
    weir_tensor *narrow = make_tensor(engine, matrix_desc(5, 7)), *flat = make_tensor(engine, vector_desc(8));
    weir_tensor *halves = make_tensor(engine, make_desc(WEIR_F16, 2, 5, 8, 0));
    weir_tensor *out = make_tensor(engine, made), *long_out = make_tensor(engine, vector_desc(9));
    weir_tensor *bad[2] = {NULL, good[1]};

    CHECK_OK(weir_enqueue(stream, kernel, good, 2, &out, 1));
    bad[0] = narrow;
    CHECK_CODE(weir_enqueue(stream, kernel, bad, 2, &out, 1), WEIR_INVALID_ARGUMENT, "f32[5,7]");
    CHECK_TEXT(weir_last_error_message(), "f32[?,8]");
    CHECK_TEXT(weir_last_error_message(), "input 0");
    CHECK_TEXT(weir_last_error_message(), "strict");
    bad[0] = flat;
    CHECK_CODE(weir_enqueue(stream, kernel, bad, 2, &out, 1), WEIR_INVALID_ARGUMENT, "input 0");
    bad[0] = halves;
    CHECK_CODE(weir_enqueue(stream, kernel, bad, 2, &out, 1), WEIR_INVALID_ARGUMENT, "f16[5,8]");
    bad[0] = good[0], bad[1] = NULL;
    CHECK_CODE(weir_enqueue(stream, kernel, bad, 2, &out, 1), WEIR_INVALID_ARGUMENT, "inputs[1] is NULL");
    CHECK_CODE(weir_enqueue(stream, kernel, good, 1, &out, 1), WEIR_INVALID_ARGUMENT, "input");
    CHECK_CODE(weir_enqueue(stream, kernel, good, 2, &out, 0), WEIR_INVALID_ARGUMENT, "output");
    CHECK_CODE(weir_enqueue(stream, kernel, good, 2, &long_out, 1), WEIR_INVALID_ARGUMENT, "output 0");
    weir_tensor *rest[] = {narrow, flat, halves, out, long_out, good[0], good[1]};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) weir_tensor_release(rest[i]);
    weir_kernel_release(kernel);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* An output over an input, over a part of one, or over another output is refused, unless the kernel is made for it. */
static void test_overlap(void) {
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_tensor_desc four = vector_desc(4);
    float memory[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    weir_tensor *low = NULL, *middle = NULL, *high = NULL;
    CHECK_OK(weir_tensor_create(engine, &four, OVER(memory), &low));
    CHECK_OK(weir_tensor_create(engine, &four, OVER(memory + 2), &middle));
    CHECK_OK(weir_tensor_create(engine, &four, OVER(memory + 4), &high));
    weir_host_kernel_desc desc = make_kernel_desc("copy", copy_compute, NULL);
    weir_kernel *plain = NULL, *in_place = NULL;
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = &four;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &plain));
    desc.flags = WEIR_KERNEL_IN_PLACE;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &in_place));

    CHECK_CODE(weir_enqueue(stream, plain, &low, 1, &low, 1), WEIR_INVALID_ARGUMENT, "output 0");
    CHECK_TEXT(weir_last_error_message(), "input 0");
    CHECK_CODE(weir_enqueue(stream, plain, &low, 1, &middle, 1), WEIR_INVALID_ARGUMENT, "output 0");
    CHECK_OK(weir_enqueue(stream, plain, &low, 1, &high, 1)); /* side by side is not over one another */
    CHECK(memory[4] == 1 && memory[7] == 4);
    CHECK_OK(weir_enqueue(stream, in_place, &low, 1, &low, 1));
    weir_tensor *outputs[2] = {low, middle};
    desc.flags = 0;
    weir_tensor_desc two[2] = {four, four};
    desc.num_outputs = 2;
    desc.outputs = two;
    weir_kernel *twins = NULL;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &twins));
    CHECK_CODE(weir_enqueue(stream, twins, &high, 1, outputs, 2), WEIR_INVALID_ARGUMENT, "output 1");
    weir_kernel_release(twins);
    weir_kernel_release(in_place);
    weir_kernel_release(plain);
    weir_tensor_release(low);
    weir_tensor_release(middle);
    weir_tensor_release(high);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* Outputs that depend on the inputs: the first dimension plus one, for matrices only. */
static int32_t longer_infer(void *user, const weir_tensor_desc *inputs, size_t num_inputs, weir_tensor_desc *outputs,
                            size_t num_outputs) {
    (void)user;
    CHECK(num_inputs == 1 && num_outputs == 1);
    if (inputs[0].rank != 2) return WEIR_INVALID_ARGUMENT;
    outputs[0] = inputs[0];
    outputs[0].dims[0] += 1;
    return WEIR_OK;
}

static void test_infer(void) {
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_host_kernel_desc desc = make_kernel_desc("longer", no_scratch_compute, NULL);
    weir_kernel *kernel = NULL;
    weir_tensor_desc in = matrix_desc(3, 5), out = vector_desc(1), flat = vector_desc(3);
    weir_kernel_info info = {.struct_size = sizeof info};
    desc.num_inputs = desc.num_outputs = 1;
    CHECK_CODE(weir_kernel_create_host(engine, &desc, &kernel), WEIR_INVALID_ARGUMENT, "infer");
    desc.infer = longer_infer;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    CHECK_OK(weir_kernel_get_info(kernel, &info));
    CHECK(info.num_inputs == 1 && info.num_outputs == 1 && strcmp(info.name, "longer") == 0);

    CHECK_OK(weir_kernel_infer(kernel, &in, 1, &out, 1));
    CHECK(out.rank == 2 && out.dims[0] == 4 && out.dims[1] == 5 && out.dtype == WEIR_F32);
    CHECK_CODE(weir_kernel_infer(kernel, &flat, 1, &out, 1), WEIR_INVALID_ARGUMENT, "longer");
    CHECK_EQ(out.dims[0], 4);
    weir_tensor *x = make_tensor(engine, in), *y = make_tensor(engine, out), *short_y = make_tensor(engine, in);
    CHECK_OK(weir_enqueue(stream, kernel, &x, 1, &y, 1));
    CHECK_CODE(weir_enqueue(stream, kernel, &x, 1, &short_y, 1), WEIR_INVALID_ARGUMENT, "output 0");
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_tensor_release(short_y);
    weir_kernel_release(kernel);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* `user` is the kernel's to destroy, once, after the last work; it stays the caller's if the creation fails. */
static void test_user_destroyed_once(void) {
    weir_threadpool *pool = NULL;
    test_pool *host = test_pool_create_exact(POOL_LATE, 1, &pool);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_tensor *x = make_tensor(engine, vector_desc(500)), *y = make_tensor(engine, vector_desc(500));
    weir_tensor_desc like = vector_desc(500);
    atomic_int counter = 0;
    weir_host_kernel_desc desc = make_kernel_desc("counted", double_compute, &counter);
    weir_kernel *kernel = NULL;
    desc.destroy = count_destroy;
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = desc.outputs = &like;
    desc.scratch_bytes = SCRATCH_BYTES;
    desc.flags = 1u << 30;
    CHECK_CODE(weir_kernel_create_host(engine, &desc, &kernel), WEIR_INVALID_ARGUMENT, "desc->flags");
    CHECK_EQ(atomic_load(&counter), 0);
    desc.flags = 0;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    CHECK_OK(weir_enqueue(stream, kernel, &x, 1, &y, 1));
    weir_kernel_release(kernel);
    CHECK_EQ(atomic_load(&counter), 0);
    test_pool_let_go(host);
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    EVENTUALLY(atomic_load(&counter) == 2); /* one call and one destroy */
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    test_pool_destroy(host);
    CHECK_EQ(atomic_load(&counter), 2);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_context();
    test_failures();
    test_signature();
    test_overlap();
    test_infer();
    test_user_destroyed_once();
    check_released(&before);
    return 0;
}
