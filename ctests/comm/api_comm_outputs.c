/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A run that communicates gives all of its outputs to their tensors, or none: whichever of its kernels fails, on which
 * rank, and however late the other ranks are.
 */

#include <pthread.h>
#include <weir/comm.h>
#include <weir/control.h>

#include "make.h"

enum { RANKS = 2, ROUNDS = 3, CANARY = 0x5a5a5a5a };

/* Outputs of the program. EVEN or ODD is absent. */
enum { EARLY, SUM, LOOP, AFTER, SAME, BRANCH, EVEN, ODD, OUTPUTS };

/* What kernels do with numbers. */
enum { PLUS_ONE, IS_ODD, IS_BELOW, NUM_FUNCTIONS };

/* How a rank runs its program. */
enum { HERE, ON_A_STREAM, MANY, NESTED, WAYS };

typedef struct rank rank;

typedef struct function {
    rank *of;
    int what;
} function;

struct rank {
    weir_comm *comm;
    int number, way;
    uint64_t flags; /* of its run */
    function functions[NUM_FUNCTIONS];
    atomic_int steps; /* kernels that have begun in this run */
    int fails_at, waits_at; /* the number of one of them; 0 = none */
    rank *other;
    atomic_int is_over; /* its run */
    weir_status status;
    int32_t got[OUTPUTS];
};

static const int32_t results[OUTPUTS] = {0, 5, 47, 48, 0, 49, 48, CANARY};

static int32_t expected(int number, int output) {
    return output == EARLY ? number + 2 : output == SAME ? number + 1 : results[output];
}

static int32_t compute(void *user, weir_kernel_context *context) {
    const function *self = user;
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    const int32_t x = *(const int32_t *)in[0].data;
    const int step = atomic_fetch_add(&self->of->steps, 1) + 1;
    *(int32_t *)out[0].data = self->what == PLUS_ONE ? x + 1 : self->what == IS_ODD ? x & 1 : x < ROUNDS;
    if (step == self->of->waits_at) EVENTUALLY(atomic_load(&self->of->other->is_over));
    if (step == self->of->fails_at) CHECK_OK(weir_kernel_context_fail(context, WEIR_DATA_LOSS, "no more data"));
    return WEIR_OK;
}

static weir_tensor_desc number_desc(void) {
    return make_desc(WEIR_S32, 1, 1, 0, 0);
}

static weir_value input(weir_graph *graph, const char *name) {
    const weir_tensor_desc desc = number_desc();
    weir_value value;
    CHECK_OK(weir_graph_add_input(graph, name, &desc, &value));
    return value;
}

static weir_value apply(weir_engine *engine, weir_graph *graph, const char *name, function *what, weir_value x) {
    const weir_tensor_desc desc = number_desc();
    weir_kernel *kernel = make_unary_kernel(engine, name, compute, what, &desc);
    weir_value y;
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &x, 1, &y, 1, NULL));
    weir_kernel_release(kernel);
    return y;
}

static weir_value sum_of(weir_engine *engine, weir_graph *graph, const char *name, weir_comm *comm, weir_value x) {
    const weir_communication desc = {.struct_size = sizeof desc, .op = WEIR_COMM_ALL_REDUCE};
    weir_kernel *kernel = NULL;
    weir_value y;
    CHECK_OK(weir_kernel_create_communication(engine, comm, &desc, NULL, &kernel));
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &x, 1, &y, 1, NULL));
    weir_kernel_release(kernel);
    return y;
}

static weir_value plus_one(weir_engine *engine, rank *self, weir_graph *graph, const char *name, weir_value x) {
    return apply(engine, graph, name, &self->functions[PLUS_ONE], x);
}

static weir_value add_loop(weir_engine *engine, rank *self, weir_graph *graph, weir_value zero, weir_value sum) {
    weir_graph *condition = make_graph("condition"), *body = make_graph("body");
    weir_value variables[2] = {zero, sum}, last[2];
    weir_value i = input(condition, "i");
    (void)input(condition, "x");
    CHECK_OK(weir_graph_add_output(condition, "more",
                                   apply(engine, condition, "is below", &self->functions[IS_BELOW], i)));
    i = input(body, "i");
    weir_value x = sum_of(engine, body, "sum", self->comm, input(body, "x"));
    CHECK_OK(weir_graph_add_output(body, "i", plus_one(engine, self, body, "next", i)));
    CHECK_OK(weir_graph_add_output(body, "x", plus_one(engine, self, body, "more", x)));
    CHECK_OK(weir_graph_add_while(graph, "loop",
                                  &(weir_while_desc){.struct_size = sizeof(weir_while_desc),
                                                     .cond_graph = condition,
                                                     .body_graph = body,
                                                     .variables = variables,
                                                     .num_variables = 2},
                                  last, NULL));
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    return last[1];
}

