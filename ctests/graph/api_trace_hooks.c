/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Hooks are told of all that runs: each node has one beginning and one end, in one thread, well nested; on every kind
 * of pool, with loops, conds, nested programs, regions, nodes that complete later, failures and cancels.
 */

#include "later.h"
#include "traced_programs.h"

/* Spans of a category, which are those lines of the text that are no instants. Takes the text apart. */
static long spans(const text *of, const char *is_of) {
    long count = 0;
    for (char *line = strtok(of->data, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strstr(line, is_of) != NULL && strstr(line, "\"ph\":\"X\"") != NULL) count++;
    }
    return count;
}

static long regions;

/* The nodes that the bodies, the hooks and a trace have counted are the same ones. */
static void test_counts(weir_threadpool *pool) {
    weir_engine *engine = make_engine(pool);
    weir_stream *streams[2] = {NULL, make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL)};
    weir_tensor *in = make_tensor(engine, number), *out[OUTPUTS];
    make_feed(engine, in, out, TURNS);
    for (int32_t parallel = 1; parallel <= 3; parallel += 2) {
        weir_program *program = make_program(engine, parallel);
        static tracer t;
        weir_trace *trace = NULL;
        const int rounds = scale(20);
        for (int i = 0; i < MOST_NAMES; i++) atomic_store(&ran[i], 0);
        begin(&t);
        CHECK_OK(weir_trace_start(NULL, &trace));
        for (int s = 0; s < 2; s++) {
            for (int i = 0; i < rounds; i++) {
                CHECK_OK(weir_program_run(program, streams[s], &in, 1, out, OUTPUTS, NULL));
            }
            if (s > 0) CHECK_OK(weir_stream_synchronize(streams[s], WEIR_TIMEOUT_INFINITE));
        }
        CHECK_OK(weir_trace_stop(trace));
        end(&t);
        text told = {NULL, 0};
        CHECK_OK(weir_trace_save_to(trace, WEIR_TRACE_CHROME, collect, &told));
        weir_trace_release(trace);
        CHECK_EQ(t.runs, 2 * 2 * rounds);
        CHECK_EQ(t.ok, t.runs);
        CHECK_EQ(t.inside, 2 * rounds);
        CHECK_EQ(ran[0], 2 * rounds * WIDE);
        CHECK_EQ(ran[1], 2 * rounds * (TURNS + 1));
        CHECK_EQ(ran[2], 2 * rounds * TURNS);
        for (int i = 0; i < 6; i++) CHECK_EQ(t.named[i], ran[i]);
        CHECK_EQ(t.named['h' - 'a'], 2 * rounds);
        CHECK(t.regions <= ran[3]);
        regions += t.regions;
        CHECK_EQ(t.failed_nodes, 0);
        CHECK_EQ(t.nodes + t.again, occurrences(told.data, "\"cat\":\"node\""));
        CHECK_EQ(t.regions + t.helps, occurrences(told.data, "\"cat\":\"region\""));
        free(told.data);
        weir_program_release(program);
    }
    weir_tensor_release(in);
    for (int i = 0; i < OUTPUTS; i++) weir_tensor_release(out[i]);
    weir_stream_release(streams[1]);
    weir_engine_release(engine);
}

static long parts;

