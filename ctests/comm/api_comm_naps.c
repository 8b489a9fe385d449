/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a thread costs that waits for another rank: over a transport that must be asked, as the host has said; over one
 * that says when something has moved, nothing.
 */

#include <pthread.h>
#include <sys/resource.h>
#include <weir/comm.h>

#include "make.h"

enum { MS = 1000000, LATE_TAG = 0, SOON_TAG = 1, ROUNDS = 400, PAUSE_NS = 15000 };

/* ---- A transport of one rank whose messages come by the clock ---- */

typedef struct clock_request {
    uint64_t ready;
} clock_request;

typedef struct clock_rank {
    uint64_t flags, waits_ns[2]; /* how long a message of a tag is on its way */
    uint64_t asked; /* last; calls come from one thread at a time */
    atomic_long naps; /* pauses between two questions */
    _Atomic(uint64_t) soonest; /* when the last message comes */
    clock_request *never; /* what nobody has seen the end of */
} clock_rank;

static weir_status get_info(void *ctx, weir_comm_transport_info *out_info) {
    const clock_rank *rank = ctx;
    out_info->size = 2;
    out_info->rank = 0;
    out_info->flags = WEIR_COMM_ABORT_RELEASES | rank->flags;
    out_info->ops = 1u << WEIR_COMM_SEND | 1u << WEIR_COMM_RECV;
    out_info->max_tag = 32767;
    return WEIR_OK;
}

static weir_status start(void *ctx, const weir_comm_operation *operation, void **out_request) {
    clock_rank *rank = ctx;
    clock_request *request = calloc(1, sizeof *request);
    CHECK(request != NULL);
    memset(operation->recv, 0, (size_t)operation->count * operation->element_bytes);
    rank->asked = now_ns();
    request->ready = rank->asked + rank->waits_ns[operation->tag];
    atomic_store(&rank->soonest, request->ready);
    rank->never = request;
    *out_request = request;
    return WEIR_OK;
}

static weir_status test(void *ctx, void *opaque, int32_t *out_done) {
    clock_rank *rank = ctx;
    clock_request *request = opaque;
    const uint64_t now = now_ns();
    if (now - rank->asked > PAUSE_NS) atomic_fetch_add(&rank->naps, 1);
    rank->asked = now;
    *out_done = now >= request->ready;
    if (*out_done) {
        if (rank->never == request) rank->never = NULL;
        free(request);
    }
    return WEIR_OK;
}

static const weir_comm_vtable clock_vtable = {
    .struct_size = sizeof clock_vtable, .get_info = get_info, .start = start, .test = test};

static weir_comm *make_comm(clock_rank *rank, weir_comm_options options) {
    weir_comm *comm = NULL;
    options.struct_size = sizeof options;
    CHECK_OK(weir_comm_create(&clock_vtable, rank, &options, &comm));
    return comm;
}

static weir_kernel *make_recv(weir_engine *engine, weir_comm *comm, int tag) {
    const weir_communication desc = {
        .struct_size = sizeof desc, .op = WEIR_COMM_RECV, .peer = 1, .tag = tag, .desc = vector_desc(1)};
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_communication(engine, comm, &desc, NULL, &kernel));
    return kernel;
}

/* Receives on a stream of its own; how often the transport was asked behind a pause. */
static long receive(clock_rank *rank, weir_comm *comm, int tag) {
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_kernel *recv = make_recv(engine, comm, tag);
    weir_tensor *x = make_tensor(engine, vector_desc(1));
    const long before = atomic_load(&rank->naps);
    CHECK_OK(weir_enqueue(stream, recv, NULL, 0, &x, 1));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    const long naps = atomic_load(&rank->naps) - before;
    weir_tensor_release(x);
    weir_kernel_release(recv);
    weir_stream_release(stream);
    weir_engine_release(engine);
    return naps;
}

/* ---- A transport that must be asked ---- */

static void naps_are_the_hosts(void) {
    clock_rank rank = {.waits_ns = {300 * MS}};
    weir_comm *eager = make_comm(&rank, (weir_comm_options){.nap_percent = 3});
    weir_comm *lazy = make_comm(&rank, (weir_comm_options){.nap_percent = 100, .longest_nap_ns = UINT64_C(1000) * MS});
    /* From 60 us on each nap is as long as what has passed: 13 of them, and some when the thread has lost its processor
     * before. */
    const long few = receive(&rank, lazy, LATE_TAG), many = receive(&rank, eager, LATE_TAG);
    CHECK(few <= 20);
    CHECK(many > few);
    /* A nap is never so long that an answer to another rank's question would be late. */
    weir_comm *refused = NULL;
    weir_comm_options options = {.struct_size = sizeof options, .limit_ns = 1, .longest_nap_ns = 50 * MS + 1};
    CHECK_CODE(weir_comm_create(&clock_vtable, &rank, &options, &refused), WEIR_OUT_OF_RANGE, "longest_nap_ns");
    options.limit_ns = 0;
    options.nap_percent = 101;
    CHECK_CODE(weir_comm_create(&clock_vtable, &rank, &options, &refused), WEIR_OUT_OF_RANGE, "nap_percent is 101");
    weir_comm_release(eager);
    weir_comm_release(lazy);
}