static weir_value add_branch(weir_engine *engine, rank *self, weir_graph *graph, weir_value is_odd, weir_value x) {
    weir_graph *branches[2] = {make_graph("even"), make_graph("odd")};
    weir_value y;
    for (int i = 0; i < 2; i++) {
        weir_value inside = input(branches[i], "x");
        CHECK_OK(weir_graph_add_output(branches[i], "y", plus_one(engine, self, branches[i], "one", inside)));
    }
    CHECK_OK(weir_graph_add_cond(graph, "branch",
                                 &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc),
                                                   .predicate = is_odd,
                                                   .then_graph = branches[1],
                                                   .else_graph = branches[0],
                                                   .inputs = &x,
                                                   .num_inputs = 1},
                                 &y, 1, NULL));
    for (int i = 0; i < 2; i++) weir_graph_destroy(branches[i]);
    return y;
}

/* Outputs that a kernel makes early, an operation, a loop of operations and what comes behind it, an input, a branch,
 * and the two sides of a switch. A kernel comes behind all of them. */
static weir_program *make_program(weir_engine *engine, rank *self) {
    const weir_compile_options options = {.struct_size = sizeof options, .flags = WEIR_COMPILE_ALLOW_ABSENT};
    const int is_inner = self->way == NESTED;
    weir_graph *graph = make_graph("step");
    weir_program *program = NULL;
    weir_value x = input(graph, "x"), zero = input(graph, "zero"), all[OUTPUTS];
    all[EARLY] = plus_one(engine, self, graph, "early", x);
    all[SUM] = sum_of(engine, graph, "sum", self->comm, all[EARLY]);
    all[LOOP] = add_loop(engine, self, graph, zero, all[SUM]);
    all[AFTER] = plus_one(engine, self, graph, "after", all[LOOP]);
    all[SAME] = x;
    weir_value is_odd = apply(engine, graph, "is odd", &self->functions[IS_ODD], all[AFTER]);
    all[BRANCH] = add_branch(engine, self, graph, is_odd, all[AFTER]);
    CHECK_OK(weir_graph_add_switch(graph, "switch", all[AFTER], is_odd, &all[EVEN], &all[ODD], NULL));
    const int outputs = is_inner ? EVEN : OUTPUTS; /* a node's are all there */
    for (int i = 0; i < outputs; i++) {
        char name[16];
        snprintf(name, sizeof name, "output %d", i);
        CHECK_OK(weir_graph_add_output(graph, name, all[i]));
    }
    CHECK_OK(weir_graph_add_output(graph, "end", plus_one(engine, self, graph, "end", all[BRANCH])));
    CHECK_OK(weir_graph_compile(graph, &engine, 1, is_inner ? NULL : &options, &program));
    weir_graph_destroy(graph);
    return program;
}

/* The program as the node of another one. */
static weir_program *around(weir_engine *engine, rank *self, weir_program *inner) {
    weir_graph *graph = make_graph("around");
    weir_value in[2] = {input(graph, "x"), input(graph, "zero")}, out[EVEN + 1];
    CHECK_OK(weir_graph_add_program(graph, "inner", inner, in, 2, out, EVEN + 1, NULL));
    for (int i = 0; i < EVEN; i++) {
        char name[16];
        snprintf(name, sizeof name, "output %d", i);
        CHECK_OK(weir_graph_add_output(graph, name, out[i]));
    }
    CHECK_OK(weir_graph_add_output(graph, "end", plus_one(engine, self, graph, "outer end", out[EVEN])));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    return program;
}

static int32_t *number(weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return data;
}

static weir_status run_once(rank *self, weir_program *program, weir_engine *engine, weir_tensor **in, weir_tensor **out,
                            size_t outputs) {
    const weir_run_options options = {.struct_size = sizeof options, .flags = self->flags};
    if (self->way == MANY) return weir_program_run_many(program, 1, in, 2, out, outputs, &options);
    if (self->way != ON_A_STREAM) return weir_program_run(program, NULL, in, 2, out, outputs, &options);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_status status = weir_program_run(program, stream, in, 2, out, outputs, &options);
    if (status == WEIR_OK) status = weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE);
    weir_stream_release(stream);
    return status;
}

