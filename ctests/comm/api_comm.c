/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Ranks that are threads of one process: sums of a training step that overlap with what computes, on a stream too; what
 * all ranks are told when one fails; and the ranks that are left.
 */

#include <pthread.h>
#include <weir/comm.h>

#include "make.h"

enum { RANKS = 3, LAYERS = 8, WIDTH = 100 };

typedef struct rank {
    weir_comm *comm;
    int number;
    int fails; /* whether its kernel fails */
    weir_status status;
    char message[512];
    float sums[LAYERS];
    int32_t left; /* ranks after the recovery */
} rank;

static weir_kernel *communication(weir_engine *engine, weir_comm *comm, weir_comm_op op) {
    const weir_communication desc = {.struct_size = sizeof desc, .op = op};
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_communication(engine, comm, &desc, NULL, &kernel));
    return kernel;
}

/* The gradient of a layer: the number of the rank and of the layer. */
static int32_t gradient(void *user, weir_kernel_context *context) {
    const rank *self = user;
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    const float before = ((const float *)in[0].data)[0];
    for (int i = 0; i < WIDTH; i++) ((float *)out[0].data)[i] = before + 1;
    if (self->fails && before == 4) CHECK_OK(weir_kernel_context_fail(context, WEIR_DATA_LOSS, "no more data"));
    return WEIR_OK;
}

/* A chain of layers; the sum of each over all ranks is an output. */
static weir_program *make_step(weir_engine *engine, rank *self) {
    const weir_tensor_desc desc = vector_desc(WIDTH);
    weir_graph *graph = make_graph("step");
    weir_kernel *layer = make_unary_kernel(engine, "layer", gradient, self, &desc);
    weir_kernel *sum = communication(engine, self->comm, WEIR_COMM_ALL_REDUCE);
    weir_value value, summed;
    char name[16];
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &value));
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "layer %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, layer, &value, 1, &value, 1, NULL));
        snprintf(name, sizeof name, "sum %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, sum, &value, 1, &summed, 1, NULL));
        CHECK_OK(weir_graph_add_output(graph, name, summed));
    }
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_kernel_release(layer);
    weir_kernel_release(sum);
    return program;
}

static void step(rank *self, int times) {
    weir_engine *engine = make_engine(NULL);
    weir_program *program = make_step(engine, self);
    weir_tensor *x = make_tensor(engine, vector_desc(WIDTH)), *sums[LAYERS];
    for (int i = 0; i < WIDTH; i++) floats(x)[i] = (float)self->number;
    for (int i = 0; i < LAYERS; i++) sums[i] = make_tensor(engine, vector_desc(WIDTH));
    CHECK_OK(weir_program_agree(program, self->comm, WEIR_TIMEOUT_INFINITE));
    for (int i = 0; i < times && self->status == WEIR_OK; i++)
        self->status = weir_program_run(program, NULL, &x, 1, sums, LAYERS, NULL);
    snprintf(self->message, sizeof self->message, "%s", self->status == WEIR_OK ? "" : weir_last_error_message());
    for (int i = 0; i < LAYERS; i++) {
        self->sums[i] = floats(sums[i])[WIDTH - 1];
        weir_tensor_release(sums[i]);
    }
    weir_tensor_release(x);
    weir_program_release(program);
    weir_engine_release(engine);
}

static void *train(void *arg) {
    step(arg, 20);
    return NULL;
}

