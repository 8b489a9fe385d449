/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Ranks of MPI that differ, meet twice, stop and come late: each rank's call ends, with a text that says why.
 */

#include <signal.h>
#include <sys/types.h>

#include <weir/control.h>

#include "mpi_ranks.h"

#include "make.h"

#define LIMIT (UINT64_C(30) * 1000000000)

enum { CHAIN = 100, SHORT = 10, LONG = 1 << 18 };

static weir_comm *make_comm(const char *name, uint64_t flags, uint64_t limit_ns) {
    weir_comm_options options = {.struct_size = sizeof options, .name = name, .flags = flags, .limit_ns = limit_ns};
    weir_comm *comm = NULL;
    CHECK_OK(weir_mpi_comm_create(MPI_COMM_WORLD, &options, &comm));
    return comm;
}

static weir_value add_collective(weir_graph *graph, weir_engine *engine, weir_comm *comm, const char *name,
                                 weir_communication desc, weir_value x) {
    weir_kernel *kernel = NULL;
    weir_value y;
    desc.struct_size = sizeof desc;
    CHECK_OK(weir_kernel_create_communication(engine, comm, &desc, NULL, &kernel));
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &x, 1, &y, 1, NULL));
    weir_kernel_release(kernel);
    return y;
}

static weir_value add_unary(weir_graph *graph, weir_engine *engine, const char *name, weir_compute_fn compute,
                            void *user, weir_tensor_desc desc, weir_value x) {
    weir_kernel *kernel = make_unary_kernel(engine, name, compute, user, &desc);
    weir_value y;
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &x, 1, &y, 1, NULL));
    weir_kernel_release(kernel);
    return y;
}

static const weir_communication sum = {.op = WEIR_COMM_ALL_REDUCE};
static const weir_communication maximum = {.op = WEIR_COMM_ALL_REDUCE, .reduction = WEIR_COMM_MAX};

/* ---- Programs that differ ---------------------------------------------------------------------------------------- */

typedef enum mistake { NONE, SWAPPED, LEFT_OUT, OTHER_SIZE, MISTAKES } mistake;

