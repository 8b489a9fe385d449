/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   trace_files <folder>
 *
 * Writes one trace in each of its formats, for readers of these formats (scripts/trace_readers.py): a program with
 * nodes at once, on three threads, and with names that would break a page or a JSON that took them as they are;
 * streams; and spans of the host's own.
 */

#include <stdio.h>
#include <weir/trace.h>

#include "make.h"

enum { WIDTH = 6, RUNS = 20 };

static uint32_t name_of_span;

static int32_t busy(void *arg) {
    const uint64_t until = now_ns() + *(const uint64_t *)arg;
    CHECK_OK(weir_trace_span_begin(name_of_span));
    while (now_ns() < until) {
    }
    weir_trace_span_end();
    return WEIR_OK;
}

static uint64_t lengths[] = {100000, 200000, 400000};

static weir_node add(weir_graph *graph, const char *name, int length) {
    weir_node node;
    CHECK_OK(weir_graph_add_task(graph, name, busy, &lengths[length], NULL, lengths[length], &node));
    return node;
}

int main(int argc, char **argv) {
    static const char *const names[WIDTH] = {"</script><script>alert(1)</script>", "a \"quoted\" \\ name",
        "<!-- & &amp; -->", "tabs\tand\nlines", "\xc3\xa9t\xc3\xa9 \xe6\xb0\xb4", "{{analysis}}"};
    static const struct {
        const char *file;
        weir_trace_format format;
    } files[] = {{"perfetto", WEIR_TRACE_PERFETTO}, {"chrome", WEIR_TRACE_CHROME}, {"folded", WEIR_TRACE_FOLDED},
        {"pprof", WEIR_TRACE_PPROF}, {"report", WEIR_TRACE_REPORT}, {"html", WEIR_TRACE_HTML},
        {"json", WEIR_TRACE_JSON}};
    CHECK(argc == 2);
    weir_threadpool *pool = NULL;
    const weir_threadpool_options of_three = {.struct_size = sizeof of_three, .num_threads = 3};
    CHECK_OK(weir_threadpool_create_builtin(&of_three, &pool));
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "a <b>stream</b>");
    weir_graph *graph = make_graph("a program of <i>threads</i>");
    const weir_node first = add(graph, "first", 0), last = add(graph, "last", 0);
    for (int i = 0; i < WIDTH; i++) {
        const weir_node node = add(graph, names[i], 1 + i % 2);
        CHECK_OK(weir_graph_add_control_edge(graph, first, node));
        CHECK_OK(weir_graph_add_control_edge(graph, node, last));
    }
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    CHECK_OK(weir_trace_intern("a span of the host's", &name_of_span));
    weir_trace *trace = NULL;
    CHECK_OK(weir_trace_start(NULL, &trace));
    for (int i = 0; i < RUNS; i++) {
        CHECK_OK(weir_program_run(program, i % 2 == 0 ? NULL : stream, NULL, 0, NULL, 0, NULL));
        CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    }
    CHECK_OK(weir_trace_stop(trace));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/trace.%s", argv[1], files[i].file);
        CHECK_OK(weir_trace_save(trace, path, files[i].format));
    }
    weir_trace_release(trace);
    weir_program_release(program);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    return 0;
}