/* A run that ends well, if no rank is late, and then one that may not. */
static void *run(void *arg) {
    rank *self = arg;
    weir_engine *engine = make_engine(NULL);
    weir_program *inner = make_program(engine, self), *program = inner;
    weir_tensor *in[2] = {make_tensor(engine, number_desc()), make_tensor(engine, number_desc())};
    weir_tensor *out[OUTPUTS + 1];
    if (self->way == NESTED) program = around(engine, self, inner);
    const size_t outputs = self->way == NESTED ? EVEN + 1 : OUTPUTS + 1;
    *number(in[0]) = self->number + 1;
    *number(in[1]) = 0;
    for (size_t i = 0; i < outputs; i++) out[i] = make_tensor(engine, number_desc());
    if (self->waits_at == 0 && self->other->waits_at == 0) {
        const int fails_at = self->fails_at;
        self->fails_at = 0;
        CHECK_OK(run_once(self, program, engine, in, out, outputs));
        self->fails_at = fails_at;
        atomic_store(&self->steps, 0);
    }
    for (size_t i = 0; i < outputs; i++) *number(out[i]) = CANARY;
    self->status = run_once(self, program, engine, in, out, outputs);
    atomic_store(&self->is_over, 1);
    const int32_t last = *number(out[outputs - 1]), end = self->way == NESTED ? 51 : 50;
    CHECK_EQ(last, self->status == WEIR_OK ? end : CANARY);
    for (size_t i = 0; i + 1 < outputs; i++) self->got[i] = *number(out[i]);
    for (size_t i = 0; i < outputs; i++) weir_tensor_release(out[i]);
    for (int i = 0; i < 2; i++) weir_tensor_release(in[i]);
    if (program != inner) weir_program_release(program);
    weir_program_release(inner);
    weir_engine_release(engine);
    return NULL;
}

static void run_ranks(rank ranks[RANKS], const weir_comm_options *options) {
    weir_comm *comms[RANKS];
    pthread_t threads[RANKS];
    CHECK_OK(weir_comm_create_local(RANKS, options, comms));
    for (int i = 0; i < RANKS; i++) {
        ranks[i].comm = comms[i];
        ranks[i].number = i;
        ranks[i].other = &ranks[1 - i];
        for (int what = 0; what < NUM_FUNCTIONS; what++) ranks[i].functions[what] = (function){&ranks[i], what};
    }
    for (int i = 0; i < RANKS; i++) CHECK_EQ(pthread_create(&threads[i], NULL, run, &ranks[i]), 0);
    for (int i = 0; i < RANKS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < RANKS; i++) weir_comm_release(comms[i]);
}

static void all_or_nothing(const rank *self) {
    for (int i = 0; i < OUTPUTS; i++) {
        const int is_asked = self->way != NESTED || i < EVEN;
        if (is_asked) CHECK_EQ(self->got[i], self->status == WEIR_OK ? expected(self->number, i) : CANARY);
    }
}

/* Each kernel of rank 1 fails, one run after the other; then none. */
static void whichever_kernel_fails(int way) {
    int fails_at = 1;
    for (weir_status status = WEIR_DATA_LOSS; status != WEIR_OK; fails_at++) {
        rank ranks[RANKS] = {{.way = way}, {.way = way, .fails_at = fails_at}};
        run_ranks(ranks, NULL);
        for (int i = 0; i < RANKS; i++) all_or_nothing(&ranks[i]);
        status = ranks[1].status;
        CHECK(status == WEIR_OK || status == WEIR_DATA_LOSS);
        if (status == WEIR_OK) CHECK_EQ(ranks[0].status, WEIR_OK);
        if (fails_at == 1) CHECK_EQ(ranks[0].status, WEIR_ABORTED);
    }
    CHECK(fails_at > 3 * ROUNDS);
}

/* A rank is so late that the run that waits for it ends by its limit: its own is void. */
static void a_rank_is_late(int way) {
    const weir_comm_options options = {.struct_size = sizeof options, .limit_ns = 30000000};
    for (int waits_at = 1; waits_at <= 7; waits_at += 3) {
        rank ranks[RANKS] = {{.way = way}, {.way = way, .waits_at = waits_at}};
        run_ranks(ranks, &options);
        for (int i = 0; i < RANKS; i++) {
            CHECK(ranks[i].status != WEIR_OK);
            all_or_nothing(&ranks[i]);
        }
    }
}

/* Where the host has asked for it, a run that fails writes what does not depend on the failure. */
static void what_is_independent_is_written(void) {
    rank ranks[RANKS] = {{.way = HERE}, {.way = HERE, .flags = WEIR_RUN_FINISH_INDEPENDENT, .fails_at = 1}};
    run_ranks(ranks, NULL);
    CHECK_EQ(ranks[1].status, WEIR_DATA_LOSS);
    CHECK_EQ(ranks[1].got[SAME], 2);
    CHECK_EQ(ranks[1].got[SUM], CANARY);
    all_or_nothing(&ranks[0]);
}

/* Tensors that stay are used where they are. */
static void tensors_that_stay(void) {
    const weir_comm_options options = {.struct_size = sizeof options, .flags = WEIR_COMM_TENSORS_STAY};
    rank ranks[RANKS] = {{.way = HERE}, {.way = ON_A_STREAM}};
    run_ranks(ranks, &options);
    for (int i = 0; i < RANKS; i++) {
        CHECK_EQ(ranks[i].status, WEIR_OK);
        all_or_nothing(&ranks[i]);
    }
}

int main(void) {
    for (int way = 0; way < WAYS; way++) {
        whichever_kernel_fails(way);
        a_rank_is_late(way);
    }
    what_is_independent_is_written();
    tensors_that_stay();
    return 0;
}