/* A hundred collectives, each another one than the next. */
static weir_program *make_chain(weir_engine *engine, weir_comm *comm, mistake mistake, int place) {
    const weir_communication kinds[] = {sum, maximum, {.op = WEIR_COMM_BROADCAST, .peer = 1}};
    const weir_tensor_desc narrow = vector_desc(SHORT), wide = vector_desc(SHORT + 1);
    weir_graph *graph = make_graph("chain");
    weir_value x, other;
    CHECK_OK(weir_graph_add_input(graph, "x", &narrow, &x));
    CHECK_OK(weir_graph_add_input(graph, "wide", &wide, &other));
    for (int i = 0; i < CHAIN; i++) {
        int step = i;
        char name[16];
        if (mistake == LEFT_OUT && i == place) continue;
        if (mistake == SWAPPED && i == place) step = i + 1;
        if (mistake == SWAPPED && i == place + 1) step = i - 1;
        snprintf(name, sizeof name, "step %d", step);
        if (mistake == OTHER_SIZE && i == place) {
            add_collective(graph, engine, comm, name, kinds[step % 3], other);
        } else {
            x = add_collective(graph, engine, comm, name, kinds[step % 3], x);
        }
    }
    CHECK_OK(weir_graph_add_output(graph, "y", x));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

static void test_places(void) {
    weir_comm *comm = make_comm("chain", 0, LIMIT);
    weir_engine *engine = make_engine(NULL);
    weir_program *good = make_chain(engine, comm, NONE, 0);
    for (int m = SWAPPED; m < MISTAKES; m++) {
        for (int k = 0; k < CHAIN; k += is_slow() ? 9 : 1) {
            const int culprit = (k + m) % size;
            char text[64];
            if (m == SWAPPED && k == CHAIN - 1) continue;
            weir_program *bad = rank == culprit ? make_chain(engine, comm, (mistake)m, k) : NULL;
            meet();
            CHECK_CODE(weir_program_agree(bad != NULL ? bad : good, comm, LIMIT), WEIR_FAILED_PRECONDITION, "differ");
            snprintf(text, sizeof text, "collective %d: ", k + 1);
            CHECK_TEXT(weir_last_error_message(), text);
            snprintf(text, sizeof text, "node 'step %d'", k);
            CHECK_TEXT(weir_last_error_message(), text);
            if (size > 2) {
                snprintf(text, sizeof text, "rank %d has ", culprit);
                if (culprit != 0) CHECK_TEXT(weir_last_error_message(), text);
            }
            if (m == OTHER_SIZE) CHECK_TEXT(weir_last_error_message(), "f32[11]");
            if (m == LEFT_OUT && k == CHAIN - 1) CHECK_TEXT(weir_last_error_message(), "has no operation");
            weir_program_release(bad);
        }
    }
    /* Nothing has come of that: the ranks agree on the good one, and it runs. */
    weir_tensor *in[2] = {make_tensor(engine, vector_desc(SHORT)), make_tensor(engine, vector_desc(SHORT + 1))};
    weir_tensor *out = make_tensor(engine, vector_desc(SHORT));
    meet();
    CHECK_OK(weir_program_agree(good, comm, LIMIT));
    memset(floats(in[0]), 0, SHORT * sizeof(float));
    floats(in[0])[SHORT - 1] = 1;
    fill(in[1], 0);
    CHECK_OK(weir_program_run(good, NULL, in, 2, &out, 1, NULL));
    float expected = 1;
    for (int i = 0; i < CHAIN; i += 3) expected *= (float)size; /* powers of two, for as many ranks */
    CHECK(floats(out)[0] == 0);
    CHECK(floats(out)[SHORT - 1] == expected);
    weir_tensor_release(in[0]);
    weir_tensor_release(in[1]);
    weir_tensor_release(out);
    weir_program_release(good);
    weir_engine_release(engine);
    weir_comm_release(comm);
}

/* ---- Branches that only one rank takes --------------------------------------------------------------------------- */

static weir_graph *make_branch(weir_engine *engine, weir_comm *comm, const weir_communication *desc) {
    const weir_tensor_desc vector = vector_desc(SHORT);
    weir_graph *graph = make_graph("branch");
    weir_value x;
    CHECK_OK(weir_graph_add_input(graph, "x", &vector, &x));
    if (desc != NULL) x = add_collective(graph, engine, comm, "inside", *desc, x);
    CHECK_OK(weir_graph_add_output(graph, "y", x));
    return graph;
}

static void test_divergence(weir_threadpool *pool) {
    static const weir_communication broadcast = {.op = WEIR_COMM_BROADCAST, .peer = 0};
    static const weir_communication determined = {.op = WEIR_COMM_ALL_REDUCE, .reduction = WEIR_COMM_MAX,
                                                  .flags = WEIR_COMMUNICATION_DETERMINISTIC};
    /* What the rank that differs does instead of a sum of floats; and what stands in the texts. */
    const struct {
        const weir_communication *instead;
        const char *name;
    } trials[] = {{&maximum, "all_reduce of maxima f32[10]"},
                  {&broadcast, "broadcast f32[10]"},
                  {&determined, "all_reduce of maxima f32[10]"},
                  {NULL, "all_reduce of minima f32[10]"}}; /* the one behind the branch */
    const weir_communication minimum = {.op = WEIR_COMM_ALL_REDUCE, .reduction = WEIR_COMM_MIN};
    const weir_tensor_desc vector = vector_desc(SHORT), one = make_desc(WEIR_S32, 1, 1, 0, 0);
    weir_comm *base = make_comm("checked", WEIR_COMM_CHECKED, LIMIT);
    for (size_t t = 0; t < sizeof trials / sizeof *trials; t++) {
        const int culprit = (int)t % size;
        weir_comm *comm = NULL;
        CHECK_OK(weir_comm_duplicate(base, NULL, &comm));
        weir_engine *engine = make_engine(t % 2 == 0 ? NULL : pool);
        weir_graph *branches[2] = {make_branch(engine, comm, trials[t].instead), make_branch(engine, comm, &sum)};
        weir_graph *graph = make_graph("diverges");
        weir_cond_desc cond = {.struct_size = sizeof cond, .then_graph = branches[1], .else_graph = branches[0]};
        weir_comm_info info = {.struct_size = sizeof info};
        weir_value x, y;
        void *data = NULL;
        CHECK_OK(weir_graph_add_input(graph, "predicate", &one, &cond.predicate));
        CHECK_OK(weir_graph_add_input(graph, "x", &vector, &x));
        x = add_collective(graph, engine, comm, "before", sum, x);
        cond.inputs = &x;
        cond.num_inputs = 1;
        CHECK_OK(weir_graph_add_cond(graph, "branch", &cond, &y, 1, NULL));
        y = add_collective(graph, engine, comm, "behind", minimum, y);
        CHECK_OK(weir_graph_add_output(graph, "y", y));
        weir_program *program = compile(graph, engine);
        weir_tensor *in[2] = {make_tensor(engine, one), make_tensor(engine, vector)};
        weir_tensor *out = make_tensor(engine, vector);
        CHECK_OK(weir_tensor_get_data(in[0], &data));
        fill(in[1], rank);
        CHECK_OK(weir_program_agree(program, comm, LIMIT)); /* the programs are the same */
        *(int32_t *)data = 1;
        CHECK_OK(weir_program_run(program, NULL, in, 2, &out, 1, NULL));
        *(int32_t *)data = rank != culprit;
        meet();
        const uint64_t began = now_ns();
        CHECK(weir_program_run(program, NULL, in, 2, &out, 1, NULL) != WEIR_OK);
        CHECK(now_ns() - began < LIMIT / 2);
        CHECK_TEXT(weir_last_error_message(), "all_reduce f32[10]");
        CHECK_TEXT(weir_last_error_message(), trials[t].name);
        CHECK_OK(weir_comm_get_info(comm, &info));
        CHECK_EQ(info.dead, 1);
        meet();
        weir_tensor_release(in[0]);
        weir_tensor_release(in[1]);
        weir_tensor_release(out);
        weir_program_release(program);
        weir_graph_destroy(graph);
        weir_graph_destroy(branches[0]);
        weir_graph_destroy(branches[1]);
        weir_engine_release(engine);
        weir_comm_release(comm);
    }
    weir_comm_release(base);
}

/* ---- Two runs at once -------------------------------------------------------------------------------------------- */

static int32_t copy_behind_gate(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    memcpy(out->data, in->data, (size_t)in->desc.dims[0] * sizeof(float));
    return user == NULL ? WEIR_OK : pass_gate(user);
}

/* all_reduce, a gate, all_reduce */
static weir_program *make_gated(weir_engine *engine, weir_comm *comm, gate *g) {
    const weir_tensor_desc vector = vector_desc(SHORT);
    weir_graph *graph = make_graph("gated");
    weir_value x;
    CHECK_OK(weir_graph_add_input(graph, "x", &vector, &x));
    x = add_collective(graph, engine, comm, "first", sum, x);
    x = add_unary(graph, engine, "gate", copy_behind_gate, g, vector, x);
    x = add_collective(graph, engine, comm, "second", sum, x);
    CHECK_OK(weir_graph_add_output(graph, "y", x));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

/* The ranks' values i + 1 + rank, summed twice. */
static void put_number(weir_tensor *tensor, int number) {
    for (int i = 0; i < SHORT; i++) floats(tensor)[i] = (float)(number + i + rank);
}

static void check_number(const weir_tensor *tensor, int number) {
    for (int i = 0; i < SHORT; i++) {
        int once = 0;
        for (int r = 0; r < size; r++) once += number + i + r;
        CHECK(floats(tensor)[i] == (float)(once * size));
    }
}

static void test_runs_at_once(weir_threadpool *pool) {
    weir_comm *comms[2] = {make_comm("shared", 0, LIMIT), NULL};
    CHECK_OK(weir_comm_duplicate(comms[0], NULL, &comms[1]));
    weir_engine *engine = make_engine(pool);
    for (int round = 0; round < 5; round++) {
        gate gates[2] = {{.result = WEIR_OK}, {.result = WEIR_OK}};
        weir_program *programs[3] = {make_gated(engine, comms[0], &gates[0]), make_gated(engine, comms[1], &gates[1]),
                                     make_gated(engine, comms[0], NULL)};
        weir_stream *streams[2] = {NULL, NULL};
        weir_tensor *in[3], *out[3];
        weir_run *runs[2] = {NULL, NULL};
        int32_t pending = 0;
        for (int i = 0; i < 3; i++) {
            in[i] = make_tensor(engine, vector_desc(SHORT));
            out[i] = make_tensor(engine, vector_desc(SHORT));
            put_number(in[i], 100 * i + round);
        }
        for (int i = 0; i < 2; i++) {
            streams[i] = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
            CHECK_OK(weir_program_start(programs[i], streams[i], &in[i], 1, &out[i], 1, NULL, &runs[i]));
        }
        /* Both are under way, and have their first operations behind them. */
        while (atomic_load(&gates[0].begun) == 0 || atomic_load(&gates[1].begun) == 0) {
            CHECK_OK(weir_comm_progress(comms[0], 100000, &pending));
            CHECK_OK(weir_comm_progress(comms[1], 100000, &pending));
            sleep_ns(20000);
        }
        CHECK_CODE(weir_program_run(programs[2], NULL, &in[2], 1, &out[2], 1, NULL), WEIR_FAILED_PRECONDITION,
                   "is in use by another run");
        open_gate(&gates[round % 2]);
        open_gate(&gates[1 - round % 2]);
        for (int i = 0; i < 2; i++) {
            CHECK_OK(weir_run_synchronize(runs[i], UINT64_MAX));
            check_number(out[i], 100 * i + round);
        }
        /* Now it has its turn. */
        CHECK_OK(weir_program_run(programs[2], NULL, &in[2], 1, &out[2], 1, NULL));
        check_number(out[2], 200 + round);
        for (int i = 0; i < 3; i++) {
            weir_tensor_release(in[i]);
            weir_tensor_release(out[i]);
            weir_program_release(programs[i]);
        }
        for (int i = 0; i < 2; i++) {
            weir_run_release(runs[i]);
            weir_stream_release(streams[i]);
        }
    }
    weir_engine_release(engine);
    weir_comm_release(comms[0]);
    weir_comm_release(comms[1]);
}

/* ---- Iterations that overlap ------------------------------------------------------------------------------------- */

/* The counter, a number that goes up by itself, and the total of what all ranks have seen of it. */
enum { ITERATIONS = 40 };

static int32_t compute_less(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    *(int32_t *)out->data = *(const int32_t *)in->data < ITERATIONS;
    return WEIR_OK;
}

static int32_t compute_more(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    *(int32_t *)out->data = *(const int32_t *)in->data + 1;
    return WEIR_OK;
}

/* What the rank makes of the counter: the later the iteration, the sooner it is there. */
static int32_t compute_seen(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    const int32_t n = *(const int32_t *)in->data;
    if (n % 4 == rank % 4) sleep_ns((uint64_t)(4 - n % 4) * 50000);
    *(int32_t *)out->data = n * (rank + 1);
    return WEIR_OK;
}

static int32_t compute_total(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    /* Not a plain sum: their order counts. */
    *(int32_t *)out->data = (*(const int32_t *)in[0].data * 3 + *(const int32_t *)in[1].data) % 10007;
    return WEIR_OK;
}

static void test_iterations(weir_threadpool *pool, uint64_t flags) {
    const weir_tensor_desc one = make_desc(WEIR_S32, 1, 1, 0, 0), two[2] = {one, one};
    weir_comm *comm = make_comm("loop", flags, LIMIT);
    weir_engine *engine = make_engine(pool);
    weir_graph *graph = make_graph("loops"), *condition = make_graph("condition"), *body = make_graph("body");
    weir_value in[2], total[2], next, goes_on, variables[2], results[2];
    weir_host_kernel_desc desc = make_kernel_desc("total", compute_total, NULL);
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_graph_add_input(condition, "n", &one, &in[0]));
    CHECK_OK(weir_graph_add_input(condition, "total", &one, &in[1]));
    goes_on = add_unary(condition, engine, "less", compute_less, NULL, one, in[0]);
    CHECK_OK(weir_graph_add_output(condition, "goes on", goes_on));
    CHECK_OK(weir_graph_add_input(body, "n", &one, &in[0]));
    CHECK_OK(weir_graph_add_input(body, "total", &one, &total[0]));
    next = add_unary(body, engine, "more", compute_more, NULL, one, in[0]);
    total[1] = add_unary(body, engine, "seen", compute_seen, NULL, one, in[0]);
    total[1] = add_collective(body, engine, comm, "all", sum, total[1]);
    desc.num_inputs = 2;
    desc.inputs = two;
    desc.num_outputs = 1;
    desc.outputs = &one;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    CHECK_OK(weir_graph_add_kernel(body, "total of all", kernel, total, 2, &total[0], 1, NULL));
    weir_kernel_release(kernel);
    CHECK_OK(weir_graph_add_output(body, "n", next));
    CHECK_OK(weir_graph_add_output(body, "total", total[0]));
    CHECK_OK(weir_graph_add_input(graph, "n", &one, &variables[0]));
    CHECK_OK(weir_graph_add_input(graph, "total", &one, &variables[1]));
    weir_while_desc loop = {.struct_size = sizeof loop, .cond_graph = condition, .body_graph = body};
    loop.variables = variables;
    loop.num_variables = 2;
    loop.parallel_iterations = 4;
    CHECK_OK(weir_graph_add_while(graph, "loop", &loop, results, NULL));
    CHECK_OK(weir_graph_add_output(graph, "n", results[0]));
    CHECK_OK(weir_graph_add_output(graph, "total", results[1]));
    weir_program *program = compile(graph, engine);
    weir_tensor *given[2] = {make_tensor(engine, one), make_tensor(engine, one)};
    weir_tensor *got[2] = {make_tensor(engine, one), make_tensor(engine, one)};
    int32_t *data[4], expected = 7;
    for (int i = 0; i < 4; i++) {
        void *at = NULL;
        CHECK_OK(weir_tensor_get_data(i < 2 ? given[i] : got[i - 2], &at));
        data[i] = at;
    }
    for (int n = 0; n < ITERATIONS; n++) expected = (expected * 3 + n * (size * (size + 1) / 2)) % 10007;
    CHECK_OK(weir_program_agree(program, comm, LIMIT));
    for (int run = 0; run < 5; run++) {
        *data[0] = 0;
        *data[1] = 7;
        CHECK_OK(weir_program_run(program, NULL, given, 2, got, 2, NULL));
        CHECK_EQ(*data[2], ITERATIONS);
        CHECK_EQ(*data[3], expected);
    }
    for (int i = 0; i < 2; i++) {
        weir_tensor_release(given[i]);
        weir_tensor_release(got[i]);
    }
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    weir_engine_release(engine);
    weir_comm_release(comm);
}

/* ---- A rank that stops ------------------------------------------------------------------------------------------- */

/* Stops this process; a child wakes it after two seconds. */
static void stop_for_a_while(void) {
    const pid_t self = getpid(), child = fork();
    if (child == 0) {
        const struct timespec two = {.tv_sec = 2};
        nanosleep(&two, NULL);
        kill(self, SIGCONT);
        _exit(0);
    }
    CHECK(child > 0);
    CHECK_EQ(kill(self, SIGSTOP), 0);
}

static atomic_int stops;

/* y = x; the rank whose turn it is stops. */
static int32_t copy_and_stop(void *user, weir_kernel_context *context) {
    if (atomic_exchange(&stops, 0)) stop_for_a_while();
    return copy_behind_gate(NULL, context) == WEIR_OK && user == NULL ? WEIR_OK : WEIR_INTERNAL;
}

/* y = x + 1 */
static int32_t compute_plus_one(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    for (int64_t i = 0; i < in->desc.dims[0]; i++) ((float *)out->data)[i] = ((const float *)in->data)[i] + 1;
    return WEIR_OK;
}

enum { LAYERS = 12 };

/* A cond: all_reduces, with a copy that may stop in front of them or beside them; or computing of that size. */
static weir_program *make_stopping(weir_engine *engine, weir_comm *comm, int beside) {
    const weir_tensor_desc vector = vector_desc(LONG), one = make_desc(WEIR_S32, 1, 1, 0, 0);
    weir_graph *graph = make_graph("stopping"), *then = make_graph("then"), *otherwise = make_graph("else");
    weir_cond_desc cond = {.struct_size = sizeof cond, .then_graph = then, .else_graph = otherwise};
    weir_value x, copied, y[2];
    char name[16];
    CHECK_OK(weir_graph_add_input(then, "x", &vector, &x));
    copied = add_unary(then, engine, "copy", copy_and_stop, NULL, vector, x);
    if (!beside) x = copied;
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "sum %d", i);
        x = add_collective(then, engine, comm, name, i == 0 ? sum : maximum, x);
    }
    CHECK_OK(weir_graph_add_output(then, "y", x));
    CHECK_OK(weir_graph_add_output(then, "copied", copied));
    CHECK_OK(weir_graph_add_input(otherwise, "x", &vector, &x));
    copied = add_unary(otherwise, engine, "copy", copy_behind_gate, NULL, vector, x);
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "layer %d", i);
        x = add_unary(otherwise, engine, name, compute_plus_one, NULL, vector, x);
    }
    CHECK_OK(weir_graph_add_output(otherwise, "y", x));
    CHECK_OK(weir_graph_add_output(otherwise, "copied", copied));
    CHECK_OK(weir_graph_add_input(graph, "predicate", &one, &cond.predicate));
    CHECK_OK(weir_graph_add_input(graph, "x", &vector, &x));
    cond.inputs = &x;
    cond.num_inputs = 1;
    CHECK_OK(weir_graph_add_cond(graph, "branch", &cond, y, 2, NULL));
    /* One more layer on either side, so that what the branches give are values of the run. */
    y[0] = add_unary(graph, engine, "end", compute_plus_one, NULL, vector, y[0]);
    CHECK_OK(weir_graph_add_output(graph, "y", y[0]));
    CHECK_OK(weir_graph_add_output(graph, "copied", y[1]));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_graph_destroy(then);
    weir_graph_destroy(otherwise);
    return program;
}

