/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Runs that compute a part of a program's outputs: a model with a prediction and a loss, of which the loss alone needs
 * labels.
 */

#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

enum { WIDTH = 16, PREDICTION = 0, LOSS = 1, NORM = 2 };

/* How often each node was run. */
typedef struct model {
    weir_engine *engine;
    weir_program *program;
    weir_tensor *x, *labels, *outs[3];
    atomic_int features, prediction, loss, norm, logged, checked, destroyed;
    atomic_int fails;
} model;

typedef struct op {
    atomic_int *calls, *fails;
} op;

/* out = the inputs' sum, plus one; counted. */
static int32_t sum_and_one(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *result = NULL;
    size_t num_in = 0, num_out = 0;
    op *o = user;
    atomic_fetch_add(o->calls, 1);
    if (atomic_load(o->fails)) return WEIR_DATA_LOSS;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &result, &num_out));
    for (int k = 0; k < WIDTH; k++) {
        float sum = 1;
        for (size_t i = 0; i < num_in; i++) sum += ((const float *)in[i].data)[k];
        ((float *)result[0].data)[k] = sum;
    }
    return WEIR_OK;
}

static void free_op(void *user) {
    free(user);
}

static weir_value add_op(model *m, weir_graph *graph, const char *name, weir_value *in, size_t num_in, atomic_int *calls,
                         weir_node *node) {
    weir_tensor_desc desc = vector_desc(WIDTH), descs[2] = {desc, desc};
    op *o = malloc(sizeof *o);
    CHECK(o != NULL);
    *o = (op){calls, &m->fails};
    weir_host_kernel_desc kernel_desc = make_kernel_desc(name, sum_and_one, o);
    weir_kernel *kernel = NULL;
    weir_value out;
    kernel_desc.destroy = free_op;
    kernel_desc.inputs = descs;
    kernel_desc.num_inputs = num_in;
    kernel_desc.outputs = &desc;
    kernel_desc.num_outputs = 1;
    CHECK_OK(weir_kernel_create_host(m->engine, &kernel_desc, &kernel));
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, in, num_in, &out, 1, node));
    weir_kernel_release(kernel);
    return out;
}

/* x -> features -> prediction; features, labels -> loss; features -> norm; a task that logs, and one that the norm
 * waits for. */
static void model_create(model *m, weir_threadpool *pool, size_t lists) {
    weir_tensor_desc desc = vector_desc(WIDTH);
    weir_graph *graph = make_graph("model");
    const weir_compile_options options = {
        .struct_size = sizeof options, .partial_runs = lists, .flags = WEIR_COMPILE_STATISTICS};
    weir_value in[2], features[2], out;
    weir_node norm, log, check, feature;
    memset(m, 0, sizeof *m);
    m->engine = make_engine(pool);
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &in[0]));
    CHECK_OK(weir_graph_add_input(graph, "labels", &desc, &in[1]));
    features[0] = add_op(m, graph, "features", &in[0], 1, &m->features, &feature);
    features[1] = in[1];
    out = add_op(m, graph, "prediction", features, 1, &m->prediction, NULL);
    CHECK_OK(weir_graph_add_output(graph, "prediction", out));
    out = add_op(m, graph, "loss", features, 2, &m->loss, NULL);
    CHECK_OK(weir_graph_add_output(graph, "loss", out));
    out = add_op(m, graph, "norm", features, 1, &m->norm, &norm);
    CHECK_OK(weir_graph_add_output(graph, "norm", out));
    CHECK_OK(weir_graph_add_task(graph, "log", count_run, &m->logged, NULL, 0, &log));
    CHECK_OK(weir_graph_add_task(graph, "check", count_run, &m->checked, count_destroy, 0, &check));
    CHECK_OK(weir_graph_add_control_edge(graph, feature, log));
    CHECK_OK(weir_graph_add_control_edge(graph, check, norm));
    CHECK_OK(weir_graph_compile(graph, &m->engine, 1, &options, &m->program));
    weir_graph_destroy(graph);
    m->x = make_tensor(m->engine, desc);
    m->labels = make_tensor(m->engine, desc);
    for (int i = 0; i < 3; i++) m->outs[i] = make_tensor(m->engine, desc);
    fill(m->x, 1);
    fill(m->labels, 2);
}

static void model_destroy(model *m) {
    const int before = atomic_load(&m->checked);
    weir_program_release(m->program);
    weir_tensor_release(m->x);
    weir_tensor_release(m->labels);
    for (int i = 0; i < 3; i++) weir_tensor_release(m->outs[i]);
    weir_engine_release(m->engine);
    /* The thread of the last run lets go of the program a moment after the run is over: once, though several programs
     * had the task. */
    EVENTUALLY(atomic_load(&m->checked) == before + 1);
}

