/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Traces by the C interface: of what they are, what they hold, and files that are there whole or not at all.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/domain.h>
#include <weir/trace.h>

#include "make.h"
#include "saved_text.h"

enum { LENGTH = 6 };

static int32_t nothing(void *arg) {
    (void)arg;
    return WEIR_OK;
}

/* Marks, and a span, inside of a node. */
static uint32_t name_of_span, name_of_mark;

static int32_t tell(void *arg) {
    CHECK_OK(weir_trace_span_begin(name_of_span));
    CHECK_OK(weir_trace_mark(name_of_mark, (uint64_t)(uintptr_t)arg));
    weir_trace_span_end();
    return WEIR_OK;
}

static weir_program *make_chain(weir_engine *engine, weir_host_fn first) {
    weir_graph *graph = make_graph("chain");
    weir_node before = {0}, node;
    char name[16];
    for (int i = 0; i < LENGTH; i++) {
        (void)snprintf(name, sizeof name, "step %d", i);
        CHECK_OK(weir_graph_add_task(graph, name, i == 0 ? first : nothing, (void *)77, NULL, 0, &node));
        if (i > 0) CHECK_OK(weir_graph_add_control_edge(graph, before, node));
        before = node;
    }
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

static weir_trace *start(const weir_trace_options *options) {
    weir_trace *trace = NULL;
    CHECK_OK(weir_trace_start(options, &trace));
    return trace;
}

static weir_trace_info info_of(const weir_trace *trace) {
    weir_trace_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_trace_get_info(trace, &info));
    return info;
}

static text saved(const weir_trace *trace, weir_trace_format format) {
    text t = {NULL, 0};
    CHECK_OK(weir_trace_save_to(trace, format, collect, &t));
    return t;
}

/* How often a text is in the JSON of a trace. */
static long told(const weir_trace *trace, const char *what) {
    text t = saved(trace, WEIR_TRACE_CHROME);
    const long count = occurrences(t.data, what);
    free(t.data);
    return count;
}

static void run(weir_program *program, weir_trace *asked) {
    const weir_run_options options = {.struct_size = sizeof options, .trace = asked};
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, &options));
}

static void each_node_is_told_once(weir_engine *engine) {
    weir_program *program = make_chain(engine, tell);
    weir_trace *trace = start(NULL);
    run(program, NULL);
    run(program, NULL);
    CHECK_OK(weir_trace_stop(trace));
    CHECK_OK(weir_trace_stop(trace));
    run(program, NULL);
    const weir_trace_info info = info_of(trace);
    CHECK(info.recording == 0 && info.threads == 1 && info.lost == 0 && info.lost_without_ring == 0);
    CHECK(info.end_ns >= info.begin_ns + 1000000 && info.end_ns <= now_ns() && info.clock_error_ns > 0);
    CHECK(info.clock[0] != 0);
    weir_trace_thread thread = {.struct_size = sizeof thread};
    CHECK_OK(weir_trace_get_thread(trace, 0, &thread));
    CHECK(thread.records == info.records && thread.lost == 0 && thread.os_id != 0);
    for (int i = 0; i < LENGTH; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "\"name\":\"step %d\"", i);
        CHECK_EQ(told(trace, name), 2);
    }
    CHECK_EQ(told(trace, "\"name\":\"a span of mine\""), 2);
    CHECK_EQ(told(trace, "\"number\":77"), 2);
    /* Two programs may go before their trace. */
    weir_program_release(program);
    CHECK_EQ(told(trace, "\"name\":\"step 5\""), 2);
    weir_trace_release(trace);
    /* Nobody listens. */
    CHECK_OK(weir_trace_mark(name_of_mark, 1));
}