static void check_values(const weir_tensor *out, int of, int ranks, int added) {
    for (size_t i = 0; i < LONG; i++) {
        int expected = added;
        for (int r = of; r < of + ranks; r++) expected += (int)((i * 7u + (unsigned)r * 13u) % 17u) - 8;
        CHECK(floats(out)[i] == (float)expected);
    }
}

static void test_stop(weir_threadpool *pool, int beside, uint64_t flags) {
    const int silent = size - 1;
    const weir_comm_options limited = {.struct_size = sizeof limited, .name = "stopping", .flags = flags,
                                       .limit_ns = UINT64_C(500) * 1000000};
    weir_comm *base = make_comm("going", flags, LIMIT), *comm = NULL;
    CHECK_OK(weir_comm_duplicate(base, &limited, &comm));
    weir_engine *engine = make_engine(pool);
    weir_program *going = make_stopping(engine, base, beside), *program = make_stopping(engine, comm, beside);
    weir_tensor *in[2] = {make_tensor(engine, make_desc(WEIR_S32, 1, 1, 0, 0)), make_tensor(engine, vector_desc(LONG))};
    weir_tensor *out[2] = {make_tensor(engine, vector_desc(LONG)), make_tensor(engine, vector_desc(LONG))};
    weir_comm_info info = {.struct_size = sizeof info};
    MPI_Request request;
    MPI_Status status;
    void *data = NULL;
    char text[32];
    int done = 0, runs = 0;
    CHECK_OK(weir_tensor_get_data(in[0], &data));
    *(int32_t *)data = 1;
    fill(in[1], rank);
    /* Such a program is right, where a machine that is busy has longer for it. */
    CHECK_OK(weir_program_run(going, NULL, in, 2, out, 2, NULL));
    check_values(out[0], 0, size, 1);
    check_values(out[1], rank, 1, 0);
    meet();
    atomic_store(&stops, rank == silent);
    const uint64_t began = now_ns();
    CHECK(weir_program_run(program, NULL, in, 2, out, 2, NULL) != WEIR_OK);
    if (rank != silent) {
        CHECK(now_ns() - began < UINT64_C(5) * 1000000000);
        /* On a machine that is busy others may not have answered in time either; it is the last of them. */
        snprintf(text, sizeof text, " %d did not answer", silent);
        CHECK_TEXT(weir_last_error_message(), text);
    } else {
        CHECK(now_ns() - began > UINT64_C(1) * 1000000000);
        CHECK_TEXT(weir_last_error_message(), "gave up");
    }
    CHECK_OK(weir_comm_get_info(comm, &info));
    CHECK_EQ(info.dead, 1);
    /* While the others are at this, the silent one wakes up, and MPI goes on with what both had begun. */
    *(int32_t *)data = 0;
    CHECK_EQ(MPI_Ibarrier(MPI_COMM_WORLD, &request), MPI_SUCCESS);
    for (int after = 0; after < 20; runs++) {
        memset(floats(out[0]), 0xa5, LONG * sizeof(float));
        CHECK_OK(weir_program_run(program, NULL, in, 2, out, 2, NULL));
        if (!done) CHECK_EQ(MPI_Test(&request, &done, &status), MPI_SUCCESS);
        check_values(out[0], rank, 1, LAYERS + 1);
        check_values(out[1], rank, 1, 0);
        after += done;
    }
    CHECK(runs >= 20);
    meet();
    for (int i = 0; i < 2; i++) {
        weir_tensor_release(in[i]);
        weir_tensor_release(out[i]);
    }
    weir_program_release(going);
    weir_program_release(program);
    weir_engine_release(engine);
    weir_comm_release(base);
    weir_comm_release(comm);
}