static void run_ranks(rank ranks[RANKS], void *(*work)(void *)) {
    pthread_t threads[RANKS];
    for (int i = 0; i < RANKS; i++) CHECK_EQ(pthread_create(&threads[i], NULL, work, &ranks[i]), 0);
    for (int i = 0; i < RANKS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

static void make_ranks(rank ranks[RANKS], const weir_comm_options *options) {
    weir_comm *comms[RANKS];
    CHECK_OK(weir_comm_create_local(RANKS, options, comms));
    for (int i = 0; i < RANKS; i++) ranks[i] = (rank){.comm = comms[i], .number = i};
}

static void release_ranks(rank ranks[RANKS]) {
    for (int i = 0; i < RANKS; i++) weir_comm_release(ranks[i].comm);
}

static void sums_of_all_ranks(void) {
    const weir_comm_options options = {.struct_size = sizeof options, .name = "dp", .flags = WEIR_COMM_CHECKED};
    rank ranks[RANKS];
    make_ranks(ranks, &options);
    run_ranks(ranks, train);
    for (int i = 0; i < RANKS; i++) {
        weir_comm_info info = {.struct_size = sizeof info};
        CHECK_OK(weir_comm_get_info(ranks[i].comm, &info));
        CHECK_EQ(info.rank, i);
        CHECK_EQ(info.size, RANKS);
        CHECK(info.begun == info.ended && info.begun >= 20 * LAYERS);
        CHECK_EQ(info.dead, 0);
        CHECK(strcmp(info.transport, "local") == 0);
        CHECK_EQ(ranks[i].status, WEIR_OK);
        /* 0 + 1 + 2, and the layers below. */
        for (int k = 0; k < LAYERS; k++) CHECK(ranks[i].sums[k] == (float)(3 + RANKS * (k + 1)));
    }
    release_ranks(ranks);
}

/* On a stream: what is queued behind an operation waits for it, and the calling thread does not. */
static void *enqueue_sum(void *arg) {
    rank *self = arg;
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "ranks");
    weir_kernel *sum = communication(engine, self->comm, WEIR_COMM_ALL_REDUCE);
    weir_kernel *barrier = communication(engine, self->comm, WEIR_COMM_BARRIER);
    weir_tensor *x = make_tensor(engine, vector_desc(WIDTH));
    for (int i = 0; i < WIDTH; i++) floats(x)[i] = 1;
    /* In place, three times: 3, 9, 27. */
    for (int i = 0; i < 3; i++) CHECK_OK(weir_enqueue(stream, sum, &x, 1, &x, 1));
    CHECK_OK(weir_enqueue(stream, barrier, NULL, 0, NULL, 0));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK(floats(x)[0] == 27 && floats(x)[WIDTH - 1] == 27);
    weir_tensor_release(x);
    weir_kernel_release(sum);
    weir_kernel_release(barrier);
    weir_stream_release(stream);
    weir_engine_release(engine);
    return NULL;
}

/* The ranks that are left find each other and go on. */
static void *fail_and_go_on(void *arg) {
    rank *self = arg;
    step(self, 1);
    if (self->fails) {
        weir_comm_release(self->comm);
        self->comm = NULL;
        return NULL;
    }
    weir_comm *rest = NULL;
    CHECK_OK(weir_comm_recover(self->comm, NULL, &rest));
    weir_comm_release(self->comm);
    self->comm = rest;
    weir_comm_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_comm_get_info(rest, &info));
    self->left = info.size;
    rank again = {.comm = rest, .number = 10};
    step(&again, 2);
    CHECK_EQ(again.status, WEIR_OK);
    CHECK(again.sums[0] == 22);
    return NULL;
}

static void a_rank_fails(void) {
    const weir_comm_options options = {.struct_size = sizeof options, .name = "dp"};
    rank ranks[RANKS];
    make_ranks(ranks, &options);
    ranks[1].fails = 1;
    run_ranks(ranks, fail_and_go_on);
    CHECK_EQ(ranks[1].status, WEIR_DATA_LOSS);
    for (int i = 0; i < RANKS; i += 2) {
        CHECK_EQ(ranks[i].status, WEIR_ABORTED);
        CHECK(strstr(ranks[i].message, "rank 1 gave up") != NULL);
        CHECK(strstr(ranks[i].message, "no more data") != NULL);
        CHECK_EQ(ranks[i].left, RANKS - 1);
    }
    release_ranks(ranks);
}

/* Without a thread that waits, the host makes progress; and it can give up. */
static void the_host_asks(void) {
    weir_comm *comms[2];
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "one");
    weir_tensor *x = make_tensor(engine, vector_desc(1)), *y = make_tensor(engine, vector_desc(1));
    int32_t pending = 0, done = 0;
    CHECK_OK(weir_comm_create_local(2, NULL, comms));
    weir_kernel *sums[2];
    for (int i = 0; i < 2; i++) sums[i] = communication(engine, comms[i], WEIR_COMM_ALL_REDUCE);
    floats(x)[0] = floats(y)[0] = 2;
    weir_stream *other = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, "other");
    CHECK_OK(weir_enqueue(stream, sums[0], &x, 1, &x, 1));
    CHECK_OK(weir_enqueue(other, sums[1], &y, 1, &y, 1));
    while (!done) {
        for (int i = 0; i < 2; i++) CHECK_OK(weir_comm_progress(comms[i], 1000, &pending));
        CHECK_OK(weir_stream_query(stream, &done));
    }
    CHECK_OK(weir_stream_synchronize(other, WEIR_TIMEOUT_INFINITE));
    CHECK(floats(x)[0] == 4 && floats(y)[0] == 4);
    CHECK_OK(weir_enqueue(stream, sums[0], &x, 1, &x, 1));
    CHECK_OK(weir_comm_abort(comms[1], "the host is tired"));
    CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_ABORTED, "the host is tired");
    for (int i = 0; i < 2; i++) {
        weir_kernel_release(sums[i]);
        weir_comm_release(comms[i]);
    }
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_stream_release(stream);
    weir_stream_release(other);
    weir_engine_release(engine);
}

int main(void) {
    sums_of_all_ranks();
    rank ranks[RANKS];
    make_ranks(ranks, NULL);
    run_ranks(ranks, enqueue_sum);
    release_ranks(ranks);
    a_rank_fails();
    the_host_asks();
    return 0;
}
