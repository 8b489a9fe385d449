/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tracing.h"

#include <stdio.h>

#include <weir.h>

#include "weir_check.h"

weir_trace *tracing_start(void) {
    weir_trace *trace;
    CHECK(weir_trace_start(NULL, &trace));
    return trace;
}

static int save_as(weir_trace *trace, const char *name, const char *ending, weir_trace_format format) {
    char path[1024];
    if (snprintf(path, sizeof path, "%s.%s", name, ending) >= (int)sizeof path) {
        fprintf(stderr, "the name of the trace is too long\n");
        return 1;
    }
    if (weir_trace_save(trace, path, format) != WEIR_OK) {
        fprintf(stderr, "%s\n", weir_last_error_message());
        return 1;
    }
    printf("  the trace is in %s\n", path);
    return 0;
}

int tracing_save(weir_trace *trace, const char *name) {
    CHECK(weir_trace_stop(trace));
    int status = save_as(trace, name, "html", WEIR_TRACE_HTML);
    status |= save_as(trace, name, "perfetto", WEIR_TRACE_PERFETTO);
    weir_trace_release(trace);
    return status;
}
