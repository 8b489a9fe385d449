/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for events.
 */

#include "bad_input.h"

void bad_input_event(void) {
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
    ROW(weir_event_elapsed_ns, (NULL, good.event, &out.i64), INVALID, "start is NULL");
    ROW(weir_event_elapsed_ns, (good.event, NULL, &out.i64), INVALID, "end is NULL");
    ROW(weir_event_elapsed_ns, (good.event, good.event, NULL), INVALID, "out_ns is NULL");
    ROW(weir_event_elapsed_ns, (WRONG(stream), good.event, &out.i64), INVALID, "start: expected an event, got a stream");
    ROW(weir_event_elapsed_ns, (good.event, WRONG(kernel), &out.i64), INVALID, "end: expected an event, got a kernel");
    ROW(weir_event_elapsed_ns, (good.event, good.event, &out.i64), PRECONDITION, "start");
}