static void a_trace_is_of_what_it_says(void) {
    weir_domain *domain = NULL;
    weir_engine_attr *attr = NULL;
    weir_engine *engines[2];
    CHECK_OK(weir_domain_create("traced", &domain));
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_CPU, &attr));
    CHECK_OK(weir_engine_attr_set_domain(attr, domain));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, attr, &engines[0]));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engines[1]));
    weir_program *programs[2] = {make_chain(engines[0], nothing), make_chain(engines[1], nothing)};
    const weir_trace_options of_domain = {.struct_size = sizeof of_domain, .domain = domain, .threads = 2};
    const weir_trace_options of_engine = {.struct_size = sizeof of_engine, .engine = engines[1], .threads = 2};
    const weir_trace_options of_program = {.struct_size = sizeof of_program, .program = programs[0], .threads = 2};
    const weir_trace_options asked = {.struct_size = sizeof asked, .flags = WEIR_TRACE_ONLY_ASKED, .threads = 2};
    weir_trace *traces[4] = {start(&of_domain), start(&of_engine), start(&of_program), start(&asked)}, *fifth = NULL;
    CHECK_CODE(weir_trace_start(NULL, &fifth), WEIR_RESOURCE_EXHAUSTED, "4 traces");
    run(programs[0], NULL);
    run(programs[1], traces[3]);
    run(programs[1], NULL);
    const int expected[4] = {1, 2, 1, 1};
    for (int i = 0; i < 4; i++) CHECK_EQ(told(traces[i], "\"name\":\"step 0\""), expected[i]);
    weir_engine_attr_destroy(attr);
    for (int i = 0; i < 2; i++) {
        weir_program_release(programs[i]);
        weir_engine_release(engines[i]);
    }
    weir_domain_release(domain);
    for (int i = 0; i < 4; i++) weir_trace_release(traces[i]);
}

/* Items of a stream, from submission to end. */
static void streams_are_told(weir_engine *engine) {
    weir_stream *streams[2] = {make_stream(engine, WEIR_STREAM_DEFAULT, NULL, "inline"),
        make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "behind")};
    weir_program *program = make_chain(engine, nothing);
    weir_trace *trace = start(NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(weir_enqueue_task(streams[i], nothing, NULL, NULL));
        CHECK_OK(weir_program_run(program, streams[i], NULL, 0, NULL, 0, NULL));
        CHECK_OK(weir_stream_synchronize(streams[i], WEIR_TIMEOUT_INFINITE));
    }
    CHECK_EQ(told(trace, "\"name\":\"function on stream inline\""), 1);
    CHECK_EQ(told(trace, "\"name\":\"function on stream behind\""), 1);
    CHECK_EQ(told(trace, "\"name\":\"work on stream inline\""), 1);
    CHECK(told(trace, "\"name\":\"work on stream behind\"") >= 1);
    CHECK_EQ(told(trace, "\"name\":\"submit to stream behind\""), 2);
    CHECK_EQ(told(trace, "\"name\":\"step 3\""), 2);
    weir_trace_release(trace);
    weir_program_release(program);
    for (int i = 0; i < 2; i++) weir_stream_release(streams[i]);
}

static size_t size_of(const char *path) {
    struct stat found;
    return stat(path, &found) == 0 ? (size_t)found.st_size : 0;
}

