/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Markers for NVTX and ITT, with tools of the tests' own: what is told lies in one another in each thread, has the
 * names of programs and nodes, and is all of it; on every kind of pool. The arguments are the two tools' libraries.
 * With a third one, the kinds of markers that WEIR_TRACE_MARKERS asks for, it does no more than look for these.
 */

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/control.h>
#include <weir/trace.h>

#include "marker_log.h"
#include "later.h"

static marker_log *logs[2];
static void (*collect_markers)(int does);

/* How often the name has begun. Each end has its beginning, in its thread. */
static int begun(const marker_log *log, const char *name) {
    pthread_t threads[256];
    int depths[256], count = 0, found = 0;
    CHECK_TEXT(log->wrong[0] == 0 ? "as expected" : log->wrong, "as expected");
    for (int i = 0; i < log->count; i++) {
        const marker *m = &log->markers[i];
        int t = 0;
        while (t < count && !pthread_equal(threads[t], m->thread)) t++;
        if (t == count) {
            CHECK(count < 256);
            threads[count] = m->thread;
            depths[count++] = 0;
        }
        depths[t] += m->name[0] != 0 ? 1 : -1;
        CHECK(depths[t] >= 0);
        if (strcmp(m->name, name) == 0) found++;
    }
    for (int t = 0; t < count; t++) CHECK_EQ(depths[t], 0);
    return found;
}

static void forget(void) {
    for (int i = 0; i < 2; i++) logs[i]->count = 0;
}

static atomic_int again, added;

static int32_t subtract(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    const int32_t x = *(const int32_t *)in[0].data;
    atomic_fetch_add(user == &again ? &again : &added, 1);
    *(int32_t *)out[0].data = user == &again ? x > 0 : x - 1;
    return WEIR_OK;
}

static const weir_tensor_desc number = {.dtype = WEIR_S32, .rank = 1, .dims = {1}};

static weir_graph *make_part(weir_engine *engine, const char *name, atomic_int *what) {
    weir_graph *graph = make_graph(name);
    weir_kernel *kernel = make_unary_kernel(engine, name, subtract, what, &number);
    weir_value x;
    CHECK_OK(weir_graph_add_input(graph, "x", &number, &x));
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &x, 1, &x, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", x));
    weir_kernel_release(kernel);
    return graph;
}

/* Tasks "one" and "two", a loop, and a node that completes later. */
static weir_program *make_program(weir_engine *engine, later *l) {
    static atomic_int counter;
    const weir_tensor_desc desc = vector_desc(WIDTH);
    weir_graph *graph = make_graph("marked"), *condition = make_part(engine, "again", &again);
    weir_graph *body = make_part(engine, "less", &added);
    weir_kernel *kernel = make_later_kernel(engine, "later", l);
    weir_value n, x, y;
    CHECK_OK(weir_graph_add_task(graph, "one", count_run, &counter, NULL, 0, NULL));
    CHECK_OK(weir_graph_add_task(graph, "two", count_run, &counter, NULL, 0, NULL));
    CHECK_OK(weir_graph_add_input(graph, "n", &number, &n));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    CHECK_OK(weir_graph_add_while(graph, "loop", &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
        .cond_graph = condition, .body_graph = body, .variables = &n, .num_variables = 1}, &y, NULL));
    CHECK_OK(weir_graph_add_output(graph, "n", y));
    CHECK_OK(weir_graph_add_kernel(graph, "later", kernel, &x, 1, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    weir_program *program = compile(graph, engine);
    weir_kernel_release(kernel);
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    weir_graph_destroy(graph);
    return program;
}

static void test_on(weir_threadpool *pool) {
    enum { TURNS = 3 };
    weir_engine *engine = make_engine(pool);
    weir_tensor *in[2] = {make_tensor(engine, number), make_tensor(engine, vector_desc(WIDTH))};
    weir_tensor *out[2] = {make_tensor(engine, number), make_tensor(engine, vector_desc(WIDTH))};
    void *n = NULL;
    CHECK_OK(weir_tensor_get_data(in[0], &n));
    *(int32_t *)n = TURNS;
    static const how ways[] = {INLINE, ELSEWHERE, REFUSED};
    const weir_run_options soon = {.struct_size = sizeof soon, .deadline_ns = 1};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        later l = {.how = ways[way]};
        const int rounds = scale(20), fails = ways[way] == REFUSED;
        weir_program *program = make_program(engine, &l);
        forget();
        atomic_store(&again, 0);
        atomic_store(&added, 0);
        for (int i = 0; i < rounds; i++) {
            CHECK_EQ(weir_program_run(program, NULL, in, 2, out, 2, NULL), fails ? WEIR_UNAVAILABLE : WEIR_OK);
        }
        CHECK_CODE(weir_program_run(program, NULL, in, 2, out, 2, &soon), WEIR_DEADLINE_EXCEEDED, "");
        /* Helpers may be on their way out of a run. */
        weir_program_release(program);
        EVENTUALLY(runtime_info().programs == 0);
        for (int i = 0; i < 2; i++) {
            if (!fails) {
                CHECK_EQ(begun(logs[i], "one"), rounds);
                CHECK_EQ(begun(logs[i], "two"), rounds);
            }
            CHECK(begun(logs[i], "marked") >= rounds);
            CHECK_EQ(begun(logs[i], "later"), atomic_load(&l.begun));
            CHECK_EQ(begun(logs[i], "loop/condition/again"), atomic_load(&again));
            CHECK_EQ(begun(logs[i], "loop/body/less"), atomic_load(&added));
        }
        if (!fails) CHECK_EQ(atomic_load(&added), rounds * TURNS);
    }
    for (int i = 0; i < 2; i++) {
        weir_tensor_release(in[i]);
        weir_tensor_release(out[i]);
    }
    weir_engine_release(engine);
}