static void check_output(model *m, int which) {
    for (int k = 0; k < WIDTH; k++) {
        float label = which == LOSS ? floats(m->labels)[k] : 0;
        CHECK(floats(m->outs[which])[k] == floats(m->x)[k] + label + 2);
        floats(m->outs[which])[k] = -99;
    }
}

static void check_counts(model *m, int features, int prediction, int loss, int norm, int logged, int checked) {
    CHECK_EQ(atomic_exchange(&m->features, 0), features);
    CHECK_EQ(atomic_exchange(&m->prediction, 0), prediction);
    CHECK_EQ(atomic_exchange(&m->loss, 0), loss);
    CHECK_EQ(atomic_exchange(&m->norm, 0), norm);
    CHECK_EQ(atomic_exchange(&m->logged, 0), logged);
    CHECK_EQ(atomic_exchange(&m->checked, 0), checked);
}

static const size_t of_prediction[] = {PREDICTION}, of_loss[] = {LOSS}, of_two[] = {NORM, PREDICTION};
static const weir_run_options predict = {.struct_size = sizeof predict, .outputs = of_prediction, .num_outputs = 1};
static const weir_run_options loss = {.struct_size = sizeof loss, .outputs = of_loss, .num_outputs = 1};
static const weir_run_options two = {.struct_size = sizeof two, .outputs = of_two, .num_outputs = 2};

static void run_on(model *m, weir_stream *stream, weir_tensor **in, weir_tensor **out, size_t count,
                   const weir_run_options *options) {
    CHECK_OK(weir_program_run(m->program, stream, in, 2, out, count, options));
    if (stream != NULL) CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
}

static void test_fetches(weir_threadpool *pool) {
    model m;
    model_create(&m, pool, 4);
    weir_stream *streams[3] = {NULL, make_stream(m.engine, WEIR_STREAM_DEFAULT, NULL, NULL),
                               make_stream(m.engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL)};
    weir_tensor *both[2] = {m.x, m.labels}, *no_labels[2] = {m.x, NULL}, *pair[2] = {m.outs[NORM], m.outs[PREDICTION]};
    for (int i = 0; i < scale(60); i++) {
        weir_stream *stream = streams[i % 3];
        run_on(&m, stream, both, m.outs, 3, NULL);
        for (int k = 0; k < 3; k++) check_output(&m, k);
        check_counts(&m, 1, 1, 1, 1, 1, 1);

        run_on(&m, stream, no_labels, &m.outs[PREDICTION], 1, &predict);
        check_output(&m, PREDICTION);
        check_counts(&m, 1, 1, 0, 0, 0, 0);

        run_on(&m, stream, both, &m.outs[LOSS], 1, &loss);
        check_output(&m, LOSS);
        check_counts(&m, 1, 0, 1, 0, 0, 0);

        /* In the order of the list; and what the norm waits for is run. */
        run_on(&m, stream, no_labels, pair, 2, &two);
        check_output(&m, NORM);
        check_output(&m, PREDICTION);
        check_counts(&m, 1, 1, 0, 1, 0, 1);
    }
    /* With a handle. */
    weir_run *run = NULL;
    CHECK_OK(weir_program_start(m.program, streams[2], no_labels, 2, pair, 2, &two, &run));
    CHECK_OK(weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE));
    weir_run_release(run);
    check_output(&m, NORM);
    check_counts(&m, 1, 1, 0, 1, 0, 1);

    /* Counters and figures are of all runs. */
    weir_program_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_program_get_info(m.program, &info));
    CHECK_EQ(info.ended, 4 * (uint64_t)scale(60) + 1);
    CHECK_EQ(info.running, 0);
    char report[4096];
    CHECK_OK(weir_program_report(m.program, WEIR_REPORT_JSON, report, sizeof report, NULL));
    CHECK_TEXT(report, "\"partial_runs\":[");
    CHECK_TEXT(report, "{\"outputs\":[2,0],\"nodes\":4,");
    CHECK_TEXT(report, "{\"outputs\":[0],\"nodes\":2,");
    CHECK_OK(weir_program_report(m.program, WEIR_REPORT_TEXT, report, sizeof report, NULL));
    CHECK_TEXT(report, "4 nodes for outputs [2, 0]");

    weir_stream_release(streams[1]);
    weir_stream_release(streams[2]);
    model_destroy(&m);
    CHECK_EQ(atomic_load(&m.checked), 1);
}