/* ---- Failures that all ranks hear of ----------------------------------------------------------------------------- */

typedef enum failing { IN_A_LOOP, CANCELLED_BEFORE, BEHIND_A_FAILURE, FAILINGS } failing;

/* On rank 1 the fourth iteration fails, when its operation is over and nothing is left of the body. */
static int32_t compute_more_or_fail(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL;
    size_t count = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    return rank == 1 && *(const int32_t *)in->data == 3 ? WEIR_DATA_LOSS : compute_more(user, context);
}

static weir_program *make_loop(weir_engine *engine, weir_comm *comm) {
    const weir_tensor_desc one = make_desc(WEIR_S32, 1, 1, 0, 0);
    weir_graph *graph = make_graph("loops"), *condition = make_graph("condition"), *body = make_graph("body");
    weir_while_desc loop = {
        .struct_size = sizeof loop, .cond_graph = condition, .body_graph = body, .num_variables = 1};
    weir_value n, result;
    CHECK_OK(weir_graph_add_input(condition, "n", &one, &n));
    weir_value less = add_unary(condition, engine, "less", compute_less, NULL, one, n);
    CHECK_OK(weir_graph_add_output(condition, "less", less));
    CHECK_OK(weir_graph_add_input(body, "n", &one, &n));
    n = add_collective(body, engine, comm, "all", maximum, n);
    CHECK_OK(weir_graph_add_output(body, "n", add_unary(body, engine, "more", compute_more_or_fail, NULL, one, n)));
    CHECK_OK(weir_graph_add_input(graph, "n", &one, &n));
    loop.variables = &n;
    CHECK_OK(weir_graph_add_while(graph, "loop", &loop, &result, NULL));
    CHECK_OK(weir_graph_add_output(graph, "n", result));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    return program;
}