static void test_switches(void) {
    static atomic_int counter;
    weir_engine *engine = make_engine(NULL);
    weir_graph *graph = make_graph("switched");
    CHECK_OK(weir_graph_add_task(graph, "one", count_run, &counter, NULL, 0, NULL));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    for (uint32_t kinds = 0; kinds < 4; kinds++) {
        CHECK_OK(weir_trace_use_markers(kinds));
        forget();
        CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
        CHECK_EQ(begun(logs[0], "one"), kinds & WEIR_TRACE_NVTX ? 1 : 0);
        CHECK_EQ(begun(logs[1], "one"), kinds & WEIR_TRACE_ITT ? 1 : 0);
    }
    /* A tool that does not collect is left alone. */
    collect_markers(0);
    forget();
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    CHECK(logs[0]->count > 0 && logs[1]->count == 0);
    collect_markers(1);
    /* What is refused changes nothing. */
    CHECK_CODE(weir_trace_use_markers(4), WEIR_INVALID_ARGUMENT, "kinds");
    forget();
    CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
    CHECK(logs[0]->count > 0 && logs[1]->count > 0);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* In a process for which the environment asks for these kinds. */
static int test_asked(uint32_t kinds) {
    static atomic_int counter;
    weir_engine *engine = make_engine(NULL);
    weir_graph *graph = make_graph("asked");
    CHECK_OK(weir_graph_add_task(graph, "one", count_run, &counter, NULL, 0, NULL));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    for (int round = 0; round < 2; round++) {
        CHECK_OK(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL));
        CHECK_EQ(begun(logs[0], "one"), kinds & WEIR_TRACE_NVTX ? 1 : 0);
        CHECK_EQ(begun(logs[1], "one"), kinds & WEIR_TRACE_ITT ? 1 : 0);
        /* The host may say otherwise. */
        kinds = 0;
        CHECK_OK(weir_trace_use_markers(kinds));
        forget();
    }
    weir_program_release(program);
    weir_engine_release(engine);
    return 0;
}

