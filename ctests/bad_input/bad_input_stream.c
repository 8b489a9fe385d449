/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for streams and their settings.
 */

#include "bad_input.h"

static void rows_of_attributes(void) {
    char buffer[8];
    weir_stream_attr *attr = good.stream_attr;

    ROW(weir_stream_attr_create, (7, NEW(stream_attr)), INVALID, "kind is 7");
    ROW(weir_stream_attr_create, (WEIR_ENGINE_CPU, NULL), INVALID, "out_attr is NULL");
    ROW(weir_stream_attr_get_kind, (NULL, &out.u32), INVALID, "attr is NULL");
    ROW(weir_stream_attr_get_kind, (attr, NULL), INVALID, "out_kind is NULL");
    ROW(weir_stream_attr_get_kind, (WRONG(engine_attr), &out.u32),
        INVALID, "attr: expected a stream_attr, got an engine_attr");
    ROW(weir_stream_attr_set_threadpool, (NULL, good.threadpool), INVALID, "attr is NULL");
    ROW(weir_stream_attr_set_threadpool, (attr, WRONG(engine)), INVALID, "pool: expected a threadpool, got an engine");
    ROW(weir_stream_attr_set_threadpool, (WRONG(stream), good.threadpool), INVALID, "attr: expected a stream_attr");
    ROW(weir_stream_attr_get_threadpool, (NULL, NEW(threadpool)), INVALID, "attr is NULL");
    ROW(weir_stream_attr_get_threadpool, (attr, NULL), INVALID, "out_pool is NULL");
    ROW(weir_stream_attr_get_threadpool, (WRONG(graph), NEW(threadpool)),
        INVALID, "attr: expected a stream_attr, got a graph");
    ROW(weir_stream_attr_set_asynchronous, (NULL, 1), INVALID, "attr is NULL");
    ROW(weir_stream_attr_set_asynchronous, (attr, 2), INVALID, "asynchronous is 2, expected 0 or 1");
    ROW(weir_stream_attr_set_asynchronous, (attr, -1), INVALID, "asynchronous is -1");
    ROW(weir_stream_attr_set_asynchronous, (WRONG(engine_attr), 1),
        INVALID, "attr: expected a stream_attr, got an engine_attr");
    ROW(weir_stream_attr_get_asynchronous, (NULL, &out.i32), INVALID, "attr is NULL");
    ROW(weir_stream_attr_get_asynchronous, (attr, NULL), INVALID, "out_asynchronous is NULL");
    ROW(weir_stream_attr_get_asynchronous, (UNALIGNED, &out.i32),
        INVALID, "attr: expected a stream_attr, got no weir object");
    ROW(weir_stream_attr_set_spin_ns, (NULL, 1), INVALID, "attr is NULL");
    ROW(weir_stream_attr_set_spin_ns, (attr, UINT64_MAX), INVALID, "spin_ns is 18446744073709551615");
    ROW(weir_stream_attr_set_spin_ns, (WRONG(engine_attr), 1), INVALID, "attr: expected a stream_attr");
    ROW(weir_stream_attr_get_spin_ns, (NULL, &out.u64), INVALID, "attr is NULL");
    ROW(weir_stream_attr_get_spin_ns, (attr, NULL), INVALID, "out_spin_ns is NULL");
    ROW(weir_stream_attr_get_spin_ns, (WRONG(event), &out.u64), INVALID, "attr: expected a stream_attr, got an event");
    ROW(weir_stream_attr_set_priority, (NULL, 1), INVALID, "attr is NULL");
    ROW(weir_stream_attr_set_priority, (attr, 101), RANGE, "priority is 101");
    ROW(weir_stream_attr_set_priority, (attr, INT32_MIN), RANGE, "priority is -2147483648");
    ROW(weir_stream_attr_set_priority, (WRONG(run), 1), INVALID, "attr: expected a stream_attr, got a run");
    ROW(weir_stream_attr_get_priority, (NULL, &out.i32), INVALID, "attr is NULL");
    ROW(weir_stream_attr_get_priority, (attr, NULL), INVALID, "out_priority is NULL");
    ROW(weir_stream_attr_get_priority, (WRONG(tensor), &out.i32),
        INVALID, "attr: expected a stream_attr, got a tensor");
    ROW(weir_stream_attr_set_name, (NULL, "x"), INVALID, "attr is NULL");
    ROW(weir_stream_attr_set_name, (attr, NULL), INVALID, "name is NULL");
    ROW(weir_stream_attr_set_name, (attr, BAD_UTF8), INVALID, "name is not UTF-8 (bad byte at offset 2)");
    ROW(weir_stream_attr_set_name, (WRONG(program), "x"), INVALID, "attr: expected a stream_attr, got a program");
    ROW(weir_stream_attr_get_name, (NULL, buffer, sizeof buffer, &out.size), INVALID, "attr is NULL");
    ROW(weir_stream_attr_get_name, (attr, NULL, 8, &out.size), INVALID, "buffer is NULL, but capacity is 8");
    ROW(weir_stream_attr_get_name, (attr, NULL, 0, NULL), INVALID, "out_length is NULL");
    ROW(weir_stream_attr_get_name, (WRONG(engine), buffer, 8, &out.size),
        INVALID, "attr: expected a stream_attr, got an engine");
}