static void test_errors(void) {
    model m, without;
    model_create(&m, NULL, 1);
    model_create(&without, NULL, 0);
    const size_t beyond[] = {LOSS, 3}, again[] = {0, 2, 0};
    const weir_run_options far = {.struct_size = sizeof far, .outputs = beyond, .num_outputs = 2};
    const weir_run_options twice = {.struct_size = sizeof twice, .outputs = again, .num_outputs = 3};
    weir_tensor *no_labels[2] = {m.x, NULL}, *both[2] = {m.x, m.labels};
    CHECK_CODE(weir_program_run(m.program, NULL, both, 2, m.outs, 3, &twice), WEIR_INVALID_ARGUMENT,
               "options->outputs has 0 twice");
    CHECK_CODE(weir_program_run(without.program, NULL, no_labels, 2, m.outs, 1, &predict), WEIR_FAILED_PRECONDITION,
               "program 'model' was compiled without partial runs");
    CHECK_CODE(weir_program_run(m.program, NULL, both, 2, m.outs, 2, &far), WEIR_OUT_OF_RANGE,
               "options->outputs[1] is 3, the program has 3 outputs");
    CHECK_CODE(weir_program_run(m.program, NULL, both, 2, m.outs, 3, &predict), WEIR_INVALID_ARGUMENT,
               "expected 1 outputs, got 3");
    CHECK_CODE(weir_program_run(m.program, NULL, no_labels, 2, &m.outs[LOSS], 1, &loss), WEIR_INVALID_ARGUMENT,
               "inputs[1] is NULL");
    CHECK_CODE(weir_program_run(m.program, NULL, no_labels, 2, m.outs, 3, NULL), WEIR_INVALID_ARGUMENT,
               "inputs[1] is NULL");
    CHECK_CODE(weir_program_run(m.program, NULL, no_labels, 2, &m.x, 1, &predict), WEIR_INVALID_ARGUMENT,
               "output 0 shares memory with input 0");
    check_counts(&m, 0, 0, 0, 0, 0, 0);

    /* A failure names the node, and what was not run is of the part. */
    atomic_store(&m.fails, 1);
    CHECK_CODE(weir_program_run(m.program, NULL, no_labels, 2, m.outs, 1, &predict), WEIR_DATA_LOSS, "node 'features'");
    weir_failure failure = {.struct_size = sizeof failure};
    CHECK_OK(weir_thread_get_failure(&failure));
    CHECK_EQ(failure.num_not_run, 1);
    atomic_store(&m.fails, 0);
    CHECK_OK(weir_program_run(m.program, NULL, no_labels, 2, m.outs, 1, &predict));
    check_output(&m, PREDICTION);

    /* No list is all outputs. */
    const weir_run_options all = {.struct_size = sizeof all};
    CHECK_OK(weir_program_run(m.program, NULL, both, 2, m.outs, 3, &all));
    weir_compile_options kept = {.struct_size = sizeof kept};
    CHECK_OK(weir_program_get_options(m.program, &kept));
    CHECK(kept.partial_runs == 1 && kept.flags == WEIR_COMPILE_STATISTICS);
    model_destroy(&m);
    model_destroy(&without);
}

/* From the second run with a list on the library asks for no memory. */
static void test_no_allocations(weir_threadpool *pool, uint64_t flags) {
    model m;
    model_create(&m, pool, 2);
    weir_stream *stream = make_stream(m.engine, flags, NULL, NULL);
    const weir_run_options *lists[2] = {&predict, &two};
    weir_tensor *in[2] = {m.x, NULL};
    for (int round = 0; round < 1 + scale(100); round++) {
        uint64_t before = runtime_info().allocations;
        for (size_t i = 0; i < 2; i++) run_on(&m, stream, in, m.outs, i + 1, lists[i]);
        if (round > 0) CHECK_EQ(runtime_info().allocations, before);
    }
    weir_stream_release(stream);
    model_destroy(&m);
}

int main(void) {
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    test_fetches(NULL);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        if (kind == POOL_LATE) continue;
        test_pool *of = test_pool_create(kind, 2, &pool);
        test_fetches(pool);
        weir_threadpool_release(pool);
        test_pool_destroy(of);
    }
    test_errors();
    test_pool *of = test_pool_create(POOL_FIFO, 2, &pool);
    test_no_allocations(NULL, WEIR_STREAM_DEFAULT);
    test_no_allocations(pool, WEIR_STREAM_ASYNCHRONOUS);
    weir_threadpool_release(pool);
    test_pool_destroy(of);
    check_released(&before);
    puts("ok");
    return 0;
}