/* This program once more, with the variables as they are now. It writes this line, or nothing. */
static void ask(char **argv, const char *value, const char *kinds, const char *line) {
    int ends[2], status = 0;
    char text[1024] = "", program[4096] = "";
    size_t length = 0;
    /* The link's text: under valgrind the link itself is valgrind. */
    CHECK(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    CHECK_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        (void)setenv("WEIR_TRACE_MARKERS", value, 1);
        execl(program, argv[0], argv[1], argv[2], kinds, (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    for (ssize_t more; (more = read(ends[0], text + length, sizeof text - 1 - length)) > 0;) length += (size_t)more;
    close(ends[0]);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_TEXT(text, line);
    CHECK_EQ(status, 0);
}

static void test_environment(char **argv) {
    CHECK_EQ(setenv("NVTX_INJECTION64_PATH", argv[1], 1) | setenv("INTEL_LIBITTNOTIFY64", argv[2], 1), 0);
    ask(argv, "", "0", "");
    ask(argv, "nvtx", "1", "");
    ask(argv, "itt", "2", "");
    ask(argv, "nvtx,itt", "3", "");
    const char *const within = "weir: there are no markers: the environment variable WEIR_TRACE_MARKERS is";
    char line[256];
    (void)snprintf(line, sizeof line, "%s 'itt,vtune': 'vtune' is unknown, expected nvtx, itt or nvtx,itt\n", within);
    ask(argv, "itt,vtune", "0", line);
    /* One that is not there takes the other one with it. */
    CHECK_EQ(setenv("NVTX_INJECTION64_PATH", "", 1), 0);
    (void)snprintf(line, sizeof line, "%s 'nvtx,itt': NVTX_INJECTION64_PATH is not set: %s\n", within,
        "a tool for NVTX (nsys profile) names there the library that takes its markers");
    ask(argv, "nvtx,itt", "0", line);
}

/* Before the tools are there. */
static void test_absent(char **tools) {
    CHECK_EQ(unsetenv("NVTX_INJECTION64_PATH") | unsetenv("INTEL_LIBITTNOTIFY64"), 0);
    CHECK_CODE(weir_trace_use_markers(WEIR_TRACE_NVTX), WEIR_NOT_FOUND, "NVTX_INJECTION64_PATH is not set");
    CHECK_CODE(weir_trace_use_markers(WEIR_TRACE_ITT), WEIR_NOT_FOUND, "INTEL_LIBITTNOTIFY64 is not set");
    CHECK_EQ(setenv("NVTX_INJECTION64_PATH", "/no/such/library.so", 1), 0);
    CHECK_EQ(setenv("INTEL_LIBITTNOTIFY64", tools[0], 1), 0);
    CHECK_CODE(weir_trace_use_markers(WEIR_TRACE_NVTX), WEIR_NOT_FOUND, "/no/such/library.so");
    CHECK_CODE(weir_trace_use_markers(WEIR_TRACE_ITT), WEIR_UNAVAILABLE, "has no __itt_api_init");
    CHECK_EQ(setenv("NVTX_INJECTION64_PATH", tools[1], 1), 0);
    CHECK_CODE(weir_trace_use_markers(WEIR_TRACE_NVTX), WEIR_UNAVAILABLE, "has no InitializeInjectionNvtx2");
    CHECK_EQ(setenv("NVTX_INJECTION64_PATH", tools[0], 1), 0);
    CHECK_EQ(setenv("INTEL_LIBITTNOTIFY64", tools[1], 1), 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 3 || argc == 4);
    if (argc == 3) test_environment(argv);
    const weir_runtime_info before = runtime_info();
    if (argc == 3) test_absent(argv + 1);
    for (int i = 0; i < 2; i++) {
        void *tool = dlopen(argv[1 + i], RTLD_NOW);
        CHECK(tool != NULL);
        logs[i] = dlsym(tool, "told_markers");
        CHECK(logs[i] != NULL);
        if (i == 1) *(void **)&collect_markers = dlsym(tool, "collect_markers");
    }
    if (argc == 4) return test_asked((uint32_t)atoi(argv[3]));
    test_switches();
    finisher_start();
    only_once = 1;
    test_on(NULL);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        weir_threadpool *pool = NULL;
        if (kind == POOL_LATE) continue;
        test_pool *of = test_pool_create(kind, 2, &pool);
        test_on(pool);
        weir_threadpool_release(pool);
        test_pool_destroy(of);
    }
    CHECK_OK(weir_trace_use_markers(0));
    finisher_stop();
    check_released(&before);
    return 0;
}
