/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   trace_files <folder> <case>...
 *
 * Writes traces in all formats, <folder>/<case>.<format>, for readers of these formats (scripts/trace_readers.py):
 *
 *   trace   nodes at once on three threads, a stream, spans of the host's own, and names that would break a page or a
 *           JSON that took them as they are
 *   loops   a loop in a loop
 *   region  a kernel whose loop threads share
 *   failed  a run that fails, one that is cancelled, and one that ends well
 *   marks   marks and spans of two threads of the host, in one another
 *   full    rings that are too small, and keep what came first
 *   last    rings that are too small, and keep what came last
 *   open    spans that have no end
 *   node    one run of one node
 *   one     one span of the host's
 *   none    nothing
 *   many    210,000 spans, as a page and its numbers only
 */

#include <pthread.h>
#include <stdio.h>
#include <weir/control.h>
#include <weir/trace.h>

#include "make.h"

/* Names that a page or a JSON would take for something else. */
static const char *const weird[] = {"</script><script>alert(1)</script>", "a \"quoted\" \\ name", "<!-- & &amp; -->",
    "tabs\tand\nlines", "\xc3\xa9t\xc3\xa9 \xe6\xb0\xb4", "{{analysis}}", "</script><b>"};
enum { WEIRD = sizeof weird / sizeof *weird };

static uint32_t intern(const char *name) {
    uint32_t number;
    CHECK_OK(weir_trace_intern(name, &number));
    return number;
}

static void spend(uint64_t ns) {
    const uint64_t until = now_ns() + ns;
    while (now_ns() < until) {
    }
}

static weir_threadpool *make_pool(int32_t threads) {
    weir_threadpool *pool = NULL;
    const weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = threads};
    CHECK_OK(weir_threadpool_create_builtin(&options, &pool));
    return pool;
}

static weir_node add(weir_graph *graph, const char *name, weir_host_fn task, void *arg, uint64_t cost_ns) {
    weir_node node;
    CHECK_OK(weir_graph_add_task(graph, name, task, arg, NULL, cost_ns, &node));
    return node;
}

static void run(weir_program *program, weir_stream *stream) {
    CHECK_OK(weir_program_run(program, stream, NULL, 0, NULL, 0, NULL));
    if (stream != NULL) CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
}

/* ---- trace ---- */

static uint64_t lengths[] = {100000, 200000, 400000};

static int32_t busy(void *arg) {
    CHECK_OK(weir_trace_span_begin(intern("a span of the host's")));
    spend(*(const uint64_t *)arg);
    weir_trace_span_end();
    return WEIR_OK;
}

/* Two nodes that wait for each other, so that two threads have nodes; not for ever. */
static atomic_int met;

static int32_t meet(void *arg) {
    (void)arg;
    const int pair = atomic_fetch_add(&met, 1) / 2;
    for (const uint64_t until = now_ns() + 2000000000u; atomic_load(&met) < 2 * pair + 2 && now_ns() < until;) {
    }
    return busy(&lengths[0]);
}

static void write_trace(void) {
    enum { RUNS = 20 };
    weir_threadpool *pool = make_pool(3);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "a <b>stream</b>");
    weir_graph *graph = make_graph("a program of <i>threads</i>");
    const weir_node first = add(graph, "first", busy, &lengths[0], lengths[0]);
    const weir_node last = add(graph, "last", busy, &lengths[0], lengths[0]);
    for (int i = 0; i < WEIRD + 2; i++) {
        uint64_t *length = &lengths[1 + i % 2];
        const weir_node node = i < WEIRD ? add(graph, weird[i], busy, length, *length)
                                         : add(graph, i == WEIRD ? "one side" : "other side", meet, NULL, lengths[2]);
        CHECK_OK(weir_graph_add_control_edge(graph, first, node));
        CHECK_OK(weir_graph_add_control_edge(graph, node, last));
    }
    /* No run is tried on one thread. */
    const weir_compile_options shared = {.struct_size = sizeof shared, .hop_ns = 1000};
    weir_program *program = NULL;
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &shared, &program));
    weir_graph_destroy(graph);
    for (int i = 0; i < RUNS; i++) run(program, i % 2 == 0 ? NULL : stream);
    weir_program_release(program);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
}