static int32_t fail(void *arg) {
    (void)arg;
    return WEIR_DATA_LOSS;
}

static void test_told(weir_threadpool *pool, failing how) {
    const weir_tensor_desc desc = how == IN_A_LOOP ? make_desc(WEIR_S32, 1, 1, 0, 0) : vector_desc(SHORT);
    weir_comm *comm = make_comm("told", 0, 0);
    weir_engine *engine = make_engine(pool);
    weir_program *program = how == IN_A_LOOP ? make_loop(engine, comm) : make_gated(engine, comm, NULL);
    weir_tensor *in = make_tensor(engine, desc), *out = make_tensor(engine, desc);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, pool, "told");
    weir_comm_info info = {.struct_size = sizeof info};
    weir_status status;
    gate before = {0};
    void *data = NULL;
    int32_t left = 0;
    CHECK_OK(weir_tensor_get_data(in, &data));
    memset(data, 0, 4);
    if (rank == 1 && how != IN_A_LOOP) {
        weir_run *run = NULL;
        CHECK_OK(weir_enqueue_task(stream, pass_gate, &before, NULL));
        if (how == BEHIND_A_FAILURE) CHECK_OK(weir_enqueue_task(stream, fail, NULL, NULL));
        CHECK_OK(weir_program_start(program, stream, &in, 1, &out, 1, NULL, &run));
        if (how == CANCELLED_BEFORE) CHECK_OK(weir_run_cancel(run));
        open_gate(&before);
        status = weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE);
        CHECK_EQ(status, how == CANCELLED_BEFORE ? WEIR_CANCELLED : WEIR_ABORTED);
        weir_run_release(run);
        /* Where another thread has found it out, this one tells it. */
        CHECK_OK(weir_comm_progress(comm, LIMIT, &left));
    } else {
        status = weir_program_run(program, NULL, &in, 1, &out, 1, NULL);
        CHECK_EQ(status, rank == 1 ? WEIR_DATA_LOSS : WEIR_ABORTED);
        if (rank != 1) CHECK_TEXT(weir_last_error_message(), "rank 1 gave up");
    }
    CHECK_OK(weir_comm_get_info(comm, &info));
    CHECK_EQ(info.dead, 1);
    CHECK_EQ(info.begun, info.ended);
    CHECK(weir_program_run(program, NULL, &in, 1, &out, 1, NULL) != WEIR_OK);
    CHECK_TEXT(weir_last_error_message(), "is dead");
    meet();
    weir_stream_release(stream);
    weir_tensor_release(in);
    weir_tensor_release(out);
    weir_program_release(program);
    weir_engine_release(engine);
    weir_comm_release(comm);
}