/* Nodes that complete later, in every way; nested two deep, so that they have later parts. */
static void test_later(weir_threadpool *pool) {
    static const how ways[] = {INLINE, ELSEWHERE, RACING, REFUSED};
    weir_engine *engine = make_engine(pool);
    const weir_tensor_desc desc = vector_desc(WIDTH);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_tensor *in = make_tensor(engine, desc), *out[2] = {make_tensor(engine, desc), make_tensor(engine, desc)};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        later l = {.how = ways[way]};
        weir_kernel *kernel = make_later_kernel(engine, "later", &l);
        weir_program *program = NULL;
        static tracer t;
        const int rounds = scale(20), is_refused = ways[way] == REFUSED;
        for (int depth = 0; depth < 3; depth++) {
            weir_graph *graph = make_graph(depth == 0 ? "one" : depth == 1 ? "two" : "three");
            weir_value x, y[2];
            CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
            for (int i = 0; i < 2; i++) {
                const char *name = i == 0 ? "g" : "g too";
                if (depth == 0) CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &x, 1, y, 1, NULL));
                else CHECK_OK(weir_graph_add_program(graph, name, program, &x, 1, y, 2, NULL));
                CHECK_OK(weir_graph_add_output(graph, i == 0 ? "y" : "z", y[0]));
            }
            weir_program *outer = compile(graph, engine);
            weir_program_release(program);
            weir_graph_destroy(graph);
            program = outer;
        }
        weir_trace *trace = NULL;
        text told = {NULL, 0};
        /* Each completion of RACING is a thread; or one thread does all, if they are faster than the call they race. */
        const weir_trace_options many = {.struct_size = sizeof many, .threads = 256, .records_per_thread = 16384};
        begin(&t);
        CHECK_OK(weir_trace_start(&many, &trace));
        for (int i = 0; i < rounds; i++) {
            weir_stream *on = i % 2 == 0 ? NULL : stream;
            const weir_status status = weir_program_run(program, on, &in, 1, out, 2, NULL);
            const weir_status late = on != NULL ? weir_stream_synchronize(on, WEIR_TIMEOUT_INFINITE) : WEIR_OK;
            CHECK_EQ(on != NULL ? late : status, is_refused ? WEIR_UNAVAILABLE : WEIR_OK);
            if (on != NULL) CHECK_OK(weir_stream_clear_error(on));
        }
        /* A thread that completes a node may be in its part when the run is over, and so of no trace that ends then. */
        EVENTUALLY(atomic_load(&with_others) == 0);
        CHECK_OK(weir_trace_stop(trace));
        end(&t);
        CHECK_OK(weir_trace_save_to(trace, WEIR_TRACE_CHROME, collect, &told));
        weir_trace_release(trace);
        CHECK_EQ(t.nodes + t.again, spans(&told, "\"cat\":\"node\""));
        free(told.data);
        parts += t.again;
        if (is_refused) {
            CHECK(t.failed >= rounds && t.failed_nodes >= rounds);
        } else {
            CHECK_EQ(t.runs, rounds * 7);
            CHECK_EQ(t.ok, t.runs);
            CHECK_EQ(t.nodes, rounds * 14);
            CHECK_EQ(atomic_load(&l.begun), rounds * 8);
            CHECK_EQ(t.failed_nodes, 0);
        }
        weir_kernel_release(kernel);
        weir_program_release(program);
    }
    weir_tensor_release(in);
    weir_tensor_release(out[0]);
    weir_tensor_release(out[1]);
    weir_stream_release(stream);
    weir_engine_release(engine);
}

/* `is_threaded`: a run that waits leaves this thread alone. */
static void test_failures(weir_threadpool *pool, bool is_threaded) {
    weir_engine *engine = make_engine(pool);
    gate open = {.open = 1}, shut = {.open = 0};
    weir_program *failing = make_gated(engine, &open, 1), *waiting = make_gated(engine, &shut, 0);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    static tracer t;
    const weir_run_options independent = {.struct_size = sizeof independent, .flags = WEIR_RUN_FINISH_INDEPENDENT};
    begin(&t);
    for (int i = 0; i < 8; i++) {
        const weir_run_options *options = i % 2 == 0 ? NULL : &independent;
        CHECK_CODE(weir_program_run(failing, NULL, NULL, 0, NULL, 0, options), WEIR_DATA_LOSS, "'d'");
    }
    end(&t);
    CHECK_EQ(t.runs, 8);
    CHECK_EQ(t.failed, 8);
    CHECK_EQ(t.failed_nodes, 8);
    CHECK_EQ(t.named['d' - 'a'], 8);

    if (is_threaded) {
        weir_run *run = NULL;
        begin(&t);
        CHECK_OK(weir_program_start(waiting, stream, NULL, 0, NULL, 0, NULL, &run));
        EVENTUALLY(atomic_load(&shut.begun) > 0);
        CHECK_OK(weir_run_cancel(run));
        open_gate(&shut);
        CHECK_CODE(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE), WEIR_CANCELLED, "");
        weir_run_release(run);
        end(&t);
        CHECK_EQ(t.cancelled, 1);
        CHECK_EQ(t.nodes, 1);
        CHECK_EQ(t.failed_nodes, 0);
    }
    open_gate(&shut);
    begin(&t);
    const weir_run_options soon = {.struct_size = sizeof soon, .deadline_ns = 1};
    CHECK_CODE(weir_program_run(waiting, NULL, NULL, 0, NULL, 0, &soon), WEIR_DEADLINE_EXCEEDED, "");
    end(&t);
    CHECK(t.failed == t.runs && t.nodes == 0);
    weir_stream_release(stream);
    weir_program_release(failing);
    weir_program_release(waiting);
    weir_engine_release(engine);
}

int main(void) {
    const weir_runtime_info before = runtime_info();
    finisher_start();
    only_once = 1;
    test_counts(NULL);
    test_later(NULL);
    test_failures(NULL, true);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        weir_threadpool *pool = NULL;
        if (kind == POOL_LATE) continue;
        test_pool *of = test_pool_create(kind, 3, &pool);
        test_counts(pool);
        test_later(pool);
        test_failures(pool, pool_kind_is_threaded(test_pool_kind(of)));
        weir_threadpool_release(pool);
        test_pool_destroy(of);
    }
    finisher_stop();
    CHECK(regions > 0 && parts > 0);
    check_released(&before);
    return 0;
}