/* ---- loops ---- */

static const weir_tensor_desc number = {.dtype = WEIR_S32, .rank = 1, .dims = {1}};

typedef int32_t (*function)(int32_t a, int32_t b);

static int32_t is_positive(int32_t a, int32_t b) {
    (void)b;
    return a > 0;
}
static int32_t less(int32_t a, int32_t b) {
    (void)b;
    return a - 1;
}
static int32_t less_sum(int32_t a, int32_t b) {
    return a + b - 1;
}
static function functions[] = {is_positive, less, less_sum};
enum { IS_POSITIVE, LESS, LESS_SUM };

static int32_t compute(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    const int32_t *a = in[0].data, *b = in[num_in - 1].data;
    *(int32_t *)out->data = (*(function *)user)(*a, *b);
    return WEIR_OK;
}

static weir_value input(weir_graph *graph, const char *name) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_input(graph, name, &number, &value));
    return value;
}

static weir_value apply(weir_engine *engine, weir_graph *graph, const char *name, int which, const weir_value *inputs,
                        size_t num_inputs) {
    const weir_tensor_desc numbers[] = {number, number};
    weir_host_kernel_desc desc = make_kernel_desc(name, compute, &functions[which]);
    desc.num_inputs = num_inputs;
    desc.inputs = numbers;
    desc.num_outputs = 1;
    desc.outputs = &number;
    weir_kernel *kernel = NULL;
    weir_value value = 0;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, inputs, num_inputs, &value, 1, NULL));
    weir_kernel_release(kernel);
    return value;
}

/* A graph of one kernel, whose inputs are a variable and, if there are two, an invariant. */
static weir_graph *make_step(weir_engine *engine, const char *name, int which, int num_inputs) {
    weir_graph *graph = make_graph(name);
    const weir_value value = input(graph, "x");
    if (num_inputs == 2) (void)input(graph, "times");
    CHECK_OK(weir_graph_add_output(graph, "y", apply(engine, graph, name, which, &value, 1)));
    return graph;
}

static weir_value add_while(weir_graph *graph, const char *name, const weir_graph *condition, const weir_graph *body,
                            weir_value variable, const weir_value *invariant) {
    const weir_while_desc desc = {.struct_size = sizeof desc, .cond_graph = condition, .body_graph = body,
        .variables = &variable, .num_variables = 1, .invariants = invariant, .num_invariants = invariant != NULL};
    weir_value last = 0;
    CHECK_OK(weir_graph_add_while(graph, name, &desc, &last, NULL));
    return last;
}

/* As often as x says, an inner loop of as many iterations as `times` says. */
static void write_loops(void) {
    enum { OUTER = 40, INNER = 5, RUNS = 3 };
    weir_engine *engine = make_engine(NULL);
    weir_graph *inner_condition = make_step(engine, "more inside", IS_POSITIVE, 1);
    weir_graph *inner_body = make_step(engine, "less inside", LESS, 1);
    weir_graph *condition = make_step(engine, "more", IS_POSITIVE, 2);
    weir_graph *body = make_graph("body"), *graph = make_graph("loops");
    weir_value both[] = {input(body, "x"), input(body, "times")};
    both[1] = add_while(body, "inner", inner_condition, inner_body, both[1], NULL);
    CHECK_OK(weir_graph_add_output(body, "x", apply(engine, body, "less", LESS_SUM, both, 2)));
    const weir_value x = input(graph, "x"), times = input(graph, "times");
    CHECK_OK(weir_graph_add_output(graph, "zero", add_while(graph, "outer", condition, body, x, &times)));
    weir_program *program = compile(graph, engine);
    weir_graph *graphs[] = {inner_condition, inner_body, condition, body, graph};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) weir_graph_destroy(graphs[i]);
    weir_tensor *in[] = {make_tensor(engine, number), make_tensor(engine, number)}, *out = make_tensor(engine, number);
    void *data[2];
    for (int i = 0; i < 2; i++) CHECK_OK(weir_tensor_get_data(in[i], &data[i]));
    *(int32_t *)data[0] = OUTER;
    *(int32_t *)data[1] = INNER;
    for (int i = 0; i < RUNS; i++) CHECK_OK(weir_program_run(program, NULL, in, 2, &out, 1, NULL));
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_tensor_release(out);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* ---- region ---- */