int main(int argc, char **argv) {
    weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = 2};
    const char *part = argc > 1 ? argv[1] : "";
    weir_threadpool *pool = NULL;
    begin_ranks(&argc, &argv, strcmp(part, "told_funneled") == 0 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    weir_runtime_info before = runtime_info();
    CHECK_OK(weir_threadpool_create_builtin(&options, &pool));
    if (strcmp(part, "") == 0) {
        test_places();
        test_runs_at_once(pool);
        test_iterations(NULL, 0);
        test_iterations(pool, 0);
        test_iterations(pool, WEIR_COMM_OWN_THREAD);
        weir_threadpool_release(pool);
        check_released(&before);
        meet();
        end_ranks("differences are named, and runs at once are right");
        return 0;
    }
    /* Operations are left open here, and with them MPI_Finalize may hang. */
    if (strcmp(part, "divergence") == 0) {
        test_divergence(pool);
    } else if (strncmp(part, "told", 4) == 0) {
        for (int how = 0; how < FAILINGS; how++) test_told(pool, (failing)how);
    } else {
        CHECK(strcmp(part, "stop") == 0);
        test_stop(pool, 0, 0);
        test_stop(NULL, 0, WEIR_COMM_CHECKED);
        test_stop(pool, 1, 0);
        test_stop(pool, 1, WEIR_COMM_OWN_THREAD);
    }
    weir_threadpool_release(pool);
    meet();
    if (rank == 0) printf("%d ranks: all have ended\n", size);
    end_open_ranks();
}