static void files_are_whole(weir_engine *engine) {
    char directory[] = "/tmp/weir-trace-XXXXXX", path[64];
    CHECK(mkdtemp(directory) != NULL);
    (void)snprintf(path, sizeof path, "%s/run.trace", directory);
    weir_program *program = make_chain(engine, nothing);
    weir_trace *trace = start(NULL);
    for (int i = 0; i < 2000; i++) run(program, NULL);
    CHECK_OK(weir_trace_stop(trace));
    const weir_trace_info before = info_of(trace);
    for (weir_trace_format format = WEIR_TRACE_PERFETTO; format <= WEIR_TRACE_JSON; format++) {
        text whole = saved(trace, format);
        CHECK(whole.size > 100);
        CHECK_OK(weir_trace_save(trace, path, format));
        CHECK_EQ(size_of(path), whole.size);
        free(whole.data);
    }
    CHECK_OK(weir_trace_save(trace, path, WEIR_TRACE_PERFETTO));
    const size_t size = size_of(path);
    /* A disk that is full, a file that is too large: the file that was there stays, and so do the records. */
    CHECK_CODE(weir_trace_save(trace, "/dev/full", WEIR_TRACE_CHROME), WEIR_RESOURCE_EXHAUSTED, "/dev/full");
    struct rlimit limit, small;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    small = limit;
    small.rlim_cur = 1 << 16;
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    CHECK_CODE(weir_trace_save(trace, path, WEIR_TRACE_CHROME), WEIR_RESOURCE_EXHAUSTED, "run.trace");
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK_EQ(size_of(path), size);
    if (geteuid() != 0) {
        CHECK(chmod(directory, 0500) == 0);
        CHECK_CODE(weir_trace_save(trace, path, WEIR_TRACE_CHROME), WEIR_PERMISSION_DENIED, "run.trace");
        CHECK(chmod(directory, 0700) == 0);
    }
    CHECK_OK(weir_trace_save(trace, path, WEIR_TRACE_PERFETTO));
    CHECK_EQ(size_of(path), size);
    const weir_trace_info after = info_of(trace);
    CHECK(after.records == before.records && after.lost == 0);
    CHECK(unlink(path) == 0);
    CHECK(rmdir(directory) == 0);
    weir_trace_release(trace);
    weir_program_release(program);
}

/* The child records nothing of what its parent's traces are of, can release them, and may have its own. */
static void fork_drops_traces(weir_engine *engine) {
    weir_program *program = make_chain(engine, nothing);
    weir_trace *trace = start(NULL);
    run(program, NULL);
    const uint64_t records = info_of(trace).records;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        weir_trace_info info = {.struct_size = sizeof info};
        CHECK_CODE(weir_trace_get_info(trace, &info), WEIR_FAILED_PRECONDITION, "forked");
        CHECK_CODE(weir_trace_stop(trace), WEIR_FAILED_PRECONDITION, "forked");
        weir_trace_release(trace);
        weir_engine *own_engine = make_engine(NULL);
        weir_program *own_program = make_chain(own_engine, nothing);
        run(own_program, NULL);
        weir_trace *own[4];
        for (int i = 0; i < 4; i++) own[i] = start(NULL);
        run(own_program, NULL);
        for (int i = 0; i < 4; i++) {
            CHECK_EQ(told(own[i], "\"name\":\"step 1\""), 1);
            weir_trace_release(own[i]);
        }
        weir_program_release(own_program);
        weir_engine_release(own_engine);
        weir_program_release(program);
        /* What it inherited and left alone is no leak, and no checker of memory looks at it then. */
        raise(SIGKILL);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK_EQ(info_of(trace).records, records);
    run(program, NULL);
    CHECK_EQ(told(trace, "\"name\":\"step 1\""), 2);
    weir_trace_release(trace);
    weir_program_release(program);
}

/* Recording allocates nothing, from a thread's and a program's second run in a trace on. */
static void recording_allocates_nothing(weir_engine *engine) {
    weir_program *program = make_chain(engine, tell);
    weir_trace *trace = start(NULL);
    run(program, NULL);
    run(program, NULL);
    const uint64_t before = runtime_info().allocations;
    for (int i = 0; i < 100; i++) run(program, NULL);
    CHECK_EQ(runtime_info().allocations, before);
    weir_trace_release(trace);
    weir_program_release(program);
}

int main(void) {
    const weir_runtime_info before = runtime_info();
    weir_engine *engine = make_engine(NULL);
    CHECK_OK(weir_trace_intern("a span of mine", &name_of_span));
    CHECK_OK(weir_trace_intern("a mark of mine", &name_of_mark));
    each_node_is_told_once(engine);
    a_trace_is_of_what_it_says();
    streams_are_told(engine);
    files_are_whole(engine);
    recording_allocates_nothing(engine);
    fork_drops_traces(engine);
    weir_engine_release(engine);
    CHECK_EQ(runtime_info().traces, 0);
    check_released(&before);
    return 0;
}
