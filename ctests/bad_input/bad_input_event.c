/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for events.
 */

#include "bad_input.h"

static void hear(void *ctx, weir_status status, weir_run *run) {
    (void)ctx, (void)status, (void)run;
}

void bad_input_event(void) {
    const weir_notice heard = {.struct_size = sizeof heard, .notify = hear}, small = {.struct_size = 8};
    const weir_notice nobody = {.struct_size = sizeof nobody}, closed = {.struct_size = sizeof closed, .event_fd = -1};

    ROW(weir_event_create, (NULL, 0, NEW(event)), INVALID, "engine is NULL");
    ROW(weir_event_create, (good.engine, 0, NULL), INVALID, "out_event is NULL");
    ROW(weir_event_create, (good.engine, 2, NEW(event)), INVALID, "event_flags has unknown bits 0x2");
    ROW(weir_event_create, (WRONG(stream), 0, NEW(event)), INVALID, "engine: expected an engine, got a stream");
    ROW(weir_event_retain, (NULL), INVALID, "event is NULL");
    ROW(weir_event_retain, (WRONG(run)), INVALID, "event: expected an event, got a run");
    ROW(weir_event_record, (NULL, good.stream), INVALID, "event is NULL");
    ROW(weir_event_record, (good.event, NULL), INVALID, "stream is NULL");
    ROW(weir_event_record, (WRONG(stream), good.stream), INVALID, "event: expected an event, got a stream");
    ROW(weir_event_record, (good.event, WRONG(event)), INVALID, "stream: expected a stream, got an event");
    ROW(weir_event_query, (NULL, &out.i32), INVALID, "event is NULL");
    ROW(weir_event_query, (good.event, NULL), INVALID, "out_done is NULL");
    ROW(weir_event_query, (WRONG(engine), &out.i32), INVALID, "event: expected an event, got an engine");
    ROW(weir_event_synchronize, (NULL, 0), INVALID, "event is NULL");
    ROW(weir_event_synchronize, (WRONG(stream), WEIR_TIMEOUT_INFINITE),
        INVALID, "event: expected an event, got a stream");
    ROW(weir_event_notify, (NULL, &heard), INVALID, "event is NULL");
    ROW(weir_event_notify, (WRONG(run), &heard), INVALID, "event: expected an event, got a run");
    ROW(weir_event_notify, (good.event, NULL), INVALID, "notice is NULL");
    ROW(weir_event_notify, (good.event, UNALIGNED), INVALID, "notice is not aligned");
    ROW(weir_event_notify, (good.event, &small), INVALID, "notice->struct_size is 8");
    ROW(weir_event_notify, (good.event, &nobody), INVALID, "notice has neither a function nor an eventfd");
    ROW(weir_event_notify, (good.event, &closed), INVALID, "notice->event_fd is -1, which is no open file");
    ROW(weir_event_elapsed_ns, (NULL, good.event, &out.i64), INVALID, "start is NULL");
    ROW(weir_event_elapsed_ns, (good.event, NULL, &out.i64), INVALID, "end is NULL");
    ROW(weir_event_elapsed_ns, (good.event, good.event, NULL), INVALID, "out_ns is NULL");
    ROW(weir_event_elapsed_ns, (WRONG(stream), good.event, &out.i64), INVALID, "start: expected an event, got a stream");
    ROW(weir_event_elapsed_ns, (good.event, WRONG(kernel), &out.i64), INVALID, "end: expected an event, got a kernel");
    ROW(weir_event_elapsed_ns, (good.event, good.event, &out.i64), PRECONDITION, "start");
}