static void rows_of_streams(void) {
    ROW(weir_stream_create, (NULL, 0, NULL, NEW(stream)), INVALID, "engine is NULL");
    ROW(weir_stream_create, (good.engine, 0, NULL, NULL), INVALID, "out_stream is NULL");
    ROW(weir_stream_create, (good.engine, 6, NULL, NEW(stream)), INVALID, "stream_flags has unknown bits 0x6");
    ROW(weir_stream_create, (WRONG(threadpool), 0, NULL, NEW(stream)),
        INVALID, "engine: expected an engine, got a threadpool");
    ROW(weir_stream_create, (good.engine, 0, WRONG(engine_attr), NEW(stream)), INVALID, "attr: expected a stream_attr");
    ROW(weir_stream_retain, (NULL), INVALID, "stream is NULL");
    ROW(weir_stream_retain, (WRONG(stream_attr)), INVALID, "stream: expected a stream, got a stream_attr");
    ROW(weir_stream_get_engine, (NULL, NEW(engine)), INVALID, "stream is NULL");
    ROW(weir_stream_get_engine, (good.stream, NULL), INVALID, "out_engine is NULL");
    ROW(weir_stream_get_engine, (WRONG(engine), NEW(engine)), INVALID, "stream: expected a stream, got an engine");
    ROW(weir_stream_get_threadpool, (NULL, NEW(threadpool)), INVALID, "stream is NULL");
    ROW(weir_stream_get_threadpool, (good.stream, NULL), INVALID, "out_pool is NULL");
    ROW(weir_stream_get_threadpool, (WRONG(run), NEW(threadpool)), INVALID, "stream: expected a stream, got a run");
    ROW(weir_stream_get_attr, (NULL, NEW(lent_stream_attr)), INVALID, "stream is NULL");
    ROW(weir_stream_get_attr, (good.stream, NULL), INVALID, "out_attr is NULL");
    ROW(weir_stream_get_attr, (NO_OBJECT, NEW(lent_stream_attr)),
        INVALID, "stream: expected a stream, got no weir object");
    ROW(weir_stream_synchronize, (NULL, 0), INVALID, "stream is NULL");
    ROW(weir_stream_synchronize, (WRONG(event), 0), INVALID, "stream: expected a stream, got an event");
    ROW(weir_stream_query, (NULL, &out.i32), INVALID, "stream is NULL");
    ROW(weir_stream_query, (good.stream, NULL), INVALID, "out_done is NULL");
    ROW(weir_stream_query, (WRONG(tensor), &out.i32), INVALID, "stream: expected a stream, got a tensor");
    ROW(weir_stream_clear_error, (NULL), INVALID, "stream is NULL");
    ROW(weir_stream_clear_error, (WRONG(graph)), INVALID, "stream: expected a stream, got a graph");
}

static int32_t never_called(void *arg) {
    (void)arg;
    CHECK(!"a task that was refused is run");
    return WEIR_INTERNAL;
}

static void never_destroyed(void *arg) {
    (void)arg;
    CHECK(!"a task that was refused is destroyed");
}

static void rows_of_work(void) {
    char buffer[8];

    ROW(weir_enqueue_task, (NULL, never_called, buffer, never_destroyed), INVALID, "stream is NULL");
    ROW(weir_enqueue_task, (good.stream, NULL, buffer, never_destroyed), INVALID, "fn is NULL");
    ROW(weir_enqueue_task, (WRONG(kernel), never_called, buffer, never_destroyed), INVALID, "stream: expected a stream");
    ROW(weir_enqueue_copy, (NULL, good.tensor, good.tensor), INVALID, "stream is NULL");
    ROW(weir_enqueue_copy, (good.stream, NULL, good.tensor), INVALID, "source is NULL");
    ROW(weir_enqueue_copy, (good.stream, good.tensor, NULL), INVALID, "target is NULL");
    ROW(weir_enqueue_copy, (good.stream, WRONG(stream), good.tensor), INVALID, "source: expected a tensor, got a stream");
    ROW(weir_enqueue_copy, (good.stream, good.tensor, good.tensor), INVALID, "target shares memory with source");
    ROW(weir_enqueue_fill, (NULL, good.tensor, 0), INVALID, "stream is NULL");
    ROW(weir_enqueue_fill, (good.stream, NULL, 0), INVALID, "tensor is NULL");
    ROW(weir_enqueue_fill, (good.stream, WRONG(engine), 0), INVALID, "tensor: expected a tensor, got an engine");
    ROW(weir_enqueue_fill, (good.stream, good.tensor, 256), INVALID, "value is 256, expected 0 to 255");
    ROW(weir_stream_wait_event, (NULL, good.event), INVALID, "stream is NULL");
    ROW(weir_stream_wait_event, (good.stream, NULL), INVALID, "event is NULL");
    ROW(weir_stream_wait_event, (WRONG(event), good.event), INVALID, "stream: expected a stream, got an event");
    ROW(weir_stream_wait_event, (good.stream, WRONG(stream)), INVALID, "event: expected an event, got a stream");
}

void bad_input_stream(void) {
    rows_of_attributes();
    rows_of_streams();
    rows_of_work();
}
