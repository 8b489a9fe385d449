/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Bad input for traces.
 */

#include <weir/trace.h>

#include "bad_input.h"

static int32_t refuse(void *ctx, const void *data, size_t size) {
    (void)ctx;
    return data != NULL && size > 0 ? WEIR_UNAVAILABLE : WEIR_OK;
}

static void rows_of_options(void) {
    const weir_trace_options good_options = {.struct_size = sizeof good_options};
    weir_trace_options options = good_options, small = {.struct_size = 8};

    ROW(weir_trace_start, (NULL, NULL), INVALID, "out_trace is NULL");
    ROW(weir_trace_start, (&small, NEW(trace)), INVALID, "options->struct_size is 8");
    options.flags = 4;
    ROW(weir_trace_start, (&options, NEW(trace)), INVALID, "options->flags");
    options = good_options;
    options.reserved = 1;
    ROW(weir_trace_start, (&options, NEW(trace)), INVALID, "options->reserved is 1, expected 0");
    options = good_options;
    options.domain = WRONG(engine);
    ROW(weir_trace_start, (&options, NEW(trace)), INVALID, "options->domain: expected a domain, got an engine");
    options.domain = NULL;
    options.engine = WRONG(stream);
    ROW(weir_trace_start, (&options, NEW(trace)), INVALID, "options->engine: expected an engine, got a stream");
    options.engine = good.engine;
    options.program = WRONG(graph);
    ROW(weir_trace_start, (&options, NEW(trace)), INVALID, "options->program: expected a program, got a graph");
    options.program = good.program;
    ROW(weir_trace_start, (&options, NEW(trace)), INVALID, "one of domain, engine, program");
    options = good_options;
    options.flags = WEIR_TRACE_ONLY_ASKED;
    options.engine = good.engine;
    ROW(weir_trace_start, (&options, NEW(trace)), INVALID, "one of domain, engine, program");
    options = good_options;
    options.records_per_thread = 63;
    ROW(weir_trace_start, (&options, NEW(trace)), RANGE, "options->records_per_thread is 63, expected 64 to 67108864");
    options.records_per_thread = 0;
    options.threads = 4097;
    ROW(weir_trace_start, (&options, NEW(trace)), RANGE, "options->threads is 4097, expected 1 to 4096");
}

static void rows_of_saving(void) {
    weir_trace_info info = {.struct_size = sizeof info}, small = {.struct_size = 8};
    weir_trace_thread thread = {.struct_size = sizeof thread};

    ROW(weir_trace_save, (NULL, "a", WEIR_TRACE_CHROME), INVALID, "trace is NULL");
    ROW(weir_trace_save, (WRONG(engine), "a", WEIR_TRACE_CHROME), INVALID, "trace: expected a trace, got an engine");
    ROW(weir_trace_save, (good.trace, NULL, WEIR_TRACE_CHROME), INVALID, "path is NULL");
    ROW(weir_trace_save, (good.trace, "", WEIR_TRACE_CHROME), INVALID, "path is empty");
    ROW(weir_trace_save, (good.trace, BAD_UTF8, WEIR_TRACE_CHROME), INVALID, "path is not UTF-8");
    ROW(weir_trace_save, (good.trace, "a", 0), INVALID, "format is 0, which is no format");
    ROW(weir_trace_save, (good.trace, "a", 99), INVALID, "format is 99, which is no format");
    ROW(weir_trace_save, (good.trace, "/", WEIR_TRACE_CHROME), INVALID, "cannot write '/'");
    ROW(weir_trace_save, (good.trace, "/no/such/directory", WEIR_TRACE_CHROME), WEIR_NOT_FOUND, "cannot create");
    ROW(weir_trace_save_to, (NULL, WEIR_TRACE_CHROME, refuse, NULL), INVALID, "trace is NULL");
    ROW(weir_trace_save_to, (WRONG(run), WEIR_TRACE_CHROME, refuse, NULL), INVALID, "trace: expected a trace, got a run");
    ROW(weir_trace_save_to, (good.trace, 8, refuse, NULL), INVALID, "format is 8, which is no format");
    ROW(weir_trace_save_to, (good.trace, WEIR_TRACE_PERFETTO, NULL, NULL), INVALID, "write is NULL");
    ROW(weir_trace_save_to, (good.trace, WEIR_TRACE_PERFETTO, refuse, NULL), WEIR_UNAVAILABLE, "write returned");
    ROW(weir_trace_get_info, (NULL, &info), INVALID, "trace is NULL");
    ROW(weir_trace_get_info, (good.trace, NULL), INVALID, "out_info is NULL");
    ROW(weir_trace_get_info, (good.trace, &small), INVALID, "out_info->struct_size is 8");
    ROW(weir_trace_get_info, (WRONG(event), &info), INVALID, "trace: expected a trace, got an event");
    ROW(weir_trace_get_thread, (NULL, 0, &thread), INVALID, "trace is NULL");
    ROW(weir_trace_get_thread, (good.trace, 0, NULL), RANGE, "index is 0, the trace has 0 threads");
    ROW(weir_trace_get_thread, (good.trace, 4, &thread), RANGE, "index is 4, the trace has 0 threads");
    ROW(weir_trace_get_thread, (WRONG(graph), 0, &thread), INVALID, "trace: expected a trace, got a graph");
}

static void rows_of_hooks(void) {
    const weir_trace_hooks none = {.struct_size = sizeof none}, small = {.struct_size = 8};

    ROW(weir_trace_set_hooks, (&none, NULL), INVALID, "hooks: no function is set");
    ROW(weir_trace_set_hooks, (&small, NULL), INVALID, "hooks->struct_size is 8");
    ROW(weir_trace_use_markers, (4), INVALID, "kinds");
}

void bad_input_trace(void) {
    ROW(weir_trace_stop, (NULL), INVALID, "trace is NULL");
    ROW(weir_trace_stop, (WRONG(tensor)), INVALID, "trace: expected a trace, got a tensor");
    ROW(weir_trace_retain, (NULL), INVALID, "trace is NULL");
    ROW(weir_trace_retain, (NO_OBJECT), INVALID, "trace: expected a trace, got no weir object");
    ROW(weir_trace_release, (NULL));
    ROW(weir_trace_release, (WRONG(engine)));
    rows_of_options();
    rows_of_saving();
    ROW(weir_trace_intern, (NULL, &out.u32), INVALID, "name is NULL");
    ROW(weir_trace_intern, (BAD_UTF8, &out.u32), INVALID, "name is not UTF-8");
    ROW(weir_trace_intern, ("a", NULL), INVALID, "out_name is NULL");
    ROW(weir_trace_mark, (1u << 20, 1), INVALID, "name is 1048576, which weir_trace_intern has not returned");
    ROW(weir_trace_span_begin, (1u << 20), INVALID, "name is 1048576");
    rows_of_hooks();
    /* It takes nothing, so there is nothing bad to give it: an end without a beginning is no error. */
    ROW(weir_trace_span_end, ());
}