static int32_t spend_range(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg, (void)slot;
    spend((uint64_t)(end - begin) * 20000);
    return WEIR_OK;
}

static int32_t share(void *user, weir_kernel_context *context) {
    const weir_parallel_hint hint = {.struct_size = sizeof hint, .cost_ns = 20000};
    return weir_kernel_context_parallel_for(context, 64, &hint, spend_range, user);
}

static void write_region(void) {
    weir_threadpool *pool = make_pool(3);
    weir_engine *engine = make_engine(pool);
    weir_kernel *kernel = make_unary_kernel(engine, "shared", share, NULL, &number);
    weir_graph *graph = make_graph("region");
    const weir_value in = input(graph, "x");
    weir_value out = 0;
    CHECK_OK(weir_graph_add_kernel(graph, "shared", kernel, &in, 1, &out, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", out));
    weir_program *program = compile(graph, engine);
    weir_kernel_release(kernel);
    weir_graph_destroy(graph);
    weir_tensor *x = make_tensor(engine, number), *y = make_tensor(engine, number);
    for (int i = 0; i < 3; i++) CHECK_OK(weir_program_run(program, NULL, &x, 1, &y, 1, NULL));
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_program_release(program);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
}

/* ---- failed ---- */

typedef enum end { WELL, FAILING, HELD } end;

static gate held;
static end how;

static int32_t end_so(void *arg) {
    (void)arg;
    return how == HELD ? pass_gate(&held) : how == FAILING ? WEIR_DATA_LOSS : WEIR_OK;
}

static void write_failed(void) {
    weir_threadpool *pool = make_pool(2);
    weir_engine *engine = make_engine(pool);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "fails");
    weir_graph *graph = make_graph("fails");
    const weir_node before = add(graph, "before", busy, &lengths[0], lengths[0]);
    const weir_node breaks = add(graph, "breaks", end_so, NULL, lengths[0]);
    const weir_node after = add(graph, "after", busy, &lengths[0], lengths[0]);
    CHECK_OK(weir_graph_add_control_edge(graph, before, breaks));
    CHECK_OK(weir_graph_add_control_edge(graph, breaks, after));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    how = WELL;
    run(program, NULL);
    how = FAILING;
    CHECK_CODE(weir_program_run(program, NULL, NULL, 0, NULL, 0, NULL), WEIR_DATA_LOSS, "breaks");
    how = HELD;
    weir_run *cancelled = NULL;
    CHECK_OK(weir_program_start(program, stream, NULL, 0, NULL, 0, NULL, &cancelled));
    EVENTUALLY(atomic_load(&held.begun) == 1);
    CHECK_OK(weir_run_cancel(cancelled));
    open_gate(&held);
    CHECK_CODE(weir_run_synchronize(cancelled, WEIR_TIMEOUT_INFINITE), WEIR_CANCELLED, NULL);
    weir_run_release(cancelled);
    weir_program_release(program);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
}

/* ---- marks, open, one ---- */

static void *mark(void *arg) {
    (void)arg;
    for (uint64_t round = 0; round < 5; round++) {
        for (int i = 0; i < WEIRD; i++) {
            CHECK_OK(weir_trace_span_begin(intern(weird[i])));
            CHECK_OK(weir_trace_mark(intern(weird[WEIRD - 1 - i]), round));
        }
        for (int i = 0; i < WEIRD; i++) weir_trace_span_end();
    }
    return NULL;
}

static void write_marks(void) {
    pthread_t other;
    CHECK(pthread_create(&other, NULL, mark, NULL) == 0);
    mark(NULL);
    CHECK(pthread_join(other, NULL) == 0);
}

static void write_open(void) {
    CHECK_OK(weir_trace_span_begin(intern("not over")));
    write_marks();
    CHECK_OK(weir_trace_span_begin(intern("not over either")));
    CHECK_OK(weir_trace_mark(intern("last"), 1));
}

static void write_one(void) {
    CHECK_OK(weir_trace_span_begin(intern("the only one")));
    spend(lengths[0]);
    weir_trace_span_end();
}

/* ---- node, full, last, many ---- */

static int32_t nothing(void *arg) {
    (void)arg;
    return WEIR_OK;
}

static void run_chain(int length, int runs, weir_host_fn task) {
    weir_engine *engine = make_engine(NULL);
    weir_graph *graph = make_graph("chain");
    weir_node before = {0};
    for (int i = 0; i < length; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "step %d", i);
        const weir_node node = add(graph, name, task, &lengths[0], 0);
        if (i > 0) CHECK_OK(weir_graph_add_control_edge(graph, before, node));
        before = node;
    }
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    for (int i = 0; i < runs; i++) run(program, NULL);
    weir_program_release(program);
    weir_engine_release(engine);
}