typedef struct waiter {
    clock_rank *rank;
    weir_comm *comm;
} waiter;

static void *receive_late(void *arg) {
    const waiter *self = arg;
    receive(self->rank, self->comm, LATE_TAG);
    return NULL;
}

/* A thread that naps because it has waited for long asks at once for what another one begins. */
static void what_begins_ends_a_nap(void) {
    clock_rank rank = {.waits_ns = {1500 * MS, 2 * MS}};
    weir_comm *comm =
        make_comm(&rank, (weir_comm_options){.nap_percent = 100, .longest_nap_ns = UINT64_C(10000) * MS});
    waiter self = {&rank, comm};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, receive_late, &self), 0);
    sleep_ms(600); /* at 480 ms it has gone to sleep for as long again */
    const uint64_t began = now_ns();
    receive(&rank, comm, SOON_TAG);
    CHECK(now_ns() - began < 200 * MS);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    weir_comm_release(comm);
}

/* ---- Transports that say when something has moved ---- */

typedef struct waker {
    clock_rank *rank;
    weir_comm *comm;
    atomic_int ends;
} waker;

/* Tells weir when a message comes, once for each. */
static void *tell(void *arg) {
    waker *self = arg;
    uint64_t told = 0;
    while (!atomic_load(&self->ends)) {
        const uint64_t ready = atomic_load(&self->rank->soonest), now = now_ns();
        int32_t pending = 0;
        if (ready == told || now < ready) {
            if (ready == told || ready - now > 200000) sleep_ns(50000);
            continue;
        }
        told = ready;
        CHECK_OK(weir_comm_progress(self->comm, 0, &pending));
    }
    return NULL;
}

static void told_threads_sleep(void) {
    clock_rank rank = {.flags = WEIR_COMM_WAKES, .waits_ns = {500 * MS, 0}};
    waker self = {.rank = &rank, .comm = make_comm(&rank, (weir_comm_options){.flags = 0})};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, tell, &self), 0);
    const uint64_t began = now_ns();
    CHECK(receive(&rank, self.comm, LATE_TAG) <= 10);
    CHECK(now_ns() - began >= 500 * MS);
    /* Whatever the thread is about to do when it is told: a lost word would never end. */
    for (int i = 0; i < ROUNDS; i++) {
        rank.waits_ns[SOON_TAG] = (uint64_t)i * 997 % 150000;
        receive(&rank, self.comm, SOON_TAG);
    }
    atomic_store(&self.ends, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    weir_comm_release(self.comm);
}

static void a_limit_ends_a_sleep(void) {
    clock_rank rank = {.flags = WEIR_COMM_WAKES, .waits_ns = {UINT64_C(1000000) * MS}};
    weir_comm *comm = make_comm(&rank, (weir_comm_options){.limit_ns = 100 * MS});
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_kernel *recv = make_recv(engine, comm, LATE_TAG);
    weir_tensor *x = make_tensor(engine, vector_desc(1));
    const uint64_t began = now_ns();
    CHECK_OK(weir_enqueue(stream, recv, NULL, 0, &x, 1));
    CHECK_CODE(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE), WEIR_DEADLINE_EXCEEDED, "not over within");
    CHECK(now_ns() - began >= 100 * MS && now_ns() - began < UINT64_C(20000) * MS);
    weir_tensor_release(x);
    weir_kernel_release(recv);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_comm_release(comm);
    free(rank.never); /* the transport's for ever, as far as weir knows */
}

/* Ranks in one process tell each other. */
typedef struct local_rank {
    weir_comm *comm;
    int comes_late;
} local_rank;

static void *sum(void *arg) {
    local_rank *self = arg;
    const weir_communication desc = {.struct_size = sizeof desc, .op = WEIR_COMM_ALL_REDUCE};
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    weir_tensor *x = make_tensor(engine, vector_desc(1));
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_communication(engine, self->comm, &desc, NULL, &kernel));
    floats(x)[0] = 1;
    if (self->comes_late) sleep_ms(500);
    CHECK_OK(weir_enqueue(stream, kernel, &x, 1, &x, 1));
    CHECK_OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    CHECK(floats(x)[0] == 2);
    weir_tensor_release(x);
    weir_kernel_release(kernel);
    weir_stream_release(stream);
    weir_engine_release(engine);
    return NULL;
}

static void ranks_of_a_process_sleep(void) {
    weir_comm *comms[2];
    pthread_t threads[2];
    CHECK_OK(weir_comm_create_local(2, NULL, comms));
    local_rank ranks[2] = {{.comm = comms[0]}, {.comm = comms[1], .comes_late = 1}};
    struct rusage before, after;
    CHECK_EQ(getrusage(RUSAGE_SELF, &before), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&threads[i], NULL, sum, &ranks[i]), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(getrusage(RUSAGE_SELF, &after), 0);
    /* With naps of an eighth of the wait it would be 60. Threads under valgrind take turns. */
    CHECK(after.ru_nvcsw - before.ru_nvcsw <= 25 || under_valgrind());
    for (int i = 0; i < 2; i++) weir_comm_release(comms[i]);
}

int main(void) {
    naps_are_the_hosts();
    what_begins_ends_a_nap();
    told_threads_sleep();
    a_limit_ends_a_sleep();
    ranks_of_a_process_sleep();
    return 0;
}
