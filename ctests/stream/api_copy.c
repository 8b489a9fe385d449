/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Copies and fills on streams of the host's: what they do, in which order, and what is refused.
 */

#include <weir/inspect.h>

#include "make.h"

static const weir_tensor_desc FOUR = {.dtype = WEIR_F32, .rank = 1, .dims = {4}};

static weir_tensor *four(weir_engine *engine, float *memory) {
    weir_tensor *tensor = NULL;
    CHECK_OK(weir_tensor_create(engine, &FOUR, OVER(memory), &tensor));
    return tensor;
}

static void copies_and_fills(weir_engine *engine, uint64_t flags) {
    float a[4] = {1, 2, 3, 4}, b[4] = {0}, c[4] = {9, 9, 9, 9};
    weir_tensor *from = four(engine, a), *to = four(engine, b), *last = four(engine, c);
    weir_stream *stream = NULL;
    CHECK_OK(weir_stream_create(engine, flags, NULL, &stream));
    CHECK_OK(weir_enqueue_copy(stream, from, to));
    CHECK_OK(weir_enqueue_fill(stream, from, 0));
    CHECK_OK(weir_enqueue_copy(stream, to, last));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    for (int i = 0; i < 4; i++) CHECK(a[i] == 0 && b[i] == (float)(i + 1) && c[i] == (float)(i + 1));
    weir_stream_release(stream);
    weir_tensor_release(from);
    weir_tensor_release(to);
    weir_tensor_release(last);
}

static void refusals(weir_engine *engine) {
    float a[8] = {0};
    const weir_tensor_desc two = {.dtype = WEIR_F32, .rank = 1, .dims = {2}};
    weir_tensor *x = four(engine, a), *half_over = four(engine, a + 2), *short_one = NULL, *open_one = NULL;
    weir_stream *stream = NULL;
    CHECK_OK(weir_tensor_create(engine, &two, NULL, &short_one));
    CHECK_OK(weir_stream_create(engine, 0, NULL, &stream));
    CHECK_CODE(weir_enqueue_copy(stream, x, short_one), WEIR_INVALID_ARGUMENT, "target: expected f32[4] as source is, got f32[2]");
    CHECK_CODE(weir_enqueue_copy(stream, x, half_over), WEIR_INVALID_ARGUMENT, "target shares memory with source");
    const weir_tensor_desc any = {.dtype = WEIR_F32, .rank = 1, .dims = {WEIR_DIM_DYNAMIC}};
    CHECK_OK(weir_tensor_create(engine, &any, NULL, &open_one));
    CHECK_CODE(weir_enqueue_copy(stream, open_one, x), WEIR_INVALID_ARGUMENT, "source is a dynamic tensor");
    CHECK_CODE(weir_enqueue_fill(stream, open_one, 1), WEIR_INVALID_ARGUMENT, "tensor is a dynamic tensor");
    weir_tensor_release(open_one);
    weir_tensor_release(short_one);
    weir_tensor_release(half_over);
    weir_tensor_release(x);
    weir_stream_release(stream);
}

int main(void) {
    const weir_runtime_info before = runtime_info();
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    copies_and_fills(engine, WEIR_STREAM_DEFAULT);
    copies_and_fills(engine, WEIR_STREAM_ASYNCHRONOUS);
    refusals(engine);
    weir_engine_release(engine);
    check_released(&before);
    return 0;
}