static void write_node(void) {
    run_chain(1, 1, busy);
}

static void write_too_much(void) {
    run_chain(6, 40, nothing);
}

static void write_many(void) {
    run_chain(20, 10000, nothing);
}

static void write_none(void) {
}

static const struct trace_case {
    const char *name;
    void (*write)(void);
    size_t records;
    uint64_t flags;
} cases[] = {{"trace", write_trace, 0, 0}, {"loops", write_loops, 0, 0}, {"region", write_region, 0, 0},
    {"failed", write_failed, 0, 0}, {"marks", write_marks, 0, 0}, {"full", write_too_much, 128, 0},
    {"last", write_too_much, 128, WEIR_TRACE_KEEP_LAST}, {"open", write_open, 0, 0}, {"node", write_node, 0, 0},
    {"one", write_one, 0, 0}, {"none", write_none, 0, 0}, {"many", write_many, 1 << 19, 0}};

static const struct {
    const char *name;
    weir_trace_format format;
} formats[] = {{"html", WEIR_TRACE_HTML}, {"json", WEIR_TRACE_JSON}, {"perfetto", WEIR_TRACE_PERFETTO},
    {"chrome", WEIR_TRACE_CHROME}, {"folded", WEIR_TRACE_FOLDED}, {"pprof", WEIR_TRACE_PPROF},
    {"report", WEIR_TRACE_REPORT}};

static void write_case(const char *folder, const struct trace_case *written) {
    const weir_trace_options options = {.struct_size = sizeof options, .flags = written->flags,
        .records_per_thread = written->records};
    weir_trace *trace = NULL;
    CHECK_OK(weir_trace_start(&options, &trace));
    written->write();
    CHECK_OK(weir_trace_stop(trace));
    for (size_t i = 0; i < (written->write == write_many ? 2 : sizeof formats / sizeof *formats); i++) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/%s.%s", folder, written->name, formats[i].name);
        CHECK_OK(weir_trace_save(trace, path, formats[i].format));
    }
    weir_trace_release(trace);
}

int main(int argc, char **argv) {
    CHECK(argc > 2);
    for (int i = 2; i < argc; i++) {
        size_t at = 0;
        while (at < sizeof cases / sizeof *cases && strcmp(cases[at].name, argv[i]) != 0) at++;
        CHECK(at < sizeof cases / sizeof *cases);
        write_case(argv[1], &cases[at]);
    }
    return 0;
}
